"""One geometry for all methods: what a range of codes costs, and where a row lies on the unit axes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.table import Table
from closeknit.kernels.geometry.boxes import Scales, positions


def scales(table: Table) -> Scales:
    """The flat arrays that the kernels share, from the bound domains of a table's quasi columns."""
    domains = table.quasi_domains
    weights = np.array(table.schema.weights(), dtype=np.float64)
    nodes = [_nodes(domain) for domain in domains]
    node_start = np.concatenate([[0], np.cumsum([len(n[0]) for n in nodes])]).astype(np.int64)
    positions = [np.append(domain.positions(), 1.0) for domain in domains]  # the missing leaf stands at the far end
    leaf_start = np.concatenate([[0], np.cumsum([len(p) for p in positions])]).astype(np.int64)
    return Scales(
        numeric=np.array([domain.tree is None for domain in domains], dtype=np.bool_),
        size=np.array([domain.size for domain in domains], dtype=np.int64),
        leaf_start=leaf_start[:-1],
        position=np.concatenate([*positions, np.empty(0)]),
        leaf_node=_concat([_leaf_nodes(domain, start) for domain, start in zip(domains, node_start[:-1], strict=True)]),
        node_parent=_concat(
            [np.where(np.arange(len(n[0])) == 0, -1, n[0] + start) for n, start in zip(nodes, node_start[:-1], strict=True)]
        ),
        node_lo=_concat([n[1] for n in nodes]),
        node_hi=_concat([n[2] for n in nodes]),
        node_loss=np.concatenate([*(n[3] for n in nodes), np.empty(0)]),
        weight=weights / weights.sum() if len(weights) else weights,
    )


def points(table: Table) -> NDArray[np.float64]:
    """Rows on the unit axes: numbers by value, tree leaves by their depth-first order, missing at the far end."""
    return positions(scales(table), table.quasi)


def _nodes(domain: Domain) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    if domain.tree is None:
        none = np.empty(0, dtype=np.int32)
        return none, none, none, np.empty(0)
    tree = domain.tree
    return tree.parent, tree.lo, tree.hi, domain.node_losses


def _leaf_nodes(domain: Domain, start: int) -> NDArray[np.int32]:
    if domain.tree is None:
        return np.full(domain.size + 1, -1, dtype=np.int32)
    return domain.tree.leaf_node + np.int32(start)


def _concat(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate([*parts, np.empty(0, dtype=np.int32)]).astype(np.int32)
