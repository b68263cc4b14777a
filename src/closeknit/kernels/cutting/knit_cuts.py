"""Careful cuts: cut a class in two such that both sides have less loss and meet every guarantee.

Rows of a class are sorted by one column; a *run* of that order (its first or last rows, or all rows under one child of the
class's node) goes to one side. Where a guarantee is not met, the run is trimmed: of every bucket, a set of rows with the same
sensitive values, at most the share `f` goes, for the largest `f` that is allowed. So both sides have shares like those of the
class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import bare, kernel, truth, whole
from closeknit.kernels.counting.sorting import ascend
from closeknit.kernels.exchange.knit_guard import Buckets, Guard, count_leaf, is_allowed, sum_leaves
from closeknit.kernels.geometry.boxes import Codes, Ints
from closeknit.kernels.geometry.ranges import Costs, range_cost

GAIN = 1e-9
PARTS = 8  # a column is cut near each eighth of its rows
LARGE = 4096  # from so many rows on a class is cut near quarters, from a hundred times as many near the middle
CHILDREN = 8  # and around its first children, so many
COUNTED = 4096  # up to so many codes a class is sorted by counting
READ = 64  # rows of a class that are read before the ends of both sides are looked at
STEPS = 6  # halvings of the search for a share


class Scratch(NamedTuple):
    """Scratch, so that nothing is allocated while cutting."""

    order: Ints  # [n] rows of the class sorted by a column
    side: Codes  # [n] of each position: 1 goes
    best: Codes  # [n] rows of the class, those that go first
    active: Ints  # [buckets] buckets with rows of the class, ascending; the first `used[0]`
    used: Ints  # [1]
    have: Ints  # [buckets] rows of the class
    run: Ints  # [buckets] rows of the run
    goes: Ints  # [buckets]
    left: Codes  # [1, nodes] under every node, of the side that goes
    whole: Codes  # [2, nodes] zeros, and counts of the class
    codes: Ints  # [codes] start of the rows of a code
    lo: Codes  # [d] box of the class
    hi: Codes


@kernel
def cut_classes(costs: Costs, guard: Guard, buckets: Buckets, quasi: Codes, rows: Codes, starts: Ints, enough: int
            ) -> tuple[Codes, int]:  # fmt: skip
    """Class of each position of `rows` (by class, from `starts` on) after all cuts that reduce the loss, and their number.

    Classes of at most `enough` rows are not cut. `rows` is sorted by class in place.

    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from kernel_inputs import flat_scales, one_cap
    >>> secret, quasi = np.array([0, 0, 1, 0, 1, 1], np.int32), np.arange(6, dtype=np.int32).reshape(6, 1)
    >>> price, rows = costs(flat_scales([6])), np.arange(6, dtype=np.int32)
    >>> pairs = Buckets(secret, np.array([0, 2], np.int32))
    >>> class_of, count = cut_classes(price, one_cap(secret, 2), pairs, quasi, rows, np.array([0, 6]), 1)
    >>> count, [rows[class_of == c].tolist() for c in range(count)]
    (3, [[0, 2], [1, 4], [3, 5]])
    """
    n, nodes, b, d = len(quasi), len(guard.parent), len(buckets.sample), quasi.shape[1]
    room = Scratch(
        np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int32), np.zeros(b, np.int64), np.zeros(1, np.int64),
        np.zeros(b, np.int64), np.zeros(b, np.int64), np.zeros(b, np.int64), np.zeros((1, nodes), np.int32),
        np.zeros((2, nodes), np.int32), np.empty(COUNTED, np.int64), np.empty(d, np.int32), np.empty(d, np.int32),
    )  # fmt: skip
    class_of, count = np.empty(len(rows), np.int32), 0
    stack = np.empty((len(rows) + 1, 2), np.int64)
    for c in range(len(starts) - 1):
        depth = 1
        stack[0, 0], stack[0, 1] = starts[c], starts[c + 1]
        while depth > 0:
            depth -= 1
            a, z = stack[depth]
            goes = _cut(costs, guard, buckets, quasi, rows[a:z], room) if z - a > enough else 0
            if goes == 0:
                class_of[a:z] = count
                count += 1
            else:
                stack[depth, 0], stack[depth, 1] = a, a + goes
                stack[depth + 1, 0], stack[depth + 1, 1] = a + goes, z
                depth += 2
    return class_of, count


@bare
def _cut(costs: Costs, guard: Guard, buckets: Buckets, quasi: Codes, rows: Codes, room: Scratch) -> int:
    """Reorder the rows such that the side that goes is first; return its size, 0 if no cut reduces the loss."""
    s, d = len(rows), quasi.shape[1]
    if s < 2 * guard.k or s < 2:
        return 0
    _count(guard, buckets, rows, room)
    _measure_box(quasi, rows, room)
    lost = 0.0
    for j in range(d):
        lost += range_cost(costs, j, room.lo[j], room.hi[j])
    best, goes = s * lost - GAIN * s, whole(0)
    for j in range(d):
        lo, hi = room.lo[j], room.hi[j]
        if range_cost(costs, j, lo, hi) > 0.0:
            best, goes = _column(costs, guard, buckets, quasi, rows, j, lo, hi, best, goes, room)
    if goes > 0:
        for x in range(s):
            rows[x] = room.best[x]
    return goes


@bare
def _measure_box(quasi: Codes, rows: Codes, room: Scratch) -> None:
    """Compute the box of the class."""
    for j in range(quasi.shape[1]):
        lo, hi = np.iinfo(np.int32).max, -1
        for x in range(len(rows)):
            lo, hi = min(lo, quasi[rows[x], j]), max(hi, quasi[rows[x], j])
        room.lo[j], room.hi[j] = lo, hi


@bare
def _count(guard: Guard, buckets: Buckets, rows: Codes, room: Scratch) -> None:
    """Count the rows of the class in each bucket and under every node."""
    for i in range(room.used[0]):
        b = room.active[i]
        room.have[b], room.run[b], room.goes[b] = 0, 0, 0
    used = 0
    for row in rows:
        b = buckets.of[row]
        if room.have[b] == 0:
            room.active[used] = b
            used += 1
        room.have[b] += 1
    ascend(room.active[:used])
    room.used[0] = used
    room.whole[1] = 0
    for b in room.active[:used]:
        count_leaf(guard, room.whole, whole(1), whole(buckets.sample[b]), room.have[b])
    sum_leaves(guard, room.whole, whole(1))


@bare
def _column(costs: Costs, guard: Guard, buckets: Buckets, quasi: Codes, rows: Codes, j: int, lo: int, hi: int, best: float,
            goes: int, room: Scratch) -> tuple[float, int]:  # fmt: skip
    """Find the best run of one column, if better than the best so far."""
    s = len(rows)
    if hi - lo < min(2 * s, len(room.codes) - 1):
        _sort_rows(quasi, rows, j, lo, hi, room)
    else:
        for x in range(s):
            room.order[x] = np.int64(quasi[rows[x], j]) * s + x
        ascend(room.order[:s])
        for x in range(s):
            room.order[x] = rows[room.order[x] % s]
    last, parts = -1, PARTS if s < LARGE else PARTS // 2 if s < 100 * LARGE else PARTS // 4
    for part in range(1, parts):
        p = s * part // parts
        while p < s and p > 0 and quasi[room.order[p], j] == quasi[room.order[p - 1], j]:
            p += 1
        if p != last and p < s:
            for backwards in (False, True):
                a, z = (p, s) if backwards else (whole(0), p)
                best, goes, untrimmed = _run(costs, guard, buckets, quasi, s, a, z, backwards, best, goes, room)
                if untrimmed:  # the other side of the same cut: same answer, same loss
                    break
        last = p
    for part in range(1, parts, 2):
        best, goes = _trim_run(costs, guard, buckets, quasi, s, part / parts, best, goes, room)
    if not costs.scales.numeric[j] or hi == costs.scales.size[j]:
        best, goes = _children(costs, guard, buckets, quasi, s, j, lo, hi, best, goes, room)
    return best, goes


@bare
def _sort_rows(quasi: Codes, rows: Codes, j: int, lo: int, hi: int, room: Scratch) -> None:
    """Sort the rows by code, by counting."""
    room.codes[: hi - lo + 2] = 0
    for x in range(len(rows)):
        room.codes[quasi[rows[x], j] - lo + 1] += 1
    for code in range(hi - lo):
        room.codes[code + 1] += room.codes[code]
    for x in range(len(rows)):
        code = quasi[rows[x], j] - lo
        room.order[room.codes[code]] = rows[x]
        room.codes[code] += 1


@bare
def _children(costs: Costs, guard: Guard, buckets: Buckets, quasi: Codes, s: int, j: int, lo: int, hi: int, best: float,
              goes: int, room: Scratch) -> tuple[float, int]:  # fmt: skip
    """Try the rows under each child of the class's node against all others."""
    scales = costs.scales
    first, place, found = scales.leaf_start[j], whole(0), 0
    while place < s and found < CHILDREN:
        start, code = place, quasi[room.order[place], j]
        end = code
        if scales.numeric[j]:
            end = code if code == scales.size[j] else scales.size[j] - 1
        else:
            node = scales.leaf_node[first + code]
            while scales.node_parent[node] >= 0 and not _over(scales.node_lo, scales.node_hi, scales.node_parent[node], lo, hi):
                node = scales.node_parent[node]
            end = scales.node_hi[node]
        while place < s and quasi[room.order[place], j] <= end:
            place += 1
        if place - start < s:
            best, goes, _ = _run(costs, guard, buckets, quasi, s, start, place, truth(False), best, goes, room)
            found += 1
    return best, goes


