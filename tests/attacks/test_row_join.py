"""Two releases of the same people, joined row by row: equals a naive join, and leaves one person where value sets do not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_attacks_with_original import covered

import closeknit as ck
from closeknit.attacks.intersection import intersection
from closeknit.attacks.row_join import row_join
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from conftest import examples

SEED = 2**64
TREE = ck.Hierarchy.from_nested({"A": ["a1", "a2"], "B": ["b1", "b2"]})
SCHEMA = ck.Schema(
    quasi={"age": ck.numeric(), "zip": ck.prefix(), "kind": TREE},
    sensitive={"ill": ck.flat(), "stay": ck.numeric()},
    plain=["ward"],
    allow_unique=["ward"],
)
BY = ("ill", "stay", "ward")
ROW = st.tuples(
    st.one_of(st.none(), st.integers(20, 26)),
    st.sampled_from(["47605", "47602", "47906"]),
    st.sampled_from(["a1", "a2", "b1", "b2"]),
    st.sampled_from(["flu", "gout", None]),
    st.integers(1, 4),
    st.sampled_from(["x", "y"]),
)
ROWS = st.lists(ROW, min_size=4, max_size=14)
Raw = tuple[Any, ...]


def table_of(rows: list[Raw]) -> Columns:
    return Columns.of({name: [row[i] for row in rows] for i, name in enumerate((*SCHEMA.quasi, *BY))})


def released(rows: list[Raw], method: Any, k: int = 2) -> Any:
    return ck.anonymize(table_of(rows), SCHEMA, [ck.KAnonymity(k)], method, seed=SEED)


def rows_of(columns: Columns, names: tuple[str, ...]) -> list[Raw]:
    return list(zip(*([str(cell) for cell in columns[name].cells()] for name in names), strict=True))


def naive_pairs(one: Any, other: Any) -> list[tuple[int, int]]:
    early, late = rows_of(one.columns, BY), rows_of(other.columns, BY)
    return [(i, late.index(row)) for i, row in enumerate(early) if early.count(row) == 1 == late.count(row)]


def naive_people(release: Any, people: Columns) -> list[set[int]]:
    """By written row: the people whom its cells cover."""
    return [{p for p, yes in enumerate(column) if yes} for column in zip(*covered(release, people), strict=True)]


@settings(max_examples=examples(25))
@given(ROWS, ROWS, ROWS, st.sampled_from([ck.Mondrian(), ck.StackAndDeal()]))
def test_persons_left_equal_a_naive_join(shared: list[Raw], one: list[Raw], other: list[Raw], method: Any) -> None:
    early, late = released([*shared, *one], method), released([*shared, *other], ck.Mondrian())
    people = table_of([*shared, *one])
    left, wrong = [], 0
    fit_early, fit_late = naive_people(early, people), naive_people(late, people)
    true, written = rows_of(people, BY), rows_of(early.columns, BY)
    for i, j in naive_pairs(early, late):
        both = fit_early[i] & fit_late[j]
        own = {p for p in both if true[p] == written[i]}
        wrong += len(both) == 1 and not own
        left += [len(both)] if len(both) != 1 or own else []
    found, some = row_join(early, late, people, SCHEMA), [count for count in left if count > 0]
    assert found.details["joined"] == len(left) + wrong and found.details["wrong"] == wrong
    assert found.details["no_one_left"] == left.count(0)
    k = min(Counter(rows_of(early.columns, tuple(SCHEMA.quasi))).values())
    assert (found.details["k"], found.details["below_k"]) == (k, sum(count < k for count in some))
    assert found.details["one_person"] == found.details["right"] == some.count(1)
    assert found.details["median"] == (median(some) if some else None)
    assert (found.number, found.risk) == (some.count(1) / early.columns.rows, 1 / min(some) if some else 0)


@settings(max_examples=examples(20))
@given(ROWS, st.integers(2, 3))
def test_the_releases_alone_bound_the_rows_in_both_classes(rows: list[Raw], k: int) -> None:
    """Of equal rows it is not known which class they are in; of the others no bound is below what is true."""
    early, late = released(rows, ck.Mondrian()), released(rows, ck.StackAndDeal(), k)
    found, pairs = row_join(early, late), naive_pairs(early, late)
    cells = [rows_of(release.columns, tuple(SCHEMA.quasi)) for release in (early, late)]
    joined = [(cells[0][i], cells[1][j]) for i, j in pairs]
    left = []
    for a, c in joined:
        spare = [cells[0].count(a) - sum(a == x for x, _ in joined), cells[1].count(c) - sum(c == y for _, y in joined)]
        left.append(joined.count((a, c)) + min(spare))
    assert found.details["joined"] == len(pairs) and found.details["one_row"] == left.count(1)
    assert found.details["median"] == (median(left) if left else None) and found.details["right"] is None
    assert found.risk == (1 / min(left) if left else 0)
    in_both = Counter(zip(early.partition.tolist(), late.partition.tolist(), strict=True))
    if len(pairs) == len(rows):  # then every row is joined, and the count is exact unless classes have equal cells
        true = sorted(size for size in in_both.values() for _ in range(size))
        releases = zip(cells, (early, late), strict=True)
        distinct = all(len(set(seen)) == len(set(release.partition.tolist())) for seen, release in releases)
        assert sorted(left) == true if distinct else all(a >= b for a, b in zip(sorted(left), true, strict=True))


@pytest.fixture(scope="module")
def eight_hundred() -> tuple[Columns, ck.Schema]:
    rng = np.random.default_rng(20)
    table = {f"q{i}": rng.integers(0, 1000, 800).tolist() for i in range(2)}
    table |= {f"s{i}": [f"v{value}" for value in rng.integers(0, 8, 800)] for i in range(4)}
    return Columns.of(table), ck.Schema(
        quasi={f"q{i}": ck.numeric() for i in range(2)}, sensitive={f"s{i}": ck.flat() for i in range(4)}
    )


def test_combinations_of_four_attributes_leave_one_person_where_value_sets_leave_several(
    eight_hundred: tuple[Columns, ck.Schema],
) -> None:
    table, schema = eight_hundred
    early = ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.Mondrian(), seed=SEED)
    late = ck.anonymize(table, schema, [ck.KAnonymity(5)], seed=SEED)
    found = row_join(early, late, table, schema)
    assert found.details["one_person"] >= 70 and found.details["wrong"] == 0  # type: ignore[operator]
    assert found.details["right"] == found.details["one_person"]
    assert found.details["joined"] > 600 and found.details["below_k"] > 300  # type: ignore[operator]
    by_sets = [intersection(early, late, table, schema, name).details["given_away"] for name in schema.sensitive]
    assert 3 * max(by_sets) < found.details["one_person"]  # type: ignore[operator,type-var]


def test_a_second_release_is_joined_by_attack_with_and_without_the_original(
    eight_hundred: tuple[Columns, ck.Schema], tmp_path: Path
) -> None:
    table, schema = eight_hundred
    early, late = (
        ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.Mondrian(mode), seed=SEED) for mode in ("relaxed", "strict")
    )
    late.save(tmp_path / "late", report=False)
    reported = ck.attack(early, original=table, schema=schema, other=tmp_path / "late" / "release.csv")
    alone = ck.attack(early, other=late)
    people = ck.attack(early, other=late, population=table)
    (private,), (public,), (listed,) = (
        [each for each in of.findings if each.attack == "row_join"] for of in (reported, alone, people)
    )
    assert private.measure.endswith("one person left") and public.measure.endswith("one row left")
    assert private == listed
    assert any(reason == "row join needs another release of the same people" for reason in ck.attack(early).untried)


def test_a_release_joined_with_itself_leaves_no_fewer_than_it_does_alone() -> None:
    table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    release = ck.anonymize(table, schema, [ck.KAnonymity(4)], seed=SEED)
    assert row_join(release, release).risk <= 1 / 4 and row_join(release, release, table, schema).risk <= 1 / 4


def test_releases_with_other_quasi_identifiers_and_hierarchies_are_joined() -> None:
    """Each release is read by its own certificate: bins here, values there, and a column that only one of them generalizes."""
    cells = {"age": [20, 25, 30, 35], "sex": ["f", "m", "f", "m"], "ill": ["flu", "gout", "cold", "ulcer"]}
    table = Columns.of(cells)
    own = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()}, drop=["sex"])
    theirs = ck.Schema(quasi={"age": ck.numeric(0, 60, bins=1), "sex": ck.flat()}, sensitive={"ill": ck.flat()})
    early = ck.anonymize(table, own, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    late = ck.anonymize(table, theirs, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    assert early.columns["age"].cells() == ["[20, 25]"] * 2 + ["[30, 35]"] * 2
    found = row_join(early, late, table, own)
    assert (found.details["joined"], found.details["right"], found.number) == (4, 4, 1.0)
    by_sets = intersection(early, late, table, own)
    # by this release's schema the sex would be ignored, and two values left for each person
    assert (by_sets.details["victims"], by_sets.details["given_away"]) == (4, 4)
    private = ck.attack(early, original=table, schema=own, other=late)  # it reads the columns of both
    assert {each.attack: each for each in private.findings if each.attack in ("row_join", "intersection")} == {
        "row_join": found,
        "intersection": by_sets,
    }


def test_a_list_of_people_without_sensitive_values_says_who_is_left_and_not_who_is_right() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    table = Columns.of({"age": [30, 31, 32, 33], "ill": ["flu", "gout", "cold", "ulcer"]})
    early = ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    late = ck.anonymize(table.take(np.array([1, 2])), schema, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    found = row_join(early, late, Columns.of({"age": [30, 31, 32, 32]}))
    assert (found.details["fewest"], found.details["one_person"], found.details["right"]) == (1, 1, None)
    assert (found.details["joined"], found.details["median"], found.risk) == (2, 1.5, 1.0)


def test_several_rows_of_a_person_are_one_person() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()}, person="who")
    table = Columns.of({"age": [30, 31, 32, 33], "ill": ["flu", "gout", "cold", "ulcer"], "who": ["Ann", "Ann", "Bob", "Cid"]})
    release = ck.anonymize(table, schema, [ck.KAnonymity(3)], seed=SEED)
    found = row_join(release, release, table, schema)
    assert found.details["fewest"] == 3 and found.details["median"] == 3


def test_what_cannot_be_joined_is_left_out_with_its_reason() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    other = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"pay": ck.flat()})
    table = Columns.of({"age": [30, 31, 32, 33], "ill": ["flu", "gout", "cold", "ulcer"]})
    release = ck.anonymize(table, schema, [ck.KAnonymity(2)], seed=SEED)
    pays = ck.anonymize(
        Columns.of({"age": [30, 31, 32, 33], "pay": ["a", "b", "c", "d"]}), other, [ck.KAnonymity(2)], seed=SEED
    )
    with pytest.raises(BadInput, match="no sensitive or plain column in common"):
        row_join(release, pays)
    buckets = ck.anonymize(table, schema, [ck.LDiversity("ill", 2)], form="bucketized", seed=SEED)
    with pytest.raises(BadInput, match="do not belong together"):
        row_join(release, buckets)
    assert any(reason.startswith("row join: ") for reason in ck.attack(release, other=buckets).untried)
    same = ck.anonymize(Columns.of({"age": [30, 31], "ill": ["flu", "flu"]}), schema, [ck.KAnonymity(2)], seed=SEED)
    nothing = row_join(same, same)
    assert (nothing.number, nothing.risk, nothing.details["joined"]) == (0, 0, 0)
    assert nothing.sentence.startswith("No row can be joined")
