"""Streams that publish rows within a delay, in positions or in seconds, under guarantees about single classes.

With a delay of `delta` positions the row at p is published at the latest while the row at p + delta is handled. In seconds, a
row is published at the first push or tick that is `delta` seconds after it or later; a push first publishes what is due, then
adds its row. A clock that is set back does not extend the delay: the time continues from where it was.
"""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from closeknit.core.classes import Classes
from closeknit.core.columns import array_cells
from closeknit.core.combined_secrets import CodedSecret
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.look_alikes import FoldedModel
from closeknit.core.model import Model, least_rows, merging_holds
from closeknit.core.params import whole
from closeknit.core.requested_models import list_models, refuse_whole
from closeknit.core.schema import Schema, require_schema
from closeknit.kernels.streaming.class_verdicts import ALLOWED, REFUSED
from closeknit.models import KAnonymity, LDiversity
from closeknit.streams.arrivals import Arrivals, Ints
from closeknit.streams.declared_guard import DeclaredGuard
from closeknit.streams.digests import digest_codes
from closeknit.streams.input_rules import parse_seconds
from closeknit.streams.stream import Emission, Emissions, Stream, seconds
from closeknit.streams.window_tables import secret_codes

Clock = Callable[[], float]
TICK = "tick"  # in place of a clock: the time of the last tick
SET_BACK = 0.001  # seconds by which a clock must go back to be corrected
OVERDUE = 1.0  # seconds after its delay from which a row counts as overdue
MOST_SHOWN = 10_000  # values of an attribute that are kept before unused ones are dropped


