"""Split a cluster before it is published: parts around random rows; each remaining row joins the part that grows least."""

from __future__ import annotations

import numpy as np

from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.declared_axes import Axes, Ints, Reals, box_cost, boxes_of, joint_cost
from closeknit.kernels.streaming.castle import distances

SHORT = 64  # scanning so few rows takes no time
NEAR_PARTS = 4  # times k: the nearest rows that are sorted first; they usually have all values that a part needs


@kernel
def split_persons(axes: Axes, rows: Reals, person_of: Ints, order: Ints, k: int) -> tuple[Ints, int]:
    """Part of each person, all with k or more, and their number. `order`: random order in which persons start a part.

    >>> from kernel_inputs import number_axes
    >>> ages = np.array([[30.0], [70.0], [31.0], [72.0], [45.0]])
    >>> split_persons(number_axes([100.0]), ages, np.arange(5), np.array([1, 0, 2, 3, 4]), 2)[0].tolist()
    [1, 0, 1, 0, 1]
    """
    persons = len(order)
    part_of, parts, left = np.full(persons, -1, np.int64), 0, persons
    first = np.full(persons, -1, np.int64)
    for i in range(len(rows)):
        if first[person_of[i]] < 0:
            first[person_of[i]] = i
    near, here = np.empty(persons), _free_rows(person_of, part_of)
    columns = _columns(rows, here)
    for seed in order:
        if left < k:
            break
        if part_of[seed] >= 0:
            continue
        if len(here) > 2 * left and len(here) > SHORT:  # remove assigned rows from the scan
            here = _free_rows(person_of, part_of)
            columns = _columns(rows, here)
        near.fill(np.inf)
        far = distances(axes, columns, rows[first[seed]])
        for i in range(len(here)):
            p = person_of[here[i]]
            if part_of[p] < 0 and far[i] < near[p]:
                near[p] = far[i]
        near[seed] = -1.0
        _take_nearest(near, part_of, parts, k)
        parts, left = parts + 1, left - k
    if parts > 0:
        _leftovers(axes, rows, person_of, part_of, parts)
    return part_of, parts


@kernel
def _take_nearest(near: Reals, part_of: Ints, part: int, k: int) -> None:
    """Find the k nearest free rows; ties go to the first."""
    limit, taken = _nth(near.copy(), k - 1), 0
    for p in range(len(near)):
        if near[p] < limit:
            part_of[p] = part
            taken += 1
    for p in range(len(near)):
        if taken < k and near[p] == limit and part_of[p] < 0:
            part_of[p] = part
            taken += 1


@kernel
def _nth(numbers: Reals, n: int) -> float:
    """Select the n-th smallest, counted from 0; reorders the numbers."""
    lo, hi = 0, len(numbers) - 1
    while lo < hi:
        pivot, i, j = numbers[(lo + hi) >> 1], lo, hi
        while i <= j:
            while numbers[i] < pivot:
                i += 1
            while numbers[j] > pivot:
                j -= 1
            if i <= j:
                numbers[i], numbers[j] = numbers[j], numbers[i]
                i, j = i + 1, j - 1
        if n <= j:
            hi = j
        elif n >= i:
            lo = i
        else:
            break
    return numbers[n]


@kernel
def _free_rows(person_of: Ints, part_of: Ints) -> Ints:
    """List the rows of persons in no part (loops: index arrays take seconds to compile)."""
    free, count = np.empty(len(person_of), np.int64), 0
    for i in range(len(person_of)):
        if part_of[person_of[i]] < 0:
            free[count] = i
            count += 1
    return free[:count]


@kernel
def _columns(rows: Reals, here: Ints) -> Reals:
    columns = np.empty((rows.shape[1], len(here)))
    for i in range(len(here)):
        for j in range(rows.shape[1]):
            columns[j, i] = rows[here[i], j]
    return columns


@kernel
def _leftovers(axes: Axes, rows: Reals, person_of: Ints, part_of: Ints, parts: int) -> None:
    """Add each remaining person, with all rows, to the part that grows least."""
    persons = len(part_of)
    class_of = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        class_of[i] = part_of[person_of[i]]
    lo, hi = boxes_of(rows, class_of, parts)
    own_lo, own_hi = boxes_of(rows, person_of, persons)
    for p in range(persons):
        if part_of[p] >= 0:
            continue
        best, least = 0, np.inf
        for part in range(parts):
            more = joint_cost(axes, lo[part], hi[part], own_lo[p], own_hi[p]) - box_cost(axes, lo[part], hi[part])
            if more < least:
                best, least = part, more
        part_of[p] = best
        for j in range(rows.shape[1]):
            lo[best, j], hi[best, j] = min(lo[best, j], own_lo[p, j]), max(hi[best, j], own_hi[p, j])


