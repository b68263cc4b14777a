"""The automatic choice of k: scaling, ties and limits by hand, and that what was measured is what a release reaches."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.api import choosing_k
from closeknit.api.choosing_k import MOST, choose_k
from closeknit.core.choice import Choice, scores
from closeknit.core.columns import Columns
from closeknit.core.measurement import judge
from closeknit.datasets import hospital, hospital_schema
from closeknit.forms.release_reading import reading_of
from conftest import examples

SEED = 2**100
HALF = Fraction(1, 2)


def parts(*numbers: str) -> list[Fraction]:
    return [Fraction(number) for number in numbers]


# The rule --------------------------------------------------------------------------------------------------------------------


def test_scaled_costs_by_hand() -> None:
    ts, losses = parts("0.5", "0.3", "0.1"), parts("0.2", "0.3", "0.7")
    assert scores(ts, losses, HALF) == [HALF, Fraction(7, 20), HALF]  # (1 + 0)/2, (1/2 + 1/5)/2, (0 + 1)/2
    assert scores(ts, losses, Fraction(1)) == [1, HALF, 0] and scores(ts, losses, Fraction(0)) == [0, Fraction(1, 5), 1]


def test_a_series_that_does_not_change_is_nothing() -> None:
    assert scores(parts("0.4", "0.4"), parts("0.1", "0.2"), HALF) == [0, HALF]
    assert scores(parts("0.4", "0.4"), parts("0.1", "0.1"), HALF) == [0, 0]


def test_costs_as_printed() -> None:
    assert scores(parts("0.2", "0.1"), parts("0.3", "0.6"), HALF, scaled=False) == [Fraction(1, 4), Fraction(7, 20)]


@given(st.lists(st.tuples(st.fractions(0, 1), st.fractions(0, 1)), min_size=1, max_size=8), st.fractions(0, 1))
@settings(max_examples=examples(60))
def test_scaling_ignores_units(series: list[tuple[Fraction, Fraction]], alpha: Fraction) -> None:
    ts, losses = zip(*series, strict=True)
    moved = scores([3 * t + 2 for t in ts], [loss / 7 for loss in losses], alpha)
    assert moved == scores(ts, losses, alpha) and all(0 <= cost <= 1 for cost in moved)


# On tables -------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def choice() -> Choice:
    return ck.choose_k(hospital(120), hospital_schema(), column="disease", seed=SEED)


def test_candidates_are_those_of_the_secret(choice: Choice) -> None:
    values = len(set(hospital(120)["disease"].cells()))
    assert [candidate.k for candidate in choice.candidates] == [*range(2, values + 1)]
    assert choice.chosen and choice.chosen.k == choice.k


def test_candidates_come_to_what_releases_reach(choice: Choice) -> None:
    for candidate in choice.candidates[::4]:
        method = ck.StackAndDeal(column="disease")
        release = ck.anonymize(hospital(120), hospital_schema(), [ck.KAnonymity(candidate.k)], method, seed=SEED)
        (t,) = judge(reading_of(release), [ck.TCloseness("disease", 1)])
        assert (candidate.loss, candidate.t) == (release.loss, t.measured)


def test_the_least_cost_is_chosen_and_of_equal_ones_the_largest(choice: Choice) -> None:
    found = [candidate for candidate in choice.candidates if candidate.t is not None and candidate.loss is not None]
    costs = scores([Fraction(str(c.t)) for c in found], [Fraction(str(c.loss)) for c in found], HALF)
    assert [candidate.score for candidate in found] == [pytest.approx(float(cost), abs=1e-9) for cost in costs]
    assert choice.k == max(candidate.k for candidate in found if candidate.score == min(c.score for c in found))


def test_two_candidates_tie_and_the_larger_is_taken() -> None:
    """Scaled, one of them has the largest distance and the other the largest loss: half of each is the same."""
    found = ck.choose_k(hospital(120), hospital_schema(), column="disease", ks=[9, 3], seed=SEED)
    low, high = found.candidates
    assert low.t > high.t and low.loss < high.loss and low.score == high.score == 0.5  # type: ignore[operator]
    assert found.k == 9
    assert choose_k(hospital(120), hospital_schema(), column="disease", ks=[3, 9], alpha=0.4, seed=SEED).k == 3
    assert choose_k(hospital(120), hospital_schema(), column="disease", ks=[3, 9], alpha=0.6, seed=SEED).k == 9


def test_weights_decide() -> None:
    ends = [choose_k(hospital(120), hospital_schema(), column="disease", ks=[2, 4, 8], alpha=a, seed=SEED) for a in (0, 1)]
    least = min(ends[0].candidates, key=lambda c: c.loss or 0)
    closest = min(ends[1].candidates, key=lambda c: c.t or 0)
    assert (ends[0].k, ends[1].k) == (least.k, closest.k) == (2, 8)


def test_not_scaled_one_of_the_smallest_is_chosen() -> None:
    """Of an ordered secret: its distances are small compared with the loss."""
    both = [choose_k(hospital(120), hospital_schema(), column="stay", scaled=scaled, seed=SEED) for scaled in (True, False)]
    assert both[1].k <= 3 < both[0].k and "not scaled" in str(both[1])
    assert [(c.k, c.t, c.loss) for c in both[0].candidates] == [(c.k, c.t, c.loss) for c in both[1].candidates]


def test_least_loss_within_a_limit(choice: Choice) -> None:
    limit = sorted(candidate.t for candidate in choice.candidates if candidate.t is not None)[2]
    found = choose_k(hospital(120), hospital_schema(), column="disease", t=limit, seed=SEED)
    kept = [c for c in choice.candidates if c.t is not None and c.t <= limit + 1e-12 and c.loss is not None]
    assert len(kept) >= 3 and found.chosen and found.chosen.loss == min(c.loss or 0 for c in kept)
    assert "the least loss with t <=" in str(found) and all(c.score is None for c in found.candidates)
    with pytest.raises(ck.Unsatisfiable, match="the nearest of these k reaches"):
        choose_k(hospital(120), hospital_schema(), column="disease", t=0, ks=[2, 3], seed=SEED)


def table(wages: list[int]) -> tuple[Columns, ck.Schema]:
    columns = Columns.of({"age": [*range(30, 30 + len(wages))], "wage": wages})
    return columns, ck.Schema(quasi={"age": ck.numeric()}, sensitive={"wage": ck.numeric()})


@pytest.mark.parametrize("wages", [[10, 10, 10], [10]])
def test_nothing_to_choose_is_one_class(wages: list[int]) -> None:
    found = choose_k(*table(wages), seed=SEED)
    assert (found.k, found.candidates, found.chosen) == (len(wages), (), None)
    assert str(found) == f"nothing to choose: one class of all {len(wages)} rows"


def test_k_ends_at_the_number_of_rows_and_many_are_thinned() -> None:
    assert [c.k for c in choose_k(*table([10, 20, 30, 40]), seed=SEED).candidates] == [2, 3, 4]
    coded = table([*range(2000)])
    some = choosing_k._candidates(coded[1].encode(coded[0]), "wage")
    assert some[0] == 2 and some[-1] == 2000 and len(some) <= MOST and some == sorted(set(some))


def test_a_refused_candidate_is_reported_and_never_chosen() -> None:
    found = choose_k(*table([10, 20, 30, 40]), ks=[2, 9], seed=SEED)
    assert found.k == 2 and found.candidates[1].score is None
    assert "k = 9 has no release: k-anonymity, k = 9 cannot be met" in str(found)
    with pytest.raises(ck.Unsatisfiable, match="any of these k"):
        choose_k(*table([10, 20, 30, 40]), ks=[9], seed=SEED)


def test_other_guarantees_are_kept() -> None:
    models: list[Any] = [ck.KAnonymity(50), ck.LDiversity("disease", 3)]
    found = choose_k(hospital(120), hospital_schema(), models, "mondrian", column="disease", ks=[2, 5], seed=SEED)
    for candidate in found.candidates:
        requested = [ck.KAnonymity(candidate.k), ck.LDiversity("disease", 3)]
        assert ck.anonymize(hospital(120), hospital_schema(), requested, ck.Mondrian(), seed=SEED).loss == candidate.loss


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "the schema has several sensitive columns; name one with column="),
        ({"column": "age"}, "column that is not sensitive"),
        ({"column": "disease", "alpha": 2}, "alpha=2 is out of range"),
        ({"column": "disease", "ks": [0]}, "k=0 is too small"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ck.BadInput, match=sentence):
        choose_k(hospital(40), hospital_schema(), **options)


def test_json_is_read_back(choice: Choice) -> None:
    assert Choice.from_json(choice.to_json()) == choice
    assert [record["chosen"] for record in choice.records()].count(True) == 1


@pytest.mark.parametrize("ks", [5, []])
def test_ks_that_name_no_k_are_refused(ks: object) -> None:
    table = Columns.of({"age": [30, 31, 70, 71], "ill": ["flu", "gout"] * 2})
    with pytest.raises(ck.BadInput, match="names no k"):
        ck.choose_k(table, ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()}), ks=ks)  # type: ignore[arg-type]


def test_k_is_chosen_by_one_secret() -> None:
    with pytest.raises(ck.BadInput, match="is not one column"):
        ck.choose_k(ck.datasets.hospital(60), ck.datasets.hospital_schema(), column=("disease", "stay"), ks=[2])  # type: ignore[arg-type]