class DelayedStream(Stream):
    """What streams with a bounded delay share: the delay, the clock, and which rows may form a class.

    Look-alike sensitive values count as one: a class that is diverse then is diverse as written, too. If a guarantee reads
    the values themselves, both are judged.

    Args:
        schema: roles and kinds of the columns; every quasi domain must be declared.
        k: the fewest persons of a class.
        delta: the longest delay, in rows (10_000) or as a time ("5m").
        l: the fewest distinct values of the only sensitive column in a class.
        models: further guarantees about classes.
        seed: makes all choices reproducible; by default they are random.
        clock: a function that returns seconds, or "tick"; used if `delta` is a time.
    """

    def __init__(
        self,
        schema: Schema,
        k: int | None,
        delta: int | str,
        l: int | None,
        models: Sequence[Model] | None,
        seed: int | None,
        clock: Clock | str | None,
    ) -> None:
        requested = _list_models(schema, k, l, models)
        self.judge = Judge(require_schema(schema), requested)
        self.folds = not self.judge.reads_values
        super().__init__(schema, requested, seed)
        self.init_params = {name: value for name, value in self.init_params.items() if not callable(value)}  # not a clock
        self.k = self.judge.k
        self.delta, self.timed = delay_of(delta)
        self.longest_delay = self.delta
        self.clock = clock if clock is not None else time.time
        if not callable(self.clock) and self.clock != TICK:
            raise BadInput(f"clock={clock!r} is not a clock", right="give a function that returns seconds, or 'tick'")
        if not self.timed and self.delta + 1 < self.k:
            few = f"with delta={delta} at most {self.delta + 1:.0f} rows wait, fewer than k={self.k}"
            warnings.warn(f"{few}: every row will be suppressed", stacklevel=3)
        self.now = -np.inf  # seconds; never decreases
        self.shift = 0.0  # seconds that are added to the clock, because it was set back
        self._limit = (-np.inf, -1)  # a time, and the last position that was overdue then
        self.handled = -1  # the position being handled
        self._times: deque[tuple[int, float]] = deque()  # position and time of rows that may be pending

    @abstractmethod
    def _oldest(self) -> int | None:
        """Position of the oldest row that waits for its class."""

    @abstractmethod
    def _take(self, rows: Arrivals, first: int, span: tuple[int, int]) -> None:
        """Let the rows `span` of a block wait; `first` is the position of the block."""

    @abstractmethod
    def _expire(self, y: int) -> Iterator[Emissions]:
        """The row at position y, the oldest, must be published now."""

    @property
    def due(self) -> float | None:
        """When the oldest row must be published."""
        if not self.timed or (y := self._oldest()) is None:
            return None
        return self._time_of(y) + self.delta

    def _holds(self, positions: Ints) -> bool:
        """Whether the rows at these positions may form a class."""
        return self.judge(self.pending.persons(positions), self.pending.secrets(positions))

    def _secrets_in_use(self) -> Ints:
        """Sensitive values that may still be judged."""
        return self.pending.secrets(self.pending.positions())

    def _arrive(self, rows: Arrivals, first: int) -> Iterator[Emissions]:
        self.judge.learn(rows, self._secrets_in_use)
        i, times = 0, self._read_clock(len(rows), first)
        while i < len(rows):
            if times is not None:
                yield from self._advance(times[i])
            stop = self._until_next(i, first, times, len(rows))
            self._take(rows, first, (i, stop))
            i, self.handled = stop, first + stop - 1
            if times is None:
                yield from self._work()
                while (y := self._oldest()) is not None and y + self.delta <= self.handled:
                    yield from self._expire(y)

    def _until_next(self, i: int, first: int, times: list[float] | None, rows: int) -> int:
        """How many rows of a block can be added before there is something to do."""
        y = self._oldest()
        if times is None:
            alarm = self._alarm(first + i if y is None else y)
            return min(rows, max(i, int(max(alarm, 0)) - first) + 1)
        alarm = self._alarm(times[i] if y is None else self._time_of(y))
        return max(i + 1, int(np.searchsorted(times, alarm)))

    def _alarm(self, arrived: float) -> float:
        """The position or the time of the next thing to do; `arrived` is that of the oldest row."""
        return arrived + self.delta

    def _work(self) -> Iterator[Emissions]:
        """Rows arrived, or time passed; publish what need not wait until it is due. By default nothing."""
        yield from ()

    def _arrival_of(self, y: int) -> float:
        """The position of the oldest row, or its time if the delay is in seconds."""
        return self._time_of(y) if self.timed else y

    @property
    def _time(self) -> float:
        return self.now if self.timed else self.handled

    def _due(self, now: float) -> Iterator[Emissions]:
        if self.timed:
            yield from self._advance(self._follow(now, self.now) if callable(self.clock) else now)

    def _follow(self, reading: float, last: float) -> float:
        """The time after a reading of the clock; if it was set back, the time continues from the last one."""
        if (back := last - reading - self.shift) > SET_BACK:
            self.counters.count_jump(back)
            self.shift += back
        return max(last, reading + self.shift)

    def _advance(self, now: float) -> Iterator[Emissions]:
        self.now = max(self.now, now)
        yield from self._work()
        while (y := self._oldest()) is not None and (arrived := self._time_of(y)) + self.delta <= self.now:
            self.counters.wait_most = max(self.counters.wait_most, self.now - arrived)
            yield from self._expire(y)

    def _read_clock(self, rows: int, first: int) -> list[float] | None:
        """When each row arrived."""
        if not self.timed:
            return None
        times, now = [], self.now
        for position in range(first, first + rows):
            now = self._follow(seconds(self.clock()), now) if callable(self.clock) else max(now, 0.0)
            times.append(now)
            self._times.append((position, now))
        return times

    def _emit(self, emitted: Emissions) -> list[Emission]:
        classes = super()._emit(emitted)
        late = self.now - self.delta - OVERDUE
        if self.timed and classes and self._times and self._times[0][1] < late:
            if self._limit[0] != late:
                self._limit = late, max(position for position, _ in takewhile(lambda row: row[1] < late, self._times))
            self.counters.overdue += sum(int((each.positions <= self._limit[1]).sum()) for each in classes)
        return classes

    def _time_of(self, y: int) -> float:
        """When the oldest pending row arrived; older times are dropped."""
        while self._times[0][0] < y:
            self._times.popleft()
        return self._times[0][1]

    def _state(self) -> dict[str, Any]:
        positions, times = zip(*self._times, strict=True) if self._times else ((), ())
        state: dict[str, Any] = {"now": self.now, "shift": self.shift, "handled": self.handled}
        state |= {"positions": np.array(positions, np.int64), "times": np.array(times)}
        if self.judge.reads_values and len(self.pending):
            self.judge.forget(self._secrets_in_use())
        return state | ({"shown": self.judge.shown} if self.judge.reads_values else {})

    def _restore(self, state: dict[str, Any]) -> None:
        self.now, self.shift, self.handled = state["now"], state.get("shift", 0.0), state["handled"]
        self.judge.remember(state.get("shown", self.judge.shown))
        self._times = deque(zip(state["positions"].tolist(), state["times"].tolist(), strict=True))


