"""Reading an Excel and a Stata file, compared with what the library of the format needs alone for the same rows."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyreadstat
import python_calamine

import clock
from closeknit.core.columns import Columns
from closeknit.datasets import hospital
from closeknit.io.files import read
from closeknit.io.parquet import table_from_columns
from closeknit.io.spreadsheet_writing import write_xlsx
from sections import Section

ROWS, ROUNDS = 1_000_000, 3
ALONE = "with its library alone"


def run(section: Section, rows: int | None) -> None:
    """Read each file in turns with its library alone."""
    rows = rows or ROWS
    section.say(
        f"Generated hospital tables of nine columns and {rows:,} rows; processor time. Alone: python-calamine's `to_python`, "
        "and pyreadstat's `read_dta`, as its usual data frame and as lists, its fastest output. Aim: at most 1.3 times."
    )
    with tempfile.TemporaryDirectory() as folder:
        excel, stata = Path(folder, "a.xlsx"), Path(folder, "a.dta")
        table: Columns = hospital(rows)
        write_xlsx(table, excel, None)
        pyreadstat.write_dta(pl.from_arrow(table_from_columns(table)), str(stata))
        lines = [
            _compare("Excel", excel, _read_excel),
            _compare("Stata, data frame", stata, _read_stata_frame),
            _compare("Stata, lists", stata, _read_stata_lists),
        ]
    section.table(["file", ALONE, "closeknit", "times"], lines)


def _compare(name: str, path: Path, alone: Callable[[Path], object]) -> list[str]:
    times: dict[str, list[float]] = {"alone": [], "ours": []}
    for _ in range(ROUNDS):
        times["alone"].append(_processor_seconds(lambda: alone(path)))
        times["ours"].append(_processor_seconds(lambda: read(path)))
    ratio = statistics.median(ours / other for ours, other in zip(times["ours"], times["alone"], strict=True))
    return [name, clock.spread(times["alone"]), clock.spread(times["ours"]), f"{ratio:.2f}"]


def _processor_seconds(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def _read_excel(path: Path) -> object:
    with python_calamine.CalamineWorkbook.from_path(path) as book:
        return book.get_sheet_by_index(0).to_python()


def _read_stata_frame(path: Path) -> object:
    return pyreadstat.read_dta(str(path))


def _read_stata_lists(path: Path) -> object:
    return pyreadstat.read_dta(str(path), output_format="dict", disable_datetime_conversion=True)
