"""Guarantees about a population: people counted by cover, counterexamples to monotonicity, and releases judged by an oracle."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest

import closeknit as ck
from closeknit.checks.risk_oracle import count_fitting
from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.table import Partition
from conftest import SOAK, SOAK_SEED

AGE = ck.Schema(quasi={"age": ck.numeric()})
H12 = (1, 1, 2, 3, 5), (1, 4, 4, 6, 20)  # rows of each class, people who fit it
METHODS = (ck.Mondrian(), ck.Incognito(), ck.Microaggregation(), ck.Knit(proposals=0))
ROUNDS = 60 if SOAK else 2


def ages(cells):
    return Columns.of({"age": list(cells)})


def repeat(counts):
    return [age for age, count in enumerate(counts) for _ in range(count)]


def judge(model, cells):
    return model.judge_release(ck.generalized().read(ages(cells), AGE), None)


def test_people_by_hand():
    """H12: the rarest class fits one person, and presence is from 1/4 to 1."""
    rows, people = ages(repeat(H12[0])), ages(repeat(H12[1]))
    reading = ck.generalized().read(rows, AGE)
    assert ck.KMap(2, population=people).judge_release(reading, None).exact == 1
    assert ck.KMap(2, population=people).find_faults(reading).tolist() == [True, False, False, False, False]
    verdict = ck.DeltaPresence("1/4", 1, people).judge_release(reading, None)
    assert (verdict.exact, verdict.held, verdict.status) == (1, True, "attested")
    assert not ck.DeltaPresence(0.26, 1, people).judge_release(reading, None).held
    assert ck.DeltaPresence(0, 0.5, people).find_faults(reading).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize(
    ("limits", "people", "apart", "merged"),
    [
        ((0, "2/3"), [1, 2, 2, 3], ["[1, 2]"] * 2 + ["[2, 3]"] * 2, ["[1, 3]"] * 4),
        (("1/4", 1), [1, 9, *range(2, 10)], ["1", "9"], ["[1, 9]"] * 2),
    ],
)
def test_presence_is_not_monotone(limits, people, apart, merged):
    """Two classes within the limits whose merged class is outside of them."""
    model = ck.DeltaPresence(*limits, ages(people))
    reading = ck.generalized().read(ages(apart), AGE)
    among = np.array([3, 3] if len(apart) == 4 else [1, 2])
    assert model.holds_among(reading.classes, among).all() and not model.monotone
    assert not judge(model, merged).held


def test_average_risk_in_a_population_by_hand():
    """H12: 1 + 1/4 + 2/4 + 3/6 + 5/20 right matches of 12, which is the marketer's 5/24; exactly at the limit it is met."""
    rows, people = ages(repeat(H12[0])), ages(repeat(H12[1]))
    reading = ck.generalized().read(rows, AGE)
    model = ck.AverageRisk("5/24", people)
    verdict = model.judge_release(reading, None)
    assert verdict.held and verdict.level == pytest.approx(5 / 24) and verdict.status == "attested"
    assert not ck.AverageRisk("49/240", people).judge_release(reading, None).held
    assert ck.AverageRisk(0.2, people).find_faults(reading).tolist() == [True, True, True, False, False]
    assert model.stricter == ck.AverageRisk("5/24") and not model.budget and not model.by_class


def test_a_merged_class_gives_no_more_right_matches():
    rng = np.random.default_rng(5)
    for _ in range(200):
        people = ages(rng.integers(0, 12, 40).tolist())
        low, middle, high = np.sort(rng.choice(13, 3, replace=False)).tolist()
        apart = [f"[{low}, {middle}]"] * 2 + [f"[{middle}, {high}]"] * 3
        levels = [
            judge(ck.AverageRisk(0.99, people), cells).level for cells in _covered(people, apart, [f"[{low}, {high}]"] * 5)
        ]
        assert len(levels) < 2 or levels[1] <= levels[0] + 1e-12


