"""Dealing a stack of rows to e classes: literally, in rounds, in super-rounds.

The stack holds all rows so that equal secrets stand together. A *round* is e consecutive stack positions; each
class takes one of its rows. So sizes are floor or ceil of n/e (P1), and any prefix of the stack is shared within
one round. Which row goes where is free as long as each value's count stays floor or ceil of f/e in every class
(P2): the boundary rule of `windows.Rules`.

Different from the source, which deals row z to class z mod e: rounds choose rows with near quasi-identifiers. Steps
of `rounds`: rows of one value are spread over the rounds it reaches (`_interleave`); all rounds are ordered side by
side (`align`) and ranks matched (`_first_deal`); then sweeps of minimum-cost assignments in windows of neighbouring
classes, along another Hilbert curve each time, lower the loss (`deal_windows`). Cost: O(n log n + sweeps * n *
width^2 at worst).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from closeknit.kernels.alignment import align
from closeknit.kernels.boxes import Codes, Ints, Scales, box_losses, partition_loss, positions
from closeknit.kernels.hilbert import hilbert_keys
from closeknit.kernels.windows import Rules, corners, deal_windows, geometry

EXACT = 64  # up to so many classes one window holds them all: the exact assignment of each round
WIDTH = 32  # beyond, the same time buys more sweeps than windows of 64 would allow, and a slightly lower loss
PULL = 1.0  # a box alone has plateaus: a mixed column costs the same for any row; the way to the median leads off them


def literal(n: int, e: int) -> Codes:
    """Class of each stack position: z mod e.

    >>> literal(5, 2).tolist()
    [0, 1, 0, 1, 0]
    """
    return (np.arange(n) % e).astype(np.int32)


def rounds(stack: NDArray[np.integer], value: NDArray[np.integer], e: int, quasi: Codes, scales: Scales,
           keys: NDArray[np.uint64] | None = None, sweeps: int = 0) -> Codes:  # fmt: skip
    """Class of each row; `stack` = row ids, `value[z]` = secret at position z, `keys` = Hilbert keys if at hand.

    `sweeps` = 0: as many as the size of the table allows for about the same work (`default_sweeps`).
    Keeps P1, P2 and the prefix bound; never loses more than literal dealing.

    >>> from closeknit.kernels.boxes import flat_scales
    >>> quasi = np.array([[0], [9], [8], [1]], np.int32)
    >>> rounds(np.arange(4), np.array([0, 0, 1, 1]), 2, quasi, flat_scales([10])).tolist()
    [0, 1, 1, 0]
    """
    n = len(stack)
    rows: Codes = np.ascontiguousarray(stack, np.int32)
    plain = np.empty(n, np.int32)
    plain[rows] = literal(n, e)
    if e == 1 or e >= n or quasi.shape[1] == 0:
        return plain
    run = np.cumsum(np.diff(value, prepend=value[0]) != 0)
    run_of = np.empty(n, np.int64)
    run_of[rows] = run
    keys = hilbert_keys(positions(scales, quasi)) if keys is None else keys
    rules = Rules.of(run, e)
    dealt = align(_interleave(rows, run, e, keys), e, quasi, scales)
    member = _first_deal(dealt, run_of, rules, e)
    best, member = _sweep(member, run_of, rules, quasi, scales, sweeps or default_sweeps(n))
    return _class_of(member, n) if best <= partition_loss(scales, quasi, plain, e) else plain


def default_sweeps(n: int) -> int:
    """Small tables are swept until little is left to gain, large ones four times.

    >>> default_sweeps(1_000), default_sweeps(50_000), default_sweeps(1_000_000)
    (32, 20, 4)
    """
    return min(32, max(4, 1_000_000 // max(n, 1)))


def super_rounds(stack: NDArray[np.integer], e: int, g: int, quasi: Codes, scales: Scales,
                 keys: NDArray[np.uint64] | None = None, sweeps: int = 0) -> Codes:  # fmt: skip
    """Class of each row, where every class takes g rows of each g*e stack positions (of the last ones: floor or ceil).

    Rows of a super-round are as exchangeable as rows of one value: it is dealt as if it were one. Keeps P1.

    >>> from closeknit.kernels.boxes import flat_scales
    >>> super_rounds(np.arange(4), 2, 2, np.array([[0], [1], [9], [8]], np.int32), flat_scales([10])).tolist()
    [0, 0, 1, 1]
    """
    return rounds(stack, np.arange(len(stack)) // (g * e), e, quasi, scales, keys, sweeps)


def _interleave(stack: Codes, run: Ints, e: int, keys: NDArray[np.uint64]) -> Codes:
    """The stack with each value's rows spread evenly over the rounds it reaches, each round along the curve."""
    n = len(stack)
    position = np.arange(n)
    round_of = position // e
    start = np.flatnonzero((np.diff(run, prepend=-1) != 0) | (position % e == 0))  # of one value in one round
    size = np.diff(np.append(start, n))
    share = (position - np.repeat(start, size) + 0.5) / np.repeat(size, size)
    dealt = np.empty_like(stack)
    dealt[np.lexsort((round_of, share, run))] = stack[np.lexsort((stack, keys[stack], run))]
    return dealt[np.lexsort((dealt, keys[dealt], round_of))]


