"""Fragmentation: the space of several sensitive attributes is cut into boxes, and every class takes its share of each box.

Guarantees. With limits t_1 .. t_s for s sensitive attributes, boxes are cut until any class that takes fair shares of all of
them is within every t_i, whichever rows it takes (`plans/fragments`). Then the boxes are dealt to as many classes of at least
k rows as keep every t_i although shares are rounded (`plans/fragment_sizes`). A fill picks the rows by their
quasi-identifiers.

Source: the dissertation on methods to achieve t-closeness, ch. 4.

Different from the source:
- `bound="best"` (default) takes for each sensitive attribute the smaller one of two bounds, per cut (never raised by a split)
  and grouped (never above the printed one); `"printed"` sums up Delta over fragments;
- `sizing="deal"` (default) deals floor or ceil of each fragment, `"halve"` halves the fragments as SABRE does, `"gcd"` is the
  printed greatest common divisor, with the k that it lacks: for nearly every table it ends in one class;
- sensitive attributes need not be numbers: a tree is cut in the order of its leaves, with a bound of its own; "equal" is a
  flat tree;
- `slack=True` (default) also tries looser thresholds, up to eight times t (bounds of trees are far from tight), and finer
  fragments. Every outcome is measured, repaired by merging where a class does not meet a guarantee, and what has the least
  loss is taken;
- classes are polished and, in the end, cut further where the actual rows of both halves meet every guarantee.

One guarantee of closeness each is planned for, for `columns` or all sensitive attributes that have one; all other guarantees
are measured and repaired. Where the search for fragments reaches its limits (see `plans/fragments`) before its bounds are
met, fragments are sized for their shares alone. Cost: the plan depends on the cells that occur, a fill is O(n log n).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from closeknit.core.errors import BadInput
from closeknit.core.method import Progress, Vetoes
from closeknit.core.model import Model, least_rows
from closeknit.core.params import choice
from closeknit.core.table import Outcome, Partition, Table
from closeknit.methods.plan_search import FillingMethod, choose_target, largest
from closeknit.plans.fragment_sizes import SIZINGS, fragment_plan
from closeknit.plans.fragments import BOUNDS, Fragments, Space, find_fragmentation, refine_fragments
from closeknit.plans.metric_tree import distances_of
from closeknit.plans.plan import Plan
from closeknit.search.candidate_search import Candidates
from closeknit.search.vetoed_cuts import find_vetoed_cuts

NOMINAL = tuple(map(Fraction, (1, 2, 3, 5, 8)))  # times t: thresholds that sizes are tried for
FINENESS = (*NOMINAL[::-1], Fraction(1, 2), Fraction(1, 4))  # times t: thresholds of the fragments


@dataclass(frozen=True)
class Fragmentation(FillingMethod):
    """Planned for t-closeness of one sensitive attribute or several, each with its own t.

    Args:
        bound: "best", or "printed" for the bound of the source.
        sizing: How fragments are dealt to classes: "deal", "halve" or "gcd".
        fill: How rows are picked: "hilbert", "knn" or "sweep".
        polish: Whether rows of one bucket are exchanged between classes afterwards while the loss falls.
        slack: Whether looser thresholds and finer buckets are tried as well.
        columns: The sensitive attributes to plan for; None takes all with a limit on their distance.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> guarantees = [ck.KAnonymity(4), ck.TCloseness("disease", 0.35), ck.TCloseness("stay", 0.2)]
    >>> ck.anonymize(table, schema, guarantees, Fragmentation()).certificate.ok
    True
    """

    name = "fragmentation"
    needs_bound = "distance"

    bound: str = "best"
    sizing: str = "deal"
    fill: str = "hilbert"
    polish: bool = True
    slack: bool = True
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        choice("bound", self.bound, tuple(BOUNDS))
        choice("sizing", self.sizing, SIZINGS)
        super().__post_init__()
        choice("slack", self.slack, (True, False))
        if self.columns is not None:
            object.__setattr__(self, "columns", _names(self.columns))

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Plan, fill, judge."""
        limits = distances_of(table, self._choose_targets(models))
        space = Space.of([(table.secret(name)[0], table.count_values(name), limit.ground) for name, limit in limits])
        t = [limit.most for _, limit in limits]
        k = max(least_rows(models), 1)
        plans = self._plans(space, t, k)
        return Outcome(self._fill_plans(Candidates(table, models, progress, "filling"), space.cell_of, plans, seed))

    def find_vetoes(self, table: Table, partition: Partition, models: Sequence[Model]) -> Vetoes:
        """No cut of a class is allowed: what ends best has been cut as far as the guarantees allow."""
        return find_vetoed_cuts(table, partition, models)

    def _choose_targets(self, models: Sequence[Model]) -> list[Model]:
        """The guarantees that are planned for: all that bound a distance, or those of `columns`.

        Several columns as one have too many combinations for boxes: planned for only if nothing else is requested.
        """
        first = [choose_target(self, models, column)[0] for column in self.columns or (None,)]  # refuses what is not requested
        alone = [model for model in models if model.bounds == self.needs_bound and isinstance(model.column, str)]
        return [model for model in alone if self.columns is None or model.column in self.columns] or first

    def _plans(self, space: Space, t: list[Fraction], k: int) -> Iterator[Plan]:
        """The plan for t; with slack also, for each nominal threshold, the one with most classes over finer fragments."""
        yield self._plan(find_fragmentation(space, t, self.bound), t, k)
        if not self.slack:
            return
        limits = [[factor * limit for limit in t] for factor in FINENESS]
        finer = list(zip(FINENESS, refine_fragments(space, limits, self.bound), strict=True))
        for factor in NOMINAL:
            nominal = [factor * limit for limit in t]
            yield largest(self._plan(fragments, nominal, k) for fineness, fragments in finer if fineness <= factor)

    def _plan(self, fragments: Fragments, t: list[Fraction], k: int) -> Plan:
        bounds = [fragments.distance_bound(i, self.bound) for i in range(len(t))]
        limits = [limit if bound <= limit else limit + bound for limit, bound in zip(t, bounds, strict=True)]
        return fragment_plan(fragments, limits, k, self.sizing, self.bound)


def _names(columns: object) -> tuple[str, ...]:
    if isinstance(columns, tuple | list) and columns and all(isinstance(name, str) for name in columns):
        return tuple(columns)
    raise BadInput(f"columns={columns!r} is not a list of names", right="name one sensitive column or several in a list")