def _covered(people, *releases):
    """Releases whose classes fit at least as many people as they have."""
    known = [(age,) for age in people["age"].cells()]
    enough = [all(count_fitting([cell], known) >= many for cell, many in Counter(cells).items()) for cells in releases]
    return releases if all(enough) else ()


def test_average_risk_in_a_population_loses_less_than_without():
    people, schema = ck.datasets.hospital(2000), ck.datasets.hospital_schema()
    table = people.take(np.arange(0, 2000, 10))
    models = ck.AverageRisk(0.1, people), ck.AverageRisk(0.1)
    known, alone = (ck.anonymize(table, schema, [model], ck.Mondrian(), seed=2**80) for model in models)
    assert known.loss < alone.loss and known.certificate.guarantees[0].status == "attested"


def test_a_person_who_is_listed_twice_is_refused():
    """Who is listed twice would count as two people; `risk` and the guarantees refuse with one sentence."""
    schema = ck.Schema(quasi={"age": ck.numeric()}, identifier=["name"])
    rows = Columns.of({"name": ["a", "b", "c"], "age": [30, 31, 32]})
    people = Columns.of({"name": ["a", "b", "c", "d", "d"], "age": [30, 31, 32, 40, 40]})
    for model in (ck.KMap(2, population=people), ck.DeltaPresence(0, 0.9, people), ck.AverageRisk(0.5, people)):
        with pytest.raises(ck.BadInput, match="column 'name': a person is listed twice"):
            ck.anonymize(rows, schema, [model], ck.Mondrian())
    with pytest.raises(ck.BadInput, match="a person is listed twice"):
        ck.risk(rows, schema, population=people)
    by_person = ck.Schema(quasi={"age": ck.numeric()}, person="name")
    with pytest.raises(ck.BadInput, match="a person is listed twice"):
        ck.anonymize(rows, by_person, [ck.KMap(2, population=people)], ck.Mondrian())


def test_lo_above_zero_excludes_known_absence():
    people = ages([30, 31, 50])
    assert judge(ck.DeltaPresence(0, 0.9, people), ["[30, 31]"]).held
    assert not judge(ck.DeltaPresence(0.1, 0.9, people), ["[30, 31]"]).held  # 50 is known not to be in the table
    assert judge(ck.DeltaPresence(0.1, 0.9, people), ["[30, 50]"]).held


def test_uniqueness_is_not_monotone():
    def level(sizes):
        return ck.PopulationUniqueness(0.1, 10).level_together(Classes(np.array(sizes), np.array(sizes), {}))

    assert level([1, 2, 2]) == pytest.approx(1.8 / 29) and level([1, 4]) == pytest.approx(4.2 / 31)
    assert ck.PopulationUniqueness(0, 10).holds_together(Classes(np.array([2, 3]), np.array([2, 3]), {}))
    exact = Classes(np.array([1, 3]), np.array([1, 3]), {})  # the table is the population: one of four is unique
    assert ck.PopulationUniqueness(0.25, 4).holds_together(exact) and not ck.PopulationUniqueness(0.24, 4).holds_together(exact)


def naive_zayatz(sizes, people):
    """Expected uniques, from the chance that exactly one of i people is drawn."""
    counts, rows = Counter(sizes), sum(sizes)
    one = {i: Fraction(i * comb(people - i, rows - 1), comb(people, rows)) for i in counts}
    return counts[1] ** 2 / sum(count * one[i] for i, count in counts.items())


def test_single_rows_are_merged_until_few_people_are_expected_to_be_unique():
    table, schema, model = ck.datasets.hospital(150), ck.datasets.hospital_schema(), ck.PopulationUniqueness(0.05, 400)
    assert not ck.audit(table, schema, [model]).ok
    release = ck.anonymize(table, schema, [model], ck.Mondrian(), seed=2**80)
    (stated,) = release.certificate.guarantees
    sizes = np.bincount(release.partition).tolist()
    assert 0 < sizes.count(1) < 150 and stated.status == "recomputable"
    assert ck.audit(release.columns, certificate=release.certificate).ok
    assert stated.measured <= 0.05 and stated.measured * 400 <= float(naive_zayatz(sizes, 400)) + 1e-9
    assert naive_zayatz([1, 2, 2], 10) == Fraction(18, 29) and naive_zayatz([1, 4], 10) == Fraction(42, 31)


