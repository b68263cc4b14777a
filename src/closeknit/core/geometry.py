"""The geometry of all methods: the loss of a range of codes, and the position of a row on the unit axes.

`kernels.geometry.boxes` computes with these arrays; `core.cell_ranges` reads the same ranges from written cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.table import Table
from closeknit.kernels.arrays import Int32
from closeknit.kernels.geometry.boxes import Scales, positions


class FlatTrees(NamedTuple):
    """Leaves and nodes of all columns, one column after the other."""

    leaf_start: NDArray[np.int64]  # of each column
    leaf_node: Int32  # of each leaf, the missing one too; -1 where the column has no tree
    parent: Int32  # of each node; -1 for a root
    lo: Int32
    hi: Int32
    loss: NDArray[np.float64]


def flatten_trees(domains: Sequence[Domain | None]) -> FlatTrees:
    """The trees of several columns as flat arrays.

    `domains`: of each column; None for one without leaves.

    >>> from closeknit.core.kinds import flat
    >>> trees = flatten_trees([None, flat().bind(np.array(["f", "m"], dtype=object))[0]])
    >>> trees.leaf_start.tolist(), trees.leaf_node.tolist(), trees.parent.tolist()
    ([0, 0], [1, 2, 3], [-1, 0, 0, 0])
    """
    leaves, count = [], 0
    nodes: list[tuple[NDArray[Any], ...]] = []
    for domain in domains:
        tree = None if domain is None else domain.tree
        if domain is None or tree is None:
            leaves.append(np.full(0 if domain is None else domain.size + 1, -1, dtype=np.int32))
            continue
        leaves.append(tree.leaf_node + np.int32(count))
        parent = np.where(np.arange(len(tree.parent)) == 0, -1, tree.parent + count)
        nodes.append((parent, tree.lo, tree.hi, domain.node_losses))
        count += len(tree.parent)
    starts = np.cumsum([0, *map(len, leaves)])[:-1]
    parent, lo, hi = (_concat([node[i] for node in nodes]) for i in range(3))
    return FlatTrees(starts, _concat(leaves), parent, lo, hi, np.concatenate([*(node[3] for node in nodes), np.empty(0)]))


def scales(table: Table) -> Scales:
    """The arrays of a table's quasi-identifiers."""
    return scales_of(table.quasi_domains, table.schema.weights())


def scales_of(domains: Sequence[Domain], importance: Sequence[float]) -> Scales:
    """The flat arrays that the kernels share, from bound or declared domains.

    Args:
        domains: the domain of each column.
        importance: the weight of each column.

    >>> from closeknit.core.kinds import flat, numeric
    >>> domains = [kind.bind(np.array(["1", "3"], dtype=object))[0] for kind in (numeric(), flat())]
    >>> scales_of(domains, [3, 1]).weight.tolist()
    [0.75, 0.25]
    """
    trees = flatten_trees(domains)
    weights = np.array(importance, dtype=np.float64)
    return Scales(
        numeric=np.array([domain.tree is None for domain in domains], dtype=np.bool_),
        size=np.array([domain.size for domain in domains], dtype=np.int64),
        leaf_start=trees.leaf_start,
        position=np.concatenate([*(np.append(domain.positions(), 1.0) for domain in domains), np.empty(0)]),  # missing: far end
        leaf_node=trees.leaf_node,
        node_parent=trees.parent,
        node_lo=trees.lo,
        node_hi=trees.hi,
        node_loss=trees.loss,
        weight=weights / weights.sum() if len(weights) else weights,
    )


def points(table: Table) -> NDArray[np.float64]:
    """Rows on the unit axes: numbers by value, leaves of a tree by their depth-first order, missing at the far end."""
    return positions(scales(table), table.quasi)


def _concat(parts: list[Int32]) -> Int32:
    return np.concatenate([*parts, np.empty(0, dtype=np.int32)]).astype(np.int32)
