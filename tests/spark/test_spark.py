"""Spark compared with one machine: the same releases where that is guaranteed, guarantees met by the oracle, refusals in a
sentence.

All tests share one session; without pyspark or Java they are skipped.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.reporting import load_release
from closeknit.checks.naive_cells import group_rows
from closeknit.checks.tables import Case
from closeknit.checks.verdicts import judge_class, oracle_view
from closeknit.cli.commands import app
from closeknit.core.columns import Column, Columns
from closeknit.core.domain import Domain
from closeknit.io.arrow import columns_from_arrow
from closeknit.io.batches import block_from, cells_in, codes_in, encode_block, numbers_in
from closeknit.io.files import write_csv, write_parquet
from closeknit.plans.ranks import Ranks, deal_classes
from closeknit.spark import cut_tree, maps, ranking, row_writing, sharding
from closeknit.spark.coding import Combinations
from closeknit.spark.content_hash import offsets
from closeknit.spark.frame_sorting import sort_packs
from closeknit.spark.packed_frame import PackedFrame

UNCHECKED = "the order of rows and the bytes of files were not checked on Spark"
SEED = 2**100 + 7
K, T = ck.KAnonymity(5), ck.TCloseness("disease", 0.3)
PLANS = {
    "sabre": (ck.Sabre(fill="sweep", polish=False, slack=False), [K, T]),
    "burel": (ck.Burel(fill="sweep", polish=False, slack=False), [K, ck.BetaLikeness("disease", 3)]),
    "stack_and_deal": (ck.StackAndDeal(dealing="literal", order="frequency"), [K]),
}


@pytest.fixture(scope="module")
def patients() -> Columns:
    """A few columns with gaps, one of them plain."""
    table = ck.datasets.hospital(700)
    codes = table["age"].codes.copy()
    codes[::50] = -1
    ward = Column(np.array(["north, old", 'the "new" one', "south"], dtype=object), (np.arange(700) % 4 - 1).astype(np.int32))
    named = {"age": Column(table["age"].values, codes), **{name: table[name] for name in ("zip", "job", "disease", "stay")}}
    return Columns({**named, "ward": ward}, 700)


@pytest.fixture(scope="module")
def schema() -> ck.Schema:
    kinds = ck.datasets.hospital_schema()
    return ck.Schema(
        quasi={name: kinds.quasi[name] for name in ("age", "zip", "job")},
        sensitive={name: kinds.sensitive[name] for name in ("disease", "stay")},
        plain=["ward"],
        importance={"age": 2},
    )


@pytest.fixture(scope="module")
def file(patients: Columns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("table") / "patients.parquet"
    write_parquet(patients, file)
    return file


def collected(release: ck.Release) -> Columns:
    return columns_from_arrow(release.frame.toArrow())


def same(one: ck.Release, other: ck.Release) -> bool:
    """Cell by cell and number by number, the worst class of every guarantee included."""
    return one.certificate == other.certificate


def oracle_agrees(columns: Columns, schema: ck.Schema, models: list[Any]) -> bool:
    case = Case("spark", columns, schema, tuple(models))
    classes = group_rows(columns, list(schema.quasi)).values()
    seen = [(model, oracle_view(model, columns, case)) for model in models]
    return all(judge_class(model, of_model, rows) for model, of_model in seen for rows in classes)


# The same as on one machine ----------------------------------------------------------------------------------------------


def test_one_shard_is_the_local_release(
    spark: Any, file: Path, schema: ck.Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_writing, "FILE", 300)
    monkeypatch.setattr(maps, "FEW", 150)
    models = [K, T, ck.TCloseness(("disease", "stay"), 0.99)]
    here = ck.anonymize(file, schema, models, ck.Mondrian(), seed=SEED)
    there = ck.anonymize(file, schema, models, ck.Mondrian(), seed=SEED, engine="spark")
    assert same(here, there) and there.loss == here.loss
    assert there.frame.columns == list(here.columns)
    with pytest.raises(ck.BadInput, match="recipe"):
        _ = there.partition
    with pytest.raises(ck.BadInput, match="Spark"):
        _ = there.columns
    audited_alike(spark, there, here, tmp_path)


def of_numbers(found: Any) -> Any:
    """An audit without what it notes of the form, which is not checked on Spark."""
    notes = [note for note in found.notes if note != UNCHECKED and not note.startswith("the form is not canonical")]
    return found.model_copy(update={"notes": tuple(notes)})


def audited_alike(spark: Any, there: ck.Release, here: ck.Release, folder: Path) -> None:
    """Saved whole, refused if the place is taken, and audited with the same numbers as the same file on one machine."""
    there.save(folder / "out")
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["certificate.json", "release.parquet"]
    assert load_release(folder / "out").public_record() == here.public_record()
    assert [path.name for path in (folder / "out.private").iterdir()] == ["recipe.yaml"]
    with pytest.raises(ck.BadInput, match="exists already"):
        there.save(folder / "out")
    with pytest.raises(ck.BadInput, match="exist"):
        there.to_parquet(folder / "out" / "release.parquet")
    certificate = folder / "out" / "certificate.json"
    parts = sorted((folder / "out" / "release.parquet").glob("*.parquet"))
    assert [spark.read.parquet(str(part)).count() for part in parts] == [300, 300, 100]  # at fixed ranks
    found = ck.audit(folder / "out" / "release.parquet", certificate=certificate, engine="spark")
    assert UNCHECKED in found.notes and UNCHECKED in str(found)
    assert found.ok and of_numbers(found) == ck.audit(here.frame, certificate=certificate)
    broken = there.frame.limit(600)
    found = ck.audit(broken, certificate=certificate)
    assert not found.ok and of_numbers(found) == ck.audit(broken.toArrow(), certificate=certificate)


@pytest.mark.parametrize("name", ["sabre", pytest.param("burel", marks=pytest.mark.soak), "stack_and_deal"])
def test_plans_are_the_local_ones(
    spark: Any, file: Path, schema: ck.Schema, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of a few classes, whichever partitions the rows come in."""
    monkeypatch.setattr(ranking, "BLOCK", 150)
    monkeypatch.setattr(maps, "FEW", 150)
    method, models = PLANS[name]
    here = ck.anonymize(file, schema, models, method, seed=SEED)
    frame = spark.read.parquet(str(file)).repartition(5, "stay")
    assert same(here, ck.anonymize(frame, schema, models, method, seed=SEED))