@bare
def _over(node_lo: Codes, node_hi: Codes, node: int, lo: int, hi: int) -> bool:
    return node_lo[node] <= lo and hi <= node_hi[node]


@bare
def _run(costs: Costs, guard: Guard, buckets: Buckets, quasi: Codes, s: int, a: int, z: int, backwards: bool, best: float,
         goes: int, room: Scratch) -> tuple[float, int, bool]:  # fmt: skip
    """Try the positions a..z, trimmed as little as the guarantees require; also returns whether they are allowed untrimmed."""
    if z - a < guard.k:
        return best, goes, truth(False)
    for b in room.active[: room.used[0]]:
        room.run[b] = 0
    for x in range(a, z):
        room.run[buckets.of[room.order[x]]] += 1
    for b in room.active[: room.used[0]]:
        room.goes[b] = room.run[b]
    if _is_allowed(guard, buckets, z - a, s, room):
        best, goes = _keep_better(costs, buckets, quasi, s, a, z, backwards, best, goes, room)
        return best, goes, truth(True)
    low, high, good = 0.0, min(1.0, 2.0 * (z - a) / s), 0.0
    for _ in range(STEPS):
        share = (low + high) / 2
        size = _share_buckets(room, share)
        if size >= guard.k and s - size >= guard.k and _is_allowed(guard, buckets, size, s, room):
            good, low = share, share
        else:
            high = share
    if good > 0.0:
        _share_buckets(room, good)
        best, goes = _keep_better(costs, buckets, quasi, s, a, z, backwards, best, goes, room)
    return best, goes, truth(False)


