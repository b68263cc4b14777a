"""Attacks that need more than the release: each equals an enumeration on tiny tables, and finds what is known of examples."""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from attack_cases import rerun_of
from closeknit.attacks.candidate_rows import candidate_rows
from closeknit.attacks.covering import coverings
from closeknit.attacks.intersection import intersection
from closeknit.attacks.matching_buckets import matching_buckets
from closeknit.attacks.population_linkage import population_linkage
from closeknit.attacks.presence import delta_presence
from closeknit.attacks.private_attacks import with_original, with_population
from closeknit.attacks.temporal import temporal
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.covering import Covering
from closeknit.core.errors import BadInput
from closeknit.forms.release_reading import reading_of
from closeknit.kernels.geometry.overlaps import box_tree, overlapping, overlapping_weight, weigh_boxes
from closeknit.release.public import TextRelease
from conftest import examples

SEED = 2**64
TREE = ck.Hierarchy.from_nested({"A": ["a1", "a2"], "B": ["b1", "b2"]})
SCHEMA = ck.Schema(quasi={"age": ck.numeric(), "zip": ck.prefix(), "kind": TREE}, sensitive={"ill": ck.flat()})
AGE = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
ROW = st.tuples(
    st.one_of(st.none(), st.integers(20, 26)),
    st.sampled_from(["47605", "47602", "47906", "4790"]),
    st.sampled_from(["a1", "a2", "b1", "b2"]),
    st.sampled_from(["flu", "gout", "ulcer"]),
)
ROWS = st.lists(ROW, min_size=4, max_size=14)
METHODS = [ck.StackAndDeal(), ck.Mondrian(), ck.Incognito()]


def table_of(rows: list[tuple[Any, ...]]) -> Columns:
    return Columns.of({name: [row[i] for row in rows] for i, name in enumerate(("age", "zip", "kind", "ill"))})


def covers(name: str, cell: object, value: object) -> bool:
    """What a written cell means, by its text alone."""
    if cell == "*":
        return True
    if cell is None or value is None:
        return cell is value
    text = str(cell)
    if name == "age":
        low, high = text.strip("[]").split(", ") if text.startswith("[") else (text, text)
        return float(low) <= float(str(value)) <= float(high)
    if name == "zip":
        head = text.rstrip("*")
        return str(value) == text or (head != text and str(value).startswith(head) and len(str(value)) > len(head))
    return str(value) == text or str(value)[0].upper() == text


def covered(release: Any, people: Columns, names: tuple[str, ...] = ("age", "zip", "kind")) -> list[list[bool]]:
    """By person: which written rows cover it."""
    written = {name: release.columns[name].cells() for name in names}
    known = {name: people[name].cells() for name in names}
    return [
        [all(covers(name, written[name][r], known[name][p]) for name in names) for r in range(release.columns.rows)]
        for p in range(people.rows)
    ]


def released(rows: list[tuple[Any, ...]], method: Any, k: int = 2) -> tuple[Columns, Any]:
    table = table_of(rows)
    return table, ck.anonymize(table, SCHEMA, [ck.KAnonymity(k)], method, seed=SEED)


# Boxes and points --------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(st.integers(0, 40), st.integers(1, 20), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_overlapping_boxes_are_those_that_overlap(b: int, q: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lo, requested = rng.integers(0, 9, (b, d)).astype(np.int32), rng.integers(0, 9, (q, d)).astype(np.int32)
    hi, until = (lo + rng.integers(-1, 5, (b, d))).astype(np.int32), (requested + rng.integers(-1, 3, (q, d))).astype(np.int32)
    weight = rng.integers(1, 9, b).astype(np.float64)
    both = (lo[None] <= until[:, None]) & (hi[None] >= requested[:, None]) & (lo <= hi)[None] & (requested <= until)[:, None]
    naive = both.all(axis=2)
    tree = box_tree(lo, hi, weight)
    assert (overlapping_weight(tree, requested, until) == naive @ weight).all()
    own = rng.integers(1, 9, q).astype(np.float64)
    assert (weigh_boxes(tree, requested, until, own) == naive.T @ own).all()
    assert overlapping(tree, requested, until, naive.sum(axis=1)).tolist() == np.nonzero(naive)[1].tolist()


