"""Knit: careful cuts, then exchange of rows between classes; guarantees are checked on the rows that a class has.

Guarantees. None of its own. It starts from classes that meet all guarantees and makes only changes after which they still do.
The loops check guarantees in whole numbers, never laxer than the models (`search/guards.py`). Models judge guarantees without
such a form, and in the end every class.

Source: our own; docs/knit.md has the derivation, the experiments and what did not help.

Steps:
1. careful cuts: top-down like Mondrian, but where a guarantee vetoes a cut, one side is trimmed, bucket by bucket of the
  sensitive attribute, until it is allowed. They first use a part of the room that the guarantees leave, then all of it;
2. exchange: rows move to near classes or swap with a row there while the loss falls; new classes are made, others dissolved;
3. cycles of rounds: neighbouring classes are pooled and cut again, then rows are exchanged, at first also where the loss rises
   a little. A cycle that ends better than it began is kept. Each is four times as long as the previous one; the last one is as
   long as the budget leaves. More budget never loses more than a budget of whole cycles.

Next to careful cuts, peeled classes (`search/peeling.py`) and Mondrian's are starts, so no release loses more than Mondrian's.
Tables of few different rows also start from a linear program (`search/share_start.py`). Small tables have more starts, and up
to 64 rows those of SABRE, BUREL and Stack & Deal. Large ones are first cut into shards, which are processed separately, against
the shares of the whole table. All starts are tried in a few shards; the others use the start that won most often there. The
budget is counted in proposals, pairs of a row and a class. Cost: a sweep offers each row up to 32 classes. A proposal takes
time proportional to the number of quasi-identifiers and, where a change would pay, to the number of sensitive values; a swap
reads the rows of the other class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.combined_secrets import parts
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.limits import MOST_PROPOSALS, MOST_SECONDS
from closeknit.core.method import Method, Progress, Vetoes, ignore_progress, share_progress
from closeknit.core.model import Model, least_rows
from closeknit.core.params import number
from closeknit.core.params import whole as whole_number
from closeknit.core.table import Outcome, Partition, Table
from closeknit.kernels.exchange.knit_exchange import WIDTH
from closeknit.kernels.threads import in_threads
from closeknit.methods.burel import Burel
from closeknit.methods.mondrian import Mondrian
from closeknit.methods.sabre import Sabre
from closeknit.methods.stack_and_deal import StackAndDeal
from closeknit.search.budget_cuts import improve_within, spend_budgets
from closeknit.search.careful_cuts import cut, recut
from closeknit.search.guards import guard_of, tighten_guard
from closeknit.search.knit_state import KnitState
from closeknit.search.left_over import find_held
from closeknit.search.peeling import peel
from closeknit.search.refine import refine_partition, root_holds
from closeknit.search.repair import repair_partition
from closeknit.search.round_clock import ENDLESS, RoundClock
from closeknit.search.row_exchange import exchange_rows
from closeknit.search.share_start import start_from_shares

SLACKS = (0.85, 0.5, 1.0, 0.7)  # share of the room that the first cuts may use
SMALL = 4_096  # rows up to which there are several starts; larger tables have the first only
FEW = 64  # rows up to which other methods' outcomes are starts too: the search may end above them there
BEGUN, ENDED = 0.2, 0.8  # progress at the start and at the end of the method
SHARD, OF_SHARD = 200_000, 4  # rows from which on a table is cut into shards, and the part of them that one has at most
TRIED = 3  # shards in which all starts are tried
CUTS, MONDRIAN, PEELED, SHARES = "cuts", "mondrian", "peeled", "shares"  # starts
HOPELESS = 1.3  # a start that loses so many times what the best so far loses is not worth an exchange
SWEEPS = 2  # of each round
LONGER = 4  # the next cycle has so many times the rounds
POOLED = (2, 3, 4)  # classes that are cut again together, in turns
HEAT = 1.2  # mean increase of the loss that a change may cause when a cycle begins, as a share of the average loss of a row
HOTTER = 3.0  # the same where size and diversity alone decide
MOST_HEAT = 0.35  # where a row loses much on average, more would undo the start
USUAL, VISITS = 42, 800_000  # sweeps by default, and rows visited in all of them
QUICKER = 3  # times as many rows where size and diversity alone decide
TINY, MANY = 150, 170  # tables of up to so many rows get so many sweeps by default, the most anywhere
MOST_CYCLES = 8  # in which a budget is spent again

MayContinue = Callable[[Progress, int], bool]
_Start = tuple[str, Callable[[], Partition | None]]  # its name, and how it is built


@dataclass(frozen=True)
class Knit(Method):
    """For any guarantees.

    Args:
        proposals: The budget of the search; None: 42 sweeps with up to 32 proposals for each row (170 for up to 150 rows), up
            to 170 where size and diversity alone decide, fewer on large tables.
        seconds: A clock decides when to stop. The work done goes into the recipe as `proposals`, to repeat the release.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.25)]
    >>> release, other = (ck.anonymize(table, schema, models, method) for method in (Knit(), ck.Mondrian()))
    >>> release.certificate.ok, release.loss < other.loss
    (True, True)
    """

    name = "knit"
    blind = True
    spends = True

    proposals: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.proposals is not None:
            whole_number("proposals", self.proposals, least=0, most=MOST_PROPOSALS)
        if self.seconds is not None:
            number("seconds", self.seconds, least=0, most=MOST_SECONDS)
            if self.proposals is not None:
                raise BadInput("knit has both seconds and proposals", right="give one of them")

    @property
    def clocked(self) -> bool:
        """Whether the result depends on a clock."""
        return self.seconds is not None

    def sweeps(self, n: int, quick: bool = False) -> int:
        """Sweeps that the budget allows; by default fewer on large tables, but at least one round.

        Args:
            n: the number of rows of the table.
            quick: whether a guard of size and diversity alone decides: a sweep then takes little time.

        >>> [Knit().sweeps(n) for n in (30, 3_000, 30_000, 100_000, 1_000_000)], Knit(proposals=10_000).sweeps(100)
        ([170, 42, 26, 8, 2], 3)
        >>> [Knit().sweeps(n, quick=True) for n in (3_000, 30_000, 100_000, 1_000_000)]
        [170, 80, 24, 2]
        """
        if self.seconds is not None:
            return SWEEPS * ENDLESS
        if self.proposals is not None:
            return self.proposals // max(1, 2 * WIDTH * n)
        visits = QUICKER * VISITS if quick else VISITS
        return min(max(visits // n, SWEEPS), MANY if quick or n <= TINY else USUAL)

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Assign classes; where a guarantee limits all classes together, cut while its budget lasts."""
        budgets = [model for model in models if model.budget]
        if not budgets or not root_holds(table, models):
            return self._run_classes(table, models, seed, progress)
        others = [model for model in models if not model.budget]
        small, whole = len(table) <= SHARD, Partition(np.zeros(len(table), dtype=np.int32), 1)
        tight = others + [model.stricter for model in budgets if model.stricter is not None]
        alone = len(tight) == len(models) and not any(model.budget for model in tight)
        # classes that each stay within the budgets, by guarantees about one class if there are such
        begun = self._run_classes(table, tight if alone else models, seed, progress) if alone or not small else Outcome(whole)
        guarded = guard_of(table, others)
        knit_state = KnitState.of(table, guarded.guard, guarded.unguarded)
        progress("cutting", BEGUN)
        starts = [begun.partition]
        if small:  # next to these, everything as one class, and classes of cuts alone
            starts += [whole, refine_partition(table, whole, models, knit_state.scales)]
        spent = [spend_budgets(table, start, others, budgets, knit_state.scales) for start in starts]
        counted = begun.repeat if isinstance(begun.repeat, Knit) else self
        cycles = min(counted.sweeps(len(table)) // SWEEPS, MOST_CYCLES) if small else 0
        progress("exchanging", (BEGUN + ENDED) / 2)
        best = improve_within(knit_state, min(spent, key=knit_state.loss), others, budgets, cycles, [seed])
        return replace(begun, partition=repair_partition(table, best, models))

    def find_vetoes(self, table: Table, partition: Partition, models: Sequence[Model]) -> Vetoes:
        """Find the conditions of a local optimum that hold for these classes; a search within a budget ensures none."""
        return find_held(table, partition, models)

    def _run_classes(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Knit the whole table, or each of its shards."""
        whole = Partition(np.zeros(len(table), dtype=np.int32), 1)
        if not root_holds(table, models):
            return Outcome(whole)
        if len(table) < 2 * max(least_rows(models), 1) or table.quasi.shape[1] == 0:
            return Outcome(whole)
        clock = RoundClock(self.seconds)
        # Mondrian's cuts of the whole table need much memory, so they are made before anything else
        others = [Mondrian().run(table, models, 0, ignore_progress).partition] if len(table) > SHARD else []
        guarded = guard_of(table, models)
        knit_state = KnitState.of(table, guarded.guard, guarded.unguarded)
        progress("cutting", BEGUN)
        best, done = _knit(_Shards.of(knit_state, models, seed, progress), self.sweeps(len(table), knit_state.quick), clock)
        best = min([best, *others], key=knit_state.loss)
        return self._outcome(repair_partition(table, best, models), done, clock)

    def _outcome(self, partition: Partition, sweeps: int, clock: RoundClock) -> Outcome:
        """With the count that repeats it, where a clock decided, and the time that it used."""
        if self.seconds is None:
            return Outcome(partition)
        counted = Knit(proposals=sweeps * 2 * WIDTH * len(partition.class_of))
        return Outcome(partition, notes=(f"knit used {clock.used:.1f} of {self.seconds:g} s",), repeat=counted)


class _Found(NamedTuple):
    """The best partition of a shard so far."""

    start: str  # where it comes from
    partition: Partition
    loss: float


@dataclass(frozen=True, eq=False)
class _Shards:
    """The parts of a table that are processed separately, in threads; one where the table is not large."""

    knit_state: KnitState
    rows: list[NDArray[np.int64]]  # of each
    models: Sequence[Model]
    seed: int
    reports: list[Progress]

    @classmethod
    def of(cls, knit_state: KnitState, models: Sequence[Model], seed: int, progress: Progress) -> _Shards:
        """Cuts with some slack, until none has too many rows. Models that judge need the whole table: one shard."""
        n = len(knit_state.table)
        parts = Partition(np.zeros(n, dtype=np.int32), 1)
        if n > SHARD and not knit_state.unguarded:
            guard = tighten_guard(knit_state.guard, SLACKS[0])
            for rows in (n // 2, n // 16, 0):  # a few large ones first, which are then cut in threads
                parts = cut(knit_state, parts, guard, max(rows, SHARD // OF_SHARD))
        order = np.argsort(parts.class_of, kind="stable")
        rows_of = np.split(order, np.flatnonzero(np.diff(parts.class_of[order])) + 1)
        return cls(knit_state, rows_of, models, seed, share_progress(progress, len(rows_of), begin=BEGUN))

    def state(self, i: int) -> KnitState:
        """A shard against the shares of the whole table; built when needed, so that not all are in memory."""
        return self.knit_state if len(self.rows) == 1 else self.knit_state.part(self.rows[i])

    def seeds(self, i: int) -> list[int]:
        """Seeds of a shard."""
        return [self.seed] if len(self.rows) == 1 else [self.seed, i]

    def start(self) -> list[_Found]:
        """A start of each. In a few shards all are tried; the others begin with the one that was best there most often."""
        numbers = range(len(self.rows))

        def start(i: int, only: str | None = None) -> _Found:
            return _start(self.state(i), self.models, self.seeds(i), self.reports[i], only)

        tried = numbers[:: -(-len(numbers) // TRIED)]
        found = dict(zip(tried, in_threads(start, tried), strict=True))
        best = Counter(one.start for one in found.values()).most_common(1)[0][0]
        others = [i for i in numbers if i not in found]
        found |= zip(others, in_threads(partial(start, only=best), others), strict=True)
        return [found[i] for i in numbers]

    def run_cycle(self, found: list[_Found], length: int, rounds: int, may_continue: MayContinue) -> list[_Found | None]:
        """Each after so many rounds of a cycle of some length, if it loses less; None where one may not continue."""

        def run(i: int) -> _Found | None:
            state, whole = self.state(i), [] if rounds == length else [rounds]
            rng, loss = np.random.default_rng([*self.seeds(i), length, *whole]), found[i].loss
            heat = min(loss * (HOTTER if state.quick else HEAT), MOST_HEAT)
            ended = _cycle(state, found[i].partition, rounds, heat, rng, partial(may_continue, self.reports[i]))
            if ended is None or state.loss(ended) >= loss:
                return None if ended is None else found[i]
            return _Found(found[i].start, ended, state.loss(ended))

        return in_threads(run, range(len(self.rows)))

    def join(self, found: list[_Found]) -> Partition:
        """One partition of all rows."""
        class_of, count = np.empty(len(self.knit_state.table), dtype=np.int32), 0
        for rows, (_, part, _) in zip(self.rows, found, strict=True):
            class_of[rows] = part.class_of + count
            count += part.count
        return Partition(class_of, count)


def _knit(shards: _Shards, sweeps: int, clock: RoundClock) -> tuple[Partition, int]:
    """Build the start, then run cycles, the last one as short as the budget needs; also return how many sweeps were done.

    A clock is read before a cycle only, so the count of sweeps repeats what was done. A cycle that takes too long is dropped.
    """
    found, done, length = shards.start(), 0, 1
    while (rounds := min((sweeps - done) // SWEEPS, clock.count_rounds(), length)) > 0:

        def may_continue(progress: Progress, i: int, before: int = done) -> bool:
            share = (before + SWEEPS * i) / sweeps if clock.seconds is None else clock.share()
            progress("exchanging", 0.4 + 0.4 * share)
            return not clock.is_late()

        ended = shards.run_cycle(found, length, rounds, may_continue)
        if any(one is None for one in ended):
            break
        found = [one for one in ended if one is not None]
        done += SWEEPS * rounds
        clock.end_cycle(rounds)
        if rounds < length:
            break
        length *= LONGER
    return shards.join(found), done


def _start(knit_state: KnitState, models: Sequence[Model], seed: Sequence[int], progress: Progress, only: str | None) -> _Found:
    """The start that has the least loss after a short exchange. All are built at the same time, and exchanged one by one."""
    whole = Partition(np.zeros(len(knit_state.table), dtype=np.int32), 1)
    best, listed = _Found("", whole, np.inf), _list_starts(knit_state, models, seed, only)
    built = zip(listed, in_threads(lambda one: one[1](), listed), strict=True)
    for i, (name, start) in enumerate((name, start) for (name, _), start in built if start is not None):
        progress("cutting", 0.4 - 0.2 * 0.7**i)
        found = [repair_partition(knit_state.table, start, models) if knit_state.unguarded else start]
        if knit_state.loss(found[0]) <= HOPELESS * best.loss:
            found.append(exchange_rows(knit_state, found[0], SWEEPS, 0.0, np.random.default_rng([*seed, 0, i])))
        for one in found:
            if knit_state.loss(one) < best.loss:
                best = _Found(name, one, knit_state.loss(one))
    return best


def _list_starts(knit_state: KnitState, models: Sequence[Model], seed: Sequence[int], only: str | None) -> list[_Start]:
    """Careful cuts with more and less slack, Mondrian's cuts, peeling, and for a few rows the classes of planning methods.

    `only`: the one that is wanted; cuts too where it may not exist.
    """
    table, listed = knit_state.table, list[_Start]()
    if only in (None, CUTS, SHARES):
        slacks = SLACKS if len(table) <= SMALL else SLACKS[:1]
        listed += [(CUTS, partial(_cut_with_slack, knit_state, slack)) for slack in slacks]
    if only in (None, MONDRIAN):
        listed.append((MONDRIAN, lambda: Mondrian().run(table, models, 0, ignore_progress).partition))
    if len(knit_state.guard.kind) > 0:
        if only in (None, PEELED):
            listed.append((PEELED, lambda: peel(knit_state, np.random.default_rng([*seed, 0]))))
        if only in (None, SHARES):
            listed.append((SHARES, lambda: start_from_shares(knit_state, models)))
    mentioned = tuple(dict.fromkeys(name for model in models for name in parts(model.column)))[:2]
    if mentioned and len(table) <= FEW:  # what plans by a value that no guarantee mentions would disclose it
        planning = (Sabre(), Burel(), StackAndDeal(column=mentioned))
        listed += [(method.name, partial(_plan_classes, method, table, models, seed[0])) for method in planning]
    return listed


def _cut_with_slack(knit_state: KnitState, slack: float) -> Partition:
    whole = Partition(np.zeros(len(knit_state.table), dtype=np.int32), 1)
    begun = cut(knit_state, whole, tighten_guard(knit_state.guard, slack)) if slack < 1 else whole
    return cut(knit_state, begun, knit_state.guard)


def _plan_classes(method: Method, table: Table, models: Sequence[Model], seed: int) -> Partition | None:
    """The classes of another method; None if it plans for other guarantees than these."""
    with suppress(BadInput, Unsatisfiable):
        return repair_partition(table, method.run(table, models, seed, ignore_progress).partition, models)
    return None


def _cycle(
    knit_state: KnitState,
    partition: Partition,
    length: int,
    heat: float,
    rng: np.random.Generator,
    may_continue: Callable[[int], bool],
) -> Partition | None:
    """Rounds of pooling, cutting and exchanging that cool down; None where one of them may not continue."""
    for i in range(length):
        if not may_continue(i):
            return None
        partition = recut(knit_state, partition, POOLED[i % len(POOLED)], rng)
        partition = exchange_rows(knit_state, partition, SWEEPS, heat * (1 - (i + 1) / length), rng)
    return partition
