"""The canonical text equals that of the csv module; the content hash is what its sentence says."""

from __future__ import annotations

import csv
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeknit.core.columns import Column, Columns
from closeknit.io import canonical
from closeknit.io.canonical import canonical_blocks, cell_texts, content_hash
from closeknit.io.files import read, sha256_of, write_csv, write_parquet

CELL = st.none() | st.text(max_size=8) | st.text(alphabet=' ,"\n\r\tü', max_size=5)
ROWS = st.integers(1, 3).flatmap(lambda d: st.lists(st.lists(CELL, min_size=d, max_size=d), min_size=1, max_size=12))


def by_the_csv_module(rows: list[list[str | None]]) -> bytes:
    """Lines ending in CR LF make every Python version quote both signs; the end is then cut to LF."""
    lines = []
    for row in rows:
        line = io.StringIO(newline="")
        csv.writer(line, quoting=csv.QUOTE_MINIMAL, lineterminator="\r\n").writerow(row)
        lines.append(line.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines).encode()


@settings(max_examples=400, deadline=None)
@given(ROWS)
def test_text_equals_the_csv_module(rows: list[list[str | None]]) -> None:
    names = ["a", 'b "x"', "c,d"][: len(rows[0])]
    columns = Columns.of({name: [row[place] for row in rows] for place, name in enumerate(names)})
    assert b"".join(canonical_blocks(columns)) == by_the_csv_module([names, *rows])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=10))
def test_floats_read_back_exactly(numbers: list[float]) -> None:
    texts = cell_texts(Columns.of({"x": list(numbers)})["x"])
    assert [float(text) for text in texts] == list(dict.fromkeys(numbers))
    assert not any(text.endswith(".0") for text in texts)


def test_every_kind_of_value() -> None:
    table = {
        "whole": Column(np.array([7, -(2**62)]), np.array([0, 1, -1], np.int32)),
        "half": Column(np.array([3.0, 1e16]), np.array([0, 1, -1], np.int32)),
        "zero": Column(np.array([-0.0, 0.1]), np.array([0, 1, -1], np.int32)),
        "yes": Column(np.array([True, False]), np.array([0, 1, -1], np.int32)),
        "day": Column(np.array(["2020-02-29", "1969-01-01"], "datetime64[D]"), np.array([0, 1, -1], np.int32)),
    }
    text = b"".join(canonical_blocks(Columns(table, 3))).decode()
    assert text.splitlines() == [
        "whole,half,zero,yes,day",
        "7,3,0,true,2020-02-29",
        "-4611686018427387904,1e+16,0.1,false,1969-01-01",
        ",,,,",
    ]


def test_no_value_alone_in_its_row_is_a_quoted_nothing() -> None:
    assert list(canonical_blocks(Columns.of({"a": ["x", None]}))) == [b"a\n", b'x\n""\n']


@pytest.mark.parametrize("rows", [1, 65_535, 65_536, 65_537, 140_000])
def test_hash_is_over_the_digests_of_header_and_blocks(rows: int) -> None:
    columns = Columns.of({"a": [str(row % 11) for row in range(rows)], "b": list(range(rows))})
    lines = [f"{row % 11},{row}\n" for row in range(rows)]
    blocks = ["a,b\n"] + ["".join(lines[first : first + 65_536]) for first in range(0, rows, 65_536)]
    digests = b"".join(hashlib.sha256(block.encode()).digest() for block in blocks)
    assert content_hash(columns) == hashlib.sha256(digests).hexdigest()


def test_hash_ties_frame_csv_and_parquet(tmp_path: Path) -> None:
    columns = Columns.of({"age": ["[30, 39]", "41", None], "cost": [3.0, 0.25, None], "ok": [True, None, False]})
    write_csv(columns, tmp_path / "r.csv")
    write_parquet(columns, tmp_path / "r.parquet")
    hashes = {content_hash(table) for table in (columns, read(tmp_path / "r.csv"), read(tmp_path / "r.parquet"))}
    assert len(hashes) == 1
    assert sha256_of(tmp_path / "r.csv") == hashlib.sha256(b"".join(canonical_blocks(columns))).hexdigest()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.lists(st.sampled_from(["x", "y,", None]), min_size=1, max_size=30))
def test_blocks_do_not_change_the_text(size: int, cells: list[str | None]) -> None:
    columns = Columns.of({"a": cells, "b": cells[::-1]})
    whole = b"".join(canonical_blocks(columns))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, "BLOCK_ROWS", size)
        blocks = list(canonical_blocks(columns))
    assert b"".join(blocks) == whole
    assert len(blocks) == 1 + -(-len(cells) // size)
