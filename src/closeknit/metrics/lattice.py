"""KL-divergence over the OLAP lattice: how far all group-bys of a release are from those of the original table.

Level `level` of the lattice has a group-by for every choice of that many quasi-identifiers, always with one sensitive
attribute. A cell is one value of each. With alpha the rows of the table in a cell, and beta those that an analyst expects
there who has only the release (the estimate of `metrics.queries` for a query of single values), KL is the sum over group-bys
and cells of (alpha / n) ln(alpha / beta). It is 0 where every cell is unchanged.

Source: the thesis on SABRE and BUREL, sec. 3.5.2 (figure 3.13).
Different from the source: it is divided by the n rows of the table; the source's sum is n times as large. The source counts the
rows with one value of the sensitive attribute without naming it: here all values count. Removed rows can cause a cell with
beta = 0, where the logarithm is unlimited: such cells are left out of the sum, and `lost` is the share of rows in them.

`metrics.cubes` defines the values of a column, and that a cell spreads its row evenly over those in its range. A row without a
value in a column is in no cell of it. Cost, for each group-by: a count of the rows, and for each sensitive value in a class (or
combination of cells in a bucket) the logarithms of its box's width and of the number of cells; memory: the rows, and some
numbers for each cell that holds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import Record
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.limits import MOST_GROUP_BYS, check_count
from closeknit.core.params import whole
from closeknit.core.perturbation import Law
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.forms.column_axes import axes_of, column_groups, original_columns
from closeknit.forms.release_reading import Published, reading_of
from closeknit.kernels.arrays import Int32, Reals
from closeknit.metrics.cubes import CubeGroup, Parts, Points, Values, undo_perturbation
from closeknit.metrics.queries import choose_secret
from closeknit.metrics.query_answers import refuse_replaced

FAINT = 1e-9  # rows below which the difference of a perturbed attribute and its law is a rounding error


class GroupBy(Record):
    """One group-by of the lattice.

    Args:
        columns: The quasi-identifiers of the group-by.
        kl: Its KL-divergence.
        lost: Share of the table's rows in cells in which the release expects none.
        cells: The number of cells that hold rows of the table.
    """

    columns: tuple[str, ...]
    kl: float
    lost: float
    cells: int


class LatticeDivergence(Record):
    """KL-divergence (natural logarithm) between the group-bys of a table and those of a release.

    Args:
        secret: The sensitive attribute of every group-by.
        level: The number of quasi-identifiers of a group-by.
        kl: The sum over all group-bys.
        lost: The mean over the group-bys of their `lost`.
        group_bys: The group-bys.
    """

    secret: str
    level: int
    kl: float
    lost: float
    group_bys: tuple[GroupBy, ...]

    def __str__(self) -> str:
        worst = max(self.group_bys, key=lambda one: one.kl)
        lost = f" {self.lost:.2%} of the rows are in cells that the release does not have." if self.lost else ""
        return (
            f"KL-divergence over {len(self.group_bys):,} group-bys of {self.level} columns and '{self.secret}': {self.kl:.6g} "
            f"(natural logarithm), the most, {worst.kl:.6g}, by {', '.join(worst.columns)}.{lost}"
        )


def kl_divergence(
    published: Published | Reading, original: Any, schema: Schema, level: int = 2, secret: str | None = None
) -> LatticeDivergence:
    """Measure how far a release is from the original table over all group-bys of a level.

    Args:
        published: A release, or what its form read.
        original: Original rows as a frame, file or `Columns`.
        schema: Schema of the original rows.
        level: Quasi-identifiers per group-by.
        secret: Sensitive attribute of the group-bys; None takes the first.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> made = (ck.anonymize(table, schema, [ck.KAnonymity(k)], ck.StackAndDeal(), seed=2**100) for k in (1, 5, 20))
    >>> [round(kl_divergence(release, table, schema, level=1).kl, 2) for release in made]
    [0.0, 6.86, 7.42]
    """
    level, name, reading = whole("level", level, 1), choose_secret(schema, secret), reading_of(published)
    quasi = [other for other in schema.quasi if other != name and other in reading.columns]
    if level > len(quasi):
        right = f"the release has {len(quasi)} quasi-identifiers in addition to '{name}'"
        raise BadInput(f"level={level} is too large", right=right)
    check_count(f"level={level} makes {{}} group-bys", comb(len(quasi), level), MOST_GROUP_BYS)
    if name not in reading.columns:
        raise BadInput("is queried but not in the release", column=name, right=suggest_name(name, reading.schema.sensitive))
    columns = original_columns(original, schema)
    axes = axes_of(columns, schema)
    values = {one: Values(axes[one]) for one in (*quasi, name)}
    places = {one: values[one].places(columns[one], schema) for one in values}
    cube = Cube(reading, values, name)
    found = tuple(cube.compare_group_by({one: places[one] for one in (*chosen, name)}) for chosen in combinations(quasi, level))
    lost = sum(one.lost for one in found) / len(found)
    return LatticeDivergence(secret=name, level=level, kl=sum(one.kl for one in found), lost=lost, group_bys=found)


@dataclass(frozen=True, eq=False)
class Cube:
    """A release, prepared for any group-by with one sensitive attribute."""

    reading: Reading
    values: Mapping[str, Values]
    secret: str

    def compare_group_by(self, places: Mapping[str, NDArray[np.int32]]) -> GroupBy:
        """Compare the group-by of these columns, given the values of the table's rows; the sensitive attribute is the last."""
        points = Points.of(places, {name: self.values[name].size for name in places})
        n, alpha, beta = len(places[self.secret]), points.counts, self.estimate_rows(points)
        there = beta > (0.0 if self._law is None else FAINT)
        kl = float((alpha[there] / n * np.log(alpha[there] / beta[there])).sum())
        lost = float(alpha[~there].sum() / n)
        return GroupBy(columns=tuple(places)[:-1], kl=kl, lost=lost, cells=len(points))

    def estimate_rows(self, points: Points) -> Reals:
        """Return the rows that an analyst expects in each cell."""
        parts = [self._parts(together, names) for together in self._groups if (names := _select_names(together, points))]
        return points.estimate_rows(parts, self._sizes)

    @cached_property
    def _sizes(self) -> Reals:
        return self.reading.classes.sizes.astype(np.float64)

    @cached_property
    def _law(self) -> Law | None:
        law = self.reading.retained.get(self.secret)
        return None if law is None else refuse_replaced(self.secret, law)

    @cached_property
    def _groups(self) -> list[CubeGroup]:
        grouped = column_groups(self.reading, self.values)
        class_of: Int32 = self.reading.class_of
        return [CubeGroup.of(self.reading.columns, names, self.values, class_of, len(self._sizes)) for names in grouped]

    def _parts(self, together: CubeGroup, names: tuple[str, ...]) -> Parts:
        parts = together.parts(names)
        if self.secret not in names or self._law is None:
            return parts
        return undo_perturbation(parts, self._law, self.values[self.secret].size, self._sizes)


def _select_names(together: CubeGroup, points: Points) -> tuple[str, ...]:
    return tuple(name for name in together.names if name in points.places)