def test_a_table_by_anyone_is_audited_with_the_same_numbers(spark: Any, schema: ck.Schema, tmp_path: Path) -> None:
    """No certificate came with it, cells are missing and starred, secrets too, and guarantees are broken."""
    rng = np.random.default_rng(11)
    cells = {
        "age": rng.choice(["[20, 39]", "[40, 59]", "*", ""], 300),
        "zip": rng.choice(["1*", "2*"], 300),
        "job": np.full(300, "*"),
        "disease": rng.choice(["influenza", "asthma", "stroke"], 300, p=[0.8, 0.15, 0.05]),
        "stay": rng.choice(["1", "2", "9"], 300),
        "ward": rng.choice(["north", "south"], 300),
    }
    table = Columns.of({name: [cell or None for cell in column.tolist()] for name, column in cells.items()})
    write_csv(table, tmp_path / "theirs.csv")
    models = [K, T, ck.LDiversity("disease", 3, kind="entropy"), ck.BetaLikeness("stay", 0.1), ck.TCloseness("stay", 0.1)]
    here = ck.audit(tmp_path / "theirs.csv", schema, models)
    there = ck.audit(tmp_path / "theirs.csv", schema, models, engine="spark")
    assert not here.ok and of_numbers(here) == of_numbers(there)
    assert any(note.startswith("the form is not canonical: row ") for note in here.notes)
    assert {guarantee.status for guarantee in here.guarantees} == {"recomputed", "not met"}
    persons = schema.model_copy(update={"person": "patient"})
    there = ck.audit(tmp_path / "theirs.csv", persons, [ck.KAnonymity(2), ck.TCloseness("stay", 0.2)], engine="spark")
    assert there.status == "met as far as it can be checked", str(there)


# Several shards ------------------------------------------------------------------------------------------------------------


