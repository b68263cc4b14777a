"""Checks of a stream: what comes out of it, instant by instant, judged from the written cells by code of its own.

A stream is made anew for each run by `make()`. Rows are told by their tags, classes by equal cells and window.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from closeknit.api import audit, replay
from closeknit.checks.failures import require
from closeknit.checks.naive_cells import covers, ground, paths, raw_text, text_of
from closeknit.checks.oracle import oracle_keeps
from closeknit.checks.stream_cases import KINDS, Row, StreamCase
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.params import spec

Make = Callable[[Any], Any]  # schema -> stream
StreamCheck = Callable[[Make, StreamCase], None]
REFERRING = ("t_closeness", "beta_likeness", "delta_disclosure")
SEED = 2**90 + 11


@dataclass(eq=False)
class Log:
    """A run: after each event (a row came, time passed, the end) the batches that left, and some numbers of the stream."""

    stream: Any
    batches: list[tuple[int, list[Row]]] = field(default_factory=list)  # number of the event, and what left then
    came: list[int] = field(default_factory=list)  # after each event
    now: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    suppressed: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    def note(self, came: int, now: float, batches: Iterator[Columns]) -> None:
        self.batches += [(len(self.came), as_rows(batch)) for batch in batches]
        counters = self.stream.counters
        self.came.append(came)
        self.now.append(now)
        self.left.append(sum(len(rows) for _, rows in self.batches))
        self.suppressed.append(counters.suppressed)
        self.waiting.append(len(self.stream.pending))

    @property
    def rows(self) -> list[Row]:
        """All that left."""
        return [row for _, batch in self.batches for row in batch]


def build_stream(make: Make, case: StreamCase) -> Any:
    """A new stream; that a delay is short for k is warned of, and not in question here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(case.schema)


