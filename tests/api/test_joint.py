"""Several secrets: each keeps its own guarantee under every method; what they disclose together is measured and can be
guaranteed.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.publishing import publish_table
from closeknit.api.recipe import Recipe
from closeknit.checks import parameter_sets as parameters
from closeknit.checks.naive_cells import group_rows, rows_of
from closeknit.checks.oracle import joint_distance, oracle_holds, oracle_level
from closeknit.checks.tables import Case, case, fit_to_method, people
from closeknit.checks.verdicts import judge_class, oracle_view
from closeknit.checks.views import view
from closeknit.cli.commands import app
from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import join_secrets, least_distance
from closeknit.core.domain import Domain
from closeknit.core.method import Method, list_guarantees
from closeknit.core.schema import Schema
from closeknit.core.table import Outcome, Partition, Table
from closeknit.methods import REGISTRY
from closeknit.search.repair import repair_partition
from conftest import SOAK, examples

SEED = 2**100 + 9
SECRETS = ("disease", "charge", "blood")
MIXTURE = [ck.KAnonymity(3), ck.TCloseness("charge", 0.3), ck.BetaLikeness("disease", 2), ck.LDiversity("blood", 3)]
PAIR = ("disease", "salary")


def anonymized(data: Any, schema: ck.Schema, models: Sequence[Any], method: Any = None, **more: Any) -> ck.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ck.anonymize(data, schema, list(models), method, seed=SEED, **more)


# the attack: marginals are perfect, and the pair reveals ------------------------------------------------------------

REVEALING = {"age": [20, 20, 20, 20, 60, 60, 60, 60], "disease": list("xxyyxxyy"), "salary": list("uuvvvvuu")}
TWO = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat(), "salary": ck.flat()})
ZERO = [ck.TCloseness("disease", 0), ck.TCloseness("salary", 0)]


def revealing() -> tuple[Table, Partition]:
    table = TWO.encode(Columns.of(REVEALING)).join_secrets([PAIR])
    return table, Partition.of(table.quasi[:, 0])


def test_perfect_marginals_do_not_hide_that_one_secret_discloses_the_other() -> None:
    table, partition = revealing()
    columns, certificate = publish_table(table, partition, ZERO, ck.generalized())
    assert [guarantee.exact for guarantee in certificate.guarantees] == ["0", "0"]
    assert certificate.joint is not None and certificate.joint.columns == PAIR
    assert (certificate.joint.exact, certificate.joint.measured, certificate.joint.worst.rows) == ("1/2", 0.5, 4)
    assert any(note.endswith("one value may disclose another") for note in certificate.notes)
    assert certificate.joint.least == 0
    assert "disease and salary together: total variation 0.5 (worst class; least for 4 rows: 0)" in str(certificate)
    # knowing the disease of a person of the first class, an attacker knows the salary for certain
    first = group_rows(columns, ["age"])[("20",)]
    assert {rows_of(columns, ["salary"])[row] for row in first if rows_of(columns, ["disease"])[row] == ("x",)} == {("u",)}


def test_the_joint_guarantee_finds_it_and_merging_mends_it() -> None:
    table, partition = revealing()
    both = ck.TCloseness(PAIR, "0.49")
    assert both.levels(table.count_classes(partition)).tolist() == [0.5, 0.5]
    assert not both.holds(table.count_classes(partition)).any()
    assert ck.TCloseness(PAIR, "0.5").holds(table.count_classes(partition)).all()
    assert repair_partition(table, partition, [*ZERO, both]).count == 1
    found = ck.audit(Columns.of(REVEALING), TWO, [*ZERO, both])
    assert [guarantee.status for guarantee in found.guarantees] == ["recomputed", "recomputed", "not met"]
    with pytest.raises(ck.Unsatisfiable, match="disease and salary together"):
        publish_table(table, partition, [*ZERO, both], ck.generalized())


@pytest.mark.parametrize("name", REGISTRY)
def test_every_method_keeps_the_joint_guarantee(name: str) -> None:
    models = [ck.KAnonymity(2), *ZERO, ck.TCloseness(PAIR, 0), ck.BetaLikeness("disease", 3)]
    table = fit_to_method(REGISTRY[name](), Case("revealing", Columns.of(REVEALING), TWO, tuple(models)))
    assert table is not None
    release = anonymized(table.columns, TWO, table.models, REGISTRY[name]())
    assert release.certificate.joint is not None and release.certificate.joint.exact == "0"
    assert not any("knowing one secret" in note for note in release.certificate.notes)


# mixtures: every guarantee is kept by every method, as the oracle reads the written cells ------------------------------


def three_secrets(seed: int, rows: int = 48, missing: float = 0.0) -> Case:
    return case(f"three {seed}", people(np.random.default_rng(seed), rows, missing), ["age", "job"], list(SECRETS), MIXTURE)


def broken(release: ck.Release, table: Case, models: Sequence[Any]) -> list[str]:
    """Guarantees that some class breaks, by the oracle."""
    faults = []
    shown = view(release.columns, table.schema, release.certificate.form)
    for model in models:
        for cells, rows in shown.classes_of(model.column).items():
            if isinstance(model.column, tuple):
                everyone = rows_of(release.columns, model.column)
                fine = oracle_holds("t_closeness", [everyone[row] for row in rows], everyone, t=model.t)
            else:
                fine = judge_class(model, oracle_view(model, release.columns, table), rows)
            faults += [] if fine else [f"{cells}: {model}"]
    return faults


def test_the_judge_of_mixtures_can_say_no() -> None:
    table = three_secrets(0)
    release = anonymized(table.columns, table.schema, MIXTURE[:1])
    strict = [ck.TCloseness("charge", 0.05), ck.BetaLikeness("disease", 0.1), ck.LDiversity("blood", 3)]
    strict.append(ck.TCloseness(("blood", "disease"), 0.3))
    found = broken(release, table, [*MIXTURE[:1], *strict])
    assert [model for model in [*MIXTURE[:1], *strict] if any(str(model) in fault for fault in found)] == strict


def every_method() -> list[Any]:
    """All but those whose own guarantee allows no other next to it."""
    case = replace(three_secrets(0, 60), models=tuple(MIXTURE))
    return [
        pytest.param(method, id=f"{name} {params}")
        for name in REGISTRY
        for params in parameters.METHODS[name][: None if SOAK else 2]
        if fit_to_method(method := REGISTRY[name](**params), case) is not None
    ]


@pytest.mark.grows
@pytest.mark.parametrize("method", every_method())
@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_every_method_keeps_a_mixture_of_guarantees(method: Any, seed: int) -> None:
    together = [*MIXTURE, ck.TCloseness(("blood", "disease"), 0.6)]
    for models in (MIXTURE, MIXTURE[::-1], together):
        table = fit_to_method(method, replace(three_secrets(seed, 60), models=tuple(models)))
        assert table is not None
        assert len(table.models) >= len(models) - 1, "k means nothing where cells are exact"
        release = anonymized(table.columns, table.schema, table.models, method)
        assert broken(release, table, table.models) == []
        assert len(release.certificate.guarantees) == len(list_guarantees(method, table.schema, table.models))
        assert ck.audit(release.columns, certificate=release.certificate).ok


@pytest.mark.parametrize("name", REGISTRY)
def test_the_reported_distance_is_that_of_the_oracle(name: str) -> None:
    for seed, missing in ((3, 0.0), (4, 0.3)):
        models = (ck.KAnonymity(3), ck.TCloseness("charge", 0.3), ck.BetaLikeness("disease", 4))
        table = fit_to_method(REGISTRY[name](), replace(three_secrets(seed, 60, missing), models=models))
        if table is None:
            assert name == "soft_stop", "it refuses plain columns"
            continue
        release = anonymized(table.columns, table.schema, table.models, REGISTRY[name]())
        secrets = rows_of(release.columns, SECRETS)
        seen = view(release.columns, table.schema, release.certificate.form).classes_of(SECRETS)
        levels = {cells: joint_distance([secrets[row] for row in rows], secrets) for cells, rows in seen.items()}
        joint = release.certificate.joint
        assert joint is not None and Fraction(joint.exact) == max(levels.values()) > 0
        assert joint.measured == pytest.approx(float(max(levels.values())))
        assert levels[tuple(cell or None for cell in joint.worst.cells.values())] == max(levels.values())


# the joint distribution itself --------------------------------------------------------------------------------------

ROWS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["u", "v", "w", None]),
        st.sampled_from(["1", "2"]),
    ),
    min_size=1,
    max_size=30,
)
NAMES = ("one", "two", "three")


def counted(rows: list[Any]) -> tuple[Classes, Partition]:
    partition = Partition.of([row[0] for row in rows])
    domains = [Domain(("a", "b")), Domain(("u", "v", "w")), Domain(("1", "2"))]
    coded = [
        (np.array([(*domain.texts, None).index(row[i + 1]) for row in rows], dtype=np.int32), domain)
        for i, domain in enumerate(domains)
    ]
    secrets: dict[Any, Any] = dict(zip(NAMES, coded, strict=True))
    secrets |= {NAMES: join_secrets(coded), NAMES[:2]: join_secrets(coded[:2])}
    return Classes.of(partition.class_of, partition.count, secrets), partition


@settings(max_examples=examples(60))
@given(ROWS)
def test_levels_equal_the_naive_definition_and_bound_each_secret(rows: list[Any]) -> None:
    classes, partition = counted(rows)
    for names in (NAMES, NAMES[:2]):
        everyone = [tuple(row[1 : 1 + len(names)]) for row in rows]
        model = ck.TCloseness(names, 1)
        for index in range(len(classes)):
            values = [everyone[row] for row in np.flatnonzero(partition.class_of == index)]
            exact = model.exact_level(classes, index)
            assert exact == joint_distance(values, everyone) == oracle_level("t_closeness", values, everyone, t=1)
            assert model.levels(classes)[index] == pytest.approx(float(exact))
            for name in names:
                assert ck.TCloseness(name, 1, "equal").exact_level(classes, index) <= exact
            for known in {value[0] for value in values}:
                here, there = ([pair[1:] for pair in pairs if pair[0] == known] for pairs in (values, everyone))
                most = max(Fraction(len(here), len(values)), Fraction(len(there), len(everyone)))
                assert joint_distance(here, there) <= exact / most  # what the first secret discloses of the others


@settings(max_examples=examples(40))
@given(ROWS, st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_merging_counts_as_counting_again(rows: list[Any], into: list[int]) -> None:
    classes, partition = counted(rows)
    goes = np.unique(np.array(into)[: len(classes)], return_inverse=True)[1]
    merged = classes.merge(goes).histograms[NAMES]
    again = counted([(int(goes[c]), *row[1:]) for c, row in zip(partition.class_of, rows, strict=True)])[0].histograms[NAMES]
    for part in ("starts", "values", "counts", "reference"):
        assert getattr(merged, part).tolist() == getattr(again, part).tolist()


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 3)), max_size=20))
def test_combinations_are_numbered_in_order_and_suppressed_ones_count_nowhere(rows: list[tuple[int, int]]) -> None:
    columns = [np.array([row[i] for row in rows], dtype=np.int32) for i in (0, 1)]
    codes, domain = join_secrets([(columns[0], Domain(("a", "b"))), (columns[1], Domain(("u", "v", "w")))])
    shown = sorted({row for row in rows if min(row) >= 0})
    assert codes.tolist() == [shown.index(row) if row in shown else -1 for row in rows]
    texts = [[*"ab", ""], [*"uvw", ""]]
    assert domain.texts == tuple(f"{texts[0][a]}; {texts[1][b]}" for a, b in shown)


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any), st.integers(0, 7))
def test_the_least_distance_is_the_least_of_all_choices_of_rows(reference: list[int], rows: int) -> None:
    everyone = [value for value, count in enumerate(reference) for _ in range(count)]
    rows = min(rows, len(everyone))
    best = min((joint_distance(chosen, everyone) for chosen in set(combinations(everyone, rows)) if chosen), default=0)
    assert least_distance(np.array(reference), rows) == best


def test_a_suppressed_secret_leaves_the_reference() -> None:
    cells = {**REVEALING, "salary": [*"uuv*vvuu"]}
    found = ck.audit(Columns.of(cells), TWO, ZERO)
    shown = [pair for pair in zip(cells["disease"], cells["salary"], strict=True) if "*" not in pair]
    assert found.joint is not None
    assert Fraction(found.joint.exact) == max(joint_distance(shown[:3], shown), joint_distance(shown[3:], shown))


def test_many_secrets_do_not_overflow() -> None:
    rng = np.random.default_rng(1)
    columns = [(rng.integers(0, 5000, 300).astype(np.int32), Domain(tuple(map(str, range(5000))))) for _ in range(9)]
    codes, domain = join_secrets(columns)
    assert domain.size == len({*zip(*(codes.tolist() for codes, _ in columns), strict=True)})
    assert Counter(codes.tolist()).most_common(1)[0][1] == 300 - domain.size + 1


# what is counted, and when ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Halves(Method):
    """Two classes by age, or all in one: a method whose remarks and tables a test can look at."""

    name = "halves"
    needs_bound = "size"
    scale = "count"
    seen: ClassVar[list[Table]] = []

    def run(self, table: Table, models: Any, seed: int, progress: Any) -> Outcome:
        self.seen.append(table)
        return Outcome(Partition.of(table.quasi[:, 0] > np.median(table.quasi[:, 0])), notes=("cut by age", "80 % quick"))


def test_no_joint_is_counted_unless_it_is_requested() -> None:
    anonymized(Columns.of(REVEALING), TWO, ZERO, Halves())
    assert list(Halves.seen[-1].one_class().histograms) == ["disease", "salary"]
    anonymized(Columns.of(REVEALING), TWO, [*ZERO, ck.TCloseness(PAIR, 0.7)], Halves())
    assert list(Halves.seen[-1].one_class().histograms) == ["disease", "salary", PAIR]
    few = Halves.seen[-1].take(np.array([0, 3]))
    alone = [[domain.texts[code] for code in codes] for codes, domain in map(few.secret, PAIR)]
    together = [few.joints[PAIR][1].texts[code] for code in few.secret(PAIR)[0]]
    assert together == ["; ".join(pair) for pair in zip(*alone, strict=True)]


def test_closeness_together_counts_rows_where_there_are_persons() -> None:
    cells = {**REVEALING, "who": [1, 1, 2, 2, 3, 3, 4, 4]}
    schema = ck.Schema(person="who", quasi=TWO.quasi, sensitive=TWO.sensitive)
    models = [ck.KAnonymity(2), *ZERO, ck.TCloseness(PAIR, 0.5)]
    release = anonymized(Columns.of(cells), schema, models, Halves())
    assert [guarantee.status for guarantee in release.certificate.guarantees] == ["attested", *["recomputable"] * 3]
    assert release.certificate.joint is not None and release.certificate.joint.exact == "1/2"
    assert ck.audit(release.columns, certificate=release.certificate).findings == ()


def test_one_secret_has_no_joint_distance() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()}, plain=["salary"])
    release = anonymized(Columns.of(REVEALING), schema, [ck.KAnonymity(2)])
    assert release.certificate.joint is None and "joint" not in str(release)


# recipes, certificates, audits --------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A release under a joint guarantee, made by the command line from a recipe with a list in it."""
    table = tmp_path / "table.csv"
    rows = zip(*REVEALING.values(), strict=True)
    table.write_text("age,disease,salary\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    recipe = {
        "data": "table.csv",
        "schema": {"quasi": {"age": "numeric"}, "sensitive": {"disease": "flat", "salary": "flat"}},
        "models": [{"k_anonymity": {"k": 2}}, {"t_closeness": {"column": ["disease", "salary"], "t": "1/2"}}],
        "seed": SEED,
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    made = CliRunner().invoke(app, ["anonymize", str(tmp_path / "recipe.yaml"), "-o", str(tmp_path / "out")])
    assert made.exit_code == 0, made.output
    return tmp_path


def test_a_recipe_writes_it_as_a_list_and_all_read_it_back(saved: Path) -> None:
    recipe = Recipe.read(saved / "out.private" / "recipe.yaml")
    assert recipe.models == [ck.KAnonymity(2), ck.TCloseness(PAIR, "1/2")]
    text = (saved / "out" / "certificate.json").read_text()
    certificate = ck.Certificate.from_json(text)
    assert certificate.to_json() == text
    assert certificate.guarantees[1].column == PAIR
    assert certificate.guarantees[1].model == {"t_closeness": {"column": ["disease", "salary"], "t": "1/2"}}
    found = CliRunner().invoke(app, ["audit", str(saved / "out" / "release.csv")])
    assert found.exit_code == 0 and "joint          disease and salary together" in found.stdout


def test_changed_or_removed_joint_distance_is_found(saved: Path) -> None:
    release, text = saved / "out" / "release.csv", (saved / "out" / "certificate.json").read_text()

    def findings(change: Any) -> tuple[str, ...]:
        claimed = json.loads(text)
        change(claimed)
        return ck.audit(release, certificate=ck.Certificate.from_json(json.dumps(claimed))).findings

    missing = "the certificate does not have the joint distance of disease and salary"
    assert missing in findings(lambda claimed: claimed.pop("joint"))[0]
    assert missing in findings(lambda claimed: claimed.update(joint=None))[0]
    assert "joint distance: recomputed" in findings(lambda claimed: claimed["joint"].update(least=0.9))[0]
    assert "joint distance: recomputed" in findings(lambda claimed: claimed["joint"].update(measured=0.01))[0]
    assert "(exactly 1/9)" in findings(lambda claimed: claimed["joint"].update(exact="1/9"))[0]
    assert "joint distance: recomputed" in findings(lambda claimed: claimed["joint"].update(columns=["salary", "disease"]))[0]
    assert "not in the release" in findings(lambda claimed: claimed["joint"]["worst"].update(rows=77))[0]
    assert "recomputed" in findings(lambda claimed: claimed["guarantees"][1].update(exact="0"))[0]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda: ck.TCloseness(("disease", "salary"), 0.2, "ordered"), "distance='ordered' has no meaning for disease and"),
        (lambda: ck.TCloseness(("disease",), 0.2), "at least two different"),
        (lambda: ck.TCloseness(("disease", "disease"), 0.2), "at least two different"),
        (lambda: ck.TCloseness(("disease", "wages"), 0.2), "column 'wages': t_closeness is requested for a column that is not"),
        (lambda: ck.LDiversity(PAIR, 2), "l_diversity cannot cover disease and salary together"),
        (lambda: ck.BetaLikeness(PAIR, 2), "beta_likeness cannot cover disease and salary together"),
    ],
)
def test_what_has_no_meaning_is_refused(model: Any, said: str) -> None:
    with pytest.raises(ck.BadInput, match=said):
        ck.anonymize(Columns.of(REVEALING), TWO, [ck.KAnonymity(2), model()], seed=SEED)


