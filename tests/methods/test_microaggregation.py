"""Microaggregation against a plain reading of its source, and the guarantees that it keeps whatever its bound says."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.checks.methods import guarantee_met, run_case, run_once
from closeknit.checks.oracle import oracle_level
from closeknit.checks.tables import Case
from closeknit.core.columns import Columns
from closeknit.core.domain import Domain
from closeknit.core.model import Model
from closeknit.core.table import Table
from closeknit.methods import microaggregation
from closeknit.methods.microaggregation import Microaggregation, compute_class_size, count_candidates
from closeknit.plans.metric_tree import MetricTree
from conftest import examples

DISEASES = {"lungs": {"flu": None, "SARS": None}, "bowels": {"ulcer": None, "colic": None}, "gout": None}
NAMES = ["flu", "SARS", "ulcer", "colic", "gout"]


def cells(seed: int, rows: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    age = rng.permutation(10 * rows)[:rows]
    return {
        "age": age.tolist(),
        "height": rng.permutation(10 * rows)[:rows].tolist(),
        "sex": rng.choice(["f", "m"], rows).tolist(),
        "disease": rng.choice(NAMES, rows, p=[0.4, 0.1, 0.2, 0.2, 0.1]).tolist(),
        "wage": (age // 8 + rng.integers(0, 5 * rows, rows)).tolist(),
    }


SCHEMA = ck.Schema(
    quasi={"age": ck.numeric(), "height": ck.numeric(), "sex": ck.flat()},
    sensitive={"disease": ck.Hierarchy.from_nested(DISEASES), "wage": ck.numeric()},
)


def case(models: list[Model], seed: int = 1, rows: int = 150) -> Case:
    return Case("rows", Columns.of(cells(seed, rows)), SCHEMA, tuple(models))


def unrepaired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(microaggregation, "repair_partition", lambda table, partition, models: partition)


def classes_of(method: Microaggregation, table: Table, models: list[Model]) -> set[frozenset[int]]:
    class_of = method.run(table, models, 0, lambda what, share: None).partition.class_of
    return {frozenset(np.flatnonzero(class_of == c).tolist()) for c in set(class_of.tolist())}


# A plain reading of algorithm 2 ------------------------------------------------------------------------------------------


class Plain:
    """The source's pseudocode over lists and rationals; distances as floats."""

    def __init__(self, given: dict[str, list[Any]], table: Table, models: list[Any], k: int, looks: int) -> None:
        self.models, self.k, self.looks = models, k, looks
        self.cells = {name: [column[row] for row in table.rows] for name, column in given.items()}
        axes = [np.array(self.cells[name], float) for name in ("age", "height")]
        axes = [(axis - axis.min()) / (axis.max() - axis.min()) for axis in axes]
        female = np.array([sex == "f" for sex in self.cells["sex"]])
        flat = [np.where(side, np.sqrt(0.5), 0.0) for side in (female, ~female)]  # two different ones are 1 apart
        self.points = np.stack([*axes, *flat], axis=1)

    def excess(self, members: list[int]) -> Fraction:
        grounds = {"disease": DISEASES, "wage": sorted(set(self.cells["wage"]))}
        levels = []
        for model in self.models:
            column = self.cells[model.column]
            level = oracle_level("t_closeness", [column[r] for r in members], column, t=1, ground=grounds[model.column])
            levels.append(Fraction(level) - Fraction(str(model.t)))  # type: ignore[arg-type]
        return max(levels, default=Fraction(0))

    def cluster(self, free: list[int], x: int) -> list[int]:
        if len(free) < 2 * self.k:
            return list(free)
        near = sorted(free, key=lambda r: (np.linalg.norm(self.points[r] - self.points[x]), r))
        members = near[: self.k]
        for y in near[self.k : self.k + self.looks]:
            now = self.excess(members)
            if now <= 0:
                break
            trials = [[y if m == z else m for m in members] for z in reversed(members)]
            best = min(trials, key=self.excess)
            members = best if self.excess(best) < now else members
        return members

    def classes(self) -> set[frozenset[int]]:
        free, found = list(range(len(self.points))), set()
        while free:
            x = max(free, key=lambda r: np.linalg.norm(self.points[r] - self.points[free].mean(axis=0)))
            for _ in range(2):
                if free:
                    members = self.cluster(free, x)
                    found.add(frozenset(members))
                    free = [r for r in free if r not in members]
                    x = max(free, key=lambda r: np.linalg.norm(self.points[r] - self.points[x]), default=-1)
        return found