def load_stream(stream: Any, path: Path) -> Any:
    """The stream that was saved; a clock cannot be saved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = type(stream).load(path)
    again.clock = stream.clock
    return again


def events(stream: Any, case: StreamCase) -> Iterator[tuple[int, float]]:
    """Which row comes next (-1: none) and what time it is; during silence a timed stream is told the time."""
    now = 0.0
    for i, seconds in enumerate(case.seconds):
        while stream.timed and now < seconds:
            now = min(now + 4.0, seconds)
            yield -1, now
        yield i, now


def as_columns(case: StreamCase, first: int, end: int) -> Columns:
    """Some rows as the doors would hand them in."""
    names = [*case.schema.used, *case.schema.identifier]
    return Columns.of({name: [row[name] for row in case.rows[first:end]] for name in names})


def as_rows(columns: Columns) -> list[Row]:
    """Cells row by row."""
    cells = {name: column.cells() for name, column in columns.items()}
    return [{name: column[i] for name, column in cells.items()} for i in range(columns.rows)]


@lru_cache(maxsize=4)  # the checks of one case follow one another
def run_stream(make: Make, case: StreamCase) -> Log:
    """Every row by itself, each batch apart, until the end."""
    log, came = Log(build_stream(make, case)), 0
    for i, now in events(log.stream, case):
        if i < 0:
            log.note(came, now, log.stream.batches_due(now))
            continue
        came += 1
        log.note(came, now, log.stream.batches_of(as_columns(case, i, i + 1)))
    log.note(came, float("-inf"), log.stream.batches_at_end())
    return log


def position_of(case: StreamCase) -> dict[str, int]:
    """Which row a tag belongs to."""
    return {row["tag"]: i for i, row in enumerate(case.rows)}


def secret_of(case: StreamCase, i: int) -> str | None:
    """The secret of a row as it is shown; one that its tree does not have is a missing one."""
    text, kind = raw_text(case.rows[i]["ill"], case.schema.missing), case.schema.sensitive["ill"]
    return None if text is None or (kind.name == "tree" and not has_leaf(kind, text)) else text


def has_leaf(kind: Any, text: str) -> bool:
    """Whether a tree has this leaf."""
    return text in {path[-1] for path in paths(kind.nested)}


def person_of(case: StreamCase, i: int) -> object:
    """Whom a row is about."""
    return case.rows[i][case.schema.person] if case.schema.person else i


def label(stream: Any, row: Row) -> tuple[Any, ...]:
    """What makes rows one class to a stranger."""
    return (*(row[name] for name in stream.schema.quasi), row.get("window"))


def every_row_once(make: Make, case: StreamCase) -> None:
    """A row leaves once, with its own secret, or is counted as suppressed."""
    log = run_stream(make, case)
    require(
        len(log.rows) + log.stream.counters.suppressed == len(case.rows), "rows that left and suppressed ones are all that came"
    )
    require(log.stream.counters.rows_out == len(log.rows), "the counters say how many left")
    if not case.tagged:
        came = Counter(secret_of(case, i) for i in range(len(case.rows)))
        require(not Counter(text_of(row["ill"]) for row in log.rows) - came, "a secret left more often than it came")
        return
    where = position_of(case)
    tags = Counter(row["tag"] for row in log.rows)
    require(all(times == 1 for times in tags.values()), "a row left twice")
    for row in log.rows:
        require(text_of(row["ill"]) == secret_of(case, where[row["tag"]]), f"row {row['tag']} has the secret of another one")


def delay_is_kept(make: Make, case: StreamCase) -> None:
    """After every event all rows whose time is over have left, or as many were suppressed as have not."""
    log, where = run_stream(make, case), position_of(case) if case.tagged else {}
    gone = set[int]()
    for event, came in enumerate(log.came[:-1]):
        gone |= {where[row["tag"]] for at, batch in log.batches if at == event for row in batch if case.tagged}
        due = [i for i in range(came) if is_due(log.stream, case, i, came, log.now[event])]
        require(len(due) <= log.left[event] + log.suppressed[event], f"after {came} rows too few have left")
        late = sum(i not in gone for i in due) if case.tagged else 0
        require(late <= log.suppressed[event], f"after {came} rows {late} are late, {log.suppressed[event]} were suppressed")


def is_due(stream: Any, case: StreamCase, i: int, came: int, now: float) -> bool:
    """Whether the row at position i must have left by now."""
    if stream.scope:
        return came >= i // stream.advance * stream.advance + stream.omega + stream.advance
    return case.seconds[i] + stream.delta <= now if stream.timed else i + stream.delta < came


def guarantees_at_every_instant(make: Make, case: StreamCase) -> None:
    """After every batch each published generalization has k persons, and the diversity that was asked for."""
    log, persons = run_stream(make, case), case.schema.person is not None
    if not case.tagged:
        return
    where, published = position_of(case), defaultdict[tuple[Any, ...], list[int]](list)
    alone = getattr(log.stream, "reuse", False) is True
    models = [model for model in log.stream.models if model.name not in REFERRING]
    for _, batch in log.batches:
        require(len({label(log.stream, row) for row in batch}) == 1, "a batch is not one class")
        mine = [where[row["tag"]] for row in batch]
        seen = published[label(log.stream, batch[0])]
        seen += mine
        for rows in [seen] if alone else [seen, mine]:
            for model in models:
                params: dict[str, Any] = dict(spec(model))
                params.pop("column", None)
                params |= {"persons": [person_of(case, i) for i in rows]} if persons else {}
                require(oracle_keeps(model.name, [secret_of(case, i) for i in rows], [], **params), f"a batch breaks {model}")


def close_to_its_window(make: Make, case: StreamCase) -> None:
    """Every class keeps what compares with a reference against all rows of its window, published or not."""
    log = run_stream(make, case)
    if not log.stream.scope or not case.tagged:
        return
    where, classes = position_of(case), defaultdict[tuple[Any, ...], list[int]](list)
    for row in log.rows:
        classes[label(log.stream, row)].append(where[row["tag"]])
    for cells, rows in classes.items():
        first, end = window_of(log.stream, cells[-1], len(case.rows))
        require(all(first <= i < end for i in rows), f"a class of window {cells[-1]} has rows of another one")
        for model in log.stream.models:
            if model.name in REFERRING:
                require(is_close(model, case, rows, range(first, end)), f"a class of window {cells[-1]} breaks {model}")


def window_of(stream: Any, number: int, rows: int) -> tuple[int, int]:
    """First and last position of a window; the last one of a stream has the last rows, however few."""
    first = number * stream.advance
    return (first, first + stream.omega) if first + stream.omega <= rows else (max(0, rows - stream.omega), rows)


def is_close(model: Any, case: StreamCase, rows: Sequence[int], window: Sequence[int]) -> bool:
    """The oracle's word; where an order has no place for missing secrets they count nowhere."""
    params: dict[str, Any] = dict(spec(model))
    params.pop("column")
    values, reference = ([secret_of(case, i) for i in part] for part in (rows, window))
    if model.name == "t_closeness":
        params["ground"] = ground(case.schema.sensitive["ill"], params.pop("distance", None), reference)
    return oracle_keeps(model.name, values, reference, **params)


