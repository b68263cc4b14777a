"""A model, method, form and stream from outside the package, as `docs/extending.md` prints them, through everything."""

from __future__ import annotations

import doctest
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.checks import check_method, check_model
from closeknit.checks.tables import edge_tables
from closeknit.core.columns import Columns
from closeknit.forms import REGISTRY as FORMS
from closeknit.methods import REGISTRY as METHODS
from closeknit.models import REGISTRY as MODELS
from closeknit.search.guards import guard_of
from closeknit.streams.stream import Emission, Stream
from closeknit.web.desk.choices import methods
from closeknit.web.desk.guarantees import assess_table, explain_guarantee, guarantee_form

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
CLASSES = ("AtMostShare", "Pieces", "RowByRow", "Noted")


@pytest.fixture(scope="module")
def printed() -> dict[str, Any]:
    """The classes of the page, and what they import."""
    space: dict[str, Any] = {"__name__": "outside"}
    for example in doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8")):
        if example.source.startswith(("from ", "import ")) or any(f"class {name}" in example.source for name in CLASSES):
            exec(compile(example.source, str(PAGE), "exec", dont_inherit=True), space)
    return space


@pytest.fixture
def registered(printed: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for registry, name in ((MODELS, "AtMostShare"), (METHODS, "Pieces"), (FORMS, "Noted")):
        monkeypatch.setitem(registry, printed[name].name, printed[name])  # type: ignore[arg-type]
    return printed


TABLE, SCHEMA = ck.datasets.hospital(160), ck.datasets.hospital_schema()
DISEASES = np.array(TABLE["disease"].cells())


def at_most(printed: dict[str, Any], share: Any = "1/4") -> list[Any]:
    return [ck.KAnonymity(4), printed["AtMostShare"]("disease", "stroke", share)]


def largest_share(classes: Iterator[Any] | list[Any]) -> Fraction:
    """The largest share of strokes, counted without the model."""
    return max(Fraction(Counter(diseases)["stroke"], len(diseases)) for diseases in classes)


@pytest.mark.parametrize(
    "method", [ck.Mondrian(), ck.Knit(proposals=20_000), ck.StackAndDeal(), ck.Incognito(), ck.Microaggregation()], ids=repr
)
def test_every_kind_of_method_meets_a_model_from_outside(printed: dict[str, Any], method: Any) -> None:
    release = ck.anonymize(TABLE, SCHEMA, at_most(printed), method, seed=1)
    kept = [number for number in np.unique(release.partition) if number >= 0]
    share = largest_share([DISEASES[release.partition == number].tolist() for number in kept])
    guarantee = release.certificate.guarantees[1]
    assert guarantee.met and guarantee.exact == str(share) and share <= Fraction(1, 4)
    with pytest.raises(ck.Unsatisfiable, match="share of stroke in disease"):
        ck.anonymize(TABLE, SCHEMA, at_most(printed, "1/1000"), method)


def test_its_limits_make_a_guard(printed: dict[str, Any]) -> None:
    table = SCHEMA.encode(TABLE)
    found = guard_of(table, at_most(printed))
    texts = table.secret("disease")[1].texts
    caps = dict(
        zip(np.unique(table.secret("disease")[0]).tolist(), found.guard.cap_num[1:] / found.guard.cap_den[1:], strict=True)
    )
    assert found.unguarded == [] and {texts[code] for code, cap in caps.items() if cap < 1} == {"stroke"}
    assert caps[texts.index("stroke")] == 0.25


def test_compare_frontier_and_attack(printed: dict[str, Any]) -> None:
    models = at_most(printed)
    compared = ck.compare(TABLE, SCHEMA, models, [ck.Mondrian(), printed["Pieces"]()], seed=1)
    assert [row.name for row in compared.methods] == ["mondrian", "pieces"] and all(row.loss for row in compared.methods)
    found = ck.frontier(TABLE, SCHEMA, models, ck.Mondrian(), seed=1)
    assert [point.requested for point in found.points] == [0.1, 0.2, "1/4", 0.3, 0.5]
    assert found.measures[0].name == "share of disease (value=stroke)"
    given = ck.frontier(TABLE, SCHEMA, models, ck.Mondrian(), vary={"share": [0.3, 0.4]}, seed=1)
    assert [point.requested for point in given.points] == [0.3, 0.4]
    release = ck.anonymize(TABLE, SCHEMA, models, ck.Mondrian(), seed=1)
    assert ck.attack(release, original=TABLE, schema=SCHEMA).findings


def test_audit_report_and_files(registered: dict[str, Any], tmp_path: Path) -> None:
    release = ck.anonymize(TABLE, SCHEMA, at_most(registered), registered["Pieces"](), form=registered["Noted"](), seed=1)
    release.save(tmp_path / "out")
    checked = ck.audit(tmp_path / "out")
    assert checked.ok and [found.status for found in checked.guarantees] == ["recomputed"] * 2
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "at most 1/4 of the rows have the value stroke" in page and "for internal use" in page
    frame = release.frame
    again = ck.audit(frame, SCHEMA, [registered["AtMostShare"]("disease", "stroke", "1/100")], form=registered["Noted"]())
    assert not again.ok and again.guarantees[0].text == "share of stroke in disease, share = 1/100"


def rows() -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    ills = rng.choice(["stroke", "Stroke", "flu", "gout", "acne"], 120).tolist()
    return [{"age": int(age), "ill": ill} for age, ill in zip(rng.integers(20, 90, 120), ills, strict=True)]


STREAMED = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})


