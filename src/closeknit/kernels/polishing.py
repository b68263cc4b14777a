"""Exchange rows of the same bucket between neighbouring classes so that their boxes shrink.

Which rows of a bucket a class holds is free, so any exchange keeps the plan. Within a window of classes one row of each
class, all of one bucket, are handed out anew by the minimum-cost assignment to the boxes of the other rows. What a class
has now is one of the choices, so a pass never makes the loss larger (with `pull` = 0). Passes follow other Hilbert curves
through other corners of the classes, so that other classes become neighbours. A window touches its own classes only:
windows run in threads, and the result does not depend on how many there are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numba import config, njit

from closeknit.kernels.assignment import assign
from closeknit.kernels.boxes import Codes, Ints, Reals, Scales, partition_loss, positions
from closeknit.kernels.hilbert import hilbert_keys
from closeknit.kernels.ranges import Costs, costs, range_cost
from closeknit.kernels.windows import corners

WIDTH = 32
PULL = 1.0  # a box alone has plateaus: a mixed column costs the same for any row; the way to the median leads off them


@njit(cache=True, nogil=True)
def _suffix_boxes(codes: Codes, at: Ints) -> tuple[Codes, Codes]:
    """Box of the rows x, x + 1, .. of each class in entry x + class; the last entry of a class is empty."""
    w, d = len(at) - 1, codes.shape[1]
    lo = np.full((len(codes) + w, d), np.iinfo(np.int32).max, np.int32)
    hi = np.full((len(codes) + w, d), -1, np.int32)
    for i in range(w):
        for x in range(at[i + 1] - 1, at[i] - 1, -1):
            for j in range(d):
                lo[x + i, j] = min(lo[x + i + 1, j], codes[x, j])
                hi[x + i, j] = max(hi[x + i + 1, j], codes[x, j])
    return lo, hi


@njit(cache=True, nogil=True)
def _fill_costs(price: Costs, lo: Codes, hi: Codes, middle: Codes, codes: Codes, sizes: Ints, pull: float, cost: Reals) -> None:
    """cost[i, x]: size times loss of class i's box with row x in it, plus `pull` times x's way to its median."""
    g, d = codes.shape
    cost[:] = 0.0
    for i in range(g):
        for j in range(d):
            a, b, m = lo[i, j], hi[i, j], middle[i, j]
            for x in range(g):
                code = codes[x, j]
                cost[i, x] += sizes[i] * range_cost(price, j, min(a, code), max(b, code))
                if pull > 0.0:
                    cost[i, x] += pull * range_cost(price, j, min(m, code), max(m, code))


@njit(cache=True, nogil=True)
def _window(classes: Ints, member: Codes, start: Ints, quasi: Codes, bucket: Codes, price: Costs, pull: float) -> None:
    """Hand out the rows of these classes anew, one layer (a row of each class, all of one bucket) after the other."""
    w, d = len(classes), quasi.shape[1]
    at = np.zeros(w + 1, np.int64)
    for i in range(w):
        at[i + 1] = at[i] + start[classes[i] + 1] - start[classes[i]]
    mine, codes = np.empty(at[w], np.int32), np.empty((at[w], d), np.int32)
    middle = np.empty((w, d), np.int32)
    median = np.full(d, 2, np.int64)
    for i in range(w):
        rows = member[start[classes[i]] : start[classes[i] + 1]]
        mine[at[i] : at[i + 1]] = rows
        for x in range(len(rows)):
            for j in range(d):
                codes[at[i] + x, j] = quasi[rows[x], j]
        if pull > 0.0 and len(rows) > 0:
            middle[i] = corners(rows.reshape(1, -1), quasi, median)[0]
    lo_after, hi_after = _suffix_boxes(codes, at)
    lo, hi = np.full((w, d), np.iinfo(np.int32).max, np.int32), np.full((w, d), -1, np.int32)
    lo_rest, hi_rest, mid, here = np.empty_like(lo), np.empty_like(lo), np.empty_like(lo), np.empty_like(lo)
    layer, sizes, rows = np.empty(w, np.int64), np.empty(w, np.int64), np.empty(w, np.int32)
    next_ = at[:w].copy()
    square = np.empty(w * w)
    while True:
        now = -1
        for i in range(w):
            if next_[i] < at[i + 1] and (now < 0 or bucket[mine[next_[i]]] < now):
                now = bucket[mine[next_[i]]]
        if now < 0:
            break
        g = 0
        for i in range(w):
            x = next_[i]
            if x < at[i + 1] and bucket[mine[x]] == now:
                layer[g], sizes[g], rows[g] = i, at[i + 1] - at[i], mine[x]
                for j in range(d):
                    lo_rest[g, j] = min(lo[i, j], lo_after[x + i + 1, j])
                    hi_rest[g, j] = max(hi[i, j], hi_after[x + i + 1, j])
                    mid[g, j], here[g, j] = middle[i, j], codes[x, j]
                g += 1
        cost = square[: g * g].reshape(g, g)
        _fill_costs(price, lo_rest[:g], hi_rest[:g], mid[:g], here[:g], sizes, pull, cost)
        given = assign(cost)
        for x in range(g):
            i = layer[x]
            mine[next_[i]] = rows[given[x]]
            next_[i] += 1
            for j in range(d):
                lo[i, j] = min(lo[i, j], here[given[x], j])
                hi[i, j] = max(hi[i, j], here[given[x], j])
    for i in range(w):
        member[start[classes[i]] : start[classes[i] + 1]] = mine[at[i] : at[i + 1]]


@njit(cache=True, nogil=True)
def _windows(edges: Ints, order: Ints, member: Codes, start: Ints, quasi: Codes, bucket: Codes, price: Costs, pull: float) -> None:
    for x in range(len(edges) - 1):
        _window(order[edges[x] : edges[x + 1]], member, start, quasi, bucket, price, pull)


def _one_pass(edges: Ints, order: Ints, member: Codes, start: Ints, quasi: Codes, bucket: Codes, price: Costs, pull: float) -> None:
    threads = min(config.NUMBA_NUM_THREADS, len(edges) - 1)
    if threads <= 1:
        _windows(edges, order, member, start, quasi, bucket, price, pull)
        return
    cuts = np.linspace(0, len(edges) - 1, 4 * threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(_windows, edges[a : b + 1], order, member, start, quasi, bucket, price, pull) for a, b in pairwise(cuts)]
        for part in parts:
            part.result()


@njit(cache=True, nogil=True)
def _corners(member: Codes, start: Ints, quasi: Codes, which: Ints) -> Codes:
    corner = np.zeros((len(start) - 1, quasi.shape[1]), np.int32)
    for c in range(len(start) - 1):
        if start[c] < start[c + 1]:
            corner[c] = corners(member[start[c] : start[c + 1]].reshape(1, -1), quasi, which)[0]
    return corner


@njit(cache=True, nogil=True)
def _rotate(member: Codes, start: Ints, bucket: Codes) -> None:
    """Rows of one bucket in one class move on by one, to meet other rows in the next pass."""
    for c in range(len(start) - 1):
        a = start[c]
        while a < start[c + 1]:
            b = a
            while b + 1 < start[c + 1] and bucket[member[b + 1]] == bucket[member[a]]:
                b += 1
            last = member[b]
            for x in range(b, a, -1):
                member[x] = member[x - 1]
            member[a] = last
            a = b + 1


def _order(member, start, quasi, scales, rng):
    d = quasi.shape[1]
    which = np.array([0, 1, 2, 2])[rng.integers(4, size=d)]
    points = positions(scales, _corners(member, start, quasi, which)) / 2.0 ** rng.integers(3, size=d)
    axes = rng.permutation(d)
    return np.argsort(hilbert_keys(np.ascontiguousarray(points[:, axes])), kind="stable")


def polished(quasi: Codes, scales: Scales, bucket_of_row: Codes, class_of: Codes, passes: int, seed: int, width: int = WIDTH, pulled=PULL, trace=None, cool=0.0) -> Codes:
    n, e = len(class_of), int(class_of.max(initial=-1)) + 1
    rng = np.random.default_rng(seed)
    price = costs(scales)
    member = np.lexsort((bucket_of_row, class_of)).astype(np.int32)
    start = np.concatenate(([0], np.cumsum(np.bincount(class_of, minlength=e)))).astype(np.int64)
    owner = np.repeat(np.arange(e, dtype=np.int32), np.diff(start))
    best, kept = partition_loss(scales, quasi, class_of, e), class_of
    for p in range(passes):
        order = _order(member, start, quasi, scales, rng)
        shift = rng.integers(1,width) if e>width else 0
        edges = np.unique(np.concatenate(([0, e], np.arange(shift, e, width)))).astype(np.int64)
        pull = pulled*(1-cool*p/passes) if p < passes - 1 else 0.0
        _one_pass(edges, order, member, start, quasi, bucket_of_row, price, pull)
        _rotate(member, start, bucket_of_row)
        now = np.empty(n, np.int32)
        now[member] = owner
        loss = partition_loss(scales, quasi, now, e)
        if trace is not None: trace.append(loss)
        if loss < best:
            best, kept = loss, now
    return kept
