"""FcmDraw and PcaDraw: guarantees on several secrets, the worked examples and errata of their source, and no row lost."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.checks.methods import (
    every_row_once,
    guarantee_met,
    persons_stay_together,
    row_order_is_irrelevant,
    run_case,
    run_once,
)
from closeknit.checks.tables import Case, case, people, quasi_kinds, secret_kinds
from closeknit.core.columns import Columns
from closeknit.core.method import ignore_progress
from closeknit.core.model import Model
from closeknit.core.table import Outcome, Partition, Table
from closeknit.methods.group_draw import choose_secrets, numbers_of_groups
from closeknit.plans.groups import Cells
from closeknit.search import candidate_search
from closeknit.search.repair import find_broken_classes, repair_partition

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "streams.json").read_text())
SEED = 2**99
BOTH = [ck.FcmDraw, ck.PcaDraw]
KINDS = quasi_kinds() | secret_kinds()


def two_secrets(seed: int, rows: int, models: list[Model], missing: float = 0.0, **roles: Any) -> Case:
    """A generated table with a tree and a number as secrets."""
    cells = people(np.random.default_rng(seed), rows, missing)
    if "person" in roles:
        cells["patient"] = [f"p{i}" for i in np.random.default_rng(seed).integers(0, rows // 2, rows)]
    return case("two secrets", cells, ["age", "zip", "job"], ["disease", "charge"], models, **roles)


def run(method: Any, case: Case, seed: int = SEED) -> tuple[Table, Outcome]:
    table = case.schema.encode(case.columns)
    return table, method.run(table, case.models, seed, ignore_progress)


# Guarantees ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        ck.FcmDraw(),
        ck.FcmDraw(grouping="balanced", fill="hilbert"),
        ck.FcmDraw(grouping="fuzzy", groups=9, polish=False),
        ck.PcaDraw(),
        ck.PcaDraw(fill="sweep", groups=3),
        ck.PcaDraw(embedding="one-hot", scaled=False),
    ],
    ids=repr,
)
@pytest.mark.parametrize("t", [0, "1/50", 0.2, 1])
def test_guarantees_on_two_secrets_are_kept(method: Any, t: Any) -> None:
    models = [ck.KAnonymity(4), ck.TCloseness("disease", t), ck.TCloseness("charge", t)]
    made = two_secrets(1, 151, models)
    guarantee_met(method, made)
    every_row_once(method, made)


@pytest.mark.parametrize("method", BOTH)
def test_a_guarantee_of_any_kind_on_each_secret(method: Any) -> None:
    models = [
        ck.KAnonymity(3),
        ck.TCloseness("disease", 0.3),
        ck.LDiversity("disease", 3),
        ck.BetaLikeness("charge", 4),
        ck.DeltaDisclosure("disease", 3),
    ]
    guarantee_met(method(), two_secrets(2, 160, models))


@pytest.mark.parametrize("method", BOTH)
def test_missing_secrets(method: Any) -> None:
    models = [ck.KAnonymity(3), ck.TCloseness("disease", 0.25), ck.TCloseness("charge", 0.3)]
    made = two_secrets(3, 120, models, missing=0.3)
    guarantee_met(method(), made)
    assert run_once(method(), made).columns["disease"].cells().count(None) > 10


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("person_rows", ["together", "count-once"])
def test_persons_are_counted(method: Any, person_rows: str) -> None:
    """Here k rows of one person are no class of k."""
    models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.4), ck.TCloseness("charge", 0.4)]
    made = two_secrets(4, 140, models, person="patient", person_rows=person_rows)
    guarantee_met(method(), made)
    every_row_once(method(), made)
    persons_stay_together(method(), made)


@pytest.mark.parametrize("method", BOTH)
def test_seed_and_row_order(method: Any) -> None:
    """The source starts at any record, with no seed and no rule for ties."""
    made = two_secrets(5, 130, [ck.KAnonymity(4), ck.TCloseness("disease", 0.3), ck.TCloseness("charge", 0.3)])
    found = [run(method(), made, seed)[1].partition.class_of.tolist() for seed in (1, 1, 2)]
    assert found[0] == found[1] and found[0] != found[2]
    row_order_is_irrelevant(method(), made)


def test_several_secrets_are_what_it_is_for() -> None:
    """Planned for one secret, the other is repaired by merging; grouped by both, a strict t on both costs less."""
    models = [ck.KAnonymity(10), ck.TCloseness("disease", 0.12), ck.TCloseness("charge", 0.08)]
    made = two_secrets(6, 900, models)
    by_both, by_none = (run_case(method, made).loss for method in (ck.FcmDraw(), ck.FcmDraw(groups=1)))
    assert by_both < by_none


def test_a_strict_guarantee_wants_more_groups_than_a_loose_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_search, "refine_partition", lambda table, partition, models, scales: partition)

    def loss(t: float, groups: int) -> float:
        models = [ck.KAnonymity(8), ck.TCloseness("disease", t), ck.TCloseness("charge", t)]
        return run_case(ck.FcmDraw(groups=groups), two_secrets(7, 800, models)).loss

    assert loss(0.5, 2) < loss(0.5, 4) < loss(0.5, 16) and loss(0.08, 4) < loss(0.08, 2)


# Parameters and what is said ---------------------------------------------------------------------------------------------


def test_numbers_of_groups() -> None:
    assert numbers_of_groups(45_222, 20, None) == [20, 40, 80, 10, 5]
    assert numbers_of_groups(19, 10, None) == [19, 6, 3] and numbers_of_groups(7, 7, None) == [7, 2]
    assert numbers_of_groups(1, 1, None) == [1]
    assert numbers_of_groups(30, 5, 3) == [3] and numbers_of_groups(30, 5, 99) == [30]
    with pytest.raises(ck.Unsatisfiable, match="9-anonymity"):
        numbers_of_groups(8, 9, None)


@pytest.mark.parametrize("groups", [1, 2, 5, 13, 151, 500])
@pytest.mark.parametrize("method", BOTH)
def test_any_number_of_groups_keeps_k(method: Any, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any repair: fewer groups than k give several rows each."""

    def refuse(*given: Any) -> None:
        raise AssertionError("a class was too small")

    monkeypatch.setattr(candidate_search, "repair_partition", refuse)
    _, outcome = run(method(groups=groups), two_secrets(8, 151, [ck.KAnonymity(6)]))
    assert np.bincount(outcome.partition.class_of).min() >= 6


