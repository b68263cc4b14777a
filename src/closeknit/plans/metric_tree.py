"""Ground distances as trees with weights: the form in which exchanges judge a class, whatever its secrets are.

The earth mover's distance over a tree is the sum over its nodes of weight * |share of the class under the node - share of all
rows|. A hierarchy is such a tree with half the difference of heights as weights, equal distance one of a single level, and a
line one of a single branch, where "under" a value stand all values up to it. Nodes that nobody stands under weigh nothing and
are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.model import Closeness
from closeknit.core.params import number
from closeknit.core.table import Table
from closeknit.kernels.exchange.closeness_exchange import Secrets, no_secrets
from closeknit.models.t_closeness import default_distance
from closeknit.plans.ground import Branches, Line, ground_of

LONGEST = 4096  # values of a line; a longer one is seen through as many runs of values

Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MetricTree:
    """Node of every leaf code (-1: nobody has it), and for every node its parent, its weight and the rows under it."""

    node_of: Int64
    parent: Int64
    weight: NDArray[np.float64]
    rows: Int64
    line: bool

    @classmethod
    def of(cls, reference: Int64, domain: Domain, distance: str) -> MetricTree:
        """The tree of one secret, of which `reference` counts every leaf."""
        ground = ground_of(reference, domain, distance)
        return _of_line(ground, len(reference)) if isinstance(ground, Line) else _of_branches(ground, len(reference))

    def distance(self, counts: Int64) -> float:
        """Earth mover's distance of a class with these counts of the leaf codes.

        >>> from closeknit.core.kinds import numeric
        >>> domain, _ = numeric().bind(np.array([30, 40, 50]))
        >>> round(MetricTree.of(np.array([2, 1, 7, 0]), domain, "ordered").distance(np.array([3, 0, 7, 0])), 6)
        0.05
        """
        has = counts > 0
        under = np.bincount(self.node_of[has], weights=counts[has], minlength=len(self.parent))
        for x in range(len(under) - 1, 0, -1):
            under[self.parent[x]] += under[x]
        return float(self.weight @ np.abs(under / under[0] - self.rows / self.rows[0]))


def _of_line(line: Line, leaves: int) -> MetricTree:
    """The largest value at the top, and each value right under the next larger one."""
    m = len(line.codes)
    runs = min(m, LONGEST)
    run = np.arange(m, dtype=np.int64) * runs // m
    last = np.append(np.flatnonzero(np.diff(run)), m - 1)  # of each run
    node_of = np.full(leaves, -1, dtype=np.int64)
    node_of[line.codes] = runs - 1 - run
    weight = np.diff(line.ranks[last], append=line.ranks[-1])[::-1] / line.scale
    rows = np.cumsum(line.counts)[last][::-1]
    return MetricTree(node_of, np.maximum(np.arange(runs) - 1, 0), weight, rows, True)


def _of_branches(branches: Branches, leaves: int) -> MetricTree:
    tree = branches.tree
    kept = branches.rows > 0
    number_of = np.cumsum(kept) - 1
    height = tree.height.astype(np.float64)
    weight = (height[tree.parent] - height) / (2 * max(height[0], 1.0))
    node_of = np.full(leaves, -1, dtype=np.int64)
    node_of[branches.codes] = number_of[tree.leaf_node[branches.codes]]
    return MetricTree(node_of, number_of[tree.parent[kept]], weight[kept], branches.rows[kept], False)


def ground_distance(table: Table, model: Closeness) -> str:
    """The ground distance of a guarantee: the one it names, or what the kind of its secret says.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    >>> [ground_distance(table, ck.TCloseness(name, 0.2)) for name in ("disease", "stay")]
    ['hierarchical', 'ordered']
    """
    assert model.column is not None
    return model.distance or default_distance(table.secret(model.column)[1])


def secrets_of(table: Table, models: Sequence[Closeness]) -> Secrets:
    """The trees of these guarantees side by side, and where each row stands in them.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    >>> secrets = secrets_of(table, [ck.TCloseness("disease", 0.2), ck.TCloseness("stay", 0.1)])
    >>> secrets.node.shape, secrets.line.tolist(), secrets.t.tolist()
    ((20, 2), [False, True], [0.2, 0.1])
    """
    if not models or len(table) == 0:
        return no_secrets(len(table))
    whole, start, trees, nodes = table.one_class(), [0], [], []
    for model in models:
        assert model.column is not None
        codes, domain = table.secret(model.column)
        reference = whole.histograms[model.column].reference
        tree = MetricTree.of(reference, domain, ground_distance(table, model))
        nodes.append((tree.node_of[codes] + start[-1]).astype(np.int32))
        trees.append(tree)
        start.append(start[-1] + len(tree.parent))
    return Secrets(
        np.stack(nodes, axis=1),
        np.array(start, dtype=np.int64),
        np.concatenate([tree.parent + begin for tree, begin in zip(trees, start[:-1], strict=True)]),
        np.concatenate([tree.weight for tree in trees]),
        np.concatenate([tree.rows / tree.rows[0] for tree in trees]),
        np.array([tree.line for tree in trees]),
        np.array([float(number("t", model.t)) for model in models]),
    )
