"""Statistical files: Stata (.dta), SPSS (.sav, .zsav, .por), SAS (.sas7bdat, .xpt), with their labels and missing values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.params import choice
from closeknit.io.batches import cells_in
from closeknit.io.extras import load_extra
from closeknit.io.faults import explain_os_error
from closeknit.io.labels import Labels
from closeknit.io.loose_cells import shrink_whole
from closeknit.io.names import Wanted, check_names, choose_columns
from closeknit.io.source import Source
from closeknit.io.statistical_dates import convert_dates

BATCH = 262_144  # rows that are Python objects at once
READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}


@dataclass(frozen=True)
class StatisticalFile(Source):
    """A file of Stata, SPSS or SAS. Missing values that its author defined are missing; dates are ISO dates.

    Args:
        path: the file.
        labels: whether a column whose values all have labels holds the labels, as a codebook and a hierarchy name them;
            False reads the codes.
        encoding: the encoding of its text, if the file does not say it or says it wrongly.

    >>> StatisticalFile("people.sav", labels=False).form()["labels"]
    False
    """

    name: ClassVar[str] = "statistical file"
    suffixes: ClassVar[tuple[str, ...]] = tuple(READERS)

    path: str
    labels: bool = True
    encoding: str | None = None

    def __post_init__(self) -> None:
        choice("labels", self.labels, (True, False))

    def read(self, columns: Wanted = None) -> Columns:
        """The table.

        Args:
            columns: the columns to read, in this order; all if left out.
        """
        found = self._describe()
        names = list(found.column_names)
        check_names(names, self.path)
        chosen = choose_columns(names, columns, self.path)
        parts: dict[str, list[pa.Array]] = {name: [] for name in chosen}
        kinds = {name: pa.string() if found.readstat_variable_types[name] == "string" else pa.float64() for name in chosen}
        rows = 0
        for batch in self._batches(chosen):
            rows += len(next(iter(batch.values()), ()))
            for name in chosen:  # each list is freed as soon as it is coded
                parts[name].append(pa.array(batch.pop(name), kinds[name]).dictionary_encode())
        if not rows:
            raise BadInput("the table has no rows", file=self.path, right="give a table with at least one row")
        labels, suffix = self._labels(found), Path(self.path).suffix.lower()
        cells = cells_in(pa.table({name: pa.chunked_array(parts[name]) for name in chosen}), chosen)
        return Columns({name: self._finish(name, cells[name], found, labels, suffix) for name in chosen}, rows)

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
        return Labels(variables, dict(found.variable_value_labels) if self.labels else {})

    def _describe(self) -> Any:
        """What the file says about itself, without its rows."""
        with self._refuse_broken_file() as read:
            return read(metadataonly=True)[1]

    def _batches(self, names: list[str]) -> Iterator[dict[str, list[Any]]]:
        first, full = 0, True
        while full:
            with self._refuse_broken_file() as read:
                batch, _ = read(usecols=names, disable_datetime_conversion=True, row_limit=BATCH, row_offset=first)
            first, full = first + BATCH, len(next(iter(batch.values()), ())) == BATCH
            yield batch

    @contextmanager
    def _refuse_broken_file(self) -> Iterator[Any]:
        """The reader of this file; what the library finds wrong becomes a sentence."""
        library = load_extra("pyreadstat", "stats", "statistical files", self.path)
        suffix = Path(self.path).suffix.lower()
        given = {"output_format": "dict", **({"encoding": self.encoding} if self.encoding else {})}
        try:
            with open(self.path, "rb"):  # the library does not say why it cannot open a file
                pass
            yield lambda **options: getattr(library, READERS[suffix])(self.path, **given, **options)
        except OSError as error:
            raise explain_os_error(error, self.path) from None
        except UnicodeDecodeError:
            raise BadInput(
                "its text is not in the encoding that it states", file=self.path, right="name it with encoding"
            ) from None
        except (library.ReadstatError, library.PyreadstatError, ValueError, OverflowError):
            what, right = f"this is not a complete {suffix} file", f"save it again as {suffix}, or give a CSV file"
            raise BadInput(what, file=self.path, right=right) from None
