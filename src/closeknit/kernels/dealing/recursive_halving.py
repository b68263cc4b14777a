"""Recursive halving: each cut in two splits every prefix of two orders of the rows evenly, within one row.

Rows are joined in pairs, by the one order and by the other; each row has one partner at most in either, so the pairs form
paths and even cycles, which two colours can paint. Both halves get one row of every pair: of any prefix, all pairs inside it
are split evenly, and at most one row has its partner beyond. After any number of cuts a group of share 1/g has of a prefix of
F rows less than one row more or less than F/g.

The remaining freedom is used for similar quasi-identifiers. Rows that are equal in both sensitive attributes are joined first,
in both orders at once, those of the lower half along the curve with those of the upper half; only the remaining rows, at most
one per cell, are joined with their neighbours. Each path or cycle is oriented so that its rows low on the curve go to
the first half.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.boxes import Codes, Ints


def halve_groups(one: Ints, other: Ints, place: Ints, k: int) -> Codes:
    """Class of each row: groups are cut while both halves keep k rows. `place`: each row's rank along a curve.

    >>> halve_groups(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.arange(4), 2).tolist()
    [0, 1, 1, 0]
    """
    n = len(one)
    group: Ints = np.zeros(n, np.int64)
    by_place = np.argsort(place)
    while True:
        size = np.bincount(group, minlength=1)
        rows = np.flatnonzero(size[group] // 2 >= k)
        if len(rows) == 0:
            return group.astype(np.int32)
        score = _scores(group[by_place], size)[np.argsort(by_place)]
        joined = _pair_rows(group, one, other, place, rows)
        side = _colours(rows, *joined, score)
        _, group = np.unique(2 * group + side, return_inverse=True)


def _scores(group: Ints, size: Ints) -> Ints:
    """Distance of each row from the middle of its group along the curve, negative below it."""
    order = np.argsort(group, kind="stable")
    start = np.cumsum(size) - size
    rank = np.empty(len(group), np.int64)
    rank[order] = np.arange(len(group)) - start[group[order]]
    return 2 * rank - size[group] + 1


def _runs(*columns: Ints) -> tuple[Ints, Ints]:
    """Rank inside the run of equal entries and the run's length; the columns are sorted."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    start = np.flatnonzero(new)
    length = np.diff(np.append(start, len(new)))
    return np.arange(len(new)) - np.repeat(start, length), np.repeat(length, length)


def _pair_rows(group: Ints, one: Ints, other: Ints, place: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Partners in the first and in the second order; -1: none."""
    first, second = np.full(len(group), -1), np.full(len(group), -1)
    order = rows[np.lexsort((place[rows], other[rows], one[rows], group[rows]))]
    rank, length = _runs(group[order], one[order], other[order])
    lower = np.flatnonzero(rank < length // 2)
    a, b = order[lower], order[lower + (length[lower] + 1) // 2]
    for partner in (first, second):
        partner[a], partner[b] = b, a
    rest = order[(length % 2 == 1) & (rank == length // 2)]  # one row of every odd cell
    for partner, secret in ((first, one), (second, other)):
        near = rest[np.lexsort((_riffle_places(group, secret, place, rest), secret[rest], group[rest]))]
        rank, length = _runs(group[near])
        lower = np.flatnonzero((rank % 2 == 0) & (rank + 1 < length))
        a, b = near[lower], near[lower + 1]
        partner[a], partner[b] = b, a
    return first, second


def _riffle_places(group: Ints, secret: Ints, place: Ints, rows: Ints) -> Ints:
    """Positions among rows of one sensitive value such that neighbours come from both ends of the curve."""
    order = np.lexsort((place[rows], secret[rows], group[rows]))
    rank, length = _runs(group[rows[order]], secret[rows[order]])
    low = (length + 1) // 2
    shuffled = np.empty(len(rows), np.int64)
    shuffled[order] = np.where(rank < low, 2 * rank, 2 * (rank - low) + 1)
    return shuffled


@kernel
def _colours(rows: Ints, first: Ints, second: Ints, score: Ints) -> Ints:
    """Colour rows 0 or 1, unlike their partners; in every path or cycle the lower scores get 0."""
    side = np.full(len(first), -1, np.int64)
    found = np.empty(len(rows), np.int64)
    for start in rows:
        if side[start] >= 0:
            continue
        side[start], found[0], count, at, balance = 0, start, 1, 0, 0
        while at < count:
            row = found[at]
            balance += score[row] if side[row] == 0 else -score[row]
            for partner in (first[row], second[row]):
                if partner >= 0 and side[partner] < 0:
                    side[partner] = 1 - side[row]
                    found[count] = partner
                    count += 1
            at += 1
        if balance > 0:
            for i in range(count):
                side[found[i]] = 1 - side[found[i]]
    for row in range(len(side)):
        side[row] = max(side[row], 0)
    return side
