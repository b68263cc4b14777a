"""The geometry of all methods: the loss of a range of codes, and the position of a row on the unit axes.

`kernels.geometry.boxes` computes with these arrays; `core.cell_ranges` reads the same ranges from written cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.table import Table
from closeknit.kernels.geometry.boxes import Scales, positions


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
    leaf_start = np.cumsum([0, *(domain.size + 1 for domain in domains)])
    node_start = np.cumsum([0, *(0 if domain.tree is None else len(domain.tree.parent) for domain in domains)])
    position, leaf_node = np.ones(leaf_start[-1]), np.full(leaf_start[-1], -1, dtype=np.int32)  # missing is at the far end
    parent, lo, hi = np.empty((3, node_start[-1]), dtype=np.int32)
    loss = np.empty(node_start[-1])
    for domain, leaf, node in zip(domains, leaf_start, node_start, strict=False):
        position[leaf : leaf + domain.size] = domain.positions()
        if (tree := domain.tree) is not None:
            nodes = slice(node, node + len(tree.parent))
            leaf_node[leaf : leaf + domain.size + 1] = tree.leaf_node + node
            parent[nodes], lo[nodes], hi[nodes], loss[nodes] = tree.parent + node, tree.lo, tree.hi, domain.node_losses
            parent[node] = -1
    weights = np.array(importance, dtype=np.float64)
    return Scales(
        numeric=np.array([domain.tree is None for domain in domains], dtype=np.bool_),
        size=np.array([domain.size for domain in domains], dtype=np.int64),
        leaf_start=leaf_start[:-1],
        position=position,
        leaf_node=leaf_node,
        node_parent=parent,
        node_lo=lo,
        node_hi=hi,
        node_loss=loss,
        weight=weights / weights.sum() if len(weights) else weights,
    )


def points(table: Table) -> NDArray[np.float64]:
    """Rows on the unit axes: numbers by value, leaves of a tree by their depth-first order, missing at the far end."""
    return positions(scales(table), table.quasi)