def test_shards_lose_what_one_machine_loses(
    spark: Any, schema: ck.Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts that make shards are those that Mondrian would take: more than ten of them, under a guarantee that vetoes many."""
    monkeypatch.setattr(sharding, "SHARD", 5_000)
    table, narrow = ck.datasets.hospital(50_000), schema.model_copy(update={"plain": ()})
    write_parquet(Columns({name: table[name] for name in narrow.used}, table.rows), tmp_path / "many.parquet")
    models = [K, T]
    here = ck.anonymize(tmp_path / "many.parquet", narrow, models, ck.Mondrian(), seed=SEED)
    there = ck.anonymize(tmp_path / "many.parquet", narrow, models, ck.Mondrian(), seed=SEED, engine="spark")
    assert int(there._recipe["notes"][0].split()[4]) > 10  # type: ignore[index]
    assert there.loss < 1.03 * here.loss


SHARDED = {  # what cuts, what plans for one secret, what draws for several; the others under soak
    "mondrian": (ck.Mondrian(), [K, ck.TCloseness("disease", 0.45)]),
    "sabre": (ck.Sabre(), [K, ck.TCloseness("disease", 0.45)]),
    "pca_draw": (ck.PcaDraw(), SEVERAL := [K, ck.TCloseness("disease", 0.45), ck.TCloseness("stay", 0.4)]),
    "knit": (ck.Knit(proposals=20_000), SEVERAL),
    "fcm_draw": (ck.FcmDraw(), SEVERAL),
    "fragmentation": (ck.Fragmentation(), SEVERAL),
    "burel": (ck.Burel(), [K, ck.BetaLikeness("disease", 4)]),
    "stack_and_deal": (ck.StackAndDeal(), SEVERAL),
    "halving": (ck.StackAndDeal(dealing="halving"), SEVERAL),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if i < 4 else pytest.mark.soak) for i, name in enumerate(SHARDED)]
)
def test_shards_keep_the_guarantee(
    spark: Any, file: Path, patients: Columns, schema: ck.Schema, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharding, "SHARD", 150)
    method, models = SHARDED[name]
    there = ck.anonymize(file, schema, models, method, seed=SEED, engine="spark")
    (note,) = there._recipe["notes"]  # type: ignore[index]
    assert int(note.split()[4]) >= 4
    columns = collected(there)
    assert ck.audit(columns, certificate=there.certificate).ok
    assert oracle_agrees(columns, schema, models)
    for name in ("disease", "stay", "ward"):
        assert sorted(map(str, columns[name].cells())) == sorted(map(str, patients[name].cells()))
    here = ck.anonymize(file, schema, models, method, seed=SEED)
    assert there.loss < 1.15 * here.loss


def test_a_shard_that_no_cut_may_part_is_refused_when_it_is_large(
    spark: Any, file: Path, schema: ck.Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SHARD", "LARGEST"):
        monkeypatch.setattr(sharding, name, 150)
    with pytest.raises(ck.BadInput, match="one shard has 700 rows"):
        ck.anonymize(file, schema, [ck.KAnonymity(400)], ck.Mondrian(), seed=SEED, engine="spark")


def test_a_table_of_which_most_rows_are_equal_is_the_local_release(
    spark: Any, patients: Columns, schema: ck.Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "FEW", 150)
    write_parquet(patients.take(np.append(np.arange(100), np.full(600, 7))), tmp_path / "skewed.parquet")
    method = PLANS["stack_and_deal"][0]
    frame = spark.read.parquet(str(tmp_path / "skewed.parquet")).repartition(4)
    there = ck.anonymize(frame, schema, [K], method, seed=SEED)
    assert same(there, ck.anonymize(tmp_path / "skewed.parquet", schema, [K], method, seed=SEED))


def test_many_equal_rows_are_split(spark: Any) -> None:
    """Skew: 900 of 1000 rows are equal in every cell, and no partition gets all of them; the order is that of one machine."""
    from pyspark.sql import functions as F

    number = F.col("id")
    ward = F.when(number < 900, "north").when(number % 3 == 0, F.concat(F.lit("w"), number))
    frame = spark.range(0, 1000, 1, 2).select(
        F.when(number < 900, 7).otherwise(number % 20).cast("int").alias("code"), ward.alias("ward")
    )
    read = PackedFrame.of(frame).each(
        lambda block: encode_block({"code": numbers_in(block, "code"), **cells_in(block, ["ward"])})
    )
    ordered = sort_packs(read, lambda block: [numbers_in(block, "code").astype(np.uint64)], ["ward"], 1000, 4).persist()
    before = offsets(ordered)
    sizes = np.diff([*(before[place,] for place in range(4)), 1000])
    assert sizes.max() < 400
    shown = ordered.each(lambda block: block_from({"code": codes_in(block, ["code"])[:, 0], **cells_in(block, ["ward"])}))
    rows = shown.rows({"code": "int", "ward": "string"}).toArrow().to_pylist()
    ordered.unpersist()
    assert rows == sorted(rows, key=lambda row: (row["code"], row["ward"] is None, row["ward"]))
    assert sum(row["ward"] == "north" for row in rows) == 900


# Refusals ------------------------------------------------------------------------------------------------------------------


def test_a_value_that_the_hierarchy_lacks_is_named_with_its_rows(spark: Any, file: Path, schema: ck.Schema) -> None:
    tree = ck.Hierarchy.from_nested({"office": ["clerk", "lawyer"]})
    narrow = schema.model_copy(update={"quasi": {**schema.quasi, "job": tree}})
    with pytest.raises(ck.BadInput, match=r"^column 'job': .*\(\d+ rows have it\)") as refused:
        ck.anonymize(file, narrow, [K], ck.Mondrian(), seed=SEED, engine="spark")
    assert "java" not in str(refused.value).lower()


def test_what_spark_cannot_do_yet_is_said_at_once(file: Path, schema: ck.Schema) -> None:
    persons = schema.model_copy(update={"plain": (), "person": "ward"})
    requested: list[tuple[str, dict[str, Any]]] = [
        ("incognito counts persons for every vector.*mondrian", {"schema": persons, "method": ck.Incognito()}),
        ("knit with a time limit.*proposals", {"method": ck.Knit(seconds=1)}),
        ("suppressed.*leave suppress out", {"suppress": 0.1}),
        (
            "suppressed.*without a form",
            {"suppress": 0.1, "method": ck.Incognito(), "form": ck.generalized(suppressed="starred")},
        ),
        ("form 'bucketized'.*mondrian", {"form": "bucketized", "models": [ck.LDiversity("disease", 2)]}),
        ("form 'sliced'.*mondrian", {"method": ck.Slicing(), "models": [ck.LDiversity("disease", 2)]}),
        ("form 'bucketized'.*mondrian", {"method": ck.Anatomy(), "models": []}),
    ]
    for what, change in requested:
        with pytest.raises(ck.BadInput, match=what):
            ck.anonymize(
                file, **{"schema": schema, "models": [K], "method": ck.Mondrian(), **change}, seed=SEED, engine="spark"
            )
    with pytest.raises(ck.BadInput, match="engine='spark'"):
        ck.anonymize(file, schema, [K], master="local[2]", seed=SEED)
    with pytest.raises(ck.BadInput, match="choose one of: local, spark"):
        ck.anonymize(file, schema, [K], engine="flink", seed=SEED)


def test_bad_input_on_executors_and_unread_paths_are_sentences(spark: Any, file: Path, schema: ck.Schema) -> None:
    from pyspark.sql import functions as F

    frame = spark.read.parquet(str(file)).withColumn("stay", F.array("stay"))
    with pytest.raises(ck.BadInput, match="column 'stay': cells of type list"):
        ck.anonymize(frame, schema, [K], seed=SEED)
    with pytest.raises(ck.BadInput, match=r"nowhere\.parquet"):
        ck.anonymize(file.with_name("nowhere.parquet"), schema, [K], ck.Mondrian(), seed=SEED, engine="spark")
    with pytest.raises(ck.BadInput, match="Spark cannot read a dict"):
        ck.anonymize({"age": [1]}, schema, [K], ck.Mondrian(), seed=SEED, engine="spark")
    unique = schema.model_copy(update={"plain": ("ward", "number")})
    numbered = spark.read.parquet(str(file)).withColumn("number", F.monotonically_increasing_id())
    with pytest.raises(ck.BadInput, match="700 of its values occur in one row only"):
        ck.anonymize(numbered, unique, [K], ck.Mondrian(), seed=SEED)


def test_csv_that_spark_would_read_wrongly_is_refused(spark: Any, tmp_path: Path) -> None:
    rows = b"".join(b"%d,%s\n" % (20 + i % 3, [b"a", b"b"][i % 2]) for i in range(12))
    simple = ck.Schema(quasi={"age": ck.numeric(0, 100)}, plain=["job"])
    for what, more in (
        ("does not have as many cells", b"21\n"),
        ("does not have as many cells", b'21,"a\nb"\n'),
        ("utf-8.*encoding", b"21,\xe9\n"),
    ):
        (tmp_path / "people.csv").write_bytes(b"age,job\n" + rows + more)
        with pytest.raises(ck.BadInput, match=what) as refused:
            ck.anonymize(tmp_path / "people.csv", simple, [K], ck.Mondrian(), seed=SEED, engine="spark")
        assert "java" not in str(refused.value).lower()


def test_without_pyspark_the_extra_is_named(file: Path, schema: ck.Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ck.BadInput, match=r"pyspark is not installed; pip install 'closeknit\[spark\]'"):
        ck.anonymize(file, schema, [K], ck.Mondrian(), seed=SEED, engine="spark")


# The command line ----------------------------------------------------------------------------------------------------------


def test_command_line_and_counted_combinations(spark: Any, patients: Columns, schema: ck.Schema, tmp_path: Path) -> None:
    """From CSV to CSV, where every cell is text; the levels that Incognito finds are those of one machine."""
    write_csv(patients, tmp_path / "patients.csv")
    recipe = {"data": "patients.csv", "schema": schema.forms(), "models": [{"k_anonymity": {"k": 5}}], "method": "incognito"}
    (tmp_path / "recipe.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    out, words = str(tmp_path / "out"), ["--engine", "spark", "--format", "csv", "--seed", str(SEED)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = CliRunner().invoke(app, ["anonymize", str(tmp_path / "recipe.yaml"), "-o", out, *words])
    assert made.exit_code == 0, made.output
    assert "release.csv, certificate.json" in made.output and "recipe.yaml: private, do not share" in made.output
    here = ck.anonymize(tmp_path / "patients.csv", schema, [K], ck.Incognito(), seed=SEED)
    assert load_release(out).certificate.model_copy(update={"files": ()}) == here.certificate
    found = CliRunner().invoke(app, ["audit", out, "--engine", "spark"])
    assert found.exit_code == 0 and found.output.endswith("ok\n"), found.output
    unchecked = "note           the order of rows and the bytes of files were not checked on Spark\nok\n"
    assert CliRunner().invoke(app, ["audit", f"{out}/release.csv"]).output.removesuffix("ok\n") + unchecked == found.output


# What needs no session -----------------------------------------------------------------------------------------------------


def test_ranks_deal_as_the_stack_is_dealt() -> None:
    sizes = np.array([7, 1, 12, 3])
    buckets = np.repeat(np.arange(4), sizes)
    ranks = np.concatenate([np.arange(size) for size in sizes])
    for count in (1, 2, 5, 23):
        dealt = Ranks.of_deal("x", np.arange(4), sizes, count).class_of(buckets, ranks)
        assert dealt.tolist() == (np.arange(23) % count).tolist()
        every = {tuple(np.bincount(buckets[dealt == c], minlength=4)) for c in range(count)}
        classes, of = deal_classes(sizes, count)
        assert {tuple(np.bincount(of[classes == c], minlength=4)) for c in range(classes.max() + 1)} == every


def test_combinations_are_found_again() -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(-1, 4, size=(200, 3)).astype(np.int32)
    seen, counts = np.unique(rows, axis=0, return_counts=True)
    domain = Domain(("a", "b", "c", "d"))
    shuffled = rng.permutation(len(seen))
    known = Combinations.of(seen[shuffled], counts[shuffled], [domain] * 3)
    place = known.place(rows)
    assert ((place < 0) == (rows < 0).any(axis=1)).all()
    assert (known.codes[place[place >= 0]] == rows[place >= 0]).all()
    assert known.reference[:-1].sum() == (place >= 0).sum()


def test_runs_hold_every_code_once() -> None:
    """A cut after the last code of a run leaves all rows of that run, and of those before it, on the left."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        first = rng.integers(0, 50, size=(2, 1))
        length = rng.integers(1, 300, size=(2, 1))
        runs = cut_tree._Runs(first, length, np.minimum(length, rng.integers(1, 40)))
        for shard in (0, 1):
            codes = np.arange(first[shard, 0], first[shard, 0] + length[shard, 0])
            run = runs.run_of(np.full(len(codes), shard), 0, codes)
            assert np.unique(run).tolist() == list(range(runs.count[shard, 0]))
            assert [runs.last_code(shard, 0, int(r)) for r in np.unique(run)] == [
                int(codes[run == r].max()) for r in np.unique(run)
            ]
            assert runs.last_code(shard, 0, -1) == codes[0] - 1
