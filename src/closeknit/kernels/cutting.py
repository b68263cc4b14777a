"""Classes cut in two: which rows go left, what both sides count and lose, and the order of rows after a round of cuts.

A cut is one line of five numbers. In column COLUMN the rows with codes from FIRST up to (not with) BEFORE go left; of the
GROUP rows with the code BEFORE itself, TIES go left too, spread evenly over their order.

Rows stand class by class: class `c` has the places `starts[c]` to `starts[c + 1]`. A histogram is sparse as in `core.classes`:
`counts` of the ascending `values`, class by class from `h_starts` on. The right side is the whole less the left one, so only
rows that go left are counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from closeknit.kernels.boxes import Codes, Ints, Reals, Scales, range_loss

Flags = NDArray[np.bool_]
COLUMN, FIRST, BEFORE, TIES, GROUP = range(5)


@njit(cache=True, nogil=True)
def mark(quasi: Codes, starts: Ints, classes: Ints, cuts: Codes, left: Flags) -> Ints:
    """Cut class `classes[i]` by `cuts[i]`: writes down in `left` who goes left, and gives how many do.

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
                left[x], rest = _dealt(cut, rest)
            sizes[i] += left[x]
    return sizes


@njit(cache=True, nogil=True)
def _dealt(cut: Codes, rest: int) -> tuple[bool, int]:
    """Whether the next row of a tie goes left, and what is carried on: TIES of GROUP rows do, spread evenly."""
    rest += cut[TIES]
    return rest >= cut[GROUP], rest - cut[GROUP] if rest >= cut[GROUP] else rest


@njit(cache=True, nogil=True)
def count_sides(starts: Ints, classes: Ints, left: Flags, codes: Codes, h_starts: Ints, values: Codes, counts: Ints,
                width: int) -> tuple[Ints, Codes, Ints]:  # fmt: skip
    """Histograms of both sides of each of the `classes`: left, right, left, right.

    >>> left, codes = np.array([True, False, True]), np.array([4, 4, 6], np.int32)
    >>> whole = np.array([0, 2]), np.array([4, 6], np.int32), np.array([2, 1])
    >>> [x.tolist() for x in count_sides(np.array([0, 3]), np.array([0]), left, codes, *whole, 8)]
    [[0, 2, 3], [4, 6, 4], [1, 1, 1]]
    """
    most = 0
    for c in classes:
        most += 2 * (h_starts[c + 1] - h_starts[c])
    side_starts = np.zeros(2 * len(classes) + 1, np.int64)
    side_values, side_counts = np.empty(most, np.int32), np.empty(most, np.int64)
    here = np.zeros(width, np.int64)
    at = 0
    for i in range(len(classes)):
        c = classes[i]
        for x in range(starts[c], starts[c + 1]):
            if left[x] and codes[x] >= 0:
                here[codes[x]] += 1
        for side in range(2):
            for e in range(h_starts[c], h_starts[c + 1]):
                count = here[values[e]] if side == 0 else counts[e] - here[values[e]]
                if count > 0:
                    side_values[at], side_counts[at] = values[e], count
                    at += 1
            side_starts[2 * i + 1 + side] = at
        for e in range(h_starts[c], h_starts[c + 1]):
            here[values[e]] = 0
    return side_starts, side_values[:at].copy(), side_counts[:at].copy()