def test_nothing_published_is_met_and_an_empty_population_is_refused():
    for model in (ck.KMap(5, population=ages([1])), ck.DeltaPresence(0, 0.5, ages([1])), ck.PopulationUniqueness(0, 5)):
        assert judge(model, []).held
    with pytest.raises(ck.BadInput, match="no people in the population"):
        ck.KMap(5, population=ages([]))


def test_a_population_that_does_not_cover_the_release_names_the_class():
    rows = Columns.of({"age": [30, 31, 32, 33]})
    with pytest.raises(ck.BadInput, match=r"3 of its people fit the class with age \[30, 33\]; the class has 4"):
        ck.anonymize(rows, AGE, [ck.KAnonymity(4), ck.KMap(2, population=ages([30, 31, 32, 70]))])
    with pytest.raises(ck.BadInput, match="column 'age': the population has no such column"):
        ck.anonymize(rows, AGE, [ck.KMap(2, population=Columns.of({"sex": ["f"] * 4}))])
    with pytest.raises(ck.BadInput, match="it has 3 people, and the table 4"):
        ck.anonymize(rows, AGE, [ck.AverageRisk(0.5, ages([30, 31, 32]))])


def test_next_to_k_uniqueness_is_noted_as_idle():
    table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    release = ck.anonymize(table, schema, [ck.KAnonymity(3), ck.PopulationUniqueness(0.01, 5_000)], ck.Mondrian())
    assert any("has no effect next to a guarantee that allows no single row" in note for note in release.certificate.notes)
    assert ck.audit(release.columns, certificate=release.certificate).ok
    with pytest.raises(ck.BadInput, match="a population of 50 is smaller than the 60 rows"):
        ck.anonymize(table, schema, [ck.PopulationUniqueness(0.01, 50)])


