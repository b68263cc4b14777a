"""`Hierarchy`: a tree over the values of a column, read from a file, written by hand, or built from values.

A hierarchy that is derived from data (`from_data`) must not disclose more than the release does. Binding it keeps only the
leaves that occur, so absent values have no weight in a distance. For a sensitive attribute a certificate shows the written
leaves, with groups named after them; for a quasi-identifier the written nodes, each as a value or a group, without the number
of values in a group. A declared tree is published whole in both roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core import builders
from closeknit.core.builders import Dicts, Edges, normalize_nested
from closeknit.core.domain import Domain, Values
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.exact import Number, plain_number
from closeknit.core.hierarchy_file import read_hierarchy
from closeknit.core.kinds import Kind, Losses, bind_tree, numbers_of, texts_of, tree_losses
from closeknit.core.levels import level_nodes
from closeknit.core.params import number, whole
from closeknit.core.tree import STAR, Tree
from closeknit.core.written_kinds import WrittenNodes
from closeknit.kernels.arrays import Int32


@dataclass(frozen=True)
class Hierarchy(Kind):
    """A tree over the values of a column.

    Args:
        nested: mappings from the name of a node to what is below it, down to lists of leaves or None.
        from_data: whether the tree is derived from the data.
        edges: ascending numbers if each leaf is an interval: leaf i has `edges[i] <= x < edges[i+1]`, the last one is closed.
            They are stored as one pair per leaf, because a pruned tree has gaps.
        level: every value is replaced by its node at this level before anything else; 0 leaves it as it is.

    >>> disease = Hierarchy({"respiratory": ["flu", "SARS"], "digestive": ["ulcer"]})
    >>> domain, codes = disease.bind(np.array(["SARS", "flu"], dtype=object))
    >>> codes.tolist(), domain.labels(np.array([0, 0]), np.array([1, 2]))
    ([1, 0], ['respiratory', '*'])
    >>> replace(disease, level=1).bind(np.array(["SARS", "flu"], dtype=object))[0].texts
    ('respiratory', 'digestive')
    """

    name: ClassVar[str] = "tree"
    default_distance: ClassVar[str] = "hierarchical"
    nested: Dicts
    from_data: bool = False
    edges: Edges | None = None
    level: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "nested", normalize_nested(self.nested) or {})
        if not isinstance(self.from_data, bool):
            raise BadInput(f"from_data={self.from_data!r} is neither true nor false")
        if self.edges is not None:
            object.__setattr__(self, "edges", _pairs(self.edges, self.tree.size))
        assert self.tree.size  # refuses a wrong tree now, not when it is first used
        if whole("level", self.level, 0) and (self.from_data or self.edges is not None):
            raise BadInput(f"level={self.level} needs a declared tree of values", right="build the tree from coarser values")
        if self.level and self.level >= (top := int(self.tree.height[0])):
            right = (
                "leave the column out instead" if top == 1 else f"write a level of at most {top - 1}, or leave the column out"
            )
            raise BadInput(f"level={self.level} would write '*' for every value", right=right)

    @cached_property
    def tree(self) -> Tree:
        """The tree as arrays."""
        return Tree.of(self.nested)

    @cached_property
    def _coarse(self) -> tuple[Tree, dict[str, str]]:
        """The tree above the level, and the node of each value and of each node at that level."""
        nodes = level_nodes(self.tree)[self.level][:-1]
        names = [self.tree.labels[node] for node in nodes]
        coarse = dict(zip(self.tree.leaf_labels, names, strict=True)) | {name: name for name in names}
        return Tree.of(_keep_above(self.nested, set(names))), coarse

    @cached_property
    def _middles(self) -> NDArray[np.float64] | None:
        return None if self.edges is None else np.array(self.edges, dtype=np.float64).mean(axis=1)

    def cover(self, lo: Sequence[int] | Int32, hi: Sequence[int] | Int32) -> list[str]:
        """Name of the lowest node over each range of leaf codes.

        Args:
            lo: first leaf code of each range.
            hi: last leaf code of each range.

        >>> Hierarchy({"A": ["a", "b"], "C": ["c"]}).cover([0, 1], [1, 2])
        ['A', '*']
        """
        return [self.tree.labels[node] for node in self.tree.cover(lo, hi)]

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """The leaf of each value, by its exact text or by the interval it falls into."""
        texts = self._leaf_texts(values)
        if self.level:
            tree, coarse = self._coarse
            domain, codes = bind_tree(tree, [coarse.get(text, text) for text in texts])
            # a node at the level is a leaf: what lies below it is lost whatever a method does
            loss = np.where(tree.height == 0, 0.0, np.append(tree_losses(self.tree, tree.labels[:-1])[:, 0], 0.0))
            coded = replace(domain, node_loss=loss, coarse=True)
            return replace(coded, default_distance=self.default_distance, declared=True), codes
        domain, codes = bind_tree(self.tree, texts, self._middles)
        if self.from_data:
            present = self.prune(texts)
            domain, codes = bind_tree(present.tree, texts, present._middles)
        return replace(domain, default_distance=self.default_distance, declared=not self.from_data), codes

    def _leaf_texts(self, values: Values) -> list[str]:
        texts = texts_of(values)
        if self.edges is None or (values.dtype.kind == "O" and set(texts) <= set(self.tree.leaf_labels)):
            return texts  # with edges: a written column, whose cells are the names of intervals
        numbers = numbers_of(values)
        lows, highs = np.array(self.edges).T
        codes = np.searchsorted(lows, numbers, side="right") - 1
        inside = (codes >= 0) & ((numbers < highs[codes]) | (numbers == highs[-1]))
        if not inside.all():
            right = f"the intervals go from {plain_number(lows[0])} to {plain_number(highs[-1])}"
            i = int(np.argmin(inside))
            raise BadValue(i, f"{texts[i]} lies in no interval of the hierarchy", right)
        leaves = self.tree.leaf_labels
        return [leaves[code] for code in codes]

    def prune(self, texts: Iterable[str]) -> Hierarchy:
        """The same tree with only these leaves.

        Args:
            texts: names of the leaves to keep.

        >>> Hierarchy({"A": ["a", "b"], "C": ["c"]}, from_data=True).prune(["b"]).nested
        {'*': {'A': {'b': None}}}
        """
        keep = set(texts)
        kept = _keep(self.nested, keep)
        if not kept:
            return Hierarchy({"none": None}, self.from_data)
        # a branch that remains alone is not the root: heights, and so distances, still end in `*`
        nested = kept if len(self.nested) == 1 else {STAR: kept}
        if self.edges is None:
            return Hierarchy(nested, self.from_data)
        pairs = zip(self.edges, self.tree.leaf_labels, strict=True)
        return Hierarchy(nested, self.from_data, tuple(pair for pair, leaf in pairs if leaf in keep))

    @property
    def has_fixed_losses(self) -> bool:
        return not self.from_data

    def losses(self, cells: Sequence[str]) -> Losses:
        """Leaves under the written node over all leaves; if derived from data, by whether the node is a value or a group."""
        losses = tree_losses(self.tree, cells)
        return WrittenNodes.of(self.tree, cells).losses(cells) if self.from_data else losses

    def publish_kind(self, cells: Sequence[str], sensitive: bool = False) -> Kind:
        """As declared; if derived from data, the written nodes, or for a sensitive attribute the tree over its leaves."""
        if not self.from_data:
            return self
        if not sensitive:
            return WrittenNodes.of(self.tree, cells)
        pruned = self.prune(cells)
        taken = {leaf: (leaf, leaf) for leaf in pruned.tree.leaf_labels}
        return replace(pruned, nested=_name_by_leaves(pruned.nested, taken))

    def spec(self) -> dict[str, Any]:
        """Parameters as a recipe writes them."""
        known: dict[str, Any] = {"nested": self.nested}
        if self.from_data:
            known["from_data"] = True
        if self.edges is not None:
            known["edges"] = _flat_edges(self.edges)
        if self.level:
            known["level"] = self.level
        return known

    def notes(self, name: str) -> list[str]:
        """The level by which values are replaced."""
        if not self.level:
            return []
        return [f"column '{name}': values are replaced by their nodes at level {self.level}, before anything else"]

    @classmethod
    def read_csv(cls, path: str | Path, delimiter: str = ";", encoding: str = "utf-8", level: int = 0) -> Hierarchy:
        """Read a file with one leaf per line, `leaf;parent;...;root`; lines may differ in depth.

        Args:
            path: the file.
            delimiter: the character between the levels.
            encoding: encoding of the file.
            level: every value is replaced by its node at this level before anything else.
        """
        nested = read_hierarchy(path, delimiter, encoding)
        try:
            return cls(nested, level=level)
        except BadInput as bad:
            raise bad.replace(file=path) from None

    @classmethod
    def from_nested(cls, mapping: object, from_data: bool = False) -> Hierarchy:
        """From mappings, lists and `None`; numbers as names become text.

        Args:
            mapping: the tree below its root.
            from_data: whether the tree is derived from the data.

        >>> Hierarchy.from_nested({"low": [1, 2], "high": [{"very high": [9]}]}).tree.leaf_labels
        ['1', '2', '9']
        """
        return cls(normalize_nested(mapping) or {}, from_data)

    @classmethod
    def intervals(
        cls,
        edges: Sequence[Number] | None = None,
        *,
        lo: Number | None = None,
        hi: Number | None = None,
        width: Number | None = None,
        fanout: int = 2,
        levels: Sequence[int] | None = None,
    ) -> Hierarchy:
        """Declared intervals of numbers, joined level by level.

        Args:
            edges: ascending edges of the intervals; or give `lo`, `hi` and `width`.
            lo: lower end of the first interval.
            hi: upper end of the last interval.
            width: width of each interval.
            fanout: how many neighbours a level joins.
            levels: how many neighbours each level joins, instead of `fanout`.

        >>> Hierarchy.intervals(lo=0, hi=100, width=25).cover([0, 0, 2], [0, 1, 3])
        ['[0, 25)', '[0, 50)', '[50, 100]']
        """
        nested, pairs = builders.intervals(builders.interval_edges(edges, lo=lo, hi=hi, width=width), fanout, levels)
        return cls({STAR: nested}, edges=pairs)

    @classmethod
    def quantiles(cls, values: Iterable[Number | None], bins: int, fanout: int = 2) -> Hierarchy:
        """Intervals that contain about equally many of these values; derived from data.

        Args:
            values: the values; None is left out.
            bins: number of intervals.
            fanout: how many neighbours a level joins.

        >>> Hierarchy.quantiles([1, 2, 3, 4, 50, 60, 70, 80], bins=2).tree.leaf_labels
        ['[1, 4)', '[4, 80]']
        """
        nested, pairs = builders.intervals(builders.quantile_edges(values, bins), fanout)
        return cls({STAR: nested}, from_data=True, edges=pairs)

    @classmethod
    def prefix(cls, values: Iterable[object], length: int | None = None, from_data: bool = False) -> Hierarchy:
        """A list of codes, masked from the right.

        Args:
            values: the codes.
            length: characters of a full code; that of the longest one if left out.
            from_data: whether the codes are derived from the data.

        >>> Hierarchy.prefix(["47605", "47602", "47906"]).cover([0, 0], [1, 2])
        ['4760*', '47***']
        """
        return cls({STAR: builders.prefix(values, length)}, from_data)

    @classmethod
    def dates(cls, values: Iterable[object], levels: Sequence[str] | None = None, from_data: bool = False) -> Hierarchy:
        """A list of days under months, quarters, years, decades.

        Args:
            values: the days.
            levels: levels from the finest to the coarsest, as for `date`.
            from_data: whether the days are derived from the data.

        >>> Hierarchy.dates(["2024-03-17", "2024-01-02"]).cover([0], [1])
        ['2024-Q1']
        """
        return cls({STAR: builders.dates(values, levels)}, from_data)

    @classmethod
    def balanced(cls, values: Iterable[object], fanout: int, from_data: bool = False) -> Hierarchy:
        """Ordered values in groups of nearly equal size.

        Args:
            values: the values in their order.
            fanout: the largest number of nodes in a group.
            from_data: whether the values are derived from the data.

        >>> Hierarchy.balanced("abcde", fanout=3).cover([0, 3], [1, 4])
        ['a..c', 'd..e']
        """
        return cls({STAR: builders.build_balanced(values, fanout)}, from_data)

    @classmethod
    def rare(cls, values: Mapping[Any, int] | Iterable[object], limit: int, label: str = "(rare)") -> Hierarchy:
        """Values that occur fewer than `limit` times share a node; derived from data.

        Args:
            values: the values, or how often each occurs.
            limit: how often a value must occur to remain a leaf directly under the root.
            label: name of the node.

        >>> Hierarchy.rare(["flu"] * 9 + ["gout", "acne"], limit=5).cover([0, 1], [0, 2])
        ['flu', '(rare)']
        """
        return cls({STAR: builders.rare(values, limit, label)}, from_data=True)


def _name_by_leaves(nested: Mapping[str, Any], taken: dict[str, tuple[str, str]]) -> Dicts:
    """Name groups by their first and last leaf: the original name may contain a value that is not published."""
    named: Dicts = {}
    for label, below in nested.items():
        name = label
        if below and label != STAR:
            leaves = Tree.of(below).leaf_labels
            ends = leaves[0], leaves[-1]
            name = leaves[0] if len(leaves) == 1 else "..".join(ends)
            while taken.setdefault(name, ends) != ends:  # another group has this name
                name += "'"
        named[name] = _name_by_leaves(below, taken) if below else None
    return named


def _keep(nested: Mapping[str, Any], leaves: set[str]) -> Dicts:
    kept: Dicts = {}
    for label, below in nested.items():
        if below:
            if branch := _keep(below, leaves):
                kept[label] = branch
        elif label in leaves:
            kept[label] = None
    return kept


def _keep_above(nested: Mapping[str, Any], leaves: set[str]) -> Dicts:
    """The tree with these nodes as its leaves."""
    return {label: _keep_above(below, leaves) if below and label not in leaves else None for label, below in nested.items()}


def _pairs(edges: Sequence[Any], size: int) -> Edges:
    """One ascending pair per leaf, from pairs or from the edges between neighbours."""
    if not isinstance(edges, list | tuple):
        raise BadInput(f"edges={edges!r} is not a list", right="give the edges in ascending order")
    pairs = list(edges) if edges and isinstance(edges[0], list | tuple) else list(pairwise(edges))
    if len(pairs) != size:
        raise BadInput(f"a hierarchy with {size} leaves has edges for {len(pairs)}", right="give one edge more than leaves")
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise BadInput("the edges of a hierarchy are not pairs", right="give two per leaf, or one more than leaves")
    exact = tuple((float(number("edge", a)), float(number("edge", b))) for a, b in pairs)
    ends = [end for pair in exact for end in pair]
    if ends != sorted(ends) or any(a == b for a, b in exact[:-1]):
        raise BadInput("the edges of a hierarchy do not ascend", right="give the edges in ascending order")
    return exact


def _flat_edges(pairs: Edges) -> list[float] | list[list[float]]:
    """Plain edges where neighbours touch, else pairs."""
    if all(a[1] == b[0] for a, b in pairwise(pairs)):
        return [pairs[0][0], *(high for _, high in pairs)]
    return [list(pair) for pair in pairs]
