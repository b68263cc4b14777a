"""Spreadsheets: every kind of cell, sheets, headers, damaged workbooks, and releases that carry their certificate.

`examples/old.xls` was written with xlwt 1.3, `examples/locked.xlsx` was encrypted with msoffcrypto 6 (password "secret").
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xlsxwriter
import yaml
from python_calamine import CalamineWorkbook
from typer.testing import CliRunner

import closeknit as ck
from closeknit.cli.commands import app
from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.datasets import hospital, hospital_recipe, hospital_schema
from closeknit.io.canonical import content_hash
from closeknit.io.files import read, write_csv
from closeknit.io.spreadsheet_writing import write_xlsx
from closeknit.io.spreadsheets import OLE, Spreadsheet, refuse_inflated
from closeknit.io.written_files import write_release_file
from closeknit.web.desk.table_preview import Limits, read_table

EXAMPLES = Path(__file__).parent / "examples"
FORMATS = {date: "yyyy-mm-dd", datetime: "yyyy-mm-dd hh:mm:ss", time: "hh:mm:ss", timedelta: "[h]:mm:ss"}
RUNNER = CliRunner()


def write_book(path: Path, *sheets: Sequence[Sequence[Any]], top: int = 0, left: int = 0) -> Path:
    """Write a workbook by hand: None is an empty cell, a text with `=` first a formula with a value."""
    with xlsxwriter.Workbook(path) as book:
        styles = {kind: book.add_format({"num_format": format}) for kind, format in FORMATS.items()}
        for rows in sheets:
            sheet = book.add_worksheet()
            for row, cells in enumerate(rows, start=top):
                for column, cell in enumerate(cells, start=left):
                    if isinstance(cell, tuple):
                        sheet.write_formula(row, column, cell[0], None, cell[1])
                    elif type(cell) in styles:
                        sheet.write_datetime(row, column, cell, styles[type(cell)])
                    elif cell is not None:
                        sheet.write(row, column, cell)
    return path


def test_every_kind_of_cell(tmp_path: Path) -> None:
    rows = [
        ["whole", "part", "text", "yes", "day", "moment", "clock", "hours", "error", "zip", "mixed", "none", 2024],
        [3, 0.1, "flu", True, date(2024, 1, 31), datetime(2024, 1, 31, 8, 30), time(8, 30), timedelta(hours=30),
         ("=NA()", "#N/A"), "0071", 12, None, 1],
        [4.0, None, "é  ", False, None, datetime(2024, 2, 1), None, None, ("=1+1", 2), "0072", "n/a", None, 2],
    ]  # fmt: skip
    table = read(write_book(tmp_path / "a.xlsx", rows))
    assert {name: column.cells() for name, column in table.items()} == {
        "whole": [3, 4],
        "part": [0.1, None],
        "text": ["flu", "é  "],
        "yes": [True, False],
        "day": [date(2024, 1, 31), None],
        "moment": ["2024-01-31T08:30:00", "2024-02-01T00:00:00"],
        "clock": ["08:30:00", None],
        "hours": ["30:00:00", None],
        "error": [None, 2],
        "zip": ["0071", "0072"],
        "mixed": ["12", "n/a"],
        "none": [None, None],
        "2024": [1, 2],
    }
    assert table["whole"].values.dtype == np.int64


class RowByRow(Spreadsheet):
    batch = 1


def test_a_column_keeps_one_kind_across_batches(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["a", "b", "c", "d"], [1, date(2024, 1, 1), True, None], [2.5, datetime(2024, 1, 2, 3), 1, None]]
    rows += [["x", None, None, 5], [None, date(2024, 1, 3), "0", None]]
    path = write_book(tmp_path / "a.xlsx", rows)
    whole = read(path)
    parts = RowByRow(str(path)).read()
    assert {n: c.cells() for n, c in parts.items()} == {n: c.cells() for n, c in whole.items()}
    assert parts["a"].cells() == ["1", "2.5", "x", None] and parts["c"].cells() == ["true", "1", None, "0"]
    assert parts["b"].cells()[0] == "2024-01-01T00:00:00" and parts["d"].cells() == [None, None, 5, None]


def test_sheet_and_header_are_chosen(tmp_path: Path) -> None:
    first, second = [["Report"], [None], ["age", "sex"], [30, "f"]], [["zip"], ["01"]]
    path = write_book(tmp_path / "a.xlsx", first, second, top=1, left=2)
    assert read(Spreadsheet(str(path), header=4))["age"].cells() == [30]
    for sheet in ("Sheet2", 2, "2"):
        assert read(Spreadsheet(str(path), sheet=sheet))["zip"].cells() == ["01"]
    with pytest.raises(BadInput, match="there is no sheet 'Sheet9'; did you mean"):
        read(Spreadsheet(str(path), sheet="Sheet9"))
    with pytest.raises(BadInput, match="header row 40 is below the last row, 5"):
        read(Spreadsheet(str(path), header=40))
    with pytest.raises(BadInput, match="sheet=True is not a sheet"):
        Spreadsheet(str(path), sheet=True)


def test_a_hidden_sheet_is_read_only_by_name(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        hidden, shown = book.add_worksheet("codes"), book.add_worksheet("people")
        hidden.hide()
        shown.activate()
        shown.set_first_sheet()
        hidden.write_column(0, 0, ["code", 1])
        shown.write_column(0, 0, ["age", 30])
    assert list(read(tmp_path / "a.xlsx")) == ["age"]
    assert list(read(Spreadsheet(str(tmp_path / "a.xlsx"), sheet="codes"))) == ["code"]


BAD = {
    "empty sheet": ([], "the sheet is empty"),
    "no rows": ([["age", "sex"]], "has no rows"),
    "twice": ([["age", "age"], [1, 2]], "columns 1 and 2 have this name"),
    "unnamed": ([["age", None, "sex"], [1, 2, "f"]], "cell B1 of the header is empty.*--header-row"),
    "title": ([["Patients 2024"], [], ["age", "sex"], [1, "f"]], "row 2 is empty, and rows follow"),
    "two tables": ([["age"], [1], [], ["sex"], ["f"]], "row 3 is empty, and rows follow; remove it, or move the second"),
    "outside": ([["age"], [1], [2, None, "note"]], "cell C3 has a value, and its column has no name"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_sheet_is_one_sentence(name: str, tmp_path: Path) -> None:
    rows, sentence = BAD[name]
    path = write_book(tmp_path / "a.xlsx", rows)
    with pytest.raises(BadInput, match=sentence):
        read(path)
    found = RUNNER.invoke(app, ["inspect", str(path), "-o", str(tmp_path / "recipe.yaml")])
    assert found.exit_code == 2 and not (tmp_path / "recipe.yaml").exists()


def test_merged_cells_are_refused_with_their_address(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.merge_range(0, 0, 0, 1, "Patients")
        sheet.write_row(1, 0, ["ward", "age"])
        sheet.merge_range(2, 0, 3, 0, "A")
        sheet.write_column(2, 1, [30, 40])
    with pytest.raises(BadInput, match="cells A3:A4 are merged; unmerge"):
        read(Spreadsheet(str(tmp_path / "a.xlsx"), header=2))


@pytest.mark.parametrize("suffix", [".xlsx", ".xlsm", ".xls", ".ods"])
def test_damaged_workbooks(suffix: str, tmp_path: Path) -> None:
    whole = write_book(tmp_path / "whole.xlsx", [["age"], [1]]).read_bytes()
    for name, content in {"empty": b"", "cut": whole[: len(whole) // 2], "text": b"age\n30\n"}.items():
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(content)
        with pytest.raises(BadInput, match=f"not a complete {suffix} workbook"):
            read(path)
    with pytest.raises(BadInput, match="no such file"):
        read(tmp_path / f"missing{suffix}")


def test_an_encrypted_workbook_and_an_old_one() -> None:
    with pytest.raises(BadInput, match="encrypted with a password; save it without"):
        read(EXAMPLES / "locked.xlsx")
    old = read(EXAMPLES / "old.xls")
    assert old["zip"].cells() == ["0071", "0072"] and old["admission"].cells() == [date(2024, 1, 31), None]


def test_an_open_document(tmp_path: Path) -> None:
    cell = '<table:table-cell office:value-type="{0}" {1}><text:p>{2}</text:p></table:table-cell>'
    names = "".join(cell.format("string", "", name) for name in ("age", "zip", "day"))
    values = cell.format("float", 'office:value="30"', "30") + cell.format("string", "", "0071")
    values += cell.format("date", 'office:date-value="2024-01-31"', "31.1.24")
    nothing = '<table:table-cell table:number-columns-repeated="16384"/>'
    rest = f'<table:table-row table:number-rows-repeated="1048574">{nothing}</table:table-row>'
    spaces = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{long}:1.0"'
        for short, long in {"office": "office", "table": "table", "text": "text", "manifest": "manifest"}.items()
    )
    content = (
        f'<?xml version="1.0"?><office:document-content {spaces}><office:body><office:spreadsheet><table:table table:name="A">'
        f"<table:table-row>{names}</table:table-row><table:table-row>{values}</table:table-row>{rest}"
        "</table:table></office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as pack:
        pack.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        pack.writestr("META-INF/manifest.xml", f'<?xml version="1.0"?><manifest:manifest {spaces}></manifest:manifest>')
        pack.writestr("content.xml", content)
    table = read(tmp_path / "a.ods")
    assert [table[name].cells() for name in table] == [[30], ["0071"], [date(2024, 1, 31)]]


HARD = Columns.of(
    {
        "text": ["=1+1", "@SUM(A1)", "https://x.example", "007", "1e5", " a ", "_x0041_", "a\r\nb\tc", "", "é\U0001f600"],
        "float": [0.1, 1 / 3, 1e300, -5e-324, 0.30000000000000004, 1e16, None, 2.5, 1.0, 7.0],
        "short": [0.1, 0.25, None, 1e15, -3.5, 2.0, 0.7, 1e-9, 123456.789, 5.0],
        "whole": [2**60, 1, 2, 3, 4, 5, 6, 7, 8, None],
        "truth": [True, False, None, True, True, False, True, False, True, True],
        "none": [None] * 10,
    }
)


def test_a_release_reads_back_as_the_same_cells(tmp_path: Path) -> None:
    days = np.array(["1850-01-01", "1900-02-28", "2024-02-29"], dtype="datetime64[D]")
    new = np.array(["1900-03-01", "2024-02-29", "9999-12-31"], dtype="datetime64[D]")
    codes = np.array([0, 1, 2, -1, 0, 1, 2, 0, 1, 2])
    cells = Columns({**HARD.columns, "old": Column(days, codes), "new": Column(new, codes)}, 10)
    write_release_file(cells, tmp_path / "release.xlsx", certificate="{}")
    back = read(tmp_path / "release.xlsx")
    assert content_hash(back) == content_hash(cells)
    assert back["new"].values.dtype.kind == "M" and back["short"].values.dtype.kind == "f"
    with zipfile.ZipFile(tmp_path / "release.xlsx") as pack:
        assert b"<f>" not in pack.read("xl/worksheets/sheet1.xml")


def test_equal_releases_are_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_release_file(HARD, tmp_path / f"{name}.xlsx", certificate="{}")
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()


def test_a_cell_that_a_workbook_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"column 'a': a cell has more than 32,767 characters; save it as csv"):
        write_release_file(Columns.of({"a": ["x" * 32_768]}), tmp_path / "release.xlsx")
    with pytest.raises(BadInput, match=r"column 'b': a cell would read back differently"):
        write_release_file(Columns.of({"a": ["x"], "b": ["\ufffe"]}), tmp_path / "release.xlsx")
    assert not any(tmp_path.iterdir())


def test_saved_audited_and_sent_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_xlsx(hospital(300), tmp_path / "patients.xlsx", None)
    write_csv(hospital(300), tmp_path / "patients.csv")
    monkeypatch.chdir(tmp_path)
    for suffix in ("csv", "xlsx"):
        recipe = {**hospital_recipe(f"patients.{suffix}"), "method": "mondrian", "seed": 2**70}
        Path("recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
        done = RUNNER.invoke(app, ["anonymize", "recipe.yaml", "-o", "out", "--format", suffix, "--no-report", "--force"])
        assert done.exit_code == 0 and f"audit out/release.{suffix}" in done.output, done.output
        if suffix == "csv":
            certified = ck.audit("out") and Path("out/certificate.json").read_text(encoding="utf-8")
    assert ck.audit("out").ok and json.loads(certified)["content_sha256"] in Path("out/certificate.json").read_text("utf-8")
    shutil.copy("out/release.xlsx", tmp_path / "sent.xlsx")
    found = RUNNER.invoke(app, ["audit", "sent.xlsx"])
    assert found.exit_code == 0, found.output
    assert ck.audit("sent.xlsx").ok
    again = yaml.safe_load(Path("out.private/recipe.yaml").read_text(encoding="utf-8"))
    assert again["data"] == {"path": str(tmp_path / "patients.xlsx")} and again["output"] == {"format": "xlsx"}


def add_sheet(path: Path, other: Path) -> None:
    """Hide the raw rows on a third sheet."""
    hidden = '<sheet name="original" sheetId="3" state="hidden" r:id="rId2"/>'
    with zipfile.ZipFile(path) as pack, zipfile.ZipFile(other, "w") as new:
        for entry in pack.namelist():
            text = pack.read(entry).decode()
            if entry == "xl/workbook.xml":
                text = text.replace("</sheets>", f"{hidden}</sheets>")
            new.writestr(entry, text)


def test_a_changed_cell_is_found(tmp_path: Path) -> None:
    release = ck.anonymize(hospital(300), hospital_schema(), [ck.KAnonymity(5)], seed=2**70)
    release.write_to(tmp_path / "release.xlsx")
    assert ck.audit(tmp_path / "release.xlsx").ok
    with pytest.raises(BadInput, match="exists already"):
        release.write_to(tmp_path / "release.xlsx")
    release.write_to(tmp_path / "release.xlsx", replace=True)
    with zipfile.ZipFile(tmp_path / "release.xlsx") as pack, zipfile.ZipFile(tmp_path / "bad.xlsx", "w") as other:
        for entry in pack.namelist():
            content = pack.read(entry)
            other.writestr(entry, content.replace(b"pneumonia", b"influenza", 1) if entry.endswith("sheet1.xml") else content)
    assert not ck.audit(tmp_path / "bad.xlsx").ok
    add_sheet(tmp_path / "release.xlsx", tmp_path / "more.xlsx")
    found = ck.audit(tmp_path / "more.xlsx")
    assert not found.ok and "the sheet 'original' is not part of the release: remove it" in found.findings
    with pytest.raises(BadInput, match=r"give the file the suffix \.xlsx"):
        release.write_to(tmp_path / "release.ods")
    write_xlsx(hospital(20), tmp_path / "plain.xlsx", None)
    with pytest.raises(BadInput, match="no certificate with this table"):
        ck.audit(tmp_path / "plain.xlsx")


def test_a_workbook_is_replayed_through_a_stream(tmp_path: Path) -> None:
    path = write_book(tmp_path / "a.xlsx", [["age", "ill"], [30, "flu"], [71, "gout"], [32, "flu"], [70, "flu"]])
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    release = ck.replay(ck.Castle(schema, k=2, delta=3), Spreadsheet(str(path), sheet=1))
    assert release.frame.num_rows == 4 and release._recipe["data"] == {"path": str(path), "sheet": 1}


def test_inspect_writes_sheet_and_header_into_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = hospital(60)
    rows = [["Patients"], list(table), *map(list, zip(*(table[name].cells() for name in table), strict=True))]
    write_book(tmp_path / "patients.xlsx", [["nothing"]], rows)
    monkeypatch.chdir(tmp_path)
    found = RUNNER.invoke(app, ["inspect", "patients.xlsx", "--sheet", "Sheet2", "--header-row", "2", "-o", "recipe.yaml"])
    assert found.exit_code == 0, found.output
    recipe = yaml.safe_load(Path("recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["data"] == {"path": "patients.xlsx", "sheet": "Sheet2", "header": 2}
    wrong = RUNNER.invoke(app, ["inspect", str(tmp_path / "recipe.yaml"), "--sheet", "A"])
    assert wrong.exit_code == 2


def test_a_bomb_is_refused_unread(tmp_path: Path) -> None:
    path = write_book(tmp_path / "a.xlsx", [["age"], *([30],) * 2000])
    declared = sum(entry.file_size for entry in zipfile.ZipFile(path).infolist())
    with pytest.raises(BadInput, match="decompresses to more than"):
        refuse_inflated(path, declared - 1)
    refuse_inflated(path, declared)
    assert read_table(path, "mine.xlsx", Limits(rows=2001, unpacked=declared)).rows == 2000
    with pytest.raises(BadInput, match=r"mine.xlsx: it decompresses to more than"):
        read_table(path, "mine.xlsx", Limits(unpacked=declared - 1))
    lying = bytearray(path.read_bytes())  # sizes of the central directory that are too small
    for match in re.finditer(b"PK\x01\x02", bytes(lying)):
        lying[match.start() + 24 : match.start() + 28] = (100).to_bytes(4, "little")
    (tmp_path / "b.xlsx").write_bytes(lying)
    with pytest.raises(BadInput, match=r"mine.xlsx: it decompresses to more than"):
        read_table(tmp_path / "b.xlsx", "mine.xlsx", Limits(unpacked=declared // 2))


@pytest.mark.parametrize("spoiled", ["sizes", "names", "end", "start"])
def test_a_part_that_declares_too_little_is_refused(spoiled: str, tmp_path: Path) -> None:
    path = write_book(tmp_path / "a.xlsx", [["age"], *([30],) * 2000])
    lying = bytearray(path.read_bytes())
    for match in re.finditer(b"PK\x01\x02", bytes(lying)):
        lying[match.start() + 24 : match.start() + 28] = (100).to_bytes(4, "little")
    if spoiled == "names":  # the local name of the first part, which the library does not compare
        lying[30:31] = b"?"
    if spoiled == "start":
        lying = bytearray(OLE) + lying
    (tmp_path / "b.xlsx").write_bytes(lying + bytes(70_000 if spoiled == "end" else 0))  # the end is found by the library only
    with CalamineWorkbook.from_path(tmp_path / "b.xlsx") as book:
        assert len(book.get_sheet_by_index(0).to_python()) == 2001
    with pytest.raises(BadInput, match=r"decompresses to more than it declares|not a complete"):
        read(tmp_path / "b.xlsx")


def test_a_cell_far_away_is_refused(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "a.xlsx", {"constant_memory": True}) as book:
        sheet = book.add_worksheet()
        sheet.write_column(0, 0, ["age", 30])
        sheet.write(1_048_575, 16_383, "x")  # the library would keep 17 billion cells
    with pytest.raises(BadInput, match="a cell far away from the others, in row 1,048,576"):
        read(tmp_path / "a.xlsx")
    with pytest.raises(BadInput, match="has 1,048,576 rows"):
        read_table(tmp_path / "a.xlsx", "mine.xlsx", Limits(rows=1000))
    with pytest.raises(BadInput, match="decompresses to more than"):
        read_table(tmp_path / "a.xlsx", "mine.xlsx", Limits(unpacked=4 << 30))


@pytest.mark.parametrize("module", ["python_calamine", "xlsxwriter"])
def test_a_missing_library_names_its_extra(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_release_file(HARD, tmp_path / "a.xlsx")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadInput, match=r"pip install 'closeknit\[excel\]'"):
        write_release_file(HARD, tmp_path / "b.xlsx")
    assert not (tmp_path / "b.xlsx").exists()
