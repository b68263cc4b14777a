"""`Point`: places on the earth, written as cells of a grid.

The grids are those of geohash (`core/geohash.py`) and H3 (the library `h3`). Leaves are the cells of the finest level that
occur; a coarser cell is a node. A cell has a name of its own, so a recipient can draw it without the original points.

The loss of a cell is the share of levels that it leaves out: with six characters of geohash, `u33d` has lost two of six. As
every level divides a cell into about as many parts, this is the share of the bits of the position. It depends on the written
cell alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from closeknit.core.domain import Domain, Values
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.geohash import ALPHABET, CELL, MOST_CHARACTERS, geohash_of
from closeknit.core.kind import read_each
from closeknit.core.kinds import Losses, Nominal, bind_tree, texts_of
from closeknit.core.params import choice, whole
from closeknit.core.tree import STAR, Tree
from closeknit.kernels.arrays import Int32

MOST_CELLS = 500_000  # of a declared area
_NUMBER = r"[+-]?\d+(?:\.\d+)?"
PAIR = re.compile(rf"({_NUMBER})°?\s*(?:[,;]|\s)\s*({_NUMBER})°?", re.ASCII)
WKT = re.compile(rf"POINT\s*\(\s*({_NUMBER})\s+({_NUMBER})\s*\)", re.ASCII | re.IGNORECASE)  # longitude first


class Grid(Protocol):
    """Nested cells over the earth."""

    finest: int  # the largest precision
    usual: int  # the precision if none is declared

    def cell_of(self, latitude: float, longitude: float, precision: int) -> str:
        """The name of the cell that holds a point."""

    def path_of(self, cell: str) -> list[str]:
        """The cells around a cell from the coarsest to itself; a text that is no cell raises `ValueError`."""

    def divide(self, cell: str) -> list[str]:
        """The cells of the next precision in a cell."""

    def levels(self, precision: int) -> int:
        """Number of levels from the coarsest cells to those of a precision."""


class GeohashGrid:
    """Cells of geohash; the precision is the number of characters."""

    finest, usual = MOST_CHARACTERS, 6

    def cell_of(self, latitude: float, longitude: float, precision: int) -> str:
        """The name of the cell that holds a point."""
        return geohash_of(latitude, longitude, precision)

    def path_of(self, cell: str) -> list[str]:
        """The beginnings of the name."""
        if not CELL.fullmatch(cell):
            raise ValueError(cell)
        return [cell[:length] for length in range(1, len(cell) + 1)]

    def divide(self, cell: str) -> list[str]:
        """One more character."""
        return [cell + sign for sign in ALPHABET]

    def levels(self, precision: int) -> int:
        """One level for each character."""
        return precision


class H3Grid:
    """Cells of H3, hexagons; the precision is the resolution. A cell is the parent of those whose centre it holds."""

    finest, usual = 15, 8

    def __init__(self) -> None:
        try:
            import h3
        except ImportError:
            right = "install closeknit[geo], or leave grid out for geohash"
            raise BadInput("point has grid='h3', and the library h3 is not installed", right=right) from None
        self._h3 = h3

    def cell_of(self, latitude: float, longitude: float, precision: int) -> str:
        """The name of the cell that holds a point."""
        return str(self._h3.latlng_to_cell(latitude, longitude, precision))

    def path_of(self, cell: str) -> list[str]:
        """The parents of all resolutions."""
        if not self._h3.is_valid_cell(cell):
            raise ValueError(cell)
        resolution = self._h3.get_resolution(cell)
        return [str(self._h3.cell_to_parent(cell, coarser)) for coarser in range(resolution + 1)]

    def divide(self, cell: str) -> list[str]:
        """The children of the next resolution."""
        return [str(child) for child in self._h3.cell_to_children(cell)]

    def levels(self, precision: int) -> int:
        """Resolution 0 is a level, too."""
        return precision + 1


GRIDS: dict[str, type[Grid]] = {"geohash": GeohashGrid, "h3": H3Grid}


def read_point(text: str) -> tuple[float, float] | None:
    """Latitude and longitude of a text `latitude,longitude` or `POINT(longitude latitude)`; None if it is none on earth.

    Args:
        text: the raw text.

    >>> read_point("48.137, 11.575"), read_point("POINT(11.575 48.137)"), read_point("91,0")
    ((48.137, 11.575), (48.137, 11.575), None)
    """
    if match := PAIR.fullmatch(text):
        latitude, longitude = float(match[1]), float(match[2])
    elif match := WKT.fullmatch(text):
        longitude, latitude = float(match[1]), float(match[2])
    else:
        return None
    return (latitude, longitude) if abs(latitude) <= 90 and abs(longitude) <= 180 else None


@dataclass(frozen=True)
class Point(Nominal):
    """A column of places.

    Args:
        precision: characters of the finest cell, 1 to 12, with geohash; its resolution, 0 to 15, with H3. None: 6 or 8.
        grid: "geohash" or "h3".
        within: cells that hold all points, separated by commas; a stream needs them in advance.

    >>> domain, codes = Point(5).bind(np.array(["48.137,11.575", "48.14,11.58", "52.52,13.405"], dtype=object))
    >>> codes.tolist(), domain.labels(np.array([0, 0, 1]), np.array([0, 1, 1]))
    ([0, 0, 1], ['u281z', 'u', 'u33dc'])
    >>> Point(5).losses(["u281z", "u2", "*", ""])[:, 0].tolist()
    [0.0, 0.6, 1.0, 0.0]
    """

    name: ClassVar[str] = "point"
    default_distance: ClassVar[str] = "hierarchical"
    precision: int | None = None
    grid: str = "geohash"
    within: str | None = None

    def __post_init__(self) -> None:
        choice("grid", self.grid, tuple(GRIDS))
        if self.precision is not None:
            whole("precision", self.precision, least=1 - (self.grid == "h3"), most=GRIDS[self.grid].finest)

        if self.within is not None:
            self._check_area()

    def _check_area(self) -> None:
        grid = GRIDS[self.grid]()
        for cell in self.area:
            try:
                depth = len(grid.path_of(cell))
            except ValueError:
                right = "name cells that hold all points, such as within='u28,u29'"
                raise BadInput(f"point has within='{self.within}', and '{cell}' is not a cell", right=right) from None
            if depth > grid.levels(self.finest):
                raise BadInput(f"point has within='{cell}', finer than its precision", right="name coarser cells")

    @property
    def area(self) -> list[str]:
        """The declared cells around all points."""
        return [cell.strip() for cell in (self.within or "").split(",")]

    def list_cells(self) -> Values:
        """All finest cells of the declared area, for a stream: the rows are not known yet."""
        grid = GRIDS[self.grid]()
        cells = {cell: len(grid.path_of(cell)) for cell in self.area}
        while any(depth < grid.levels(self.finest) for depth in cells.values()):
            finer: dict[str, int] = {}
            for cell, depth in cells.items():
                fine = depth == grid.levels(self.finest)
                finer |= {cell: depth} if fine else dict.fromkeys(grid.divide(cell), depth + 1)
                if len(finer) > MOST_CELLS:
                    right = "declare a smaller area, or a lower precision"
                    raise BadInput(f"point has more than {MOST_CELLS:,} cells within '{self.within}'", right=right)
            cells = finer
        return np.array(sorted(cells), dtype=object)

    def read_cells(self, values: Values) -> list[str | None]:
        """The finest cell of each raw value; None for what is no point or outside the declared area.

        Args:
            values: raw values.

        >>> Point(4, within="u28").read_cells(np.array(["48.137,11.575", "52.52,13.405", "x"], dtype=object))
        ['u281', None, None]
        """
        return read_each(partial(self._cell, GRIDS[self.grid]()), values)

    @property
    def finest(self) -> int:
        """The precision of the leaves."""
        return GRIDS[self.grid].usual if self.precision is None else self.precision

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """Leaves are the finest cells that occur; a text that is neither a point nor such a cell is refused."""
        grid = GRIDS[self.grid]()
        cells = [self._cell(grid, i, text) for i, text in enumerate(texts_of(values))]
        nested: dict[str, Any] = {}
        for cell in sorted(set(cells)):
            place = nested
            *around, leaf = grid.path_of(cell)
            for coarser in around:
                place = place.setdefault(coarser, {})
            place[leaf] = None
        tree = Tree.of({STAR: nested or {"none": None}})
        domain, codes = bind_tree(tree, cells)
        return replace(domain, node_loss=self.losses(tree.labels)[:, 0] if nested else None), codes

    def _cell(self, grid: Grid, index: int, text: str) -> str:
        if (point := read_point(text)) is not None:
            cell = grid.cell_of(*point, self.finest)
            if self.within is not None and not set(self.area) & set(grid.path_of(cell)):
                raise BadValue(
                    index, f"'{text}' is outside the declared cells", f"extend within='{self.within}', or correct it"
                )
            return cell
        try:
            if len(grid.path_of(text)) == grid.levels(self.finest):  # a written sensitive value
                return text
        except ValueError:
            pass
        swapped = read_point(",".join(reversed(text.split(",")))) is not None
        hint = "write latitude before longitude, such as" if swapped else "write latitude and longitude, such as"
        raise BadValue(index, f"'{text}' is not a point", f"{hint} 48.137,11.575, or list it under missing")

    def losses(self, cells: Sequence[str]) -> Losses:
        """The share of levels that a cell leaves out; the same in both variants."""
        grid = GRIDS[self.grid]()
        levels = grid.levels(self.finest)
        kept = np.array([self._depth(grid, i, cell, levels) for i, cell in enumerate(cells)], dtype=np.float64)
        loss = 1 - kept / levels
        return np.stack([loss, loss], axis=1)

    def _depth(self, grid: Grid, index: int, cell: str, levels: int) -> int:
        if cell in (STAR, ""):
            return 0 if cell == STAR else levels
        try:
            depth = len(grid.path_of(cell))
        except ValueError:
            raise BadValue(index, f"'{cell}' is not a cell of {self.grid}", "write the name of a cell, or '*'") from None
        if depth > levels:
            raise BadValue(index, f"'{cell}' is finer than the precision {self.finest}", "write a coarser cell")
        return depth


def point(precision: int | None = None, grid: str = "geohash", within: str | None = None) -> Point:
    """A column of places, each a latitude and a longitude in one cell of the table.

    Args:
        precision: characters of the finest cell, 1 to 12, with geohash (6: about 1 km); its resolution, 0 to 15, with H3
            (8: about 1 km). The finest cell is the most precise place that a row can show.
        grid: "geohash", or "h3", which needs closeknit[geo].
        within: cells that hold all points, separated by commas, such as "u28,u29"; a stream needs them in advance.

    >>> point(7)
    Point(precision=7, grid='geohash', within=None)
    """
    return Point(precision, grid, within)
