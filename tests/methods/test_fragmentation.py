"""Fragmentation as a whole: guarantees for several secrets at once, edges, refusals, and plans that no fill can break."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sabre import Harmful, cells, class_sizes, hospital, schema, small, uncut, unrepaired

import closeknit as ck
from closeknit.checks.methods import guarantee_met, run_case, run_once
from closeknit.checks.tables import Case
from closeknit.core.columns import Columns
from closeknit.core.model import Model
from closeknit.methods import fragmentation, plan_search
from conftest import examples

LITERAL = {"slack": False, "polish": False}
SEED = 2**99


def two_secrets(a: Any, b: Any, models: list[Model], shown: Any = None) -> Case:
    """A table of two ordered secrets whose one quasi column is `shown` (or the row's place)."""
    place = list(range(len(a))) if shown is None else shown
    columns = Columns.of({"place": [int(x) for x in place], "a": [int(x) for x in a], "b": [int(x) for x in b]})
    kinds = ck.Schema(quasi={"place": ck.numeric()}, sensitive={"a": ck.numeric(), "b": ck.numeric()})
    return Case("two", columns, kinds, tuple(models))


def both(t_a: Any, t_b: Any, k: int = 1) -> list[Model]:
    return [ck.KAnonymity(k), ck.TCloseness("a", t_a), ck.TCloseness("b", t_b)]


# The guarantee -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["hilbert", "knn", "sweep"])
@pytest.mark.parametrize(("t_disease", "t_wage"), [(0, 0), (0.3, 0.1), ("1/20", 0.4), (1, 1)])
@pytest.mark.parametrize("distance", ["hierarchical", "equal"])
def test_guarantee_is_kept(distance: str, t_disease: Any, t_wage: Any, fill: str) -> None:
    models = [ck.TCloseness("disease", t_disease, distance), ck.TCloseness("wage", t_wage), ck.KAnonymity(3)]
    guarantee_met(ck.Fragmentation(fill=fill), small(models))


@pytest.mark.parametrize("sizing", ["deal", "halve", "gcd"])
@pytest.mark.parametrize("bound", ["best", "printed"])
def test_guarantee_is_kept_with_every_plan(bound: str, sizing: str) -> None:
    models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.35), ck.TCloseness("stay", 0.15)]
    for slack in (False, True):
        guarantee_met(ck.Fragmentation(bound=bound, sizing=sizing, slack=slack), hospital(models, 400))


def test_three_secrets_and_any_mixture_of_guarantees() -> None:
    rng = np.random.default_rng(5)
    made = cells(5, 240) | {"visits": rng.integers(0, 6, 240).tolist()}
    kinds = ck.Schema(
        quasi={"age": ck.numeric(), "sex": ck.flat()},
        sensitive={"disease": ck.flat(), "wage": ck.numeric(), "visits": ck.numeric()},
    )
    models = (
        ck.KAnonymity(3),
        ck.TCloseness("disease", 0.4),
        ck.TCloseness("wage", 0.25),
        ck.TCloseness("visits", 0.3),
        ck.LDiversity("disease", 3),
        ck.BetaLikeness("wage", 5),
    )
    case = Case("three", Columns.of(made), kinds, models)
    guarantee_met(ck.Fragmentation(), case)
    assert len(class_sizes(run_once(ck.Fragmentation(), case))) > 3


@pytest.mark.parametrize(
    "models",
    [
        [ck.TCloseness("wage", 0.15)],
        [ck.TCloseness("disease", 0.3)],
        [ck.TCloseness("wage", 0.2), ck.TCloseness("wage", 0.5, "equal")],
    ],
    ids=["line", "tree", "two distances of one secret"],
)
def test_one_secret_only(models: list[Model]) -> None:
    case = small([*models, ck.KAnonymity(3)], rows=300)
    guarantee_met(ck.Fragmentation(), case)
    assert len(class_sizes(run_once(ck.Fragmentation(), case))) > 3


def test_two_guarantees_about_one_secret_are_both_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    uncut(monkeypatch)
    unrepaired(monkeypatch)
    case = small([ck.TCloseness("wage", 0.2), ck.TCloseness("wage", 0.6, "equal"), ck.KAnonymity(3)], rows=300)
    assert run_case(ck.Fragmentation(**LITERAL), case).certificate.ok


