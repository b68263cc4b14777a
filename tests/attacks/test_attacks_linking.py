"""Rows, secrets and items that are linked: record linkage, joint secrets, association rules, against enumerations."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from attack_cases import QUASI, TREE, Case, believed, cases
from closeknit.attacks.candidate_rows import candidate_rows
from closeknit.attacks.intersection import intersection
from closeknit.attacks.linkage import _covering
from closeknit.attacks.population_linkage import population_linkage
from closeknit.attacks.presence import delta_presence
from closeknit.core.columns import Columns
from conftest import examples

A = ck.attacks


def contains(wide: Any, narrow: Any, numeric: bool) -> bool:
    if wide == "*" or wide == narrow:
        return True
    if not numeric or None in (wide, narrow) or narrow == "*":
        return False
    ends = [[float(x) for x in str(cell).strip("[]").split(",")] for cell in (wide, narrow)]
    return ends[0][0] <= ends[1][0] and ends[1][-1] <= ends[0][-1]


@settings(max_examples=examples(120))
@given(cases())
def test_record_linkage_counts_rows_that_look_alike(one: Case) -> None:
    if one.reading.column_groups:
        for secret in one.seen:
            known = one.reading.of(secret).named_by
            sizes = Counter(tuple(row[name] for name in known) for row in one.rows)
            found = A.record_linkage(one.reading, secret)
            assert found.number == found.risk == 1 / min(sizes.values())
            assert found.details["mean"] == pytest.approx(len(sizes) / len(one.rows))
            once = max(
                sum(count == 1 for count in Counter(tuple(row[n] for n in group if n in QUASI) for row in one.rows).values())
                if any(n in QUASI for n in group)
                else 0
                for group in one.reading.column_groups
            )
            assert found.details["seen_once"] == once
        return
    sizes = Counter((row["age"], row["sex"]) for row in one.rows)
    found = A.record_linkage(one.reading)
    if not one.rows:
        assert found.number is None
        return
    covering = min(
        sum(size for (age, sex), size in sizes.items() if contains(age, mine[0], True) and contains(sex, mine[1], False))
        for mine in sizes
    )
    assert found.number == found.risk == 1 / min(sizes.values())
    assert found.details["mean"] == pytest.approx(len(sizes) / len(one.rows))
    assert found.details["covering"] == pytest.approx(1 / covering)


def test_cells_of_a_declared_hierarchy_contain_each_other() -> None:
    schema = ck.Schema(quasi={"job": ck.Hierarchy(TREE)}, sensitive={"wage": ck.numeric()})
    cells = Columns.of({"job": ["flu", "lungs", "lungs", "*", None], "wage": [1, 2, 3, 4, 5]})
    found = A.record_linkage(ck.generalized().read(cells, schema))
    assert found.number == 1 and found.details["covering"] == 1  # `*` stands alone; nothing else contains it
    cells = Columns.of({"job": ["flu", "lungs", "lungs", "*", "*", "*", None], "wage": [1, 2, 3, 4, 5, 6, 7]})
    found = A.record_linkage(ck.generalized().read(cells, schema))
    assert found.details["covering"] == pytest.approx(1 / 3)  # flu: 6, lungs: 5, `*`: 3, missing: 4
    assert found.sentence.endswith("For a person whose class is unknown: with probability 33.3 % at most.")


def test_a_missing_cell_is_covered_by_itself_and_by_stars() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"wage": ck.flat()})
    ages = [None, *["[1, 2]"] * 4, *["*"] * 3]
    found = [
        A.record_linkage(ck.generalized().read(Columns.of({"age": ages[:some], "wage": ["low"] * some}), schema))
        for some in (5, 8)
    ]
    assert [one.details["covering"] for one in found] == [1, 1 / 3]  # alone; with 3 stars 4, and the stars themselves


def test_after_many_looks_a_bound_is_reported() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"wage": ck.flat()})
    ages = ["[1, 2]"] + ["[1, 3]"] * 5 + ["*"] * 2
    reading = ck.generalized().read(Columns.of({"age": ages[:6], "wage": ["low"] * 6}), schema)
    starred = ck.generalized().read(Columns.of({"age": [*ages, "*"], "wage": ["low"] * 9}), schema)
    assert A.record_linkage(reading).details["covering"] == 1 / 5  # [1, 2] is covered by all 6
    assert A.record_linkage(starred).details["covering"] == 1 / 3
    assert _covering(reading, reading.classes.persons, looks=0) == 1  # the class of one may be covered by itself alone
    assert _covering(starred, starred.classes.persons, looks=0) == 3  # but by every `*` as well


# several secrets ----------------------------------------------------------------------------------------------------


@settings(max_examples=examples(120))
@given(cases())
def test_joint_secrets_are_counted_pair_by_pair(one: Case) -> None:
    together = not one.reading.column_groups or any({"disease", "wage"} <= set(g) for g in one.reading.column_groups)
    if len(one.seen) < 2 or not together:
        with pytest.raises(ck.BadInput, match=r"no two sensitive attributes|different column groups"):
            A.joint_secrets(one.reading)
        return
    known = one.reading.named_by
    classes: dict[Any, list[tuple[Any, Any]]] = defaultdict(list)
    for row in one.rows:
        if "*" not in (row["disease"], row["wage"]):
            classes[tuple(row[name] for name in known)].append((row["disease"], row["wage"]))
    found = A.joint_secrets(one.reading)
    whole = Counter(pair for pairs in classes.values() for pair in pairs)
    n = sum(whole.values())
    if not n:
        assert found.number is None
        return
    best = []
    for a, b in ((0, 1), (1, 0)):
        partners: dict[Any, list[Any]] = defaultdict(list)
        for key, pairs in classes.items():
            for pair in pairs:
                partners[key, pair[a]].append(pair[b])
        peaks = [(max(believed(values).values()), len(values)) for values in partners.values()]
        best.append((max(q for q, _ in peaks), sum(size for q, size in peaks if q == 1)))
    assert (found.number, found.details["plain"]) == (pytest.approx(float(max(best)[0])), max(best)[1])
    apart = max(
        sum(abs(Fraction(Counter(pairs)[pair], len(pairs)) - Fraction(whole[pair], n)) for pair in whole) / 2
        for pairs in classes.values()
    )
    assert found.details["total_variation"] == pytest.approx(float(apart))


def test_secrets_in_buckets_that_are_quasi_themselves_are_unknown_to_their_attacker() -> None:
    quasi = {"age": ck.flat(), "sex": ck.flat(), "job": ck.flat()}
    roles = {"quasi": quasi, "sensitive": {"job": ck.flat(), "wage": ck.flat()}}
    cells = {
        "bucket": [1] * 4,
        "age": [20] * 4,
        "sex": list("fffm"),
        "job": ["cook", "cook", "nurse", "nurse"],
        "wage": [1, 2, 2, 1],
    }
    reading = ck.sliced([["age"], ["sex", "job", "wage"]]).read(Columns.of(cells), ck.Schema(**roles))
    found = A.joint_secrets(reading)
    # among f: nurse -> 2, and 1 -> cook; the only m is plain
    assert (found.number, found.details["known"], found.details["plain"]) == (1, "job", 2)
    assert found.details["total_variation"] == 3 / 4


# baskets ------------------------------------------------------------------------------------------------------------


def surest(baskets: list[tuple[Any, frozenset[str]]], items: set[str], most: int) -> Fraction | None:
    """Over every chi that some basket has, in its class, and every other item."""
    best: Fraction | None = None
    for where, basket in baskets:
        for size in range(most + 1):
            for chi in combinations(sorted(basket), size):
                have = [other for there, other in baskets if there == where and set(chi) <= other]
                for item in items - set(chi):
                    share = Fraction(sum(item in other for other in have), len(have))
                    if share and (best is None or share > best):
                        best = share
    return best


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.tuples(st.sampled_from("fm"), st.one_of(st.just("*"), st.frozensets(st.sampled_from("abcde")))),
        min_size=1,
        max_size=7,
    ),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)
def test_the_surest_rule_equals_enumeration(rows: list[Any], most: int, known_class: bool, some: bool) -> None:
    schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"drugs": ck.flat()})
    cells = [basket if basket == "*" else "; ".join(sorted(basket)) or None for _, basket in rows]
    reading = ck.generalized().read(Columns.of({"sex": [sex for sex, _ in rows], "drugs": cells}), schema)
    baskets = [(sex if known_class else "", frozenset(basket)) for sex, basket in rows if basket != "*"]
    occurs = {item for _, basket in baskets for item in basket}
    items = {item for item in occurs if item in "ab"} if some else occurs
    found = A.association_rules(reading, "drugs", most, items if some else None, known_class=known_class)
    expected = surest(baskets, items, most)
    assert found.number == (None if expected is None else pytest.approx(float(expected)))
    if expected is not None:
        chi = set(str(found.details["known_items"]).split(", ")) - {""}
        supports = {
            (
                sum(chi | {found.details["item"]} <= other for there, other in baskets if there == where),
                sum(chi <= other for there, other in baskets if there == where),
            )
            for where, _ in baskets
        }
        assert len(chi) <= most and (found.details["support"], found.details["base"]) in supports
        assert all(surest(baskets, items, fewer) != expected for fewer in range(len(chi)))


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from("abcd")), min_size=1, max_size=9))
def test_baskets_may_be_rows_of_one_number(rows: list[tuple[int, str]]) -> None:
    schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"item": ck.flat()}, plain=["tid"])
    cells = {"sex": ["f"] * len(rows), "item": [item for _, item in rows], "tid": [tid for tid, _ in rows]}
    reading = ck.generalized().read(Columns.of(cells), schema)
    baskets = [("", frozenset(item for tid, item in rows if tid == one)) for one in {tid for tid, _ in rows}]
    found = A.association_rules(reading, "item", 2, by="tid")
    expected = surest(baskets, {item for _, item in rows}, 2)
    assert found.number == (None if expected is None else pytest.approx(float(expected)))


def test_too_many_sets_are_left_out_and_named() -> None:
    schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"drugs": ck.flat()})
    cells = Columns.of({"sex": ["f"] * 3, "drugs": ["a;b;c;d", "a;b;x", "c;y;z"]})
    reading = ck.generalized().read(cells, schema)
    whole, short = (A.association_rules(reading, "drugs", items=["b"], most=most) for most in (1000, 1))
    assert (whole.number, whole.details["known_items"], short.details["known_at_most"]) == (1, "a", 0)
    assert short.number == pytest.approx(2 / 3)
    assert short.sentence == (
        "An adversary who knows no item infers b in a person's `drugs` with probability 66.7 % (2 of 3 baskets). Sets of more "
        "than 0 known items were too many to examine."
    )
    with pytest.raises(ck.BadInput, match="no basket has the item"):
        A.association_rules(reading, "drugs", items=["q"])
    with pytest.raises(ck.BadInput, match="is not in the release"):
        A.association_rules(reading, "drugs", by="tid")


# People and rows -------------------------------------------------------------------------------------------------------


SCHEMA = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})


SEED = 2**64


def of_persons() -> tuple[Columns, ck.Schema, ck.Release]:
    """Four people with six rows, each of which gives the secret away by itself."""
    schema = SCHEMA.model_copy(update={"person": "who"})
    cells = {"age": [30] * 4 + [60] * 2, "ill": ["flu"] * 4 + ["gout"] * 2, "who": ["a", "a", "b", "b", "c", "d"]}
    table = Columns.of(cells)
    return table, schema, ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)


def test_people_whom_single_rows_disclose_are_counted_once() -> None:
    table, schema, release = of_persons()
    both, rows = intersection(release, release, table, schema), intersection(release, None, table, schema)
    assert (both.details["victims"], both.details["given_away"], both.details["alone"]) == (4, 4, 4)
    assert (rows.details["victims"], rows.details["given_away"], rows.details["alone"]) == (2, 2, 2)


def test_no_person_in_both_releases_is_reported() -> None:
    def release(ages: list[int]) -> ck.Release:
        return ck.anonymize(
            Columns.of({"age": ages, "ill": ["flu", "gout"]}), SCHEMA, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED
        )

    found = intersection(release([20, 21]), release([70, 71]), Columns.of({"age": [20, 70]}), SCHEMA)
    assert found.number is None
    assert found.sentence.endswith("no one is in both.")


def test_rows_of_the_table_are_not_called_people() -> None:
    table, schema, release = of_persons()
    sentence = candidate_rows(release, table, schema).sentence
    assert sentence.startswith("Each of 6 rows of the table has at least 2 candidates in the release;")


def test_one_person_of_a_population_is_reported_in_the_singular() -> None:
    table = Columns.of({"age": [30, 31, 70, 71], "ill": ["flu", "gout"] * 2})
    release = ck.anonymize(table, SCHEMA, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    alone = Columns.of({"age": [30]})
    assert population_linkage(release, alone).sentence.startswith("Each row matches at least 1 person of the population")
    assert "1 person and the release at least as many rows" in delta_presence(release, alone).sentence
    many = Columns.of({"age": [30, 30, 31, 31, 31, 70, 71, 99]})
    assert "1 is certainly not; without the release" in delta_presence(release, many).sentence


def test_baskets_may_be_one_name_and_must_be_names() -> None:
    table = Columns.of({"age": [30, 31, 70, 71], "ill": ["flu;gout", "gout"] * 2})
    release = ck.anonymize(table, SCHEMA, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    assert ck.attack(release, baskets="ill") == ck.attack(release, baskets=["ill"])
    with pytest.raises(ck.BadInput, match="baskets=3 is not a list of columns"):
        ck.attack(release, baskets=3)  # type: ignore[arg-type]


def test_the_table_of_another_release_is_refused() -> None:
    table = Columns.of({"age": [30, 31, 70, 71], "ill": ["flu", "gout"] * 2})
    release = ck.anonymize(table, SCHEMA, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)
    with pytest.raises(ck.BadInput, match="has 3 rows, but the release was computed from 4"):
        ck.attack(release, original=table.take(np.arange(3)), schema=SCHEMA)
