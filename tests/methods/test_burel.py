"""BUREL as a user meets it: guarantees kept of every kind, refusals, the literal mode, and fills that mean harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_sabre import (
    GOLDEN,
    LITERAL,
    SEED,
    Harmful,
    cells,
    class_sizes,
    hospital,
    ranked_case,
    refused,
    schema,
    small,
    uncut,
    unrepaired,
)

import closeknit as ck
from closeknit.checks.methods import guarantee_met, run_case, run_once
from closeknit.checks.tables import Case
from closeknit.core.columns import Columns
from closeknit.core.model import Model
from closeknit.methods import burel, plan_search
from closeknit.plans import burel_plan

# The guarantee -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["hilbert", "knn", "sweep"])
@pytest.mark.parametrize("beta", ["1/100", 1, 3.5, 1000])
@pytest.mark.parametrize(("column", "kind"), [("disease", "enhanced"), ("disease", "basic"), ("wage", "enhanced")])
def test_guarantee_is_kept(column: str, kind: str, beta: Any, fill: str) -> None:
    guarantee_met(ck.Burel(fill=fill), small([ck.BetaLikeness(column, beta, kind), ck.KAnonymity(3)]))


@pytest.mark.parametrize("beta", [1, 4])
def test_guarantee_is_kept_at_the_hospital(beta: float) -> None:
    for column in ("disease", "stay"):
        guarantee_met(ck.Burel(), hospital([ck.BetaLikeness(column, beta), ck.KAnonymity(5)]))


@pytest.mark.parametrize("beta", [0.5, 2])
@pytest.mark.parametrize(
    ("column", "more"),
    [
        ("disease", {"kind": "semantic", "below": 0}),
        ("wage", {"kind": "range", "eps": 4}),
        ("wage", {"kind": "range", "eps": "0.5", "relative": True}),
    ],
    ids=["semantic", "range", "relative"],
)
def test_extended_likeness_by_merging(column: str, more: dict[str, Any], beta: float) -> None:
    """Alone, and together with the enhanced one that it does not include."""
    extended = ck.BetaLikeness(column, beta, **more)
    for seed in (1, 2):
        guarantee_met(ck.Burel(), small([extended], seed))
        guarantee_met(ck.Burel(), small([ck.BetaLikeness(column, beta), extended, ck.KAnonymity(3)], seed))


def test_a_plan_for_values_is_repaired_where_ranges_break(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise nothing would show that merging was needed: the plan speaks of single values alone."""
    uncut(monkeypatch)
    monkeypatch.setattr(plan_search, "fill_named", lambda name: Harmful(False))
    secret = [value + half for value in range(4) for half in (0, 4) for _ in range(32 + 4 * value)]  # buckets {v, 4 + v}
    values, ranges = ck.BetaLikeness("secret", 1), ck.BetaLikeness("secret", 1, kind="range", eps=3)
    plain, extended = (run_case(ck.Burel(**LITERAL), ranked_case(ck.numeric(), secret, model)) for model in (values, ranges))
    assert plain.certificate.ok and extended.certificate.ok
    assert 1 < len(class_sizes(extended)) < len(class_sizes(plain))


@pytest.mark.parametrize("column", [None, "disease", "wage"])
def test_several_secrets_each_with_guarantees(column: str | None) -> None:
    models = [
        ck.KAnonymity(3),
        ck.BetaLikeness("disease", 2),
        ck.LDiversity("disease", 3),
        ck.BetaLikeness("wage", 5),
        ck.TCloseness("wage", 0.25),
    ]
    for seed in (1, 2):
        guarantee_met(ck.Burel(column=column), small(models, seed, 200))


@pytest.mark.parametrize("kind", ["enhanced", "basic"])
def test_missing_secrets(kind: str) -> None:
    case = small([ck.BetaLikeness("disease", 1.5, kind), ck.KAnonymity(2)], rows=120, missing=0.2)
    guarantee_met(ck.Burel(), case)
    assert run_once(ck.Burel(), case).columns["disease"].cells().count(None) > 10