@pytest.mark.parametrize("persons", [False, True])
def test_remarks_of_a_method_stay_private(tmp_path: Path, persons: bool) -> None:
    cells = {**REVEALING, "who": [1, 1, 2, 2, 3, 3, 4, 4] if persons else [*range(8)]}
    schema = ck.Schema(
        identifier=[] if persons else ["who"], person="who" if persons else None, quasi=TWO.quasi, sensitive=TWO.sensitive
    )
    release = anonymized(Columns.of(cells), schema, [ck.KAnonymity(2)], Halves())
    release.save(tmp_path / "out")
    recipe = yaml.safe_load((tmp_path / "out.private" / "recipe.yaml").read_text())
    assert recipe["notes"] == ["cut by age", "80 % quick"]
    assert Recipe.of({**recipe, "method": "stack_and_deal"}).models == [ck.KAnonymity(2)]
    assert "80 % quick" not in (tmp_path / "out" / "certificate.json").read_text()


def test_least_of_the_joint_line_is_for_the_rows_that_it_names():
    table = Columns.of({"z": list("abcd") + ["a"] * 4 + ["b"] * 4, "s": list("xyxyxxxxyyxy"), "u": list("uvvuuvuvuvuv")})
    schema = ck.Schema(quasi={"z": ck.flat()}, sensitive={"s": ck.flat(), "u": ck.flat()})
    coded, class_of = schema.encode(table), np.array([0, 0, 0, 0, 1, 1, 1, 1, -1, -1, -1, -1])
    form = ck.generalized(suppressed="hidden")
    columns, reported = publish_table(coded, Partition.of(class_of[coded.rows]), [ck.KAnonymity(4)], form)
    reading = form.read(columns, Schema.from_forms(reported.columns), None, [("s", "u")])
    reference = reading.classes.histograms["s", "u"].reference
    assert reported.joint.least == float(least_distance(reference, reported.joint.counted))