def test_missing_secrets_and_persons() -> None:
    models: list[Model] = [ck.TCloseness("disease", 0.35, "equal"), ck.TCloseness("wage", 0.3), ck.KAnonymity(3)]
    guarantee_met(ck.Fragmentation(), small(models, rows=150, missing=0.2))
    for person_rows in ("together", "count-once"):
        columns = Columns.of(cells(3, 160, persons=60))
        guarantee_met(
            ck.Fragmentation(), Case("visits", columns, schema(person="patient", person_rows=person_rows), tuple(models))
        )


def test_secrets_counted_as_one() -> None:
    joint = ck.TCloseness(("disease", "wage"), 0.8)
    guarantee_met(ck.Fragmentation(), small([ck.KAnonymity(3), joint]))
    guarantee_met(ck.Fragmentation(), small([ck.KAnonymity(3), ck.TCloseness("wage", 0.3), joint]))


@settings(max_examples=examples(40))
@given(
    st.integers(1, 60),
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from([0, "1/9", 0.3, 1]),
    st.sampled_from([0, "1/7", 0.5]),
    st.integers(0, 9),
)
def test_no_row_is_lost_or_doubled(n: int, m_a: int, m_b: int, k: int, t_a: Any, t_b: Any, seed: int) -> None:
    """Sizes that do not divide, constant secrets, ties."""
    rng = np.random.default_rng(seed)
    case = two_secrets(rng.integers(0, m_a, n), rng.integers(0, m_b, n), both(t_a, t_b, min(k, n)))
    release = run_case(ck.Fragmentation(), case)
    assert release.certificate.ok and (release.partition >= 0).all() and len(release.partition) == n
    assert min(class_sizes(release)) >= min(k, n)
    for name in ("a", "b"):
        assert Counter(release.columns[name].cells()) == Counter(case.columns[name].cells())