@settings(max_examples=examples(40))
@given(ROWS, ROWS, st.sampled_from(METHODS))
def test_coverings_equal_a_look_at_each_cell(rows: list[Any], others: list[Any], method: Any) -> None:
    _, release = released(rows, method)
    people = table_of(others)
    naive = np.array(covered(release, people))
    (found,) = coverings(reading_of(release), people, SCHEMA)
    over = found.boxes_over(found.point_of).toarray()[:, found.box_of]
    assert (over == naive).all()
    assert found.people_in_boxes[found.box_of].tolist() == naive.sum(axis=0).tolist()
    assert found.rows_over_points()[found.point_of].tolist() == naive.sum(axis=1).tolist()


def test_every_person_is_covered_by_the_own_release() -> None:
    table, schema = ck.datasets.hospital(400), ck.datasets.hospital_schema()
    for method in METHODS:
        release = ck.anonymize(table, schema, [ck.KAnonymity(4)], method, seed=SEED)
        (found,) = coverings(reading_of(release), table, schema)
        assert found.rows_over_points().min() >= 4 and found.people_in_boxes.min() >= 4


def test_a_cell_of_which_no_one_has_a_value_covers_no_one() -> None:
    schema = ck.Schema(quasi={"zip": ck.prefix(), "sex": ck.flat()}, sensitive={"ill": ck.flat()})
    written = Columns.of({"zip": ["4***", "5***", "47605", "*"], "sex": ["f", "f", "x", "*"]})
    people = Columns.of({"zip": ["4711", None], "sex": ["f", "m"]})
    assert Covering.of(written, people, schema, ["zip", "sex"]).people_in_boxes.sum() == 1 + 2


# Presence and population -------------------------------------------------------------------------------------------------


def naive_presence(matrix: list[list[bool]], cells: list[object]) -> list[Fraction]:
    """By the definition: for each different written row that covers a person, its rows over the people whom it covers."""
    rows_of = Counter(map(str, cells))
    chances = []
    for person in matrix:
        found = {str(cells[r]): r for r, yes in enumerate(person) if yes}
        shares = [min(Fraction(rows_of[cell], sum(other[r] for other in matrix)), Fraction(1)) for cell, r in found.items()]
        chances.append(1 - prod((1 - share for share in shares), start=Fraction(1)))
    return chances


@settings(max_examples=examples(40))
@given(ROWS, ROWS, st.sampled_from(METHODS))
def test_presence_and_linkage_equal_their_definitions(rows: list[Any], others: list[Any], method: Any) -> None:
    _, release = released(rows, method)
    people = table_of([*rows, *others])
    matrix = covered(release, people)
    cells = list(zip(*(release.columns[name].cells() for name in SCHEMA.quasi), strict=True))
    chances = naive_presence(matrix, cells)
    found = delta_presence(release, people, SCHEMA)
    assert found.number == pytest.approx(float(max(chances)))
    assert found.details["delta_min"] == pytest.approx(float(min(chances)))
    assert found.details["covered_by_nothing"] == sum(chance == 0 for chance in chances)
    assert found.details["certain"] == sum(chance == 1 for chance in chances)
    prior = Fraction(release.columns.rows, people.rows)
    assert found.risk == pytest.approx(float(max(max(chances) - prior, 0) / (1 - prior)))
    inside = [sum(person[r] for person in matrix) for r in range(len(cells))]
    linked = population_linkage(release, people, SCHEMA)
    assert (linked.number, linked.risk) == (1 / min(inside), 1 / min(inside))
    assert linked.details["rows_put_down_right"] == pytest.approx(sum(1 / count for count in inside))


def test_presence_where_the_population_is_the_table_adds_nothing() -> None:
    table, release = released([(20 + i % 7, "47605", "a1", "flu") for i in range(12)], ck.Mondrian())
    found = delta_presence(release, table, SCHEMA)
    assert (found.number, found.risk) == (1.0, 0.0)


def test_a_person_unique_in_the_population_is_known_to_be_there() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    release = ck.anonymize(Columns.of({"age": [30, 31, 60, 61], "ill": list("abab")}), schema, [ck.KAnonymity(2)], seed=SEED)
    people = Columns.of({"age": [30, 31, 60, 61, 61, 61, 90]})
    found = delta_presence(release, people)
    assert (found.number, found.risk, found.details["certain"], found.details["delta_min"]) == (1.0, 1.0, 2, 0.0)
    assert population_linkage(release, people).number == 0.5


