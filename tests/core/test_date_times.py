"""Date-times: their levels down to seconds, what is read and written of them, and that a release of them is audited."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import closeknit as ck
from closeknit.api.suggestion import suggest
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.kind_forms import kind_form, kind_from

SEEN = [f"2024-03-{17 + i // 6} {8 + i % 6:02}:{7 * i % 60:02}:{11 * i % 60:02}" for i in range(24)]
TABLE = Columns.of({"seen": SEEN, "ill": ["flu", "gout", "acne"] * 8})
SCHEMA = ck.Schema(quasi={"seen": ck.datetime()}, sensitive={"ill": ck.flat()})


def texts(*values: str) -> np.ndarray:
    return np.array(values, dtype=object)


def test_every_level_is_written_and_read_back() -> None:
    kind = ck.datetime()
    pairs = {
        "2024-03-17T13:45:10": ("2024-03-17T13:45:10", "2024-03-17T13:45:10"),
        "2024-03-17T13:45": ("2024-03-17T13:45:10", "2024-03-17T13:45:59"),
        "2024-03-17T13": ("2024-03-17T13:00:00", "2024-03-17T13:59:59"),
        "2024-03-17": ("2024-03-17T00:00:00", "2024-03-17T23:59:59"),
        "2024-03": ("2024-03-01T00:00:00", "2024-03-31T23:59:59"),
        "2024-Q1": ("2024-01-01T00:00:00", "2024-03-31T23:59:59"),
        "2024": ("2024-01-01T00:00:00", "2024-12-31T23:59:59"),
        "2020s": ("2020-01-01T00:00:00", "2029-12-31T23:59:59"),
        "*": ("1999-12-31T23:59:59", "2000-01-01T00:00:00"),
    }
    for label, ends in pairs.items():
        domain, codes = kind.bind(texts(*ends))
        lo, hi = np.array([codes.min()]), np.array([codes.max()])
        assert domain.labels(lo, hi) == [label]
    year = ck.datetime(lo="2024-01-01", hi="2024-12-31")
    seconds = 366 * 86_400
    losses = year.losses(["2024-03-17T13:45:10", "2024-03-17T13:45", "2024-03-17T13", "2024-03-17", "2024", "*", ""])
    assert losses[:, 0].tolist() == [0, 60 / seconds, 3600 / seconds, 86_400 / seconds, 1, 1, 0]


@pytest.mark.parametrize(
    ("raw", "label"),
    [
        ("2024-03-17T13:45:10", "2024-03-17T13:45:10"),
        ("2024-03-17 13:45:10.999Z", "2024-03-17T13:45:10"),
        ("2024-03-17T13:45:10+05:30", "2024-03-17T13:45:10"),
        ("17.03.2024 13:45:10", "2024-03-17T13:45:10"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59"),
    ],
)
def test_usual_forms_are_read(raw: str, label: str) -> None:
    assert ck.datetime().bind(texts(raw))[0].texts == (label,)


def test_what_is_coarser_than_the_finest_level_is_refused() -> None:
    for raw in ("2024-03-17", "2024-03-17T13:45"):
        with pytest.raises(BadValue, match=f"'{raw}' is not as fine as the level second"):
            ck.datetime().bind(texts(raw))
    with pytest.raises(BadValue, match="not a date"):
        ck.datetime().bind(texts("2024-03-17T13:45:61"))
    assert ck.datetime(["minute", "day"]).bind(texts("2024-03-17T13:45:10"))[0].texts == ("2024-03-17T13:45",)
    assert ck.datetime().bind(np.array(["2024-03-17"], dtype="datetime64[D]"))[0].texts == ("2024-03-17T00:00:00",)


def test_recipes_read_it_back() -> None:
    kind = ck.datetime(["minute", "hour", "day"], lo="2024-01-01", hi="2024-12-31", format="%d.%m.%Y %H:%M")
    assert kind_from(kind_form(kind)) == kind and kind_form(ck.datetime()) == "datetime"
    assert "format" not in str(kind_form(kind.publish_kind([])))


@pytest.mark.parametrize("typed", [False, True])
def test_a_release_is_audited_and_attacked(typed: bool, tmp_path: Path) -> None:
    frame = pd.DataFrame({"seen": pd.to_datetime(SEEN) if typed else SEEN, "ill": TABLE["ill"].cells()})
    release = ck.anonymize(frame, SCHEMA, [ck.KAnonymity(3)], seed=2**80)
    assert ck.audit(release.frame, certificate=release.certificate).ok
    assert ck.audit(release.frame, SCHEMA, [ck.KAnonymity(3)]).ok
    release.save(tmp_path / "out")
    assert ck.audit(tmp_path / "out").ok
    assert release.certificate.columns["quasi"]["seen"] == "datetime"
    found = ck.attack(release, original=frame, schema=SCHEMA)
    assert any(each.attack == "candidate_rows" for each in found.findings)


def test_a_stream_keeps_declared_times() -> None:
    schema = ck.Schema(
        quasi={"seen": ck.datetime(["hour", "day"], lo="2024-03-17", hi="2024-03-20")}, sensitive={"ill": ck.flat()}
    )
    release = ck.replay(ck.Castle(schema, k=3, delta=9, seed=2**70), TABLE)
    assert release.certificate.ok and set(release.frame.column("seen").to_pylist()) <= {
        "*",
        *(f"2024-03-{day}" for day in range(17, 21)),
        *(f"2024-03-{day}T{hour:02}" for day in range(17, 21) for hour in range(8, 14)),
    }
    seconds = ck.Schema(quasi={"seen": ck.datetime(lo="2020-01-01", hi="2024-12-31")}, sensitive={"ill": ck.flat()})
    with pytest.raises(BadInput, match=r"has 157,852,800 seconds; choose at most 500,000"):
        ck.Castle(seconds, k=3, delta=9)


def test_suggest_keeps_the_time_of_day_where_the_day_says_little() -> None:
    assert suggest(TABLE).schema.quasi["seen"] == ck.datetime()
    minutes = Columns.of({"seen": [text[:-3] for text in SEEN]})
    assert suggest(minutes).schema.quasi["seen"] == ck.datetime(["minute", *ck.datetime().levels[2:]])
    far = Columns.of({"seen": [*SEEN[:-1], "2022-01-01 10:00:00"]})
    assert suggest(far).schema.quasi["seen"] == ck.date()
    assert "the kind datetime would keep them" in suggest(far).reasons["seen"].reason