@pytest.mark.parametrize("person_rows", ["together", "count-once"])
def test_persons(person_rows: str) -> None:
    columns = Columns.of(cells(3, 160, persons=60))
    models = (ck.KAnonymity(4), ck.BetaLikeness("disease", 2))
    guarantee_met(ck.Burel(), Case("visits", columns, schema(person="patient", person_rows=person_rows), models))


# Edges and refusals ------------------------------------------------------------------------------------------------------


def test_without_likeness_it_says_what_was_asked_and_who_can() -> None:
    said = refused(ck.Burel(), [ck.KAnonymity(3), ck.TCloseness("disease", 0.3)])
    assert "burel plans for beta_likeness, but the request has" in said
    assert "k_anonymity, t_closeness" in said and "mondrian" in said


def test_a_column_without_likeness_is_named() -> None:
    assert "of column 'wage'" in refused(ck.Burel(column="wage"), [ck.BetaLikeness("disease", 2)])


@pytest.mark.parametrize("beta", [0, -1, float("nan"), "much", None])
def test_beta_out_of_range(beta: Any) -> None:
    with pytest.raises(ck.BadInput, match="beta="):
        ck.BetaLikeness("wage", beta)


def test_fewer_rows_than_k() -> None:
    said = refused(ck.Burel(), [ck.KAnonymity(41), ck.BetaLikeness("wage", 2)], ck.Unsatisfiable)
    assert "k = 41" in said and "40" in said


@pytest.mark.parametrize("slack", [False, True])
def test_as_many_buckets_as_rows_are_one_class(slack: bool) -> None:
    columns = Columns.of({"age": [1, 2, 3, 4, 5], "sex": list("fmfmf"), "disease": ["flu"] * 5, "wage": [5, 3, 1, 2, 4]})
    release = run_case(ck.Burel(slack=slack), Case("few", columns, schema(), (ck.BetaLikeness("wage", "1/100"),)))
    assert release.certificate.ok and class_sizes(release) == [5]


def test_one_row_and_one_value() -> None:
    for rows in (1, 6):
        columns = Columns.of({"age": list(range(rows)), "sex": ["f"] * rows, "disease": ["flu"] * rows, "wage": [7] * rows})
        assert run_case(ck.Burel(), Case("same", columns, schema(), (ck.BetaLikeness("disease", 1),))).certificate.ok


# Search ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["hilbert", "knn", "sweep"])
def test_seed_repeats(fill: str) -> None:
    models = [ck.KAnonymity(3), ck.BetaLikeness("disease", 2)]
    columns, method = Columns.of(cells(4, 300)), ck.Burel(fill=fill)
    one, again, other = (ck.anonymize(columns, schema(), models, method, seed=seed) for seed in (SEED, SEED, SEED + 1))
    assert one.partition.tolist() == again.partition.tolist()
    assert one.certificate.to_json() == again.certificate.to_json()
    assert other.certificate.ok


