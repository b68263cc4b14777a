"""Raw dates in every usual way of writing, their order of day and month, times of day, and what is published of them."""

from __future__ import annotations

from datetime import date as day
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.api.suggestion import suggest
from closeknit.core.columns import Columns
from closeknit.core.dates import LEVELS, Date, date
from closeknit.core.errors import BadInput
from closeknit.core.kinds import BadValue
from closeknit.io.files import write_csv


def texts(*cells: str) -> Any:
    return np.array(cells, dtype=object)


FORMS = [
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%Y/%m/%d",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%fZ",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
]


@given(st.sampled_from(FORMS), st.lists(st.datetimes(datetime(1900, 1, 1)), max_size=5))
def test_every_way_of_writing_gives_the_same_days(form: str, moments: list[datetime]) -> None:
    moments = [datetime(1959, 1, 20, 13, 45), *moments]  # a day that is no month
    raw = [f"{moment:{form.replace('%Y', format(moment.year, '04'))}}" for moment in moments]
    for kind in (date(), date(format=form)):
        domain, codes = kind.bind(texts(*raw))
        assert [domain.texts[code] for code in codes] == [moment.date().isoformat() for moment in moments]


@pytest.mark.parametrize(
    ("format", "raw"),
    [
        ("%d %b %Y", "17 Mar 2024"),
        ("%d%b%Y", "17MAR2024"),
        ("%B %d, %Y", "March 17, 2024"),
        ("%Y%m%d", "20240317"),
        ("%d.%m.%Y", "17.03.2024 13:45"),
        ("%Y-%m-%d %H:%M:%S%z", "2024-03-17 23:30:00+02:00"),
    ],
)
def test_formats_that_are_said(format: str, raw: str) -> None:
    assert date(format=format).bind(texts(raw))[0].texts == ("2024-03-17",)
    assert date(["month", "year"], format=format).bind(texts(raw))[0].texts == ("2024-03",)


@pytest.mark.parametrize(
    ("cells", "index", "words"),
    [
        (["03/04/2024", "05/06/2024"], 0, "2024-04-03 with the day first and 2024-03-04 with the month first"),
        (["01/01/2024", "05.06.2024"], 1, "has another format than '01/01/2024'"),
        (["20/01/1959", "01/20/1959"], 1, "in another order than '20/01/1959'"),
        (["2024-03-17", "20.01.1959"], 1, "has another format than '2024-03-17'"),
        (["20.01.1959", "1959-01-20"], 1, "has another format than '20.01.1959'"),
        (["20.01.1959", "30.02.1959"], 1, "'30.02.1959' is not a date"),
        (["20.01.1959", "soon"], 1, "'soon' is not a date"),
    ],
)
def test_what_cannot_be_read_in_one_way_is_refused(cells: list[str], index: int, words: str) -> None:
    with pytest.raises(BadValue) as refused:
        date().bind(texts(*cells))
    assert refused.value.index == index and words in refused.value.what


def test_both_ways_to_say_it_are_named() -> None:
    with pytest.raises(BadValue) as refused:
        date().bind(texts("03/04/2024"))
    assert 'format: "%d/%m/%Y" or format: "%m/%d/%Y"' in refused.value.right
    assert date(format="%d/%m/%Y").bind(texts("03/04/2024"))[0].texts == ("2024-04-03",)
    assert date(format="%m/%d/%Y").bind(texts("03/04/2024"))[0].texts == ("2024-03-04",)
    assert date().bind(texts("03/03/2024"))[0].texts == ("2024-03-03",)  # both readings are one


@pytest.mark.parametrize("format", ["%d.%m", "%q", "%Y-%Y-%d", "%d.%m.%y", "day", "", 5, "%m %b %Y"])
def test_wrong_formats_are_refused(format: Any) -> None:
    with pytest.raises(BadInput, match="date has format"):
        date(format=format)


def test_hours_and_minutes_are_levels() -> None:
    kind = date(["hour", "day", "month"], lo="2024-03-17", hi="2024-03-18")
    domain, codes = kind.bind(texts("2024-03-17 13:45", "2024-03-17T13:10:09", "2024-03-18 00:00"))
    assert domain.texts == ("2024-03-17T13", "2024-03-18T00") and codes.tolist() == [0, 0, 1]
    assert kind.losses(["2024-03-17T13", "2024-03-17", "2024-03"])[:, 0].tolist() == [0, 0.5, 1]
    assert date(["minute", "hour"]).bind(texts("17.03.2024 13:45"))[0].texts == ("2024-03-17T13:45",)
    assert kind.bind(kind.between_bounds())[0].size == 48
    with pytest.raises(BadValue, match="'2024-03-17' is not as fine as the level hour"):
        kind.bind(texts("2024-03-17"))
    assert LEVELS[:4] == ("second", "minute", "hour", "day") and Date().finest == "day"


