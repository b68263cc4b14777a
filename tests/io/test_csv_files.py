"""CSV in: the same cells as Python's own reader, and one sentence with file and row for everything else."""

from __future__ import annotations

import csv
import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeknit.core.errors import BadInput
from closeknit.io.csv import PLAIN, CsvFormat, read_csv, read_plain
from closeknit.io.files import read

SIGNS = st.text(alphabet='ab,;"\n\r é\t', max_size=6)


def saved(folder: Path, content: bytes | str, name: str = "people.csv") -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def cells(file: Path, format: CsvFormat | None = None) -> dict[str, list[object]]:
    return {name: column.cells() for name, column in read_csv(file, format).items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("csv")


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 3).flatmap(lambda d: st.lists(st.lists(SIGNS, min_size=d, max_size=d), min_size=1, max_size=5)))
def test_what_python_writes_is_read_back(folder: Path, rows: list[list[str]]) -> None:
    names = [f"c{place}" for place in range(len(rows[0]))]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows([names, *rows])
    table = read_csv(saved(folder, text.getvalue()))
    back = [list(row) for row in zip(*(table[name].cells() for name in names), strict=True)]
    assert back == [[cell or None for cell in row] for row in rows]


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet='a,"\n', max_size=14))
def test_any_text_is_read_like_python_or_refused(folder: Path, body: str) -> None:
    try:
        rows = [row for row in csv.reader(io.StringIO(body, newline=""), strict=True) if row]
        whole = bool(rows) and all(len(row) == 2 for row in rows)
    except csv.Error:
        whole = False
    file = saved(folder, "x,y\n" + body)
    if not whole:
        with pytest.raises(BadInput):
            read_csv(file)
        return
    table = read_csv(file)
    back = [list(row) for row in zip(table["x"].cells(), table["y"].cells(), strict=True)]
    assert back == [[cell or None for cell in row] for row in rows]


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("name,town\nJosé,Köln\n".encode(), CsvFormat()),
        ("name,town\r\nJosé,Köln\r\n".encode("utf-8-sig"), CsvFormat()),
        ("name,town\nJosé,Köln".encode("latin-1"), CsvFormat(encoding="latin-1")),
        ("name,town\rJosé,Köln\r".encode("cp1252"), CsvFormat(encoding="cp1252")),
        ("name;town\nJosé;Köln\n".encode("utf-16"), CsvFormat(encoding="utf-16", delimiter=None)),
        ("name\ttown\nJosé\tKöln\n".encode(), CsvFormat(delimiter=None)),
        ("'name'|town\nJosé|'Köln'\n".encode(), CsvFormat(delimiter=None, quote="'")),
        (gzip.compress("name,town\nJosé,Köln\n".encode(), mtime=0), CsvFormat()),
    ],
)
def test_formats(tmp_path: Path, content: bytes, format: CsvFormat) -> None:
    assert cells(saved(tmp_path, content), format) == {"name": ["José"], "town": ["Köln"]}


def test_one_column_keeps_its_empty_cells(tmp_path: Path) -> None:
    assert cells(saved(tmp_path, 'ward\nA\n\n""\nB\n')) == {"ward": ["A", None, None, "B"]}


def test_decimal_comma_merges_what_becomes_equal(tmp_path: Path) -> None:
    file = saved(tmp_path, 'cost;note\n1.234,5;a,b\n1234,5;1,2,3\n-2,0e3;"7,"\n')
    table = read_csv(file, CsvFormat(delimiter=";", decimal=","))
    assert table["cost"].cells() == ["1234.5", "1234.5", "-2.0e3"]
    assert len(table["cost"].values) == 2
    assert table["note"].cells() == ["a,b", "1,2,3", "7,"]


def test_only_the_wanted_columns(tmp_path: Path) -> None:
    file = saved(tmp_path, "a,b,c\n1,2,3\n")
    assert list(read_csv(file, columns=["c", "a"])) == ["c", "a"]
    with pytest.raises(BadInput, match="column 'd': there is no such column; choose one of: a, b, c"):
        read_csv(file, columns=["d"])


