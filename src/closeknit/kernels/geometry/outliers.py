"""Outliers: rows without which the box of their class would be far smaller."""

from __future__ import annotations

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.boxes import Codes, Ints, Scales, range_loss


@kernel
def _inner(quasi: Codes, class_of: Codes, n_classes: int) -> tuple[Codes, Codes, Codes, Codes]:
    """Per class and column the two smallest and the two largest codes: lowest, next, highest, next."""
    d = quasi.shape[1]
    far = np.iinfo(np.int32).max
    lo, next_lo = np.full((n_classes, d), far, np.int32), np.full((n_classes, d), far, np.int32)
    hi, next_hi = np.full((n_classes, d), -1, np.int32), np.full((n_classes, d), -1, np.int32)
    for r in range(quasi.shape[0]):
        c = class_of[r]
        if c < 0:
            continue
        for j in range(d):
            x = quasi[r, j]
            if x < lo[c, j]:
                lo[c, j], next_lo[c, j] = x, lo[c, j]
            else:
                next_lo[c, j] = min(next_lo[c, j], x)
            if x > hi[c, j]:
                hi[c, j], next_hi[c, j] = x, hi[c, j]
            else:
                next_hi[c, j] = max(next_hi[c, j], x)
    return lo, next_lo, hi, next_hi


@kernel
def savings(quasi: Codes, scales: Scales, class_of: Codes, sizes: Ints) -> Reals:
    """Reduction of the table's loss, summed over rows, if only this row is suppressed and counts 1.

    >>> from kernel_inputs import flat_scales
    >>> quasi, class_of = np.array([[0], [1], [0], [100]], np.int32), np.zeros(4, np.int32)
    >>> savings(quasi, flat_scales([101]), class_of, np.array([4])).round(2).tolist()
    [0.0, 0.0, 0.0, 2.97]
    """
    lo, next_lo, hi, next_hi = _inner(quasi, class_of, len(sizes))
    saved = np.full(quasi.shape[0], -np.inf)
    for r in range(quasi.shape[0]):
        c = class_of[r]
        if c < 0 or sizes[c] < 2:
            continue
        with_it, without = 0.0, 0.0
        for j in range(quasi.shape[1]):
            x = quasi[r, j]
            low = next_lo[c, j] if x == lo[c, j] else lo[c, j]
            high = next_hi[c, j] if x == hi[c, j] else hi[c, j]
            cost = scales.weight[j] * range_loss(scales, j, lo[c, j], hi[c, j])
            with_it += cost
            inside = low == lo[c, j] and high == hi[c, j]
            without += cost if inside else scales.weight[j] * range_loss(scales, j, low, high)
        saved[r] = sizes[c] * with_it - (sizes[c] - 1) * without - 1.0
    return saved
