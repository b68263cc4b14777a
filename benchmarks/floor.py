"""The floor: what polars alone needs to read the same CSV file and to write a table of the size of the release."""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from clock import spread, timed

AGAIN = 3  # it is short, so one turn measures it several times


@dataclass
class Floor:
    """Its steps are timed apart: with and without sorting by all columns, which no release can do without."""

    table: Path
    release: pl.DataFrame
    read: list[float] = field(default_factory=list)
    sort: list[float] = field(default_factory=list)
    write: list[float] = field(default_factory=list)

    @classmethod
    def under(cls, table: Path, release: Path) -> Floor:
        """The floor under a release that was made of a table."""
        return cls(table, pl.read_csv(release, infer_schema=False))

    def turn(self) -> None:
        """Read, sort and write once more."""
        for _ in range(AGAIN):
            frame = pl.read_csv(self.table)
            with tempfile.TemporaryDirectory() as folder:
                self.read.append(timed(lambda: pl.read_csv(self.table)))
                self.sort.append(timed(lambda f=frame: f.sort(f.columns)))
                self.write.append(timed(lambda to=folder: self.release.write_csv(Path(to, "release.csv"))))

    @property
    def plain(self) -> list[float]:
        """Seconds to read and write."""
        return [r + w for r, w in zip(self.read, self.write, strict=True)]

    @property
    def sorted(self) -> list[float]:
        """Seconds to read, sort by all columns and write."""
        return [r + s + w for r, s, w in zip(self.read, self.sort, self.write, strict=True)]

    def ratios(self, seconds: list[float]) -> tuple[str, str]:
        """How many times the floor, and the floor with sorting, a job took (medians)."""
        middle = statistics.median(seconds)
        return f"{middle / statistics.median(self.plain):.1f}", f"{middle / statistics.median(self.sorted):.1f}"

    def lines(self, columns: int) -> list[list[object]]:
        """Both floors as the first lines of a table whose columns are name, seconds, the two ratios, and others."""
        lines = (
            ("floor: polars reads the CSV and writes the release's cells", spread(self.plain), "1", ""),
            ("the same and sorts by all columns", spread(self.sorted), self.ratios(self.sorted)[0], "1"),
        )
        return [[*line, *[""] * (columns - len(line))] for line in lines]
