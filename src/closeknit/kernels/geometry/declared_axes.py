"""Boxes of rows that arrive one by one: the loss of a range of one column whose domain is declared beforehand.

A row is `float64[d]`: a number as itself, a leaf of a tree as its code, a value of a column without a tree as a unique number.
Two more positions beyond all values represent a missing cell and one outside the domain. A box
is `lo[d], hi[d]`, so adding a row is a minimum and a maximum. Loss is variant A of the General Loss Metric.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Reals as Reals
from closeknit.kernels.compiling import bare, kernel
from closeknit.kernels.geometry.boxes import climb, widen

Ints = NDArray[np.int64]
NUMBER, TREE, EQUAL = 0, 1, 2


class Axes(NamedTuple):
    """Flat arrays that describe all quasi-identifiers; dtypes are fixed so that each kernel is compiled once."""

    kind: Ints  # [d] NUMBER, TREE or EQUAL: values without an order or a tree
    span: Reals  # [d] declared width of a number
    missing: Reals  # [d] position of the missing cell: above all values
    unknown: Reals  # [d] position of a value outside the domain: above that
    leaf_start: Ints  # [d] first leaf of column j
    leaf_node: Ints  # [leaves] node of each leaf
    node_parent: Ints  # [nodes]
    node_hi: Ints  # [nodes] last leaf under the node
    node_loss: Reals  # [nodes]
    weight: Reals  # [d] importance, summing to 1


@bare
def range_cost(axes: Axes, j: int, lo: float, hi: float) -> float:
    """Loss of publishing everything between two positions of column j as one cell.

    >>> from kernel_inputs import number_axes
    >>> axes = number_axes([10.0])
    >>> float(range_cost(axes, 0, 2.0, 7.0))
    0.5
    >>> float(range_cost(axes, 0, 3.0, 1e300)), float(range_cost(axes, 0, 1e300, 1e300))  # mixed with missing; missing alone
    (1.0, 0.0)
    """
    if hi == axes.unknown[j]:
        return 1.0
    if lo == hi:
        return 0.0
    if hi == axes.missing[j] or axes.kind[j] == EQUAL:
        return 1.0
    if axes.kind[j] == NUMBER:
        return (hi - lo) / axes.span[j]
    leaf = axes.leaf_node[axes.leaf_start[j] + np.int64(lo)]
    return axes.node_loss[climb(axes.node_parent, axes.node_hi, leaf, np.int64(hi))]


@bare
def box_cost(axes: Axes, lo: Reals, hi: Reals) -> float:
    """Loss of one box: the weighted mean over its columns.

    >>> from kernel_inputs import number_axes
    >>> float(box_cost(number_axes([10.0, 4.0]), np.array([0.0, 1.0]), np.array([5.0, 1.0])))
    0.25
    """
    total = 0.0
    for j in range(len(lo)):
        total += axes.weight[j] * range_cost(axes, j, lo[j], hi[j])
    return total


@kernel
def box_costs(axes: Axes, lo: Reals, hi: Reals) -> Reals:
    """Loss of each of many boxes.

    >>> from kernel_inputs import number_axes
    >>> box_costs(number_axes([10.0]), np.array([[0.0], [2.0]]), np.array([[5.0], [2.0]])).tolist()
    [0.5, 0.0]
    """
    costs = np.empty(len(lo))
    for i in range(len(lo)):
        costs[i] = box_cost(axes, lo[i], hi[i])
    return costs


@kernel
def range_costs(axes: Axes, lo: Reals, hi: Reals) -> Reals:
    """Loss of every column of each of many boxes.

    >>> from kernel_inputs import number_axes
    >>> range_costs(number_axes([10.0, 4.0]), np.array([[0.0, 1.0]]), np.array([[5.0, 2.0]])).tolist()
    [[0.5, 0.25]]
    """
    costs = np.empty(lo.shape)
    for i in range(lo.shape[0]):
        for j in range(lo.shape[1]):
            costs[i, j] = range_cost(axes, j, lo[i, j], hi[i, j])
    return costs


@bare
def joint_cost(axes: Axes, lo: Reals, hi: Reals, more_lo: Reals, more_hi: Reals) -> float:
    """Loss of the box over two boxes.

    >>> from kernel_inputs import number_axes
    >>> one, other = np.array([1.0]), np.array([6.0])
    >>> float(joint_cost(number_axes([10.0]), one, one, other, other))
    0.5
    """
    total = 0.0
    for j in range(len(lo)):
        total += axes.weight[j] * range_cost(axes, j, min(lo[j], more_lo[j]), max(hi[j], more_hi[j]))
    return total


@kernel
def boxes_of(rows: Reals, class_of: Ints, count: int) -> tuple[Reals, Reals]:
    """The box of each class; rows of class -1 are in none.

    >>> lo, hi = boxes_of(np.array([[3.0], [1.0], [7.0]]), np.array([0, 0, 1]), 2)
    >>> lo.tolist(), hi.tolist()
    ([[1.0], [7.0]], [[3.0], [7.0]])
    """
    d = rows.shape[1]
    lo, hi = np.full((count, d), np.inf), np.full((count, d), -np.inf)
    widen(lo, hi, rows, class_of)
    return lo, hi