# Plans that no fill can break --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizing", ["deal", "halve"])
@pytest.mark.parametrize("bound", ["best", "printed"])
@pytest.mark.parametrize("falling", [False, True])
def test_harmful_fills_cannot_break_a_plan(falling: bool, bound: str, sizing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uncut(monkeypatch)
    unrepaired(monkeypatch)
    monkeypatch.setattr(plan_search, "fill_named", lambda name: Harmful(falling))
    cuts = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, b = rng.integers(0, 8, 400), np.minimum(rng.integers(0, 8, 400), rng.integers(0, 8, 400))
        for t_a, t_b in ((0.1, 0.1), (0.3, 0.05), (0.5, 0.5)):
            for shown in (a, b, a + b, a - b):
                release = run_case(
                    ck.Fragmentation(bound=bound, sizing=sizing, **LITERAL), two_secrets(a, b, both(t_a, t_b, 2), shown)
                )
                assert release.certificate.ok
                cuts += len(class_sizes(release)) - 1
    assert cuts > 200


def test_harmful_fills_break_a_plan_that_was_made_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above could not fail; and a repair mends what they break."""
    uncut(monkeypatch)
    monkeypatch.setattr(plan_search, "fill_named", lambda name: Harmful(False))
    find, size = fragmentation.find_fragmentation, fragmentation.fragment_plan
    monkeypatch.setattr(fragmentation, "find_fragmentation", lambda space, t, bound: find(space, [4 * x for x in t], bound))
    monkeypatch.setattr(fragmentation, "fragment_plan", lambda made, t, *given: size(made, [4 * x for x in t], *given))
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 8, 300), rng.integers(0, 8, 300)
    case = two_secrets(a, b, both(0.1, 0.1, 2), a + b)
    assert run_case(ck.Fragmentation(**LITERAL), case).certificate.ok
    unrepaired(monkeypatch)
    with pytest.raises(AssertionError, match="a plan was broken"):
        run_case(ck.Fragmentation(**LITERAL), case)


def test_the_printed_sizes_are_one_class_and_dealing_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    uncut(monkeypatch)
    rng = np.random.default_rng(1)
    case = two_secrets(rng.integers(0, 10, 1025), rng.integers(0, 10, 1025), both(0.1, 0.1, 8))
    assert class_sizes(run_case(ck.Fragmentation(sizing="gcd", **LITERAL), case)) == [1025]
    plain, slack = (len(class_sizes(run_case(ck.Fragmentation(slack=slack, polish=False), case))) for slack in (False, True))
    assert 1 < plain < slack and slack > 40


def test_loose_limits_keep_k() -> None:
    rng = np.random.default_rng(2)
    for sizing in ("deal", "halve", "gcd"):
        case = two_secrets(rng.integers(0, 9, 400), rng.integers(0, 9, 400), both(1, 1, 7))
        assert min(class_sizes(run_case(ck.Fragmentation(sizing=sizing), case))) >= 7


def test_bounds_that_cannot_be_met_are_measured() -> None:
    """As many combinations as rows: the search stops at its limit, and what is published holds all the same."""
    rng = np.random.default_rng(7)
    a, b = ([f"v{i}" for i in rng.permutation(300)], rng.permutation(300).tolist())
    columns = Columns.of({"x": rng.integers(0, 50, 300).tolist(), "a": a, "b": b})
    kinds = ck.Schema(quasi={"x": ck.numeric()}, sensitive={"a": ck.flat(), "b": ck.numeric()})
    models: tuple[Model, ...] = (ck.TCloseness("a", 0.9), ck.TCloseness("b", 0.2))
    release = run_case(ck.Fragmentation(), Case("many", columns, kinds, models))
    assert release.certificate.ok and len(class_sizes(release)) > 3


# Edges and refusals ------------------------------------------------------------------------------------------------------


def refused(method: Any, models: list[Model], expected: type[Exception] = ck.BadInput) -> str:
    with pytest.raises(expected) as caught:
        ck.anonymize(Columns.of(cells(1, 40)), schema(), models, method, seed=SEED)
    return str(caught.value)


def test_refusals_say_what_would_be_right() -> None:
    said = refused(ck.Fragmentation(), [ck.KAnonymity(3), ck.BetaLikeness("disease", 2)])
    assert "fragmentation plans for t_closeness" in said and "k_anonymity, beta_likeness" in said
    said = refused(ck.Fragmentation(columns=["wage", "disease"]), [ck.TCloseness("wage", 0.2)])
    assert "of column 'disease'" in said
    assert "k = 41" in refused(ck.Fragmentation(), [ck.KAnonymity(41), ck.TCloseness("wage", 0.2)], ck.Unsatisfiable)
    for wrong in ("wage", [], [3], 7):
        with pytest.raises(ck.BadInput, match="columns="):
            ck.Fragmentation(columns=wrong)  # type: ignore[arg-type]


def test_chosen_columns_are_planned_for_and_the_others_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    planned_for = []
    space = fragmentation.Space.of
    monkeypatch.setattr(fragmentation.Space, "of", lambda secrets: planned_for.append(len(secrets)) or space(secrets))
    models = [ck.TCloseness("disease", 0.3), ck.TCloseness("wage", 0.2), ck.KAnonymity(3)]
    for columns, count in ((None, 2), (["wage"], 1), (["disease", "wage"], 2)):
        assert run_case(ck.Fragmentation(columns=columns), small(models)).certificate.ok  # type: ignore[arg-type]
        assert planned_for.pop() == count


def test_one_row_and_constant_secrets() -> None:
    for n in (1, 6):
        for t in (0, 0.5):
            release = run_case(ck.Fragmentation(), two_secrets([3] * n, [4] * n, both(t, t)))
            assert release.certificate.ok and class_sizes(release) == [1] * n  # every class is like the whole
    release = run_case(ck.Fragmentation(), two_secrets([3] * 8, range(8), both(0, 0)))
    assert class_sizes(release) == [8]


def test_seed_and_order_of_rows() -> None:
    models = [ck.KAnonymity(3), ck.TCloseness("wage", 0.15), ck.TCloseness("disease", 0.4)]
    columns = Columns.of(cells(4, 300))
    one, again = (ck.anonymize(columns, schema(), models, ck.Fragmentation(), seed=SEED) for _ in range(2))
    assert one.partition.tolist() == again.partition.tolist()
    order = np.random.default_rng(0).permutation(300)
    shuffled = Columns.of({name: [column[i] for i in order] for name, column in cells(4, 300).items()})
    other = ck.anonymize(shuffled, schema(), models, ck.Fragmentation(), seed=SEED)
    assert other.certificate.to_json() == one.certificate.to_json()


def test_slack_pays() -> None:
    case = hospital([ck.KAnonymity(4), ck.TCloseness("disease", 0.25), ck.TCloseness("stay", 0.2)], 1000)
    plain, slack = (run_case(ck.Fragmentation(slack=slack), case).loss for slack in (False, True))
    assert slack < plain
