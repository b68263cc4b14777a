"""Exchange rows between neighbouring classes so that their boxes shrink: exact descent, one round at a time.

`member[c, j]` is the row that class c took in round j (-1: none, only in the last, shorter round). Within a window
of classes the rows of one round may be handed out anew: by the minimum-cost assignment to the boxes of the other
rows. What a class has now is one of the choices, so a pass never makes the loss larger (`pull` = 0; up to
rounding). A window touches its own classes only, in all rounds: windows run in threads and the result does not
depend on how many there are.

The boundary rule (what keeps per-value counts within one) looks at one class at a time: where value v begins in
round `head` and ends in round `tail`, a class may have it in at most one of the two rounds (`cover` false) or must
have it in at least one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import config, njit
from numpy.typing import NDArray

from closeknit.kernels.assignment import assign
from closeknit.kernels.boxes import Codes, Ints, Reals, Scales, range_loss

FORBIDDEN = 1e4  # far above the costs of a whole window (each is 2 at most), small enough to keep their digits


class Rules(NamedTuple):
    """Boundary rules per round j: the value, the other round it is bound to (-1: no rule) and the kind of rule.

    >>> Rules.of(np.array([0, 1, 1, 2]), 2).tail_round.tolist()
    [-1, 0]
    """

    head_value: Ints  # value that begins in round j and ends in round head_round[j]
    head_round: Ints
    head_cover: NDArray[np.bool_]
    tail_value: Ints  # value that ends in round j and began in round tail_round[j]
    tail_round: Ints
    tail_cover: NDArray[np.bool_]

    @classmethod
    def of(cls, run: Ints, e: int) -> Rules:
        """Rules for a stack whose positions hold the values `run` = 0, .., 0, 1, .., 1, 2, .. dealt to e classes."""
        rounds = -(-len(run) // e)
        start = np.flatnonzero(np.diff(run, prepend=-1))
        end = np.append(start[1:], len(run))
        first, last = start // e, (end - 1) // e
        head, tail = (first + 1) * e - start, end - last * e
        bound = np.flatnonzero((first < last) & (head < e) & (tail < e))
        values, partners, covers = (np.full((2, rounds), fill) for fill in (-1, -1, False))
        rules = cls(values[0], partners[0], covers[0], values[1], partners[1], covers[1])
        for value, partner, cover, here, there in (
            (rules.head_value, rules.head_round, rules.head_cover, first, last),
            (rules.tail_value, rules.tail_round, rules.tail_cover, last, first),
        ):
            value[here[bound]], partner[here[bound]] = bound, there[bound]
            cover[here[bound]] = (head + tail > e)[bound]
        return rules


class Geometry(NamedTuple):
    """Scales, and the weighted loss of every code range of the small columns, looked up (start -1: too large)."""

    scales: Scales
    table: NDArray[np.float32]
    table_start: Ints


@njit(cache=True, nogil=True)
def geometry(scales: Scales, limit: int = 256) -> Geometry:
    """Tables for columns of at most `limit` leaves."""
    d = len(scales.size)
    start = np.full(d, -1, np.int64)
    total = 0
    for j in range(d):
        if scales.size[j] <= limit:
            start[j] = total
            total += (scales.size[j] + 1) ** 2
    table = np.zeros(total, np.float32)
    for j in range(d):
        if start[j] >= 0:
            side = scales.size[j] + 1
            for lo in range(side):
                for hi in range(lo, side):
                    table[start[j] + lo * side + hi] = scales.weight[j] * range_loss(scales, j, lo, hi)
    return Geometry(scales, table, start)


@njit(cache=True, nogil=True)
def _grown(geo: Geometry, j: int, lo: int, hi: int, code: int) -> float:
    """Weighted loss of column j once the range has taken in the code."""
    lo, hi = min(lo, code), max(hi, code)
    if geo.table_start[j] >= 0:
        return geo.table[geo.table_start[j] + lo * (geo.scales.size[j] + 1) + hi]
    return geo.scales.weight[j] * range_loss(geo.scales, j, lo, hi)


@njit(cache=True, nogil=True)
def _costs(geo: Geometry, lo: Codes, hi: Codes, middle: Codes, codes: Codes,
           rows: Codes, share: Reals, pull: float, cost: Reals) -> None:  # fmt: skip
    """cost[i, x]: loss of class i's box with row x in it, times its share, plus `pull` times x's way to its median.

    `share[i]` is the size of class i with the row over the number of rounds.
    """
    w, d = lo.shape
    cost[:] = 0.0
    for i in range(w):
        for j in range(d):
            a, b, m = lo[i, j], hi[i, j], middle[i, j]
            for x in range(w):
                if rows[x] >= 0:
                    cost[i, x] += share[i] * _grown(geo, j, a, b, codes[x, j])
                    if pull > 0.0:
                        cost[i, x] += pull * _grown(geo, j, m, m, codes[x, j])


@njit(cache=True, nogil=True)
def _costs_of_none(geo: Geometry, lo: Codes, hi: Codes, rows: Codes, share: float,
                   cost: Reals) -> None:  # fmt: skip
    """In the last round some classes get no row (-1): their boxes stay, for one row less."""
    w, d = lo.shape
    for i in range(w):
        alone = 0.0
        for j in range(d):
            alone += share * _grown(geo, j, lo[i, j], hi[i, j], lo[i, j])
        for x in range(w):
            if rows[x] < 0:
                cost[i, x] = alone


@njit(cache=True, nogil=True)
def _forbid(cost: Reals, rows: Codes, partner: Codes, run: Ints,
            value: int, cover: bool) -> None:  # fmt: skip
    """`partner[i]`: the row of class i in the round the value is bound to."""
    w = len(rows)
    for i in range(w):
        has = partner[i] >= 0 and run[partner[i]] == value
        for x in range(w):
            same = rows[x] >= 0 and run[rows[x]] == value
            if (has and same and not cover) or (not has and not same and cover):
                cost[i, x] = FORBIDDEN


@njit(cache=True, nogil=True)
def _suffix_boxes(codes: Codes, member: Codes) -> tuple[Codes, Codes]:
    """Box of the rows of rounds >= j of every class, so that leaving one row out costs no second look at the others."""
    rounds, w, d = codes.shape
    lo = np.full((rounds + 1, w, d), np.iinfo(np.int32).max, np.int32)
    hi = np.full((rounds + 1, w, d), -1, np.int32)
    for j in range(rounds - 1, -1, -1):
        for i in range(w):
            for a in range(d):
                lo[j, i, a], hi[j, i, a] = lo[j + 1, i, a], hi[j + 1, i, a]
                if member[i, j] >= 0:
                    lo[j, i, a] = min(lo[j, i, a], codes[j, i, a])
                    hi[j, i, a] = max(hi[j, i, a], codes[j, i, a])
    return lo, hi


@njit(cache=True, nogil=True)
def _sort(codes: Codes, size: int) -> None:
    """Shell sort in place: most classes are small, and the library's sort takes seconds to compile."""
    gap = size // 2
    while gap > 0:
        for x in range(gap, size):
            code, at = codes[x], x
            while at >= gap and codes[at - gap] > code:
                codes[at] = codes[at - gap]
                at -= gap
            codes[at] = code
        gap = 1 if gap == 2 else int(gap / 2.2)


