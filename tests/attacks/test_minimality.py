"""An attacker who knows the method: which secrets would have given the same release."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from attack_cases import rerun_of
from closeknit.attacks.minimality import minimality
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from conftest import examples

AGE = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})


def test_mondrian_discloses_by_a_cut_that_it_did_not_make() -> None:
    """A third of the class is HIV. Had both who are 30 not been HIV, they would stand in a class of their own."""
    table = Columns.of({"age": [30, 30, 40, 40, 40, 40], "ill": ["HIV", "HIV", "flu", "gout", "cold", "ulcer"]})
    rerun = rerun_of(AGE, [ck.LDiversity("ill", 2)], ck.Mondrian("strict"))
    written = rerun(table)
    assert set(written["age"].cells()) == {"[30, 40]"}
    found = minimality(written, rerun, table, [0] * 6, AGE)
    assert (found.number, found.risk) == (1.0, 1.0)
    assert found.details["naive"] == pytest.approx(1 / 3) and found.details["one_over_l"] == 1 / 5
    assert (found.details["ways"], found.details["that_give_the_release"]) == (360, 24)


def test_drawn_ways_estimate_the_posterior() -> None:
    table = Columns.of({"age": [30, 30, 40, 40, 40, 40], "ill": ["HIV", "HIV", "flu", "gout", "cold", "ulcer"]})
    rerun = textbook
    found = [minimality(rerun(table), rerun, table, [0] * 6, AGE, most=100, draws=1500, seed=seed) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    for each in found:
        assert each.details["drawn"] == 1 and each.details["tried"] == 1500
        assert each.details["that_give_the_release"] == pytest.approx(1500 * 24 / 360, rel=0.3)
        assert each.number == pytest.approx(1.0, abs=4 * each.details["standard_error"])


def textbook(table: Columns) -> Columns:
    """Generalizes only when it must: an age stays as it is where at most half of those who have it are ill with HIV."""
    ages, ills = table["age"].cells(), table["ill"].cells()
    few = {age for age in ages if 2 * sum(a == age and i == "HIV" for a, i in zip(ages, ills, strict=True)) > ages.count(age)}
    shown = ["*" if few else str(age) for age in ages]
    rows = sorted(zip(shown, map(str, ills), strict=True))
    return Columns.of({"age": [a for a, _ in rows], "ill": [i for _, i in rows]})


def texts(columns: Columns) -> list[list[object]]:
    return [column.cells() for column in columns.values()]


@settings(max_examples=examples(25))
@given(st.lists(st.tuples(st.sampled_from([30, 40]), st.sampled_from(["HIV", "flu", "gout"])), min_size=3, max_size=6))
def test_minimality_equals_an_enumeration(rows: list[tuple[int, str]]) -> None:
    table = Columns.of({"age": [age for age, _ in rows], "ill": [ill for _, ill in rows]})
    written = textbook(table)
    starred = "*" in written["age"].cells()
    class_of = [0 if starred else int(age == 40) for age, _ in rows]
    worlds = set()
    for order in itertools.permutations(range(len(rows))):
        if all(class_of[i] == class_of[j] for i, j in enumerate(order)):
            worlds.add(tuple(rows[j][1] for j in order))
    kept = [
        world
        for world in worlds
        if texts(textbook(Columns.of({"age": [age for age, _ in rows], "ill": list(world)}))) == texts(written)
    ]
    posterior = max(Fraction(count, len(kept)) for i in range(len(rows)) for count in Counter(w[i] for w in kept).values())
    found = minimality(written, textbook, table, class_of, AGE)
    assert (found.details["ways"], found.details["that_give_the_release"]) == (len(worlds), len(kept))
    assert found.number == float(posterior)


def test_drawn_ways_disclose_no_more_than_the_class_where_all_of_them_yield_the_release() -> None:
    table = Columns.of({"age": [*range(30, 42)], "ill": [*"aaabbbcccdde"]})
    rerun = rerun_of(AGE, [ck.KAnonymity(12)], ck.Mondrian())
    found = minimality(rerun(table), rerun, table, [0] * 12, AGE, most=10, draws=30)
    assert (
        found.number == pytest.approx(found.details["naive"]) == pytest.approx(1 / 4) and found.details["standard_error"] == 0
    )


def test_nothing_is_said_where_no_way_gives_the_release() -> None:
    table = Columns.of({"age": [30, 40], "ill": ["flu", "gout"]})
    found = minimality(table, lambda _: None, table, [0, 0], AGE)
    assert (found.number, found.risk, found.details["that_give_the_release"]) == (None, 0.0, 0)


def test_classes_that_do_not_fit_are_refused() -> None:
    table = Columns.of({"age": [30, 40], "ill": ["flu", "gout"]})
    for classes, only in (([0], None), ([-1, -1], None), ([0, 0], [7])):
        with pytest.raises(BadInput):
            minimality(table, lambda same: same, table, classes, AGE, only=only)
    with pytest.raises(BadInput, match="no sensitive attribute to attack"):
        minimality(table, lambda same: same, table, [0, 0], AGE, "wage")