class Judge:
    """Whether rows may form one class: the guarantees of a stream, judged on persons and sensitive values.

    Args:
        schema: roles and kinds of the columns.
        models: the guarantees.

    >>> from closeknit.core.kinds import flat, numeric
    >>> schema = Schema(quasi={"age": numeric(0, 100)}, sensitive={"ill": flat()}, person="name")
    >>> judge = Judge(schema, [KAnonymity(2), LDiversity("ill", 2)])
    >>> judge(np.array([1, 2, 2]), np.array([[5], [5], [6]])), judge(np.array([1, 2]), np.array([[5], [5]]))
    (True, False)
    """

    def __init__(self, schema: Schema, models: Sequence[Model]) -> None:
        self.models = tuple(model for model in models if model.bounds != "size")
        declared = [model for model in self.models if model.reference is not None and isinstance(model.column, str)]
        self.k = least_rows(models)
        self.reads_values = any("values" in model.needs for model in self.models)
        if self.reads_values:  # as written and folded, as in a table; otherwise digests of folded values are enough
            self.models += tuple(FoldedModel(model) for model in self.models if model.column is not None)
        self.by_person = schema.person is not None
        self.columns = [(name, j) for j, name in enumerate(schema.sensitive) if any(name == m.column for m in self.models)]
        self.kinds = schema.sensitive
        self.guards = [DeclaredGuard(model, schema) for model in declared]
        self.shown: dict[str, dict[int, Any]] = {name: {} for name, _ in self.columns}  # by digest, where values are read
        self._room = MOST_SHOWN
        # which values fold into one depends on those of a class, so nothing is sure of merged classes where values are read
        merges = [merging_holds(model, self.by_person) or model.merges_persons for model in models]
        self.grows = all(merges) and not self.reads_values

    def learn(self, rows: Arrivals, in_use: Callable[[], Ints]) -> None:
        """Keep the values behind the digests of new rows; those not `in_use` go when there are too many."""
        if not self.reads_values:
            return
        if max(map(len, self.shown.values()), default=0) > self._room:
            self.forget(in_use())
            self._room = MOST_SHOWN + 2 * max(map(len, self.shown.values()))
        for name, j in self.columns:
            found, first = np.unique(rows.secrets[:, j], return_index=True)
            self.shown[name].update(zip(found.tolist(), rows.cells[name][first].tolist(), strict=True))
        self._teach_guards()

    def remember(self, shown: dict[str, dict[int, Any]]) -> None:
        """Take over the values behind the digests from a checkpoint."""
        self.shown = shown
        self._teach_guards()

    def _teach_guards(self) -> None:
        for guard in self.guards:
            guard.learn(self.shown[str(guard.model.column)])

    def forget(self, in_use: Ints) -> None:
        """Drop the values that are not in use."""
        for name, j in self.columns:
            used = set(in_use[:, j].tolist())
            self.shown[name] = {digest: cell for digest, cell in self.shown[name].items() if digest in used}

    def _bind_values(self, name: str, digests: Ints) -> CodedSecret:
        cells = array_cells([self.shown[name][digest] for digest in digests.tolist()])
        return secret_codes(self.kinds[name], digests, cells)

    def heads(self, persons: Ints) -> int:
        """Different persons."""
        return len(np.unique(persons)) if self.by_person else len(persons)

    def __call__(self, persons: Ints, secrets: Ints) -> bool:
        return self.allows(persons, secrets, np.zeros(len(persons), dtype=np.int64), 1)

    def allows(self, persons: Ints, secrets: Ints, class_of: Ints, count: int) -> bool:
        """Whether rows may form these classes.

        Args:
            persons: the person of each row.
            secrets: the digests of its sensitive values.
            class_of: its class.
            count: the number of classes.
        """
        if self._fewest_heads(persons, class_of, count) < self.k:
            return False
        decided: set[Model] = set()
        for guard in self.guards:
            verdicts = guard.judge(secrets[:, guard.place], class_of, count)
            if (verdicts == REFUSED).any():
                return False
            if (verdicts == ALLOWED).all():
                decided.add(guard.model)
        models = [model for model in self.models if model.origin not in decided]
        return not models or all(self._holds(models, persons[rows], secrets[rows]) for rows in _split_rows(class_of, count))

    def _fewest_heads(self, persons: Ints, class_of: Ints, count: int) -> int:
        """Different persons of the class that has the fewest."""
        if not self.by_person:
            return int(np.bincount(class_of, minlength=count).min())
        return min(self.heads(persons[rows]) for rows in _split_rows(class_of, count))

    def _holds(self, models: Sequence[Model], persons: Ints, secrets: Ints) -> bool:
        """Whether one class meets these guarantees, by the models themselves."""
        coded: dict[Any, Any] = {}
        for name, j in self.columns:
            digests = secrets[:, j]
            coded[name] = self._bind_values(name, digests) if self.reads_values else digest_codes(digests)
        one = np.zeros(len(persons), dtype=np.int32)
        classes = Classes.of(one, 1, coded, persons if self.by_person else None)
        return all(bool(model.holds(classes)[0]) for model in models)


