"""Durations: how they are read, in which unit they are written, and that a release of them is audited."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import closeknit as ck
from closeknit.api.suggestion import suggest
from closeknit.core.columns import Columns
from closeknit.core.duration_texts import read_duration
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.kind_forms import kind_form, kind_from
from closeknit.io.frames import from_frame

WAITED = [f"PT{i % 4}H{3 * i % 60}M" for i in range(24)]
ILL = ["flu", "gout", "acne"] * 8


def texts(*values: str) -> np.ndarray:
    return np.array(values, dtype=object)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT1H30M", 5400),
        ("PT0S", 0),
        ("PT0.5S", Fraction(1, 2)),
        ("PT1,5H", 5400),
        ("P1DT2H", 93_600),
        ("P2W", 14 * 86_400),
        ("-PT5M", -300),
        ("1:30:00", 5400),
        ("100:00:01", 360_001),
        ("0:00:00.25", Fraction(1, 4)),
        ("1 day, 2:00:00", 93_600),
        ("3 days 04:05:06", 273_906),
        ("P", None),
        ("PT", None),
        ("P1Y", None),
        ("P1M", None),
        ("1:30", None),
        ("1:60:00", None),
        ("90", None),
        ("PT1H30", None),
        ("PT1H 30M", None),
    ],
)
def test_texts(text: str, seconds: Any) -> None:
    assert read_duration(text) == seconds


@given(st.timedeltas(min_value=datetime.timedelta(0), max_value=datetime.timedelta(days=9999)))
def test_what_python_prints_is_read(length: datetime.timedelta) -> None:
    assert read_duration(str(length)) == Fraction(length // datetime.timedelta(microseconds=1), 10**6)


def test_numbers_count_the_unit() -> None:
    domain, codes = ck.duration("minute").bind(texts("PT1H30M", "0:45:00", "12", "PT720S"))
    assert domain.texts == ("12", "45", "90") and codes.tolist() == [2, 1, 0, 0]
    assert ck.duration("hour").bind(texts("PT20M"))[0].numbers == pytest.approx([1 / 3])
    assert ck.duration("day").bind(np.array([3, 1]))[0].texts == ("1", "3")
    assert ck.duration("minute", 0, 100).losses(["[45, 90]", "12", "*", ""])[:, 0].tolist() == [0.45, 0, 1, 0]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("P1Y2M", "years or months, which have no fixed length; write it in days"),
        ("P3M", "years or months"),
        ("soon", "'soon' is not a duration; write it as PT1H30M, 1:30:00 or a number of minutes"),
        ("1:30", "is not a duration"),
        ("[1, 2]", "looks like a written range"),
        ("PT9H", "outside the column's bounds"),
    ],
)
def test_what_is_refused(raw: str, words: str) -> None:
    with pytest.raises(BadValue) as refused:
        ck.duration("minute", 0, 500).bind(texts("PT1H", raw))
    assert words in str(refused.value.locate("waited", 2)) and refused.value.index == 1
    with pytest.raises(BadInput, match="unit='week'"):
        ck.duration("week")


def test_recipes_read_it_back() -> None:
    kind = ck.duration("minute", 0, 600, step=15, snap=True)
    assert kind_from(kind_form(kind)) == kind and kind_form(ck.duration()) == "duration"


def test_frames_have_durations_of_their_own() -> None:
    lengths = [datetime.timedelta(minutes=90), datetime.timedelta(seconds=-1, microseconds=500), None]
    iso = ["PT5400S", "-PT0.9995S", None]
    assert from_frame(pa.table({"w": pa.array(lengths, pa.duration("us"))}))["w"].cells() == iso
    assert from_frame(pd.DataFrame({"w": pd.Series(lengths, dtype="timedelta64[ns]")}))["w"].cells() == iso
    assert from_frame(pl.DataFrame({"w": lengths}, schema={"w": pl.Duration("ms")}))["w"].cells() == [iso[0], "-PT0.999S", None]
    assert [read_duration(text) for text in iso[:2] if text] == [5400, Fraction(-9995, 10_000)]


def test_a_release_is_audited(tmp_path: Path) -> None:
    table = Columns.of({"waited": WAITED, "stay": [f"{i}:00:00" for i in range(24)], "ill": ILL})
    schema = ck.Schema(quasi={"waited": ck.duration("minute")}, sensitive={"stay": ck.duration("hour"), "ill": ck.flat()})
    release = ck.anonymize(table, schema, [ck.KAnonymity(3), ck.TCloseness("stay", 0.4)], seed=2**80)
    assert release.frame.column("stay").to_pylist() != [] and set(release.frame.column("stay").to_pylist()) == set(range(24))
    release.save(tmp_path / "out")
    assert ck.audit(tmp_path / "out").ok
    assert release.certificate.columns["quasi"]["waited"] == {"duration": {"unit": "minute"}}
    assert "column 'waited': both ends of a range are true values of rows in the class" in release.certificate.notes
    assert ck.attack(release, original=table, schema=schema).findings
    finer = ck.Schema(quasi={"waited": ck.duration("hour")}, sensitive={"ill": ck.flat()}, drop=["stay"])
    written = ck.anonymize(table, finer, [ck.KAnonymity(3)], seed=2**80)
    assert "a step proposed from the data" in " ".join(written.certificate.notes), "decimals end at steps"


def test_a_stream_reads_durations() -> None:
    schema = ck.Schema(quasi={"waited": ck.duration("minute", 0, 300)}, sensitive={"ill": ck.flat()})
    stream = ck.Castle(schema, k=2, delta=4, seed=2**70)
    rows = [stream.push({"waited": text, "ill": "flu"}) for text in ("PT1H", "PT70M", 80, "1:30:00", "soon", "PT9H")]
    written = [row["waited"] for out in [*rows, stream.flush()] for row in out]
    assert len(written) == 6 and all(cell == "*" or 60 <= int(cell.strip("[]").split(", ")[0]) <= 90 for cell in written)
    assert "*" in written, "what is no duration, or outside the bounds, is a leaf of its own"


def test_suggest_chooses_the_coarsest_unit() -> None:
    for cells, unit in (
        (WAITED, "minute"),
        (["1:00:00", "2:00:00"], "hour"),
        (["P2D", "P14D"], "day"),
        (["0:00:01.5"], "second"),
    ):
        assert suggest(Columns.of({"waited": list(cells)})).schema.quasi["waited"] == ck.duration(unit)
    doubtful = suggest(Columns.of({"waited": [*WAITED, "P1Y"]})).reasons["waited"]
    assert doubtful.kind == "duration" and not doubtful.sure and "row 25" in doubtful.reason
