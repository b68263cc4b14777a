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
from typing import NamedTuple

import numpy as np
from numba import config, njit

from closeknit.kernels.assignment import assign
from closeknit.kernels.boxes import Codes, Ints, Reals, Scales, partition_loss, positions
from closeknit.kernels.hilbert import hilbert_keys
from closeknit.kernels.ranges import Costs, costs, range_cost
from closeknit.kernels.windows import corners

WIDTH = 32  # classes in a window: at 64 a pass gains a quarter more and takes twice the time
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
def _add_tabled(table: Reals, side: int, rest: Codes, cells: Codes, j: int, sizes: Ints, pull: float, cost: Reals) -> None:
    g = cost.shape[0]
    for i in range(g):
        lo, hi, middle, size = rest[i, 0, j], rest[i, 1, j], rest[i, 2, j], sizes[i]
        for x in range(g):
            code = cells[x, j]
            cost[i, x] += size * table[min(lo, code) * side + max(hi, code)]
            if pull > 0.0:
                cost[i, x] += pull * table[min(middle, code) * side + max(middle, code)]


@njit(cache=True, nogil=True)
def _add_computed(price: Costs, rest: Codes, cells: Codes, j: int, sizes: Ints, pull: float, cost: Reals) -> None:
    g = cost.shape[0]
    for i in range(g):
        lo, hi, middle, size = rest[i, 0, j], rest[i, 1, j], rest[i, 2, j], sizes[i]
        for x in range(g):
            code = cells[x, j]
            cost[i, x] += size * range_cost(price, j, min(lo, code), max(hi, code))
            if pull > 0.0:
                cost[i, x] += pull * range_cost(price, j, min(middle, code), max(middle, code))


@njit(cache=True, nogil=True)
def _fill_costs(price: Costs, rest: Codes, cells: Codes, sizes: Ints, pull: float, cost: Reals) -> None:
    """cost[i, x]: size times loss of class i's box with row x in it, plus `pull` times x's way to its median.

    `rest[i]` = lowest and highest codes of the other rows of class i, and its median.
    """
    cost[:] = 0.0
    for j in range(cells.shape[1]):
        if price.table_start[j] >= 0:
            _add_tabled(price.table[price.table_start[j] :], price.scales.size[j] + 1, rest, cells, j, sizes, pull, cost)
        else:
            _add_computed(price, rest, cells, j, sizes, pull, cost)


class Holding(NamedTuple):
    """Who holds what: rows sorted by class, then bucket; class c holds `member[start[c] : start[c + 1]]`."""

    member: Codes
    start: Ints
    quasi: Codes
    bucket: Codes  # [n] of each row


@njit(cache=True, nogil=True)
def _corners(held: Holding, classes: Ints, which: Ints) -> Codes:
    """Per class and column its lowest (0), highest (1) or median (2) code; zeros for a class without rows."""
    corner = np.zeros((len(classes), held.quasi.shape[1]), np.int32)
    for i in range(len(classes)):
        rows = held.member[held.start[classes[i]] : held.start[classes[i] + 1]]
        if len(rows) > 0:
            corner[i] = corners(rows.reshape(1, -1), held.quasi, which)[0]
    return corner


@njit(cache=True, nogil=True)
def _next_bucket(mine: Codes, here: Ints, at: Ints, bucket: Codes) -> int:
    """The first bucket of which some class still has a row to hand out; -1 at the end."""
    first = -1
    for i in range(len(here)):
        if here[i] < at[i + 1] and (first < 0 or bucket[mine[here[i]]] < first):
            first = bucket[mine[here[i]]]
    return first


@njit(cache=True, nogil=True)
def _deal_layer(layer: Ints, mine: Codes, codes: Codes, here: Ints, boxes: Codes, given: Codes) -> None:
    """Class layer[x] gets the row of class layer[given[x]]; boxes of the rows handed out so far grow."""
    rows, cells = np.empty(len(layer), np.int32), np.empty((len(layer), codes.shape[1]), np.int32)
    for x in range(len(layer)):
        rows[x] = mine[here[layer[x]]]
        cells[x] = codes[here[layer[x]]]
    for x in range(len(layer)):
        i = layer[x]
        mine[here[i]] = rows[given[x]]
        here[i] += 1
        for j in range(codes.shape[1]):
            boxes[i, 0, j] = min(boxes[i, 0, j], cells[given[x], j])
            boxes[i, 1, j] = max(boxes[i, 1, j], cells[given[x], j])


