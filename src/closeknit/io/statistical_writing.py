"""Writing a release as .dta, .sav or .xpt, with the labels that its columns had."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.io.arrow import array_from_column
from closeknit.io.canonical import text_column
from closeknit.io.extras import load_extra
from closeknit.io.labels import Labels
from closeknit.io.loose_cells import fits_double
from closeknit.io.statistical_dates import DAY, SAS_ZERO, SECOND, SPSS_ZERO, STATA_ZERO

OTHER = "rename it, or save the release as csv or parquet"
LONGEST_NAME = {".dta": 32, ".sav": 64, ".xpt": 32}
WRITERS = {".dta": "write_dta", ".sav": "write_sav", ".xpt": "write_xport"}
DATES = {".dta": ("%td", STATA_ZERO, DAY), ".sav": ("SDATE10", SPSS_ZERO, SECOND), ".xpt": ("DATE9.", SAS_ZERO, DAY)}
# The clock of the machine in the head of a file, and the byte where the last one ends, before all labels and cells: the
# same release must give the same bytes.
CLOCKS = {
    ".dta": (re.compile(rb"\d\d \w{3} \d{4} \d\d:\d\d"), b"01 Jan 2000 00:00", 139),
    ".sav": (re.compile(rb"\d\d \w{3} \d\d\d\d:\d\d:\d\d"), b"01 Jan 0000:00:00", 109),
    ".xpt": (re.compile(rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d"), b"01JAN00:00:00:00", 496),
}


def write_statistical(columns: Columns, path: Path, labels: Labels | None) -> None:
    """Write a statistical file.

    Labels of variables are those of the input. A column keeps its codes and value labels if all of its cells are labels of the
    input; only the labels that occur are written.

    Args:
        columns: the cells.
        path: the new file; its suffix decides the format.
        labels: the labels of the input.
    """
    library = load_extra("pyreadstat", "stats", "statistical files", path)
    suffix, labels = path.suffix, labels or Labels()
    arrays, values, formats = {}, {}, {}
    for name, column in columns.items():
        _refuse_name(name, suffix, path)
        coded = labels.codes_of(name, column) if suffix != ".xpt" else None
        if coded is not None:
            column, values[name] = coded
        elif column.values.dtype.kind == "M":
            formats[name], column = DATES[suffix][0], _count_days(column, suffix)
        arrays[name] = array_from_column(_fit_column(column))
    variables = {name: label for name, label in labels.variables.items() if name in columns}
    options: dict[str, Any] = {"column_labels": variables, "variable_format": formats}
    options |= {"table_name": "RELEASE"} if suffix == ".xpt" else {"variable_value_labels": values}
    _call(getattr(library, WRITERS[suffix]), library, pl.DataFrame(arrays), path, options)
    _set_clock(path)


def _call(write: Callable[..., None], library: Any, frame: Any, path: Path, options: dict[str, Any]) -> None:
    try:
        write(frame, str(path), **options)
    except (library.ReadstatError, library.PyreadstatError) as error:
        what = f"a {path.suffix} file cannot hold this release ({str(error).splitlines()[0].lower().rstrip('.')})"
        raise BadInput(what, file=path, right="save it as csv or parquet") from None


def _refuse_name(name: str, suffix: str, path: Path) -> None:
    longest = LONGEST_NAME[suffix]
    plain = name if suffix != ".sav" else re.sub("[.$#@]", "_", name)
    fits = plain.isidentifier() and len(name.encode()) <= longest and (name.isascii() or suffix != ".xpt")
    if not fits:
        what = f"a {suffix} file takes names of at most {longest} letters, digits and underscores"
        raise BadInput(what, file=path, column=name, right=OTHER)


def _count_days(column: Column, suffix: str) -> Column:
    _, zero, unit = DATES[suffix]
    ticks = column.values.astype("datetime64[us]").astype(np.int64) - zero.astype(np.int64)
    return Column(ticks / unit, column.codes)


def _fit_column(column: Column) -> Column:
    """Numbers as doubles if these hold them exactly; booleans and all others as text."""
    kind, values = column.values.dtype.kind, column.values
    if kind == "f" or (kind in "iu" and fits_double(values)):
        return Column(values.astype(np.float64), column.codes)
    return text_column(column)


def _set_clock(path: Path) -> None:
    clock, constant, end = CLOCKS[path.suffix]
    with path.open("r+b") as file:
        head = clock.sub(constant, file.read(end))
        file.seek(0)
        file.write(head)
