"""Rows, clocks and values that are not as declared: each has a behaviour and a counter, in every stream method."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import closeknit as ck
from closeknit.streams import drift
from closeknit.streams.drift import UnknownValue
from closeknit.streams.input_rules import InputRules
from closeknit.streams.run_clock import RunClock
from closeknit.streams.stream import Stream
from closeknit.streams.stream_request import StreamRequest
from stream_faults import SCHEMA, K, Output, as_columns, build, check_batches, every_method, every_timed, people, start
from stream_runs import as_ndjson
from streams_checked import Watched, schema

# values outside the declared domains -----------------------------------------------------------------------------------


@every_method
def test_new_values_are_generalized_counted_and_raise_an_alarm_above_the_stated_rate(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(drift, "SPAN", 100)
    rows = people(500)
    for i, row in enumerate(rows):  # 2 % of the first 300 rows, then 10 %
        row["city"] = "Paris" if i % (50 if i < 300 else 10) == 7 else row["city"]
    one, many = build(name, InputRules(alarm=0.05)), build(name, InputRules(alarm=0.05))
    out = [row for raw in rows for row in one.push(raw)] + one.flush()
    assert one.counters.unknown_of == {"city": 26} and one.counters.alarms == {"city": 2}
    assert caplog.messages[0].startswith("column 'city': more than 5% of 100 rows have a value outside the declared domain")
    strange = {row["id"] for row in rows if row["city"] == "Paris"}
    assert out and all(row["city"] == "*" for row in out if row["id"] in strange)
    assert "column 'city': in 2 spans of rows too many values were outside its domain" in one.certificate.notes
    for first in range(0, 500, 130):  # across the ends of spans
        many.push_many(as_columns(rows[first : first + 130]))
    many.flush()
    assert many.counters.record() == one.counters.record()


@every_method
def test_new_values_below_the_rate_raise_no_alarm(name: str) -> None:
    stream, rows = build(name, InputRules(alarm=0.01)), people(200)
    for i in range(10):  # the eleventh of a thousand rows would be too many
        rows[i * 9]["city"] = "Paris"
    stream.push_many(as_columns(rows))
    assert stream.counters.unknown == 10 and stream.counters.alarms == {} and stream.counters.list_faults() == []
    stream.push({**rows[0], "city": "Lyon"})
    assert stream.counters.alarms == {"city": 1}


@every_method
def test_a_row_with_a_new_value_may_be_refused(name: str, tmp_path: Path) -> None:
    rules, rows = InputRules(unknown="refuse"), people(60)
    stream = build(name, rules)
    stream.push(rows[0])
    with pytest.raises(UnknownValue, match="column 'city': a value is outside the declared domain"):
        stream.push({**rows[1], "city": "Paris"})
    with pytest.raises(UnknownValue, match="column 'city', row 3"):
        stream.push_many(as_columns([*rows[1:3], {**rows[3], "city": "Paris"}]))
    assert (stream.counters.rows_in, stream.counters.refused, stream.position) == (1, 1, 1)
    stream.save(tmp_path / "kept")
    assert Stream.load(tmp_path / "kept").rules == rules
    rows[7]["city"] = rows[30]["city"] = "Paris"
    run = start(tmp_path / "run", build(name, rules), rows, output := Output())
    assert run.run() and run.set_aside == run.stream.counters.refused == 2
    assert sorted(output.ids) == [i for i in range(60) if i not in (7, 30)] and run.stream.counters.unknown_of == {"city": 2}
    assert "2 rows with a value outside its declared domain were refused" in run.stream.certificate.notes


@every_method
def test_a_certificate_notes_formulas_and_values_that_look_alike(name: str, tmp_path: Path) -> None:
    rows = people(200)
    diverse = {} if name.endswith("window") else {"models": [ck.KAnonymity(K), ck.LDiversity("ill", 2)]}
    stream, table = build(name, **diverse), build(name, **diverse)
    stream.push_many(as_columns(rows[:100]))
    plain = stream.certificate.notes
    for row in rows[100:]:
        row["ill"] = {"flu": "Flu", "gout": "=1+1"}.get(row["ill"], row["ill"]) if row["id"] % 2 else row["ill"]
    stream.save(tmp_path / "kept")
    stream = Stream.load(tmp_path / "kept")
    for row in rows[100:]:
        stream.push(row)
    stream.flush()
    formula, risk, alike = (note for note in stream.certificate.notes if "ill" in note or "spreadsheet" in note)
    assert formula == "column 'ill': some cells begin like a spreadsheet formula (=, +, -, @, tab or carriage return)"
    assert risk == "a spreadsheet that opens the published rows may run them"
    assert alike.startswith(f"column 'ill': in {stream.counters.alike['ill']} classes some of its values look alike")
    assert not any("spreadsheet" in note or "look alike" in note for note in plain)
    replayed = ck.replay(table, as_columns(rows)).certificate.notes
    assert sum("begin like a spreadsheet formula" in note for note in replayed) == 1
    assert sum("look alike" in note for note in replayed) == 1


# late and corrected rows -----------------------------------------------------------------------------------------------


@every_method
def test_a_correction_is_not_published(name: str, tmp_path: Path) -> None:
    """Of a pending or published row: the output is that of a stream without corrections, so nothing can be subtracted."""
    rows, chance = people(200), random.Random(name)
    corrected: list[dict[str, Any]] = []
    for i, row in enumerate(rows):
        corrected.append(row)
        if chance.random() < 0.2:
            other = rows[chance.randrange(max(0, i - 100), i + 1)]
            corrected.append({**other, "age": 1 + other["age"], "ill": "leprosy", "id": 1000 + i})
    straight, output = Output(), Output()
    start(tmp_path / "straight", build(name), rows, straight).run()
    run = start(tmp_path / "run", build(name, InputRules(key="record")), corrected, output)
    assert run.run() and output.batches == straight.batches
    assert run.stream.counters.repeated == run.set_aside == len(corrected) - 200 > 20
    check_batches(output, rows, run.stream)
    why = [json.loads(line)["why"] for line in (tmp_path / "run" / "rejects").read_text().splitlines()]
    assert set(why) == {"'record' repeats a key: a correction of an earlier row is not published"}
    notes = " ".join(run.stream.certificate.notes)
    assert f"{run.set_aside} rows that repeat a key or position were refused" in notes
    assert "rows that repeat one of the last 100,000 keys were refused; older keys were not compared" in notes


def test_keys_are_remembered_over_a_restart_and_forgotten_in_their_order(tmp_path: Path) -> None:
    rows = people(120)
    rules, stops = InputRules(key="record", remember=100), iter([False] * 2 + [True] * 9)
    stream = build("knit_stream", rules)
    run = start(tmp_path, stream, rows, output := Output(), kept=True)
    run.stopping = lambda: next(stops)
    assert run.run() is False
    run.folder.close()  # type: ignore[union-attr]
    again = [{**rows[i], "id": 1000 + i} for i in (119, 20, 19)]  # the oldest of the hundred is 20
    (tmp_path / "more").write_bytes(as_ndjson(again))
    resumed = start(tmp_path, stream, [*rows, *again], output, kept=True)
    assert resumed.run() and resumed.stream.counters.repeated == 2
    assert sorted(output.ids) == [*range(120), 1019]


def test_a_row_that_was_refused_may_be_corrected(tmp_path: Path) -> None:
    rows = people(30)
    rows[4]["city"] = "Paris"
    rows.insert(5, {**rows[4], "city": "Oslo"})
    rows.insert(6, {**rows[4], "city": "Rome", "id": 1000})
    run = start(tmp_path, build("castle", InputRules(unknown="refuse", key="record")), rows, output := Output())
    assert run.run() and sorted(output.ids) == list(range(30))
    assert (run.stream.counters.refused, run.stream.counters.repeated) == (1, 1)


def with_times(rows: list[dict[str, Any]], late: dict[int, float]) -> list[dict[str, Any]]:
    return [{**row, "seen": late.get(i, 1000.0 + i)} for i, row in enumerate(rows)]


@every_timed
def test_late_rows_are_refused_or_published_as_if_they_were_as_old_as_the_last(name: str, tmp_path: Path) -> None:
    late = {50: 990.0, 51: 1020.0, 120: 1119.0}
    rows = people(150)
    refusing = start(tmp_path / "refuse", build(name, delta="40s"), with_times(rows, late), refused := Output(), "seen")
    assert refusing.run() and refusing.stream.counters.late == refusing.set_aside == 2  # 119 is as old as the row before it
    assert not {50, 51} & set(refused.ids)
    rules = InputRules(late="accept")
    accepting = start(
        tmp_path / "accept", build(name, rules, delta="40s"), with_times(rows, late), accepted := Output(), "seen"
    )
    assert accepting.run() and accepting.stream.counters.late == 2 and accepting.set_aside == 0
    check_batches(accepted, rows, accepting.stream)
    moved = dict.fromkeys((50, 51), 1049.0) | {120: 1119.0}
    start(tmp_path / "moved", build(name, delta="40s"), with_times(rows, moved), straight := Output(), "seen").run()
    assert accepted.batches == straight.batches and "2 rows were late" in accepting.stream.certificate.notes


@every_timed
def test_a_time_far_ahead_needs_a_second_row(name: str, tmp_path: Path) -> None:
    rows = people(150)
    ahead = {60: 4e9, **{i: 9000.0 + i for i in range(100, 150)}}
    free = start(tmp_path / "free", build(name, delta="40s"), with_times(rows, ahead), out := Output(), "seen")
    assert (
        free.run() and free.stream.counters.late == 89
    )  # a single wrong time makes all rows late, and none is in a small class
    check_batches(out, rows, free.stream)
    rules = InputRules(jump="1m")
    run = start(tmp_path / "run", build(name, rules, delta="40s"), with_times(rows, ahead), output := Output(), "seen")
    assert run.run() and run.stream.counters.early == run.set_aside == 2  # row 100 is not confirmed before row 101
    check_batches(output, rows, run.stream)
    assert not {60, 100} & set(output.ids) and run.stream.counters.late == 0 and run.stream.counters.rows_in == 148


def test_rules_about_time_need_a_time() -> None:
    with pytest.raises(ck.BadInput, match="rules on late rows and jumps need a column for the time"):
        StreamRequest.of({"k": 3, "delta": "5s", "rules": {"late": "accept"}}).build(SCHEMA, [], 1)
    with pytest.raises(ck.BadInput, match="rules has no parameter 'keys'; did you mean 'key'"):
        StreamRequest.of({"k": 3, "rules": {"keys": "record"}})


# clocks ----------------------------------------------------------------------------------------------------------------


@every_timed
@pytest.mark.parametrize("jump", [-3600.0, -0.5, 3600.0])
def test_a_clock_that_jumps_extends_no_delay_and_makes_no_small_class(name: str, jump: float) -> None:
    """The delay is checked by the true time after a jump back, and by the clock after a jump forwards."""
    shown, wrong = [1000.0], [0.0]
    cls = {"castle": ck.Castle, "knn_stream": ck.KnnStream, "knit_stream": ck.KnitStream}[name]
    stream = cls(schema(), k=K, delta="20s", seed=3, clock=lambda: shown[0] + wrong[0])  # type: ignore[operator]
    watched, chance = Watched(stream), random.Random(name)
    for i in range(160):
        wrong[0] += jump if i == 70 else 0.0
        shown[0] += 0.0 if i == 70 else chance.choice([0.0, 0.25, 1.0])  # what elapses between two readings is not known
        row = {"age": chance.randrange(90), "city": "Rome", "sex": "f", "ill": "flu", "name": f"P{chance.randrange(50)}"}
        watched.push(row, shown[0] + max(wrong[0], 0.0))
        if chance.random() < 0.2:
            watched._check(stream.tick(shown[0] + wrong[0]), shown[0] + max(wrong[0], 0.0))
    watched.flush()
    assert stream.counters.clock_jumps == (jump < 0) and stream.counters.clock_jump_most <= -min(jump, 0.0)
    assert stream.counters.overdue == 0 or jump > 0


@every_timed
def test_the_command_follows_a_clock_that_no_one_can_set(name: str, tmp_path: Path) -> None:
    rows = people(200)

    def run(folder: str, jumps: dict[int, float]) -> tuple[Output, Stream]:
        readings, wrong = [0], [0.0]

        def wall() -> float:
            readings[0] += 1
            wrong[0] += jumps.get(readings[0], 0.0)
            return 1000.0 + readings[0] + wrong[0]

        clock = RunClock(wall, lambda: float(readings[0]))
        started = start(tmp_path / folder, build(name, delta="20s"), rows, output := Output(), clock=clock, chunk=300)
        assert started.run()
        check_batches(output, rows, started.stream)
        return output, started.stream

    straight, without = run("straight", {})
    jumping, stream = run("jumping", {20: 7200.0, 35: -9000.0, 60: 0.4})
    assert jumping.batches == straight.batches and len(straight.batches) > 5
    assert without.counters.clock_jumps == 0 and (stream.counters.clock_jumps, stream.counters.clock_jump_most) == (2, 9000.0)
    assert "the clock jumped 2 times, by at most 9,000 seconds; delays did not follow it" in stream.certificate.notes


@pytest.mark.parametrize("rule", [{"key": "record"}, {"late": "accept"}, {"jump": "1h"}, {"patience": "2h"}])
def test_rules_of_inputs_and_outputs_are_refused_where_no_one_follows_them(rule: dict[str, Any]) -> None:
    stream = build("castle", InputRules(**rule))
    for act in (lambda: stream.push(people(1)[0]), lambda: stream.push_many(as_columns(people(5)))):
        with pytest.raises(ck.BadInput, match=f"the rule {next(iter(rule))}=.* belongs to an input and output"):
            act()
    assert stream.position == 0
