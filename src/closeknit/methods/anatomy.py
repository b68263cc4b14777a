"""Anatomy: groups in which no value of a sensitive attribute is more frequent than 1/l, as many as there can be,
quasi-identifiers exact.

Guarantees. In every group each value of the sensitive attribute occurs in at most 1/l of the rows (frequency l-diversity):
whoever knows a person's group knows each value with probability 1/l at most. That can be kept iff the most frequent value
occurs in at most n/l of n rows. With `L = ceil(l)` there are `floor(n/L)` groups with all values different, or, for an l that
is not whole, the most that the most frequent value leaves room for.

Source: the Anatomy paper, sec. 4 and 5; in the dissertation on methods to achieve t-closeness, ch. 2, as anatomization.

Different from the source:
- a group takes the rows z, z + e, z + 2e, ... of a stack in which equal sensitive values are together, e being the number of
  groups: a value of at most e rows never comes twice. The source takes rows from the L most frequent values, one group after
  the other, and places what is left over at last; both make as many groups;
- `rows="near"` (default): which row of a round of e goes to which group is decided by the quasi-identifiers, then rows are
  exchanged between groups while these become narrower and no value too frequent. A question about quasi-identifiers and the
  secret is answered from the histograms of the groups it touches; narrow ones are seldom touched in part. `"random"` draws
  rows as the source does: then the groups reveal nothing about who has what but their histograms;
- values are the known ones, look-alike values as one; a row without a value joins the group of a near row;
- l need not be whole. For l = 2.5 and a value in 40 % of the rows groups of three do not suffice: some have five, and it twice.

Other guarantees are kept by merging groups afterwards, which never hurts this one. The tables 2.4 and 2.5 of the dissertation
show groups of one record, which guarantee nothing: l has to be above 1.

Cost: O(n log n) for the deal, and per pass of exchanges O(16 * L * n) comparisons; for large L they are cut short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from closeknit.core.errors import BadInput, Unsatisfiable, suggest_name
from closeknit.core.exact import Number
from closeknit.core.geometry import points, scales
from closeknit.core.method import Method, Progress
from closeknit.core.model import Model
from closeknit.core.params import choice, number
from closeknit.core.schema import Schema
from closeknit.core.table import Outcome, Partition, Table
from closeknit.fills.knn import Knn
from closeknit.fills.sweep import Sweep
from closeknit.kernels.arrays import Int32, Int64
from closeknit.kernels.dealing.rounds import literal, rounds
from closeknit.kernels.dealing.sweeps import default_sweeps
from closeknit.kernels.exchange.anatomy import exchange_rows
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys
from closeknit.models import LDiversity
from closeknit.plans.stack import Stack, build_stack


@dataclass(frozen=True)
class Anatomy(Method):
    """Groups for frequency l-diversity of one sensitive attribute: of `column`, or of the schema's first.

    Args:
        l: No value has a share above 1/l in a group.
        column: The sensitive attribute; None takes the schema's first.
        rows: "near" for groups of near quasi-identifiers, "random" as in the source.

    >>> import closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(300), ck.datasets.hospital_schema(), [], Anatomy(l=3))
    >>> release.certificate.ok, release.certificate.classes.count
    (True, 100)
    """

    name = "anatomy"
    scale = "plan"
    usual_form = "bucketized"

    l: Number = 2
    column: str | None = None
    rows: str = "near"

    def __post_init__(self) -> None:
        number("l", self.l, above=1)
        choice("rows", self.rows, ("near", "random"))
        if not isinstance(self.column, str | None):
            raise BadInput(f"column={self.column!r} is no name", right="column must be the name of a sensitive column")

    def guarantees(self, schema: Schema) -> tuple[Model, ...]:
        """What it guarantees itself, in addition to what is requested."""
        return (LDiversity(self._secret(schema), self.l, "frequency"),)

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Groups of the rows with a known value; rows without one, which are no one's alternative, join them afterwards."""
        codes, domain = table.secret(self._secret(table.schema))
        known = codes < domain.size
        if known.all():
            return self._build_groups(table, seed, progress)
        if not known.any():
            return Outcome(Partition.whole(len(table)))
        groups = self._build_groups(table.take(np.flatnonzero(known)), seed, progress).partition
        near = self.rows == "near"
        order = np.argsort(
            hilbert_keys(points(table)) if near else np.random.default_rng(seed).permutation(len(table)), kind="stable"
        )
        before = np.maximum(np.cumsum(known[order]) - 1, 0)  # of the known rows in this order the last one up to each row
        class_of = np.empty(len(table), dtype=np.int32)
        class_of[known] = groups.class_of
        class_of[order] = class_of[order[known[order]]][before]
        return Outcome(Partition(class_of, groups.count))

    def _build_groups(self, table: Table, seed: int, progress: Progress) -> Outcome:
        """Plan lanes, deal the stack to them, join lanes where a group needs several, exchange rows."""
        column, l = self._secret(table.schema), number("l", self.l)
        table = table.fold_values(column)
        values = table.secret(column)[0]
        most = int(np.bincount(values, minlength=1).max())
        if most * l > len(table):
            if table.persons is not None:  # not rows are to be counted, but persons: all of them are judged at the end
                return Outcome(Partition.whole(len(table)))
            raise _too_frequent(self.guarantees(table.schema)[0], most, len(table))
        progress("grouping", 0.2)
        lanes, joins = lanes_of(len(table), most, l)
        dealt = self._deal_rows(table, build_stack(table, [column], "value"), lanes, seed)
        group_of = dealt if joins is None else self._join_lanes(table, dealt, joins, seed)
        if self.rows == "near":
            progress("exchanging", 0.4)
            sizes = np.bincount(group_of)
            limits = np.array([int(size / l) for size in range(sizes.max() + 1)], dtype=np.int64)[sizes]
            passes = default_sweeps(len(table)) // 2
            group_of = exchange_rows(group_of, values, limits, table.quasi, scales(table), passes, seed)
        return Outcome(Partition(group_of, int(group_of.max()) + 1))

    def _secret(self, schema: Schema) -> str:
        known = tuple(schema.sensitive)
        if not known or (self.column is not None and self.column not in known):
            what = "anatomy needs a sensitive column to keep apart" if self.column is None else "is not sensitive"
            raise BadInput(what, column=self.column, right=suggest_name(self.column, known))
        return self.column or known[0]

    def _deal_rows(self, table: Table, stack: Stack, lanes: int, seed: int) -> Int32:
        """The lane of each row: rounds of `lanes` rows of the stack, one for each."""
        if self.rows == "near":
            return rounds(stack.rows, stack.values, lanes, table.quasi, scales(table))
        shuffled = np.random.default_rng(seed).permutation(len(table))
        place = np.empty(len(table), dtype=np.int64)
        place[stack.rows] = stack.values
        lane_of = np.empty(len(table), dtype=np.int32)
        lane_of[shuffled[np.argsort(place[shuffled], kind="stable")]] = literal(len(table), lanes)
        return lane_of

    def _join_lanes(self, table: Table, lane_of: Int32, joins: Int64, seed: int) -> Int32:
        """The group of each row: as many long and short lanes as `joins` says, near ones or the next."""
        _, first, sizes = np.unique(lane_of, return_index=True, return_counts=True)
        short = (sizes < sizes.max()).astype(np.int32)
        quasi, where = table.quasi[first], points(table)[first]
        if self.rows == "near":
            return Knn().fill(quasi, scales(table), where, short, joins, seed)[lane_of]
        return Sweep().fill(quasi, scales(table), where[:, :0], short, joins, seed)[lane_of]