@pytest.mark.parametrize("fill", ["hilbert", "knn", "sweep"])
@pytest.mark.parametrize("slack", [False, True])
def test_polish_never_raises_what_the_search_compares(fill: str, slack: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    uncut(monkeypatch)
    for seed in range(4):
        case = small([ck.KAnonymity(3), ck.BetaLikeness("disease", 2)], seed, 200)
        without, polished = (run_case(ck.Burel(fill=fill, slack=slack, polish=polish), case).loss for polish in (False, True))
        assert polished <= without


@pytest.mark.parametrize("beta", [2, 4])
@pytest.mark.parametrize("fill", ["hilbert", "sweep"])
def test_slack_and_polish_pay(beta: float, fill: str) -> None:
    case = hospital([ck.KAnonymity(4), ck.BetaLikeness("disease", beta)], 1000)
    choices = ((False, False), (False, True), (True, True))
    bare, polished, both = (run_case(ck.Burel(fill=fill, slack=slack, polish=polish), case).loss for slack, polish in choices)
    assert both < polished <= bare


# As its source prints it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["enhanced", "basic"])
@pytest.mark.parametrize("fill", ["hilbert", "knn", "sweep"])
def test_a_plan_needs_no_repair(fill: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes have the very counts that the plan allotted, and the guarantee holds."""
    uncut(monkeypatch)
    unrepaired(monkeypatch)
    case = small([ck.KAnonymity(3), ck.BetaLikeness("disease", 2, kind)], 5, 400)
    release = run_case(ck.Burel(fill=fill, **LITERAL), case)
    table = schema().encode(case.columns)
    secret = table.one_class().histograms["disease"]
    plan = burel_plan(secret, secret.domain, 2, 3, kind)
    counts = np.zeros_like(plan.allotments)
    np.add.at(counts, (release.partition[table.rows], plan.bucket_of[table.secret("disease")[0]]), 1)
    assert sorted(counts.tolist()) == sorted(plan.allotments.tolist()) and len(counts) > 1
    assert release.certificate.ok and release.certificate.guarantees[1].measured <= 2


def examples() -> list[tuple[str, list[str], Any, list[int]]]:
    equal, unequal = GOLDEN["004-Ex4.1"], GOLDEN["004-Ex4.2"]
    rows = [disease for disease, times in unequal["freq"].items() for _ in range(times)]
    sizes = sorted(sum(leaf) for leaf in unequal["leaves_floor"])
    return [("six equal values", list("abcdef"), equal["beta"], [3, 3]), ("nineteen patients", rows, unequal["beta"], sizes)]


@pytest.mark.parametrize(
    ("secret", "beta", "expected"), [case[1:] for case in examples()], ids=[case[0] for case in examples()]
)
def test_sizes_of_the_examples(secret: list[str], beta: Any, expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    uncut(monkeypatch)
    unrepaired(monkeypatch)
    release = run_case(ck.Burel(**LITERAL), ranked_case(ck.flat(), secret, ck.BetaLikeness("secret", beta)))
    assert class_sizes(release) == expected


class Greedy(Harmful):
    """The first class gets as many rows of the rarest value of every bucket as it can."""

    def __init__(self, counts: np.ndarray) -> None:
        super().__init__(falling=False)
        self.counts = counts

    def fill(self, quasi: np.ndarray, *given: Any) -> np.ndarray:
        rarity = np.argsort(np.argsort(self.counts, kind="stable"))
        return super().fill(rarity[quasi[:, :1]], *given)


def skewed(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(9, 1.5))
    return [*rng.choice(list("abcdefghi"), 240, p=shares).tolist(), *"abcdefghi"]


def harmful_fills(secret: list[str], monkeypatch: pytest.MonkeyPatch, model: Model) -> list[ck.Release]:
    """Releases of the literal mode under three fills that mean harm."""
    counts = np.unique(secret, return_counts=True)[1]
    releases = []
    for fill in (Harmful(False), Harmful(True), Greedy(counts)):
        monkeypatch.setattr(plan_search, "fill_named", lambda name, fill=fill: fill)
        releases.append(run_case(ck.Burel(**LITERAL), ranked_case(ck.flat(), secret, model)))
    return releases


@pytest.mark.parametrize("kind", ["enhanced", "basic"])
@pytest.mark.parametrize("seed", range(3))
def test_harmful_fills_cannot_break_a_plan(seed: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uncut(monkeypatch)
    unrepaired(monkeypatch)
    cuts = 0
    for beta in (0.3, 1, 2, 4, 9):
        for release in harmful_fills(skewed(seed), monkeypatch, ck.BetaLikeness("secret", beta, kind)):
            assert release.certificate.ok
            cuts += len(class_sizes(release)) - 1
    assert cuts > 10


def test_harmful_fills_break_a_plan_that_was_made_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above could not fail; and a repair mends what they break."""
    uncut(monkeypatch)
    plan = burel.burel_plan
    monkeypatch.setattr(burel, "burel_plan", lambda secret, domain, beta, *given: plan(secret, domain, 5 * beta, *given))
    assert all(release.certificate.ok for release in harmful_fills(skewed(0), monkeypatch, ck.BetaLikeness("secret", 1)))
    unrepaired(monkeypatch)
    with pytest.raises(AssertionError, match="a plan was broken"):
        harmful_fills(skewed(0), monkeypatch, ck.BetaLikeness("secret", 1))