@njit(cache=True, nogil=True)
def _spread(wanted: Ints, slots: Ints) -> Ints:
    """A slot of its own for each wanted place, in the same order and near to it (both ascending, enough slots)."""
    taken = np.empty_like(wanted)
    at = -1
    for i in range(len(wanted)):
        at += 1
        while at < len(slots) - (len(wanted) - i) and slots[at] < wanted[i]:
            at += 1
        taken[i] = slots[at]
    return taken


@njit(cache=True, nogil=True)
def _bound_rows(rows: Codes, before: Codes, run_of: Ints, value: int, cover: bool,
                ) -> tuple[Ints, Ints]:  # fmt: skip
    """Which rows (by rank) go to which classes outside the head; `before` = the row of each class in that round."""
    e, size = len(before), len(rows)
    mine = np.flatnonzero(run_of[rows] == value)
    outside = np.flatnonzero(run_of[before] != value)
    if cover:
        return _spread(outside * size // e, mine), outside
    return mine, _spread(mine * e // size, outside)


@njit(cache=True, nogil=True)
def _first_deal(dealt: Codes, run_of: Ints, rules: Rules, e: int) -> Codes:
    """Row of rank i to class i in every round, moved as little as the boundary rule asks."""
    n = len(dealt)
    member = np.full((e, (n + e - 1) // e), -1, np.int32)
    for j in range(member.shape[1]):
        rows = dealt[j * e : min(n, j * e + e)]
        free, left = np.ones(e, np.bool_), np.ones(len(rows), np.bool_)
        if rules.tail_round[j] >= 0:
            before = member[:, rules.tail_round[j]].copy()
            ranks, classes = _bound_rows(rows, before, run_of, rules.tail_value[j], rules.tail_cover[j])
            for x in range(len(ranks)):
                member[classes[x], j] = rows[ranks[x]]
                free[classes[x]] = left[ranks[x]] = False
        ranks, classes = np.flatnonzero(left), np.flatnonzero(free)
        for x in range(len(ranks)):
            member[classes[x * len(classes) // len(ranks)], j] = rows[ranks[x]]
    return member


@njit(cache=True, nogil=True)
def _rotate(member: Codes, run_of: Ints) -> None:
    """Rows of one value in one class may trade rounds: each moves on by one, to meet other rows in the next sweep."""
    for c in range(member.shape[0]):
        size = member.shape[1] if member[c, member.shape[1] - 1] >= 0 else member.shape[1] - 1
        a = 0
        while a < size:
            b = a
            while b + 1 < size and run_of[member[c, b + 1]] == run_of[member[c, a]]:
                b += 1
            last = member[c, b]
            for x in range(b, a, -1):
                member[c, x] = member[c, x - 1]
            member[c, a] = last
            a = b + 1


def _dice(sweep: int, d: int, sides: int) -> Ints:
    """Numbers below `sides`, one per column: fixed scrambling (splitmix64), the same on every machine and version."""
    x = (np.arange(d, dtype=np.uint64) + np.uint64(64 * sweep + 1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x >> np.uint64(33)) % np.uint64(sides)).astype(np.int64)


def _class_order(member: Codes, quasi: Codes, scales: Scales, sweep: int) -> Ints:
    """Classes along a Hilbert curve through another corner of their boxes, with other axes first, in every sweep."""
    d = quasi.shape[1]
    which = np.array([0, 1, 2, 2])[_dice(3 * sweep, d, 4)]
    points = positions(scales, corners(member, quasi, which)) / 2.0 ** _dice(3 * sweep + 1, d, 3)
    axes = np.argsort(_dice(3 * sweep + 2, d, 1 << 30), kind="stable")
    return np.argsort(hilbert_keys(np.ascontiguousarray(points[:, axes])), kind="stable")


def _sweep(member: Codes, run_of: Ints, rules: Rules, quasi: Codes, scales: Scales,
           sweeps: int) -> tuple[float, Codes]:  # fmt: skip
    """The best of all sweeps and its loss; the last one goes by the loss alone."""
    geo = geometry(scales)
    width = EXACT if len(member) <= EXACT else WIDTH
    best, kept = _loss(member, quasi, scales), member.copy()
    for sweep in range(sweeps):
        order = _class_order(member, quasi, scales, sweep)
        pull = PULL / member.shape[1] if sweep < sweeps - 1 else 0.0
        deal_windows(order, width // 2 if len(member) > width else 0, width, member, quasi, run_of, rules, geo, pull)
        _rotate(member, run_of)
        loss = _loss(member, quasi, scales)
        if loss < best:
            best, kept = loss, member.copy()
    return best, kept


def _loss(member: Codes, quasi: Codes, scales: Scales) -> float:
    d = quasi.shape[1]
    lo, hi = (corners(member, quasi, np.full(d, end, np.int64)) for end in (0, 1))
    return float(box_losses(scales, lo, hi) @ (member >= 0).sum(axis=1) / quasi.shape[0])


def _class_of(member: Codes, n: int) -> Codes:
    class_of = np.empty(n, np.int32)
    classes, at = np.nonzero(member >= 0)
    class_of[member[classes, at]] = classes
    return class_of
