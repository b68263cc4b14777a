"""Exchange: does the release show which of two members of a class has which sensitive value, to whom knows the method?

The adversary knows the method with its parameters, all quasi-identifiers, the class of each person and every sensitive value
but those of two members of one class: the two values are known, not who has which. The class alone leaves 1/2. The adversary
runs the method on both possible tables. This is minimality (`attacks.minimality`) as an estimate for tables of any size: of
all assignments of the values of a drawn class, only the one that is an exchange away from the truth is tried. Assignments that
are drawn at random hardly ever give the release again on real tables, and then nothing is known; an exchange always has an
answer. It is also what eps-transparency bounds: a gain of at most e^eps / (1 + e^eps) - 1/2 without the seed.

- *Seed known*: if the exchanged table gives another release, the adversary is certain (gain 1/2), else learns nothing.
- *Seed unknown*: how likely is the class, over other seeds, on either table? One half of the seeds chooses the likelier table
  and the other half measures the gain, so luck does not count. A class *comes again* if a class looks exactly like it or, where
  this happens in fewer than a quarter of the runs, if it shares more than half of the rows of both: a weaker adversary, so the
  gain may be larger. If it never comes again the pair is *open*.

Persons are drawn with equal probability, so a class is drawn in proportion to its members, and then a partner in the class with
other sensitive values (and as many rows). Persons without such a partner are not drawn: their class alone discloses them.
Intervals are about the mean over all pairs that can be drawn, not about the worst pair: Clopper and Pearson's for the seed
known, and by betting (`attacks.intervals`) for the seed unknown, where open pairs count as 0 in the lower and as 1/2 in the
upper end. With `neighbours` the method runs on the nearest rows of a drawn person as if these alone were the table: exact for
such a table and an approximation for the whole one.

Source: ours; minimality of Wong et al. 2007. Cost: `runs` runs of the method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.deals import list_moved, move_cells
from closeknit.attacks.finding import Detail, Finding
from closeknit.attacks.intervals import mean_interval, share_interval
from closeknit.core.columns import Columns
from closeknit.core.comparison import AlgorithmGain
from closeknit.core.limits import MOST_RUNS
from closeknit.core.params import whole
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.io.canonical import content_hash
from closeknit.kernels.arrays import Int64

SEEDS = 6  # other seeds of each table
TRIES = 200  # of drawing a person with a partner, in a row
LEAST_AGAIN, ALIKE = 0.25, 0.5
CONFIDENCE = 0.95
KNOWS = (
    "the method, all quasi-identifiers, the class of each person, and all sensitive values but which of two members has which"
)


class Repeated(NamedTuple):
    """A release of another table: its written cells and the class of each row, -1 for suppressed rows."""

    columns: Columns
    class_of: NDArray[np.integer]


Repeat = Callable[[Columns, int], Repeated | None]  # 0: with the seed of the release, i: with another one; None if refused


def exchange(
    original: Columns, schema: Schema, repeat: Repeat, *, runs: int = 200, neighbours: int | None = None, seed: int = 0
) -> list[Finding]:
    """Measure how often the method reveals which of two members of a class has which sensitive value.

    Args:
        original: The original rows.
        schema: Schema of the original rows.
        repeat: Runs the method on a table, with the seed of the release (0) or another one.
        runs: How often the method may run.
        neighbours: Rows of the table around a drawn person; None takes the whole table.
        seed: Seed of the draws.

    Returns:
        Two findings, with the seed and without it; none where no person has a partner.

    >>> import closeknit as ck
    >>> from closeknit.api.repeating import build_repeat
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> repeat = build_repeat(schema, [ck.KAnonymity(5)], ck.Mondrian(), seed=2**64)
    >>> [round(found.number, 3) for found in exchange(table, schema, repeat, runs=40)]  # k ignores sensitive values
    [0.0, 0.0]
    """
    found = measure_gain(original, schema, repeat, runs=runs, neighbours=neighbours, seed=seed)
    return [] if found is None else build_findings(found)


def measure_gain(
    original: Columns, schema: Schema, repeat: Repeat, *, runs: int = 200, neighbours: int | None = None, seed: int = 0
) -> AlgorithmGain | None:
    """Return what `exchange` finds as a record; None where no person has a partner or the method refuses every table."""
    runs = whole("runs", runs, 1, MOST_RUNS)
    local = neighbours is not None and whole("neighbours", neighbours, 2) < original.rows
    sample = _Sample(original, schema, repeat, neighbours if local else None, np.random.default_rng(seed), runs)
    excluded: list[bool] = []
    gains: list[float | None] = []
    while (pair := sample.draw()) is not None:
        excluded.append(pair.is_excluded())
        cost = SEEDS if sample.neighbours is None and gains else 2 * SEEDS  # those of the whole table are known then
        if (
            sample.left >= cost and sample.spent_unknown <= 2 * (runs - sample.left) // 3
        ):  # a third of the runs is left for the seed known
            before = sample.left
            gains.append(pair.gain())
            sample.spent_unknown += before - sample.left
    if not excluded:
        return None
    resolved = [gain for gain in gains if gain is not None]
    known = share_interval(sum(excluded), len(excluded), CONFIDENCE)
    low, _ = mean_interval([gain or 0.0 for gain in gains], -0.5, 0.5, CONFIDENCE)
    _, high = mean_interval([0.5 if gain is None else gain for gain in gains], -0.5, 0.5, CONFIDENCE)
    return AlgorithmGain(
        gain=max(float(np.mean(resolved)), 0.0) if resolved else None,
        low=max(low, 0.0),
        high=high,
        pairs=len(gains),
        open=len(gains) - len(resolved),
        seed_known=sum(excluded) / len(excluded) / 2,
        seed_known_low=known[0] / 2,
        seed_known_high=known[1] / 2,
        seed_known_pairs=len(excluded),
        runs=runs - sample.left,
        neighbours=sample.neighbours,
        confidence=CONFIDENCE,
    )


def build_findings(found: AlgorithmGain) -> list[Finding]:
    """Return the findings with the seed and without it."""
    excluded, place = round(2 * found.seed_known * found.seed_known_pairs), _place(found)
    with_seed = (
        f"Of {found.seed_known_pairs:,} drawn exchanges of the sensitive values of two members of a class, {excluded:,} would "
        f"have given another release (of all pairs{place}: {_span(2 * found.seed_known_low, 2 * found.seed_known_high)}): an "
        "adversary who knows the method and its seed then knows who has which value, which the class alone leaves open."
    )
    without = (
        "An adversary who knows the method without its seed names who of two members has which value correctly with "
        f"probability {_span(0.5 + found.low, 0.5 + found.high)}, mean of all pairs{place}, where the class alone gives 50 %; "
        f"{found.pairs:,} pairs were drawn, and the classes of {found.open:,} did not come again with other seeds."
    )
    shared: dict[str, Detail] = {"confidence": found.confidence, "runs": found.runs, "neighbours": found.neighbours}
    known: dict[str, Detail] = {"pairs": found.seed_known_pairs, "low": found.seed_known_low, "high": found.seed_known_high}
    unknown: dict[str, Detail] = {"pairs": found.pairs, "open": found.open, "low": found.low, "high": found.high}
    return [
        _build_finding(f"{KNOWS}; and the seed", found.seed_known, with_seed, known | shared),
        _build_finding(KNOWS, found.gain, without, unknown | shared),
    ]


def _build_finding(knows: str, number: float | None, sentence: str, details: dict[str, Detail]) -> Finding:
    measure = "mean gain over the class alone"
    risk = min(2 * (number or 0.0), 1.0)
    return Finding(
        attack="exchange", knows=knows, measure=measure, number=number, risk=risk, sentence=sentence, details=details
    )


def _span(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {100 * high:.0f} % (95 % confidence)"


def _place(found: AlgorithmGain) -> str:
    return "" if found.neighbours is None else f" of tables of {found.neighbours:,} neighbours, an approximation"


@dataclass(eq=False)
class _Sample:
    """Where pairs are drawn from: the whole table, or the neighbourhood of each drawn person."""

    original: Columns
    schema: Schema
    repeat: Repeat
    neighbours: int | None
    rng: np.random.Generator
    left: int  # runs
    spent_unknown: int = 0
    tables: dict[int, Repeated | None] = field(default_factory=dict)  # runs on the whole table by the number of the seed

    def run(self, columns: Columns, number: int) -> Repeated | None:
        """Run the method; runs on the whole original table are kept."""
        if columns is self.original and number in self.tables:
            return self.tables[number]
        self.left -= 1
        found = self.repeat(columns, number)
        if columns is self.original:
            self.tables[number] = found
        return found

    def draw(self) -> _Pair | None:
        """Draw a person and a partner; None where hardly anyone has one, or the runs are used up."""
        for _ in range(TRIES):
            if self.left < 2:  # one for the release, one for the exchange
                return None
            row = int(self.rng.integers(self.original.rows))
            rows = np.arange(self.original.rows) if self.neighbours is None else self._nearest(row)
            columns = self.original if self.neighbours is None else self.original.take(rows)
            release = self.run(columns, 0)
            if release is None and self.neighbours is None:
                return None
            if release is None:
                continue
            first = int(np.flatnonzero(rows == row)[0])
            members = np.flatnonzero(release.class_of == release.class_of[first])
            source = self._exchange(members, first, rows) if release.class_of[first] >= 0 else None
            if source is not None:
                moved = move_cells(columns, source, list_moved(self.schema))
                kinds = [each[rows] for each in self._kinds]
                seen = _Seen.of(kinds[0], kinds[1], members)
                return _Pair(self, columns, moved, release, seen, kinds[1][source])
        return None

    @cached_property
    def _kinds(self) -> tuple[Int64, Int64, Int64]:
        """Of each row: the combination of its quasi-identifiers, that of its sensitive cells, and its person."""
        cells = {name: self.original[name].coded for name in self.schema.used}
        known, own = ([cells[name] for name in names] for names in (self.schema.quasi, list_moved(self.schema)))
        person = self.schema.person
        persons = np.arange(self.original.rows) if person is None else self.original[person].codes.astype(np.int64)
        quasi, moved = (groups(each, self.original.rows)[0].astype(np.int64) for each in (known, own))
        return quasi, moved, persons

    def _exchange(self, members: Int64, first: int, rows: Int64) -> Int64 | None:
        """Return from which row each row takes its sensitive cells after an exchange; None without a partner."""
        kinds, persons = (each[rows] for each in self._kinds[1:])
        mine = np.sort(members[persons[members] == persons[first]])
        others = []
        for person in np.unique(persons[members]):
            theirs = members[persons[members] == person]
            if person != persons[first] and len(theirs) == len(mine) and sorted(kinds[theirs]) != sorted(kinds[mine]):
                others.append(np.sort(theirs))
        if not others:
            return None
        theirs = others[int(self.rng.integers(len(others)))]
        source = np.arange(len(rows))
        source[mine], source[theirs] = theirs, mine
        return source

    @cached_property
    def _places(self) -> NDArray[np.float64]:
        """Quasi-identifiers of each row as numbers between 0 and 1."""
        table = self.schema.without_identifiers().encode(self.original)
        places = np.empty(table.quasi.shape)
        places[table.rows] = table.quasi / np.maximum([domain.size for domain in table.quasi_domains], 1)
        return places

    def _nearest(self, row: int) -> Int64:
        """Return the nearest rows of a row, in their order, with all rows of their persons."""
        far = np.abs(self._places - self._places[row]).sum(axis=1)
        far[row] = -1.0
        chosen = np.argsort(far, kind="stable")[: self.neighbours]
        persons = self._kinds[2]
        return np.flatnonzero(np.isin(persons, persons[chosen])) if self.schema.person else np.sort(chosen)


@dataclass(frozen=True, eq=False)
class _Pair:
    """A table, the same table after an exchange inside one class, and the release."""

    sample: _Sample
    columns: Columns
    exchanged: Columns
    release: Repeated
    seen: _Seen
    values: Int64  # sensitive cells of each row of the exchanged table

    def is_excluded(self) -> bool:
        """Whether the exchanged table gives another release with the same seed."""
        found = self.sample.run(self.exchanged, 0)
        return found is None or content_hash(found.columns) != content_hash(self.release.columns)

    def gain(self) -> float | None:
        """Return what the adversary gains without the seed; None if the class does not come again in both halves."""
        shared, again = np.zeros((2, SEEDS)), np.zeros((2, SEEDS), dtype=bool)
        for number in range(SEEDS):
            for which, (columns, values) in enumerate(((self.columns, self.seen.values), (self.exchanged, self.values))):
                found = self.sample.run(columns, number + 1)
                if found is not None:
                    shared[which, number], again[which, number] = self.seen.find(found.class_of, values)
        hits = again if again.mean() >= LEAST_AGAIN else shared > ALIKE
        halves = [hits[:, half::2].sum(axis=1) for half in (0, 1)]
        if not all(half.any() for half in halves):
            return None
        return sum(_judge(choosing, judging) for choosing, judging in (halves, reversed(halves))) / 2


def _judge(choosing: Int64, judging: Int64) -> float:
    """Return the gain by one half of the seeds where the other half chooses the table."""
    true, false = judging.tolist()
    return float(np.sign(choosing[0] - choosing[1])) * (true - false) / (2 * (true + false))


@dataclass(frozen=True, eq=False)
class _Seen:
    """A class as the release shows it: quasi-identifiers and sensitive cells of its members, no matter who has which.

    >>> seen = _Seen.of(np.array([5, 5, 7, 9]), np.array([1, 2, 1, 1]), np.array([0, 2]))
    >>> seen.find(np.array([1, 0, 0, 1]), seen.values), seen.find(np.array([1, 0, 1, 1]), seen.values)
    ((1.0, False), (0.6666666666666666, False))
    """

    known: Int64  # quasi-identifiers of each row: the place of the combination in the class, -1 where it is not in it
    values: Int64
    counts: Int64  # members with each combination of quasi-identifiers
    own: Int64  # sensitive cells of the members, sorted

    @classmethod
    def of(cls, known: Int64, values: Int64, members: Int64) -> _Seen:
        kinds, counts = np.unique(known[members], return_counts=True)
        place = np.minimum(np.searchsorted(kinds, known), len(kinds) - 1)
        return cls(np.where(kinds[place] == known, place, -1), values, counts, np.sort(values[members]))

    def find(self, class_of: NDArray[np.integer], values: Int64) -> tuple[float, bool]:
        """Return the largest share that a class has in common with this one, and whether one is the same."""
        like = np.flatnonzero((self.known >= 0) & (class_of >= 0))
        numbers, place = np.unique(class_of[like], return_inverse=True)
        if not len(numbers):
            return 0.0, False
        table = np.zeros((len(numbers), len(self.counts)), dtype=np.int64)
        np.add.at(table, (place, self.known[like]), 1)
        sizes = np.bincount(class_of[class_of >= 0])[numbers]
        common = np.minimum(table, self.counts).sum(axis=1)
        shares = common / (sizes + len(self.own) - common)
        same = [np.array_equal(np.sort(values[class_of == number]), self.own) for number in numbers[shares == 1.0]]
        return float(shares.max()), any(same)