@pytest.mark.parametrize("looks", [0, 5, 100])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "close",
    [
        [ck.TCloseness("wage", 0.15)],
        [ck.TCloseness("disease", 0.25)],
        [ck.TCloseness("disease", 0.3), ck.TCloseness("wage", 0.2)],
        [],
    ],
    ids=["line", "tree", "both", "none"],
)
def test_classes_are_those_of_a_plain_reading(
    close: list[Model], seed: int, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unrepaired(monkeypatch)
    monkeypatch.setattr(microaggregation, "count_candidates", lambda n: looks)
    given, k = cells(seed, 47), 4
    table = SCHEMA.encode(Columns.of(given))
    found = classes_of(Microaggregation(), table, [ck.KAnonymity(k), *close])
    assert found == Plain(given, table, close, k, looks).classes()
    assert sum(map(len, found)) == 47 and min(map(len, found)) >= k


def test_exchanges_bring_secrets_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    unrepaired(monkeypatch)
    table = SCHEMA.encode(Columns.of(cells(3, 400)))
    models = [ck.KAnonymity(5), ck.TCloseness("disease", 0.3), ck.TCloseness("wage", 0.2)]
    broken = []
    for looks in (0, 400):
        monkeypatch.setattr(microaggregation, "count_candidates", lambda n, looks=looks: looks)
        partition = Microaggregation().run(table, models, 0, lambda what, share: None).partition
        classes = table.count_classes(partition)
        broken.append(sum(int((~model.holds(classes)).sum()) for model in models))
    assert broken[1] < broken[0] / 4


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=30), st.data())
@settings(max_examples=examples(60))
def test_metric_trees_measure_every_ground_distance(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    members = data.draw(st.lists(st.sampled_from(range(len(pairs))), min_size=1, unique=True))
    line: Domain = ck.numeric().bind(np.array([1, 2, 4, 8, 9]))[0]
    tree: Domain = ck.Hierarchy.from_nested(DISEASES).bind(np.array(NAMES, dtype=object))[0]
    for domain, distance in ((line, "ordered"), (tree, "hierarchical"), (tree, "equal"), (line, "equal")):
        column = [domain.texts[code] for code, _ in pairs]
        counts = [np.bincount([pairs[r][0] for r in rows], minlength=6) for rows in (range(len(pairs)), members)]
        order = [text for text in domain.texts if text in column]
        ground = {"ordered": order, "hierarchical": DISEASES, "equal": None}[distance]
        level = oracle_level("t_closeness", [column[r] for r in members], column, t=1, ground=ground)
        found = MetricTree.of(counts[0].astype(np.int64), domain, distance).distance(counts[1].astype(np.int64))
        assert abs(found - float(level)) < 1e-9


def test_a_long_line_is_seen_through_runs() -> None:
    domain = ck.numeric().bind(np.arange(1000))[0]
    rng = np.random.default_rng(1)
    reference = np.append(rng.integers(1, 4, 1000), 0)
    part = np.minimum(rng.integers(0, 3, 1001), reference)
    column = [v for v in range(1000) for _ in range(reference[v])]
    members = [v for v in range(1000) for _ in range(part[v])]
    level = float(oracle_level("t_closeness", members, column, t=1, ground=list(range(1000))))
    tree = MetricTree.of(reference, domain, "ordered", longest=50)
    assert len(tree.parent) == 50 and abs(tree.distance(part) - level) < 1 / 50


# t first -----------------------------------------------------------------------------------------------------------------


def distinct_wages(rows: int, t: Any, k: int = 1) -> Case:
    rng = np.random.default_rng(rows)
    given = {**cells(rows, rows), "wage": rng.permutation(rows).tolist()}
    return Case("distinct", Columns.of(given), SCHEMA, (ck.KAnonymity(k), ck.TCloseness("wage", t)))


@pytest.mark.parametrize(("rows", "t"), [(60, "1/10"), (120, "1/20"), (96, "1/4")])
def test_the_bound_holds_where_secrets_differ_and_k_divides_n(rows: int, t: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unrepaired(monkeypatch)
    k = compute_class_size(rows, Fraction(t))
    while rows % k:
        k += 1
    release = run_case(Microaggregation("t"), distinct_wages(rows, t, k))
    assert set(Counter(release.partition.tolist()).values()) == {k}
    assert release.certificate.ok and release.certificate.guarantees[1].measured <= float(Fraction(t))


def test_the_bound_fails_where_a_secret_occurs_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four rows, k = 2: every class takes one of {0, 1} and one of {1, 1}, and is 1/4 away; the bound says 1/6."""
    t = Fraction(1, 6)
    assert compute_class_size(4, t) == 2
    table = Columns.of({"age": [1, 2, 3, 4], "wage": [0, 1, 1, 1]})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"wage": ck.numeric()})
    tied = Case("tied", table, schema, (ck.KAnonymity(2), ck.TCloseness("wage", t)))
    guarantee_met(Microaggregation("t"), tied)
    found = classes_of(Microaggregation("t"), schema.encode(table), list(tied.models))
    assert found == {frozenset(range(4))}  # merged
    unrepaired(monkeypatch)
    found = classes_of(Microaggregation("t"), schema.encode(table), list(tied.models))
    levels = [oracle_level("t_closeness", [[0, 1, 1, 1][r] for r in part], [0, 1, 1, 1], t=1, ground=[0, 1]) for part in found]
    assert levels == [Fraction(1, 4)] * 2


def test_every_class_takes_one_row_of_every_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    unrepaired(monkeypatch)
    given = distinct_wages(103, "1/16", 8)  # 12 classes of 8, and 7 rows more in the middle
    release = run_case(Microaggregation("t"), given)
    sizes = np.array([12] * 3 + [19] + [12] * 4)
    subset = np.repeat(np.arange(8), sizes)[given.columns["wage"].cells()]
    counts = np.zeros((12, 8), dtype=int)
    np.add.at(counts, (release.partition, subset), 1)
    assert (np.delete(counts, 3, axis=1) == 1).all() and sorted(counts[:, 3]) == [1] * 5 + [2] * 7


# Guarantees ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["k", "t"])
@pytest.mark.parametrize("t", [0, "1/100", 0.2, 1])
def test_guarantees_are_kept(first: str, t: Any) -> None:
    for distance in ("equal", None):
        guarantee_met(Microaggregation(first), case([ck.KAnonymity(3), ck.TCloseness("disease", t, distance)]))
    guarantee_met(Microaggregation(first), case([ck.KAnonymity(3), ck.TCloseness("wage", t)]))


@pytest.mark.parametrize("first", ["k", "t"])
@pytest.mark.parametrize("column", [None, "wage", "disease"])
def test_any_mixture_of_guarantees(first: str, column: str | None) -> None:
    models = [
        ck.KAnonymity(3),
        ck.TCloseness("disease", 0.35),
        ck.TCloseness("wage", 0.25),
        ck.LDiversity("disease", 2),
        ck.BetaLikeness("disease", 4),
    ]
    guarantee_met(Microaggregation(first, column, refine=True), case(models, 2, 200))


def test_secrets_as_one() -> None:
    rows = {**cells(4, 120), "wage": [i % 4 for i in range(120)]}
    models = (ck.KAnonymity(3), ck.TCloseness(("disease", "wage"), 0.5))
    for first in ("k", "t"):
        release = run_case(Microaggregation(first), Case("joint", Columns.of(rows), SCHEMA, models))
        assert release.certificate.ok and release.certificate.classes.count > 1


few_rows = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(NAMES[:3]), st.integers(0, 3)), min_size=1, max_size=40)


@given(few_rows, st.integers(1, 7), st.sampled_from([0, "1/10", "1/3", 1]), st.sampled_from(["k", "t"]))
@settings(max_examples=examples(250))
def test_no_row_is_lost_or_doubled(rows: list[tuple[int, str, int]], k: int, t: Any, first: str) -> None:
    """Sizes that nothing divides, ties, constant columns."""
    age, disease, wage = (list(column) for column in zip(*rows, strict=True))
    given = Columns.of({"age": age, "height": age, "sex": ["f"] * len(rows), "disease": disease, "wage": wage})
    table, k = SCHEMA.encode(given), min(k, len(rows))
    models: list[Model] = [ck.KAnonymity(k), ck.TCloseness("disease", t), ck.TCloseness("wage", t)]
    found = classes_of(Microaggregation(first), table, models)
    assert sorted(row for part in found for row in part) == list(range(len(rows))) and min(map(len, found)) >= k


@pytest.mark.parametrize("first", ["k", "t"])
def test_large_tables_are_cut_into_runs(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[Model] = [ck.KAnonymity(4), ck.TCloseness("wage", 0.2)]
    method, table = Microaggregation(first), case(models, 5, 300)
    whole = run_case(method, table)
    monkeypatch.setattr(microaggregation, "TOGETHER", 64)
    reported = method.run(SCHEMA.encode(Columns.of(cells(5, 300))), models, 0, lambda what, share: None).notes
    assert reported == ("rows were cut into 5 runs along the Hilbert curve",)
    guarantee_met(method, table)
    release = run_once(method, table)
    assert min(Counter(release.partition.tolist()).values()) >= 4
    assert release.partition.tolist() != whole.partition.tolist() and release.loss < 1.5 * whole.loss


def test_refining_pays() -> None:
    models: list[Model] = [ck.KAnonymity(3), ck.TCloseness("wage", 0.2)]
    plain, refined = (run_case(Microaggregation(refine=refine), case(models, 6, 400)) for refine in (False, True))
    assert refined.loss < plain.loss


def test_nothing_is_drawn() -> None:
    one, other = (
        ck.anonymize(Columns.of(cells(7, 90)), SCHEMA, [ck.KAnonymity(3)], Microaggregation(), seed=2**99 + i) for i in (1, 2)
    )
    assert one.partition.tolist() == other.partition.tolist()


def test_refusals() -> None:
    with pytest.raises(ck.BadInput, match="microaggregation needs k"):
        run_case(Microaggregation(), case([ck.TCloseness("wage", 0.2)]))
    with pytest.raises(ck.BadInput, match="column 'age'"):
        run_case(Microaggregation(column="age"), case([ck.KAnonymity(2)]))
    with pytest.raises(ck.Unsatisfiable, match="k = 200"):
        run_case(Microaggregation(), case([ck.KAnonymity(200)]))


def test_trials_are_counted() -> None:
    assert [n * count_candidates(n) <= 1 << 24 or count_candidates(n) == 32 for n in (1, 10_000, 45_222, 10**7)] == [True] * 4