def raw_value_inside(make: Make, case: StreamCase) -> None:
    """Written cells hold the raw ones; a value that no domain knows is written as `*`, missing ones alone as nothing."""
    log = run_stream(make, case)
    where = position_of(case) if case.tagged else {}
    for row in log.rows if case.tagged else []:
        raw = case.rows[where[row["tag"]]]
        for name, kind in case.schema.quasi.items():
            cell = text_of(row[name])
            require(
                covers(kind, cell, raw_text(raw[name], case.schema.missing)), f"'{name}': {cell!r} does not hold {raw[name]!r}"
            )


def unknown_is_counted(make: Make, case: StreamCase) -> None:
    """Categories that a tree does not have and numbers out of range are counted."""
    strange = 0
    for row in case.rows:
        cells = {name: raw_text(row[name], case.schema.missing) for name in case.schema.quasi}
        age = cells.get("age")
        strange += age is not None and not 0 <= float(age) <= 100
        city = cells.get("city")
        strange += city is not None and not has_leaf(KINDS["city"], city)
    secrets = [raw_text(row["ill"], case.schema.missing) for row in case.rows]
    strange += sum(text is not None and secret_of(case, i) is None for i, text in enumerate(secrets))
    log = run_stream(make, case)
    require(log.stream.counters.unknown == strange, f"{strange} cells are unknown, counted are {log.stream.counters.unknown}")


def nothing_leaks(make: Make, case: StreamCase) -> None:
    """Rows have their published columns, nothing of position or person; in a batch they stand in the order of their cells."""
    log = run_stream(make, case)
    names = [*case.schema.published, *(["window"] if log.stream.scope else [])]
    hidden = [*case.schema.identifier, *([case.schema.person] if case.schema.person else [])]
    private = {str(row[name]) for row in case.rows for name in hidden}
    for _, batch in log.batches:
        require(all(list(row) == names for row in batch), f"a row has the columns {list(batch[0])}")
        require(not private & {str(cell) for row in batch for cell in row.values()}, "a person is published")
        shown = [[(row[name] is not None, str(row[name])) for name in ("ill", *case.schema.plain)] for row in batch]
        require(shown == sorted(shown), "the order of a batch does not come from its cells")
    told = log.stream.certificate.to_json()
    require(not any(cell in told for cell in private) and str(SEED) not in told, "the certificate tells a person or the seed")


def flush_empties(make: Make, case: StreamCase) -> None:
    """At the end nothing waits, and nothing can come any more."""
    log = run_stream(make, case)
    require(log.waiting[-1] == 0 and log.stream.counters.pending == 0, "rows wait after the end")
    try:
        log.stream.push(case.rows[0])
    except BadInput:
        return
    require(False, "a row came after the end")


def memory_is_bounded(make: Make, case: StreamCase) -> None:
    """No more rows wait than the delay or the window allows."""
    log = run_stream(make, case)
    if log.stream.scope:
        most = log.stream.omega + log.stream.advance
    elif log.stream.timed:
        most = max(sum(0 <= now - then < log.stream.delta for then in case.seconds) for now in case.seconds)
    else:
        most = int(log.stream.delta)
    require(max(log.waiting) <= most, f"{max(log.waiting)} rows wait, {most} may")
    if log.stream.scope:
        require(len(log.stream.recent) <= most, "a window remembers more than its rows")


def blocks_change_nothing(make: Make, case: StreamCase) -> None:
    """Rows in blocks of any size, as a frame, give the same rows in the same order, and the same counters."""
    log, rng = run_stream(make, case), np.random.default_rng(3)
    stream, out, block = build_stream(make, case), list[Row](), list[int]()

    def send() -> None:
        if block:
            out.extend(as_rows(stream.push_many(as_columns(case, block[0], block[-1] + 1))))
        block.clear()

    for i, now in events(stream, case):
        if i < 0 or rng.random() < 0.2:
            send()
        if i < 0:
            out.extend(stream.tick(now))
        else:
            block.append(i)
    send()
    out.extend(stream.flush())
    require(out == log.rows, "blocks give other rows than one by one")
    require(stream.counters.record() == log.stream.counters.record(), "blocks give other counters than one by one")


