"""Persons on Spark: whole persons in every shard, guarantees counted in persons, and their names are private."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.checks.naive_cells import group_rows
from closeknit.checks.tables import Case
from closeknit.checks.verdicts import judge_class, oracle_view
from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.table import Table
from closeknit.io.arrow import columns_from_arrow
from closeknit.io.batches import codes_in, encode_block, numbers_in
from closeknit.io.files import write_parquet
from closeknit.spark import person_marks, sharding
from closeknit.spark.coding import WHO, Coding
from closeknit.spark.session import count_repeats

SEED = 2**100 + 7
MODELS = [ck.KAnonymity(5), ck.LDiversity("disease", 3), ck.TCloseness("stay", 0.4)]


def visits(rows: int, persons: int) -> Columns:
    """Rows of persons who come again; each row has a plain number, by which a test finds it again."""
    rng = np.random.default_rng(5)
    table, who = ck.datasets.hospital(rows), rng.integers(0, persons, rows)
    home = {name: table[name].take(who) for name in ("age", "zip", "job")}
    names = np.array([f"{'Ann' if i % 3 else 'Bartholomew'} {i}" for i in range(persons)], dtype=object)
    numbers = Column(np.arange(rows), rng.permutation(rows).astype(np.int32))
    secrets = {name: table[name] for name in ("disease", "stay")}
    return Columns({**home, **secrets, "name": Column(names, who.astype(np.int32)), "number": numbers}, rows)


def schema(person_rows: Any) -> ck.Schema:
    kinds = ck.datasets.hospital_schema()
    return ck.Schema(
        quasi={name: kinds.quasi[name] for name in ("age", "zip", "job")},
        sensitive={name: kinds.sensitive[name] for name in ("disease", "stay")},
        plain=["number"],
        allow_unique=["number"],
        person="name",
        person_rows=person_rows,
    )


@pytest.mark.parametrize("person_rows", ["together", pytest.param("count-once", marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "method", [ck.Mondrian(), pytest.param(ck.Sabre(column="stay"), marks=pytest.mark.soak)], ids=["mondrian", "sabre"]
)
def test_shards_of_persons(spark: Any, tmp_path: Path, method: Any, person_rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collected in several places, split into several shards; the oracle counts persons in the cells of the release."""
    monkeypatch.setattr(sharding, "SHARD", 250)
    monkeypatch.setattr(person_marks, "TOGETHER", 200)
    table, requested = visits(700, 300), schema(person_rows)
    write_parquet(table, tmp_path / "visits.parquet")
    release = ck.anonymize(tmp_path / "visits.parquet", requested, MODELS, method, seed=SEED, engine="spark")
    shards, k, diversity = release._recipe["notes"]  # type: ignore[index]
    assert int(shards.split()[4]) >= 3
    assert k.startswith("k-anonymity, k = 5: the worst class reaches ") and diversity.endswith(", counted in persons")
    assert [guarantee.status for guarantee in release.certificate.guarantees] == ["attested", "attested", "recomputable"]
    assert all(guarantee.measured is None for guarantee in release.certificate.guarantees[:2])
    columns = columns_from_arrow(release.frame.toArrow())
    assert list(columns) == ["age", "zip", "job", "disease", "stay", "number"]
    person_of = dict(zip(table["number"].cells(), table["name"].cells(), strict=True))
    behind = [person_of[number] for number in columns["number"].cells()]
    assert len(set(columns["number"].cells())) == 700
    classes, case = group_rows(columns, list(requested.quasi)).values(), Case("persons", columns, requested, tuple(MODELS))
    assert min(len({behind[row] for row in rows}) for rows in classes) == int(k.split()[8].rstrip(","))
    for model in MODELS:
        seen = oracle_view(model, columns, case)
        assert all(judge_class(model, seen, rows, [behind[row] for row in rows]) for rows in classes)
    if person_rows == "together":
        assert sum(len({behind[row] for row in rows}) for rows in classes) == len(set(behind))
    here = ck.anonymize(tmp_path / "visits.parquet", requested, MODELS, method, seed=SEED)
    assert release.loss < 1.25 * here.loss


def test_a_row_without_a_person_is_refused(spark: Any, tmp_path: Path) -> None:
    table = visits(50, 20)
    codes = np.where(np.arange(50) == 30, -1, table["name"].codes).astype(np.int32)
    write_parquet(Columns({**table.columns, "name": Column(table["name"].values, codes)}, 50), tmp_path / "visits.parquet")
    with pytest.raises(ck.BadInput, match="column 'name': a row has no person"):
        ck.anonymize(tmp_path / "visits.parquet", schema("together"), MODELS[:1], ck.Mondrian(), seed=SEED, engine="spark")


