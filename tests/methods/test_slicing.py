"""The method Slicing: its guarantees judged from the written file by plain counting, the source's errors, and what is
refused.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from conftest import examples

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "streams.json").read_text(encoding="utf-8"))
SEED = 2**100 + 3
CUTS = ("strict", "relaxed", "random", "spread", "near")


def table_of(rows: list[tuple], names: list[str]) -> Columns:
    return Columns.of({name: [row[i] for row in rows] for i, name in enumerate(names)})


def buckets_of(columns: Columns, groups: list[list[str]]) -> dict[int, list[list[tuple]]]:
    """Per bucket the cells of each column group: all that the file discloses."""
    cells = {name: column.cells() for name, column in columns.items()}
    buckets: dict[int, list[list[tuple]]] = defaultdict(lambda: [[] for _ in groups])
    for row, number in enumerate(cells["bucket"]):
        for i, group in enumerate(groups):
            buckets[number][i].append(tuple(str(cells[name][row]) for name in group))
    return dict(buckets)


def worst_share(columns: Columns, groups: list[list[str]], secret: str, hidden: set[str]) -> Fraction:
    """The largest share of a value among the rows of one bucket with the same known cells."""
    place = next(i for i, group in enumerate(groups) if secret in group)
    known = [j for j, name in enumerate(groups[place]) if name not in hidden and name != secret]
    at = groups[place].index(secret)
    worst = Fraction(0)
    for bucket in buckets_of(columns, groups).values():
        parts: dict[tuple, Counter] = defaultdict(Counter)
        for cells in bucket[place]:
            parts[tuple(cells[j] for j in known)][cells[at]] += 1
        worst = max(worst, *(Fraction(max(count.values()), count.total()) for count in parts.values()))
    return worst


def generated(rows: int, seed: int, secrets: int = 5) -> tuple[Columns, ck.Schema]:
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=rows)
    cells: dict[str, list[object]] = {
        "age": (40 + 15 * hidden + rng.normal(size=rows)).astype(int).tolist(),
        "zip": [f"{int(x):02d}" for x in np.clip(50 + 20 * hidden, 0, 99)],
        "sex": rng.choice(["f", "m"], rows).tolist(),
        "job": [f"j{int(x)}" for x in rng.integers(0, 6, rows)],
        "disease": [f"d{int(x)}" for x in (rng.random(rows) ** 1.5 * secrets).astype(int)],
    }
    quasi = {"age": ck.numeric(), "zip": ck.prefix(2), "sex": ck.flat(), "job": ck.flat()}
    return Columns.of(cells), ck.Schema(quasi=quasi, sensitive={"disease": ck.flat()})


def quiet(*args: object, **more: object) -> ck.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ck.anonymize(*args, seed=SEED, **more)  # type: ignore[arg-type]


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(8, 120), st.integers(0, 10**6), st.sampled_from(CUTS), st.integers(0, 2), st.sampled_from([1.5, 2, "7/3"]))
def test_every_bucket_is_diverse_given_what_is_known(rows: int, seed: int, cuts: str, attached: int, least: object) -> None:
    columns, schema = generated(rows, seed)
    bucket = {"bucket": 7} if cuts in ("random", "spread") else {}
    try:
        release = quiet(columns, schema, [], ck.Slicing(l=least, cuts=cuts, attached=attached, **bucket))  # type: ignore[arg-type]
    except ck.Unsatisfiable:
        most = max(Counter(columns["disease"].cells()).values())
        assert most * Fraction(str(least)) > rows, "the whole table as one bucket would have kept it"
        return
    except ck.BadInput as bad:
        assert "attached" in str(bad)  # too few columns have few enough values
        return
    groups = release.certificate.form["sliced"]["columns"]
    assert worst_share(release.columns, groups, "disease", {"disease"}) <= 1 / Fraction(str(least))
    sizes = Counter(release.columns["bucket"].cells())
    assert min(sizes.values()) >= 2
    assert ck.audit(release.columns, certificate=release.certificate).ok


@pytest.mark.parametrize("cuts", CUTS)
def test_cells_of_a_group_are_those_of_the_rows_of_its_bucket(cuts: str) -> None:
    columns, schema = generated(150, 7)
    release = quiet(columns, schema, [], ck.Slicing(columns=3, l=2, cuts=cuts))
    groups = release.certificate.form["sliced"]["columns"]
    raw = {name: [str(cell) for cell in column.cells()] for name, column in columns.items()}
    written = buckets_of(release.columns, groups)
    assert len(written) == len(set(release.partition.tolist()))
    members = [np.flatnonzero(release.partition == number).tolist() for number in set(release.partition.tolist())]
    expected = [[sorted(tuple(raw[name][row] for name in group) for row in rows) for group in groups] for rows in members]
    assert sorted(expected) == sorted([sorted(cells) for cells in bucket] for bucket in written.values())


def test_strict_cuts_leave_one_matching_bucket_to_every_row() -> None:
    columns, schema = generated(300, 11)
    release = quiet(columns, schema, [], ck.Slicing(columns=3, l=2))
    groups = release.certificate.form["sliced"]["columns"]
    known = [[name for name in group if name != "disease"] for group in groups]
    raw = {name: [str(cell) for cell in column.cells()] for name, column in columns.items()}
    written = buckets_of(release.columns, groups)
    for row in range(columns.rows):
        fits = 0
        for bucket in written.values():
            mine = [tuple(raw[name][row] for name in names) for names in known]
            there = [{cells[: len(names)] for cells in column} for column, names in zip(bucket, known, strict=True)]
            fits += all(cell in cells for cell, cells in zip(mine, there, strict=True))
        assert fits == 1


def test_four_rows_of_one_disease_are_refused() -> None:
    columns = Columns.of({"age": [1, 2, 3, 4], "disease": ["hiv"] * 4})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})
    for diverse in ("local", "size", "paper"):
        with pytest.raises(ck.Unsatisfiable):
            quiet(columns, schema, [], ck.Slicing(l=2, diverse=diverse))


def test_a_unique_value_next_to_the_secret_is_refused_or_generalized() -> None:
    golden = GOLDEN["slicing_counterexample_unique_qi_with_s"]
    columns = table_of(golden["records"], ["A", "Z", "S"])
    schema = ck.Schema(quasi={"A": ck.flat(), "Z": ck.numeric()}, sensitive={"S": ck.flat()})
    groups = [["A"], ["Z", "S"]]
    with pytest.raises(ck.Unsatisfiable, match="the 1 rows with Z = 0 reach 1 in the whole table"):
        quiet(columns, schema, [], ck.Slicing(columns=groups, l=2, generalize=False))
    release = quiet(columns, schema, [], ck.Slicing(columns=groups, l=2))
    assert set(release.columns["Z"].cells()) == {"*"}
    assert worst_share(release.columns, groups, "S", {"S"}) <= Fraction(1, 2)


def test_the_printed_weights_accept_what_the_others_refuse() -> None:
    golden = GOLDEN["slicing_counterexample_weights"]
    columns = table_of(golden["records"], ["A", "B", "S"])
    schema = ck.Schema(quasi={"A": ck.numeric(), "B": ck.flat()}, sensitive={"S": ck.flat()})
    for diverse, limit in (("local", True), ("size", True), ("paper", False)):
        method = ck.Slicing(columns=golden["columns"], l=2, diverse=diverse, cuts="relaxed", generalize=False)
        try:
            release = quiet(columns, schema, [], method)
        except ck.Unsatisfiable:
            continue
        if limit:
            assert worst_share(release.columns, golden["columns"], "S", {"S"}) <= Fraction(1, 2)
        assert min(Counter(release.columns["bucket"].cells()).values()) >= 2  # never the table in clear


def test_equality_is_kept_not_refused() -> None:
    golden = GOLDEN["slicing_table1"]
    columns = table_of(golden["records"], golden["attributes"])
    schema = ck.Schema(quasi={"Age": ck.numeric(), "Sex": ck.flat(), "Zipcode": ck.prefix()}, sensitive={"Disease": ck.flat()})
    groups = golden["1f"]["columns"]
    release = quiet(columns, schema, [], ck.Slicing(columns=groups, l=2, generalize=False))
    assert worst_share(release.columns, groups, "Disease", {"Disease"}) == Fraction(1, 2)
    assert release.certificate.guarantees[0].exact == "2"


def test_a_column_may_be_known_and_secret_and_each_is_the_secret_in_turn() -> None:
    columns, _ = generated(200, 3)
    quasi = {"age": ck.numeric(), "sex": ck.flat(), "zip": ck.prefix(2), "job": ck.flat()}
    schema = ck.Schema(quasi=quasi, sensitive={"job": ck.flat(), "disease": ck.flat()})
    release = quiet(columns, schema, [], ck.Slicing(l=2))
    groups = release.certificate.form["sliced"]["columns"]
    assert ["job"] in groups
    assert [guarantee.column for guarantee in release.certificate.guarantees] == ["job", "disease"]
    for secret in ("job", "disease"):
        assert worst_share(release.columns, groups, secret, {"disease"}) <= Fraction(1, 2)
    partition = [["age"], ["sex", "zip"], ["job", "disease"]]  # job is known to whoever looks for the disease
    release = quiet(columns, schema, [], ck.Slicing(columns=partition, l=1.5))
    assert worst_share(release.columns, partition, "disease", {"disease"}) <= Fraction(2, 3)
    assert worst_share(release.columns, partition, "job", {"disease"}) <= Fraction(2, 3)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ([["age", "zip", "sex", "job", "disease"]], "the table itself"),
        ([["age", "zip", "disease"], ["sex", "job", "disease"]], "two groups"),
        ([["age", "zip"], ["sex", "disease"]], "'job': is in no group"),
        ([["age", "zip", "wage"], ["sex", "job", "disease"]], "'wage': is in a group"),
    ],
)
def test_groups_that_cannot_be_meant_are_refused(columns: list[list[str]], says: str) -> None:
    table, schema = generated(50, 1)
    with pytest.raises(ck.BadInput, match=says):
        quiet(table, schema, [], ck.Slicing(columns=columns, l=2))


def test_plain_columns_stand_in_a_group_or_nowhere() -> None:
    columns, schema = generated(80, 5)
    schema = schema.model_copy(update={"quasi": {n: k for n, k in schema.quasi.items() if n != "sex"}, "plain": ("sex",)})
    with pytest.raises(ck.BadInput, match="'sex': is plain"):
        quiet(columns, schema, [], ck.Slicing(l=2))
    groups = [["age", "zip"], ["job"], ["sex", "disease"]]
    release = quiet(columns, schema, [], ck.Slicing(columns=groups, l=2))
    assert worst_share(release.columns, groups, "disease", {"disease"}) <= Fraction(1, 2)  # sex counts as known


def test_other_guarantees_hold_in_every_bucket_given_what_is_known() -> None:
    columns, schema = generated(400, 9)
    models = [ck.TCloseness("disease", 0.3), ck.BetaLikeness("disease", 3), ck.LDiversity("disease", 3)]
    release = quiet(columns, schema, models, ck.Slicing(columns=[["age", "zip"], ["job"], ["sex", "disease"]]))
    everything = Counter(columns["disease"].cells())
    for bucket in buckets_of(release.columns, [["sex", "disease"]]).values():
        for sex in {cells[0] for cells in bucket[0]}:
            part = Counter(cells[1] for cells in bucket[0] if cells[0] == sex)
            far = sum(abs(Fraction(part[v], part.total()) - Fraction(n, 400)) for v, n in everything.items()) / 2
            assert far <= Fraction("0.3")
            assert len(part) >= 3


@pytest.mark.parametrize("more", [{"diverse": "size"}, {"diverse": "paper", "cuts": "relaxed"}])
def test_weighed_buckets_go_with_nothing_else(more: dict[str, str]) -> None:
    columns, schema = generated(80, 5)
    with pytest.raises(ck.BadInput, match="no other guarantee"):
        quiet(columns, schema, [ck.TCloseness("disease", 0.4)], ck.Slicing(l=2, **more))
    release = quiet(columns, schema, [], ck.Slicing(l=2, **more))
    guarantee = release.certificate.guarantees[0]
    assert (guarantee.met, guarantee.status, guarantee.measured) == (True, "attested", None)
    checked = ck.audit(release.columns, certificate=release.certificate).guarantees[0]
    assert checked.status in ("recomputed", "not checkable")


def test_weighed_buckets_stay_as_they_were_found() -> None:
    """A bucket that is not diverse by itself may stand where its rows fit into others too; merging it would waste that."""
    columns, schema = generated(300, 10)
    groups = [["age", "zip"], ["sex", "job"], ["disease"]]
    release = quiet(columns, schema, [], ck.Slicing(columns=groups, l=1.5, diverse="size", cuts="relaxed"))
    assert release.certificate.ok
    assert worst_share(release.columns, groups, "disease", {"disease"}) > 1 / Fraction("1.5")


def test_k_anonymity_has_no_meaning_here() -> None:
    columns, schema = generated(50, 1)
    with pytest.raises(ck.BadInput, match="k_anonymity has no meaning in the form 'sliced'"):
        quiet(columns, schema, [ck.KAnonymity(3)], ck.Slicing(l=2))


def test_more_values_than_there_are_cannot_be_asked() -> None:
    columns, schema = generated(60, 2)
    with pytest.raises(ck.Unsatisfiable, match="the whole table as one class reaches"):
        quiet(columns, schema, [], ck.Slicing(l=6))


def test_rare_combinations_of_a_group_are_generalized() -> None:
    columns, schema = generated(200, 4)
    schema = schema.model_copy(update={"quasi": {**schema.quasi, "age": ck.numeric(step=10)}})
    release = quiet(columns, schema, [], ck.Slicing(columns=[["age", "zip"], ["sex", "job"], ["disease"]], l=2, rare=4))
    for group in (["age", "zip"], ["sex", "job"]):
        cells = zip(*(release.columns[name].cells() for name in group), strict=True)
        assert min(Counter(cells).values()) >= 4
    assert ck.audit(release.columns, certificate=release.certificate).ok


def test_rows_of_a_person_stand_in_one_bucket_and_count_once() -> None:
    columns, schema = generated(240, 6, secrets=12)
    cells = {name: column.cells() for name, column in columns.items()} | {"who": [i // 2 for i in range(240)]}
    schema = schema.model_copy(update={"person": "who"})
    release = quiet(Columns.of(cells), schema, [], ck.Slicing(l=2))
    homes: dict[int, set[int]] = defaultdict(set)
    carried: dict[tuple[int, str], set[int]] = defaultdict(set)
    for who, bucket, disease in zip(cells["who"], release.partition.tolist(), cells["disease"], strict=True):
        homes[who].add(bucket)
        carried[bucket, disease].add(who)
    assert all(len(buckets) == 1 for buckets in homes.values())
    persons = Counter(next(iter(buckets)) for buckets in homes.values())
    assert all(2 * len(who) <= persons[bucket] for (bucket, _), who in carried.items())
    assert release.certificate.guarantees[0].status == "attested"


def test_the_seed_decides_random_buckets_alone() -> None:
    columns, schema = generated(120, 8)
    for cuts in CUTS:
        one, other = (ck.anonymize(columns, schema, [], ck.Slicing(l=2, cuts=cuts), seed=2**90 + i) for i in (1, 2))
        assert (one.certificate.content_sha256 == other.certificate.content_sha256) == (cuts in ("strict", "relaxed", "spread"))


def test_words_and_refusals() -> None:
    assert ck.DiverseSlicing("S", 5, "size").describe(None) == "5-diverse slicing of S, buckets weighed by size"
    assert ck.DiverseSlicing("S", 5, "paper").describe(None) == "5-diverse slicing of S, buckets weighed as printed"
    with pytest.raises(ck.BadInput, match="weight='rows' is unknown"):
        ck.DiverseSlicing("S", 5, "rows")
    with pytest.raises(ck.BadInput, match="out of range"):
        ck.DiverseSlicing("S", "0.5")