def test_datetimes_are_cut_to_the_day() -> None:
    times = np.array(["2024-03-17T00:01", "2024-03-17T23:59"], dtype="datetime64[m]")
    assert date().bind(times)[0].texts == ("2024-03-17",)
    assert date(["hour", "day"]).bind(times)[0].texts == ("2024-03-17T00", "2024-03-17T23")


ROWS = [f"{1 + i % 28:02}/{1 + i % 12:02}/{1950 + i % 5} 13:{i % 60:02}" for i in range(40)]


@pytest.fixture(scope="module")
def table() -> Columns:
    return Columns.of({"born": list(ROWS), "seen": list(ROWS), "ill": ["flu", "gout"] * 20})


@pytest.mark.parametrize("bounds", [{}, {"lo": "1950-01-01", "hi": "1959-12-31"}])
@pytest.mark.parametrize("levels", [None, ["hour", "day", "month", "year", "decade"]])
def test_a_release_shows_iso_dates_and_its_audit_needs_no_format(
    tmp_path: Path, table: Columns, bounds: dict[str, str], levels: list[str] | None
) -> None:
    born = ck.date(levels, **bounds, format="%d/%m/%Y %H:%M")
    schema = ck.Schema(quasi={"born": born}, sensitive={"seen": ck.date(format="%d/%m/%Y"), "ill": ck.flat()})
    release = ck.anonymize(table, schema, [ck.KAnonymity(3)], seed=2**70)
    assert "format" not in str(release.certificate.columns) and "/" not in str(release.columns["born"].cells())
    assert sorted(release.columns["seen"].cells())[0] == "1950-01-01"
    release.save(tmp_path / "out", report=False)
    assert ck.audit(tmp_path / "out" / "release.csv", certificate=release.certificate).ok
    assert ck.audit(release.frame, schema, [ck.KAnonymity(3)]).ok
    found = ck.attack(release, original=table, schema=schema)
    assert any(each.attack == "candidate_rows" for each in found.findings)
    people = Columns.of({"born": list(ROWS)})
    assert "population linkage" not in " ".join(ck.attack(release, population=people).untried)


def test_suggest_writes_the_format_and_asks_where_it_cannot_know(tmp_path: Path, table: Columns) -> None:
    unclear = Columns.of({"born": [f"0{1 + i % 9}/0{1 + i % 8}/1950" for i in range(40)], "ill": ["flu", "gout"] * 20})
    found = suggest(table)
    assert found.schema.quasi["born"] == ck.date(format="%d/%m/%Y")
    guess = suggest(unclear).reasons["born"]
    assert guess.kind == "date" and not guess.sure and "with the day first" in guess.reason
    write_csv(unclear, tmp_path / "t.csv")
    (tmp_path / "r.yaml").write_text(suggest(unclear).to_recipe("t.csv"), encoding="utf-8")
    recipe = Recipe.read(tmp_path / "r.yaml")
    with pytest.raises(BadInput, match=r"column 'born', row 9.*choose one: format"):
        ck.api.run(recipe)
    forms = yaml.safe_load((tmp_path / "r.yaml").read_text(encoding="utf-8"))
    forms["schema"]["quasi"]["born"] = {"date": {"format": "%d/%m/%Y"}}
    assert Recipe.of(forms).schema.quasi["born"] == ck.date(format="%d/%m/%Y")


def test_a_stream_reads_iso_dates_or_those_of_its_format() -> None:
    days = [str(day(2024, 1, 1 + i)) for i in range(12)]
    for format, raw in ((None, days), ("%d.%m.%Y", [f"{text[8:]}.{text[5:7]}.{text[:4]}" for text in days])):
        schema = ck.Schema(
            quasi={"seen": ck.date(lo="2024-01-01", hi="2024-12-31", format=format)}, sensitive={"ill": ck.flat()}
        )
        release = ck.replay(ck.Castle(schema, k=3, delta=6, seed=2**70), Columns.of({"seen": list(raw), "ill": ["flu"] * 12}))
        assert release.certificate.ok and "format" not in str(release.certificate.columns)
        assert all(str(cell).startswith("2024") for cell in release.columns["seen"].cells())
    undeclared = ck.Schema(quasi={"seen": ck.date(lo="2024-01-01", hi="2024-12-31")}, sensitive={"ill": ck.flat()})
    stream = ck.Castle(undeclared, k=2, delta=2, seed=2**70)
    left = [*stream.push({"seen": "20.01.2024", "ill": "flu"}), *stream.push({"seen": "21.01.2024", "ill": "flu"})]
    assert {row["seen"] for row in [*left, *stream.flush()]} == {"*"}  # one row alone cannot show a format: unknown
