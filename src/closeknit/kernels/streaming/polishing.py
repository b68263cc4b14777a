"""Polishing: rows move to other classes of the same few, or are swapped with rows there, while the loss falls.

A class keeps k persons: the persons of both classes are counted before a row moves. Rows are visited in turn, several times. A
row tries all classes; the one where both classes together lose least takes it. If its own class cannot spare it, or that does
not pay, it is swapped with the row of any class that fits best into its own.

The exchange of tables (`kernels.exchange`) has the same shape and another geometry: whole codes of domains that are known, with
tables of range costs and a guard for all models. Rows of a stream are numbers of domains that may be infinite, and k is counted
in persons. A kernel is compiled for one geometry, so the two are separate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.geometry.declared_axes import Axes, Ints, Reals, range_cost

GAIN = 1e-9  # smaller gains may be rounding errors
NO_ROW = whole(-1)


class State(NamedTuple):
    """Classes; changed in place."""

    rows: Reals  # [n, d]
    person_of: Ints  # [n], or empty if every row is its own person
    class_of: Ints  # [n]
    after: Ints  # [n] next row of the class, -1 at its end
    first: Ints  # [classes]
    size: Ints  # [classes]
    heads: Ints  # [classes] persons
    ends: Reals  # [classes, d, 6]: lowest, rows there, next above it; highest, rows there, next below it
    loss: Reals  # [classes] of one row
    lo: Reals  # [d] the box of a class without one of its rows
    hi: Reals


@kernel
def polish_classes(axes: Axes, rows: Reals, person_of: Ints, class_of: Ints, count: int, k: int, sweeps: int) -> int:
    """Improve classes of at least k persons; `class_of` is changed. Returns the number of changes.

    Args:
        axes: the geometry of the quasi-identifiers.
        rows: the rows.
        person_of: the number of each row's person; empty if every row is its own.
        class_of: the class of each row.
        count: the number of classes.
        k: the fewest persons of a class.
        sweeps: how often each row is visited at most.

    >>> from kernel_inputs import number_axes
    >>> ages, class_of = np.array([[30.0], [70.0], [31.0], [72.0]]), np.array([0, 0, 1, 1])
    >>> polish_classes(number_axes([100.0]), ages, np.empty(0, np.int64), class_of, 2, 2, 3), class_of.tolist()
    (1, [1, 0, 1, 0])
    """
    n, d = rows.shape
    state = State(
        rows, person_of, class_of, np.full(n, -1, np.int64), np.full(count, -1, np.int64), np.zeros(count, np.int64),
        np.zeros(count, np.int64), np.empty((count, d, 6)), np.zeros(count), np.empty(d), np.empty(d),
    )  # fmt: skip
    for row in range(n - 1, -1, -1):
        _link(state, row, class_of[row])
    for c in range(count):
        for j in range(d):
            _survey(state, c, j)
        state.loss[c] = _measure_loss(axes, state, c)
    total = 0
    for _ in range(sweeps):
        changes = 0
        for row in range(n):
            changes += _offer_row(axes, state, row, k)
        total += changes
        if changes == 0:
            break
    return total


@bare
def _offer_row(axes: Axes, state: State, row: int, k: int) -> bool:
    """Move or swap one row where that pays most."""
    c = state.class_of[row]
    size, loss = state.size[c], state.loss[c]
    if size == 1:  # without its row a class has no box
        return False
    shrink = loss - _measure_without(axes, state, c, row)
    spare = state.heads[c] > k or (len(state.person_of) > 0 and _has_twin(state, c, row))
    if shrink <= GAIN and not spare:
        return False
    best, target, other, swapped = GAIN, -1, NO_ROW, size * shrink
    for to in range(len(state.size)):
        if to == c:
            continue
        there = state.size[to]
        room = loss + (size - 1) * shrink - state.loss[to] if spare else -np.inf
        most = max((room - best) / (there + 1), (swapped - best) / there)
        if most <= 0.0:
            continue
        more = _measure_stretch(axes, state, to, row, most)
        if room - (there + 1) * more > best:
            best, target, other = room - (there + 1) * more, to, NO_ROW
        if swapped - there * more > best:
            found, stretch = _find_partner(axes, state, row, to, (swapped - there * more - best) / size, k)
            if found >= 0:
                best, target, other = swapped - there * more - size * stretch, to, found
    if target < 0:
        return False
    _move(axes, state, row, target)
    if other >= 0:
        _move(axes, state, other, c)
    return True


@bare
def _find_partner(axes: Axes, state: State, row: int, to: int, most: float, k: int) -> tuple[int, float]:
    """The row of class `to` that stretches the class of `row` without `row` least, and by how much; -1: none by less."""
    found, y = NO_ROW, state.first[to]
    while y >= 0:
        more = 0.0
        for j in range(state.rows.shape[1]):
            more += _measure_wider(axes, j, state.rows[y, j], state.lo[j], state.hi[j])
            if more >= most:
                break
        if more < most and _keeps_persons(state, row, y, k):
            found, most = y, more
            if more <= 0.0:
                break
        y = state.after[y]
    return found, most


@bare
def _keeps_persons(state: State, row: int, other: int, k: int) -> bool:
    """Whether both classes have k persons after a swap."""
    if len(state.person_of) == 0 or state.person_of[row] == state.person_of[other]:
        return True
    c, to = state.class_of[row], state.class_of[other]
    mine = state.heads[c] - (not _has_twin(state, c, row)) + (not _has_twin(state, c, other))
    theirs = state.heads[to] - (not _has_twin(state, to, other)) + (not _has_twin(state, to, row))
    return mine >= k and theirs >= k


@bare
def _has_twin(state: State, c: int, row: int) -> bool:
    """Whether a class has another row of the same person."""
    if len(state.person_of) == 0:
        return False
    y = state.first[c]
    while y >= 0:
        if y != row and state.person_of[y] == state.person_of[row]:
            return True
        y = state.after[y]
    return False


@bare
def _measure_without(axes: Axes, state: State, c: int, row: int) -> float:
    """Loss of class c without one of its rows; stores the box without it."""
    total = 0.0
    for j in range(state.rows.shape[1]):
        x, lo, hi = state.rows[row, j], state.ends[c, j, 0], state.ends[c, j, 3]
        if x == lo and state.ends[c, j, 1] == 1.0:
            lo = state.ends[c, j, 2]
        if x == hi and state.ends[c, j, 4] == 1.0:
            hi = state.ends[c, j, 5]
        state.lo[j], state.hi[j] = lo, hi
        total += axes.weight[j] * range_cost(axes, j, lo, hi)
    return total


@bare
def _measure_stretch(axes: Axes, state: State, c: int, row: int, most: float) -> float:
    """Increase of the loss per row of class c if a row is added; inexact above `most`."""
    more = 0.0
    for j in range(state.rows.shape[1]):
        more += _measure_wider(axes, j, state.rows[row, j], state.ends[c, j, 0], state.ends[c, j, 3])
        if more >= most:
            break
    return more


@bare
def _measure_wider(axes: Axes, j: int, x: float, lo: float, hi: float) -> float:
    """Increase of the cost of the range lo..hi in column j when it includes x."""
    if x < lo:
        return axes.weight[j] * (range_cost(axes, j, x, hi) - range_cost(axes, j, lo, hi))
    if x > hi:
        return axes.weight[j] * (range_cost(axes, j, lo, x) - range_cost(axes, j, lo, hi))
    return 0.0


@bare
def _measure_loss(axes: Axes, state: State, c: int) -> float:
    total = 0.0
    for j in range(state.rows.shape[1]):
        total += axes.weight[j] * range_cost(axes, j, state.ends[c, j, 0], state.ends[c, j, 3])
    return total


@bare
def _link(state: State, row: int, c: int) -> None:
    """Add a row to the list and to the numbers of a class."""
    state.heads[c] += len(state.person_of) == 0 or not _has_twin(state, c, row)
    state.after[row] = state.first[c]
    state.first[c] = row
    state.size[c] += 1
    state.class_of[row] = c


@bare
def _unlink(state: State, row: int) -> None:
    c = state.class_of[row]
    y = state.first[c]
    if y == row:
        state.first[c] = state.after[row]
    else:
        while state.after[y] != row:
            y = state.after[y]
        state.after[y] = state.after[row]
    state.size[c] -= 1
    state.heads[c] -= len(state.person_of) == 0 or not _has_twin(state, c, row)


@bare
def _move(axes: Axes, state: State, row: int, to: int) -> None:
    """Move a row to another class."""
    c = state.class_of[row]
    _unlink(state, row)
    _link(state, row, to)
    for j in range(state.rows.shape[1]):
        x = state.rows[row, j]
        if x <= state.ends[c, j, 2] or x >= state.ends[c, j, 5]:
            _survey(state, c, j)
        if x <= state.ends[to, j, 2] or x >= state.ends[to, j, 5]:
            _survey(state, to, j)
    state.loss[c], state.loss[to] = _measure_loss(axes, state, c), _measure_loss(axes, state, to)


@bare
def _survey(state: State, c: int, j: int) -> None:
    """Both ends of one column, from all rows of a class."""
    lo, lo_rows, lo_next, hi, hi_rows, hi_next = np.inf, 0.0, np.inf, -np.inf, 0.0, -np.inf
    row = state.first[c]
    while row >= 0:
        x = state.rows[row, j]
        if x < lo:
            lo, lo_rows, lo_next = x, 1.0, lo
        elif x == lo:
            lo_rows += 1.0
        elif x < lo_next:
            lo_next = x
        if x > hi:
            hi, hi_rows, hi_next = x, 1.0, hi
        elif x == hi:
            hi_rows += 1.0
        elif x > hi_next:
            hi_next = x
        row = state.after[row]
    end = state.ends[c, j]
    end[0], end[1], end[2], end[3], end[4], end[5] = lo, lo_rows, lo_next, hi, hi_rows, hi_next