@kernel
def split_values(axes: Axes, rows: Reals, value_of: Ints, values: int, order: Ints, k: int, l: int,
                 fair: bool) -> tuple[Ints, int]:  # fmt: skip
    """Part of each row, one row per person, and their number: every part has at least k rows and l values.

    A `fair` part has a share of every remaining value; else the nearest rows of l values, and then the nearest rows.

    >>> from kernel_inputs import number_axes
    >>> ages, ills = np.array([[20.0], [70.0], [21.0], [71.0]]), np.array([0, 0, 1, 1])
    >>> [split_values(number_axes([100.0]), ages, ills, 2, np.arange(4), 2, 2, fair)[0].tolist() for fair in (True, False)]
    [[0, 1, 0, 1], [0, 1, 0, 1]]
    """
    n = len(rows)
    part_of, parts, left = np.full(n, -1, np.int64), 0, n
    size, alone = np.zeros(values, np.int64), np.arange(n)
    for i in range(n):
        size[value_of[i]] += 1
    here = _free_rows(alone, part_of)
    columns = _columns(rows, here)
    for x in order:
        if left < k or _count_present(size) < l:
            break
        if part_of[x] >= 0:
            continue
        if len(here) > 2 * left and len(here) > SHORT:
            here = _free_rows(alone, part_of)
            columns = _columns(rows, here)
        far = distances(axes, columns, rows[x])
        nearest = _sort_nearest(far, here, part_of, min(left, NEAR_PARTS * k))
        wanted = _shares(size, k, left) if fair else _nearest_values(nearest, part_of, value_of, x, values, l)
        if len(nearest) < left and not _has_enough(nearest, value_of, wanted, 0 if fair else l):
            nearest = _sort_nearest(far, here, part_of, left)
            if not fair:
                wanted = _nearest_values(nearest, part_of, value_of, x, values, l)
        left -= _take_values(nearest, part_of, value_of, x, parts, wanted, size)
        if not fair:
            left -= _fill_up(nearest, part_of, value_of, parts, k - min(k, wanted.sum()), size)
        parts += 1
    if parts > 0:
        _leftovers(axes, rows, alone, part_of, parts)
    return part_of, parts


@kernel
def _sort_nearest(far: Reals, here: Ints, part_of: Ints, count: int) -> Ints:
    """List the `count` nearest of the rows `here` that are in no part, nearest first, and those as far as the last of them."""
    free, size = np.empty(len(here), np.int64), 0
    for i in range(len(here)):
        if part_of[here[i]] < 0:
            free[size] = i
            size += 1
    numbers = np.empty(size)
    for i in range(size):
        numbers[i] = far[free[i]]
    limit, near = _nth(numbers, count - 1), 0
    for i in range(size):
        if far[free[i]] <= limit:
            free[near] = free[i]
            numbers[near] = far[free[i]]
            near += 1
    order = np.argsort(numbers[:near], kind="mergesort")
    for i in range(near):
        order[i] = here[free[order[i]]]
    return order


@kernel
def _has_enough(nearest: Ints, value_of: Ints, wanted: Ints, l: int) -> bool:
    """Whether these rows contain as many of each value as wanted, and l values are wanted."""
    lacking, values = wanted.copy(), 0
    for i in nearest:
        lacking[value_of[i]] -= 1
    for v in range(len(wanted)):
        values += wanted[v] > 0
        if lacking[v] > 0:
            return False
    return values >= l


@kernel
def _count_present(size: Ints) -> int:
    """Count the remaining values."""
    count = 0
    for v in range(len(size)):
        count += size[v] > 0
    return count


@kernel
def _shares(size: Ints, k: int, left: int) -> Ints:
    """ceil(k b / s) of a value with b rows among s: never more than b, and k of all or more."""
    shares = np.empty(len(size), np.int64)
    for v in range(len(size)):
        shares[v] = (k * size[v] + left - 1) // left
    return shares


@kernel
def _nearest_values(nearest: Ints, part_of: Ints, value_of: Ints, x: int, values: int, l: int) -> Ints:
    """One row of x's own value and of each of the first l - 1 other values."""
    wanted, found = np.zeros(values, np.int64), 1
    wanted[value_of[x]] = 1
    for i in nearest:
        if found < l and part_of[i] < 0 and wanted[value_of[i]] == 0:
            wanted[value_of[i]] = 1
            found += 1
    return wanted


@kernel
def _take_values(nearest: Ints, part_of: Ints, value_of: Ints, x: int, part: int, wanted: Ints, size: Ints) -> int:
    """Choose x and the nearest rows of each value, x among them, as many as wanted."""
    open_, taken = wanted.copy(), 1
    part_of[x] = part
    open_[value_of[x]] -= 1
    size[value_of[x]] -= 1
    for i in nearest:
        v = value_of[i]
        if part_of[i] < 0 and open_[v] > 0:
            part_of[i] = part
            open_[v] -= 1
            size[v] -= 1
            taken += 1
    return taken


@kernel
def _fill_up(nearest: Ints, part_of: Ints, value_of: Ints, part: int, missing: int, size: Ints) -> int:
    taken = 0
    for i in nearest:
        if taken == missing:
            break
        if part_of[i] < 0:
            part_of[i] = part
            size[value_of[i]] -= 1
            taken += 1
    return taken
