"""Dealing a stack of rows to e classes: literally, in rounds, in super-rounds.

The stack is the list of all rows, sorted so that equal sensitive values are neighbours. A *round* is e consecutive
stack positions; each class takes one of its rows. So sizes are floor or ceil of n/e (P1), and any prefix of the stack is
divided evenly, within one round. Rows are assigned freely as long as each value's count is floor or ceil of f/e in every
class (P2): the boundary rule of `boundary.Rules`.

Different from the source, which deals row z to class z mod e: rounds choose rows with similar quasi-identifiers. Steps
of `rounds`: rows of one value are spread over the rounds it reaches (`_interleave`); all rounds are ordered
together (`align`) and ranks matched (`_first_deal`); then sweeps of minimum-cost assignments in windows of neighbouring
classes, along another Hilbert curve each time, lower the loss (`run_sweeps`). Cost: O(n log n + sweeps * n *
width^2 at worst).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import kernel
from closeknit.kernels.dealing.alignment import align
from closeknit.kernels.dealing.boundary import TAIL, Rules
from closeknit.kernels.dealing.class_members import ClassMembers
from closeknit.kernels.dealing.sweeps import WIDTH, default_sweeps, run_sweeps
from closeknit.kernels.geometry.boxes import Codes, Ints, Scales, partition_loss, positions
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys

EXACT = 64  # up to so many classes one window has them all: the exact assignment of each round


def literal(n: int, e: int) -> Codes:
    """Class of each stack position: z mod e.

    >>> literal(5, 2).tolist()
    [0, 1, 0, 1, 0]
    """
    return (np.arange(n) % e).astype(np.int32)


def rounds(stack: NDArray[np.integer], value: NDArray[np.integer], e: int, quasi: Codes, scales: Scales,
           keys: NDArray[np.uint64] | None = None, sweeps: int = 0) -> Codes:  # fmt: skip
    """Class of each row; `stack` = row ids, `value[z]` = sensitive value at position z, `keys` = Hilbert keys if known.

    `sweeps` = 0: as many as the size of the table allows for about the same work (`default_sweeps`).
    Satisfies P1, P2 and the prefix bound; the loss is never larger than after literal dealing.

    >>> from kernel_inputs import flat_scales
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
    run_of = np.empty(n, np.int32)
    run_of[rows] = run
    keys = hilbert_keys(positions(scales, quasi)) if keys is None else keys
    rules = Rules.of(run, e)
    dealt = align(_interleave(rows, run, e, keys), e, quasi, scales)
    member = _first_deal(dealt, run_of, rules, e)
    held = build_members(member, quasi, run_of)
    best, found = run_sweeps(held, rules, scales, sweeps or default_sweeps(n), width=EXACT if e <= EXACT else WIDTH)
    return found if best <= partition_loss(scales, quasi, plain, e) else plain


def super_rounds(stack: NDArray[np.integer], e: int, g: int, quasi: Codes, scales: Scales,
                 keys: NDArray[np.uint64] | None = None, sweeps: int = 0) -> Codes:  # fmt: skip
    """Class of each row, where every class takes g rows of each g*e stack positions (of the last ones: floor or ceil).

    Rows of a super-round are as exchangeable as rows of one value: it is dealt as if it were one. Satisfies P1.

    >>> from kernel_inputs import flat_scales
    >>> super_rounds(np.arange(4), 2, 2, np.array([[0], [1], [9], [8]], np.int32), flat_scales([10])).tolist()
    [0, 0, 1, 1]
    """
    return rounds(stack, np.arange(len(stack)) // (g * e), e, quasi, scales, keys, sweeps)


def _interleave(stack: Codes, run: Ints, e: int, keys: NDArray[np.uint64]) -> Codes:
    """Spread each value's rows evenly over the rounds it reaches, each round along the curve."""
    n = len(stack)
    position = np.arange(n)
    round_of = position // e
    start = np.flatnonzero((np.diff(run, prepend=-1) != 0) | (position % e == 0))  # of one value in one round
    size = np.diff(np.append(start, n))
    share = (position - np.repeat(start, size) + 0.5) / np.repeat(size, size)
    dealt = np.empty_like(stack)
    dealt[np.lexsort((round_of, share, run))] = stack[np.lexsort((stack, keys[stack], run))]
    return dealt[np.lexsort((dealt, keys[dealt], round_of))]


@kernel
def _spread(wanted: Ints, slots: Ints) -> Ints:
    """Assign each wanted position its own slot, in the same order and near to it (both ascending, enough slots)."""
    taken = np.empty_like(wanted)
    at = -1
    for i in range(len(wanted)):
        at += 1
        while at < len(slots) - (len(wanted) - i) and slots[at] < wanted[i]:
            at += 1
        taken[i] = slots[at]
    return taken


@kernel
def _move_rows(rows: Codes, before: Codes, run_of: Codes, value: int, cover: bool,
                ) -> tuple[Ints, Ints]:  # fmt: skip
    """Choose rows (by rank) and classes outside the head for them; `before` = the row of each class in that round."""
    e, size = len(before), len(rows)
    mine = np.flatnonzero(run_of[rows] == value)
    outside = np.flatnonzero(run_of[before] != value)
    if cover:
        return _spread(outside * size // e, mine), outside
    return mine, _spread(mine * e // size, outside)


@kernel
def _first_deal(dealt: Codes, run_of: Codes, rules: Rules, e: int) -> Codes:
    """Deal the row of rank i to class i in every round, moved as little as the boundary rule requires."""
    n = len(dealt)
    member = np.full((e, (n + e - 1) // e), -1, np.int32)
    for j in range(member.shape[1]):
        rows = dealt[j * e : min(n, j * e + e)]
        free, left = np.ones(e, np.bool_), np.ones(len(rows), np.bool_)
        if rules.partner[TAIL, j] >= 0:
            before = member[:, rules.partner[TAIL, j]].copy()
            ranks, classes = _move_rows(rows, before, run_of, rules.value[TAIL, j], rules.cover[TAIL, j])
            for x in range(len(ranks)):
                member[classes[x], j] = rows[ranks[x]]
                free[classes[x]] = left[ranks[x]] = False
        ranks, classes = np.flatnonzero(left), np.flatnonzero(free)
        for x in range(len(ranks)):
            member[classes[x * len(classes) // len(ranks)], j] = rows[ranks[x]]
    return member


def build_members(member: Codes, quasi: Codes, run_of: Codes) -> ClassMembers:
    """`member[c, j]` is the row that class c takes in round j (-1: none, only in the last, shorter round).

    >>> build_members(np.array([[0, 2], [1, -1]], np.int32), np.zeros((3, 1), np.int32), np.zeros(3, np.int32)).kind.tolist()
    [0, 1, 0, 1]
    """
    e, rounds = member.shape
    return ClassMembers(member.ravel(), np.arange(e + 1) * rounds, np.tile(np.arange(rounds, dtype=np.int32), e), quasi, run_of)
