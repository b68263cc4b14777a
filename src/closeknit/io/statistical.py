"""Statistical files: Stata (.dta), SPSS (.sav, .zsav, .por), SAS (.sas7bdat, .xpt), with their labels and missing values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput, refuse_empty
from closeknit.core.params import choice
from closeknit.io.batches import cells_in
from closeknit.io.extras import load_extra
from closeknit.io.faults import explain_os_error
from closeknit.io.labels import Labels
from closeknit.io.loose_cells import shrink_whole
from closeknit.io.names import Wanted, check_names, choose_columns
from closeknit.io.source import Source
from closeknit.io.statistical_dates import convert_dates

SMALL_BATCH = 8_192  # of a format whose rows have one length, where the next batch is found without reading those before it
READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
SAS, CATALOG = ".sas7bdat", ".sas7bcat"


class Coder:
    """A column as it arrives in batches: codes and distinct values, or the cells where most of them are distinct."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind, self.parts, self.coded = kind, list[pa.Array](), True
        self.texts, self.seen = list[str](), set[str]()

    def add(self, cells: list[Any]) -> None:
        if self.texts:
            self.texts += cells
            self.seen.update(cells)
            return
        array = pa.array(cells, self.kind)
        part = array.dictionary_encode() if self.coded else array
        if not self.parts and len(part.dictionary) > len(cells) / 2:
            self.coded, part = False, array
            if self.kind == pa.string():
                self.texts, self.seen = cells, set(cells)
                return
        self.parts.append(part)

    def finish(self, name: str) -> Column:
        if len(self.seen) == len(self.texts) > 0 and not {None, ""} & self.seen and "\0" not in "".join(self.texts):
            return Column(np.array(self.texts, dtype=object), np.arange(len(self.texts), dtype=np.int32))
        whole = pa.chunked_array(self.parts or [pa.array(self.texts, self.kind)])
        return cells_in(pa.table({name: whole if self.coded else whole.combine_chunks()}), [name])[name]


@dataclass(frozen=True)
class StatisticalFile(Source):
    """A file of Stata, SPSS or SAS. Missing values that its author defined are missing; dates are ISO dates.

    Args:
        path: the file.
        labels: whether a column whose values all have labels holds the labels, as a codebook and a hierarchy name them;
            False reads the codes.
        catalog: the catalogue of formats of a `.sas7bdat` file (`.sas7bcat`), which has its value labels.
        encoding: the encoding of its text, if the file does not say it or says it wrongly.

    >>> StatisticalFile("people.sav", labels=False).form()["labels"]
    False
    """

    name: ClassVar[str] = "statistical file"
    suffixes: ClassVar[tuple[str, ...]] = tuple(READERS)

    files: ClassVar[tuple[str, ...]] = ("catalog",)
    batch: ClassVar[int] = 262_144  # rows that are Python objects at once

    path: str
    labels: bool = True
    encoding: str | None = None
    catalog: str | None = None

    def __post_init__(self) -> None:
        choice("labels", self.labels, (True, False))
        if self.catalog is not None and Path(self.path).suffix.lower() != SAS:
            raise BadInput("only a .sas7bdat file has a catalogue of formats", file=self.path, right="leave out catalog")

    def read(self, columns: Wanted = None) -> Columns:
        """The table.

        Args:
            columns: the columns to read, in this order; all if left out.
        """
        found = self._describe()
        names = list(found.column_names)
        check_names(names, self.path)
        chosen = choose_columns(names, columns, self.path)
        kinds = {name: pa.string() if found.readstat_variable_types[name] == "string" else pa.float64() for name in chosen}
        coders = {name: Coder(kinds[name]) for name in chosen}
        rows = 0
        for batch in self._batches(chosen):
            rows += len(next(iter(batch.values()), ()))
            for name in chosen:  # each list is freed as soon as it is coded
                coders[name].add(batch.pop(name))
        refuse_empty(rows, self.path)
        labels, suffix = self._labels(found), Path(self.path).suffix.lower()
        cells = {name: coders.pop(name).finish(name) for name in chosen}
        return Columns({name: self._finish(name, cells.pop(name), found, labels, suffix) for name in chosen}, rows)

    def read_labels(self) -> Labels:
        """The labels of the columns; those of values only if they are read instead of the codes."""
        return self._labels(self._describe())

    def measure_size(self) -> tuple[int, int] | None:
        """Rows and bytes of all cells, from the head of the file; None where it has no number of rows."""
        found = self._describe()
        if not found.number_rows or found.number_rows < 0:
            return None
        return found.number_rows, found.number_rows * sum(found.variable_storage_width.values())

    def _finish(self, name: str, column: Column, found: Any, labels: Labels, suffix: str) -> Column:
        if column.values.dtype.kind == "f":
            dates = convert_dates(column, found.original_variable_types.get(name), suffix, name)
            if dates is not None:
                return dates
        column = shrink_whole(column)
        return labels.apply(name, column)

    def _labels(self, found: Any) -> Labels:
        variables = {name: label for name, label in found.column_names_to_labels.items() if label}
        values = dict(found.variable_value_labels)
        if self.catalog is not None and self.labels:
            with self._refuse_broken_file(self.catalog) as read:
                formats = read()[1].value_labels
            values |= {name: formats[used] for name, used in found.variable_to_label.items() if used in formats}
        return Labels(variables, values if self.labels else {})

    def _describe(self) -> Any:
        """What the file says about itself, without its rows."""
        with self._refuse_broken_file() as read:
            return read(metadataonly=True)[1]

    def _batches(self, names: list[str]) -> Iterator[dict[str, list[Any]]]:
        first, full, rows = 0, True, min(self.batch, SMALL_BATCH) if Path(self.path).suffix.lower() == ".dta" else self.batch
        while full:
            with self._refuse_broken_file() as read:
                batch, _ = read(usecols=names, disable_datetime_conversion=True, row_limit=rows, row_offset=first)
            first, full = first + rows, len(next(iter(batch.values()), ())) == rows
            yield batch

    @contextmanager
    def _refuse_broken_file(self, catalog: str | None = None) -> Iterator[Any]:
        """The reader of this file or of its catalogue; what the library finds wrong becomes a sentence."""
        library = load_extra("pyreadstat", "stats", "statistical files", self.path)
        path = catalog or self.path
        suffix = CATALOG if catalog else Path(path).suffix.lower()
        given = {"output_format": "dict", **({"encoding": self.encoding} if self.encoding else {})}
        try:
            with open(path, "rb"):  # the library does not say why it cannot open a file
                pass
            yield lambda **options: getattr(library, (READERS | {CATALOG: "read_sas7bcat"})[suffix])(path, **given, **options)
        except OSError as error:
            raise explain_os_error(error, path) from None
        except UnicodeDecodeError:
            raise BadInput("its text is not in the encoding that it states", file=path, right="name it with encoding") from None
        except (library.ReadstatError, library.PyreadstatError, ValueError, OverflowError):
            what, right = f"this is not a complete {suffix} file", f"save it again as {suffix}, or give a CSV file"
            raise BadInput(what, file=path, right=right) from None