@njit(cache=True, nogil=True)
def divided(starts: Ints, classes: Ints, left: Flags) -> tuple[Ints, Ints]:
    """Places of the rows of the `classes`, in each the left ones before the right ones; and where the sides start.

    >>> places, sides = divided(np.array([0, 1, 4]), np.array([1]), np.array([False, False, True, False]))
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


@njit(cache=True, nogil=True)
def ascend(numbers: Ints) -> None:
    """Sorts in place. The one call of a library's sort in these files: each takes seconds to compile.

    >>> numbers = np.array([3, 1, 2])
    >>> ascend(numbers)
    >>> numbers.tolist()
    [1, 2, 3]
    """
    numbers.sort()


class Atoms(NamedTuple):
    """Scratch: the codes of a column fall into atoms that no cut divides; every atom has the box of its rows.

    Atom a holds the codes from `edge[a]` up to `edge[a + 1]`. Ties are divided beside: their two parts stand behind all atoms.
    """

    edge: Ints  # [atoms]
    size: Ints  # [atoms]
    tied: Ints  # [atoms] cuts that divide it
    rest: Ints  # [cuts] of ties dealt out so far
    lo: Codes  # [atoms + parts, d]
    hi: Codes


@njit(cache=True, nogil=True)
def room_for(cuts: int, d: int) -> Atoms:
    """Scratch for as many cuts of one column."""
    atoms = 3 * cuts + 1
    box = (atoms + 2 * cuts, d)
    return Atoms(
        np.empty(atoms, np.int64), np.empty(atoms, np.int64), np.empty(atoms, np.int64), np.empty(cuts, np.int64),
        np.empty(box, np.int32), np.empty(box, np.int32),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def joint_losses(scales: Scales, rows: Codes, wide: Ints, cuts: Codes, atoms: Atoms, losses: Reals) -> None:
    """What both sides of each of these cuts of one column lose together, every row counted.

    `wide`: the columns in which the class loses anything; in the others neither side can. Rows are looked at once for all
    cuts; then the sides of a cut are put together from atoms.
    """
    count = _made(cuts, atoms)
    for x in range(len(rows)):
        code = rows[x, cuts[0, COLUMN]]
        atom = _atom(atoms.edge, count, code)
        atoms.size[atom] += 1
        _widen(atoms, atom, rows, x, wide)
        for i in range(len(cuts) if atoms.tied[atom] > 0 else 0):
            if cuts[i, TIES] > 0 and cuts[i, BEFORE] == code:
                left, atoms.rest[i] = _dealt(cuts[i], atoms.rest[i])
                _widen(atoms, count + 2 * i + (0 if left else 1), rows, x, wide)
    for i in range(len(cuts)):
        losses[i] = _sides_loss(scales, wide, cuts[i], i, atoms, count)


@njit(cache=True, nogil=True)
def _made(cuts: Codes, atoms: Atoms) -> int:
    """Empty atoms for these cuts, ascending; how many there are. The first one has all codes before any cut."""
    edge = atoms.edge
    edge[0] = -1
    edges = 1
    for i in range(len(cuts)):
        edge[edges], edge[edges + 1], edge[edges + 2] = cuts[i, FIRST], cuts[i, BEFORE], cuts[i, BEFORE] + 1
        edges += 3 if cuts[i, TIES] > 0 else 2
    ascend(edge[:edges])
    count = 1
    for i in range(1, edges):
        if edge[i] != edge[count - 1]:
            edge[count] = edge[i]
            count += 1
    atoms.size[:count], atoms.tied[:count], atoms.rest[:] = 0, 0, 0
    parts = count + 2 * len(cuts)
    atoms.lo[:parts], atoms.hi[:parts] = np.iinfo(np.int32).max, -1
    for i in range(len(cuts)):
        if cuts[i, TIES] > 0:
            atoms.tied[_atom(edge, count, cuts[i, BEFORE])] += 1
    return count


@njit(cache=True, nogil=True)
def _atom(edge: Ints, count: int, code: int) -> int:
    lo, hi = 0, count
    while hi - lo > 1:
        middle = (lo + hi) >> 1
        if edge[middle] <= code:
            lo = middle
        else:
            hi = middle
    return lo


@njit(cache=True, nogil=True)
def _widen(atoms: Atoms, atom: int, rows: Codes, x: int, wide: Ints) -> None:
    for j in wide:
        atoms.lo[atom, j] = min(atoms.lo[atom, j], rows[x, j])
        atoms.hi[atom, j] = max(atoms.hi[atom, j], rows[x, j])


@njit(cache=True, nogil=True)
def _sides_loss(scales: Scales, wide: Ints, cut: Codes, which: int, atoms: Atoms, count: int) -> float:
    """Loss of both sides of one cut, from its atoms and, where it divides ties, from their two parts."""
    left = cut[TIES]
    every = 0
    for atom in range(count):
        every += atoms.size[atom]
        if cut[FIRST] <= atoms.edge[atom] < cut[BEFORE]:
            left += atoms.size[atom]
    total = 0.0
    for j in wide:
        for side in range(2):
            lo, hi = atoms.lo[count + 2 * which + side, j], atoms.hi[count + 2 * which + side, j]
            for atom in range(count):
                inside = cut[FIRST] <= atoms.edge[atom] < cut[BEFORE]
                divided = cut[TIES] > 0 and atoms.edge[atom] == cut[BEFORE]
                if inside == (side == 0) and not divided:
                    lo, hi = min(lo, atoms.lo[atom, j]), max(hi, atoms.hi[atom, j])
            size = left if side == 0 else every - left
            total += size * scales.weight[j] * range_loss(scales, j, lo, hi)
    return total
