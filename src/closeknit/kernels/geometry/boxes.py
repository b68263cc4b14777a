"""Boxes of leaf codes and their information loss: the geometry that all kernels share.

A quasi table is `int32[n, d]`. Column j has the leaves `0 .. size[j]-1` in depth-first (or numeric) order and one
more leaf, the missing one, with code `size[j]`. Every node of a tree and every numeric interval is a range of
codes, so a class is a box `lo[d], hi[d]`.

`Scales` defines the loss of a range. Per leaf arrays hold `size[j] + 1` entries of column j from `leaf_start[j]` on,
the last one being the missing leaf. Loss is variant A of the General Loss Metric.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Reals as Reals
from closeknit.kernels.compiling import bare, kernel, whole

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]


class Scales(NamedTuple):
    """Flat arrays that describe all quasi-identifiers; dtypes are fixed so that each kernel is compiled once.

    >>> from kernel_inputs import flat_scales
    >>> flat_scales([3, 2]).size.tolist()
    [3, 2]
    """

    numeric: NDArray[np.bool_]  # [d] by value on an axis, or by a tree
    size: Ints  # [d] leaves, the missing one not counted
    leaf_start: Ints  # [d] start of column j in `position` and `leaf_node`
    position: Reals  # [leaves] in [0, 1]: value scaled to the bounds, or preorder index / (size - 1)
    leaf_node: Codes  # [leaves] node of a tree leaf; -1 in numeric columns
    node_parent: Codes  # [nodes] -1 at a root
    node_lo: Codes  # [nodes] first leaf under the node
    node_hi: Codes  # [nodes] last leaf under the node; a root ends with the missing leaf
    node_loss: Reals  # [nodes] 0 for a leaf, else leaves under it / all leaves; 1 at a root
    weight: Reals  # [d] importance, summing to 1


@bare
def climb(node_parent: NDArray[np.integer], node_hi: NDArray[np.integer], node: int, last: int) -> int:
    """The lowest node above (or at) a node that also covers the leaf `last`.

    >>> int(climb(np.array([2, 2, -1]), np.array([0, 1, 2]), 0, 1))
    2
    """
    while node_hi[node] < last:
        node = node_parent[node]
    return node


@bare
def range_loss(scales: Scales, j: int, lo: int, hi: int) -> float:
    """Loss of publishing the codes lo..hi of column j as one cell.

    >>> from kernel_inputs import flat_scales
    >>> float(range_loss(flat_scales([5]), 0, 1, 3)), float(range_loss(flat_scales([5], numeric=False), 0, 1, 3))
    (0.5, 1.0)
    >>> float(range_loss(flat_scales([5]), 0, 4, 5))  # a mix with the missing leaf
    1.0
    """
    first = scales.leaf_start[j]
    if scales.numeric[j]:
        if hi == scales.size[j]:
            return 0.0 if lo == hi else 1.0
        return scales.position[first + hi] - scales.position[first + lo]
    return scales.node_loss[climb(scales.node_parent, scales.node_hi, whole(scales.leaf_node[first + lo]), hi)]


@kernel
def box_losses(scales: Scales, lo: Codes, hi: Codes) -> Reals:
    """Weighted loss of each box; an empty box (lo > hi in its first column) loses 0.

    >>> from kernel_inputs import flat_scales
    >>> box_losses(flat_scales([5, 3]), np.array([[0, 1]], np.int32), np.array([[2, 1]], np.int32)).tolist()
    [0.25]
    """
    losses = np.zeros(lo.shape[0])
    for c in range(lo.shape[0]):
        if lo.shape[1] > 0 and lo[c, 0] <= hi[c, 0]:
            for j in range(lo.shape[1]):
                losses[c] += scales.weight[j] * range_loss(scales, j, whole(lo[c, j]), whole(hi[c, j]))
    return losses


@kernel
def boxes(quasi: Codes, class_of: Codes, n_classes: int) -> tuple[Codes, Codes]:
    """Smallest and largest code per class and column; rows of class -1 are skipped, an empty class has lo > hi.

    >>> lo, hi = boxes(np.array([[1], [4], [2]], np.int32), np.array([0, -1, 0], np.int32), 1)
    >>> lo.tolist(), hi.tolist()
    ([[1]], [[2]])
    """
    d = quasi.shape[1]
    lo = np.full((n_classes, d), np.iinfo(np.int32).max, np.int32)
    hi = np.full((n_classes, d), -1, np.int32)
    widen(lo, hi, quasi, class_of)
    return lo, hi


@bare
def widen(lo: NDArray[Any], hi: NDArray[Any], rows: NDArray[Any], class_of: NDArray[np.integer]) -> None:
    """Widen the box of each class by its rows; rows of class -1 are skipped.

    >>> lo, hi = np.array([[3]]), np.array([[3]])
    >>> widen(lo, hi, np.array([[1], [9]]), np.array([0, -1]))
    >>> lo.tolist(), hi.tolist()
    ([[1]], [[3]])
    """
    for i in range(rows.shape[0]):
        c = class_of[i]
        if c >= 0:
            for j in range(rows.shape[1]):
                lo[c, j] = min(lo[c, j], rows[i, j])
                hi[c, j] = max(hi[c, j], rows[i, j])


def partition_loss(scales: Scales, quasi: Codes, class_of: Codes, e: int) -> float:
    """Mean over all rows of the loss of their class's box: sum |E| * loss(E) / n. Rows of class -1 count 0 here.

    >>> from kernel_inputs import flat_scales
    >>> quasi = np.array([[0], [1], [4]], np.int32)
    >>> round(partition_loss(flat_scales([5]), quasi, np.array([0, 0, 1], np.int32), 2), 4)
    0.1667
    """
    return _total(box_losses(scales, *boxes(quasi, class_of, e)), class_of) / max(len(quasi), 1)


@kernel
def _total(losses: Reals, class_of: Codes) -> float:
    total = 0.0
    for c in class_of:
        if c >= 0:
            total += losses[c]
    return total


def positions(scales: Scales, quasi: Codes) -> Reals:
    """Rows as points of the unit cube, for curves and distances.

    >>> from kernel_inputs import flat_scales
    >>> positions(flat_scales([5]), np.array([[1], [4]], np.int32)).tolist()
    [[0.25], [1.0]]
    """
    return scales.position[scales.leaf_start + quasi]