@njit(cache=True, nogil=True)
def corners(member: Codes, quasi: Codes, which: Ints) -> Codes:
    """Per class and column j its lowest (which[j] = 0), highest (1) or (lower) median code (2).

    The median says where a class belongs, as one stray row does not move it; the ends say where its strays belong.

    >>> quasi = np.array([[4, 4], [0, 0], [5, 5]], np.int32)
    >>> corners(np.array([[0, 1, 2]], np.int32), quasi, np.array([0, 2])).tolist()
    [[0, 4]]
    """
    e, rounds = member.shape
    corner = np.empty((e, quasi.shape[1]), np.int32)
    codes = np.empty(rounds, np.int32)
    for c in range(e):
        size = rounds if member[c, rounds - 1] >= 0 else rounds - 1
        for j in range(quasi.shape[1]):
            end = quasi[member[c, 0], j]
            for x in range(size):
                codes[x] = quasi[member[c, x], j]
                end = min(end, codes[x]) if which[j] == 0 else max(end, codes[x])
            if which[j] == 2:
                _sort(codes, size)
                end = codes[(size - 1) // 2]
            corner[c, j] = end
    return corner


@njit(cache=True, nogil=True)
def _rows_of(classes: Ints, member: Codes, quasi: Codes) -> tuple[Codes, Codes]:
    """The rows of these classes, [class, round], and their codes, [round, class, column]."""
    w, rounds, d = len(classes), member.shape[1], quasi.shape[1]
    mine = np.empty((w, rounds), np.int32)
    codes = np.zeros((rounds, w, d), np.int32)
    for i in range(w):
        for j in range(rounds):
            mine[i, j] = member[classes[i], j]
            if mine[i, j] >= 0:
                for a in range(d):
                    codes[j, i, a] = quasi[mine[i, j], a]
    return mine, codes


@njit(cache=True, nogil=True)
def _deal_window(classes: Ints, member: Codes, quasi: Codes, run: Ints,
                 rules: Rules, geo: Geometry, pull: float) -> None:  # fmt: skip
    """Hand out the rows of every round anew among these classes."""
    w, rounds, d = len(classes), member.shape[1], quasi.shape[1]
    mine, codes = _rows_of(classes, member, quasi)
    lo_after, hi_after = _suffix_boxes(codes, mine)
    lo, hi = lo_after[rounds].copy(), hi_after[rounds].copy()  # of the rounds dealt so far: empty
    lo_rest, hi_rest = np.empty_like(lo), np.empty_like(hi)
    middle = corners(mine, quasi, np.ones(d, np.int64) * 2) if pull > 0.0 else lo_rest
    share, rows = np.empty(w), np.empty(w, np.int32)
    cost = np.empty((w, w))
    for j in range(rounds):
        for i in range(w):
            rows[i] = mine[i, j]
            share[i] = 1.0 if j == rounds - 1 or mine[i, rounds - 1] >= 0 else 1.0 - 1.0 / rounds
            for a in range(d):
                lo_rest[i, a] = min(lo[i, a], lo_after[j + 1, i, a])
                hi_rest[i, a] = max(hi[i, a], hi_after[j + 1, i, a])
        _costs(geo, lo_rest, hi_rest, middle, codes[j], rows, share, pull, cost)
        if j == rounds - 1 > 0:
            _costs_of_none(geo, lo_rest, hi_rest, rows, 1.0 - 1.0 / rounds, cost)
        if rules.tail_round[j] >= 0:
            _forbid(cost, rows, mine[:, rules.tail_round[j]], run, rules.tail_value[j], rules.tail_cover[j])
        if rules.head_round[j] >= 0:
            _forbid(cost, rows, mine[:, rules.head_round[j]], run, rules.head_value[j], rules.head_cover[j])
        given = assign(cost)
        for i in range(w):
            mine[i, j] = rows[given[i]]
            if mine[i, j] >= 0:
                for a in range(d):
                    lo[i, a] = min(lo[i, a], codes[j, given[i], a])
                    hi[i, a] = max(hi[i, a], codes[j, given[i], a])
    for i in range(w):
        for j in range(rounds):
            member[classes[i], j] = mine[i, j]


@njit(cache=True, nogil=True)
def _deal_windows(edges: Ints, order: Ints, member: Codes, quasi: Codes,
                  run: Ints, rules: Rules, geo: Geometry, pull: float) -> None:  # fmt: skip
    for x in range(len(edges) - 1):
        _deal_window(order[edges[x] : edges[x + 1]], member, quasi, run, rules, geo, pull)


def deal_windows(order: Ints, shift: int, width: int, member: Codes, quasi: Codes,
                 run: Ints, rules: Rules, geo: Geometry, pull: float) -> None:  # fmt: skip
    """One pass over windows of `width` classes along `order`, the first one `shift` long; changes `member` in place."""
    e = len(order)
    edges = np.unique(np.concatenate(([0, e], np.arange(shift, e, width)))).astype(np.int64)
    threads = min(config.NUMBA_NUM_THREADS, len(edges) - 1)  # type: ignore[attr-defined]
    if threads <= 1:
        _deal_windows(edges, order, member, quasi, run, rules, geo, pull)
        return
    cuts = np.linspace(0, len(edges) - 1, 4 * threads + 1).astype(int)  # a few parts per thread: they end together
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(_deal_windows, edges[a : b + 1], order, member, quasi, run, rules, geo, pull)
                 for a, b in pairwise(cuts)]  # fmt: skip
        for part in parts:
            part.result()
