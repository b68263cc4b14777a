"""Cells, rows and times that a stream is given: they mean the same in a row and in a frame, and what is none is refused.

Rows of a frame, one by one, bring NaN and NaT where a row has nothing.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import closeknit as ck
from closeknit.core.errors import BadInput

SCHEMA = ck.Schema(quasi={"age": ck.numeric(0, 100), "sex": ck.flat()}, sensitive={"ill": ck.flat()}, person="name")


ROW: dict[str, Any] = {"age": 30, "sex": "f", "ill": "flu", "name": "Ann"}


NOTHING = [float("nan"), "", pd.NA, pd.NaT, np.float64("nan")]


def castle(**params: Any) -> ck.Castle:
    return ck.Castle(SCHEMA, **{"k": 2, "delta": 3, "seed": 1, **params})


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
