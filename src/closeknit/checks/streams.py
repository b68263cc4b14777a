"""Checks of a stream: its output after each event, judged from the written cells by independent code.

`make()` returns a new stream for each run. Rows are identified by their tags, classes by equal cells and window.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from closeknit.api import audit, replay
from closeknit.checks.failures import require, require_refusal
from closeknit.checks.naive_cells import covers, ground, paths, raw_text, text_of
from closeknit.checks.oracle import DEFINITIONS, oracle_keeps
from closeknit.checks.stream_cases import KINDS, Row, StreamCase
from closeknit.checks.stream_logs import SEED, Make, as_columns, build_stream, events, load_stream, push_rows, run_stream
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.params import spec

StreamCheck = Callable[[Make, StreamCase], None]


def position_of(case: StreamCase) -> dict[str, int]:
    """Return the row of each tag."""
    return {row["tag"]: i for i, row in enumerate(case.rows)}


def secret_of(case: StreamCase, i: int) -> str | None:
    """Return the sensitive value of a row as it is published; one that its tree does not have is missing."""
    text, kind = raw_text(case.rows[i]["ill"], case.schema.missing), case.schema.sensitive["ill"]
    return None if text is None or (kind.name == "tree" and not has_leaf(kind, text)) else text


def has_leaf(kind: Any, text: str) -> bool:
    """Return whether a tree has this leaf."""
    return text in {path[-1] for path in paths(kind.nested)}


def person_of(case: StreamCase, i: int) -> object:
    """Return the person of a row."""
    return case.rows[i][case.schema.person] if case.schema.person else i


def label(stream: Any, row: Row) -> tuple[Any, ...]:
    """Return the cells that make rows one class for a recipient."""
    return (*(row[name] for name in stream.schema.quasi), row.get("window"))


def every_row_once(make: Make, case: StreamCase) -> None:
    """A row is published once, with its own sensitive value, or counted as suppressed."""
    log = run_stream(make, case)
    counters = log.stream.counters
    require(len(log.rows) + counters.suppressed == len(case.rows), "published and suppressed rows are not all that arrived")
    require(counters.rows_out == len(log.rows), "the counters miscount the published rows")
    if not case.tagged:
        arrived = Counter(secret_of(case, i) for i in range(len(case.rows)))
        published = Counter(text_of(row["ill"]) for row in log.rows)
        require(not published - arrived, "a sensitive value is published more often than it arrived")
        return
    where = position_of(case)
    tags = Counter(row["tag"] for row in log.rows)
    require(all(times == 1 for times in tags.values()), "a row is published twice")
    for row in log.rows:
        require(text_of(row["ill"]) == secret_of(case, where[row["tag"]]), f"row {row['tag']} has the value of another one")


def delay_is_kept(make: Make, case: StreamCase) -> None:
    """After every event all rows that are due are published or suppressed."""
    log, where = run_stream(make, case), position_of(case) if case.tagged else {}
    gone = set[int]()
    for event, arrived in enumerate(log.arrived[:-1]):
        gone |= {where[row["tag"]] for at, batch in log.batches if at == event for row in batch if case.tagged}
        due = [i for i in range(arrived) if is_due(log.stream, case, i, arrived, log.now[event])]
        require(len(due) <= log.published[event] + log.suppressed[event], f"after {arrived} rows too few are published")
        late = sum(i not in gone for i in due) if case.tagged else 0
        require(late <= log.suppressed[event], f"after {arrived} rows {late} are late, {log.suppressed[event]} were suppressed")


def is_due(stream: Any, case: StreamCase, i: int, arrived: int, now: float) -> bool:
    """Return whether the row at position i must be published or suppressed by now."""
    if stream.scope:
        return arrived >= i // stream.advance * stream.advance + stream.omega + stream.advance
    return case.seconds[i] + stream.delta <= now if stream.timed else i + stream.delta < arrived


def guarantees_at_every_instant(make: Make, case: StreamCase) -> None:
    """After every batch each published generalization has k persons, and the requested diversity."""
    log, persons = run_stream(make, case), case.schema.person is not None
    if not case.tagged:
        return
    where, published = position_of(case), defaultdict[tuple[Any, ...], list[int]](list)
    alone = log.stream.reuse is True
    models = [model for model in log.stream.models if not model.compares and model.name in DEFINITIONS]
    for _, batch in log.batches:
        require(len({label(log.stream, row) for row in batch}) == 1, "a batch is not one class")
        mine = [where[row["tag"]] for row in batch]
        seen = published[label(log.stream, batch[0])]
        seen += mine
        for rows in [seen] if alone else [seen, mine]:
            for model in models:
                if model.reference is not None:
                    require(is_close_to_declared(model, case, rows), f"a batch does not meet {model}")
                    continue
                params: dict[str, Any] = dict(spec(model))
                params.pop("column", None)
                params |= {"persons": [person_of(case, i) for i in rows]} if persons else {}
                require(
                    oracle_keeps(model.name, [secret_of(case, i) for i in rows], [], **params), f"a batch does not meet {model}"
                )


def close_to_its_window(make: Make, case: StreamCase) -> None:
    """Every class meets the guarantees with a reference, compared with all rows of its window, published or not."""
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
            if model.compares and model.name in DEFINITIONS:
                require(is_close(model, case, rows, range(first, end)), f"a class of window {cells[-1]} does not meet {model}")


def window_of(stream: Any, number: int, rows: int) -> tuple[int, int]:
    """Return first and last position of a window; the last window of a stream has the last rows, however few."""
    first = number * stream.advance
    return (first, first + stream.omega) if first + stream.omega <= rows else (max(0, rows - stream.omega), rows)


def is_close(model: Any, case: StreamCase, rows: Sequence[int], window: Sequence[int]) -> bool:
    """Return the oracle's verdict; missing values without a place in an order do not count."""
    values, reference = ([secret_of(case, i) for i in part] for part in (rows, window))
    return _keeps(model, case, values, reference, dict(spec(model)))