def test_a_population_that_lacks_columns_is_used_as_far_as_it_goes() -> None:
    rows = [(20 + i % 7, "47605", "a1", "flu") for i in range(12)]
    _, release = released(rows, ck.Mondrian())
    part = Columns({"age": table_of(rows)["age"]}, len(rows))
    assert delta_presence(release, part, SCHEMA).details["columns"] == "age"
    with pytest.raises(BadInput, match="none of the quasi-identifiers"):
        delta_presence(release, Columns.of({"weight": [1]}), SCHEMA)
    with pytest.raises(BadInput, match="no people"):
        delta_presence(release, Columns.of({"age": []}), SCHEMA)


def test_a_certificate_alone_reveals_flat_values_masks_and_dates() -> None:
    table = ck.datasets.hospital(300)
    people = ck.datasets.hospital(800, seed=4)
    schema = ck.datasets.hospital_schema()
    release = ck.anonymize(table, schema, [ck.KAnonymity(3)], seed=SEED)
    reported = [attack(release, people, None) for attack in (delta_presence, population_linkage)]
    assert reported == [attack(release, people, schema) for attack in (delta_presence, population_linkage)]


def test_nodes_that_a_certificate_does_not_explain_are_refused() -> None:
    tree = ck.Hierarchy.from_nested({"north": ["a", "b"], "south": ["c"]}, from_data=True)
    schema = ck.Schema(quasi={"town": tree}, sensitive={"ill": ck.flat()})
    table = Columns.of({"town": ["a", "b", "c", "c"], "ill": ["x", "y", "x", "y"]})
    release = ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Incognito(), seed=SEED)
    with pytest.raises(BadInput, match=r"column 'town'.*give the schema"):
        delta_presence(release, table)
    assert delta_presence(release, table, schema).number == 1.0


# Candidates --------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(ROWS, st.sampled_from(METHODS))
def test_candidates_equal_a_count(rows: list[Any], method: Any) -> None:
    table, release = released(rows, method)
    counts = [sum(person) for person in covered(release, table)]
    found = candidate_rows(release, table, SCHEMA)
    assert found.number == 1 / min(counts) <= 1 / 2
    assert found.details["mean"] == pytest.approx(sum(1 / count for count in counts) / len(counts))


# Intersection ------------------------------------------------------------------------------------------------------------


def naive_sets(release: Any, people: Columns) -> list[set[object]]:
    ill = release.columns["ill"].cells()
    return [{ill[r] for r, yes in enumerate(person) if yes} for person in covered(release, people)]


@settings(max_examples=examples(40))
@given(ROWS, ROWS, st.lists(ROW, min_size=1, max_size=5), st.sampled_from(METHODS))
def test_intersection_of_two_releases_equals_sets(one: list[Any], other: list[Any], shared: list[Any], method: Any) -> None:
    _, early = released([*one, *shared], method)
    _, late = released([*shared, *other], ck.Mondrian())
    people = table_of(shared)
    left = [a & b for a, b in zip(naive_sets(early, people), naive_sets(late, people), strict=True)]
    found = intersection(early, late, people, SCHEMA)
    truth = people["ill"].cells()
    assert all(ill in values for ill, values in zip(truth, left, strict=True))
    given_away = sum(values == {ill} for ill, values in zip(truth, left, strict=True))
    assert (found.number, found.risk) == (given_away / len(left), 1 / min(map(len, left)))
    assert found.details["mean_values"] == pytest.approx(sum(map(len, left)) / len(left))


def test_two_diverse_releases_disclose_what_neither_does() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    diverse = [ck.KAnonymity(2), ck.LDiversity("ill", 2)]
    early = ck.anonymize(Columns.of({"age": [30, 31], "ill": ["hiv", "flu"]}), schema, diverse, seed=SEED)
    late = ck.anonymize(Columns.of({"age": [30, 32], "ill": ["hiv", "gout"]}), schema, diverse, seed=SEED)
    found = intersection(early, late, Columns.of({"age": [30], "ill": ["hiv"]}), schema)
    assert (found.number, found.risk, found.details["alone"]) == (1.0, 1.0, 0)
    wrong = intersection(early, late, Columns.of({"age": [30], "ill": ["flu"]}), schema)
    assert wrong.number == 0.0  # a single value is left, and it is not the victim's
    no_one = intersection(early, late, Columns.of({"age": [99], "ill": ["flu"]}), schema)
    assert (no_one.number, no_one.risk, no_one.details["nothing_left"]) == (None, 0.0, 1)


