"""SABRE as a user meets it: guarantees kept in every distance, refusals, the literal mode, and fills that mean harm."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_models_golden import counts_of, tree_of

import closeknit as ck
from closeknit.checks.methods import guarantee_met, run_case, run_once
from closeknit.checks.tables import Case
from closeknit.core.columns import Columns
from closeknit.core.model import Model
from closeknit.methods import plan_search, sabre
from closeknit.plans import sabre_plan
from closeknit.search import candidate_search

ALLOW_VACUOUS = True
GOLDEN = {case["id"]: case for case in json.loads((Path(__file__).parents[1] / "golden" / "static.json").read_text())}
SEED = 2**99
DISEASES = {"lungs": ["flu", "SARS"], "bowels": ["ulcer", "colic", "cancer"], "gout": None}
LITERAL = {"slack": False, "polish": False}


def cells(seed: int, rows: int, missing: float = 0.0, persons: int = 0) -> dict[str, list[Any]]:
    """Two columns that say something about a disease and a wage."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, rows)
    disease = rng.choice(["flu", "SARS", "ulcer", "colic", "cancer", "gout"], rows, p=[0.4, 0.05, 0.2, 0.15, 0.1, 0.1])
    disease = np.where(rng.random(rows) < missing, None, disease)
    made = {
        "age": age.tolist(),
        "sex": rng.choice(["f", "m"], rows).tolist(),
        "disease": disease.tolist(),
        "wage": (age // 3 + rng.integers(0, 8, rows)).tolist(),
    }
    return made | {"patient": [f"p{i}" for i in rng.integers(0, persons, rows)]} if persons else made


def schema(**more: Any) -> ck.Schema:
    quasi = {"age": ck.numeric(), "sex": ck.flat()}
    return ck.Schema(quasi=quasi, sensitive={"disease": ck.Hierarchy.from_nested(DISEASES), "wage": ck.numeric()}, **more)


def small(models: list[Model], seed: int = 1, rows: int = 150, missing: float = 0.0) -> Case:
    return Case("small", Columns.of(cells(seed, rows, missing)), schema(), tuple(models))


def hospital(models: list[Model], rows: int = 500) -> Case:
    return Case("hospital", ck.datasets.hospital(rows), ck.datasets.hospital_schema(), tuple(models))


def uncut(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a plan, a fill and perhaps a repair made stays as it is."""
    monkeypatch.setattr(candidate_search, "refine_partition", lambda table, partition, models, scales: partition)


def unrepaired(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any) -> None:
        raise AssertionError("a plan was broken: a repair was asked for")

    monkeypatch.setattr(candidate_search, "repair_partition", refuse)


def class_sizes(release: ck.Release) -> list[int]:
    return sorted(Counter(release.partition.tolist()).values())


# The guarantee -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["hilbert", "knn", "sweep"])
@pytest.mark.parametrize("t", [0, "1/100", 0.2, 1])
@pytest.mark.parametrize(
    ("column", "distance"), [("wage", "ordered"), ("disease", "hierarchical"), ("disease", "equal"), ("wage", "equal")]
)
def test_guarantee_is_kept(column: str, distance: str, t: Any, fill: str) -> None:
    guarantee_met(ck.Sabre(fill=fill), small([ck.TCloseness(column, t, distance), ck.KAnonymity(3)]))


@pytest.mark.parametrize("bound", ["exact", "printed"])
@pytest.mark.parametrize("t", [0.1, 0.3])
def test_guarantee_is_kept_at_the_hospital(t: float, bound: str) -> None:
    for column in ("disease", "stay"):
        guarantee_met(ck.Sabre(bound=bound), hospital([ck.TCloseness(column, t), ck.KAnonymity(5)]))


def test_a_guarantee_that_allows_everything_publishes_more_than_one_that_allows_nothing() -> None:
    losses = [run_once(ck.Sabre(), small([ck.TCloseness("wage", t)])).loss for t in (0, 0.2, 1)]
    assert losses[0] > losses[1] > losses[2] and losses[2] < 0.05


@pytest.mark.parametrize("column", [None, "disease", "wage"])
def test_several_secrets_each_with_guarantees(column: str | None) -> None:
    models = [
        ck.KAnonymity(3),
        ck.TCloseness("disease", 0.3),
        ck.LDiversity("disease", 3),
        ck.TCloseness("wage", 0.2),
        ck.BetaLikeness("wage", 4),
        ck.DeltaDisclosure("disease", 3),
    ]
    for seed in (1, 2):
        guarantee_met(ck.Sabre(column=column), small(models, seed, 200))


@pytest.mark.parametrize("distance", ["equal", "hierarchical"])
@pytest.mark.parametrize("t", [0, 0.25])
def test_missing_secrets(distance: str, t: float) -> None:
    case = small([ck.TCloseness("disease", t, distance), ck.KAnonymity(2)], rows=120, missing=0.2)
    guarantee_met(ck.Sabre(), case)
    assert run_once(ck.Sabre(), case).columns["disease"].cells().count(None) > 10


@pytest.mark.parametrize("person_rows", ["together", "count-once"])
def test_persons(person_rows: str) -> None:
    columns = Columns.of(cells(3, 160, persons=60))
    models = (ck.KAnonymity(4), ck.TCloseness("disease", 0.35))
    guarantee_met(ck.Sabre(), Case("visits", columns, schema(person="patient", person_rows=person_rows), models))


# Edges and refusals ------------------------------------------------------------------------------------------------------


def refused(method: Any, models: list[Model], expected: type[Exception] = ck.BadInput) -> str:
    with pytest.raises(expected) as caught:
        ck.anonymize(Columns.of(cells(1, 40)), schema(), models, method, seed=SEED)
    assert caught.value.status == (2 if expected is ck.BadInput else 1)  # type: ignore[attr-defined]
    return str(caught.value)


def test_without_closeness_it_says_what_was_asked_and_who_can() -> None:
    said = refused(ck.Sabre(), [ck.KAnonymity(3), ck.BetaLikeness("disease", 2)])
    assert "sabre plans for t_closeness, but the request has" in said
    assert "k_anonymity, beta_likeness" in said and "mondrian" in said
    served = [ck.KAnonymity(3), ck.BetaLikeness("disease", 2)]  # the way out that it names
    assert ck.anonymize(Columns.of(cells(1, 40)), schema(), served, ck.Mondrian(), seed=SEED).certificate.ok


def test_a_column_without_closeness_is_named() -> None:
    said = refused(ck.Sabre(column="wage"), [ck.TCloseness("disease", 0.2)])
    assert "of column 'wage'" in said and "t_closeness" in said


@pytest.mark.parametrize("t", [-0.1, 1.1, float("nan"), "much", None])
def test_t_out_of_range(t: Any) -> None:
    with pytest.raises(ck.BadInput, match="t="):
        ck.TCloseness("wage", t)


def test_an_order_that_is_not_there() -> None:
    said = refused(ck.Sabre(), [ck.TCloseness("disease", 0.2, "ordered")])
    assert "column 'disease'" in said and "order" in said
    with pytest.raises(ck.BadInput, match="missing"):
        run_case(
            ck.Sabre(),
            Case(
                "gaps",
                Columns.of({"age": [1, 2, 3, 4], "sex": list("fmfm"), "disease": ["flu"] * 4, "wage": [1, None, 2, 3]}),
                schema(),
                (ck.TCloseness("wage", 0.2),),
            ),
        )


def test_fewer_rows_than_k() -> None:
    said = refused(ck.Sabre(), [ck.KAnonymity(41), ck.TCloseness("wage", 0.2)], ck.Unsatisfiable)
    assert "k = 41" in said and "40" in said


@pytest.mark.parametrize("slack", [False, True])
def test_as_many_buckets_as_rows_are_one_class(slack: bool) -> None:
    columns = Columns.of({"age": [1, 2, 3, 4, 5], "sex": list("fmfmf"), "disease": ["flu"] * 5, "wage": [5, 3, 1, 2, 4]})
    case = Case("few", columns, schema(), (ck.TCloseness("wage", 0),))
    release = run_case(ck.Sabre(slack=slack), case)
    assert release.certificate.ok and class_sizes(release) == [5]


@pytest.mark.parametrize("t", [0, 0.5])
def test_one_row_and_one_value(t: float) -> None:
    for rows in (1, 6):
        columns = Columns.of({"age": list(range(rows)), "sex": ["f"] * rows, "disease": ["flu"] * rows, "wage": [7] * rows})
        assert run_case(ck.Sabre(), Case("same", columns, schema(), (ck.TCloseness("disease", t),))).certificate.ok


# Search ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["hilbert", "knn", "sweep"])
def test_seed_repeats(fill: str) -> None:
    models = [ck.KAnonymity(3), ck.TCloseness("wage", 0.15)]
    columns, method = Columns.of(cells(4, 300)), ck.Sabre(fill=fill)
    one, again, other = (ck.anonymize(columns, schema(), models, method, seed=seed) for seed in (SEED, SEED, SEED + 1))
    assert one.partition.tolist() == again.partition.tolist()
    assert one.certificate.to_json() == again.certificate.to_json()
    assert other.certificate.ok


def test_another_seed_may_find_other_classes() -> None:
    models, columns = [ck.TCloseness("wage", 0.15)], Columns.of(cells(4, 300))
    found = [ck.anonymize(columns, schema(), models, ck.Sabre(), seed=SEED + i).partition.tolist() for i in range(3)]
    assert found[0] != found[1] or found[1] != found[2]


@pytest.mark.parametrize("fill", ["hilbert", "knn", "sweep"])
@pytest.mark.parametrize("slack", [False, True])
def test_polish_never_raises_what_the_search_compares(fill: str, slack: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    uncut(monkeypatch)
    for seed in range(4):
        case = small([ck.KAnonymity(3), ck.TCloseness("wage", 0.15)], seed, 200)
        without, polished = (run_case(ck.Sabre(fill=fill, slack=slack, polish=polish), case).loss for polish in (False, True))
        assert polished <= without


@pytest.mark.parametrize("model", [ck.TCloseness("disease", 0.25), ck.TCloseness("stay", 0.1)], ids=["tree", "line"])
@pytest.mark.parametrize("fill", ["hilbert", "sweep"])
def test_slack_and_polish_pay(model: Model, fill: str) -> None:
    case = hospital([ck.KAnonymity(4), model], 1000)
    choices = ((False, False), (False, True), (True, True))
    bare, polished, both = (run_case(ck.Sabre(fill=fill, slack=slack, polish=polish), case).loss for slack, polish in choices)
    assert both < polished <= bare


# As its source prints it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["exact", "printed"])
@pytest.mark.parametrize("fill", ["hilbert", "knn", "sweep"])
@pytest.mark.parametrize(
    "model",
    [ck.TCloseness("wage", 0.2), ck.TCloseness("disease", 0.35), ck.TCloseness("disease", 0.3, "equal")],
    ids=["ordered", "hierarchical", "equal"],
)
def test_a_plan_needs_no_repair(model: ck.TCloseness, fill: str, bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes have the very counts that the plan allotted, and the guarantee holds."""
    uncut(monkeypatch)
    unrepaired(monkeypatch)
    case = small([ck.KAnonymity(3), model], 5, 400)
    release = run_case(ck.Sabre(fill=fill, bound=bound, **LITERAL), case)
    table = schema().encode(case.columns)
    secret = table.one_class().histograms[model.column]
    plan = sabre_plan(secret, secret.domain, model.distance, model.t, 3, bound)
    counts = np.zeros_like(plan.allotments)
    codes, _ = table.secret(model.column)
    np.add.at(counts, (release.partition[table.rows], plan.bucket_of[codes]), 1)
    assert sorted(counts.tolist()) == sorted(plan.allotments.tolist()) and len(counts) > 1
    assert release.certificate.ok and release.certificate.guarantees[1].measured <= float(model.t)


def example_case(t: str) -> Case:
    """The eighteen patients of Example 3.7."""
    example = GOLDEN["004-Ex3.7"]
    kind = ck.Hierarchy.from_nested(tree_of(example["tree"]))
    leaves = [leaf for branch in example["tree"]["children"] for leaf in branch["children"]]
    patients = [leaf for leaf, times in zip(leaves, counts_of(example["p"]).tolist(), strict=True) for _ in range(times)]
    columns = Columns.of({"age": [20 + 7 * i % 18 for i in range(18)], "disease": patients})
    return Case(
        "example", columns, ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": kind}), (ck.TCloseness("disease", t),)
    )


@pytest.mark.parametrize(("bound", "expected"), [("printed", "leaves"), ("exact", "leaves_exact_worst_case")])
def test_sizes_of_the_example(bound: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uncut(monkeypatch)
    unrepaired(monkeypatch)
    release = run_case(ck.Sabre(bound=bound, **LITERAL), example_case("9/20"))
    assert class_sizes(release) == sorted(sum(leaf) for leaf in GOLDEN["004-Ex3.7"][expected])


class Harmful:
    """Fills from one end of every bucket: the first class gets the lowest (or highest) secrets that it can."""

    name = "harmful"

    def __init__(self, falling: bool) -> None:
        self.falling = falling

    def fill(
        self,
        quasi: np.ndarray,
        scales: Any,
        points: np.ndarray,
        bucket_of_row: np.ndarray,
        allotments: np.ndarray,
        seed: int,
        keys: np.ndarray | None = None,
    ) -> np.ndarray:
        class_of = np.empty(len(quasi), dtype=np.int32)
        for bucket in range(allotments.shape[1]):
            rows = np.flatnonzero(bucket_of_row == bucket)
            rows = rows[np.argsort(quasi[rows, 0], kind="stable")]  # the column that follows the secret
            class_of[rows[::-1] if self.falling else rows] = np.repeat(np.arange(len(allotments)), allotments[:, bucket])
        return class_of


def ranked_case(kind: Any, secret: list[Any], model: Model) -> Case:
    """A table whose one quasi column is the secret's place in the order of its leaves."""
    order, _ = kind.bind(np.array(secret, dtype=object) if isinstance(secret[0], str) else np.array(secret))
    place = {text: i for i, text in enumerate(order.texts)}
    columns = Columns.of({"place": [place[str(value)] for value in secret], "secret": secret})
    return Case("ranked", columns, ck.Schema(quasi={"place": ck.numeric()}, sensitive={"secret": kind}), (model,))


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("bound", ["exact", "printed"])
@pytest.mark.parametrize("seed", range(3))
def test_harmful_fills_cannot_break_a_plan(seed: int, bound: str, falling: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    uncut(monkeypatch)
    unrepaired(monkeypatch)
    monkeypatch.setattr(plan_search, "fill_named", lambda name: Harmful(falling))
    rng = np.random.default_rng(seed)
    wages = (rng.integers(0, 9, 200) + rng.integers(0, 9, 200)).tolist()
    diseases = rng.choice(["flu", "SARS", "ulcer", "colic", "cancer", "gout"], 200, p=[0.3, 0.1, 0.2, 0.1, 0.2, 0.1]).tolist()
    cuts = 0
    for t in (0.02, 0.1, 0.2, 0.35, 0.6):
        for kind, secret, distance in (
            (ck.numeric(), wages, "ordered"),
            (ck.Hierarchy.from_nested(DISEASES), diseases, "hierarchical"),
            (ck.flat(), diseases, "equal"),
        ):
            case = ranked_case(kind, secret, ck.TCloseness("secret", t, distance))
            release = run_case(ck.Sabre(bound=bound, **LITERAL), case)
            assert release.certificate.ok
            cuts += len(class_sizes(release)) - 1
    assert cuts > 20


def test_harmful_fills_break_a_plan_that_was_made_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above could not fail; and a repair mends what they break."""
    uncut(monkeypatch)
    monkeypatch.setattr(plan_search, "fill_named", lambda name: Harmful(False))
    plan = sabre.sabre_plan
    monkeypatch.setattr(
        sabre, "sabre_plan", lambda secret, domain, distance, t, *given: plan(secret, domain, distance, 3 * t, *given)
    )
    case = ranked_case(ck.numeric(), [i % 10 for i in range(200)], ck.TCloseness("secret", 0.1))
    assert run_case(ck.Sabre(**LITERAL), case).certificate.ok
    unrepaired(monkeypatch)
    with pytest.raises(AssertionError, match="a plan was broken"):
        run_case(ck.Sabre(**LITERAL), case)


@pytest.mark.parametrize("t", [0.15, 0.5])
def test_slack_never_loses_more_than_cuts_alone(t: float) -> None:
    table, schema, models = (
        ck.datasets.hospital(300),
        ck.datasets.hospital_schema(),
        [ck.KAnonymity(4), ck.TCloseness("stay", t)],
    )
    by_cuts = ck.anonymize(table, schema, models, ck.Mondrian(), seed=2**64)
    assert ck.anonymize(table, schema, models, ck.Sabre(), seed=2**64).loss <= by_cuts.loss
