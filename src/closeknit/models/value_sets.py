"""Sets of sensitive values whose share in a class is compared with that in the release: single values, nodes, runs."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Histogram
from closeknit.core.exact import plain_number
from closeknit.core.tree import Tree
from closeknit.kernels.arrays import Int64


class ValueSets(NamedTuple):
    """One entry for each class and set that it has rows of: the class, its rows in the set, all rows in the set."""

    owner: Int64
    counts: Int64
    reference: Int64


def single_values(histogram: Histogram) -> ValueSets:
    """Every value by itself.

    >>> from closeknit.core.kinds import flat
    >>> domain, codes = flat().bind(np.array(["flu", "SARS"], dtype=object))
    >>> single_values(Histogram.of(np.array([0, 1, 1], dtype=np.int32), 2, codes[[0, 0, 1]], domain)).reference.tolist()
    [2, 1, 2]
    """
    return ValueSets(histogram.owner, histogram.counts, histogram.reference[histogram.values])


def nodes_below(histogram: Histogram, level: int) -> ValueSets:
    """The leaves under every inner node that is deeper than `level` (the root, `*` or named, has depth 0).

    >>> from closeknit.core.kinds import prefix
    >>> domain, codes = prefix().bind(np.array(["111", "112", "121"], dtype=object))
    >>> sets = nodes_below(Histogram.of(np.zeros(3, dtype=np.int32), 1, codes, domain), 1)
    >>> sets.counts.tolist(), sets.reference.tolist()
    ([2, 1], [2, 1])
    """
    tree = histogram.domain.tree
    assert tree is not None
    depth = _depths(tree)
    owner = histogram.owner
    before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(histogram.reference)])
    found = []
    node = tree.leaf_node.astype(np.int64)
    for deep in range(int(depth.max()), level, -1):
        node = np.where(depth[node] > deep, tree.parent[node], node)
        inner = (depth[node] == deep) & (tree.height[node] > 0)
        kept = np.flatnonzero(inner[histogram.values])
        here, nodes = owner[kept], node[histogram.values[kept]]
        # leaves of a node are neighbours, so its entries in a class are too
        first = np.flatnonzero(np.r_[True, (here[1:] != here[:-1]) | (nodes[1:] != nodes[:-1])][: len(kept)])
        if len(kept):
            counts = np.add.reduceat(histogram.counts[kept], first)
            weights = before[tree.hi[nodes[first]] + 1] - before[tree.lo[nodes[first]]]
            found.append((here[first], counts, weights))
    if not found:
        nothing = np.zeros(0, dtype=np.int64)
        return ValueSets(nothing, nothing, nothing)
    owners, all_counts, references = zip(*found, strict=True)
    return ValueSets(np.concatenate(owners), np.concatenate(all_counts), np.concatenate(references))


def _depths(tree: Tree) -> Int64:
    named_root = tree.height[1] == tree.height[0]
    return np.maximum(tree.depth - 1, 0) if named_root else tree.depth


def reach_of(numbers: NDArray[np.float64], eps: Fraction, relative: bool) -> Int64:
    """For each leaf the last one that a run from it may end at; the missing leaf, last, reaches itself alone.

    >>> reach_of(np.array([0.1, 0.2, 0.3, 0.6]), Fraction(1, 5), relative=False).tolist()
    [2, 2, 2, 3, 4]
    """
    ends = numbers * float(1 + eps) if relative else numbers + float(eps)
    plain = not relative and eps.denominator == 1 and bool((numbers == np.round(numbers)).all())
    margin = 0.0 if plain else 1e-12 * np.maximum(1.0, np.abs(ends))
    sure = np.searchsorted(numbers, ends - margin, side="right") - 1
    perhaps = np.searchsorted(numbers, ends + margin, side="right") - 1
    reach = np.maximum(sure, np.arange(len(numbers)))
    for i in np.flatnonzero(perhaps > reach):
        start = Fraction(plain_number(numbers[i]))
        end = start * (1 + eps) if relative else start + eps
        while reach[i] < perhaps[i] and Fraction(plain_number(numbers[reach[i] + 1])) <= end:
            reach[i] += 1
    return np.append(reach, len(numbers)).astype(np.int64)
