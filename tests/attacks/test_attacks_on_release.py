"""Attacks on one secret, against enumerations that share no code with them: dictionaries, rationals, all possible worlds."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from attack_cases import TREE, Case, all_of, believed, cases, shown
from closeknit.checks.oracle import earth_movers_distance
from closeknit.core.columns import Columns
from closeknit.core.reading import Reading
from conftest import examples

A = ck.attacks


@settings(max_examples=examples(120))
@given(cases())
def test_homogeneity_is_the_share_of_all_ways_to_hand_out_the_secrets(one: Case) -> None:
    for secret, classes in one.seen.items():
        found, rows = A.homogeneity(one.reading, secret), len(all_of(classes))
        if not rows:
            assert found.number is None and found.risk == 0
            continue
        peaks = {key: max(believed(secrets).values()) for key, secrets in classes.items()}
        assert found.number == found.risk == pytest.approx(float(max(peaks.values())))
        mean = sum(peaks[key] * len(secrets) for key, secrets in classes.items()) / rows
        plain = sum(len(secrets) for secrets in classes.values() if len(set(secrets)) == 1)
        assert found.details["mean"] == pytest.approx(float(mean))
        assert (found.details["plain"], found.details["plain_share"]) == (plain, pytest.approx(plain / rows))
        assert any(
            believed(secrets).get(value) == max(peaks.values()) and shown(value) == found.details["value"]
            for secrets in classes.values()
            for value in secrets
        )


@settings(max_examples=examples(120))
@given(cases())
def test_skewness_compares_a_class_with_the_release(one: Case) -> None:
    for secret, classes in one.seen.items():
        whole = Counter(all_of(classes))
        n = sum(whole.values())
        found = A.skewness(one.reading, secret)
        if not n:
            assert found.number is None
            continue
        pairs = [
            (q, Fraction(whole[value], n), value) for secrets in classes.values() for value, q in believed(secrets).items()
        ]
        assert found.number == pytest.approx(float(max(q / p for q, p, _ in pairs)))
        assert found.details["beta"] == pytest.approx(float(max(q / p for q, p, _ in pairs)) - 1)
        assert found.details["gain"] == pytest.approx(float(max(q - p for q, p, _ in pairs)))
        assert found.risk == pytest.approx(float(max((q - p) / (1 - p) if p < 1 else 0 for q, p, _ in pairs)))
        assert found.details["value"] in {shown(v) for q, p, v in pairs if float(q / p) == pytest.approx(found.number)}
        ground: Any = {**TREE, None: None} if secret == "disease" else sorted(whole, key=lambda x: (x is None, x or 0))
        if secret == "wage" and None in whole:
            ground = None
        assert found.details["distance_kind"] == ("hierarchical" if secret == "disease" else "ordered" if ground else "equal")
        if secret == "disease" and None in whole:
            continue  # where a missing value hangs is the distance's own matter, and tested with it
        shares = {value: Fraction(count, n) for value, count in whole.items()}
        far = max(
            earth_movers_distance(shares, believed(secrets), ground if secret == "wage" else TREE)
            for secrets in classes.values()
        )
        assert found.details["distance"] == pytest.approx(float(far))


@settings(max_examples=examples(120))
@given(cases())
def test_background_knowledge_leaves_out_the_best_values(one: Case) -> None:
    for secret, classes in one.seen.items():
        found = A.background(one.reading, secret)
        if not all_of(classes):
            assert found.number is None
            continue
        for b in range(4):
            best = max(
                q / sum(p for other, p in beliefs.items() if other not in out)
                for beliefs in map(believed, classes.values())
                for size in range(b + 1)
                for out in combinations(beliefs, size)
                for value, q in beliefs.items()
                if value not in out
            )
            assert found.details[f"b_{b}"] == pytest.approx(float(best))
            assert (found.details[f"b_{b}"] == 1) == (best == 1) == (found.details["fewest"] <= b)  # type: ignore[operator]
        assert found.number == found.risk == found.details["b_1"]


@settings(max_examples=examples(120))
@given(cases())
def test_an_insider_takes_out_every_possible_own_row(one: Case) -> None:
    for secret, classes in one.seen.items():
        after = [
            max(believed(secrets[:own] + secrets[own + 1 :]).values())
            for secrets in classes.values()
            for own in range(len(secrets))
            if len(secrets) > 1
        ]
        found = A.insider(one.reading, secret)
        assert found.number == (pytest.approx(float(max(after))) if after else None)
        assert found.risk == (found.number or 0)


@settings(max_examples=examples(120))
@given(cases(), st.sampled_from(["0", "0.08", "0.1", "0.4", "1"]))
def test_similarity_of_numbers_counts_windows(one: Case, eps: str) -> None:
    classes = one.seen["wage"]
    whole = all_of(classes)
    found = A.similarity(one.reading, "wage", eps)
    if not whole:
        assert found.number is None
        return
    width = Fraction(eps) * 25

    def inside(secrets: list[Any], first: Any) -> Fraction:
        fits = [v for v in secrets if (v is None and first is None) or (None not in (v, first) and 0 <= v - first <= width)]
        return Fraction(len(fits), len(secrets))

    shares = [(inside(secrets, v), inside(whole, v)) for secrets in classes.values() for v in secrets]
    assert found.number == pytest.approx(float(max(q for q, _ in shares)))
    assert found.risk == pytest.approx(float(max((q - p) / (1 - p) if p < 1 else 0 for q, p in shares)))
    near = [s for s in classes.values() if set(s) == {None} or (None not in s and max(s) - min(s) <= width)]
    assert found.details["within"] == sum(map(len, near))
    widths = [0 if len(set(s)) == 1 else 1 if None in s else Fraction(max(s) - min(s), 25) for s in classes.values()]
    assert found.details["least_width"] == pytest.approx(float(min(widths)))
    mean = sum(w * len(s) for w, s in zip(widths, classes.values(), strict=True)) / len(whole)
    assert found.details["mean_width"] == pytest.approx(float(mean))


@settings(max_examples=examples(120))
@given(cases().filter(lambda one: "disease" in one.seen))
def test_similarity_in_a_tree_counts_branches(one: Case) -> None:
    classes = one.seen["disease"]
    whole = all_of(classes)
    found = A.similarity(one.reading, "disease")
    if not whole:
        assert found.number is None
        return
    branch = {leaf: name for name, leaves in TREE.items() for leaf in leaves} | {None: "missing"}
    if len({branch[value] for value in whole}) == 1:  # below the lowest node over all: its leaves
        branch = {value: shown(value) for value in branch}
    sides = Counter(branch[value] for value in whole)
    shares = [
        (Fraction(count, len(secrets)), Fraction(sides[side], len(whole)), side)
        for secrets in classes.values()
        for side, count in Counter(branch[value] for value in secrets).items()
    ]
    assert found.number == pytest.approx(float(max(q for q, _, _ in shares)))
    assert found.risk == pytest.approx(float(max((q - p) / (1 - p) if p < 1 else 0 for q, p, _ in shares)))
    assert found.details["branch"] in {side for q, _, side in shares if q == max(shares)[0]}
    within = sum(len(secrets) for secrets in classes.values() if len({branch[value] for value in secrets}) == 1)
    assert found.details["within"] == within


def test_a_window_is_a_share_of_the_declared_range() -> None:
    schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"wage": ck.numeric(-5, 20)})
    reading = ck.generalized().read(Columns.of({"sex": ["f", "f", "m"], "wage": [0, 10, 20]}), schema)
    reported = {eps: A.similarity(reading, "wage", eps).details["within"] for eps in ("0.39", "0.4")}
    assert reported == {"0.39": 1, "0.4": 3}  # 10 of 25
    assert A.similarity(reading, "wage").details["mean_width"] == pytest.approx(0.4 * 2 / 3)


def test_alike_without_order_or_tree_is_refused() -> None:
    schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat()})
    reading = ck.generalized().read(Columns.of({"sex": ["f"], "disease": ["flu"]}), schema)
    with pytest.raises(ck.BadInput, match="neither an order nor a hierarchy"):
        A.similarity(reading, "disease")
    assert any("similarity of disease" in line for line in A.list_skipped(reading))
    with pytest.raises(ck.BadInput, match="no sensitive column"):
        A.homogeneity(reading, "sex")


def test_the_deepest_node_over_a_class_is_named() -> None:
    deep = {"inner": {"lungs": {"flu": None, "asthma": None}, "heart": None}, "outer": {"burn": None}}
    schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.Hierarchy(deep)})
    cells = {"sex": ["f", "f", "m", "m", "m"], "disease": ["flu", "asthma", "flu", "heart", "burn"]}
    found = A.similarity(ck.generalized().read(Columns.of(cells), schema), "disease")
    assert (found.details["lowest_node"], found.details["deeper_share"]) == ("lungs", 0.4)
    assert (found.number, found.details["branch"], found.details["within"], found.risk) == (1.0, "inner", 2, 1.0)


# sentences, and all at once -----------------------------------------------------------------------------------------


def simple(sexes: str, diseases: list[Any]) -> Reading:
    schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat()})
    return ck.generalized().read(Columns.of({"sex": list(sexes), "disease": diseases}), schema)


def test_three_people_with_the_same_disease() -> None:
    found = A.homogeneity(simple("fffmm", ["flu", "flu", "flu", "flu", "gout"]), "disease")
    assert (found.number, found.risk, found.details["plain"], found.details["class"]) == (1, 1, 3, "sex = f")
    assert found.details["mean"] == pytest.approx((3 + 2 / 2) / 5)
    assert found.sentence == (
        "An adversary who finds a person's class learns `disease` with certainty in the worst case, with probability 80 % on "
        "average; the value is fully disclosed for 3 rows (60 %)."
    )


def test_sentences_speak_of_one_and_of_none() -> None:
    alone = simple("fmm", ["flu", "flu", "gout"])
    assert "fully disclosed for 1 row (33.3 %)" in A.homogeneity(alone, "disease").sentence
    assert "no one's value is fully disclosed" in A.homogeneity(simple("mm", ["flu", "gout"]), "disease").sentence
    assert A.background(alone, "disease").sentence == "A class reveals `disease` with certainty without ruling out any value."
    two = simple("mm", ["flu", "gout"])
    assert A.background(two, "disease").sentence == "Ruling out 1 value is enough to learn a person's `disease` with certainty."
    three = simple("mmm", ["flu", "gout", "burn"])
    assert A.background(three, "disease").sentence == (
        "An adversary who rules out 1 value learns a person's `disease` with probability 50 % in the worst case; certainty "
        "requires ruling out at least 2."
    )
    hidden = simple("ff", ["*", "*"])
    for attack in (A.homogeneity, A.skewness, A.background):
        assert attack(hidden, "disease").sentence == "The release shows no value of `disease`, so there is nothing to learn."
    assert "No two people share a class" in A.insider(simple("fm", ["flu", "gout"]), "disease").sentence
    assert A.skewness(simple("f", ["flu"]), "disease").sentence.startswith("No class makes a value")
    assert A.record_linkage(simple("ff", ["flu", "gout"])).sentence == (
        "In the worst case the right row is found with probability 50 %, among 2 in its class; with probability 50 % on "
        "average."
    )


@settings(max_examples=examples(60))
@given(cases())
def test_every_form_can_be_attacked_and_the_worst_stands_first(one: Case) -> None:
    found = A.on_release(one.reading)
    risks = [finding.risk for finding in found]
    assert risks == sorted(risks, reverse=True)
    assert {finding.attack for finding in found} <= set(A.ON_RELEASE)
    names = [(finding.attack, finding.column) for finding in found]
    assert len(names) == len(set(names))
    for secret in one.seen:
        for attack in ("homogeneity", "skewness", "similarity", "background", "insider"):
            assert (attack, secret) in names
    for finding in found:
        assert finding.sentence[0].isupper() and finding.sentence.endswith(".")
        assert "nan" not in finding.sentence and "inf " not in finding.sentence
        assert finding == type(finding).model_validate_json(finding.model_dump_json())


@pytest.mark.parametrize("form", ["generalized", "bucketized", "multiset", "perturbed"])
def test_a_whole_release_is_attacked(form: str) -> None:
    table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    made = {"perturbed": ck.perturbed(0.5, ["disease"])}.get(form) or getattr(ck, form)()
    guarantee = ck.KAnonymity(5) if form in ("generalized", "perturbed") else ck.LDiversity("disease", 2, "frequency")
    release = ck.anonymize(table, schema, [guarantee], form=made, seed=2**70)
    found = A.on_release(release)
    of_disease = {finding.attack: finding for finding in found if finding.column == "disease"}
    assert 0 < of_disease["homogeneity"].risk < 1
    if form == "bucketized":
        assert of_disease["homogeneity"].number <= 1 / 2  # type: ignore[operator]
    assert {"stay", "charge"} <= {finding.column for finding in found}
    # changing the order of written rows changes nothing
    order = np.random.default_rng(1).permutation(release.columns.rows)
    if form in ("generalized", "perturbed"):

        class Shuffled:
            columns, certificate = release.columns.take(order), release.certificate

        assert [(f.attack, f.column, f.number) for f in A.on_release(Shuffled())] == [
            (f.attack, f.column, f.number) for f in found
        ]
