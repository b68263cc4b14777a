"""What a stream has done so far: numbers for its operator, and those of its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from closeknit.streams.waiting_times import WaitingTimes

MINIMA = ("fewest_persons", "smallest")  # counters that are combined by a minimum, or a maximum, and not by a sum
MAXIMA = ("largest", "delay_most", "wait_most", "clock_jump_most", "outage_most", "input_outage_most")
SUMS = ("vacuous", "unknown_of", "alarms", "alike")  # counted by number or name


@dataclass
class Counters:
    """Rows in, out and suppressed, batches, delays, loss; only published rows count towards loss and sizes.

    >>> counters = Counters(rows_in=3)
    >>> counters.count_classes(np.array([0, 2]), np.zeros(2, int), np.array([5, 5]), np.array([0.25]), now=2)
    >>> counters.rows_out, counters.fewest_persons, counters.delay_most, counters.loss
    (2, 1, 2, 0.25)
    """

    rows_in: int = 0
    rows_out: int = 0
    suppressed: int = 0
    unknown: int = 0  # cells outside the declared domains
    batches: int = 0
    fewest_persons: int = 0  # of a batch that does not extend a class published before
    smallest: int = 0  # rows of a batch
    largest: int = 0
    squares: int = 0  # of the sizes
    delay_most: int = 0  # positions
    delay_sum: int = 0
    loss_sum: float = 0.0
    reused: int = 0  # rows published alone, with a stored generalization
    wait_most: float = 0.0  # seconds, if the delay is in seconds
    unknown_out: int = 0  # quasi cells outside the declared domains, of published rows
    column_losses: list[float] = field(default_factory=list)  # of each quasi-identifier, summed over the published rows
    column_rows: list[int] = field(default_factory=list)  # published rows with some loss there
    worst: dict[int, float] = field(default_factory=dict)  # by the number of a guarantee: the worst level of a class
    vacuous: dict[int, int] = field(default_factory=dict)  # by the number of a guarantee: windows in which it excludes nothing
    broken: int = 0  # published classes that do not meet a guarantee: none, unless an algorithm errs
    unknown_of: dict[str, int] = field(default_factory=dict)  # by column: cells outside the declared domain
    alarms: dict[str, int] = field(default_factory=dict)  # by column: spans of rows in which these were too many
    span: int = 0  # number of the last span of rows with such a cell
    span_unknown: dict[str, int] = field(default_factory=dict)  # by column: such cells in it
    refused: int = 0  # rows not accepted because of such a cell
    late: int = 0  # rows older than one that arrived before; refused, or accepted as if they were as old
    repeated: int = 0  # rows not accepted because their position or key has arrived before
    early: int = 0  # rows not accepted because of a step of the time that no second row confirmed
    clock_jumps: int = 0  # of the clock, forwards or backwards; the delay does not follow them
    clock_jump_most: float = 0.0  # seconds
    overdue: int = 0  # rows published after their delay, if it is in seconds
    outages: int = 0  # of the output
    outage_most: float = 0.0  # seconds
    outage_sum: float = 0.0
    held: int = 0  # rows that waited for it
    input_outages: int = 0  # of the input
    input_outage_most: float = 0.0  # seconds
    input_outage_sum: float = 0.0
    formulas: list[str] = field(default_factory=list)  # columns with cells that a spreadsheet may run
    alike: dict[str, int] = field(default_factory=dict)  # by column: published classes with look-alike values
    keys: int = 0  # rows whose key was compared with earlier ones
    as_other: int = 0  # rows published with the value "other", because a declared reference does not have theirs
    timed_out: int = 0  # published rows whose delay in seconds is known
    wait_sum: float = 0.0  # seconds

    def __post_init__(self) -> None:
        self.waiting: WaitingTimes | None = None  # of a running stream: when its rows arrived; not a count

    @property
    def pending(self) -> int:
        """Rows that are neither published nor suppressed."""
        return self.rows_in - self.rows_out - self.suppressed

    @property
    def loss(self) -> float:
        """Mean loss of the published rows; 0 if there are none."""
        return self.loss_sum / self.rows_out if self.rows_out else 0.0

    @property
    def wait_mean(self) -> float | None:
        """Mean delay of the published rows in seconds; None if no clock was read."""
        return self.wait_sum / self.timed_out if self.timed_out else None

    def count_classes(
        self,
        positions: NDArray[np.integer],
        class_of: NDArray[np.integer],
        persons: NDArray[np.integer] | None,
        losses: NDArray[np.float64],
        now: int,
    ) -> None:
        """Count classes published while a position is handled.

        Args:
            positions: the positions of their rows.
            class_of: the class of each row.
            persons: the person of each row; None if the classes extend one published before.
            losses: the loss of each class.
            now: the position being handled.

        >>> counters = Counters(rows_in=3)
        >>> counters.count_classes(np.array([0, 2, 1]), np.array([0, 0, 1]), np.array([5, 6, 5]), np.array([0.25, 0.0]), now=2)
        >>> counters.batches, counters.fewest_persons, counters.largest, counters.delay_sum
        (2, 1, 2, 3)
        """
        sizes = np.bincount(class_of)
        if persons is not None:
            order = np.lexsort((persons, class_of))
            owner, who = class_of[order], persons[order]
            fresh = np.append(True, (owner[1:] != owner[:-1]) | (who[1:] != who[:-1]))
            heads = int(np.bincount(owner[fresh]).min())
            self.fewest_persons = heads if self.batches == 0 else min(self.fewest_persons, heads)
        self.smallest = min(int(sizes.min()), self.smallest or len(positions))
        self.largest = max(self.largest, int(sizes.max()))
        self.batches += len(sizes)
        self.rows_out += len(positions)
        self.squares += int(sizes @ sizes)
        self.delay_most = max(self.delay_most, now - int(positions.min()))
        self.delay_sum += int((now - positions).sum())
        self.loss_sum += float(sizes @ losses)
        if self.waiting is not None:
            self.timed_out += len(positions)
            self.wait_sum += self.waiting.sum_waits(positions)

    def add_losses(self, sizes: Sequence[int], costs: NDArray[np.float64], unknown: int) -> None:
        """Add the loss of published classes in every column, one class after the other.

        >>> counters = Counters()
        >>> counters.add_losses([2, 3], np.array([[0.5, 0.0], [1.0, 0.25]]), unknown=1)
        >>> counters.column_losses, counters.column_rows
        ([4.0, 0.75], [5, 3])
        """
        rows = np.array(sizes)[:, None]
        losses, some = self.column_losses or [0.0] * costs.shape[1], self.column_rows or [0] * costs.shape[1]
        self.column_losses = np.add.accumulate(np.vstack([losses, rows * costs]))[-1].tolist()  # not pairwise, as sum() does
        self.column_rows = (np.array(some) + (rows * (costs > 0)).sum(axis=0)).tolist()
        self.unknown_out += unknown

    def add(self, other: Counters) -> None:
        """Add the counters of another shard of the same stream.

        >>> one, other = Counters(rows_in=3), Counters(rows_in=4)
        >>> one.count_classes(np.array([0, 2]), np.zeros(2, int), np.array([5, 6]), np.array([0.25]), now=2)
        >>> other.count_classes(np.arange(3), np.zeros(3, int), np.array([5, 5, 6]), np.array([0.5]), now=3)
        >>> one.add(other)
        >>> one.rows_in, one.rows_out, one.batches, one.smallest, one.largest, one.delay_most, one.loss
        (7, 5, 2, 2, 3, 3, 0.4)
        """
        if other.batches:
            few = [(self.fewest_persons, self.smallest)] if self.batches else []
            self.fewest_persons, self.smallest = np.min([*few, (other.fewest_persons, other.smallest)], axis=0).tolist()
        for name, value in vars(other).items():
            if name in MAXIMA:
                setattr(self, name, max(getattr(self, name), value))
            elif isinstance(value, int | float) and name not in (*MINIMA, "span"):
                setattr(self, name, getattr(self, name) + value)
        for number, level in other.worst.items():
            self.add_level(number, level)
        self.formulas = sorted({*self.formulas, *other.formulas})
        for name in SUMS:
            mine = getattr(self, name)
            for key, count in getattr(other, name).items():
                mine[key] = mine.get(key, 0) + count
        if other.column_losses:
            columns = len(other.column_losses)
            self.column_losses = np.add(self.column_losses or [0.0] * columns, other.column_losses).tolist()
            self.column_rows = np.add(self.column_rows or [0] * columns, other.column_rows).tolist()

    def add_level(self, number: int, level: float) -> None:
        """Record the worst level of published classes for one guarantee: the lowest is the worst."""
        self.worst[number] = min(self.worst.get(number, level), level)

    def count_jump(self, seconds: float) -> None:
        """Count a jump of the clock.

        >>> counters = Counters()
        >>> counters.count_jump(3600.0)
        >>> counters.clock_jumps, counters.clock_jump_most
        (1, 3600.0)
        """
        self.clock_jumps, self.clock_jump_most = self.clock_jumps + 1, max(self.clock_jump_most, seconds)

    def count_outage(self, seconds: float, side: str = "") -> None:
        """Count an outage of the output, or of the input.

        Args:
            seconds: how long it lasted.
            side: "input_" for the input.

        >>> counters = Counters()
        >>> counters.count_outage(2.5, "input_")
        >>> counters.input_outages, counters.input_outage_most, counters.outages
        (1, 2.5, 0)
        """
        outages, most, total = f"{side}outages", f"{side}outage_most", f"{side}outage_sum"
        setattr(self, outages, getattr(self, outages) + 1)
        setattr(self, most, max(getattr(self, most), seconds))
        setattr(self, total, getattr(self, total) + seconds)

    def list_faults(self) -> list[str]:
        """A sentence for each kind of row, value or device that was not as declared.

        >>> Counters(late=3, clock_jumps=1, clock_jump_most=3600.0).list_faults()
        ['3 rows were late', 'the clock jumped 1 times, by at most 3,600 seconds; delays did not follow it']
        """
        spans = [(name, self.alarms[name]) for name in sorted(self.alarms)]
        said = [f"column '{name}': in {count:,} spans of rows too many values were outside its domain" for name, count in spans]
        jumped = f"the clock jumped {self.clock_jumps:,} times, by at most {self.clock_jump_most:,.0f} seconds"
        down = f"the output was down {self.outages:,} times, for at most {self.outage_most:,.0f} seconds"
        silent = f"the input was down {self.input_outages:,} times"
        counted = {
            "refused": f"{self.refused:,} rows with a value outside its declared domain were refused",
            "repeated": f"{self.repeated:,} rows that repeat a key or position were refused",
            "as_other": f"{self.as_other:,} rows had no value, or one that is not declared, and have the value 'other'",
            "late": f"{self.late:,} rows were late",
            "early": f"{self.early:,} rows with a time far ahead were refused",
            "clock_jumps": f"{jumped}; delays did not follow it",
            "overdue": f"{self.overdue:,} rows were published after their delay",
            "outages": f"{down}; {self.held:,} rows waited for it",
            "input_outages": f"{silent}, for at most {self.input_outage_most:,.0f} seconds",
        }
        return said + [text for name, text in counted.items() if getattr(self, name)]

    def record(self) -> dict[str, Any]:
        """The counters as plain numbers."""
        return {**asdict(self), "pending": self.pending, "loss": self.loss, "wait_mean": self.wait_mean}
