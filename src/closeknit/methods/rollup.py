"""Roll-up: the rows of a table as counted groups of equal cells, and the groups of a more general vector as merges of those.

Rows are touched once, to count the combinations that occur; from then on a vector of levels is looked at through the groups
of a more special one that is known. Where rows have persons, these are counted again each time: they cannot be added up.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram, parse_view
from closeknit.core.combined_secrets import Secret
from closeknit.core.domain import Domain
from closeknit.core.kinds import Kind
from closeknit.core.levels import leaf_losses, level_nodes, top_level, tree_of
from closeknit.core.row_sorting import groups
from closeknit.core.table import Partition, Table
from closeknit.kernels.arrays import Flags, Int32

DENSE = 8  # combinations of nodes for each group up to which a table of marks is quicker than sorting

Counts = NDArray[np.int64]
Vector = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Ladder:
    """A quasi-identifier and those of its levels that separate this table's rows differently: of equal ones the lowest has the
    least loss.

    `nodes[i]` numbers the nodes of step i that occur, an entry for each leaf that occurs; `losses[i]` is what its rows lose.

    >>> from closeknit.core.kinds import prefix
    >>> domain, codes = prefix().bind(np.array(["470", "471", "480"], dtype=object))
    >>> Ladder.of(prefix(), domain, codes).levels, Ladder.of(prefix(), domain, codes[:1]).levels
    ((0, 1, 2), (0,))
    """

    kind: Kind
    domain: Domain
    leaves: Int32  # that occur, ascending
    levels: tuple[int, ...]
    nodes: tuple[Int32, ...]
    losses: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, kind: Kind, domain: Domain, codes: Int32) -> Ladder:
        """The steps that these rows need."""
        leaves = np.flatnonzero(np.bincount(codes, minlength=domain.size + 1)).astype(np.int32)
        levels: list[int] = []
        nodes: list[Int32] = []
        for level, node_of in enumerate(level_nodes(tree_of(domain))[:, leaves]):
            found, number = np.unique(node_of, return_inverse=True)
            if not nodes or len(found) <= nodes[-1].max(initial=0):
                levels.append(level)
                nodes.append(number.astype(np.int32))
        losses = tuple(leaf_losses(kind, domain, level, leaves) for level in levels)
        return cls(kind, domain, leaves, tuple(levels), tuple(nodes), losses)

    @property
    def fixed(self) -> bool:
        """Whether the loss of a cell is the same whichever rows are published: ranges without bounds refer to each other."""
        return self.domain.tree is not None or self.domain.bounds is not None or top_level(self.domain) == 1

    def width(self, step: int) -> int:
        """Nodes of a step that occur."""
        return int(self.nodes[step].max(initial=-1)) + 1

    def lowest(self, codes: Int32) -> Int32:
        """The node of each row at the lowest step."""
        return self.nodes[0][np.searchsorted(self.leaves, codes)]

    def up(self, low: int, high: int) -> Int32:
        """The node at step `high` above each node at step `low`."""
        above = np.empty(self.width(low), dtype=np.int32)
        above[self.nodes[low]] = self.nodes[high]
        return above

    def measure_loss(self, step: int, rows: Counts) -> float:
        """What published rows lose together at a step; `rows` of each node of the lowest step."""
        of_leaf = rows[self.nodes[0]]
        if self.fixed or of_leaf.all():
            return float(of_leaf @ self.losses[step])
        published = np.flatnonzero(of_leaf)
        return float(of_leaf[published] @ leaf_losses(self.kind, self.domain, self.levels[step], self.leaves[published]))


@dataclass(frozen=True, eq=False)
class CountedTable:
    """What all groups of a table share: its columns' steps, the distinct combination of each row, and what models ask for."""

    table: Table
    ladders: tuple[Ladder, ...]
    of_row: Int32
    secrets: frozenset[Secret]

    def classes(self, group_of_row: Int32, count: int) -> Classes:
        """Groups as the models see them, counted from the rows."""
        found = self.table.count_classes(Partition(group_of_row, count))
        histograms = {name: histogram for name, histogram in found.histograms.items() if name in self.secrets}
        by_person = {view: histogram for view, histogram in found.by_person.items() if parse_view(view) in self.secrets}
        return replace(found, histograms=histograms, by_person=by_person)


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows with equal nodes in some columns, at one step of each: the nodes and the number of rows of every group.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"zip": ck.prefix(), "sex": ck.flat()})
    >>> from closeknit.core.columns import Columns
    >>> table = schema.encode(Columns.of({"zip": ["470", "471", "480", "480"], "sex": ["f", "f", "m", "m"]}))
    >>> bottom = Groups.of_table(table, ())
    >>> bottom.sizes.tolist(), bottom.roll_up((0,), (1,)).sizes.tolist()
    ([1, 1, 2], [2, 2])
    """

    of: CountedTable
    columns: tuple[int, ...]
    vector: Vector
    nodes: Int32  # [groups, columns]
    sizes: Counts
    below: Groups | None = None  # what they were rolled up from
    into: Int32 | None = None  # where each group of those went

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of_table(cls, table: Table, secrets: Collection[Secret]) -> Groups:
        """The combinations that occur, every column at its lowest step."""
        kinds = zip(table.schema.quasi.values(), table.quasi_domains, table.quasi.T, strict=True)
        ladders = tuple(Ladder.of(kind, domain, codes) for kind, domain, codes in kinds)
        cells = [ladder.lowest(codes) for ladder, codes in zip(ladders, table.quasi.T, strict=True)]
        of_row, count = groups([(c, ladder.width(0)) for c, ladder in zip(cells, ladders, strict=True)], len(table))
        nodes = np.empty((count, len(ladders)), dtype=np.int32)
        nodes[of_row] = np.stack(cells, axis=1)
        counted = CountedTable(table, ladders, of_row, frozenset(secrets))
        columns = tuple(range(len(ladders)))
        sizes = np.bincount(of_row, table.weights, minlength=count).astype(np.int64)
        return cls(counted, columns, (0,) * len(columns), nodes, sizes)

    def roll_up(self, columns: tuple[int, ...], vector: Vector) -> Groups:
        """The groups of a more general vector, over some or all of these columns."""
        nodes, widths = [], []
        for column, high in zip(columns, vector, strict=True):
            ladder, place = self.of.ladders[column], self.columns.index(column)
            nodes.append(ladder.up(self.vector[place], high)[self.nodes[:, place]])
            widths.append(ladder.width(high))
        into, count = _number_nodes(nodes, widths, len(self))
        shown = np.empty((count, len(columns)), dtype=np.int32)
        shown[into] = np.stack(nodes, axis=1)
        sizes = np.bincount(into, weights=self.sizes, minlength=count).astype(np.int64)
        return Groups(self.of, columns, vector, shown, sizes, self, into)

    @property
    def weight(self) -> int:
        """Numbers that they keep in memory."""
        counted = self.classes.histograms.values() if "classes" in vars(self) else ()
        return self.nodes.size + sum(3 * len(histogram.values) for histogram in counted)

    def group_of(self) -> tuple[Groups, Int32]:
        """The combinations that occur in all columns, and the group of each of them."""
        below, into = self, np.arange(len(self), dtype=np.int32)
        while below.below is not None and below.into is not None:
            into, below = into[below.into], below.below
        return below, into

    def group_of_row(self) -> Int32:
        """The group of every row of the table."""
        return self.group_of()[1][self.of.of_row]

    @cached_property
    def classes(self) -> Classes:
        """As the models see them: merged from groups below that have been counted, or from the lowest of these columns."""
        if self.below is None or self.into is None or self.of.table.persons is not None:
            return self.of.classes(self.group_of_row(), len(self))
        below, into = self.below, self.into
        while below.below is not None and below.into is not None and any(below.vector) and "classes" not in vars(below):
            into, below = into[below.into], below.below
        return below.classes.merge(into)


def _number_nodes(nodes: list[Int32], widths: list[int], count: int) -> tuple[Int32, int]:
    """Number of each combination of nodes in lexicographic order, and how many there are."""
    limit = prod(widths)
    if limit > DENSE * count:
        return groups(list(zip(nodes, widths, strict=True)), count)
    keys = np.zeros(count, dtype=np.int64)
    for column, width in zip(nodes, widths, strict=True):
        keys *= width
        keys += column
    occurs = np.zeros(limit, dtype=bool)
    occurs[keys] = True
    number = np.cumsum(occurs, dtype=np.int32)
    return number[keys] - np.int32(1), int(number[-1])


def select_classes(classes: Classes, kept: Flags, table: Table) -> Classes:
    """These classes alone, judged by a reference and over domains that do not know the suppressed ones.

    A reference that was given from outside stays what it is.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> table = ck.Schema(sensitive={"ill": ck.flat()}).encode(Columns.of({"ill": ["flu", "flu", "gout"]}))
    >>> classes = table.count_classes(Partition.of([0, 0, 1]))
    >>> select_classes(classes, np.array([True, False]), table).histograms["ill"].reference.tolist()
    [2, 0]
    """
    histograms = {name: _select_entries(histogram, kept) for name, histogram in classes.histograms.items()}
    given = {name: counts for name, counts in table.references.items() if name in histograms}
    histograms |= {name: replace(histograms[name], reference=counts) for name, counts in given.items()}
    by_person = {
        view: replace(_select_entries(histogram, kept), reference=histograms[parse_view(view)].reference)
        for view, histogram in classes.by_person.items()
    }
    return Classes(
        classes.sizes[kept],
        classes.persons[kept],
        {name: _rebind_domain(name, histogram, table) for name, histogram in histograms.items()},
        {view: _rebind_domain(parse_view(view), histogram, table) for view, histogram in by_person.items()},
        {view: found[kept] for view, found in classes.matched.items()},
        {view: found[kept] for view, found in classes.heads.items()},
    )


def _select_entries(histogram: Histogram, kept: Flags) -> Histogram:
    entries = kept[histogram.owner]
    values, counts = histogram.values[entries], histogram.counts[entries]
    starts = np.concatenate([[0], np.cumsum(np.diff(histogram.starts)[kept])])
    reference = np.bincount(values, weights=counts, minlength=len(histogram.reference)).astype(np.int64)
    return replace(histogram, starts=starts, values=values, counts=counts, reference=reference)


def _rebind_domain(name: Secret, histogram: Histogram, table: Table) -> Histogram:
    """A tree that was read off the values loses the branches of suppressed ones, and with them perhaps a level."""
    domain, present = histogram.domain, np.flatnonzero(histogram.reference[:-1])
    whole = len(present) == domain.size or name in table.references
    if domain.declared or domain.tree is None or not isinstance(name, str) or whole:
        return histogram
    shown = table.shown[list(table.schema.sensitive).index(name)]
    fewer, codes = table.schema.sensitive[name].bind(shown[present])
    code_of = np.full(domain.size + 1, fewer.size, dtype=np.int32)
    code_of[present] = codes
    reference = np.bincount(code_of, weights=histogram.reference, minlength=fewer.size + 1).astype(np.int64)
    return replace(histogram, values=code_of[histogram.values], reference=reference, domain=fewer)
