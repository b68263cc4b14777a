"""Dates shifted per person: intervals are kept, the draw is keyed, and nothing publishes an unshifted date."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.date_shift import person_shift, shift_dates

SEED = 11**40
ROWS = {
    "pid": [1, 1, 2, 2, 3, 3],
    "seen": ["17.03.2024", "20.03.2024", "01.01.2024", "31.12.2023", "05.05.2024", None],
    "left": [
        "2024-03-18T10:30",
        "2024-03-25T08:00",
        "2024-01-05T00:10",
        "2024-01-01T12:00",
        "2024-05-09T09:09",
        "2024-05-11T23:59",
    ],
    "ill": ["a", "b", "a", "b", "a", "b"],
}
SCHEMA = ck.Schema(
    quasi={"seen": ck.date(format="%d.%m.%Y", shift=30)},
    sensitive={"left": ck.date(["minute", "day"], shift=30), "ill": ck.flat()},
    person="pid",
)


def days(texts):
    return [None if text is None else date.fromisoformat(text[:10]).toordinal() for text in texts]


def test_intervals_of_a_person_are_kept():
    columns, schema = shift_dates(Columns.of(ROWS), SCHEMA, SEED)
    seen, left = days(columns["seen"].cells()), days(columns["left"].cells())
    raw = days([None if text is None else "-".join(text.split(".")[::-1]) for text in ROWS["seen"]])
    for row, (person, was, now, out) in enumerate(zip(ROWS["pid"], raw, seen, left, strict=True)):
        shift = person_shift(str(person), 30, SEED)
        assert abs(shift) <= 30 and out - days(ROWS["left"])[row] == shift
        assert now is None if was is None else now - was == shift
    assert [text[10:] for text in columns["left"].cells()] == [text[10:] for text in ROWS["left"]]
    assert schema.encode(columns).quasi.shape == (6, 1)


def test_each_value_of_shift_has_a_draw_of_its_own():
    schema = SCHEMA.model_copy(update={"sensitive": {"left": ck.date(["minute", "day"], shift=9), "ill": ck.flat()}})
    moved, _ = shift_dates(Columns.of(ROWS), schema, SEED)
    shifts = [now - was for now, was in zip(days(moved["left"].cells()), days(ROWS["left"]), strict=True)]
    assert shifts == [person_shift(str(person), 9, SEED) for person in ROWS["pid"]]
    assert moved["seen"].cells() == shift_dates(Columns.of(ROWS), SCHEMA, SEED)[0]["seen"].cells()


def test_shifts_are_uniform_and_keyed():
    shifts = [person_shift(str(i), 3, SEED) for i in range(7000)]
    counts = [shifts.count(shift) for shift in range(-3, 4)]
    assert sum(counts) == 7000 and min(counts) > 820
    assert shifts[:50] != [person_shift(str(i), 3, SEED + 1) for i in range(50)]


def test_a_release_notes_the_shift_and_gives_no_guarantee_for_it():
    release = ck.anonymize(pa.table(ROWS), SCHEMA, [ck.KAnonymity(2)], seed=SEED)
    assert (
        "column 'seen': dates were shifted by up to 30 days, all dates of a person alike; no guarantee"
        in release.certificate.notes
    )
    assert ck.audit(release.frame, certificate=release.certificate).findings == ()
    shown = {text[:10] for text in release.frame["left"].to_pylist()}
    assert shown == {text[:10] for text in shift_dates(Columns.of(ROWS), SCHEMA, SEED)[0]["left"].cells()}


def test_mistakes_are_refused():
    with pytest.raises(ck.BadInput, match="no person column"):
        ck.anonymize(pa.table(ROWS), ck.Schema(**{**SCHEMA.forms(), "person": None, "drop": ["pid"]}), [ck.KAnonymity(2)])
    with pytest.raises(ck.BadInput, match="shift and bounds"):
        ck.date(shift=3, lo="2024-01-01", hi="2024-12-31")
    with pytest.raises(ck.BadInput, match="too small"):
        ck.date(shift=0)
    with pytest.raises(ck.BadInput, match="in a stream"):
        ck.Castle(ck.Schema(quasi={"day": ck.date(shift=3)}, person="pid"), k=2, delta=2)
    months = {**ROWS, "seen": ["2024-03"] * 6}
    schema = SCHEMA.model_copy(update={"quasi": {"seen": ck.date(level="month", shift=30)}})
    with pytest.raises(ck.BadInput, match="only known by its month"):
        ck.anonymize(pa.table(months), schema, [ck.KAnonymity(2)])
