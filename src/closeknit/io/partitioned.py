"""Folders of Parquet files with hive partitions (`year=2024/part-0.parquet`): each key becomes a column."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.coded_batches import columns_from_batches
from closeknit.io.faults import explain_os_error
from closeknit.io.names import Wanted, check_names, choose_columns, refuse_other_names
from closeknit.io.source import Source


@dataclass(frozen=True)
class PartitionedParquet(Source):
    """A folder of Parquet files, in folders named by the values of some columns. Those columns are text, as written there.

    Args:
        path: the folder.

    >>> PartitionedParquet("patients").place
    'patients'
    """

    name: ClassVar[str] = "partitioned Parquet"

    path: str

    @classmethod
    def serves(cls, place: str) -> bool:
        """Whether this is a folder of folders such as `year=2024`.

        Args:
            place: the path.
        """
        folder = Path(place)
        if "://" in place or not folder.is_dir():
            return False
        inside = [each for each in folder.iterdir() if not each.name.startswith((".", "_"))]
        return bool(inside) and all("=" in each.name and each.is_dir() for each in inside)

    def read(self, columns: Wanted = None) -> Columns:
        """The rows of all files.

        Args:
            columns: the columns to read, in this order; all if left out.
        """
        import pyarrow.dataset as ds

        try:
            files = ds.dataset(self.path, format="parquet")
            for file in files.get_fragments():
                refuse_other_names(set(file.physical_schema.names), set(files.schema.names), file.path)
            # a key that is a column of the files as well, as polars writes it, is read from them; 0123 is not a number
            keys = pa.schema([(key, pa.string()) for key in self._find_keys() if key not in files.schema.names])
            data = ds.dataset(self.path, format="parquet", partitioning=ds.partitioning(keys, flavor="hive"))
            check_names(data.schema.names, self.path)
            chosen = choose_columns(data.schema.names, columns, self.path)
            return columns_from_batches(data.to_batches(columns=chosen), chosen, self.path)
        except pa.ArrowException:
            right = "give a folder of Parquet files with the same columns"
            raise BadInput("this folder has a file that is not complete Parquet", file=self.path, right=right) from None
        except OSError as error:
            raise explain_os_error(error, self.path) from None

    def _find_keys(self) -> list[str]:
        """The columns that folders name, outermost first."""
        keys, folder = [], Path(self.path)
        while named := sorted(inside for inside in folder.iterdir() if inside.is_dir() and "=" in inside.name):
            folder = named[0]
            keys.append(folder.name.partition("=")[0])
        return keys
