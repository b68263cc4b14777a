"""Releases with perturbed secrets, end to end: what is guaranteed, refused, written, estimated and audited."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.measurement import estimate_values
from closeknit.core.reading import Reading
from closeknit.core.table import Outcome, Partition, Table
from closeknit.forms import Perturbed

SEED = 2**100 + 9
ILL = ck.Hierarchy.from_nested({"lung": ["flu", "SARS"], "belly": ["ulcer", "colic"], "other": ["gout"]})
VALUES = ["flu", "SARS", "ulcer", "colic", "gout"]


def people(rows: int = 240, **other: list[Any]) -> dict[str, list[Any]]:
    rng = np.random.default_rng(rows)
    cells = {
        "age": rng.integers(18, 80, rows).tolist(),
        "sex": rng.choice(["f", "m"], rows).tolist(),
        "disease": rng.choice(VALUES[:4], rows, p=[0.5, 0.3, 0.15, 0.05]).tolist(),
    }
    return {**cells, **other}


def schema(disease: Any = ILL, **other: Any) -> ck.Schema:
    return ck.Schema(quasi={"age": ck.numeric(0, 120, step=5), "sex": ck.flat()}, sensitive={"disease": disease}, **other)


def release(
    cells: dict[str, list[Any]] | None = None,
    form: Any = None,
    models: Any = None,
    what: ck.Schema | None = None,
    method: Any = None,
    **other: Any,
) -> ck.Release:
    models = models or [ck.KAnonymity(5), ck.PosteriorBound("disease", 6)]
    method, requested = method or ck.Mondrian(), form or ck.perturbed(0.5)
    return ck.anonymize(
        Columns.of(cells or people()), what or schema(), models, method, form=requested, **{"seed": SEED, **other}
    )


def reading(made: ck.Release, form: Perturbed) -> Reading:
    return form.read(made.columns, ck.Schema.from_forms(made.certificate.columns))


def test_a_release_from_saving_to_audit(tmp_path: Path) -> None:
    made = release(people(400))
    made.save(tmp_path / "out")
    stated = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert stated["form"] == {"perturbed": {"retain": 0.5}}
    size, bound = stated["guarantees"]
    assert (size["status"], bound["status"], bound["met"]) == ("recomputable", "attested", True)
    assert bound["measured"] is None and "cannot be seen" in bound["why"] and "gamma = 6" in bound["text"]
    assert "probability 0.5" in (tmp_path / "out" / "README.txt").read_text()
    assert str(SEED) not in json.dumps(stated)
    audit = ck.audit(tmp_path / "out" / "release.csv", certificate=tmp_path / "out" / "certificate.json")
    assert [guarantee.status for guarantee in audit.guarantees] == ["recomputed", "not checkable"]
    assert not audit.ok and audit.findings == () and audit.status == "met as far as it can be checked"
    (level,) = made.private_record().levels
    assert (level.requested, level.measured, level.rows) == ("<= 6", 6.0, None), "the private report shows what was measured"
    assert "Levels of attested guarantees" in (tmp_path / "out.private" / "report.html").read_text(encoding="utf-8")
    assert "Levels of attested" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "not checkable  bounded posterior of disease" in str(audit)


def test_a_law_that_breaks_the_guarantee_is_found_by_an_audit() -> None:
    made = release()
    forged = made.certificate.model_copy(update={"form": {"perturbed": {"retain": 0.9}}})
    audit = ck.audit(made.columns, certificate=forged)
    assert audit.guarantees[1].status == "not met" and audit.guarantees[1].exact == "46"


def test_changed_estimates_are_found() -> None:
    made = release()
    stated = made.certificate.estimates["disease"]
    for changed in ({**stated, "flu": (1.0, 1.0, 1.0)}, {k: v for k, v in stated.items() if k != "gout"}, {}):
        forged = made.certificate.model_copy(update={"estimates": {"disease": changed} if changed else {}})
        assert any("estimate of disease" in finding for finding in ck.audit(made.columns, certificate=forged).findings)


@dataclass(frozen=True)
class Peeking(ck.Mondrian):
    """A method that records what it sees."""

    seen: ClassVar[list[list[int]]] = []

    def run(self, table: Table, *requested: Any) -> Outcome:
        self.seen.append(sorted(table.sensitive[:, 0].tolist()))
        return super().run(table, *requested)


def test_a_method_sees_no_true_secret() -> None:
    """Else its classes would disclose it: Stack & Deal, say, puts a row elsewhere for its secret alone."""
    cells = people()
    made = release(cells, method=Peeking())
    written = sorted(VALUES.index(cell) for cell in made.columns["disease"].cells())
    assert Peeking.seen == [written] and written != sorted(VALUES.index(cell) for cell in cells["disease"])


def test_rows_that_differ_in_their_secret_alone_stand_in_no_order_of_it() -> None:
    """The table that a method gets is sorted by perturbed secrets."""
    table = ck.perturbed(0.5).before(schema().encode(Columns.of(people(age=[30] * 240, sex=["f"] * 240))), SEED)
    assert table.perturbed and (np.diff(table.sensitive[:, 0]) >= 0).all()


def test_gamma_may_be_exactly_what_is_asked_and_no_more() -> None:
    assert release(models=[ck.PosteriorBound("disease", 6)]).certificate.ok  # 1 + 5 * 1/2 / (1/2)
    with pytest.raises(ck.Unsatisfiable, match=r"reaches 6; .*retain at most"):
        release(models=[ck.PosteriorBound("disease", "5.999999999999")])
    third = ck.PosteriorBound("disease", "7/2")
    assert release(form=ck.perturbed("1/3"), models=[third]).certificate.guarantees[0].met
    with pytest.raises(ck.Unsatisfiable):
        release(form=ck.perturbed("1/3"), models=[replace(third, gamma=3.4999999999)])


def test_a_secret_that_is_not_perturbed_has_no_bound() -> None:
    cells = people(blood=["A", "B"] * 120)
    what = schema().model_copy(update={"sensitive": {"disease": ILL, "blood": ck.Hierarchy.from_nested(["A", "B", "0"])}})
    made = release(cells, ck.perturbed(0.5, ["disease"]), what=what)
    assert Counter(made.columns["blood"].cells()) == Counter(cells["blood"]) and list(made.certificate.estimates) == ["disease"]
    with pytest.raises(ck.Unsatisfiable, match="name the column in the form"):
        release(cells, ck.perturbed(0.5, ["disease"]), [ck.PosteriorBound("blood", 6)], what)
    both = release(cells, ck.perturbed(0.5), [ck.PosteriorBound("blood", 4), ck.PosteriorBound("disease", 6)], what)
    assert sorted(both.certificate.estimates) == ["blood", "disease"]


@pytest.mark.parametrize(
    "model",
    [
        ck.LDiversity("disease", 2),
        ck.TCloseness("disease", 0.5),
        ck.BetaLikeness("disease", 2),
        ck.DeltaDisclosure("disease", 2),
    ],
    ids=lambda model: model.name,
)
def test_guarantees_on_the_spread_of_secrets_are_refused(model: Any) -> None:
    with pytest.raises(ck.BadInput, match="no meaning in the form 'perturbed'"):
        release(models=[model])


@pytest.mark.parametrize("form", [ck.generalized(), ck.bucketized()], ids=lambda form: form.name)
def test_the_bound_is_refused_in_other_forms(form: Any) -> None:
    with pytest.raises(ck.BadInput, match="choose perturbed"):
        release(form=form, models=[ck.PosteriorBound("disease", 6)])


@pytest.mark.parametrize(
    ("kind", "cells", "sentence"),
    [
        (ck.numeric(), list(range(240)), "is sensitive and numeric; perturb categories"),
        (ck.prefix(), ["120", "121"] * 120, "is sensitive and prefix"),
        (ck.date(), ["2024-01-02", "2024-02-03"] * 120, "is sensitive and date"),
        (ck.flat(), VALUES[:4] * 60, "not declared"),
        (ck.Hierarchy.from_nested(VALUES, from_data=True), VALUES[:4] * 60, "not declared"),
    ],
    ids=["numeric", "prefix", "date", "flat", "made from data"],
)
def test_other_secrets_are_refused(kind: Any, cells: list[Any], sentence: str) -> None:
    with pytest.raises(ck.BadInput, match=f"column 'disease': .*{sentence}"):
        release(people(disease=cells), what=schema(kind), models=[ck.KAnonymity(5)])


def test_the_bound_of_values_read_off_the_data_is_refused_before_any_work() -> None:
    """An adversary who knows that no one else has gout would know whose gout is written: no gamma bounds that."""
    classes = schema(ck.flat()).encode(Columns.of(people())).one_class()
    with pytest.raises(ck.BadInput, match="known to belong to a person; declare all of them"):
        ck.PosteriorBound("disease", 6).refuse(classes)


def test_persons_with_several_rows_are_refused() -> None:
    cells = people(patient=[i // 2 for i in range(240)])
    with pytest.raises(ck.BadInput, match="several rows"):
        release(cells, what=schema(person="patient"))
    alone = release({**cells, "patient": list(range(240))}, what=schema(person="patient"))
    assert alone.certificate.ok


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [(["age"], "not sensitive"), (["x"], "not sensitive"), ([], "none"), (["disease"] * 2, "twice"), ("disease", "not a list")],
)
def test_columns_that_cannot_be_perturbed_are_named(columns: Any, sentence: str) -> None:
    with pytest.raises(ck.BadInput, match=sentence):
        release(form={"perturbed": {"retain": 0.5, "columns": columns}})


def test_seed_repeats_and_another_one_differs() -> None:
    cells = people()
    one, same, other = (release(cells, seed=seed).columns["disease"].cells() for seed in (SEED, SEED, SEED + 1))
    assert one == same and one != other


def test_order_of_rows_is_irrelevant() -> None:
    cells, order = people(), np.random.default_rng(5).permutation(240)
    one, other = release(cells), release({name: [column[i] for i in order] for name, column in cells.items()})
    assert one.certificate == other.certificate
    assert all(one.columns[name].cells() == other.columns[name].cells() for name in one.columns)


def test_secrets_change_quasi_cells_do_not() -> None:
    cells = people(2000)
    table = schema().encode(Columns.of(cells))
    partition = Partition.of(np.arange(2000) // 10)
    plain, drawn = ck.generalized().write(table, partition), ck.perturbed(0.5).write(table, partition, SEED)
    assert plain.columns["age"].cells() == drawn.columns["age"].cells()
    written = dict(zip(drawn.rows.tolist(), drawn.columns["disease"].cells(), strict=True))
    true = dict(zip(plain.rows.tolist(), plain.columns["disease"].cells(), strict=True))
    kept = sum(written[row] == true[row] for row in true)
    assert abs(kept - 2000 * 0.6) < 5 * np.sqrt(2000 * 0.6 * 0.4)
    assert set(written.values()) == set(VALUES), "a declared value without rows is drawn too"


def test_lists_of_values_have_what_is_written_and_the_declared_domain() -> None:
    made = release(people(12), models=[ck.KAnonymity(2)])
    column = made.columns["disease"]
    assert set(column.values.tolist()) == set(column.cells()) <= set(VALUES)
    assert ck.Schema.from_forms(made.certificate.columns).sensitive["disease"] == ILL


@pytest.mark.parametrize("leaves", [[1, 2, 3], [1, 2, "unknown"]])
def test_values_without_rows_are_written_as_what_they_are(leaves: list[Any]) -> None:
    """Codes 1 and 2 occur as numbers; 3 does not, and must not be written as 0."""
    kind = ck.Hierarchy.from_nested(leaves)
    made = release(people(disease=[1, 2] * 120), what=schema(kind), models=[ck.PosteriorBound("disease", 4)])
    assert {str(cell) for cell in made.columns["disease"].cells()} == {str(leaf) for leaf in leaves}
    assert not ck.audit(made.columns, certificate=made.certificate).findings


def test_missing_secrets_need_their_place_in_the_law() -> None:
    cells = people()
    cells["disease"][::9] = [None] * len(cells["disease"][::9])
    with pytest.raises(ck.BadInput, match=r"column 'disease': has missing values.*missing=True"):
        release(cells)
    made = release(cells, ck.perturbed(0.5, missing=True), [ck.PosteriorBound("disease", 7)])  # one value more
    assert None in made.columns["disease"].cells() and "" in made.certificate.estimates["disease"]
    assert not ck.audit(made.columns, certificate=made.certificate).findings
    with pytest.raises(ck.Unsatisfiable):
        release(cells, ck.perturbed(0.5, missing=True), [ck.PosteriorBound("disease", 6)])
    complete = release(form=ck.perturbed(0.5, missing=True), models=[ck.PosteriorBound("disease", 7)])
    assert None in complete.columns["disease"].cells(), "an empty cell must not disclose that a value is missing"


def test_nothing_retained_discloses_nothing() -> None:
    made = release(form=ck.perturbed(0), models=[ck.PosteriorBound("disease", 1)])
    assert made.certificate.ok and made.certificate.estimates == {}
    other = people()
    other["disease"] = ["flu"] * 240
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a secret that all have
        same = release(other, form=ck.perturbed(0), models=[ck.PosteriorBound("disease", 1)])
    assert sorted(made.columns["disease"].cells()) == sorted(same.columns["disease"].cells()), "the draws are those of the seed"


def test_estimates_are_those_of_the_written_cells() -> None:
    form, cells = ck.perturbed(0.5), people(5000)
    made = release(cells, form)
    stated = made.certificate.estimates["disease"]
    assert list(stated) == VALUES and made.certificate.estimates == estimate_values(reading(made, form))
    written = Counter(made.columns["disease"].cells())
    for value, (count, error, possible) in stated.items():
        assert count == pytest.approx((written[value] - 5000 * 0.5 / 5) / 0.5)
        assert abs(count - cells["disease"].count(value)) < 5 * error and possible >= 0
    assert Certificate.from_json(made.certificate.to_json()) == made.certificate
    (line,) = [line for line in str(made.certificate).splitlines() if line.startswith("truly")]
    assert line.startswith("truly   disease: flu ") and "±" in line and line.count(",") < 8


@pytest.mark.parametrize("suppressed", ["removed", "hidden", "starred"])
def test_suppressed_rows(suppressed: str) -> None:
    cells = people(60)
    cells["age"][:2] = [119, 118]
    table = schema().encode(Columns.of(cells))
    far = table.quasi[:, 0] >= np.sort(table.quasi[:, 0])[-2]
    form = ck.perturbed(0.5, suppressed=suppressed)
    result = form.write(table, Partition.of(np.where(far, -1, np.arange(60) // 10)), SEED)
    stars = [secret for age, secret in zip(*(result.columns[n].cells() for n in ("age", "disease")), strict=True) if age == "*"]
    assert len(result.rows) == (58 if suppressed == "removed" else 60)
    assert {"removed": stars == [], "hidden": stars == ["*", "*"], "starred": set(stars) <= set(VALUES)}[suppressed]
    read = form.read(result.columns, schema())
    assert read.classes.histograms["disease"].reference.sum() == (60 if suppressed == "starred" else 58)
    assert [less.suppressed for less in form.fallbacks] == ["removed", "hidden", "starred"][: len(form.fallbacks)][::-1]


def test_rows_may_be_suppressed_and_the_rest_is_audited() -> None:
    cells = people(200)
    cells["age"][:3] = [119, 118, 117]
    made = release(cells, ck.perturbed(0.5, suppressed="starred"), suppress=0.03)
    assert made.certificate.form["perturbed"]["retain"] == 0.5
    assert ck.audit(made.columns, certificate=made.certificate).findings == ()


def test_snapped_ranges() -> None:
    made = release(form=ck.perturbed(0.5, snap=True))
    assert all(int(end) % 5 == 0 for cell in made.columns["age"].cells() for end in str(cell).strip("[]").split(","))


def test_recipe_says_it_again() -> None:
    forms = {
        "schema": {"quasi": {"age": "numeric"}, "sensitive": {"disease": {"tree": VALUES}}},
        "models": [{"posterior_bound": {"column": "disease", "gamma": 6}}],
        "form": {"perturbed": {"retain": "1/2", "columns": ["disease"]}},
    }
    recipe = Recipe.of(forms)
    assert recipe.form == ck.perturbed("1/2", ["disease"]) and recipe.models == [ck.PosteriorBound("disease", 6)]
    made = release()
    again = Recipe.of({**made._recipe, "data": None})  # type: ignore[dict-item]
    assert again.form == ck.perturbed(0.5) and again.seed == SEED