STREAM = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()}, person="name")


def test_rows_of_one_person_in_a_stream_are_put_together() -> None:
    table = Columns.of({"age": [30, 31, 60, 61], "ill": ["hiv", "flu", "hiv", "gout"], "name": ["Ann", "Bob", "Ann", "Cid"]})
    release = ck.replay(ck.Castle(STREAM, k=2, delta=1, l=2, seed=SEED), table)
    assert release.columns["age"].cells() == ["[30, 31]", "[30, 31]", "[60, 61]", "[60, 61]"]
    found = intersection(release, None, table, STREAM)
    assert (found.number, found.risk, found.details["victims"], found.details["alone"]) == (1.0, 1.0, 1, 0)


def test_rows_whose_secret_changed_are_not_put_together() -> None:
    table = Columns.of({"age": [30, 31, 60, 61], "ill": ["hiv", "flu", "cold", "gout"], "name": ["Ann", "Bob", "Ann", "Cid"]})
    release = ck.replay(ck.Castle(STREAM, k=2, delta=1, seed=SEED), table)
    with pytest.raises(BadInput, match="several rows with one sensitive value"):
        intersection(release, None, table, STREAM)


@pytest.mark.parametrize("form", ["bucketized", "multiset"])
def test_value_sets_of_buckets(form: str) -> None:
    """In a form of groups: values of the buckets in which every group has the cells of the victim."""
    rows = [(20 + i % 3, ["47605", "47602"][i % 2], "a1", ["flu", "gout", "ulcer"][i % 3]) for i in range(9)]
    table = table_of(rows)
    release = ck.anonymize(table, SCHEMA, [ck.LDiversity("ill", 2)], form=form, seed=SEED)
    cells = {name: release.columns[name].cells() for name in ("bucket", *SCHEMA.published)}
    groups = [("age", "zip", "kind")] if form == "bucketized" else [("age",), ("zip",), ("kind",)]
    left = []
    for age, code, kind, _ in rows:
        known = {"age": str(age), "zip": code, "kind": kind}
        buckets = [
            {cells["bucket"][r] for r in range(9) if all(str(cells[name][r]) == known[name] for name in group)}
            for group in groups
        ]
        inside = set.intersection(*buckets)
        left.append({cells["ill"][r] for r in range(9) if cells["bucket"][r] in inside})
    found = intersection(release, release, table, SCHEMA)
    assert found.risk == 1 / min(map(len, left))
    assert found.details["mean_values"] == pytest.approx(sum(map(len, left)) / 9)


def test_victims_beyond_the_bound_are_drawn() -> None:
    table = table_of([(20 + i % 7, "47605", "a1", ["flu", "gout"][i % 2]) for i in range(40)])
    release = ck.anonymize(table, SCHEMA, [ck.KAnonymity(3)], seed=SEED)
    found = [intersection(release, release, table, SCHEMA, most=10, seed=3) for _ in range(2)]
    assert found[0] == found[1] and found[0].details["victims"] == 10 and found[0].details["drawn_from"] == 40


def test_a_perturbed_secret_is_not_disclosed_by_sets() -> None:
    table = table_of([(20 + i % 7, "47605", "a1", ["flu", "gout", "ulcer"][i % 3]) for i in range(30)])
    declared = ck.Hierarchy.from_nested({"cold": ["flu", "SARS"], "other": ["gout", "ulcer"]})
    schema = ck.Schema(quasi=SCHEMA.quasi, sensitive={"ill": declared})
    release = ck.anonymize(table, schema, [ck.KAnonymity(2)], form=ck.perturbed(0.5), seed=SEED)
    with pytest.raises(BadInput, match="column 'ill': is perturbed"):
        intersection(release, release, table, schema)
    found = with_original(release, table, schema, other=release, rerun=lambda same: same, class_of=release.partition)
    assert {each.attack for each in found} == {"candidate_rows"}


# Time, buckets, all together ---------------------------------------------------------------------------------------------


