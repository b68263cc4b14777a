"""Anatomy: groups in which no value is too frequent, as many as there can be, narrow, and the same when asked twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.checks.methods import guarantee_met, run_case
from closeknit.checks.tables import Case
from closeknit.core.columns import Columns
from closeknit.core.geometry import scales
from closeknit.core.method import ignore_progress
from closeknit.core.table import Table
from closeknit.kernels.exchange.anatomy import REACH, WORK, _effort, exchange_rows
from closeknit.kernels.geometry.boxes import partition_loss
from closeknit.methods.anatomy import Anatomy, lanes_of
from conftest import examples

SEED = 2**99
SCHEMA = ck.Schema(quasi={"age": ck.numeric(0, 99), "town": ck.flat()}, sensitive={"ill": ck.flat()})
BOTH = pytest.mark.parametrize("rows", ["near", "random"])


def cells(ills: list[Any], seed: int = 0) -> dict[str, list[Any]]:
    """These secrets, with quasi-identifiers at random."""
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(0, 100, len(ills)).tolist(),
        "town": rng.choice(["a", "b", "c"], len(ills)).tolist(),
        "ill": ills,
    }


def coded(ills: list[Any], seed: int = 0) -> Table:
    return SCHEMA.encode(Columns.of(cells(ills, seed)))


def groups(method: Anatomy, table: Table, seed: int = SEED) -> list[int]:
    partition = method.run(table, [], seed, ignore_progress).partition
    assert partition.class_of.min() == 0 and partition.class_of.max() == partition.count - 1
    return partition.class_of.tolist()


def check_diverse(group_of: list[int], values: list[Any], l: Any) -> int:
    """Every row has a group and no value has more than 1/l of one; counted with dictionaries. The number of groups."""
    assert len(group_of) == len(values)
    held: dict[int, Counter[Any]] = defaultdict(Counter)
    for group, value in zip(group_of, values, strict=True):
        held[group][value] += 1
    for counts in held.values():
        assert max(counts.values()) * Fraction(str(l)) <= counts.total(), counts
    return len(held)


@cache
def most_groups(rows: int, needed: int, l: Fraction, largest: int) -> float:
    """Groups of at most `largest` rows, tried one by one: they hold the most frequent value `needed` times or more."""
    if rows == 0:
        return 0 if needed <= 0 else -np.inf
    sizes = range(ceil(l), min(rows, largest) + 1)
    return max((1 + most_groups(rows - s, max(needed - int(s / l), 0), l, s) for s in sizes), default=-np.inf)


@st.composite
def eligible(draw: st.DrawFn) -> tuple[list[int], str]:
    """Secrets, and an l that they just about allow."""
    ills = draw(st.lists(st.integers(0, draw(st.integers(1, 7))), min_size=2, max_size=32))
    highest = Fraction(len(ills), max(Counter(ills).values()))
    assume(highest > 1)
    l = draw(st.sampled_from([Fraction(x, y) for y in (1, 2, 3, 5, 7, 8, 10) for x in range(y + 1, 6 * y)] + [highest]))
    assume(l <= highest)
    return ills, str(l)


# The guarantee -------------------------------------------------------------------------------------------------------------


@BOTH
@settings(max_examples=examples(150))
@given(eligible(), st.integers(0, 3))
def test_every_group_is_diverse_and_there_are_as_many_as_can_be(rows: str, requested: tuple[list[int], str], seed: int) -> None:
    ills, l = requested
    table = coded(ills, seed)
    count = check_diverse(groups(Anatomy(l, rows=rows), table, seed), table.sensitive[:, 0].tolist(), l)
    assert count == most_groups(len(ills), max(Counter(ills).values()), Fraction(l), len(ills))


@pytest.mark.parametrize("l", ["8/5", "13/8", "12/7", "17/12", "19/8", "18/7"])
def test_as_many_groups_as_an_exhaustive_search_finds_where_lanes_are_joined(l: str) -> None:
    limit, seen = Fraction(l), set()
    for n in range(2, 41):
        for most in range(n // ceil(limit) + 1, int(n / limit) + 1):
            joins = lanes_of(n, most, limit)[1]
            assert joins is not None and joins.min() >= 0
            assert joins.sum() == most and joins[:, 0].sum() == n - most * (ceil(limit) - 1)
            assert len(joins) == most_groups(n, most, limit, n)
            seen |= set(map(tuple, joins.tolist()))
    assert len(seen) >= 3  # kinds of groups: the chain was followed for more than one step


@pytest.mark.soak
@settings(max_examples=examples(20))
@given(st.integers(2, 60), st.integers(0, 59), st.fractions(1, 6, max_denominator=40).filter(lambda limit: limit > 1))
def test_the_plan_is_the_best_there_is(n: int, drawn: int, l: Fraction) -> None:
    n = max(n, ceil(l))
    most = 1 + drawn % int(n / l)
    lanes, joins = lanes_of(n, most, l)
    assert (lanes if joins is None else len(joins)) == most_groups(n, most, l, n)


@BOTH
@pytest.mark.parametrize("l", [2, 3, 7])
def test_whole_l_gives_groups_of_different_values(rows: str, l: int) -> None:
    rng = np.random.default_rng(l)
    ills = rng.choice(12, 302).tolist()
    table = coded(ills)
    group_of, values = groups(Anatomy(l, rows=rows), table), table.sensitive[:, 0].tolist()
    assert max(Counter(zip(group_of, values, strict=True)).values()) == 1
    sizes = Counter(group_of).values()
    assert len(sizes) == 302 // l and min(sizes) == l and sum(sizes) == 302
    assert max(sizes) <= l + ceil(302 % l / (302 // l))  # what is left over is spread


@BOTH
def test_at_the_boundary(rows: str) -> None:
    ills = ["flu"] * 20 + [f"rare {i}" for i in range(40)]  # one in three
    table = coded(ills)
    held = groups(Anatomy(3, rows=rows), table)
    values = table.sensitive[:, 0].tolist()
    flu = Counter(values).most_common(1)[0][0]
    assert check_diverse(held, values, 3) == 20
    assert sorted(group for group, value in zip(held, values, strict=True) if value == flu) == list(range(20))
    with pytest.raises(ck.Unsatisfiable, match=r"20 of 60 rows, so no groups reach more than 3;"):
        Anatomy("3.0001", rows=rows).run(table, [], SEED, ignore_progress)


@BOTH
def test_two_and_a_half(rows: str) -> None:
    """The most frequent value has four of ten rows: three groups of three rows have no room for it."""
    table = coded(["flu"] * 4 + ["gout"] * 3 + ["acne"] * 3)
    group_of = groups(Anatomy(2.5, rows=rows), table)
    assert check_diverse(group_of, table.sensitive[:, 0].tolist(), 2.5) == 2
    assert sorted(Counter(group_of).values()) == [5, 5]
    assert Anatomy(2.5).run(coded(list("abcdefghij")), [], SEED, ignore_progress).partition.count == 3


@pytest.mark.parametrize("rows", ["near", "random"])
def test_rows_without_a_value_join_groups_of_known_values(rows: str) -> None:
    """However many they are; and they are no alternative to the only known value."""
    table = coded([None] * 30 + ["flu"] * 10 + ["gout"] * 10)
    values = table.sensitive[:, 0].tolist()
    found = groups(Anatomy(2, rows=rows), table)
    known = [row for row, value in enumerate(values) if value < 2]
    count = check_diverse([found[row] for row in known], [values[row] for row in known], 2)
    assert count == len(set(found)) == 10 and len(found) == len(table)
    assert set(groups(Anatomy(2), coded([None] * 10))) == {0}
    with pytest.raises(ck.Unsatisfiable):
        Anatomy(2).run(coded([None] * 10 + ["flu"] * 10), [], SEED, ignore_progress)


def test_the_printed_tables_protect_no_one() -> None:
    """Tables 2.4 and 2.5 of the dissertation: four people, four groups. Whoever knows a group knows the disease."""
    people: dict[str, list[Any]] = {
        "sex": ["Female", "Male", "Male", "Female"],
        "zip": ["47677", "47602", "47678", "47905"],
        "age": [29, 22, 27, 43],
        "disease": ["Heart Disease", "Fever", "Cancer", "Flu"],
    }
    quasi = {"sex": ck.flat(), "zip": ck.prefix(), "age": ck.numeric()}
    schema, requested = ck.Schema(quasi=quasi, sensitive={"disease": ck.flat()}), [ck.LDiversity("disease", 2, "frequency")]
    printed = Columns.of({"bucket": [1, 2, 3, 4], **people})
    assert not ck.audit(printed, schema, requested, form="bucketized").ok
    release = ck.anonymize(Columns.of(people), schema, [], Anatomy(2), seed=SEED)
    assert sorted(Counter(release.columns["bucket"].cells()).values()) == [2, 2]
    assert ck.audit(release.columns, schema, requested, form="bucketized").ok
    with pytest.raises(ck.BadInput, match="l must be a number above 1"):
        Anatomy(1)


# Other guarantees, other forms, persons ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["near", "random"])
def test_other_guarantees_are_kept_too(rows: str) -> None:
    models = (ck.TCloseness("disease", 0.3), ck.LDiversity("stay", 3, "frequency"), ck.BetaLikeness("charge", 400))
    case = Case("hospital", ck.datasets.hospital(300), ck.datasets.hospital_schema(), models)
    guarantee_met(Anatomy(4, "disease", rows), case)


@pytest.mark.parametrize("form", [None, "bucketized", "multiset", "generalized", "sliced"])
def test_groups_are_written_in_any_form(form: str | None) -> None:
    release = ck.anonymize(Columns.of(cells(list("abcdef") * 10)), SCHEMA, [], Anatomy(3), form=form, seed=SEED)
    guarantee = release.certificate.guarantees[0]
    assert release.certificate.ok and "frequency l-diversity of ill, l = 3" in guarantee.text
    assert ("bucket" in release.columns) == (form != "generalized")


def test_quasi_identifiers_stay_exact() -> None:
    raw = cells(list("abcdef") * 10)
    release = ck.anonymize(Columns.of(raw), SCHEMA, [], Anatomy(3), seed=SEED)
    written = zip(release.columns["age"].cells(), release.columns["town"].cells(), strict=True)
    assert Counter((str(age), town) for age, town in written) == Counter(zip(map(str, raw["age"]), raw["town"], strict=True))
    assert Counter(release.columns["ill"].cells()) == Counter(raw["ill"])


@pytest.mark.parametrize("person_rows", ["together", "count-once"])
@pytest.mark.parametrize("l", [2, 3])
def test_persons(person_rows: str, l: int) -> None:
    rng = np.random.default_rng(4)
    ills = rng.choice(20, 120).astype(str).tolist()
    columns = Columns.of({**cells(ills), "patient": [f"p{i}" for i in rng.integers(0, 50, 120)]})
    schema = SCHEMA.model_copy(update={"person": "patient", "person_rows": person_rows})
    guarantee_met(Anatomy(l), Case("visits", columns, schema, (ck.LDiversity("ill", 2),)))


def test_persons_whose_first_rows_alone_are_not_diverse() -> None:
    """Every person has a first row with the same secret, yet all rows as one group keep the guarantee."""
    ills = ["a flu"] * 10 + [f"rare {i}" for i in range(10)]
    people: dict[str, list[Any]] = {"age": [1] * 20, "town": ["a"] * 20, "patient": [f"p{i}" for i in range(10)] * 2}
    columns = Columns.of({**people, "ill": ills})
    schema = SCHEMA.model_copy(update={"person": "patient", "person_rows": "together"})
    with pytest.raises(ck.Unsatisfiable):  # ten of ten persons have it
        ck.anonymize(columns, schema, [], Anatomy(2), seed=SEED)
    assert Anatomy(2).run(schema.encode(columns).take(np.arange(10)), [], SEED, ignore_progress).partition.count == 1


# What is asked for -------------------------------------------------------------------------------------------------------


def test_which_secret() -> None:
    schema = ck.datasets.hospital_schema()
    assert Anatomy(2.5).guarantees(schema) == (ck.LDiversity("disease", 2.5, "frequency"),)
    assert Anatomy(2, "stay").guarantees(schema) == (ck.LDiversity("stay", 2, "frequency"),)
    table = schema.encode(ck.datasets.hospital(400))
    place = list(schema.sensitive).index("stay")
    check_diverse(groups(Anatomy(3, "stay"), table), table.sensitive[:, place].tolist(), 3)
    for column in ("age", "nobody"):
        with pytest.raises(ck.BadInput, match=f"column '{column}': is not sensitive; choose one of: disease, stay"):
            Anatomy(2, column).guarantees(schema)
    with pytest.raises(ck.BadInput, match="needs a sensitive column"):
        Anatomy(2).guarantees(ck.Schema(quasi={"age": ck.numeric()}))


@pytest.mark.parametrize(
    "params", [{"l": 1}, {"l": 0}, {"l": "many"}, {"l": None}, {"l": True}, {"rows": "far", "l": 2}, {"column": 3, "l": 2}]
)
def test_wrong_parameters_are_named(params: dict[str, Any]) -> None:
    with pytest.raises(ck.BadInput, match=next(iter(params))):
        Anatomy(**params)


@BOTH
def test_too_frequent_is_refused(rows: str) -> None:
    with pytest.raises(ck.Unsatisfiable, match="frequency l-diversity of ill, l = 3"):
        Anatomy(3, rows=rows).run(coded(["flu"] * 5 + list("abcdefgh")), [], SEED, ignore_progress)
    with pytest.raises(ck.Unsatisfiable):
        ck.anonymize(Columns.of(cells(["flu"] * 5 + list("abcdefgh"))), SCHEMA, [], Anatomy(3, rows=rows))


# Which rows --------------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("l", [3, "7/3"])
def test_neither_the_input_order_nor_a_second_run_matters(rows: str, l: Any) -> None:
    rng = np.random.default_rng(8)
    ills = ["flu"] * 60 + rng.choice(9, 120).astype(str).tolist() if l != 3 else rng.choice(9, 180).astype(str).tolist()
    case = Case("one", Columns.of(cells(ills)), SCHEMA, ())
    shuffled = Columns.of({name: column.cells() for name, column in case.columns.take(rng.permutation(180)).items()})
    one, again, other = (run_case(Anatomy(l, rows=rows), case, columns) for columns in (None, None, shuffled))
    assert one.certificate == again.certificate == other.certificate
    assert (one.partition == again.partition).all()


@BOTH
def test_another_seed_gives_other_groups(rows: str) -> None:
    table = coded(np.random.default_rng(1).choice(8, 300).tolist())
    assert groups(Anatomy(3, rows=rows), table, 1) != groups(Anatomy(3, rows=rows), table, 2)


def losses(table: Table, l: Any) -> dict[str, float]:
    """What groups would lose if they were generalized: how wide they are."""
    found = {}
    for rows in ("near", "random"):
        partition = Anatomy(l, rows=rows).run(table, [], SEED, ignore_progress).partition
        found[rows] = float(partition_loss(scales(table), table.quasi, partition.class_of, partition.count))
    return found


@pytest.mark.parametrize("l", [2, 4, 2.5])
def test_near_rows_make_narrow_groups(l: Any) -> None:
    found = losses(ck.datasets.hospital_schema().encode(ck.datasets.hospital(1000)), l)
    assert found["near"] < 0.45 * found["random"]


def test_narrow_groups_where_lanes_are_joined() -> None:
    ills = ["flu"] * 400 + np.random.default_rng(0).choice(9, 600).astype(str).tolist()
    found = losses(coded(ills), 2.5)
    assert found["near"] < 0.3 * found["random"]


@settings(max_examples=examples(60))
@given(st.data())
def test_exchanges_keep_limits_and_never_widen(data: st.DataObject) -> None:
    table = coded(data.draw(st.lists(st.integers(0, 4), min_size=2, max_size=40)))
    n = len(table)
    group_of = np.array(data.draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)))
    group_of = np.unique(group_of, return_inverse=True)[1].astype(np.int32)
    values, count = table.sensitive[:, 0], int(group_of.max()) + 1
    before = Counter(zip(group_of.tolist(), values.tolist(), strict=True))
    limit = np.array([max(c for (g, _), c in before.items() if g == group) for group in range(count)])
    found = exchange_rows(group_of, values, limit, table.quasi, scales(table), 6, 3)
    after = Counter(zip(found.tolist(), values.tolist(), strict=True))
    assert all(times <= limit[group] for (group, _), times in after.items())
    assert np.bincount(found).tolist() == np.bincount(group_of).tolist()
    wide = [partition_loss(scales(table), table.quasi, groups, count) for groups in (found, group_of)]
    assert wide[0] <= wide[1] + 1e-9


@pytest.mark.parametrize(("size", "count"), [(3, 10), (5, 100_000), (1000, 20), (5000, 100), (10**6, 2)])
def test_large_groups_do_not_take_for_ever(size: int, count: int) -> None:
    passes, reach = _effort(np.full(count, size), 16)
    assert 0 <= passes <= 16 and 1 <= reach <= REACH and passes * reach * count * size**2 <= WORK
    assert size >= 1000 or passes == 16


def test_random_rows_do_not_follow_the_quasi_identifiers() -> None:
    """Each of two flus meets each of two gouts in about half of all draws, however far apart they are."""
    table = coded(["flu", "flu", "gout", "gout"])
    first = [groups(Anatomy(2, rows="random"), table, seed) for seed in range(400)]
    values = table.sensitive[:, 0]
    one, (a, _) = int(np.flatnonzero(values == values[0])[0]), np.flatnonzero(values != values[0])
    met = sum(group_of[one] == group_of[a] for group_of in first)
    assert 150 < met < 250