def is_close_to_declared(model: Any, case: StreamCase, rows: Sequence[int]) -> bool:
    """Return the oracle's verdict against the declared distribution, whose shares are whole numbers."""
    params = dict(spec(model))
    declared = [value for value, rows in params.pop("reference") for _ in range(rows)]
    values = [secret_of(case, i) for i in rows]
    return set(values) <= set(declared) and _keeps(model, case, values, declared, params)


def _keeps(model: Any, case: StreamCase, values: list[str | None], reference: list[str | None], params: dict[str, Any]) -> bool:
    params.pop("column")
    if model.name == "t_closeness":
        params["ground"] = ground(case.schema.sensitive["ill"], params.pop("distance", None), reference)
    return oracle_keeps(model.name, values, reference, **params)


def raw_value_inside(make: Make, case: StreamCase) -> None:
    """Written cells contain the raw ones; an unknown value is written as `*`, only missing ones as an empty cell."""
    log = run_stream(make, case)
    where = position_of(case) if case.tagged else {}
    for row in log.rows if case.tagged else []:
        raw = case.rows[where[row["tag"]]]
        for name, kind in case.schema.quasi.items():
            cell = text_of(row[name])
            inside = covers(kind, cell, raw_text(raw[name], case.schema.missing))
            require(inside, f"column '{name}': {cell!r} does not contain {raw[name]!r}")


def unknown_is_counted(make: Make, case: StreamCase) -> None:
    """Categories that a tree does not have and numbers out of range are counted."""
    unknown = 0
    for row in case.rows:
        cells = {name: raw_text(row[name], case.schema.missing) for name in case.schema.quasi}
        age, city = cells.get("age"), cells.get("city")
        unknown += age is not None and not 0 <= float(age) <= 100
        unknown += city is not None and not has_leaf(KINDS["city"], city)
    secrets = [raw_text(row["ill"], case.schema.missing) for row in case.rows]
    unknown += sum(text is not None and secret_of(case, i) is None for i, text in enumerate(secrets))
    counted = run_stream(make, case).stream.counters.unknown
    require(counted == unknown, f"{unknown} cells are unknown, but {counted} are counted")


def nothing_leaks(make: Make, case: StreamCase) -> None:
    """Rows have the published columns only; in a batch they are sorted by their cells."""
    log = run_stream(make, case)
    names = [*case.schema.published, *(["window"] if log.stream.scope else [])]
    hidden = [*case.schema.identifier, *([case.schema.person] if case.schema.person else [])]
    private = {str(row[name]) for row in case.rows for name in hidden}
    for _, batch in log.batches:
        require(all(list(row) == names for row in batch), f"a row has the columns {list(batch[0])}")
        require(not private & {str(cell) for row in batch for cell in row.values()}, "a person is published")
        shown = [[(row[name] is not None, str(row[name])) for name in ("ill", *case.schema.plain)] for row in batch]
        require(shown == sorted(shown), "the order of a batch does not come from its cells")
    text = log.stream.certificate.to_json()
    hides = not any(cell in text for cell in private) and str(SEED) not in text
    require(hides, "the certificate discloses a person or the seed")