def classes_in(left: list[dict[str, Any]]) -> list[list[str]]:
    """Sensitive values by published quasi-identifiers."""
    found: dict[Any, list[str]] = {}
    for row in left:
        found.setdefault((row["age"], row.get("window")), []).append(row["ill"])
    return list(found.values())


def push_all(stream: Any, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for each in given for row in stream.push(each)]


@pytest.mark.parametrize("make", [ck.Castle, ck.KnnStream], ids=["castle", "knn"])
def test_a_stream_judges_it_as_written_and_folded(registered: dict[str, Any], make: Any, tmp_path: Path) -> None:
    model = registered["AtMostShare"]("ill", "Stroke", "1/2")  # `stroke` looks like it
    stream = make(STREAMED, k=3, delta=20, models=[model], seed=1)
    left = push_all(stream, rows()[:70])
    stream.save(tmp_path / "checkpoint")
    resumed = type(stream).load(tmp_path / "checkpoint")
    rest = [*push_all(stream, rows()[70:]), *stream.flush()]
    assert rest == [*push_all(resumed, rows()[70:]), *resumed.flush()]
    guarantee = stream.certificate.guarantees[1]
    assert len(left + rest) > 60 and guarantee.met and 0 < guarantee.measured <= 0.5
    alike = [[ill.casefold() for ill in ills] for ills in classes_in(left + rest) if "Stroke" in ills]
    assert 0 < largest_share(alike) <= Fraction(1, 2)
    assert not any("vacuous" in note for note in stream.certificate.notes)


def test_windows_take_any_model_and_castle_refuses_a_reference_alone(printed: dict[str, Any]) -> None:
    model = printed["AtMostShare"]("ill", "stroke", "1/2")
    stream = ck.Windowed(printed["Pieces"](), STREAMED, [ck.KAnonymity(3), model], omega=40, advance=20, seed=1)
    left = [*push_all(stream, rows()), *stream.flush()]
    assert len(left) > 60 and stream.certificate.guarantees[1].met

    class Compared(printed["AtMostShare"]):  # type: ignore[misc, name-defined]
        compares = True

    with pytest.raises(ck.BadInput, match="at_most_share compares with a reference"):
        ck.Castle(STREAMED, k=3, models=[Compared("ill", "stroke", "1/2")])


class Batches(Stream):
    """A stream from outside: every `size` rows are a class."""

    name = "batches"

    def __init__(self, schema: ck.Schema, models: Any, size: int, seed: int | None = None) -> None:
        super().__init__(schema, models, seed)
        self.size = size

    def _arrive(self, rows: Any, first: int) -> Iterator[Emission]:
        for end in range(first, first + len(rows)):
            if len(waiting := self.pending.positions(end=end + 1)) == self.size:
                yield Emission(waiting, at=end)

    def _end(self) -> Iterator[Emission]:
        self._suppress(self.pending.positions())
        return iter(())


def test_a_stream_from_outside_publishes_and_certifies(printed: dict[str, Any]) -> None:
    stream = Batches(STREAMED, [ck.KAnonymity(10), printed["AtMostShare"]("ill", "stroke", 1)], 10, seed=1)
    left = [*push_all(stream, rows()[:57]), *stream.flush()]
    assert len(left) == 50 and stream.certificate.suppressed == 7
    assert stream.certificate.classes.count == 5 and stream.certificate.ok
    worst = largest_share([[row["ill"] for row in rows()[a : a + 10]] for a in range(0, 50, 10)])
    assert stream.certificate.guarantees[1].measured == float(worst)


def test_checks_take_things_from_outside(registered: dict[str, Any]) -> None:
    model = registered["AtMostShare"]("secret", "A", "1/2")
    assert check_model(model, ck.flat(), rounds=3) == 15
    tables = [table for table in edge_tables() if table.name == "every kind"]
    assert check_method(registered["Pieces"](), tables) > 10
    with pytest.raises(AssertionError, match="limits_imply_it"):

        class Loose(registered["AtMostShare"]):  # type: ignore[misc, name-defined]
            def limits(self, reference: Any) -> Any:
                return registered["Limits"](caps={self.code(reference): Fraction(1)})

        check_model(Loose("secret", "A", "1/2"), ck.flat(), rounds=3)


def test_the_page_offers_it(registered: dict[str, Any]) -> None:
    offers = [offer for offer in assess_table(TABLE, SCHEMA).offered if offer.model == "at_most_share"]
    assert [offer.column for offer in offers] == list(SCHEMA.sensitive) and not any(offer.refused for offer in offers)
    assert [field.name for field in offers[0].fields] == ["column", "value", "share"]
    form = guarantee_form("at_most_share", {"column": "disease", "value": "stroke", "share": "0.25"})
    assert form == {"at_most_share": {"column": "disease", "value": "stroke", "share": 0.25}}
    assert explain_guarantee(form)["means"] == "In every class at most 0.25 of the rows have the value stroke."
    draft = {"schema": {"quasi": {"age": "numeric"}, "sensitive": {"disease": "flat"}}, "models": [form]}
    assert {offer.name: offer.refused for offer in methods(draft)}["pieces"] == "it needs a guarantee that bounds the size"


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ck.BadInput, match="is no list of guarantees"):
        ck.anonymize(TABLE, SCHEMA, [object()], ck.Mondrian())  # type: ignore[list-item]
    with pytest.raises(ck.BadInput, match="plans for t_closeness"):
        ck.anonymize(Columns.of({"age": [1, 2]}), ck.Schema(quasi={"age": ck.numeric()}), [ck.KAnonymity(1)], ck.Sabre())
