"""What is believed of a secret: all worlds of buckets and of perturbed secrets, and persons with several rows, counted out."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import closeknit as ck
from attack_cases import DISEASES, QUASI, TREE, Case, case
from closeknit.checks.worlds import posterior as worlds_posterior
from closeknit.core.columns import Columns
from conftest import examples

A = ck.attacks


@settings(max_examples=examples(40))
@given(st.data())
def test_posteriors_in_buckets_are_those_of_all_worlds(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    cells = {
        "age": data.draw(st.lists(st.sampled_from([20, 21, 22]), min_size=n, max_size=n)),
        "sex": data.draw(st.lists(st.sampled_from("fm"), min_size=n, max_size=n)),
        "disease": data.draw(st.lists(st.sampled_from(DISEASES), min_size=n, max_size=n)),
    }
    class_of = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    form = ck.sliced([["age"], ["sex", "disease"]])
    one = case(form, cells, class_of, {"disease": ck.flat()}, {"disease": ("bucket", "sex")})
    largest = Fraction(0)
    for number in {row["bucket"] for row in one.rows}:
        rows = [row for row in one.rows if row["bucket"] == number]
        bucket = [[row["age"] for row in rows], [(row["sex"], row["disease"]) for row in rows]]
        for profile in product({row["age"] for row in rows}, {row["sex"] for row in rows}):
            largest = max(largest, *worlds_posterior([bucket], 1, profile).values())
    assert A.homogeneity(one.reading, "disease").number == pytest.approx(float(largest))


# perturbed secrets --------------------------------------------------------------------------------------------------


def estimated(written: Counter[str], n: int, retain: Fraction) -> dict[str, Fraction]:
    """The nearest possible counts to the estimates: the set of values that stay above 0 is tried out."""
    raw = {value: (written[value] - n * (1 - retain) / len(DISEASES)) / retain for value in DISEASES}
    best: tuple[Fraction, dict[str, Fraction]] | None = None
    for size in range(1, len(DISEASES) + 1):
        for kept in combinations(DISEASES, size):
            move = (n - sum(raw[value] for value in kept)) / size
            point = {value: raw[value] + move if value in kept else Fraction(0) for value in DISEASES}
            if min(point.values()) < 0:
                continue
            far = sum(((point[value] - raw[value]) ** 2 for value in DISEASES), Fraction(0))
            if best is None or far < best[0]:
                best = far, point
    assert best is not None
    return {value: count / n for value, count in best[1].items()}


def believed_by_law(written: list[str], prior: dict[str, Fraction], retain: Fraction) -> dict[str, Fraction]:
    """All true secrets of a class, drawn from the prior and written by the law: what the first of its people has, whose
    row may be any."""
    other = (1 - retain) / len(DISEASES)
    mass: dict[str, Fraction] = defaultdict(Fraction)
    for true in product(DISEASES, repeat=len(written)):
        chance = Fraction(1)
        for truth, said in zip(true, written, strict=True):
            chance *= prior[truth] * (other + retain * (truth == said))
        for row in range(len(written)):
            mass[true[row]] += chance / len(written)
    return {value: part / sum(mass.values()) for value, part in mass.items()}


Judged = tuple[Case, dict[str, Fraction], Fraction]


def by_law(classes: list[list[str]], retain: Fraction) -> Judged:
    """Classes as they are written, with the shares that are estimated of the whole."""
    written = [value for rows in classes for value in rows]
    cells = {"age": [20 + i for i, rows in enumerate(classes) for _ in rows], "sex": ["f" for _ in written]}
    schema = ck.Schema(quasi=QUASI, sensitive={"disease": ck.Hierarchy(TREE)})
    reading = ck.perturbed(str(retain)).read(Columns.of({**cells, "disease": written}), schema)
    seen = {"disease": {(20 + i, "f"): rows for i, rows in enumerate(classes)}}
    return Case(reading, seen, []), estimated(Counter(written), len(written), retain), retain


def perturbed_cases() -> st.SearchStrategy[Judged]:
    rows = st.lists(st.sampled_from(DISEASES), min_size=1, max_size=3)
    return st.builds(by_law, st.lists(rows, min_size=1, max_size=3), st.sampled_from([Fraction(i, 10) for i in (1, 5, 9)]))


ALL_POSSIBLE = by_law([[value] for value in DISEASES], Fraction(9, 10))  # in every class, also where it is not written


@settings(max_examples=examples(40))
@given(perturbed_cases())
@example(ALL_POSSIBLE)
def test_perturbed_secrets_are_judged_by_their_law(given_: Judged) -> None:
    one, prior, retain = given_
    classes = one.seen["disease"]
    beliefs = {key: believed_by_law(written, prior, retain) for key, written in classes.items()}
    rows = sum(map(len, classes.values()))
    peaks = {key: max(belief.values()) for key, belief in beliefs.items()}
    found = A.homogeneity(one.reading, "disease")
    assert found.number == pytest.approx(float(max(peaks.values())))
    assert found.details["mean"] == pytest.approx(float(sum(peaks[key] * len(w) for key, w in classes.items()) / rows))
    pairs = [(q, prior[value]) for belief in beliefs.values() for value, q in belief.items() if prior[value] > 0]
    skew = A.skewness(one.reading, "disease")
    assert skew.number == pytest.approx(float(max(q / p for q, p in pairs)))
    assert skew.details["gain"] == pytest.approx(float(max(q - p for q, p in pairs)), abs=1e-12)
    assert skew.risk == pytest.approx(float(max((q - p) / (1 - p) if p < 1 else 0 for q, p in pairs)), abs=1e-9)
    apart = max(sum((abs(belief[v] - prior[v]) for v in DISEASES), Fraction(0)) / 2 for belief in beliefs.values())
    assert skew.details["distance"] == pytest.approx(float(apart), abs=1e-12)
    known = A.background(one.reading, "disease")
    for b in range(4):
        best = max(
            belief[value] / sum(belief[other] for other in DISEASES if other not in out)
            for belief in beliefs.values()
            for out in combinations(DISEASES, b)
            for value in DISEASES
            if value not in out and belief[value] > 0
        )
        assert known.details[f"b_{b}"] == pytest.approx(float(best))
    assert known.details["fewest"] == sum(share > 0 for share in prior.values()) - 1
    sides = {name: sum(prior[leaf] for leaf in leaves) for name, leaves in TREE.items()}
    if min(sides.values()) > 0:
        like = A.similarity(one.reading, "disease")
        share = max(sum(belief[leaf] for leaf in leaves) for belief in beliefs.values() for leaves in TREE.values())
        assert like.number == pytest.approx(float(share))


@settings(max_examples=examples(40))
@given(perturbed_cases())
@example(ALL_POSSIBLE)
def test_an_insider_of_a_perturbed_class_knows_his_written_row(given_: Judged) -> None:
    one, prior, retain = given_
    after = [
        max(believed_by_law(written[:own] + written[own + 1 :], prior, retain).values())
        for written in one.seen["disease"].values()
        for own in range(len(written))
        if len(written) > 1
    ]
    found = A.insider(one.reading, "disease")
    assert found.number == (pytest.approx(float(max(after))) if after else None)


def test_a_law_that_keeps_nothing_discloses_nothing() -> None:
    schema = ck.Schema(quasi=QUASI, sensitive={"disease": ck.Hierarchy(TREE)})
    cells = Columns.of({"age": [20, 20, 21], "sex": ["f"] * 3, "disease": ["flu"] * 3})
    reading = ck.perturbed(0).read(cells, schema)
    assert A.homogeneity(reading, "disease").number == pytest.approx(1 / 4)
    assert A.skewness(reading, "disease").risk == 0
    assert "No class makes a value of `disease` likelier" in A.skewness(reading, "disease").sentence
    assert A.insider(reading, "disease").number == pytest.approx(1 / 4)
    with pytest.raises(ck.BadInput, match="perturbed"):
        A.association_rules(reading, "disease")


# persons ------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(80))
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.sampled_from([*DISEASES, None, "*"])), min_size=1, max_size=8)
)
def test_persons_are_counted_once_where_the_reading_knows_them(rows: list[tuple[int, int, Any]]) -> None:
    schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.Hierarchy(TREE)})
    cells = Columns.of({"sex": [f"s{sex}" for sex, _, _ in rows], "disease": [value for _, _, value in rows]})
    people = np.array([10 * sex + person for sex, person, _ in rows])  # no person is in two classes
    reading = ck.generalized().read(cells, schema, {"sex": people, "disease": people})
    for attack in (A.skewness, A.similarity):  # closeness is judged on rows
        assert attack(reading, "disease") == attack(ck.generalized().read(cells, schema), "disease")
    carriers: dict[int, dict[int, set[Any]]] = defaultdict(lambda: defaultdict(set))
    everyone: dict[int, set[int]] = defaultdict(set)
    for sex, person, value in rows:
        everyone[sex].add(person)
        if value != "*":
            carriers[sex][person].add(value)
    assert A.record_linkage(reading).number == max(1 / len(group) for group in everyone.values())
    if any(len(group) != len(everyone[sex]) for sex, group in carriers.items()):
        return  # a class in which some show nothing: counted among all of it, unless values are fewer
    shares = [
        Fraction(sum(value in has for has in group.values()), len(group))
        for group in carriers.values()
        for value in {v for has in group.values() for v in has}
    ]
    found = A.homogeneity(reading, "disease")
    assert found.number == (pytest.approx(float(max(shares))) if shares else None)
    after = [
        Fraction(sum(value in has for person, has in group.items() if person != own), len(group) - 1)
        for group in carriers.values()
        for own in group
        if len(group) > 1
        for value in {v for has in group.values() for v in has}
    ]
    assert A.insider(reading, "disease").number == (pytest.approx(float(max(after))) if after else None)
    for b in range(3):  # of persons with several values it is a bound, of others exact
        excluded = [
            Fraction(sum(value in has for has in left), len(left))
            for group in carriers.values()
            for out in combinations({v for has in group.values() for v in has}, b)
            if (left := [has for has in group.values() if not has & set(out)])
            for value in {v for has in left for v in has}
        ]
        bound = A.background(reading, "disease").details.get(f"b_{b}", 0)
        assert float(max(excluded, default=Fraction(0))) <= bound + 1e-12  # type: ignore[operator]