def test_secrets_without_a_guarantee_do_not_group() -> None:
    made = two_secrets(9, 60, [ck.KAnonymity(3), ck.TCloseness("charge", 0.3)])
    table = made.schema.encode(made.columns)
    assert choose_secrets(table, made.models) == ["charge"]
    assert choose_secrets(table, [ck.KAnonymity(3)]) == ["disease", "charge"]
    assert choose_secrets(table, [ck.TCloseness(("charge", "disease"), 0.3)]) == ["disease", "charge"]


class FrugalDraw(ck.FcmDraw):
    affordable = 5 * 8 * 8


def test_notes_say_which_grouping_ran() -> None:
    made = two_secrets(10, 120, [ck.KAnonymity(4), ck.TCloseness("disease", 0.4)])
    assert run(ck.FcmDraw(), made)[1].notes == tuple(
        f"fcm_draw: 5 combinations of sensitive values, {c} groups by equi-sized fuzzy c-means" for c in (4, 8, 17, 2)
    )
    ways = [note.split(" by ")[1] for note in run(FrugalDraw(), made)[1].notes]
    assert ways == ["equi-sized fuzzy c-means"] * 2 + ["balanced assignment", "equi-sized fuzzy c-means"]
    assert "4 groups by balanced assignment" in run(ck.FcmDraw(grouping="balanced", groups=4), made)[1].notes[0]
    assert "4 or 8 or 17 or 2 groups by the first principal component" in run(ck.PcaDraw(), made)[1].notes[0]


# The source's examples and errata ----------------------------------------------------------------------------------------

LUNGS = {"Pneumonia": None, "Flu": None, "Bronchitis": None}
TREES: dict[str, Any] = {
    "two_level": {"lungs": LUNGS, "bowels": {"Colon cancer": None, "Colitis": None, "Stomach cancer": None}},
    "three_level_colon_stomach": {
        "lungs": LUNGS,
        "bowels": {"colon": {"Colon cancer": None, "Colitis": None}, "stomach": {"Stomach cancer": None}},
    },
    "three_level_cancer": {
        "lungs": LUNGS,
        "bowels": {"cancer": {"Colon cancer": None, "Stomach cancer": None}, "inflammation": {"Colitis": None}},
    },
}


def patients(tree: str) -> tuple[Table, ck.TCloseness]:
    tables = GOLDEN["msa_tables"]
    kind = ck.flat() if tree == "equal" else ck.Hierarchy.from_nested(TREES[tree])
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": kind})
    model = ck.TCloseness("disease", 1, "equal" if tree == "equal" else "hierarchical")
    return schema.encode(Columns.of({"age": tables["age"], "disease": tables["disease"]})), model