@njit(cache=True, nogil=True)
def _window(classes: Ints, held: Holding, price: Costs, pull: float) -> None:
    """Hand out the rows of these classes anew, layer by layer: one row of each class that has one left, of one bucket."""
    w, d = len(classes), held.quasi.shape[1]
    at = np.zeros(w + 1, np.int64)
    for i in range(w):
        at[i + 1] = at[i] + held.start[classes[i] + 1] - held.start[classes[i]]
    mine = np.empty(at[w], np.int32)
    for i in range(w):
        mine[at[i] : at[i + 1]] = held.member[held.start[classes[i]] : held.start[classes[i] + 1]]
    codes = held.quasi[mine]
    middle = _corners(held, classes, np.full(d, 2, np.int64)) if pull > 0.0 else np.zeros((w, d), np.int32)
    lo_after, hi_after = _suffix_boxes(codes, at)
    boxes = np.full((w, 2, d), -1, np.int32)  # of the rows handed out so far: empty
    boxes[:, 0] = np.iinfo(np.int32).max
    rest, cells, cost = np.empty((w, 3, d), np.int32), np.empty((w, d), np.int32), np.empty(w * w)
    layer, sizes, here = np.empty(w, np.int64), np.empty(w, np.int64), at[:w].copy()
    while True:
        bucket = _next_bucket(mine, here, at, held.bucket)
        if bucket < 0:
            break
        g = 0
        for i in range(w):
            x = here[i]
            if x < at[i + 1] and held.bucket[mine[x]] == bucket:
                layer[g], sizes[g] = i, at[i + 1] - at[i]
                for j in range(d):
                    rest[g, 0, j] = min(boxes[i, 0, j], lo_after[x + i + 1, j])
                    rest[g, 1, j] = max(boxes[i, 1, j], hi_after[x + i + 1, j])
                    rest[g, 2, j], cells[g, j] = middle[i, j], codes[x, j]
                g += 1
        square = cost[: g * g].reshape(g, g)
        _fill_costs(price, rest, cells, sizes, pull, square)
        _deal_layer(layer[:g], mine, codes, here, boxes, assign(square))
    for i in range(w):
        held.member[held.start[classes[i]] : held.start[classes[i] + 1]] = mine[at[i] : at[i + 1]]


@njit(cache=True, nogil=True)
def _windows(edges: Ints, order: Ints, held: Holding, price: Costs, pull: float) -> None:
    for x in range(len(edges) - 1):
        _window(order[edges[x] : edges[x + 1]], held, price, pull)


def _one_pass(edges: Ints, order: Ints, held: Holding, price: Costs, pull: float) -> None:
    threads = min(config.NUMBA_NUM_THREADS, len(edges) - 1)  # type: ignore[attr-defined]
    if threads <= 1:
        _windows(edges, order, held, price, pull)
        return
    cuts = np.linspace(0, len(edges) - 1, 4 * threads + 1).astype(int)  # a few parts per thread: they end together
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(_windows, edges[a : b + 1], order, held, price, pull) for a, b in pairwise(cuts)]
        for part in parts:
            part.result()


@njit(cache=True, nogil=True)
def _rotate(held: Holding) -> None:
    """Rows of one bucket in one class move on by one, to meet other rows in the next pass."""
    member = held.member
    for c in range(len(held.start) - 1):
        a, end = held.start[c], held.start[c + 1]
        while a < end:
            b = a
            while b + 1 < end and held.bucket[member[b + 1]] == held.bucket[member[a]]:
                b += 1
            last = member[b]
            for x in range(b, a, -1):
                member[x] = member[x - 1]
            member[a] = last
            a = b + 1


def _order(held: Holding, scales: Scales, rng: np.random.Generator) -> Ints:
    """Classes along a Hilbert curve through other corners of their boxes, with other axes first, in every pass."""
    d = held.quasi.shape[1]
    which = np.array([0, 1, 2, 2])[rng.integers(4, size=d)]
    classes = np.arange(len(held.start) - 1)
    points = positions(scales, _corners(held, classes, which)) / 2.0 ** rng.integers(3, size=d)
    return np.argsort(hilbert_keys(np.ascontiguousarray(points[:, rng.permutation(d)])), kind="stable")


def exchanged(quasi: Codes, scales: Scales, bucket_of_row: Codes, class_of: Codes, passes: int, seed: int) -> Codes:
    """The best partition met in so many passes, each of n * `WIDTH` proposals; the last one goes by the loss alone.

    >>> from closeknit.kernels.boxes import flat_scales
    >>> quasi, bucket = np.array([[0], [9], [8], [1]], np.int32), np.array([0, 0, 1, 1], np.int32)
    >>> better = exchanged(quasi, flat_scales([10]), bucket, np.array([0, 1, 0, 1], np.int32), 1, 0)
    >>> bool(better[0] == better[3]), bool(better[1] == better[2])
    (True, True)
    """
    e = int(class_of.max(initial=-1)) + 1
    if e < 2 or quasi.shape[1] == 0:
        return class_of
    rng, price = np.random.default_rng(seed), costs(scales)
    start = np.concatenate(([0], np.cumsum(np.bincount(class_of, minlength=e)))).astype(np.int64)
    held = Holding(np.lexsort((bucket_of_row, class_of)).astype(np.int32), start, quasi, bucket_of_row)
    best, kept = partition_loss(scales, quasi, class_of, e), class_of
    for done in range(passes):
        order = _order(held, scales, rng)
        edges = np.unique(np.concatenate(([0, e], np.arange(rng.integers(1, WIDTH) if e > WIDTH else 0, e, WIDTH))))
        _one_pass(edges, order, held, price, PULL if done < passes - 1 else 0.0)
        _rotate(held)
        now = np.empty(len(class_of), np.int32)
        now[held.member] = np.repeat(np.arange(e, dtype=np.int32), np.diff(start))
        loss = partition_loss(scales, quasi, now, e)
        if loss < best:
            best, kept = loss, now
    return kept