def test_rows_that_leave_alone() -> None:
    table = Columns.of({"age": [30, 31, 70, 30, 31], "ill": ["flu"] * 5, "name": [*"abcde"]})
    for reuse, alone in ((False, 0), (True, 1)):
        stream = ck.Castle(STREAM, k=2, delta=1, reuse=reuse, seed=SEED)
        ck.replay(stream, table)
        found = temporal(stream.counters)
        assert (found.details["alone"], found.risk, stream.counters.reused) == (alone, float(alone), alone)
        assert found.number == pytest.approx(alone / stream.counters.rows_out)


def test_buckets_of_columns_that_stand_alone_hide_who_is_there() -> None:
    """Two buckets, each with two ages and two sexes that go with each other in every way: a fake fits as an original does."""
    schema = ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat()}, sensitive={"ill": ck.flat()})
    table = Columns.of({"age": [30, 31], "sex": ["f", "m"], "ill": ["flu", "gout"]})
    release = ck.anonymize(table, schema, [ck.LDiversity("ill", 2)], form="multiset", seed=SEED)
    found = matching_buckets(release, table, schema)
    assert (found.number, found.risk, found.details["others"]) == (0.5, 0.0, 2)
    outside = matching_buckets(release, table, schema, Columns.of({"age": [50, 30], "sex": ["f", "m"]}))
    assert outside.number == 0.75  # of two people outside the table one fits
    clear = ck.anonymize(table, schema, [ck.LDiversity("ill", 2)], form="bucketized", seed=SEED)
    assert matching_buckets(clear, table, schema).risk == 1.0
    for attack in (candidate_rows, population_linkage):
        with pytest.raises(BadInput, match="published exactly"):
            attack(clear, table, schema)


def test_all_attacks_with_the_original_table() -> None:
    table, schema = ck.datasets.hospital(120), ck.datasets.hospital_schema()
    models: list[Any] = [ck.KAnonymity(4)]
    release = ck.anonymize(table, schema, models, ck.Mondrian(), seed=SEED)
    rerun = rerun_of(schema, models, ck.Mondrian())
    found = with_original(
        release,
        table,
        schema,
        population=ck.datasets.hospital(500, seed=2),
        other=release,
        rerun=rerun,
        class_of=release.partition,
        runs=40,
    )
    names = Counter(each.attack for each in found)
    once = ("candidate_rows", "delta_presence", "population_linkage", "singling_out", "downcoding", "row_join")
    assert names == {**dict.fromkeys(once, 1), "intersection": 3, "minimality": 3}
    assert [each.risk for each in found] == sorted((each.risk for each in found), reverse=True)
    assert all(each.sentence.endswith(".") and each.knows for each in found)
    tried = [each.details for each in found if each.attack == "minimality"]
    assert all(details["tried"] <= 40 and details["classes_tried"] >= 1 for details in tried)


def test_a_release_read_from_its_cells_alone_gives_the_same() -> None:
    table, schema = ck.datasets.hospital(120), ck.datasets.hospital_schema()
    release = ck.anonymize(table, schema, [ck.KAnonymity(4)], seed=SEED)
    again = TextRelease(release.columns, Certificate.from_json(release.certificate.to_json()))
    assert with_original(release, table, schema) == with_original(again, table, schema)
    assert with_population(release, table) == with_population(again, table, schema)


def test_masks_of_prefixes_cover_what_begins_with_them() -> None:
    schema = ck.Schema(quasi={"zip": ck.prefix()})
    people = Columns.of({"zip": ["123", "124", "199", "299"]})
    written = Columns.of({"zip": ["12*", "1**", "3**", "299", "*"]})
    assert Covering.of(written, people, schema, ["zip"]).people_in_boxes.tolist() == [2, 3, 0, 1, 4]


def test_classes_without_room_for_their_deals_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Columns.of({"age": [*range(12)], "ill": [f"v{i}" for i in range(12)]})

    def run(columns: Columns) -> ck.Release:
        return ck.anonymize(columns, AGE, [ck.KAnonymity(12)], ck.Mondrian(), seed=SEED)

    def found() -> list[str]:
        release, again = run(table), lambda columns: run(columns).columns
        made = with_original(release, table, AGE, rerun=again, class_of=release.partition, runs=2)
        return [each.attack for each in made]

    assert "minimality" in found()
    monkeypatch.setattr(sys.modules["closeknit.attacks.private_attacks"], "ROOM", 100)
    assert "minimality" not in found()
