"""Windows: rows are published in classes that are close to a window of the stream, by any static method.

Guarantees. Every class lies in one window: `omega` rows that begin at a multiple of `advance`, or the last `omega` rows of a
stream that has ended. It meets every model with all rows of that window, published or not, as the reference: with t-closeness
this is (omega, t)-closeness. The window number is published with each row; two classes with the same cells are different
classes if their windows differ. The row at position p is published or suppressed when
`floor(p / advance) * advance + omega + advance` rows have arrived. Each row is published once, or suppressed and counted.

Source: the thesis on SABRE and BUREL, ch. 6.

Different from the source:
- classes are judged directly and exactly against the window, so no budget is reserved for the distance D between the pending
  rows and the window, and the step is taken for D <= t (as printed, t = 0 never publishes a row);
- the ground distance is that of the window, not of the pending rows (as printed, classes do not meet t);
- a window accepts any models and any static method that returns classes; these are judged again, merged if they do not meet a
  guarantee, and replaced by one class of all pending rows if nothing else helps;
- k counts persons; if a window cannot meet it, expiring rows are published with the classes of an earlier window or suppressed;
- a stream may end (as printed, its last rows are never published): the last `omega` rows are a window;
- `long_run=t` requires each class to be close to the long run too: a homogeneous window is close to itself.

Cost: memory for `omega + advance` rows; the time of the method on the pending rows, about once per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certifying import check_columns
from closeknit.core.classes import Classes, Histogram
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import parts
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.exact import Number
from closeknit.core.look_alikes import FoldedModel, with_folded
from closeknit.core.method import Method, can_plan, ignore_progress
from closeknit.core.model import Model, joints, least_rows
from closeknit.core.params import number, take, whole
from closeknit.core.requested_models import list_models, refuse_whole
from closeknit.core.schema import Schema
from closeknit.core.table import Outcome, Partition
from closeknit.core.vacuity import find_stand_alone
from closeknit.kernels.counting.histograms import count_codes
from closeknit.methods import REGISTRY as METHODS
from closeknit.models import KAnonymity, TCloseness
from closeknit.search.persons import must_keep_together, run_by_person
from closeknit.search.repair import find_broken_classes, repair_partition
from closeknit.streams.arrivals import Arrivals, Ints
from closeknit.streams.long_run import DecayedCounts, LongRun, add_secrets
from closeknit.streams.pending import Pending
from closeknit.streams.rolling_certificate import Scope
from closeknit.streams.stream import Emission, Stream
from closeknit.streams.thinning import thin_rows
from closeknit.streams.window_tables import Waiting, WindowTables

MEMORY = 10  # windows after which a row has about a third of its weight in the long run


class Windowed(Stream):
    """Any static method in windows of `omega` rows that move on by `advance`.

    Args:
        method: a method of generalized cells, its name, or its form in a recipe.
        schema: roles and kinds of the columns; every quasi domain must be declared.
        models: the guarantees, each judged against the window.
        omega: rows of a window.
        advance: rows by which the window moves; `omega` is a multiple of it.
        seed: makes all choices reproducible; by default they are random.
        k: the fewest persons of a class.
        long_run: the largest distance of a class from the long run; by default it is not limited.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    >>> stream = Windowed(ck.Mondrian(), schema, [ck.TCloseness("ill", 0.5)], omega=4, advance=2, k=2)
    >>> left = [row for i in range(8) for row in stream.push({"age": 10 * i, "ill": ["flu", "gout"][i % 2]})]
    >>> left[0], len(left + stream.flush())
    ({'age': '[0, 10]', 'ill': 'flu', 'window': 0}, 8)
    """

    name: ClassVar[str] = "windowed"

    def __init__(
        self,
        method: Method | str | Mapping[str, Any],
        schema: Schema,
        models: Sequence[Model],
        omega: int = 20_000,
        advance: int = 5_000,
        seed: int | None = None,
        k: int | None = None,
        long_run: Number | None = None,
    ) -> None:
        requested = [*list_models(models), *([] if k is None else [KAnonymity(k)])]
        super().__init__(schema, requested, seed)
        self.omega, self.advance = whole("omega", omega, least=1), whole("advance", advance, least=1)
        self.longest_delay = self.omega + self.advance
        if self.omega % self.advance:
            right = "windows begin at multiples of advance: choose omega as one of them"
            raise BadInput(f"omega={omega} is not a multiple of advance={advance}", right=right)
        self.method: Method = take("method", method, METHODS, Method)
        if "method" in self.init_params:  # a checkpoint keeps the method, whatever its form
            self.init_params = {**self.init_params, "method": self.method}
        _check(self.method, schema, requested)
        self.extra_models = _long_runs(requested, long_run)
        # the long run may have look-alike values that are not in the window
        folded = (LongRun(FoldedModel(long_run.model)) for long_run in self.extra_models)
        alone = [model.stricter or model if model.budget else model for model in requested]  # later classes are not known yet
        self.judges: tuple[Model, ...] = (*alone, *self.extra_models, *folded)
        self.scope = Scope(
            f", to its window of {self.omega:,} rows",
            f", in windows of {self.omega:,} rows that move on by {self.advance:,}, or fewer at the end; a window that is"
            " homogeneous is close to itself",
            "its reference, all rows of its window, is private",
        )
        self.recent = Pending()  # sensitive values of all rows from `start` on, published or not
        self.start = 0  # of the window
        self.held: list[Ints] = []  # classes of the last window that was partitioned, not yet published
        self.held_window = 0
        self.cases = [0, 0, 0]  # how often each of the three cases occurred
        self._prepare()

    def _prepare(self) -> None:
        """Derive tables and counts from the guarantees."""
        required = [name for model in self.judges for name in _without_missing(model, self.schema)]
        self.tables = WindowTables(self.schema, self.coder, joints(self.models), dict.fromkeys(required))
        memory = MEMORY * self.omega // self.advance
        names = [model.secret for model in self.judges if isinstance(model, LongRun)]
        self.decayed = {name: DecayedCounts(self.schema.sensitive[name], memory) for name in names}
        self.decayed_to = 0

    # How rows arrive and are published -------------------------------------------------------------------------------------

    def _arrive(self, rows: Arrivals, first: int) -> Iterator[list[Emission]]:
        at, end = first, first + len(rows)
        while at < end:
            due = self.start + self.omega + self.advance
            stop = min(end, due)
            self._remember(rows.take(np.arange(at - first, stop - first)), at)
            at = stop
            if at == due:
                yield from self._step(self.start + self.advance, at - 1)
                self.recent.drop(np.arange(self.start, self.start + self.advance))
                self.start += self.advance

    def _remember(self, rows: Arrivals, first: int) -> None:
        cells = {name: rows.cells[name] for name in self.schema.sensitive}
        self.recent.add(Arrivals(np.zeros((len(rows), 0)), rows.persons, rows.secrets, cells), first)
        self._suppress(first + np.flatnonzero(self.tables.flag_missing(rows)))

    def _step(self, expires: int, at: int) -> Iterator[list[Emission]]:
        """Rows before position `expires` must be published; the row at position `at` arrived last."""
        self._remember_long(self.start + self.omega)
        if len(self.pending.positions(self.start, expires)) == 0:  # case 1
            self.cases[0] += 1
            return
        window = self.start // self.advance
        classes = self._split_window(self.start, self.start + self.omega, window)
        self.cases[1 if classes is not None else 2] += 1
        if classes is not None:  # case 2
            self.held = [rows for rows in classes if rows[0] >= expires]
            self.held_window = window
            yield _build_emissions([rows for rows in classes if rows[0] < expires], window, at)
        else:  # case 3
            yield from self._emit_held(at)
            self._suppress(self.pending.positions(self.start, expires))

    def _emit_held(self, at: int) -> Iterator[list[Emission]]:
        held, self.held = self.held, []
        yield _build_emissions(held, self.held_window, at)

    def _end(self) -> Iterator[list[Emission]]:
        cut, at = max(0, self.position - self.omega), self.position - 1
        if self.position >= self.omega:
            yield from self._step(cut, at)
        self._remember_long(self.position)
        window = -(-cut // self.advance)
        classes = self._split_window(cut, self.position, window)
        if classes is None:
            yield from self._emit_held(at)
            classes = self._split_window(cut, self.position, window)
        if classes is None:
            classes = self._split_window(cut, self.position, window, thin=True)
        yield _build_emissions(classes or [], window, at)

    # Which rows are published together -------------------------------------------------------------------------------------

    def _split_window(self, first: int, end: int, window: int, thin: bool = False) -> list[Ints] | None:
        """The pending rows of a window in classes that meet every guarantee there, oldest first; None if there are none.

        `thin`: drop rows until the remaining ones meet them.
        """
        positions = self.pending.positions(first, end)
        if len(positions) == 0:
            return []
        waiting = self._waiting(positions, first, end)
        judges = with_folded(self.judges, waiting.table)
        if thin:
            waiting = waiting.take(thin_rows(waiting.table, judges))
        table, one = waiting.table, Partition.whole(len(waiting.table))
        if len(table) == 0 or find_broken_classes(table, one, judges).any():
            return None
        partition = waiting.merge_alike(self._partition(waiting, window, one, judges))
        if (partition.class_of < 0).any() or find_broken_classes(table, partition, judges).any():
            partition = one
        self._count_vacuous(table.count_classes(one))
        rows = table.rows[np.lexsort((table.rows, partition.class_of))]
        ends = np.cumsum(np.bincount(partition.class_of)).tolist()
        return [rows[start:end] for start, end in pairwise([0, *ends])]

    def _count_vacuous(self, classes: Classes) -> None:
        """Count windows in which a guarantee excludes nothing; to stop there would itself disclose something."""
        for i, model in enumerate(self.models):
            found = find_stand_alone(model, classes, least_rows(self.models))
            if found is not None and found.vacuous:
                self.counters.vacuous[i] = self.counters.vacuous.get(i, 0) + 1

    def _partition(self, waiting: Waiting, window: int, one: Partition, judges: Sequence[Model]) -> Partition:
        """The classes of the method, the rows of a person together, merged if they do not meet a guarantee."""
        table, seed = waiting.table, int(self.choice("window", window).integers(2**63))
        keep = must_keep_together(table, self.method)

        def run(part: Any) -> Outcome:
            return self.method.run(part, judges, seed, ignore_progress)

        try:
            outcome = run_by_person(table, run) if keep else run(table)
        except Unsatisfiable:  # the method has no such partition; one class of all pending rows meets the guarantees
            return one
        return repair_partition(table, outcome.partition, judges)

    def _waiting(self, positions: Ints, first: int, end: int) -> Waiting:
        secrets = self.tables.secrets(self.recent.take(np.arange(first, end)))
        canonical = self.tables.waiting(secrets, self.pending.take(positions), positions, first)
        waiting = canonical.take(canonical.table.tie_order(int(self.choice("ties", first).integers(2**63))))
        if not self.decayed:
            return waiting
        table, names = waiting.table, list(self.schema.sensitive)
        digests = self.recent.take(table.rows).secrets
        secrets_too, references = dict(table.joints), dict(table.references)
        for name, counts in self.decayed.items():
            secrets_too["", name] = counts.encode(digests[:, names.index(name)])
            references["", name] = counts.reference()
        return Waiting(replace(table, joints=secrets_too, references=references), waiting.outside)

    def _remember_long(self, end: int) -> None:
        """Add all rows before a position to the long run, block by block."""
        while self.decayed and self.decayed_to < end:
            block = np.arange(self.decayed_to, min(self.decayed_to + self.advance, end))
            rows = self.recent.take(block)
            add_secrets(rows, list(self.schema.sensitive), self.decayed, ~self.tables.flag_missing(rows))
            self.decayed_to += len(block)

    def recheck_models(
        self, rows: Arrivals, positions: Ints, class_of: NDArray[np.integer], windows: Ints | None
    ) -> dict[Model, bool]:
        """Judge every class again, against its window of all rows; closeness to the long run is not judged again."""
        met = dict.fromkeys((model for model in self.models if model.column is not None), True)
        assert windows is not None
        for window in np.unique(windows).tolist():
            whole = window * self.advance + self.omega <= len(rows)
            first = window * self.advance if whole else max(0, len(rows) - self.omega)
            secrets = self.tables.secrets(rows.take(np.arange(first, min(first + self.omega, len(rows)))))
            mine = windows == window
            numbers, renumbered = np.unique(class_of[mine], return_inverse=True)
            coded = {name: (codes[positions[mine] - first], domain) for name, (codes, domain) in secrets.items()}
            references = {name: count_codes(codes, d.size + 1) for name, (codes, d) in secrets.items()}
            persons = None if self.schema.person is None else rows.persons[positions[mine]]
            classes = Classes.of(renumbered.astype(np.int32), len(numbers), coded, persons, references)
            for model in met:
                judges = [model, *([FoldedModel(model)] if isinstance(model.column, str) else [])]
                met[model] &= all(bool(judge.holds(classes).all()) for judge in judges)
        return met

    # What a checkpoint keeps -----------------------------------------------------------------------------------------------

    def _empty(self) -> Columns:
        cells = dict(super()._empty())
        return Columns({**cells, "window": Column(np.empty(0, dtype=np.int64), np.empty(0, np.int32))}, 0)

    def _state(self) -> dict[str, Any]:
        positions = self.recent.positions()
        return {
            "start": self.start,
            "held": self.held,
            "held_window": self.held_window,
            "cases": self.cases,
            "span": (self.recent.first, self.recent.end),
            "recent": self.recent.take(positions) if len(positions) else None,
            "decayed": {name: counts.weights for name, counts in self.decayed.items()},
            "decayed_to": self.decayed_to,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._prepare()  # the secret keys the digests
        self.start, self.held, self.held_window = state["start"], state["held"], state["held_window"]
        self.cases, self.decayed_to = state["cases"], state["decayed_to"]
        first, end = state["span"]
        self.recent.restore(np.arange(first, end), state["recent"], first, end)
        for name, weights in state["decayed"].items():
            self.decayed[name].weights = weights


def _build_emissions(classes: Iterable[Ints], window: int, at: int) -> list[Emission]:
    return [Emission(rows, window=window, at=at) for rows in classes]


def _check(method: Method, schema: Schema, models: Sequence[Model]) -> None:
    """Refuse a request that has no meaning in a window before the first row arrives."""
    if method.runs_once:
        what = f"the guarantee of {method.name} is about one run on a table, and windows are many"
        raise BadInput(what, right="choose another method, such as Mondrian()")
    if method.usual_form != "generalized":
        raise BadInput(f"{method.name} does not write generalized cells", right="choose another method, such as Mondrian()")
    if not models:
        raise BadInput("no guarantee is requested", right="give at least one model, such as TCloseness(column, 0.2)")
    for model in models:
        check_columns(schema, [model])
        refuse_whole([model], "a stream publishes class by class")
        if "generalized" not in model.forms:
            raise BadInput(f"{model.name} has no meaning in a window", right="request a guarantee about classes")
    if not can_plan(method, models):
        right = "add one, or choose Windowed(Mondrian(), ...), which serves any guarantee"
        raise BadInput(f"{method.name} needs a guarantee that bounds the {method.needs_bound}, and none does", right=right)


def _long_runs(models: Sequence[Model], limit: Number | None) -> list[LongRun]:
    """Closeness to the long run of every sensitive attribute that a guarantee covers, in the requested distance."""
    if limit is None:
        return []
    number("long_run", limit, least=0, most=1)
    distances: dict[str, str | None] = {}
    for model in models:
        for name in parts(model.column):
            distance = model.ground if isinstance(model.column, str) else None
            distances[name] = distances.get(name) or distance
    if not distances:
        right = "leave it out, or request t_closeness"
        raise BadInput("long_run is given, and no guarantee covers a sensitive attribute", right=right)
    return [LongRun(TCloseness(name, limit, distance)) for name, distance in distances.items()]


def _without_missing(model: Model, schema: Schema) -> list[str]:
    """The sensitive attribute, if the guarantee does not define a missing value; refuse a guarantee its kind cannot have."""
    inner = model.origin
    if not isinstance(inner.column, str):
        return []
    domain = schema.sensitive[inner.column].declared_domain

    def refuse(codes: list[int]) -> None:
        rows = np.array(codes, dtype=np.int32)
        histogram = Histogram.of(np.zeros(len(rows), dtype=np.int32), 1, rows, domain)
        sizes = np.array([len(rows)], dtype=np.int64)
        inner.refuse(Classes(sizes, sizes, {inner.column: histogram}))  # type: ignore[dict-item]

    refuse([])
    try:
        refuse([domain.size])
    except BadInput:
        return [inner.column]
    return []
