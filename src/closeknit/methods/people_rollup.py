"""People of a population in the cells of whole levels: how many of them fit each group of a vector.

The nodes of a level are disjoint, so a person fits one node of each column or none; one at the common end of two written
ranges counts in one of them, which only asks for more than is needed. Which one follows from the written labels,
as in `core.covering`: a person may have values that no row of the table has. A vector then costs one look at the distinct
people, not a search for boxes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.covering import Covering
from closeknit.core.levels import at_level, top_level
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.core.tree import STAR
from closeknit.kernels.arrays import Int32
from closeknit.methods.rollup import CountedTable, Groups, Ladder
from closeknit.models.population import list_people

Counts = NDArray[np.int64]
PeopleInGroups = tuple[Counts, bool]  # people whom the cells of each group fit, and whether some person fits none


@dataclass(frozen=True, eq=False)
class PeopleGroups:
    """The people of one population as the levels of a table write them.

    Args:
        of: the counted table.
        population: as a guarantee keeps it.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"zip": ck.prefix()})
    >>> table = schema.encode(Columns.of({"zip": ["470", "480"]}))
    >>> people = ck.KMap(2, population=Columns.of({"zip": ["470", "471", "480", "590"]})).population
    >>> bottom = Groups.of_table(table, ())
    >>> found = PeopleGroups(bottom.of, people)
    >>> [(counts.tolist(), absent) for counts, absent in map(found.count, (bottom, bottom.roll_up((0,), (1,))))]
    [([1, 1], True), ([3], True)]
    """

    of: CountedTable
    population: Any

    @cached_property
    def _people(self) -> tuple[Int32, Counts, list[list[Int32]]]:
        """Distinct people as codes [points, columns], how many there are of each, and per column and step the node of each
        code; -1 where a person fits none.
        """
        schema, names = self.of.table.schema, list(self.of.table.schema.quasi)
        people = list_people(self.population, schema, names)
        found = [_place_people(people[name], schema, name, ladder) for name, ladder in zip(names, self.of.ladders, strict=True)]
        point_of, count = groups([(codes, size) for codes, size, _ in found], people.rows)
        points = np.empty((count, len(names)), dtype=np.int32)
        points[point_of] = np.stack([codes for codes, _, _ in found], axis=1)
        return points, np.bincount(point_of, minlength=count), [nodes for _, _, nodes in found]

    def count(self, found: Groups) -> PeopleInGroups:
        """The people whom the cells of each group fit, and whether some person fits no group.

        Args:
            found: groups over some or all columns.
        """
        points, many, nodes = self._people
        steps = list(zip(found.columns, found.vector, strict=True))
        cells = [nodes[column][step][points[:, column]] for column, step in steps]
        widths = [self.of.ladders[column].width(step) + 1 for column, step in steps]
        rows = [np.concatenate([found.nodes[:, j], cell]) + 1 for j, cell in enumerate(cells)]
        alike, count = groups(list(zip(rows, widths, strict=True)), len(found) + len(points))
        here, there = alike[: len(found)], alike[len(found) :]
        occupied = np.zeros(count, dtype=bool)
        occupied[here] = True
        return np.bincount(there, many, minlength=count).astype(np.int64)[here], not bool(occupied[there].all())


def _place_people(column: Column, schema: Schema, name: str, ladder: Ladder) -> tuple[Int32, int, list[Int32]]:
    """Codes of the people, how many codes there are, and per step the node of each code."""
    own = Schema(quasi={name: schema.quasi[name]}, missing=schema.missing)
    people, steps = Columns({name: column}, len(column)), []
    for level, node_of in zip(ladder.levels, ladder.nodes, strict=True):
        first = np.unique(node_of, return_index=True)[1]
        leaves = ladder.leaves[first]
        top = level == top_level(ladder.domain)
        labels = [STAR] * len(leaves) if top else at_level(ladder.domain, level).labels(leaves, leaves)
        covering = Covering.of(Columns.of({name: [label or None for label in labels]}), people, own, [name])
        steps.append(_find_nodes(covering))
    return covering.point_of, len(covering.points), steps


def _find_nodes(covering: Covering) -> Int32:
    """The box of each point in one column, by its first row: boxes of a level are disjoint; -1 where a point is in none."""
    lo, hi, points = covering.lo[covering.box_of, 0], covering.hi[covering.box_of, 0], covering.points[:, 0]
    some = np.flatnonzero(lo <= hi)
    order = some[np.argsort(lo[some], kind="stable")]
    if len(order) == 0:
        return np.full(len(points), -1, dtype=np.int32)
    found = order[np.maximum(np.searchsorted(lo[order], points, "right") - 1, 0)]
    return np.where((lo[found] <= points) & (points <= hi[found]), found, -1).astype(np.int32)