@bare
def _trim_run(costs: Costs, guard: Guard, buckets: Buckets, quasi: Codes, s: int, share: float, best: float, goes: int,
             room: Scratch) -> tuple[float, int]:  # fmt: skip
    """Try a fixed share of every bucket."""
    for b in room.active[: room.used[0]]:
        room.run[b] = room.have[b]
    size = _share_buckets(room, share)
    if size >= guard.k and s - size >= guard.k and _is_allowed(guard, buckets, size, s, room):
        return _keep_better(costs, buckets, quasi, s, whole(0), s, truth(False), best, goes, room)
    return best, goes


@bare
def _share_buckets(room: Scratch, share: float) -> int:
    """Choose at most this share of every bucket, carrying rounding over to the next; return the number of rows."""
    carried, size = 0.5, 0
    for b in room.active[: room.used[0]]:
        carried += share * room.have[b]
        most = int(carried)
        if most > room.run[b]:
            room.goes[b] = room.run[b]
            carried -= min(share * room.have[b], most)  # missing rows are not taken from other buckets
        else:
            room.goes[b] = most
            carried -= most
        carried = min(max(carried, 0.0), 1.0)
        size += room.goes[b]
    return size


@bare
def _is_allowed(guard: Guard, buckets: Buckets, size: int, s: int, room: Scratch) -> bool:
    """Whether both sides meet the guarantees, with `room.goes` of every bucket on one of them."""
    if size < guard.k or s - size < guard.k or size == 0 or size == s:
        return False
    room.left[:] = 0
    for b in room.active[: room.used[0]]:
        if room.goes[b] > 0:
            count_leaf(guard, room.left, whole(0), whole(buckets.sample[b]), room.goes[b])
    sum_leaves(guard, room.left, whole(0))
    if not is_allowed(guard, room.whole, whole(0), room.left[0], whole(1), size):
        return False
    return is_allowed(guard, room.whole, whole(1), room.left[0], whole(-1), s - size)


