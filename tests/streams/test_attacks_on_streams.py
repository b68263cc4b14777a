"""Faults that attacks on streams found, each as the smallest case that showed it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.errors import BadInput
from closeknit.streams.packing import DIGEST, from_bytes, to_bytes
from closeknit.streams.stream import Stream
from stream_runs import write_recipe

SCHEMA = ck.Schema(quasi={"age": ck.numeric(0, 100), "sex": ck.flat()}, sensitive={"ill": ck.flat()}, person="name")
ROW: dict[str, Any] = {"age": 30, "sex": "f", "ill": "flu", "name": "Ann"}
NOTHING = [float("nan"), "", pd.NA, pd.NaT, np.float64("nan")]


def castle(**params: Any) -> ck.Castle:
    return ck.Castle(SCHEMA, **{"k": 2, "delta": 3, "seed": 1, **params})


# What a cell means must not hang on whether it came in a row or in a frame: rows of a frame, one by one, bring NaN and NaT.


@pytest.mark.parametrize("nothing", NOTHING)
def test_no_value_is_no_second_value_of_a_diverse_class(nothing: Any) -> None:
    stream = castle(l=2)
    left = [stream.push({**ROW, "ill": ill, "name": name}) for ill, name in (("flu", "Ann"), (nothing, "Bob"))]
    assert [*left, stream.flush()] == [[], [], []]
    assert stream.counters.suppressed == 2


@pytest.mark.parametrize("nothing", NOTHING)
def test_a_class_without_a_known_value_discloses_none(nothing: Any) -> None:
    stream = castle(l=2)
    for ill, name in ((nothing, "Ann"), (None, "Bob")):
        stream.push({**ROW, "ill": ill, "name": name})
    assert [row["ill"] for row in stream.flush()] == [None, None]


@pytest.mark.parametrize("no_one", NOTHING)
def test_an_empty_name_is_not_a_person(no_one: Any) -> None:
    with pytest.raises(BadInput, match="a row has no person"):
        castle().push({**ROW, "name": no_one})


@pytest.mark.parametrize("nothing", NOTHING)
def test_a_missing_quasi_cell_is_written_as_one(nothing: Any) -> None:
    stream = castle()
    for name in ("Ann", "Bob"):
        stream.push({**ROW, "age": nothing, "sex": nothing, "name": name})
    assert [(row["age"], row["sex"]) for row in stream.flush()] == [(None, None)] * 2
    assert stream.counters.unknown == 0


@pytest.mark.parametrize(
    "cell",
    [
        np.float32(0.1),
        Decimal("3.50"),
        datetime(2020, 1, 1),
        pd.Timestamp("2020-01-01"),
        np.datetime64("2020-01-01"),
        -0.0,
        datetime(2020, 1, 1, 5),
        pd.Timestamp("2020-01-01T05:00:03.5"),
    ],
)
def test_a_cell_means_the_same_in_a_row_and_in_a_frame(cell: Any) -> None:
    for column in ("age", "sex", "ill", "name"):
        row = {**ROW, column: cell}
        one, many = castle(k=1, delta=9), castle(k=1, delta=9)
        one.push(row)
        many.push_many(pd.DataFrame({name: [value] for name, value in row.items()}))
        assert one.pending.persons(np.array([0])) == many.pending.persons(np.array([0]))
        assert one.flush() == many.flush()


@pytest.mark.parametrize("moment", [datetime(2020, 1, 1), datetime(2020, 1, 1, 5), "2020-01-01T05:00:00"])
def test_a_moment_is_no_number(moment: Any) -> None:
    stream = castle(k=1, delta=9)
    stream.push({**ROW, "age": moment})
    assert stream.flush() == [{"age": "*", "sex": "f", "ill": "flu"}]
    assert stream.counters.unknown == 1


@pytest.mark.parametrize("cell", [[1], {"a": 1}, (1,), {1}, b"x", object()])
@pytest.mark.parametrize("column", ["age", "sex", "ill", "name"])
def test_what_is_no_cell_is_refused_and_changes_nothing(cell: Any, column: str) -> None:
    stream = castle()
    with pytest.raises(BadInput, match=column):
        stream.push({**ROW, column: cell})
    assert (stream.position, stream.counters.rows_in, len(stream.pending)) == (0, 0, 0)


@pytest.mark.parametrize("row", [{}, None, 5, "age", [1]])
def test_what_is_no_row_is_refused(row: Any) -> None:
    with pytest.raises(BadInput):
        castle().push(row)


@pytest.mark.parametrize("now", ["noon", None, float("nan"), float("inf"), 10**400])
def test_what_is_no_time_is_refused(now: Any) -> None:
    with pytest.raises(BadInput, match="is not a time"):
        castle(delta="3s", clock="tick").tick(now)


@pytest.mark.parametrize("text", ["[1, 2]", "*"])
def test_a_text_that_reads_like_a_written_cell_is_not_written(text: str) -> None:
    table = pd.DataFrame([{**ROW, "sex": text, "name": name} for name in "abcd"])
    stream = castle()
    left = [*stream.push_many(table)["sex"], *(row["sex"] for row in stream.flush())]
    assert left == ["*"] * 4
    assert stream.counters.unknown == 4
    assert set(ck.replay(castle(), table).frame["sex"]) == {"*"}


# Compiled code trusts a checkpoint: whatever is not what was written is refused before it is used.


def kept(path: Path, stream: Stream) -> bytes:
    for i in range(31):
        stream.push({**ROW, "age": i * 37 % 100, "ill": "abc"[i % 3], "name": i % 7})
    stream.save(path)
    return path.read_bytes()


STREAMS = [
    lambda: castle(delta=20, k=3, reuse="held", order="input"),
    lambda: ck.SabreWindow(SCHEMA, [ck.TCloseness("ill", 0.4)], omega=16, advance=8, k=2, seed=1),
]


@pytest.mark.parametrize("made", STREAMS)
def test_arrays_of_a_checkpoint_that_changed_places_are_refused(made: Any, tmp_path: Path) -> None:
    stream = made()
    data = kept(tmp_path / "kept", stream)
    with zipfile.ZipFile(io.BytesIO(data[DIGEST:])) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    names = [name for name in parts if name != "plain.npy"]
    for one, other in pairwise(names):
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w") as file:
            for name in parts:
                file.writestr(name, parts[other if name == one else one if name == other else name])
        for head in (b"", data[:DIGEST]):
            (tmp_path / "kept").write_bytes(head + memory.getvalue())
            with pytest.raises(BadInput, match="not a checkpoint"):
                type(stream).load(tmp_path / "kept")


@pytest.mark.parametrize("made", STREAMS)
def test_a_checkpoint_with_any_other_bit_is_refused(made: Any, tmp_path: Path) -> None:
    stream = made()
    data = kept(tmp_path / "kept", stream)
    for place in range(0, len(data), 97):
        (tmp_path / "kept").write_bytes(data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :])
        with pytest.raises(BadInput, match="not a checkpoint"):
            type(stream).load(tmp_path / "kept")


def test_a_stream_that_was_saved_is_no_run_to_go_on_with(tmp_path: Path) -> None:
    recipe, home = write_recipe(tmp_path), tmp_path / "ck"
    requested = Recipe.read(recipe)
    assert requested.stream is not None
    home.mkdir()
    requested.stream.build(requested.schema, requested.models, requested.seed).save(home / "checkpoint")
    run = CliRunner().invoke(app, ["stream", str(recipe), "--checkpoint", str(home)], input="")
    assert (run.exit_code, "has no place in an input" in run.stderr) == (2, True)


@pytest.mark.parametrize("log", ["noon", '{"now": 1}', "[1]"])
def test_a_log_that_is_none_is_refused(log: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    recipe = write_recipe(tmp_path, stream={"castle": {"k": 4, "delta": "40s"}})
    words = ["stream", str(recipe), "--checkpoint", str(tmp_path / "ck"), "-o", str(tmp_path / "out" / "rows.ndjson")]
    (tmp_path / "in.ndjson").write_text(json.dumps({**ROW}) + "\n", encoding="utf-8")
    assert CliRunner().invoke(app, [*words, "-i", str(tmp_path / "in.ndjson")]).exit_code == 0
    (ticks,) = (tmp_path / "ck").glob("ticks-*")
    ticks.write_text(log + "\n", encoding="utf-8")
    run = CliRunner().invoke(app, [*words, "-i", str(tmp_path / "in.ndjson")])
    assert (run.exit_code, "this is not a log of ticks" in run.stderr) == (2, True)


def test_what_is_packed_is_read_back_whole_or_not_at_all() -> None:
    with pytest.raises(ValueError):
        from_bytes(to_bytes([1])[:-1])


@pytest.mark.parametrize("option", ["-o", "--rejects", "--counters", "--certificate"])
@pytest.mark.parametrize("over", ["in.ndjson", "recipe.yaml"])
def test_nothing_is_written_over_what_is_read(option: str, over: str, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path)
    (tmp_path / "in.ndjson").write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    before = (tmp_path / over).read_bytes()
    words = ["stream", str(recipe), "-i", str(tmp_path / "in.ndjson"), option, str(tmp_path / "." / over), "--force"]
    run = CliRunner().invoke(app, words)
    assert (run.exit_code, "are the same file" in run.stderr, (tmp_path / over).read_bytes()) == (2, True, before)


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_input_or_output_is_one_sentence(closed: str, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path)
    run = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "from closeknit.cli.commands import main; main()" stream "{recipe}" {closed}'],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 2
    assert run.stderr.startswith("closeknit: standard ") and run.stderr.count("\n") == 1


@pytest.mark.parametrize("requested", [ck.KAnonymity(2), None, "k_anonymity", {"k_anonymity": 2}, [ck.KAnonymity]])
def test_guarantees_that_are_no_list_are_refused_in_a_sentence(requested: Any) -> None:
    calls = [
        lambda: ck.SabreWindow(SCHEMA, requested, omega=4, advance=2),
        lambda: ck.anonymize(pd.DataFrame([ROW, ROW]), SCHEMA, requested),
        lambda: ck.compare(pd.DataFrame([ROW, ROW]), SCHEMA, requested),
        *([] if requested is None else [lambda: castle(models=requested)]),
    ]
    for call in calls:
        with pytest.raises(BadInput, match=r"is no list of guarantees|the model KAnonymity is not called"):
            call()


@pytest.mark.parametrize("what", ["eta", "mu"])
def test_room_that_no_machine_has_is_refused(what: str) -> None:
    with pytest.raises(BadInput, match="at most 1,000,000"):
        castle(**{what: 10**12})


def test_a_clock_without_a_time_is_named() -> None:
    with pytest.raises(BadInput, match="is not a time"):
        castle(delta="3s", clock=lambda: None).push(ROW)


def test_an_empty_frame_brings_nothing_and_takes_nothing() -> None:
    stream, rows = castle(), pd.DataFrame([{**ROW, "name": name} for name in "abcd"])
    assert len(stream.push_many(rows.iloc[:0])) == 0
    alone = castle().push_many(rows)
    assert stream.push_many(rows).equals(alone) and len(alone)


def test_an_empty_table_is_neither_released_nor_audited() -> None:
    none = pd.DataFrame([ROW]).iloc[:0]
    for call in (lambda: ck.anonymize(none, SCHEMA, [ck.KAnonymity(2)]), lambda: ck.audit(none, SCHEMA, [ck.KAnonymity(2)])):
        with pytest.raises(BadInput, match="has no rows"):
            call()