def sample(rng):
    """People, and some of them as a table: the youngest and the oldest of each sex among them, so that one class covers all."""
    many = int(rng.integers(80, 300))
    zips = [f"{number}" for number in rng.integers(470, 490, many)]
    found = rng.integers(20, 70, many)
    people = Columns.of({"age": found.tolist(), "zip": zips, "sex": ["f" if number % 2 else "m" for number in range(many)]})
    ends = [2 * int(part(found[start::2])) + start for start in (0, 1) for part in (np.argmin, np.argmax)]
    return people, people.take(np.unique([*ends, *rng.choice(many, many // 3, replace=False)]))


@pytest.mark.grows
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_random_populations_are_counted_as_an_oracle_counts_them(method):
    rng = np.random.default_rng(SOAK_SEED if SOAK else 8)
    schema = ck.Schema(quasi={"age": ck.numeric(), "zip": ck.prefix(), "sex": ck.flat()})
    for _ in range(ROUNDS):
        people, table = sample(rng)
        known = list(zip(*(people[name].cells() for name in schema.quasi), strict=True))
        models = ck.KMap(int(rng.integers(3, 9)), population=people), ck.DeltaPresence(0.1, 0.6, people)
        for model in (*models, ck.AverageRisk(0.1, people)):
            release = ck.anonymize(table, schema, [model], method, seed=2**80)
            classes = Counter(zip(*(map(str, release.columns[name].cells()) for name in schema.quasi), strict=True))
            fitting = {cells: count_fitting(cells, known) for cells in classes}
            if isinstance(model, ck.KMap):
                assert min(fitting.values()) >= model.k
            elif isinstance(model, ck.AverageRisk):
                right = sum(Fraction(rows, fitting[cells]) for cells, rows in classes.items())
                assert right <= Fraction(1, 10) * classes.total()
            else:
                ratios = [Fraction(rows, fitting[cells]) for cells, rows in classes.items()]
                assert Fraction(1, 10) <= min(ratios) and max(ratios) <= Fraction(6, 10)
                assert all(any(count_fitting(cells, [person]) for cells in classes) for person in known)


def test_the_population_stays_private(tmp_path):
    """A certificate has the number of people only; the private recipe has the path and repeats the release."""
    people, table = sample(np.random.default_rng(4))
    lines = ["age,zip,sex", *(",".join(map(str, row)) for row in zip(*(people[n].cells() for n in people), strict=True))]
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    schema = ck.Schema(quasi={"age": ck.numeric(), "zip": ck.prefix(), "sex": ck.flat()})
    model = ck.KMap(4, population=tmp_path / "people.csv")
    release = ck.anonymize(table, schema, [model], ck.Mondrian(), seed=2**80)
    text = release.certificate.to_json()
    assert "people.csv" not in text and f'"population": {people.rows}' in text
    assert release._recipe["models"] == [{"k_map": {"k": 4, "population": str((tmp_path / "people.csv").resolve())}}]
    found = ck.audit(release.columns, certificate=ck.Certificate.from_json(text))
    assert found.status == "met as far as it can be checked" and not found.findings
    forged = text.replace(f'"population": {people.rows}', '"population": "people.csv"')
    with pytest.raises(ck.BadInput, match="states the number of people"):
        ck.Certificate.from_json(forged)


def test_a_recipe_names_the_file_relative_to_itself(tmp_path):
    (tmp_path / "people.csv").write_text("age\n30\n31\n40\n42\n30\n41\n", encoding="utf-8")
    (tmp_path / "table.csv").write_text("age\n30\n31\n40\n42\n", encoding="utf-8")
    models = "[{k_map: {k: 3, population: people.csv}}]"
    recipe = f"{{data: table.csv, schema: {{quasi: {{age: numeric}}}}, models: {models}, method: mondrian}}"
    (tmp_path / "recipe.yaml").write_text(recipe, encoding="utf-8")
    assert ck.run(tmp_path / "recipe.yaml").certificate.ok
    (tmp_path / "people.csv").unlink()
    with pytest.raises(ck.BadInput, match=r"people\.csv"):
        ck.run(tmp_path / "recipe.yaml")


ZIPS = ck.Schema(quasi={"age": ck.numeric(), "zip": ck.prefix(), "sex": ck.flat()})


def guarantees_of(people):
    return [ck.KMap(4, population=people), ck.DeltaPresence(0, 0.6, people), ck.AverageRisk(0.15, people)]


def test_an_audit_with_the_population_recomputes(tmp_path):
    """Who has the list recomputes every guarantee; another list, or cells that fit fewer people, is found."""
    people, table = sample(np.random.default_rng(4))
    release = ck.anonymize(table, ZIPS, guarantees_of(people), ck.Mondrian(), seed=2**80)
    text = ck.Certificate.from_json(release.certificate.to_json())
    assert ck.audit(release.columns, certificate=text).status == "met as far as it can be checked"
    found = ck.audit(release.columns, certificate=text, population=people)
    assert found.ok and [one.status for one in found.guarantees] == ["recomputed"] * 3
    known = list(zip(*(people[name].cells() for name in ZIPS.quasi), strict=True))
    classes = Counter(zip(*(map(str, release.columns[name].cells()) for name in ZIPS.quasi), strict=True))
    fitting = {cells: count_fitting(cells, known) for cells in classes}
    assert found.guarantees[0].measured == min(fitting.values())
    assert found.guarantees[1].exact == str(max(Fraction(rows, fitting[cells]) for cells, rows in classes.items()))
    right = float(sum(Fraction(rows, fitting[cells]) for cells, rows in classes.items()) / table.rows)
    assert found.guarantees[2].measured == pytest.approx(right)
    with pytest.raises(ck.BadInput, match="give the list that the release was made with"):
        ck.audit(release.columns, certificate=text, population=people.take(np.arange(people.rows - 1)))
    k_anonymous = ck.anonymize(table, ZIPS, [ck.KAnonymity(2)], ck.Mondrian())
    with pytest.raises(ck.BadInput, match="no guarantee of this release counts people"):
        ck.audit(k_anonymous.columns, certificate=k_anonymous.certificate, population=people)


def test_an_audit_with_the_population_finds_what_is_not_met():
    people, table = sample(np.random.default_rng(4))
    found = ck.audit(table, ZIPS, [ck.KMap(4, population=people.rows)], population=people)
    assert found.status == "not met" and found.guarantees[0].measured == 1
    assert ck.audit(table, ZIPS, [ck.AverageRisk(0.15, people)]).status == "not met"


def test_an_audit_of_persons_does_not_count_rows_instead():
    people = Columns.of({"id": list(range(40)), "age": [20 + i % 10 for i in range(40)]})
    rows = Columns.of(
        {"id": [i for i in range(10) for _ in range(3)], "age": [20 + i % 10 for i in range(10) for _ in range(3)]}
    )
    schema = ck.Schema(quasi={"age": ck.numeric()}, person="id")
    release = ck.anonymize(rows, schema, [ck.DeltaPresence(0, 0.5, people)], ck.Mondrian(), seed=2**80)
    found = ck.audit(release.columns, certificate=release.certificate, population=people)
    assert found.status == "met as far as it can be checked" and any("persons were counted" in note for note in found.notes)


@pytest.mark.grows
def test_incognito_searches_for_the_best_levels_by_the_people():
    """The vector with the least loss of all that meet the guarantee, found by writing every one of them."""
    rng = np.random.default_rng(SOAK_SEED if SOAK else 12)
    schema = ck.Schema(quasi={"age": ck.numeric(step=10), "zip": ck.prefix(), "sex": ck.flat()})
    for _ in range(20 if SOAK else 2):
        people, table = (_move_from_ends(columns) for columns in sample(rng))
        known = list(zip(*(people[name].cells() for name in schema.quasi), strict=True))
        for model in guarantees_of(people):
            release = ck.anonymize(table, schema, [model], ck.Incognito(), seed=2**80)
            best = min(loss for loss, met in _every_vector(table, schema, known, model) if met)
            assert release.loss == pytest.approx(best)


def _move_from_ends(columns):
    """No one is at the common end of two ranges: the search counts such a person in one of them, a reader in both."""
    cells = {name: column.cells() for name, column in columns.items()}
    return Columns.of(cells | {"age": [age + (age % 10 == 0) for age in map(int, cells["age"])]})


def _every_vector(table, schema, known, model):
    """Loss of each vector of levels, and whether its written cells meet the guarantee by a count of the people."""
    for levels in product((0, 1, "*"), (0, 1, 2, "*"), (0, "*")):
        form = ck.generalized(levels=dict(zip(schema.quasi, levels, strict=True)))
        coded = schema.encode(table)
        written = form.write(coded, Partition(np.arange(len(coded), dtype=np.int32), len(coded)), 0).columns
        classes = Counter(zip(*(map(str, written[name].cells()) for name in schema.quasi), strict=True))
        fitting = {cells: count_fitting(cells, known) for cells in classes}
        ratios = [Fraction(rows, fitting[cells]) for cells, rows in classes.items()]
        limits = {"k_map": (4, min(fitting.values())), "delta_presence": (max(ratios), Fraction(6, 10))}
        limits["average_risk"] = sum(ratios), Fraction(15, 100) * classes.total()
        low, high = limits[model.name]
        yield ck.audit(written, schema, [ck.KAnonymity(1)]).loss.a, low <= high


def test_incognito_suppresses_groups_by_their_people():
    """Of the oldest person everyone would know that they are in the table: their row is suppressed, the others stay exact."""
    people = ages([*(30 + i % 5 for i in range(40)), 90])
    rows = ages([*(30 + i % 5 for i in range(20)), 90])
    model = ck.DeltaPresence(0, 0.5, people)
    release = ck.anonymize(rows, AGE, [model], ck.Incognito(), suppress=0.1, seed=2**80)
    assert release.certificate.suppressed == 1 and release.loss == pytest.approx(1 / 21)
    assert judge(model, release.columns["age"].cells()).exact == Fraction(1, 2)
