"""A table in several files, as clusters write it: read as one by every command; and where data stands that is no file here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.columns import Column, Columns
from closeknit.io.files import read, write_csv, write_parquet

SEED = 2**100 + 11
KEYS = {"schema": {"quasi": {"age": "numeric"}}, "models": [{"k_anonymity": {"k": 5}}]}


def parts(table: Columns, folder: Path, at: tuple[int, ...]) -> Path:
    """The table in files that end after these rows; their kind is the folder's suffix."""
    folder.mkdir()
    write = write_csv if folder.suffix == ".csv" else write_parquet
    for number, (first, last) in enumerate(zip((0, *at), (*at, table.rows), strict=True)):
        write(table.take(np.arange(first, last)), folder / f"part-{number:05}{folder.suffix}")
    (folder / "_SUCCESS").write_text("")
    (folder / ".part-00000.crc").write_text("x")
    return folder


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_parts_are_one_table_for_every_command(tmp_path: Path, suffix: str) -> None:
    table, schema = ck.datasets.hospital(120), ck.datasets.hospital_schema()
    folder = parts(table, tmp_path / f"patients{suffix}", (1, 70))
    requested = {"models": [ck.KAnonymity(4)], "method": ck.StackAndDeal(), "seed": SEED}
    whole = ck.anonymize(table, schema, **requested)
    release = ck.anonymize(folder, schema, **requested)
    assert release.certificate.content_sha256 == whole.certificate.content_sha256
    release.save(tmp_path / "out", report=False)
    (file,) = (tmp_path / "out").glob("release.*")
    written = read(file)
    file.unlink()
    parts(written, file, (50,))
    marked = CliRunner().invoke(app, ["audit", str(file)])
    assert marked.exit_code == 1 and f"{file.name}/_SUCCESS is not read as a part of the release: remove it" in marked.output
    (file / "_SUCCESS").unlink()
    (file / ".part-00000.crc").unlink()
    assert CliRunner().invoke(app, ["audit", str(file)]).output.endswith("ok\n")
    assert CliRunner().invoke(app, ["attack", str(file)]).exit_code == 0
    (file / f"part-00000{suffix}").unlink()
    assert CliRunner().invoke(app, ["audit", str(file)]).exit_code == 1


def test_kinds_of_columns_survive(tmp_path: Path) -> None:
    day = Column(np.array(["2020-02-29"], "datetime64[D]"), np.array([-1, 0, 0], dtype=np.int32))
    cells = {"n": [None, None, 7], "x": [0.5, 1.0, None], "yes": [True, None, False], "no": [None] * 3}
    table = Columns({"day": day, **Columns.of(cells)}, 3)
    folder = parts(table, tmp_path / "t.parquet", (1, 2))
    found = read(folder)
    assert {name: found[name].cells() for name in found} == {name: table[name].cells() for name in table}
    assert (
        found["day"].values.dtype.kind == "M" and found["yes"].values.dtype.kind == "b" and found["n"].values.dtype.kind == "i"
    )


def test_folders_that_are_no_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / "none.csv").mkdir()
    with pytest.raises(ck.BadInput, match="empty"):
        read(tmp_path / "none.csv")
    with pytest.raises(ck.BadInput, match="this is a folder, not a file"):
        read(tmp_path)
    folder = parts(Columns.of({"a": ["1", "2"]}), tmp_path / "two.csv", (1,))
    (folder / "part-00001.csv").write_text("b\n2\n")
    with pytest.raises(ck.BadInput, match=r"part-00001.*its columns are not those"):
        read(folder)
    (folder / "year=2020").mkdir()
    with pytest.raises(ck.BadInput, match=r"year=2020.*a folder among its part files"):
        read(folder)


def test_addresses_and_tables_stand_in_a_recipe_as_they_are(tmp_path: Path) -> None:
    def place(data: object) -> object:
        return Recipe.of({"data": data, **KEYS}, tmp_path).data

    assert place("hdfs:///people") == "hdfs:///people"
    assert place({"table": "warehouse.people"}) == "warehouse.people"
    assert place({"path": "people.csv", "delimiter": ";"}) == tmp_path / "people.csv"
    with pytest.raises(ck.BadInput, match="both path and table"):
        place({"path": "people.csv", "table": "people"})


@pytest.mark.parametrize("master", ["nonsense://x", "local[two]", "spark://host"])
def test_what_is_no_master_is_said_before_java_starts(master: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is missing")
    schema = ck.datasets.hospital_schema()
    with pytest.raises(ck.BadInput, match=r"is not the address of a Spark cluster; write local\[2\]"):
        ck.anonymize(tmp_path / "x.csv", schema, [ck.KAnonymity(4)], ck.Mondrian(), engine="spark", master=master)