def resume_changes_nothing(make: Make, case: StreamCase) -> None:
    """Saved and loaded on the way, at any place, the stream goes on as if nothing had happened."""
    log = run_stream(make, case)
    stops = {1, len(case.rows) // 3, len(case.rows) // 2, len(case.rows) - 1}
    stream, out = build_stream(make, case), list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        for i, now in events(stream, case):
            if i in stops:
                stream.save(Path(folder, "stream"))
                stream = load_stream(stream, Path(folder, "stream"))
            out.extend(stream.tick(now) if i < 0 else stream.push(case.rows[i]))
    out.extend(stream.flush())
    require(out == log.rows, "after it was loaded the stream goes on in another way")
    require(stream.counters.record() == log.stream.counters.record(), "after it was loaded the counters are others")
    require(stream.certificate == log.stream.certificate, "after it was loaded the certificate is another one")


def secret_repeats(make: Make, case: StreamCase) -> None:
    """The same secret gives the same rows."""
    stream, out = build_stream(make, case), list[Row]()
    for i, now in events(stream, case):
        out.extend(stream.tick(now) if i < 0 else stream.push(case.rows[i]))
    require([*out, *stream.flush()] == run_stream(make, case).rows, "the same seed gave other rows")


def certificate_is_true(make: Make, case: StreamCase) -> None:
    """What the rolling certificate says of rows, batches, loss and levels is what left; of persons it tells no level."""
    log = run_stream(make, case)
    told, sizes = log.stream.certificate, [len(batch) for _, batch in log.batches]
    require(told.ok and told.rows == len(log.rows) and told.suppressed == log.stream.counters.suppressed, "it miscounts rows")
    require((told.classes.count, told.classes.largest) == (len(sizes), max(sizes, default=0)), "it miscounts batches")
    for guarantee in told.guarantees:
        require(guarantee.measured is None or guarantee.status == "recomputable", "it tells a level that nobody can recompute")
        hidden = case.schema.person is not None or any(name in guarantee.model for name in REFERRING)
        require((guarantee.status == "attested") == hidden, f"{guarantee.text}: it is {guarantee.status}")
        if "k_anonymity" in guarantee.model and not hidden and sizes and not getattr(log.stream, "reuse", False):
            require(guarantee.measured == min(sizes), f"the smallest batch has {min(sizes)} rows, it says {guarantee.measured}")


def replay_is_a_release(make: Make, case: StreamCase) -> None:
    """The same rows as a table: the same cells as a certified release that an audit finds nothing wrong with."""
    log, stream = run_stream(make, case), build_stream(make, case)
    if stream.timed:
        return
    try:
        release = replay(stream, as_columns(case, 0, len(case.rows)))
    except Unsatisfiable:
        require(not log.rows, "nothing could be released, and rows had left")
        return
    names = list(log.rows[0])
    shown = Counter(tuple(text_of(row[name]) for name in names) for row in as_rows(release.columns))
    require(shown == Counter(tuple(text_of(row[name]) for name in names) for row in log.rows), "the release has other rows")
    require(int((release.partition < 0).sum()) == log.stream.counters.suppressed, "the partition tells who was suppressed")
    rolling, told = log.stream.certificate.loss, release.certificate.loss
    require(
        abs(rolling.a - told.a) < 1e-9 and abs(rolling.b - told.b) < 1e-9, f"loss: {rolling} while it ran, {told} as a release"
    )
    found = audit(release.columns, certificate=release.certificate)
    require(not found.findings and not any(p.status == "not met" for p in found.guarantees), f"an audit finds {found}")


CHECKS: tuple[StreamCheck, ...] = (
    every_row_once,
    delay_is_kept,
    guarantees_at_every_instant,
    close_to_its_window,
    raw_value_inside,
    unknown_is_counted,
    nothing_leaks,
    flush_empties,
    memory_is_bounded,
    blocks_change_nothing,
    resume_changes_nothing,
    secret_repeats,
    certificate_is_true,
    replay_is_a_release,
)
