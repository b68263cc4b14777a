"""Values that look alike: folding, and guarantees required of the values as written and of the folded values."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import closeknit as ck
from closeknit.checks.naive_cells import ground
from closeknit.checks.oracle import oracle_folds, oracle_keeps, oracle_level
from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.domain import Domain
from closeknit.core.folding import ZERO_WIDTH, first_alike, fold_text
from closeknit.core.look_alikes import FoldedModel, with_folded
from closeknit.core.model import Model
from closeknit.core.table import Partition
from closeknit.methods import REGISTRY as METHODS
from closeknit.search.guards import guard_of

FLUS = ["flu", "flu ", "Flu", "fl\u200bu", "\ufb02u", "\u00a0flu"]
SCHEMA = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
SEED = 2**99


def table(ills: list[Any], ages: list[int] | None = None) -> Columns:
    return Columns.of({"age": ages or [30 + i for i in range(len(ills))], "ill": ills})


# Folding ------------------------------------------------------------------------------------------------------------------


def test_six_spellings_fold_to_one() -> None:
    assert {fold_text(text) for text in FLUS} == {"flu"}
    assert fold_text("hay\u2003 \tfever\n") == "hay fever"
    assert len({fold_text(text) for text in ("flu", "flue", "f l u", "")}) == 4


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    folded = fold_text(text)
    assert fold_text(folded) == folded
    assert oracle_folds([text, folded])[text] == oracle_folds([text, folded])[folded]


def test_every_character_folds_to_something_that_folds_to_itself() -> None:
    """NFKC after case folding may give another capital or another composition."""
    for code in range(0x110000):
        if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co"):
            folded = fold_text(chr(code))
            assert fold_text(folded) == folded
    assert all(fold_text(f"a{chr(code)}b") == "ab" for code in ZERO_WIDTH)


def test_only_names_can_look_alike() -> None:
    """Numbers and dates are leaves by value, whatever their spelling."""
    spelled = np.array(["5", " 5", "5.0", "\uff15"], dtype=object)
    assert ck.numeric().bind(spelled)[0].size == 1
    assert first_alike(["5", " 5"]) is not None
    domain, _ = ck.numeric(0, 10, bins=2).bind(np.array([1.0]))
    assert domain.folding(np.ones(3, np.int64)) is None
    days, _ = ck.date().bind(np.array(["2024-03-17", "2024-03-18"], dtype=object))
    assert days.folding(np.ones(days.size + 1, np.int64)) is None


# Guarantees ---------------------------------------------------------------------------------------------------------------


def test_six_spellings_of_one_disease_are_not_6_diverse() -> None:
    with pytest.raises(ck.Unsatisfiable, match="look-alike values counted as one"):
        ck.anonymize(table(FLUS * 4), SCHEMA, [ck.KAnonymity(6), ck.LDiversity("ill", 6)], seed=SEED)


def test_classes_are_regrouped_until_folded_values_are_diverse() -> None:
    """The first twelve rows are six spellings of flu: any class of them alone is diverse as written."""
    ills = FLUS * 2 + ["gout", "acne"] * 6
    release = ck.anonymize(table(ills), SCHEMA, [ck.KAnonymity(2), ck.LDiversity("ill", 3)], seed=SEED)
    (k, diverse) = release.certificate.guarantees
    assert k.met and diverse.met and diverse.exact == "3"
    note = f"column 'ill': 6 of its values look alike and fold to 1 (Unicode {unicodedata.unidata_version})"
    assert any(text.startswith(note) for text in release.certificate.notes)
    audit = ck.audit(release.columns, certificate=release.certificate)
    assert audit.ok and any(text.startswith(note) for text in audit.notes)


def test_two_spellings_do_not_share_the_cap_of_enhanced_likeness() -> None:
    """flu .25 and Flu .25: a class of both may have each at .5 <= .25 (1 + ln 4); of flu it must not have 1 > .5 (1 + ln 2)."""
    ills, ages = ["flu", "Flu"] * 4 + ["gout", "acne"] * 4, [30] * 8 + [60] * 8
    model = ck.BetaLikeness("ill", 2)
    coded = SCHEMA.encode(table(ills, ages))
    classes = coded.count_classes(Partition.of(coded.quasi[:, 0]))
    assert model.holds(classes).all() and FoldedModel(model).holds(classes).tolist() == [False, True]  # type: ignore[arg-type]
    release = ck.anonymize(table(ills, ages), SCHEMA, [ck.KAnonymity(2), model], seed=SEED)
    assert release.certificate.ok and release.certificate.classes.count == 1


def test_the_audit_of_a_foreign_release_judges_folded_values() -> None:
    foreign = Columns.of({"age": ["30"] * 6 + ["40"] * 6, "ill": FLUS + ["gout", "acne"] * 3})
    audit = ck.audit(foreign, SCHEMA, [ck.KAnonymity(6), ck.LDiversity("ill", 2)])
    assert not audit.ok and [guarantee.status for guarantee in audit.guarantees] == ["recomputed", "not met"]
    assert audit.guarantees[1].exact == "1"
    assert ck.audit(foreign, SCHEMA, [ck.KAnonymity(6), ck.LDiversity("ill", 1)]).ok


def test_a_certificate_that_counts_spellings_does_not_pass_an_audit() -> None:
    release = ck.anonymize(table([*FLUS, "gout", "acne"]), SCHEMA, [ck.LDiversity("ill", 3)], seed=SEED)
    (guarantee,) = release.certificate.guarantees
    forged = release.certificate.model_copy(
        update={"guarantees": (guarantee.model_copy(update={"measured": 8.0, "exact": "8"}),)}
    )
    assert not ck.audit(release.columns, certificate=forged).ok


def test_without_look_alike_values_nothing_changes() -> None:
    coded = SCHEMA.encode(table(["flu", "gout", "acne"] * 4))
    models: list[Model] = [ck.KAnonymity(2), ck.LDiversity("ill", 2)]
    assert with_folded(models, coded) == models
    release = ck.anonymize(table(["flu", "gout", "acne"] * 4), SCHEMA, models, seed=SEED)
    assert not any("alike" in note for note in release.certificate.notes)


def test_a_declared_spelling_without_rows_changes_no_value() -> None:
    """The first leaf of the tree looks like `flu`, and has another parent."""
    tree = ck.Hierarchy.from_nested({"other": ["Flu", "burn"], "lung": ["flu", "cough"]})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": tree})
    model = ck.TCloseness("ill", 0.5)
    assert with_folded([model], schema.encode(table(["flu", "cough", "burn"]))) == [model]


@pytest.mark.parametrize("kind", ["tree", "prefix"])
def test_hierarchical_closeness_is_required_on_folded_values(kind: str) -> None:
    """Look-alike leaves below different parents count as the first of them, in the tree as it is."""
    tree = {"lung": {"flu": None, "cough": None}, "other": {"Flu": None, "burn": None}}
    kinds: dict[str, Any] = {"tree": ck.Hierarchy.from_nested(tree), "prefix": ck.prefix()}
    ills = ["flu", "cough", "burn", "Flu"] if kind == "tree" else ["b20", "c20", "C30", "B20"]
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": kinds[kind]})
    ages = [1, 1, 2, 2]
    coded = schema.encode(table(ills, ages))
    classes = coded.count_classes(Partition.of(coded.quasi[:, 0]))
    model, where = ck.TCloseness("ill", 0), ground(kinds[kind], None, ills)
    folds = oracle_folds(ills, where)
    assert len(set(folds.values()) - {None}) == 3
    for c, (first, last) in enumerate(((0, 2), (2, 4))):
        here, everyone = [folds[ill] for ill in ills[first:last]], [folds[ill] for ill in ills]
        expected = oracle_level("t_closeness", here, everyone, t=0, ground=where)
        assert FoldedModel(model).exact_level(classes, c) == expected != model.exact_level(classes, c)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_keeps_diversity_of_folded_values(name: str) -> None:
    """Whatever a method plans for: look-alike values count as one, missing values as none."""
    rng = np.random.default_rng(7)
    spellings = [*FLUS, "gout", "Gout", "acne", "cough", "burn", "cold", None]
    ills = rng.choice(np.array(spellings, dtype=object), 60).tolist()
    method = METHODS[name](**({"l": 2} if name in ("anatomy", "slicing") else {}))
    cells = Columns.of({"age": rng.integers(20, 60, 60).tolist(), "zip": rng.integers(0, 9, 60).tolist(), "ill": ills})
    schema = ck.Schema(quasi={"age": ck.numeric(), "zip": ck.numeric()}, sensitive={"ill": ck.flat()})
    models: list[Model] = [ck.LDiversity("ill", 2, "frequency")]
    models += [ck.KAnonymity(3)] if method.usual_form == "generalized" else []
    plans = {"distance": ck.TCloseness("ill", 0.5), "growth": ck.BetaLikeness("ill", 3)}
    models += [plans[method.needs_bound]] if method.needs_bound in plans else []
    release = ck.anonymize(cells, schema, models, method, seed=SEED)
    values = cells["ill"].cells()
    for number in set(release.partition.tolist()) - {-1}:
        rows = np.flatnonzero(release.partition == number).tolist()
        assert oracle_keeps("l_diversity", [values[row] for row in rows], values, l=2, kind="frequency")


def test_persons_with_two_spellings_have_one_value() -> None:
    """Two persons, each with both spellings of flu: two values for two persons as written, one for one when folded."""
    domain = Domain(("Flu", "flu", "gout"))
    codes = np.array([0, 1, 0, 1, 0, 2], dtype=np.int32)
    class_of = np.array([0, 0, 0, 0, 1, 1], dtype=np.int32)
    persons = np.array([1, 1, 2, 2, 3, 4])
    classes = Classes.of(class_of, 2, {"ill": (codes, domain)}, persons)
    for kind in ("distinct", "entropy"):
        model = ck.LDiversity("ill", 2, kind)
        assert model.holds(classes).all()
        folded = FoldedModel(model)  # type: ignore[arg-type]
        assert folded.holds(classes).tolist() == [False, True] and folded.levels(classes).tolist() == [1, 2]
        merged = classes.merge(np.array([0, 0]))
        assert folded.levels(merged)[0] > 1


def test_persons_without_a_known_value_are_not_those_among_whom_values_are_spread() -> None:
    """One person in two has flu, one gout; four more have no known value."""
    domain = Domain(("flu", "gout"))
    codes, persons = np.array([0, 1, 0, 2, 2, 2, 2], dtype=np.int32), np.array([1, 2, 3, 4, 5, 6, 7])
    classes = Classes.of(np.zeros(7, dtype=np.int32), 1, {"ill": (codes, domain)}, persons)
    assert ck.LDiversity("ill", 1.5, "frequency").exact_level(classes, 0) == 3 / 2
    assert not ck.LDiversity("ill", 1.6, "frequency").holds(classes)[0]
    assert ck.LDiversity("ill", 1.6, "frequency", missing_is_a_value=True).holds(classes)[0]


def test_the_compiled_guard_counts_known_values_only() -> None:
    """Distinct values are counted without the missing one; shares of known values are left to the model."""
    coded = SCHEMA.encode(table(["HIV"] * 5 + ["flu", None]))
    distinct, frequency = ck.LDiversity("ill", 2), ck.LDiversity("ill", 1.1, "frequency")
    assert guard_of(coded, [distinct]).guard.leaf.sum() == 2 and guard_of(coded, [distinct]).unguarded == []
    assert guard_of(coded, [frequency]).unguarded == [frequency]
    restored = [replace(model, missing_is_a_value=True) for model in (distinct, frequency)]
    assert guard_of(coded, restored).unguarded == [] and guard_of(coded, restored[:1]).guard.leaf.sum() == 3


# Streams ------------------------------------------------------------------------------------------------------------------


STREAMED = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})


@pytest.mark.parametrize("stream", [ck.Castle, ck.KnnStream])
def test_streams_count_look_alike_values_as_one_and_missing_as_none(stream: Any) -> None:
    rng = np.random.default_rng(3)
    made = stream(STREAMED, k=3, delta=12, l=2, seed=SEED)
    ills = rng.choice(np.array([*FLUS, "gout", "GOUT", None], dtype=object), 80).tolist()
    batches: dict[str, list[Any]] = {}
    for i, ill in enumerate(ills):
        for row in made.push({"age": int(rng.integers(0, 100)), "ill": ill}):
            batches.setdefault(row["age"], []).append(row["ill"])
        if i == 40:
            assert batches
    for row in made.flush():
        batches.setdefault(row["age"], []).append(row["ill"])
    assert all(oracle_keeps("l_diversity", values, [], l=2) for values in batches.values())
    assert made.certificate.ok


def test_a_stream_of_spellings_publishes_nothing_as_diverse() -> None:
    made = ck.Castle(STREAMED, k=2, delta=4, l=2, seed=SEED)
    left = [row for i in range(12) for row in made.push({"age": 5 * i, "ill": FLUS[i % 6]})] + made.flush()
    assert left == [] and made.counters.suppressed == 12


def test_windows_judge_folded_values_against_the_folded_window() -> None:
    """As in a table: flu and Flu each a quarter of the window, and no class of both alone."""
    ills = ["flu", "gout", "Flu", "acne"] * 8
    rows = [{"age": 30 + 40 * (i % 2), "ill": ill} for i, ill in enumerate(ills)]
    models = [ck.BetaLikeness("ill", 2)]
    made = ck.BurelWindow(STREAMED, models=models, omega=16, advance=16, k=2, seed=SEED)
    left = [row for row in rows for row in made.push(row)] + made.flush()
    classes: dict[tuple[Any, ...], list[str]] = {}
    for row in left:
        classes.setdefault((row["window"], row["age"]), []).append(row["ill"])
    assert classes and all(oracle_keeps("beta_likeness", values, ills[:16], beta=2) for values in classes.values())


# Suggestions --------------------------------------------------------------------------------------------------------------


def test_a_suggestion_names_the_spellings_of_a_value() -> None:
    cells = Columns.of({"age": list(range(40)), "disease": [*FLUS[:3], "gout"] * 10})
    found = ck.suggest(cells)
    assert "3 spellings of 'flu'" in found.reasons["disease"].reason and "make them one value" in found.to_recipe("t.csv")
    clean = ck.suggest(Columns.of({"age": list(range(40)), "disease": ["flu", "gout"] * 20}))
    assert "spelling" not in clean.to_recipe("t.csv")
