"""NDJSON and Arrow files as tables: read back as written, kinds kept, and every fault with its row."""

from __future__ import annotations

import gzip
import json
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from pyarrow import feather

import closeknit as ck
from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.io.files import read, write_csv
from closeknit.io.ndjson import BadLine, lines_of, row_of
from conftest import examples, write_ipc, write_ndjson

TABLE = {"age": [30, None, 41], "sex": ["f", "m", None], "cost": [1.5, 2.0, None], "zip": ["0123", 'a"b', "é\n"]}


@pytest.mark.parametrize("name", ["t.ndjson", "t.jsonl", "t.ndjson.gz", "t.arrow", "t.feather"])
def test_a_table_comes_back(name: str, tmp_path: Path) -> None:
    file, table = tmp_path / name, Columns.of(TABLE)  # type: ignore[arg-type]
    (write_ipc if name in ("t.arrow", "t.feather") else write_ndjson)(table, file)
    if name.endswith(".gz"):
        file.write_bytes(gzip.compress(file.read_bytes()))
    assert {name: column.cells() for name, column in read(file).items()} == TABLE
    assert list(read(file, columns=["zip", "age"])) == ["zip", "age"]


def test_days_are_text_in_ndjson_and_days_in_arrow(tmp_path: Path) -> None:
    days = np.array(["1990-05-01", "1991-05-01"], dtype="datetime64[D]")
    table = Columns({"born": Column(days, np.arange(2))}, 2)
    write_ndjson(table, tmp_path / "t.ndjson")
    write_ipc(table, tmp_path / "t.arrow")
    assert read(tmp_path / "t.ndjson")["born"].cells() == ["1990-05-01", "1991-05-01"]
    assert read(tmp_path / "t.arrow")["born"].cells() == [date(1990, 5, 1), date(1991, 5, 1)]


CELLS = (
    some.none()
    | some.text(some.characters(exclude_characters="\0", exclude_categories=["Cs"]))
    | some.booleans()
    | some.integers(-(2**60), 2**60)
    | some.floats(allow_nan=False, allow_infinity=False)
)


@settings(max_examples=examples(60))
@given(some.dictionaries(some.text(min_size=1), CELLS, min_size=1, max_size=4))
def test_a_line_means_what_json_says(row: dict[str, object]) -> None:
    found = row_of(json.dumps(row).encode())
    assert list(found) == list(row)
    for name, cell in row.items():
        if isinstance(cell, bool):
            assert found[name] == str(cell).lower()
        elif isinstance(cell, int) and abs(cell) >= 2**53:
            assert found[name] == str(cell)
        else:
            assert found[name] == (cell if cell != "" else None)
    (line,) = lines_of(Columns.of({name: [cell] for name, cell in found.items()}))
    assert json.loads(line) == found


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "not JSON"),
        (b"{}x", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"3", "not a JSON object"),
        (b'{"a": 1, "a": 2}', "'a' occurs twice"),
        (b'{"a": {"b": 1}}', "'a' holds an object"),
        (b'{"a": -Infinity}', "-Infinity is not a number"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": "x\\ud800"}', "'a' holds half a character"),
        (b'{"a": "x\\u0000"}', "'a' holds a NUL character"),
        (b'{"a": "\xe9"}', "not UTF-8"),
        (b"[" * 100_000, "too many digits or levels"),
        (b'{"a": ' + b"1" * 5000 + b"}", "too many digits or levels"),
    ],
)
def test_what_no_row_can_be(line: bytes, why: str) -> None:
    with pytest.raises(BadLine, match=why):
        row_of(line)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("{}\n", "the table has no columns"),
        ('{"a": 1}\n\n{"a": }\n', "row 2: the line cannot be read"),
        ('{"a": 1, "b": 2}\n{"a": 1}\n', "column 'b', row 2: the line does not have it"),
        ('{"a": 1}\n{"a": 1, "b": 2}\n', "column 'b', row 2: the first line does not have it"),
        ('{"a": null}\n{"a": 1}\n{"a": "x"}\n', "column 'a', row 3: the cells mix kinds of values"),
    ],
)
def test_bad_files(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "t.ndjson").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=says):
        read(tmp_path / "t.ndjson")


def test_the_order_of_names_is_that_of_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "t.ndjson").write_text('\ufeff{"a": 1, "b": 2}\r\n{"b": 4, "a": 3}', encoding="utf-8")
    assert {name: column.cells() for name, column in read(tmp_path / "t.ndjson").items()} == {"a": [1, 3], "b": [2, 4]}


def test_bad_arrow_files(tmp_path: Path) -> None:
    file = tmp_path / "t.arrow"
    write_ipc(Columns.of({"age": [1, 2]}), file)
    whole = file.read_bytes()
    for wrong in (b"", b"ARROW1", b"nonsense" * 50, whole[: len(whole) // 2]):
        file.write_bytes(wrong)
        with pytest.raises(BadInput, match="not a complete Arrow file"):
            read(file)
    with pytest.raises(BadInput, match="no such file"):
        read(tmp_path / "none.arrow")


def test_arrow_streams_and_packed_feather(tmp_path: Path) -> None:
    table = pa.table({"age": pa.array([30, 31], pa.int16())})
    feather.write_feather(table, str(tmp_path / "t.feather"), compression="zstd")
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    assert read(tmp_path / "t.feather")["age"].cells() == read(tmp_path / "s.arrow")["age"].cells() == [30, 31]


def test_every_door_gives_the_same_release(tmp_path: Path) -> None:
    table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    writers = {"t.csv": write_csv, "t.ndjson": write_ndjson, "t.arrow": write_ipc}
    hashes = set()
    for name, write in writers.items():
        write(table, tmp_path / name)
        release = ck.anonymize(tmp_path / name, schema, [ck.KAnonymity(3)], ck.Mondrian(), seed=2**70)
        hashes.add(release.certificate.content_sha256)
    assert len(hashes) == 1
