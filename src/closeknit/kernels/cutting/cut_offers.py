"""Candidate cuts of a class, in the order in which they are tried (a cut: see `cut_sides`).

Cuts with fewer than `k` rows on a side are not offered, nor cuts of a column without loss. Losses are compared to
nine digits, so that rounding decides nothing: of equal ones the cut of the wider column is first, then the one found first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import bare, kernel, truth, whole
from closeknit.kernels.counting.sorting import ascend, smaller
from closeknit.kernels.cutting.cut_sides import (
    BEFORE,
    COLUMN,
    FIRST,
    GROUP,
    TIES,
    Runs,
    in_lanes,
    joint_losses,
    room_for,
    room_for_runs,
)
from closeknit.kernels.geometry.boxes import Codes, Ints, Scales, range_loss
from closeknit.kernels.lanes import width_of

EIGHTHS, QUARTERS = 8, 4  # `best`: cuts between values near 7 quantiles, and 3 quantiles at which ties are divided
MOST = 1 + (EIGHTHS - 1) + (QUARTERS - 1)  # cuts of one column; the first is between children
DIGITS = 1e9
SPARSE = 65  # up to so many codes, or four per row, they are counted, not sorted
ABOVE_LOSS = 1 << 31  # more than any loss in these digits


class Column(NamedTuple):
    """A column of a class, its index among those with a loss, and its lowest and highest code."""

    j: int
    place: int
    lo: int
    hi: int


class CutRule(NamedTuple):
    """Which cuts of a column are offered."""

    k: int  # rows of a side, at least
    relaxed: bool  # whether ties may be divided
    best: bool  # at several quantiles, not only in the middle


@kernel
def class_boxes(quasi: Codes, starts: Ints) -> tuple[Codes, Codes]:
    """Smallest and largest code per class and column.

    >>> lo, hi = class_boxes(np.array([[1], [4], [2]], np.int32), np.array([0, 2, 3]))
    >>> lo.tolist(), hi.tolist()
    ([[1], [2]], [[4], [2]])
    """
    d = quasi.shape[1]
    lo = np.full((len(starts) - 1, d), np.iinfo(np.int32).max, np.int32)
    hi = np.full((len(starts) - 1, d), -1, np.int32)
    for c in range(len(starts) - 1):
        for x in range(starts[c], starts[c + 1]):
            for j in range(d):
                lo[c, j] = min(lo[c, j], quasi[x, j])
                hi[c, j] = max(hi[c, j], quasi[x, j])
    return lo, hi


@kernel
def offers(scales: Scales, quasi: Codes, starts: Ints, k: int, relaxed: bool, best: bool,
           try_all: bool) -> tuple[Ints, Codes]:  # fmt: skip
    """Candidate cuts of every class: class c has `cuts[at[c]:at[c + 1]]`.

    With `try_all` the cuts of all columns are sorted by the loss of both sides; else column by column, the widest first, and
    inside a column by loss (`best`) or as found (the middle of the rows first).

    >>> from kernel_inputs import flat_scales
    >>> rows = np.array([[0], [0], [0], [1], [4]], np.int32)
    >>> at, cuts = offers(flat_scales([5]), rows, np.array([0, 5]), 1, False, False, False)
    >>> at.tolist(), cuts.tolist()
    ([0, 1], [[0, 0, 1, 0, 1]])
    """
    m, d = len(starts) - 1, quasi.shape[1]
    lo, hi = class_boxes(quasi, starts)
    at = np.zeros(m + 1, np.int64)
    cuts = np.empty((max(4 * m, 64), 5), np.int32)
    found, keys, by_loss = np.empty((MOST * d, 5), np.int32), np.empty(MOST * d, np.int64), best or try_all
    most = 0
    for c in range(m):
        most = max(most, starts[c + 1] - starts[c])
    rule, atoms = CutRule(k, relaxed, best), room_for(whole(MOST), d, 4 * most + SPARSE)
    runs, room = room_for_runs(whole(most if by_loss else 0), d), np.empty(most, np.int32)
    for c in range(m):
        rows, ranked = quasi[starts[c] : starts[c + 1]], room[: starts[c + 1] - starts[c]]
        wide = _widest_first(scales, lo[c], hi[c]) if len(rows) >= 2 * k else np.empty(0, np.int64)
        if by_loss:
            in_lanes(rows, wide, runs)
        width, count = width_of(len(wide)), whole(0)
        for place, j in enumerate(wide):
            _rank(rows, runs, width, Column(j, place, whole(lo[c, j]), whole(hi[c, j])), atoms.of, ranked)
            before, count = count, _points(scales, ranked, j, rule, found, count)
            if count > before and by_loss:
                joint_losses(scales, runs, wide, place, ranked, found[before:count], atoms)
            for i in range(before, count):
                lost = np.int64(np.rint(atoms.losses[i - before] / len(rows) * DIGITS)) if by_loss else 0
                keys[i] = (lost if try_all else place * ABOVE_LOSS + lost) * len(keys) + i  # of equal ones the first found
        if at[c] + count > len(cuts):
            cuts = _longer(cuts, at[c], at[c] + count)
        ascend(keys[:count])
        for i in range(count):
            for field in range(5):
                cuts[at[c] + i, field] = found[keys[i] % len(keys), field]
        at[c + 1] = at[c] + count
    return at, cuts[: at[m]]


@kernel
def _widest_first(scales: Scales, lo: Codes, hi: Codes) -> Ints:
    """Columns in which a box has a loss, largest first."""
    d = len(lo)
    keys, count = np.empty(d, np.int64), 0
    for j in range(d):
        width = scales.weight[j] * range_loss(scales, j, whole(lo[j]), whole(hi[j]))
        if width > 0.0:
            keys[count] = (ABOVE_LOSS - np.int64(np.rint(width * DIGITS))) * d + j
            count += 1
    ascend(keys[:count])
    for i in range(count):  # of the whole array numba would compile a function of its own
        keys[i] %= d
    return keys[:count]


@kernel
def _longer(cuts: Codes, used: int, least: int) -> Codes:
    longer = np.empty((max(2 * len(cuts), least), 5), np.int32)
    for i in range(used):
        for field in range(5):
            longer[i, field] = cuts[i, field]
    return longer


@bare
def _points(scales: Scales, ranked: Codes, j: int, rule: CutRule, found: Codes, count: int) -> int:
    """Append the cuts of one column to the `count` found so far and return the new number."""
    s, k = len(ranked), rule.k
    if rule.best or not rule.relaxed:
        count = _between_children(scales, ranked, j, rule, found, count)
    if rule.best:
        for i in range(1, EIGHTHS):
            count = _between_values(ranked, j, s * i // EIGHTHS, k, whole(1), found, count)
        for i in range(1, QUARTERS if rule.relaxed else 0):
            count = _through_ties(ranked, j, s * i // QUARTERS, k, truth(False), found, count)
    elif rule.relaxed:
        count = _through_ties(ranked, j, (s + 1) // 2, k, truth(True), found, count)
    else:
        count = _between_values(ranked, j, (s - 1) // 2, k, whole(2), found, count)
    return count


@bare
def _count(rows: Codes, runs: Runs, width: int, column: Column, counts: Codes) -> None:
    """Count the rows of each code of a column, from runs if there are any."""
    distinct, lane, many = runs.used[0], runs.rows, runs.many
    for x in range(distinct):
        counts[lane[x * width + column.place] - column.lo] += many[x]
    for x in range(len(rows) if distinct == 0 else 0):
        counts[rows[x, column.j] - column.lo] += 1


@kernel
def _rank(rows: Codes, runs: Runs, width: int, column: Column, counts: Codes, ranked: Codes) -> None:
    """Sort the codes of one column: by counting where they are dense."""
    lo, hi = column.lo, column.hi
    if hi - lo > 4 * len(rows) + SPARSE - 1:
        sparse = rows[:, column.j].astype(np.int64)
        ascend(sparse)
        for x in range(len(rows)):
            ranked[x] = sparse[x]
        return
    counts[: hi - lo + 1] = 0
    _count(rows, runs, width, column, counts)
    at = 0
    for code in range(hi - lo + 1):
        for _ in range(counts[code]):
            ranked[at] = lo + code
            at += 1


@bare
def _between_values(ranked: Codes, j: int, place: int, k: int, sides: int, found: Codes, count: int) -> int:
    """Cut before or after the value at a rank: on either side of its tie, the side nearer to the middle first."""
    s, value = len(ranked), ranked[place]
    below, upto = smaller(ranked, whole(value)), smaller(ranked, whole(value) + 1)
    aim = s if sides == 2 else 2 * place
    after_first = abs(2 * upto - aim) <= abs(2 * below - aim)
    for turn in range(2):
        edge = upto if after_first == (turn == 0) else below
        if k <= edge <= s - k:
            i, before = count - 1, ranked[edge]
            while i >= 0 and found[i, COLUMN] == j and (found[i, FIRST] != ranked[0] or found[i, BEFORE] != before):
                i -= 1
            if i < 0 or found[i, COLUMN] != j:  # no cut of this column has these ends
                found[count, COLUMN], found[count, FIRST], found[count, BEFORE] = j, ranked[0], before
                found[count, TIES], found[count, GROUP] = 0, 1
                count += 1
            sides -= 1
            if sides == 0:
                break
    return count


@bare
def _through_ties(ranked: Codes, j: int, place: int, k: int, anywhere: bool, found: Codes, count: int) -> int:
    """Cut so that exactly `place` rows go left; ties are divided. `anywhere`: also if no tie is divided."""
    s = len(ranked)
    if not k <= place <= s - k:
        return count
    value = ranked[place - 1]
    below, upto = smaller(ranked, whole(value)), smaller(ranked, whole(value) + 1)
    if place < upto or anywhere:
        found[count, COLUMN], found[count, FIRST], found[count, BEFORE] = j, ranked[0], value
        found[count, TIES], found[count, GROUP] = place - below, upto - below
        count += 1
    return count


@bare
def _between_children(scales: Scales, ranked: Codes, j: int, rule: CutRule, found: Codes, count: int) -> int:
    """Cut so that the largest child of the lowest node over the class goes left, the others right.

    Only if it has an eighth of the rows: smaller cuts would need as many rounds as there are children.
    """
    s, k, most, x = len(ranked), rule.k, 0, 0
    node = _cover(scales, j, ranked[0], ranked[s - 1])
    if node < 0 and not rule.best and ranked[s - 1] < scales.size[j]:
        return count  # numbers are cut in the middle first
    while x < s:
        last = _last_of_child(scales, j, ranked[x], node, ranked[s - 1])
        end = smaller(ranked, whole(last) + 1)
        if k <= end - x <= s - k and end - x > most and EIGHTHS * (end - x) >= s:
            most = end - x
            found[count, COLUMN], found[count, FIRST], found[count, BEFORE] = j, ranked[x], last + 1
            found[count, TIES], found[count, GROUP] = 0, 1
        x = end
    return count + (most > 0)


@bare
def _cover(scales: Scales, j: int, lo: int, hi: int) -> int:
    """Find the lowest node over a range; -1 for numbers."""
    node = scales.leaf_node[scales.leaf_start[j] + lo]
    while node >= 0 and scales.node_hi[node] < hi:
        node = scales.node_parent[node]
    return node


@bare
def _last_of_child(scales: Scales, j: int, code: int, node: int, highest: int) -> int:
    """Find the last code under the child of a node that contains a code.

    Numbers have a node over all values and the missing one, and below it one over all values.
    """
    if node < 0:
        return scales.size[j] - 1 if code < scales.size[j] == highest else code
    child = scales.leaf_node[scales.leaf_start[j] + code]
    while scales.node_parent[child] != node:
        child = scales.node_parent[child]
    return scales.node_hi[child]
