"""The hierarchy of a column on a page: a tree with counts, and a preview of its values at each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kind_forms import kind_from
from closeknit.core.kinds import Kind, texts_of
from closeknit.core.levels import level_nodes, tree_of
from closeknit.core.schema import Schema
from closeknit.core.tree import STAR, Tree
from closeknit.kernels.arrays import Int64
from closeknit.web.desk.table_preview import short

BREADTH = 25  # children shown per node
DEPTH = 2  # levels shown at once
VALUES = 8  # of a preview
LONGEST = 80
TIGHT = "Numbers are written as the range of those in one class, such as [30, 41]; a step or intervals make it coarser."


@dataclass(frozen=True)
class Node:
    """A node with its rows and values; of many children some are shown, and `more` counts the others."""

    label: str
    path: tuple[str, ...]  # labels from below the root, which identify it in an edit
    rows: int
    leaves: int  # values under it
    leaf: bool
    children: tuple[Node, ...] = ()
    more: int = 0  # children that are not shown
    more_rows: int = 0


@dataclass(frozen=True)
class BoundColumn:
    """A column encoded by its kind: the leaf code of each row (the missing leaf is last) and the tree over the leaves."""

    kind: Kind
    domain: Domain
    tree: Tree
    counts: Int64  # rows of each leaf
    column: Column
    codes: NDArray[np.int32]

    def value(self, leaf: int) -> str:
        """Return a raw value of a leaf: the first one in the table."""
        first = self.column.take(np.array([int(np.argmax(self.codes == leaf))]))
        return "".join(texts_of(first.values[first.codes]))

    @cached_property
    def rows(self) -> Int64:
        """Rows of each node."""
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.counts)])
        found: Int64 = before[self.tree.hi + 1] - before[self.tree.lo]
        return found


def bind_column(column: Column, name: str, form: object, missing: Sequence[str] = ()) -> BoundColumn:
    """Encode a column by the kind in a draft; a value that does not fit is reported.

    >>> from closeknit.core.columns import Columns
    >>> bind_column(Columns.of({"sex": ["f", "m", "f", None]})["sex"], "sex", "flat").counts.tolist()
    [2, 1, 1]
    """
    kind = kind_from(form)
    codes, domain, _ = Schema(missing=list(missing)).encode_column(column, name, kind)
    return BoundColumn(kind, domain, tree_of(domain), np.bincount(codes, minlength=domain.size + 1), column, codes)


def tree_view(
    seen: BoundColumn, under: Sequence[str] = (), *, breadth: int = BREADTH, depth: int = DEPTH, start: int = 0
) -> Node:
    """Return the tree from a node on (default: from the root), limited in depth and breadth for a page.

    >>> from closeknit.core.columns import Columns
    >>> jobs = Columns.of({"job": ["cook", "cook", "nurse", None]})["job"]
    >>> root = tree_view(bind_column(jobs, "job", {"tree": {"service": ["cook", "nurse"], "craft": ["welder"]}}))
    >>> root.rows, [(node.label, node.rows, node.leaves) for node in root.children]
    (4, [('service', 3, 2), ('craft', 0, 1)])
    """
    children = _children(seen.tree)
    node = 0
    for label in under:
        node = next((child for child in children[node] if seen.tree.labels[child] == label), -1)
        if node < 0:
            raise BadInput(f"the hierarchy has no node '{' > '.join(under)}'", right="choose one of those shown")
    return _View(seen, children, breadth).node(node, tuple(under), depth, start)


def _children(tree: Tree) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in tree.labels]
    for node in range(1, len(tree.labels) - 1):  # the last one is the missing leaf
        children[tree.parent[node]].append(node)
    return children


@dataclass(frozen=True)
class _View:
    seen: BoundColumn
    children: list[list[int]]
    breadth: int

    def node(self, node: int, path: tuple[str, ...], depth: int, start: int = 0) -> Node:
        tree, rows, below = self.seen.tree, self.seen.rows, self.children[node]
        shown = below[start : start + self.breadth] if depth > 0 else []
        others = below[start + len(shown) :]
        return Node(
            short(tree.labels[node], LONGEST),
            path,
            int(rows[node]),
            int(tree.leaves[node]),
            not below,
            tuple(self.node(child, (*path, tree.labels[child]), depth - 1) for child in shown),
            len(others),
            int(rows[others].sum()),
        )


@dataclass(frozen=True)
class Preview:
    """Some values at each level: one row per value, one cell per level, the last level is `*`."""

    levels: int
    values: tuple[str, ...]  # as they are in the table
    rows: tuple[tuple[str, ...], ...]
    different: tuple[int, ...]  # distinct cells at each level
    smallest: tuple[int, ...]  # rows of the rarest cell at each level
    missing: int  # rows without a value
    from_data: bool
    note: str | None = None


def preview(seen: BoundColumn, values: int = VALUES) -> Preview:
    """Preview some values of the column, spread over those that occur, at every level of its hierarchy.

    >>> from closeknit.core.columns import Columns
    >>> zips = Columns.of({"zip": ["47605", "47602", "47906", "47605"]})["zip"]
    >>> found = preview(bind_column(zips, "zip", "prefix"))
    >>> found.values, found.rows[0], found.different
    (('47602', '47605', '47906'), ('47602', '4760*', '476**', '47***', '4****', '*'), (3, 2, 2, 1, 1, 1))
    """
    levels = level_nodes(seen.tree)
    used = np.flatnonzero(seen.counts[: seen.domain.size])
    few = used[np.unique(np.linspace(0, len(used) - 1, values).round().astype(int))] if len(used) else used
    cells = [tuple(short(seen.tree.labels[node], LONGEST) for node in levels[:, leaf]) for leaf in few.tolist()]
    sizes = [np.bincount(level[used], weights=seen.counts[used]) for level in levels]
    there = [size[size > 0] for size in sizes]
    return Preview(
        len(levels),
        tuple(short(seen.value(leaf), LONGEST) for leaf in few.tolist()),
        tuple(cells),
        tuple(len(found) for found in there),
        tuple(int(found.min()) if len(found) else 0 for found in there),
        int(seen.counts[-1]),
        isinstance(seen.kind, Hierarchy) and seen.kind.from_data,
        TIGHT if seen.domain.tree is None and seen.domain.step is None else None,
    )


def as_hierarchy(seen: BoundColumn) -> Hierarchy:
    """Return the tree of a column as a hierarchy that can be edited; one derived from the table stays marked as such.

    >>> from closeknit.core.columns import Columns
    >>> as_hierarchy(bind_column(Columns.of({"sex": ["f", "m"]})["sex"], "sex", "flat"))
    Hierarchy(nested={'*': {'f': None, 'm': None}}, from_data=True, edges=None, level=0)
    """
    if isinstance(seen.kind, Hierarchy):
        return seen.kind
    if seen.domain.tree is None:
        raise BadInput("numbers have no nodes to edit", right="build intervals or quantiles first")
    nested = seen.domain.tree.to_nested()
    return Hierarchy(nested if set(nested) == {STAR} else {STAR: nested}, from_data=True)