def _too_frequent(guarantee: Model, most: int, n: int) -> Unsatisfiable:
    measured = f"the most frequent value occurs in {most:,} of {n:,} rows, so no groups reach more than {n / most:.6g}"
    return Unsatisfiable(guarantee.describe(None), measured, "ask for a smaller l, or make values coarser")


def lanes_of(n: int, most: int, l: Fraction) -> tuple[int, Int64 | None]:
    """Lanes to deal a stack to, and which of them make a group: long and short ones per group; None: each lane is one.

    A lane holds no value twice if there are at least as many lanes as rows of the most frequent value. `floor(n / L)` lanes
    have at least L rows and are groups; where that are too few lanes, there are as many as the most frequent value has rows,
    long ones of L and short ones of L - 1.

    >>> lanes_of(10, 3, Fraction(3))
    (3, None)
    >>> lanes_of(10, 4, Fraction(5, 2))
    (4, array([[1, 1],
           [1, 1]]))
    """
    L = ceil(l)
    if most <= n // L:
        return n // L, None
    long = n - most * (L - 1)
    joins = [(b, a - b) for a, b in _joins(most, long, l - (L - 1))]
    return most, np.array(joins, dtype=np.int64)


def _joins(lanes: int, long: int, share: Fraction) -> list[tuple[int, int]]:
    """As many groups as possible: the lanes `a` of each, of which `b >= a * share` are long; sums are `lanes` and `long`.

    Points (b, a) below the line a = b / share that are nearest to it from the left on form a convex chain, neighbours in it a
    basis of all whole points between them. So (long, lanes) is the sum of two neighbours, each taken so and so often, and no
    sum of other points below the line has more terms: all of them lie on or beyond the edge through these two.

    >>> _joins(15, 10, Fraction(5, 8))
    [(3, 2), (3, 2), (3, 2), (3, 2), (3, 2)]
    """
    b, a = 1, int(1 / share)
    if a * long >= lanes:
        few, more = divmod(lanes, long)
        return [(few + 1, 1)] * more + [(few, 1)] * (long - more)
    over_b, over_a = 0, 1  # above the line
    while True:
        while (a + over_a) * share > b + over_b:
            over_b, over_a = over_b + b, over_a + a
        next_b, next_a = b + over_b, a + over_a
        if next_a * long >= lanes * next_b:
            return [(a, b)] * (long * next_a - lanes * next_b) + [(next_a, next_b)] * (lanes * b - long * a)
        b, a = next_b, next_a
