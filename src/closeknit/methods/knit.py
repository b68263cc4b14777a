"""Knit: careful cuts, then rows exchanged between classes, judged by the promises on what the classes really hold.

Promises. Nothing of its own: every step starts from classes that keep all promises and takes no change after which one would
not, so each class keeps what was asked. In the loops the promises are whole numbers that are never laxer than the models
(`plans/guards.py`); what cannot be said so is judged by the models; and in the end they judge everything once more.

Source: our own; docs/knit.md has the derivation, the experiments and what did not help.

Steps:
1. careful cuts: top-down like Mondrian, yet where a promise vetoes a cut the side is trimmed, bucket by bucket of the secret,
   until it is allowed. Several starts, with part of the room that the promises leave kept for later (`SLACKS`);
2. exchange: rows move to near classes or change places with a row there while the loss falls;
3. cycles of rounds: neighbouring classes are pooled and cut anew, then rows are exchanged, at first also where a little is
   lost. A cycle that ends better than it began is kept. Each is twice as long as the one before; more budget never loses more.

Small tables also start from what Mondrian, SABRE, BUREL and Stack & Deal make of them, so Knit never loses more there.
The budget is counted in proposals, pairs of a row and a class. Cost: a sweep offers each row up to 32 classes; a proposal takes
as long as there are quasi columns, and where it pays as long as there are values of the secrets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.method import Method, Progress, silent
from closeknit.core.model import Model, least_rows
from closeknit.core.params import whole as whole_number
from closeknit.core.table import Outcome, Partition, Table
from closeknit.fills.careful_cuts import cut, recut
from closeknit.fills.exchange import exchanged
from closeknit.fills.loom import Loom
from closeknit.fills.refine import root_holds
from closeknit.fills.repair import repaired
from closeknit.kernels.knit_exchange import WIDTH
from closeknit.methods.burel import Burel
from closeknit.methods.mondrian import Mondrian
from closeknit.methods.sabre import Sabre
from closeknit.methods.stack_and_deal import StackAndDeal
from closeknit.plans.guards import guard_of, tightened

SLACKS = (0.85, 0.5, 1.0, 0.7)  # share of the room that the first cuts may use; large tables try the first ones only
MANY = 100_000  # rows of all starts together
SMALL = 4_096  # rows up to which other methods' outcomes are starts too
HOPELESS = 1.3  # a start that loses so many times what the best so far loses is not worth an exchange
SWEEPS = 2  # of each round
POOLED = (2, 3, 4, 8)  # classes that are cut anew together, in turns
HEAT = 0.6  # mean loss that a change may add when a cycle begins, beside what a row loses then
VISITS = 2_000_000  # rows visited in all sweeps of the default budget
MOST_SWEEPS = 254


@dataclass(frozen=True)
class Knit:
    """For any promises; `proposals` is the budget of the search, by default about 2 million visits of rows.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.25)]
    >>> release, other = (ck.anonymize(table, schema, models, method) for method in (Knit(), ck.Mondrian()))
    >>> release.certificate.ok, release.loss < other.loss
    (True, True)
    """

    name: ClassVar[str] = "knit"
    serves_both: ClassVar[bool] = False
    keeps_persons: ClassVar[bool] = False
    plans_for: ClassVar[str] = "any"
    scale: ClassVar[str] = "shard"

    proposals: int | None = None

    def __post_init__(self) -> None:
        if self.proposals is not None:
            whole_number("proposals", self.proposals, least=0)

    def sweeps(self, n: int) -> int:
        """Sweeps over a table of n rows that the budget allows.

        >>> Knit().sweeps(300), Knit().sweeps(30_000), Knit(proposals=0).sweeps(300)
        (254, 66, 0)
        """
        return min(MOST_SWEEPS, VISITS // max(n, 1)) if self.proposals is None else self.proposals // max(1, 2 * WIDTH * n)

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Start well, then cycle by cycle as long as the budget lasts."""
        whole = Partition(np.zeros(len(table), dtype=np.int32), 1)
        if not root_holds(table, models):
            return Outcome(whole)
        if len(table) < 2 * max(least_rows(models), 1) or table.quasi.shape[1] == 0:
            return Outcome(whole)
        guarded = guard_of(table, models)
        loom = Loom.of(table, guarded.guard, guarded.asked)
        best, loss = self._start(loom, models, seed, progress)
        left, length = self.sweeps(len(table)), 1
        while left >= SWEEPS * length:
            progress("exchanging", 0.8 - 0.4 * left / max(self.sweeps(len(table)), 1))
            ended = _kept(loom, models, _cycle(loom, best, length, np.random.default_rng([seed, length])))
            if loom.loss(ended) < loss:
                best, loss = ended, loom.loss(ended)
            left, length = left - SWEEPS * length, 2 * length
        return Outcome(best)

    def _start(self, loom: Loom, models: Sequence[Model], seed: int, progress: Progress) -> tuple[Partition, float]:
        """The start that loses least after a short exchange."""
        best, loss = Partition(np.zeros(len(loom.table), dtype=np.int32), 1), np.inf
        for i, start in enumerate(_starts(loom, models, seed)):
            progress("cutting", 0.4 - 0.2 * 0.7**i)
            kept = _kept(loom, models, start)
            found = [kept]
            if loom.loss(kept) <= HOPELESS * loss:
                rng = np.random.default_rng([seed, 0, i])
                found.append(_kept(loom, models, exchanged(loom, kept, SWEEPS, 0.0, rng)))
            for one in found:
                if loom.loss(one) < loss:
                    best, loss = one, loom.loss(one)
        return best, loss


def _starts(loom: Loom, models: Sequence[Model], seed: int) -> Iterator[Partition]:
    """Careful cuts with more and less slack, Mondrian's cuts, and on small tables what planning methods make."""
    whole = Partition(np.zeros(len(loom.table), dtype=np.int32), 1)
    for slack in SLACKS[: max(1, MANY // len(loom.table))]:
        begun = cut(loom, whole, tightened(loom.guard, slack)) if slack < 1 else whole
        yield cut(loom, begun, loom.guard)
    others: tuple[Method, ...] = (Sabre(), Burel(), StackAndDeal()) if len(loom.table) <= SMALL else ()
    for method in (Mondrian(), *others):
        try:
            yield method.run(loom.table, models, seed, silent).partition
        except (BadInput, Unsatisfiable):
            continue  # it plans for other promises than these


def _cycle(loom: Loom, partition: Partition, length: int, rng: np.random.Generator) -> Partition:
    """Rounds of pooling, cutting and exchanging that cool down."""
    heat = HEAT * loom.loss(partition)
    for i in range(length):
        guards = [loom.guard] if rng.integers(2) else [tightened(loom.guard, SLACKS[0]), loom.guard]
        partition = recut(loom, partition, guards, POOLED[i % len(POOLED)], rng)
        partition = exchanged(loom, partition, SWEEPS, heat * (1 - (i + 1) / length), rng)
    return partition


def _kept(loom: Loom, models: Sequence[Model], partition: Partition) -> Partition:
    """The partition as the models want it: usually as it is."""
    return repaired(loom.table, partition, models)