def _split_rows(class_of: Ints, count: int) -> list[Ints]:
    """The rows of each class."""
    order = np.argsort(class_of, kind="stable")
    return np.split(order, np.cumsum(np.bincount(class_of, minlength=count))[:-1])


def _list_models(schema: Schema, k: int | None, l: int | None, models: Sequence[Model] | None) -> list[Model]:
    """All requested guarantees, `k` and `l` as models."""
    requested: list[Model] = [] if k is None else [KAnonymity(k)]
    if l is not None:
        if len(require_schema(schema).sensitive) != 1:
            right = "name the column: models=[LDiversity(column, l)]"
            raise BadInput(f"l={l} needs a single sensitive column, and there are {len(schema.sensitive)}", right=right)
        requested.append(LDiversity(next(iter(schema.sensitive)), l))
    for model in list_models(models or ()):
        if model.compares:
            right = "declare it (reference={value: share}); SabreWindow, BurelWindow and Windowed compare with their window"
            raise BadInput(f"{model.name} compares with a reference, and a stream without windows has none", right=right)
        refuse_whole([model], "a stream publishes class by class")
        if "generalized" not in model.forms:
            raise BadInput(f"{model.name} has no meaning for generalized rows", right="request k_anonymity or l_diversity")
        if model.column is not None and model.column not in schema.sensitive:
            right = suggest_name(model.column, schema.sensitive)
            raise BadInput("is not a sensitive column", column=str(model.column), right=right)
        requested.append(model)
    if not least_rows(requested):
        raise BadInput("the stream has no k", right="give k, the fewest persons of a class")
    return requested


def delay_of(delta: int | str) -> tuple[float, bool]:
    """The delay, and whether it is in seconds.

    Args:
        delta: rows, or a time such as "5m".

    >>> delay_of("1.5m"), delay_of(100)
    ((90.0, True), (100, False))
    """
    if not isinstance(delta, str):
        return whole("delta", delta, least=1), False
    try:
        return parse_seconds("delta", delta), True
    except BadInput:
        raise BadInput(f"delta={delta!r} is not a delay", right="write rows (10_000) or a time: '30s', '5m', '2h'") from None