def flush_empties(make: Make, case: StreamCase) -> None:
    """After the end no row waits, and no further row is accepted."""
    log = run_stream(make, case)
    require(log.waiting[-1] == 0 and log.stream.counters.pending == 0, "rows wait after the end")
    require_refusal(BadInput, lambda: log.stream.push(case.rows[0]), "a row is accepted after the end")


def memory_is_bounded(make: Make, case: StreamCase) -> None:
    """No more rows wait than the delay or the window allows."""
    log = run_stream(make, case)
    if log.stream.scope:
        most = log.stream.omega + log.stream.advance
    elif log.stream.timed:
        most = max(sum(0 <= now - then < log.stream.delta for then in case.seconds) for now in case.seconds)
    else:
        most = int(log.stream.delta)
    require(max(log.waiting) <= most, f"{max(log.waiting)} rows wait, at most {most} may")
    if log.stream.scope:
        require(len(log.stream.recent) <= most, "a window stores more than its rows")


def blocks_change_nothing(make: Make, case: StreamCase) -> None:
    """Rows in blocks of any size, as a frame, give the same rows in the same order, and the same counters."""
    log, rng = run_stream(make, case), np.random.default_rng(3)
    stream, out, block = build_stream(make, case), list[Row](), list[int]()

    def send() -> None:
        if block:
            out.extend(stream.push_many(as_columns(case, block[0], block[-1] + 1)).list_rows())
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
    require(out == log.rows, "blocks and single rows give different rows")
    require(stream.counters.record() == log.stream.counters.record(), "blocks and single rows give different counters")


def resume_changes_nothing(make: Make, case: StreamCase) -> None:
    """A stream that is saved and loaded, at any place, resumes with the same output."""
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
    require(out == log.rows, "a resumed stream gives different rows")
    require(stream.counters.record() == log.stream.counters.record(), "a resumed stream gives different counters")
    require(stream.certificate == log.stream.certificate, "a resumed stream gives a different certificate")


def secret_repeats(make: Make, case: StreamCase) -> None:
    """The same seed gives the same rows."""
    stream = build_stream(make, case)
    out = [*push_rows(stream, case), *stream.flush()]
    require(out == run_stream(make, case).rows, "the same seed gives different rows")


def certificate_is_true(make: Make, case: StreamCase) -> None:
    """The rolling certificate states the rows, batches, loss and levels of the published rows; no level in persons."""
    log = run_stream(make, case)
    stated, sizes = log.stream.certificate, [len(batch) for _, batch in log.batches]
    counts = (stated.rows, stated.suppressed) == (len(log.rows), log.stream.counters.suppressed)
    require(stated.ok and counts, "the certificate miscounts rows")
    same = (stated.classes.count, stated.classes.largest) == (len(sizes), max(sizes, default=0))
    require(same, "the certificate miscounts batches")
    model_of = {model.name: model for model in log.stream.models}
    for guarantee in stated.guarantees:
        recomputable = guarantee.measured is None or guarantee.status == "recomputable"
        require(recomputable, "the certificate states a level that no one can recompute")
        (model,) = (model_of[name] for name in guarantee.model)
        hidden = model.compares or (case.schema.person is not None and "persons" in model.needs)
        require((guarantee.status == "attested") == hidden, f"{guarantee.text}: it is {guarantee.status}")
        if "k_anonymity" in guarantee.model and not hidden and sizes and not log.stream.reuse:
            require(guarantee.measured == min(sizes), f"the smallest batch has {min(sizes)} rows, not {guarantee.measured}")


def replay_is_a_release(make: Make, case: StreamCase) -> None:
    """Replaying the same rows as a table gives the same cells as a certified release that passes an audit."""
    log, stream = run_stream(make, case), build_stream(make, case)
    if stream.timed:
        return
    try:
        release = replay(stream, as_columns(case, 0, len(case.rows)))
    except Unsatisfiable:
        require(not log.rows, "the table is refused, but the stream published rows")
        return
    names = list(log.rows[0])
    shown = Counter(tuple(text_of(row[name]) for name in names) for row in release.columns.list_rows())
    require(shown == Counter(tuple(text_of(row[name]) for name in names) for row in log.rows), "the release has different rows")
    suppressed = int((release.partition < 0).sum())
    require(suppressed == log.stream.counters.suppressed, "the partition has a different number of suppressed rows")
    rolling, final = log.stream.certificate.loss, release.certificate.loss
    same = abs(rolling.a - final.a) < 1e-9 and abs(rolling.b - final.b) < 1e-9
    require(same, f"the loss is {rolling} in the stream, but {final} in the release")
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