@bare
def _measure_loss(costs: Costs, buckets: Buckets, quasi: Codes, s: int, a: int, z: int, backwards: bool, best: float,
                  room: Scratch) -> tuple[float, int]:  # fmt: skip
    """Choose the rows that go, `room.goes` per bucket; return the loss of both sides, if below `best`, and their number."""
    room.side[:s] = 0
    for b in room.active[: room.used[0]]:
        room.run[b] = room.goes[b]
    size, lost = whole(0), 0.0
    for i in range(z - a):
        x = z - 1 - i if backwards else a + i
        b = buckets.of[room.order[x]]
        if room.run[b] > 0:
            room.run[b] -= 1
            room.side[x] = 1
            size += 1
    for j in range(quasi.shape[1]):
        lost += _sides(costs, quasi, s, size, j, room)
        if lost >= best:
            break
    return lost, size


@bare
def _keep_better(costs: Costs, buckets: Buckets, quasi: Codes, s: int, a: int, z: int, backwards: bool, best: float,
              goes: int, room: Scratch) -> tuple[float, int]:  # fmt: skip
    """Record the cut if both sides lose less than the best so far; return the best."""
    lost, size = _measure_loss(costs, buckets, quasi, s, a, z, backwards, best, room)
    if lost >= best:
        return best, goes
    one, other = 0, size
    for x in range(s):
        if room.side[x] == 1:
            room.best[one] = room.order[x]
            one += 1
        else:
            room.best[other] = room.order[x]
            other += 1
    return lost, size


@bare
def _sides(costs: Costs, quasi: Codes, s: int, size: int, j: int, room: Scratch) -> float:
    """Loss of both sides in one column. Once each has both ends of the class, no other row has to be read."""
    lo, hi = room.lo[j], room.hi[j]
    if lo == hi:
        return 0.0
    here_lo, here_hi, there_lo, there_hi, x = hi, lo, hi, lo, 0
    while x < s and (here_lo > lo or there_lo > lo or here_hi < hi or there_hi < hi):
        end = min(x + READ, s)
        while x < end:
            q = quasi[room.order[x], j]
            if room.side[x] == 1:
                there_lo, there_hi = min(there_lo, q), max(there_hi, q)
            else:
                here_lo, here_hi = min(here_lo, q), max(here_hi, q)
            x += 1
    return size * range_cost(costs, j, there_lo, there_hi) + (s - size) * range_cost(costs, j, here_lo, here_hi)