def test_an_identifier_that_repeats_is_refused(spark: Any) -> None:
    rows = [("Ann", None, 30), ("Bob", "?", 31), ("Ann", "?", 32), ("Cid", None, 33), ("Dot", " ", 34), ("Eve", " ", 35)]
    table = spark.createDataFrame(rows, "name string, title string, age int")
    assert count_repeats(table, "title", ["?"]) == (0, 6), "missing identifiers repeat nothing"
    requested = ck.Schema(identifier=["name", "title"], quasi={"age": ck.numeric()}, missing=["?"])
    with pytest.raises(ck.BadInput, match="column 'name': 1 of 6 rows repeat an identifier, and k would"):
        ck.anonymize(table, requested, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED)


@pytest.mark.parametrize("person", [None, "who"])
def test_look_alike_values_count_as_one(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, person: str | None
) -> None:
    """As in `test_look_alikes`: six spellings of flu next to two other values, by rows and by persons."""
    spellings = ["flu", "flu ", "Flu", "fl\u200bu", "\ufb02u", "\u00a0flu", "gout", "acne", None]
    ills = [spellings[i % 9] for i in range(72)]
    cells = {"age": [20 + i // 3 for i in range(72)], "ill": ills, "who": [i // 2 for i in range(72)]}
    roles: dict[str, Any] = {"person": person} if person else {"drop": ["who"]}
    requested = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()}, **roles)
    file = tmp_path / "visits.parquet"
    monkeypatch.setattr(sharding, "SHARD", 40)  # so that cuts are judged, too
    write_parquet(Columns.of(cells), file)
    release = ck.anonymize(
        file, requested, [ck.KAnonymity(3), ck.LDiversity("ill", 3)], ck.Mondrian(), seed=SEED, engine="spark"
    )
    assert release.certificate.ok and any("6 of its values look alike" in note for note in release.certificate.notes)
    audit = ck.audit(release.frame, ck.Schema(quasi=requested.quasi, sensitive=requested.sensitive), [ck.LDiversity("ill", 3)])
    assert audit.ok and audit.guarantees[0].exact == "3"
    with pytest.raises(ck.Unsatisfiable):
        ck.anonymize(file, requested, [ck.LDiversity("ill", 4)], ck.Mondrian(), seed=SEED, engine="spark")


# What needs no session -----------------------------------------------------------------------------------------------------


def coded(table: Table) -> tuple[Coding, Any]:
    """A table as coded rows that have been marked."""
    references = {name: histogram.reference for name, histogram in table.one_class().histograms.items()}
    head = Table(
        table.schema,
        table.quasi[:0],
        table.sensitive[:0],
        table.quasi_domains,
        table.sensitive_domains,
        table.shown,
        {},
        None,
        table.rows[:0],
        references=references,
    )
    coding = Coding(head, {}, {}, len(table), {})
    columns = np.concatenate([table.quasi, table.sensitive], axis=1)
    shuffled = np.random.default_rng(1).permutation(len(table))
    block = {name: np.ascontiguousarray(columns[shuffled, j]) for j, name in enumerate(coding.names)}
    return coding, person_marks.add_marks(coding, encode_block({**block, WHO: table.persons[shuffled]}), ["disease"])  # type: ignore[index]


def test_sums_of_marks_are_persons() -> None:
    """Both halves of a cut by places hold whole persons and are counted as from their rows; values for persons, safely."""
    table = schema("together").model_copy(update={"plain": (), "allow_unique": ()}).encode(visits(400, 150))
    coding, block = coded(table)
    places, persons = codes_in(block, coding.place_names), numbers_in(block, WHO)
    side_of = (places[:, 0] > np.median(places[:, 0])).astype(np.int32)
    assert (
        len({(person, side) for person, side in zip(persons, side_of, strict=True)})
        == len(set(persons))
        == len(set(table.persons))
    )  # type: ignore[arg-type]
    secrets = {name: (codes_in(block, [f"s{j}"])[:, 0], table.secret(name)[1]) for j, name in enumerate(("disease", "stay"))}
    exact = Classes.of(side_of, 2, secrets, persons.astype(np.int64), coding.head.references)  # type: ignore[arg-type]
    tallies = person_marks._tallies(coding, MODELS)
    sums = [
        {
            name: np.bincount(person_marks.tally_leaves(coding, name, block)[side_of == i], minlength=leaves)
            for name, leaves in tallies.items()
        }
        for i in (0, 1)
    ]
    for surely in (True, False):
        found = person_marks.count_persons(Classes(exact.sizes, exact.sizes, exact.histograms), sums, surely)
        assert found.persons.tolist() == exact.persons.tolist()
        assert found.by_person["disease"].counts.tolist() == exact.by_person["disease"].counts.tolist()
        better = exact.matched["disease"] - found.matched["disease"]
        assert (better >= 0).all() if surely else (better <= 0).all()