@pytest.mark.parametrize("tree", ["equal", *TREES])
@pytest.mark.parametrize("number", ["2", "3", "4"])
def test_tables_of_the_source(number: str, tree: str) -> None:
    """Exact distances of its tables 2 to 4; over all leaves, as printed, upper nodes count inner moves again."""
    table, model = patients(tree)
    expected = GOLDEN["msa_tables"]["t"][number]
    class_of = np.empty(9, dtype=np.int32)
    for c, rows in enumerate(GOLDEN["msa_tables"]["classes"][number]):
        class_of[rows] = c
    classes = table.count_classes(Partition(class_of[table.rows], 3))
    levels = [model.exact_level(classes, c) for c in range(3)]
    assert levels == [Fraction(level) for level in expected[tree]["per_class"]]
    if number == "4":
        assert (max(level for level in levels if level is not None) <= Fraction(1, 3)) == (tree != "equal")  # its "0.33"
        if tree != "equal":
            assert Fraction(expected[tree + "_as_printed"]["max"]) > Fraction(1, 3)


def test_printed_intervals_of_the_source_are_wider_than_needed() -> None:
    """Ages of its table 4 as tight ranges."""
    tables = GOLDEN["msa_tables"]
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})
    table = schema.encode(Columns.of({"age": tables["age"], "disease": tables["disease"]}))
    ages = np.array(tables["age"])
    widths = [int(np.ptp(ages[rows])) for rows in tables["classes"]["4"]]
    assert Fraction(sum(widths), 3 * int(np.ptp(ages))) == Fraction(tables["il_age_tight_table4"])
    class_of = np.empty(9, dtype=np.int32)
    for c, rows in enumerate(tables["classes"]["4"]):
        class_of[rows] = c
    search = candidate_search.Candidates(table, [], ignore_progress, "")
    search.add(class_of[table.rows], 3)
    assert abs(search.loss - 74 / 87) < 1e-12 and Fraction(tables["il_age_printed_table4"]) > Fraction(74, 87)


def eight_rows() -> tuple[Table, list[Model], Partition]:
    example = GOLDEN["msa_ensure_t_counterexample"]
    schema = ck.Schema(quasi={"q": ck.numeric()}, sensitive={"s": ck.numeric()})
    columns = Columns.of({"q": [q for q, _ in example["records_q_s"]], "s": [s for _, s in example["records_q_s"]]})
    table = schema.encode(columns)
    class_of = np.empty(8, dtype=np.int32)
    for c, rows in enumerate(example["classes"]):
        class_of[rows] = c
    return table, [ck.TCloseness("s", example["t"])], Partition(class_of[table.rows], 4)


def test_unions_are_judged_again() -> None:
    """Checked once, as printed, both classes of the result are 3/16 away and t is 3/20."""
    example = GOLDEN["msa_ensure_t_counterexample"]
    table, models, partition = eight_rows()
    union = np.empty(8, dtype=np.int32)
    for c, rows in enumerate(example["literal"]):
        union[rows] = c
    literal = Partition(union[table.rows], 2)
    assert find_broken_classes(table, literal, models).all()
    assert [models[0].exact_level(table.count_classes(literal), c) for c in range(2)] == [Fraction(3, 16)] * 2
    repaired = repair_partition(table, partition, models)
    assert not find_broken_classes(table, repaired, models).any() and 1 <= repaired.count < 4


@pytest.mark.parametrize("method", BOTH)
def test_both_methods_keep_t_on_the_eight_rows(method: Any) -> None:
    example = GOLDEN["msa_ensure_t_counterexample"]
    columns = Columns.of({"q": [q for q, _ in example["records_q_s"]], "s": [s for _, s in example["records_q_s"]]})
    schema = ck.Schema(quasi={"q": ck.numeric()}, sensitive={"s": ck.numeric()})
    guarantee_met(method(), Case("eight", columns, schema, (ck.KAnonymity(2), ck.TCloseness("s", example["t"]))))


def test_classes_of_numbers_and_trees_have_a_middle() -> None:
    """The source measures from node to node, where it has no distance; a strict t needs many merges of mixed columns."""
    models: list[Model] = [ck.KAnonymity(2), ck.TCloseness("disease", 0.02), ck.TCloseness("charge", 0.02)]
    made = two_secrets(11, 90, models)
    guarantee_met(ck.PcaDraw(groups=2), made)
    assert len(set(run_once(ck.PcaDraw(groups=2), made).partition.tolist())) < 20