def test_a_cell_longer_than_a_block(tmp_path: Path) -> None:
    long = "x" * (9 << 20)
    assert cells(saved(tmp_path, f'a,b\n1,"{long}"\n2,y\n')) == {"a": ["1", "2"], "b": [long, "y"]}


def test_many_blocks_keep_the_order_of_rows(tmp_path: Path) -> None:
    ids = [f"p{number}" for number in range(200_000)]
    body = "".join(f"{name},{number % 7},{'z' * 30}\n" for number, name in enumerate(ids))
    table = read_csv(saved(tmp_path, "id,day,pad\n" + body))
    assert table["id"].cells() == ids
    assert table["day"].cells() == [str(number % 7) for number in range(200_000)]
    assert len(table["day"].values) == 7


BAD = {
    "empty": (b"", "the file is empty"),
    "only line ends": (b"\n\n", "the file is empty"),
    "only a byte order mark": (b"\xef\xbb\xbf", "the file is empty"),
    "header only": (b"a,b\n", "has a header but no rows"),
    "header and empty lines": (b"a,b\n\n\n", "has a header but no rows"),
    "empty first line": (b"\na,b\n1,2\n", "the first line is empty"),
    "twice": (b"a,b,a\n1,2,3\n", "column 'a': columns 1 and 3 have this name"),
    "no name": (b"a,,c\n1,2,3\n", "column 2 has no name"),
    "short row": (b"a,b\n1,2\n3\n", "row 2: the row has 1 cell, the header has 2"),
    "long row": (b'a,b\n"1\n1",2\n\n3,4,5\n', "row 2: the row has 3 cells, the header has 2"),
    "long row, one column": (b"a\n1\n\n3,4\n", "row 3: the row has 2 cells, the header has 1"),
    "bytes": (b"a,b\n1,2\n3,Jos\xe9\n", "row 2: byte 0xe9 cannot be read as utf-8"),
    "bytes in the header": (b"a,Jos\xe9\n1,2\n", "byte 0xe9 in the header cannot be read as utf-8"),
    "bytes at a line's start": (b'a,b\n1,"2\n2"\n\xff,4\n', "row 2: byte 0xff"),
    "bytes, one column": (b"a\n\n1\n\xff\n", "row 3: byte 0xff"),
    "utf-16": ("a,b\n1,2\n".encode("utf-16-le").join([b"\xff\xfe", b""]), "e.g. utf-16"),
    "open quote": (b'a,b\n1,2\n3,"4\n5,6\n', "row 2: a quoted cell is never closed"),
    "open quote in the header": (b'a,"b\n1,2\n', "a quote in the header is not closed"),
    "after the quote": (b'a,b\n1,"2"x\n', "row 1: a quoted cell continues after its closing quote"),
    "gzip": (b"\x1f\x8bnothing", "gzip data is damaged"),
    "NUL": (b"a,b\n1,2\n3,4\x00x\n", "column 'b', row 2: a cell holds a NUL character"),
    "NUL in quotes": (b'a,b\n"1",2\n"3\0",4\n', "column 'a', row 2: a cell holds a NUL character"),
    "a workbook": (b"PK\3\4\x14\0\6\0", "it is a zip archive, as Excel and OpenDocument write them, not a text file"),
    "a program": (b"\x7fELF\2\1\1\0\n\n", "it is a program, not a text file"),
    "any bytes": (bytes(range(1, 256)) * 9, "it is binary data, not a text file"),
    "NUL in the header": (b"a,b\0\n1,2\n", "the name of column 2 holds a NUL character"),
    "utf-16 without its mark": ("a,b\n1,2\n".encode("utf-16-le"), "if the file is UTF-16, name the encoding"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_named_with_their_row(tmp_path: Path, name: str) -> None:
    content, sentence = BAD[name]
    file = saved(tmp_path, content)
    with pytest.raises(BadInput) as caught:
        read_csv(file, PLAIN)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_bytes_of_utf_16_are_no_binary_data(tmp_path: Path) -> None:
    cells = ["ąęćłńśżź" * 3] * 9
    file = saved(tmp_path, "\n".join(["name", *cells]).encode("utf-16"))
    assert read_csv(file)["name"].cells() == cells


def test_a_fault_far_down(tmp_path: Path) -> None:
    rows = ["1,2"] * 500_000
    rows[412_345] = "1,2,3"
    with pytest.raises(BadInput, match="row 412,346: the row has 3 cells"):
        read_csv(saved(tmp_path, "a,b\n" + "\n".join(rows)))


def test_paths_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="no such file"):
        read(tmp_path / "absent.csv")
    with pytest.raises(BadInput, match="this is a folder"):
        read(tmp_path)
    (tmp_path / "people.docx").write_bytes(b"PK")
    with pytest.raises(BadInput, match=r"the suffix '\.docx'"):
        read(tmp_path / "people.docx")
    file = saved(tmp_path, "a\n1\n")
    file.chmod(0)
    if os.geteuid() == 0:  # root reads everything, so the refusal is played

        def refuse(self: Path) -> bytes:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(BadInput, match="no permission"):
        read(file)


@pytest.mark.parametrize(
    "wrong",
    [
        {"delimiter": ",,"},
        {"delimiter": "§"},
        {"quote": ",", "delimiter": ","},
        {"thousands": "_"},
        {"thousands": ",", "decimal": ","},
        {"decimal": ";"},
        {"encoding": "utf-9"},
        {"encoding": "hex"},
    ],
)
def test_impossible_formats(wrong: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        CsvFormat(**wrong)


def test_suffixes(tmp_path: Path) -> None:
    assert list(read(saved(tmp_path, "a\tb\n1\t2\n", "x.tsv"))) == ["a", "b"]
    assert list(read(saved(tmp_path, "a;b\n1;2\n", "x.txt"))) == ["a", "b"]
    assert list(read(saved(tmp_path, gzip.compress(b"a,b\n1,2\n"), "x.csv.gz"))) == ["a", "b"]
    assert list(read(saved(tmp_path, "a;b\n1;2\n"), format=CsvFormat(delimiter=";"))) == ["a", "b"]


def test_census_file(data_folder: Path) -> None:
    file = data_folder / "census" / "sal500k.csv.gz"
    table = read(file)
    with gzip.open(file, "rt", encoding="utf-8", newline="") as source:
        rows = list(csv.reader(source))
    assert list(table) == rows[0]
    for place, name in enumerate(table):
        assert table[name].cells() == [row[place] for row in rows[1:]]


def test_files_without_quotes_are_read_the_same_in_parts_and_by_arrow(tmp_path: Path) -> None:
    """More distinct cells than there is room for at first, short and long ones, empty cells and empty lines."""
    rng = np.random.default_rng(5)
    rows = [f"{x % 3},{'né' * int(rng.integers(0, 5))}{x % 7},{rng.integers(0, 2500)}" for x in range(4000)]
    body = "\n".join(rows[:2000]) + "\n\n0,,\n" + "\n".join(rows[2000:])
    (tmp_path / "t.csv").write_text("a,b,c\r\n" + body.replace("\n", "\r\n"), encoding="utf-8", newline="")  # read by Arrow
    theirs = read_csv(tmp_path / "t.csv", columns=["c", "b"])
    for block in (1 << 13, 1 << 22):
        mine = read_plain(body.encode(), ",", ["a", "b", "c"], ["c", "b"], block)
        assert mine is not None and mine.rows == theirs.rows == 4001 and len(mine["c"].values) > 1024
        assert all(mine[name].cells() == theirs[name].cells() for name in ("c", "b"))
