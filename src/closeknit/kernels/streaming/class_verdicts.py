"""Verdicts on many classes at once, by a guard whose rows are the values of one sensitive attribute.

A stream knows its values by digests, so the leaf of a row is looked up here. The guard allows only what its model allows, and
refuses a little more, where a limit is no rational. So there are two: what the loose one refuses too, the model refuses.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.exchange.knit_guard import Guard, count_leaf, is_allowed, sum_leaves
from closeknit.kernels.geometry.declared_axes import Ints

REFUSED, OPEN, ALLOWED = -1, 0, 1


@kernel
def judge_classes(guard: Guard, loose: Guard, known: Ints, code_of: Ints, digests: Ints, class_of: Ints, count: int) -> Ints:
    """Whether each class is allowed or refused for certain, or open: near a limit, too large, or with an unknown digest.

    Args:
        guard: allows what the model allows, or less.
        loose: allows what the model allows, or more.
        known: digests of values, ascending.
        code_of: the code of each of them, which is its row in the guard.
        digests: the digest of each row's value.
        class_of: the class of each row.
        count: the number of classes.

    >>> from kernel_inputs import one_cap
    >>> guard, known = one_cap(np.array([0, 1], np.int32), 1), np.array([40, 70])
    >>> judge_classes(guard, guard, known, np.arange(2), np.array([40, 70, 40, 99]), np.array([0, 0, 1, 2]), 3).tolist()
    [1, -1, 0]
    """
    under, nothing = np.zeros((count, len(guard.parent)), np.int32), np.zeros(len(guard.parent), np.int32)
    size, verdict, most = np.zeros(count, np.int64), np.full(count, ALLOWED), guard.most.shape[1] - 1
    for row in range(len(digests)):
        c, i = class_of[row], _find_digest(known, digests[row])
        size[c] += 1
        if i < 0:
            verdict[c] = OPEN
        else:
            count_leaf(guard, under, whole(c), whole(code_of[i]), whole(1))
    for c in range(count):
        if verdict[c] == OPEN or size[c] > most:
            verdict[c] = OPEN
            continue
        sum_leaves(guard, under, whole(c))
        if not is_allowed(guard, under, whole(c), nothing, whole(1), size[c]):
            verdict[c] = OPEN if is_allowed(loose, under, whole(c), nothing, whole(1), size[c]) else REFUSED
    return verdict


@bare
def _find_digest(known: Ints, digest: int) -> int:
    """Its place; -1 if it is not known."""
    low, high = 0, len(known)
    while low < high:
        middle = (low + high) // 2
        if known[middle] < digest:
            low = middle + 1
        else:
            high = middle
    return low if low < len(known) and known[low] == digest else -1