@pytest.mark.parametrize("method", BOTH)
def test_one_secret_may_disclose_the_other_unless_their_pairs_are_guaranteed(method: Any) -> None:
    """Both marginals are exact in {xu, xu, yv, yv}, {xv, xv, yu, yu}, and one secret discloses the other."""
    pairs = ["xu", "xu", "yv", "yv", "xv", "xv", "yu", "yu"]
    columns = Columns.of({"q": [0] * 4 + [1] * 4, "a": [p[0] for p in pairs], "b": [p[1] for p in pairs]})
    schema = ck.Schema(quasi={"q": ck.numeric()}, sensitive={"a": ck.flat(), "b": ck.flat()})
    alone = (ck.KAnonymity(4), ck.TCloseness("a", 0), ck.TCloseness("b", 0))
    guarantee_met(method(), Case("pairs", columns, schema, alone))
    pair = ck.TCloseness(("a", "b"), 0)
    assert run_case(method(), Case("pairs", columns, schema, (ck.KAnonymity(4), pair))).certificate.ok
    table = schema.encode(columns).join_secrets([("a", "b")])
    halves = table.count_classes(Partition((table.quasi[:, 0] > 0).astype(np.int32), 2))
    assert all(model.holds(halves).all() for model in alone) and not pair.holds(halves).any()
    assert pair.exact_level(halves, 0) == Fraction(1, 2)


# No row lost -------------------------------------------------------------------------------------------------------------


def any_table(seed: int) -> tuple[Case, Any]:
    """Sizes that do not divide, constant and tied secrets, gaps, heavy values; and a method with any parameters."""
    rng = np.random.default_rng([seed, 4])
    rows = int(rng.integers(1, 70))
    cells = people(rng, rows, float(rng.choice([0, 0, 0.3])))
    for name in ("disease", "blood", "charge", "age"):
        if rng.random() < 0.2:
            cells[name] = cells[name][:1] * rows
        elif rng.random() < 0.3:
            heavy = int(rng.integers(0, rows + 1))
            cells[name] = cells[name][:1] * heavy + cells[name][heavy:]
    secrets = rng.choice(["disease", "blood", "charge", "since"], int(rng.integers(0, 4)), replace=False).tolist()
    quasi = rng.choice(["age", "zip", "job", "sex", "visits"], int(rng.integers(1, 4)), replace=False).tolist()
    models: list[Model] = [ck.KAnonymity(int(rng.integers(1, rows + 1)))] if rng.random() < 0.8 else []
    models += [ck.TCloseness(name, round(float(rng.uniform(0, 0.6)), 2), "equal") for name in secrets if rng.random() < 0.7]
    shared = {
        "groups": int(rng.integers(1, 30)) if rng.random() < 0.5 else None,
        "fill": str(rng.choice(["knn", "hilbert", "sweep"])),
        "polish": bool(rng.random() < 0.1),
    }
    schema = ck.Schema(
        quasi={name: KINDS[name] for name in quasi}, sensitive={name: KINDS[name] for name in secrets}, missing=["?"]
    )
    made = Case("any", Columns.of({name: cells[name] for name in [*quasi, *secrets]}), schema, tuple(models))
    if rng.random() < 0.5:
        return made, ck.FcmDraw(grouping=str(rng.choice(["auto", "fuzzy", "balanced"])), **shared)  # type: ignore[arg-type]
    one_hot = bool(rng.random() < 0.3)
    return made, ck.PcaDraw(embedding="one-hot" if one_hot else "tree", scaled=not one_hot, **shared)  # type: ignore[arg-type]


def no_row_lost(seed: int) -> None:
    made, method = any_table(seed)
    table, outcome = run(method, made)
    partition = outcome.partition
    assert len(partition.class_of) == len(table) and (partition.class_of >= 0).all(), (seed, method)
    sizes = np.bincount(partition.class_of, minlength=partition.count)
    assert len(sizes) == partition.count and (sizes > 0).all(), (seed, method)
    assert not find_broken_classes(table, partition, made.models).any(), (seed, method)


def test_no_row_is_lost_or_doubled() -> None:
    for seed in range(80):
        no_row_lost(seed)


@pytest.mark.soak
def test_no_row_is_lost_or_doubled_in_ten_thousand_tables() -> None:
    for seed in range(1000, 11_000):
        no_row_lost(seed)


def test_cells_are_the_rows() -> None:
    """Every row belongs to the cell of its own secrets, also where a secret is missing or there is none."""
    for seed in range(30):
        made, _ = any_table(seed)
        table = made.schema.encode(made.columns)
        names = list(made.schema.sensitive)
        cells = Cells.of(table, names)
        assert cells.rows.sum() == len(table) and (np.bincount(cells.of_row) == cells.rows).all()
        distinct = {tuple(row) for row in table.sensitive.tolist()}
        assert len(cells) == len(distinct) and len(np.unique(cells.points, axis=0)) == len(cells)
        assert sorted(cells.in_order(np.arange(len(cells))).tolist()) == list(range(len(table)))
