"""R files (.rds, .RData) with one data frame; factors are text, times are in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.arrow import columns_from_arrow
from closeknit.io.extras import load_extra
from closeknit.io.faults import explain_os_error
from closeknit.io.loose_cells import shrink_whole
from closeknit.io.names import Wanted, check_names, choose_columns
from closeknit.io.source import Source

ROW_NAMES = "rownames"  # the column that the library adds: numbers or names of rows, no data


@dataclass(frozen=True)
class RFile(Source):
    """A data frame that R has saved.

    Args:
        path: the file.

    >>> RFile("people.rds").place
    'people.rds'
    """

    name: ClassVar[str] = "R data frame"
    suffixes: ClassVar[tuple[str, ...]] = (".rds", ".rdata")

    path: str

    def read(self, columns: Wanted = None) -> Columns:
        """The data frame; names of rows are left out.

        Args:
            columns: the columns to read, in this order; all if left out.
        """
        frame = self._read_frame()
        names = [name for name in frame.columns if name != ROW_NAMES]
        check_names(names, self.path)
        chosen = choose_columns(names, columns, self.path)
        cells = columns_from_arrow(frame.select(chosen).to_arrow(), self.path)
        return Columns({name: shrink_whole(column) for name, column in cells.items()}, cells.rows)

    def _read_frame(self) -> Any:
        library = load_extra("pyreadr", "r", "R files", self.path)
        try:
            with open(self.path, "rb"):  # the library does not say why it cannot open a file
                pass
            found = library.read_r(self.path, output_format="polars")
        except OSError as error:
            raise explain_os_error(error, self.path) from None
        except (library.LibrdataError, library.PyreadrError, ValueError):
            right = "save it again with saveRDS, or give a CSV file"
            raise BadInput("this is not a complete R file with a data frame", file=self.path, right=right) from None
        if len(found) != 1:
            listed = f" ({', '.join(map(str, found))})" if found else ""
            right = "save one of them with saveRDS" if found else "save a data frame with saveRDS"
            raise BadInput(f"the file has {len(found)} data frames{listed}", file=self.path, right=right)
        return next(iter(found.values()))
