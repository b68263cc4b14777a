"""A guard: guarantees about classes in integers, so that a loop over rows can check them for every change it tries.

Each guarantee is a *view* of one sensitive attribute: a tree whose leaves are the values, with the rows of a class counted
under every node. A class of `s` rows with `u` of them under a node of `rows` among `n` in all is allowed if
- it has at least `k` rows,
- closeness: the sum over nodes of `weight * |n * u - s * rows|` is at most `most[view, s]`,
- caps: `u * cap_den <= s * cap_num` for every node, and `u * low_den >= s * low_num` where a node has a lower limit too,
- values: at least `values` leaves have rows, and their entropy is at least `entropy`.
The model allows everything that the guard allows: numbers are exact, or rounded to the safe side. The guard may refuse a little
more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.geometry.boxes import Codes, Ints, Reals

CLOSENESS, CAPS, VALUES, ENTROPY = range(4)
ENOUGH = 1e-9  # more than the rounding error of a sum of logarithms


class Guard(NamedTuple):
    """All views, concatenated; a node follows its parent, a root is its own parent."""

    k: int
    node: Codes  # [n, views] leaf of each row
    start: Ints  # [views + 1] first node of each view
    kind: Ints  # [views]
    parent: Ints  # [nodes]
    leaf: Ints  # [nodes] 1 where it is one
    weight: Ints  # [nodes]
    rows: Ints  # [nodes]
    most: Ints  # [views, n + 1]
    cap_num: Ints  # [nodes]
    cap_den: Ints
    low_num: Ints
    low_den: Ints
    values: Ints  # [views]
    entropy: Reals  # [views]


class Buckets(NamedTuple):
    """Rows with the same leaf in every view, in an order in which neighbours are similar."""

    of: Codes  # [n]
    sample: Codes  # [buckets] one row of each


@bare
def count_row(guard: Guard, under: Codes, c: int, row: int, by: int) -> None:
    """Add `by` rows like this one to the counts of class c, at its leaf and all ancestors.

    >>> from kernel_inputs import one_cap
    >>> under = np.zeros((1, 3), np.int32)
    >>> count_row(one_cap(np.array([0, 1], np.int32), 1), under, 0, 1, 5)
    >>> under.tolist()
    [[5, 0, 5]]
    """
    for v in range(len(guard.kind)):
        x = guard.node[row, v]
        under[c, x] += by
        while guard.parent[x] != x:
            x = guard.parent[x]
            under[c, x] += by


@bare
def count_leaf(guard: Guard, under: Codes, c: int, row: int, by: int) -> None:
    """Add `by` rows like this one to the counts of class c at its leaf alone; `sum_leaves` follows.

    >>> from kernel_inputs import one_cap
    >>> guard, under = one_cap(np.array([0, 1], np.int32), 1), np.zeros((1, 3), np.int32)
    >>> count_leaf(guard, under, 0, 1, 5)
    >>> sum_leaves(guard, under, 0)
    >>> under.tolist()
    [[5, 0, 5]]
    """
    for v in range(len(guard.kind)):
        under[c, guard.node[row, v]] += by


@bare
def sum_leaves(guard: Guard, under: Codes, c: int) -> None:
    """Add the counts of all nodes to those of their ancestors, in one pass: a tree of ordered values is one long path."""
    for x in range(len(guard.parent) - 1, -1, -1):
        if guard.parent[x] != x:
            under[c, guard.parent[x]] += under[c, x]


@bare
def is_allowed(guard: Guard, under: Codes, c: int, shift: Codes, sign: int, size: int) -> bool:
    """Whether a class of `size` rows, `under[c] + sign * shift` of them under every node, meets all guarantees.

    >>> from kernel_inputs import one_cap
    >>> guard, zeros = one_cap(np.array([0, 1], np.int32), 2), np.zeros(3, np.int32)
    >>> [is_allowed(guard, np.array([[a + b, a, b]], np.int32), 0, zeros, 1, a + b) for a, b in ((2, 2), (2, 1), (1, 0))]
    [True, False, False]
    """
    if size < guard.k:
        return False
    for v in range(len(guard.kind)):
        a, b, kind = guard.start[v], guard.start[v + 1], guard.kind[v]
        if kind == CLOSENESS:
            most, n, moved = guard.most[v, size], guard.rows[a], 0
            for x in range(a, b):
                moved += guard.weight[x] * abs(n * (under[c, x] + sign * shift[x]) - size * guard.rows[x])
                if moved > most:
                    return False
        elif kind == CAPS:
            for x in range(a, b):
                if not _is_share_allowed(guard, x, whole(under[c, x] + sign * shift[x]), size):
                    return False
        elif not _diverse(guard, under, c, shift, sign, size, v):
            return False
    return True


@bare
def _is_share_allowed(guard: Guard, x: int, u: int, size: int) -> bool:
    return u * guard.cap_den[x] <= size * guard.cap_num[x] and u * guard.low_den[x] >= size * guard.low_num[x]


@bare
def _entropy(u: int, size: int) -> float:
    return -u / size * np.log(u / size) if u > 0 else 0.0


@bare
def _diverse(guard: Guard, under: Codes, c: int, shift: Codes, sign: int, size: int, v: int) -> bool:
    values, entropy = 0, 0.0
    for x in range(guard.start[v], guard.start[v + 1]):
        u = under[c, x] + sign * shift[x]
        if guard.leaf[x] == 1:
            values += u > 0
            if guard.kind[v] == ENTROPY:
                entropy += _entropy(u, size)
    return values >= guard.values[v] and entropy >= guard.entropy[v]


@kernel
def is_class_allowed(guard: Guard, rows: Ints) -> bool:
    """Whether a class of these rows meets all guarantees.

    >>> from kernel_inputs import one_cap
    >>> guard = one_cap(np.array([0, 0, 1], np.int32), 2)
    >>> [is_class_allowed(guard, np.array(rows)) for rows in ([0, 1], [0, 2])]
    [False, True]
    """
    under, nothing = np.zeros((1, len(guard.parent)), np.int32), np.zeros(len(guard.parent), np.int32)
    for row in rows:
        count_leaf(guard, under, whole(0), whole(row), whole(1))
    sum_leaves(guard, under, whole(0))
    return is_allowed(guard, under, whole(0), nothing, whole(1), len(rows))


@bare
def is_allowed_after(guard: Guard, under: Codes, c: int, size: int, out: int, in_: int, now: bool) -> bool:
    """Whether class c may lose row `out` and gain row `in_` (-1: none); `now`: it is known to be allowed before.

    >>> from kernel_inputs import one_cap
    >>> guard, under = one_cap(np.array([0, 1], np.int32), 2), np.array([[3, 1, 2]], np.int32)
    >>> [is_allowed_after(guard, under, 0, 3, *change, True) for change in ((1, -1), (-1, 0), (1, 0))]
    [True, True, False]
    """
    size += (in_ >= 0) - (out >= 0)
    if size < guard.k:
        return False
    for v in range(len(guard.kind)):
        a, b, kind = guard.start[v], guard.start[v + 1], guard.kind[v]
        most = guard.most[v, size] if kind == CLOSENESS else 0
        n, moved, values, entropy = guard.rows[a], 0, 0, 0.0
        less = guard.node[out, v] if out >= 0 else -1
        if now and kind == VALUES and (less < 0 or under[c, less] > 1):
            continue  # no value is lost
        more = guard.node[in_, v] if in_ >= 0 else -1
        for x in range(b - 1, a - 1, -1):  # a node follows its parent: both paths to the root are met on the way
            u = whole(under[c, x])
            if x == less:
                u -= 1
                less = guard.parent[x]
            if x == more:
                u += 1
                more = guard.parent[x]
            if kind == CLOSENESS:
                moved += guard.weight[x] * abs(n * u - size * guard.rows[x])
                if moved > most:
                    return False
            elif kind == CAPS:
                if not _is_share_allowed(guard, x, u, size):
                    return False
            elif guard.leaf[x] == 1:
                values += u > 0
                if kind == ENTROPY:
                    entropy += _entropy(u, size)
        if kind >= VALUES and (values < guard.values[v] or entropy < guard.entropy[v]):
            return False
    return True
