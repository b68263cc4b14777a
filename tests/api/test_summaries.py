"""What results show of themselves in a REPL and in a notebook: small, escaped, and without a seed or a row of the table."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

import closeknit as ck
from closeknit.core.columns import Columns

SEED = 2**100 + 7
SECRET = "<script>alert('flu')</script>"
TABLE = Columns.of({"name": [f"Ann {i}" for i in range(12)], "age": list(range(30, 42)), "<b>ill</b>": [SECRET, "gout"] * 6})
SCHEMA = ck.Schema(identifier=["name"], quasi={"age": ck.numeric(0, 100)}, sensitive={"<b>ill</b>": ck.flat()})
MODELS = [ck.KAnonymity(3), ck.TCloseness("<b>ill</b>", 0.4)]


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    release = ck.anonymize(TABLE, SCHEMA, MODELS, "mondrian", seed=SEED)
    attacked = ck.attack(release, original=TABLE, schema=SCHEMA)
    return {
        "schema": SCHEMA,
        "release": release,
        "certificate": release.certificate,
        "comparison": ck.compare(TABLE, SCHEMA, MODELS, ["mondrian"], seed=SEED),
        "frontier": ck.frontier(TABLE, SCHEMA, MODELS, ["mondrian"], vary={"k": [2, 3]}, seed=SEED, jobs=1),
        "attacks": attacked,
        "finding": attacked.findings[0],
        "audit": ck.audit(release.frame, certificate=release.certificate),
        "choice": ck.choose_k(TABLE, SCHEMA, ks=[2, 3], method="mondrian", seed=SEED, jobs=1),
        "private report": release.private_record(),
    }


NAMES = (
    "schema",
    "release",
    "certificate",
    "comparison",
    "frontier",
    "attacks",
    "finding",
    "audit",
    "choice",
    "private report",
)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, Any]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, attrs))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small_and_shows_no_seed_and_no_person(shown: dict[str, Any], name: str) -> None:
    text, page = repr(shown[name]), shown[name]._repr_html_()
    assert len(text.splitlines()) < 20 and len(page) < 5000
    for secret in (str(SEED), "Ann"):
        assert secret not in text + page
    assert str(shown[name]) and str(SEED) not in str(shown[name])


@pytest.mark.parametrize("name", NAMES)
def test_it_is_escaped_and_has_no_colours(shown: dict[str, Any], name: str) -> None:
    tags = Tags(shown[name]._repr_html_()).found
    assert {tag for tag, _ in tags} <= {"div", "p", "b", "table", "tr", "th", "td"}
    assert all(not attributes for _, attributes in tags), "nothing is styled: it follows the notebook's theme"


def test_it_shows_what_matters(shown: dict[str, Any]) -> None:
    assert re.match(
        r"Schema of 3 columns: 1 quasi, 1 sensitive, 1 identifier\ncolumn +role +kind\nage +quasi +numeric\(", repr(SCHEMA)
    )
    first, heading, k, *_ = repr(shown["release"]).splitlines()
    assert first.startswith("Release: 2 of 2 guarantees met, 12 rows published, 0 suppressed, loss ")
    assert heading.split() == ["guarantee", "requested", "measured"]
    assert re.fullmatch(r"k-anonymity, k = 3 +>= 3 +3 +met", k)
    assert repr(shown["certificate"]).removeprefix("Certificate") == repr(shown["release"]).removeprefix("Release")
    assert repr(shown["audit"]).startswith("Audit of 12 rows: met\n")
    assert "mondrian" in repr(shown["comparison"]) and "mondrian" in repr(shown["frontier"])
    assert "the highest risk is" in repr(shown["attacks"])
    for name in ("schema", "release", "audit", "comparison", "frontier", "attacks"):
        assert "<table>" in shown[name]._repr_html_()


def test_a_wide_schema_stays_small() -> None:
    wide = ck.Schema(quasi={f"column {i} {'x' * 500}": "numeric" for i in range(200)}, sensitive={"ill": "flat"})
    text = repr(wide)
    assert text.startswith("Schema of 201 columns: 200 quasi, 1 sensitive\n") and text.endswith("... and 189 more")
    assert len(text) < 2500 and len(wide._repr_html_()) < 2500


def test_no_frame_is_made_to_show_a_release(shown: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ck.Release, "frame", property(lambda self: pytest.fail("the frame was made")))
    assert repr(shown["release"]) and shown["release"]._repr_html_()
