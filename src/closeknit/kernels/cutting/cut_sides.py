"""Cut classes in two: the rows that go left, histograms and losses of both sides, and the row order after a round of cuts.

A cut is one row of five numbers. In column COLUMN the rows with codes from FIRST up to (not with) BEFORE go left; of the
GROUP rows with the code BEFORE itself, TIES go left too, spread evenly over their order.

Rows are sorted by class: class `c` has the positions `starts[c]` to `starts[c + 1]`. A histogram is sparse as in
`core.classes`: `counts` of the ascending `values`, class by class from `h_starts` on. The right side is the class minus the
left one, so only rows that go left are counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.counting.sorting import smaller
from closeknit.kernels.geometry.boxes import Codes, Ints, Reals, Scales, range_loss
from closeknit.kernels.lanes import widen, width_of

Flags = NDArray[np.bool_]
COLUMN, FIRST, BEFORE, TIES, GROUP = range(5)


@kernel
def mark(quasi: Codes, starts: Ints, classes: Ints, cuts: Codes, left: Flags) -> Ints:
    """Cut class `classes[i]` by `cuts[i]`: mark in `left` the rows that go left, and return their number.

    >>> left = np.zeros(4, np.bool_)
    >>> cut = np.array([[0, 1, 2, 1, 2]], np.int32)
    >>> mark(np.array([[2], [1], [2], [3]], np.int32), np.array([0, 4]), np.array([0]), cut, left).tolist(), left.tolist()
    ([2], [False, True, True, False])
    """
    sizes = np.zeros(len(classes), np.int64)
    for i in range(len(classes)):
        cut, rest = cuts[i], 0
        for x in range(starts[classes[i]], starts[classes[i] + 1]):
            code = quasi[x, cut[COLUMN]]
            left[x] = cut[FIRST] <= code < cut[BEFORE]
            if code == cut[BEFORE]:
                rest += cut[TIES]
                left[x] = rest >= cut[GROUP]
                rest -= cut[GROUP] if left[x] else 0
            sizes[i] += left[x]
    return sizes


@kernel
def count_sides(quasi: Codes, starts: Ints, classes: Ints, cuts: Codes, codes: Codes, h_starts: Ints, values: Codes,
                counts: Ints, width: int) -> tuple[Ints, Codes, Ints, Ints]:  # fmt: skip
    """Histograms of both sides of class `classes[i]` cut by `cuts[i]`, for every i: left, right, left, right; rows left.

    >>> quasi, codes = np.array([[1], [2], [1]], np.int32), np.array([4, 4, 6], np.int32)
    >>> whole, cut = (np.array([0, 2]), np.array([4, 6], np.int32), np.array([2, 1])), np.array([[0, 1, 2, 0, 1]], np.int32)
    >>> [x.tolist() for x in count_sides(quasi, np.array([0, 3]), np.array([0]), cut, codes, *whole, 8)]
    [[0, 2, 3], [4, 6, 4], [1, 1, 1], [2]]
    """
    most = 0
    for c in classes:
        most += 2 * (h_starts[c + 1] - h_starts[c])
    side_starts = np.zeros(2 * len(classes) + 1, np.int64)
    side_values, side_counts = np.empty(most, np.int32), np.empty(most, np.int64)
    here, lefts = np.zeros(width + 1, np.int64), np.empty(len(classes), np.int64)
    at = 0
    for i in range(len(classes)):
        c = classes[i]
        lefts[i] = _count_left(quasi, starts[c], starts[c + 1], cuts, i, codes, here)
        for side in range(2):
            for e in range(h_starts[c], h_starts[c + 1]):
                count = here[values[e]] if side == 0 else counts[e] - here[values[e]]
                if count > 0:
                    side_values[at], side_counts[at] = values[e], count
                    at += 1
            side_starts[2 * i + 1 + side] = at
        for e in range(h_starts[c], h_starts[c + 1]):
            here[values[e]] = 0
    return side_starts, side_values[:at].copy(), side_counts[:at].copy(), lefts


@bare
def _count_left(quasi: Codes, first: int, end: int, cuts: Codes, i: int, codes: Codes, here: Ints) -> int:
    """Count the sensitive values of rows that go left, suppressed ones (-1) in the last entry; return the number of rows."""
    column, low, high, ties, group = cuts[i, COLUMN], cuts[i, FIRST], cuts[i, BEFORE], cuts[i, TIES], cuts[i, GROUP]
    rest, lefts = whole(0), whole(0)
    for x in range(first, end):
        code = quasi[x, column]
        if ties > 0 and code == high:
            rest += ties
            left = rest >= group
            rest -= group if left else 0
        else:
            left = low <= code < high
        here[codes[x]] += left
        lefts += left
    return lefts


@kernel
def divide_rows(starts: Ints, classes: Ints, left: Flags) -> tuple[Ints, Ints]:
    """Positions of the rows of the `classes`, left ones before right ones in each; and the starts of the sides.

    >>> places, sides = divide_rows(np.array([0, 1, 4]), np.array([1]), np.array([False, False, True, False]))
    >>> places.tolist(), sides.tolist()
    ([2, 1, 3], [0, 1, 3])
    """
    total = 0
    for c in classes:
        total += starts[c + 1] - starts[c]
    places, sides = np.empty(total, np.int64), np.zeros(2 * len(classes) + 1, np.int64)
    at = 0
    for i in range(len(classes)):
        for side in range(2):
            for x in range(starts[classes[i]], starts[classes[i] + 1]):
                if left[x] == (side == 0):
                    places[at] = x
                    at += 1
            sides[2 * i + 1 + side] = at
    return places, sides


class Runs(NamedTuple):
    """Scratch: the rows of a class in lanes (see `lanes`); neighbouring equal rows are stored once."""

    rows: Codes  # flat
    many: Ints  # how many rows each one represents
    used: Ints  # [1] the number of runs


@kernel
def room_for_runs(rows: int, columns: int) -> Runs:
    """Allocate scratch for this many rows."""
    return Runs(np.empty(rows * width_of(columns), np.int32), np.empty(rows, np.int64), np.zeros(1, np.int64))


@bare
def in_lanes(rows: Codes, wide: Ints, runs: Runs) -> None:
    """Store the `wide` columns of these rows as runs.

    >>> runs = room_for_runs(3, 1)
    >>> in_lanes(np.array([[7, 1], [7, 2], [8, 2]], np.int32), np.array([0]), runs)
    >>> runs.used.tolist(), runs.many[:2].tolist()
    ([2], [2, 1])
    """
    width, count = width_of(len(wide)), 0
    for x in range(len(rows)):
        same = 0
        while x > 0 and same < len(wide) and rows[x, wide[same]] == rows[x - 1, wide[same]]:
            same += 1
        if x == 0 or same < len(wide):
            for lane in range(width):
                runs.rows[count * width + lane] = rows[x, wide[lane]] if lane < len(wide) else 0
            runs.many[count] = 0
            count += 1
        runs.many[count - 1] += 1
    runs.used[0] = count


class Atoms(NamedTuple):
    """Scratch: the codes of a column fall into atoms that no cut divides; every atom has the box of its rows.

    Atom a has the codes from `edge[a]` up to `edge[a + 1]`. Divided ties are separate: their two parts follow all atoms, and
    then follow the two sides of the current cut.
    """

    edge: Ints  # [atoms + 1]
    size: Ints  # [atoms]
    tied: Ints  # [atoms] the number of last cuts that include those dividing it: 0 if none
    rest: Ints  # [cuts] tied rows assigned so far
    of: Codes  # [codes] the atom of a code, counted from the column's lowest
    boxes: Codes  # flat, see `lanes`
    losses: Reals  # [cuts] of both sides, summed over rows


@kernel
def room_for(cuts: int, columns: int, codes: int) -> Atoms:
    """Allocate scratch for this many cuts of one column; `codes`: the length of its lookup table."""
    atoms = 3 * cuts + 1
    boxes = 2 * (atoms + 2 * cuts + 2) * width_of(columns)
    return Atoms(
        np.empty(atoms + 1, np.int64), np.empty(atoms, np.int64), np.empty(atoms, np.int64), np.empty(cuts, np.int64),
        np.empty(codes, np.int32), np.empty(boxes, np.int32), np.empty(cuts),
    )  # fmt: skip


@bare
def joint_losses(scales: Scales, runs: Runs, wide: Ints, place: int, ranked: Codes, cuts: Codes, atoms: Atoms) -> None:
    """Compute the `losses` of the atoms: of both sides of each of these cuts of one column.

    `runs` have the `wide` columns only, those in which the class has a loss: in the others neither side can have one. The cuts
    belong to the column at this index of `wide`, with the sorted codes `ranked`. Rows are visited once for all cuts; then the
    sides of a cut are merged from atoms.
    """
    width = width_of(len(wide))
    count = _build_atoms(cuts, ranked, width, atoms)
    low, boxes, rows = ranked[0], atoms.boxes, runs.rows
    looked_up = ranked[-1] - low < len(atoms.of)
    for a in range(count if looked_up else 0):
        for code in range(max(atoms.edge[a], low), min(atoms.edge[a + 1], ranked[-1] + 1)):
            atoms.of[code - low] = a
    for x in range(runs.used[0]):
        code = rows[x * width + place]
        atom = atoms.of[code - low] if looked_up else _atom(atoms.edge, count, whole(code))
        if atoms.tied[atom] == 0:
            widen(boxes, atom, rows, x, width)
        for i in range(len(cuts) - atoms.tied[atom], len(cuts)):
            if cuts[i, BEFORE] == code:
                dealt = atoms.rest[i] + runs.many[x] * cuts[i, TIES]
                lefts = whole(dealt / cuts[i, GROUP])  # exact below 2**53, and faster than integer division
                atoms.rest[i] = dealt - lefts * cuts[i, GROUP]
                if lefts > 0:
                    widen(boxes, count + 2 * i, rows, x, width)
                if lefts < runs.many[x]:
                    widen(boxes, count + 2 * i + 1, rows, x, width)
    for i in range(len(cuts)):
        if cuts[i, TIES] > 0:
            for side in range(2):
                _join(boxes, _atom(atoms.edge, count, whole(cuts[i, BEFORE])), count + 2 * i + side, width)
    for i in range(len(cuts)):
        atoms.losses[i] = _sides_loss(scales, wide, cuts[i], i, len(cuts), atoms, count)


@bare
def _build_atoms(cuts: Codes, ranked: Codes, width: int, atoms: Atoms) -> int:
    """Create empty atoms for these ascending cuts and return their number. The first has all codes before any cut."""
    edge = atoms.edge
    edge[0] = -1
    count = whole(1)
    for i in range(len(cuts)):
        count = _with_edge(edge, count, whole(cuts[i, FIRST]))
        count = _with_edge(edge, count, whole(cuts[i, BEFORE]))
        if cuts[i, TIES] > 0:
            count = _with_edge(edge, count, whole(cuts[i, BEFORE]) + 1)
    edge[count] = np.iinfo(np.int64).max
    before = 0
    for a in range(count):
        upto = smaller(ranked, edge[a + 1]) if a + 1 < count else len(ranked)
        atoms.size[a], atoms.tied[a] = upto - before, 0
        before = upto
    for i in range(len(cuts) - 1, -1, -1):
        atoms.rest[i] = 0
        if cuts[i, TIES] > 0:
            atoms.tied[_atom(edge, count, whole(cuts[i, BEFORE]))] = len(cuts) - i
    for box in range(count + 2 * len(cuts)):
        _empty(atoms.boxes, box, width)
    return count


@bare
def _with_edge(edge: Ints, count: int, new: int) -> int:
    """Insert an edge into the ascending ones unless it exists, and return their number."""
    at = _atom(edge, count, new)
    if edge[at] == new:
        return count
    for x in range(count, at + 1, -1):
        edge[x] = edge[x - 1]
    edge[at + 1] = new
    return count + 1


@bare
def _empty(boxes: Codes, box: int, width: int) -> None:
    for lane in range(2 * box * width, 2 * box * width + width):
        boxes[lane], boxes[lane + width] = np.iinfo(np.int32).max, -1


@bare
def _atom(edge: Ints, count: int, code: int) -> int:
    lo, hi = 0, count
    while hi - lo > 1:
        middle = (lo + hi) >> 1
        if edge[middle] <= code:
            lo = middle
        else:
            hi = middle
    return lo


@bare
def _join(boxes: Codes, box: int, other: int, width: int) -> None:
    """Widen a box to cover another one, as if its lower and upper ends were two rows; an empty one is ignored."""
    if boxes[2 * other * width] <= boxes[(2 * other + 1) * width]:
        widen(boxes, box, boxes, 2 * other, width)
        widen(boxes, box, boxes, 2 * other + 1, width)


@bare
def _sides_loss(scales: Scales, wide: Ints, cut: Codes, which: int, cuts: int, atoms: Atoms, count: int) -> float:
    """Loss of both sides of one cut, from its atoms and, where it divides ties, from their two parts."""
    width, sides, boxes = width_of(len(wide)), count + 2 * cuts, atoms.boxes
    left, every = cut[TIES], 0
    for side in range(2):
        _empty(boxes, sides + side, width)
        _join(boxes, sides + side, count + 2 * which + side, width)
    for a in range(count):
        every += atoms.size[a]
        inside = cut[FIRST] <= atoms.edge[a] < cut[BEFORE]
        left += atoms.size[a] if inside else 0
        if atoms.size[a] > 0 and not (cut[TIES] > 0 and atoms.edge[a] == cut[BEFORE]):
            _join(boxes, sides + (0 if inside else 1), a, width)
    total = 0.0
    for lane, j in enumerate(wide):
        for side in range(2):
            lo, hi = boxes[2 * (sides + side) * width + lane], boxes[(2 * (sides + side) + 1) * width + lane]
            total += (left if side == 0 else every - left) * scales.weight[j] * range_loss(scales, j, whole(lo), whole(hi))
    return total
