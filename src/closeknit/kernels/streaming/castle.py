"""Open clusters of a stream: the cluster of each arriving row, the cost of merging, and the rows that a stored box covers.

Clusters are sorted by id in the first `totals[0]` entries of flat arrays. Their rows are linked by position, in the order of
arrival, through a ring buffer. Persons of clusters are counted in an open-addressing hash table of (id, person), so that
persons with several rows count once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.declared_axes import EQUAL, NUMBER, TREE, Axes, Ints, Reals, joint_cost, range_cost

ALL = 1 << 62  # the id of all clusters together in the table of persons
NEAR = 1e-12  # smaller differences of losses are rounding errors


class OpenClusters(NamedTuple):
    """All clusters; the owner allocates `links` and the table of persons long enough."""

    lo: Reals  # [eta, d]
    hi: Reals  # [eta, d]
    cost: Reals  # [eta, d] loss of each column
    persons: Ints  # [eta] distinct persons
    rows: Ints  # [eta]
    ids: Ints  # [eta] ascending
    head: Ints  # [eta] position of the oldest row
    tail: Ints  # [eta] and of the youngest
    totals: Ints  # [3] clusters now, and in total; persons in all of them
    links: Ints  # [ring] position of the next row of the same cluster
    who_id: Ints  # [table] -1: free slot; length 0 if every row is its own person
    who: Ints  # [table] person
    times: Ints  # [table] rows of the person in the cluster


@kernel
def arrive(
    axes: Axes, clusters: OpenClusters, rows: Reals, persons: Ints, span: tuple[int, int], first: int, tau: float
) -> None:
    """Assign each row of `span` of a block to a cluster, or open one; `first` is the position of the block's first row."""
    enlarged = np.empty(len(clusters.ids))
    for i in range(span[0], span[1]):
        c = choose(axes, clusters, rows[i], tau, enlarged)
        if c < 0:
            c = clusters.totals[0]
            clusters.totals[0] += 1
            clusters.ids[c] = clusters.totals[1]
            clusters.totals[1] += 1
            clusters.rows[c] = clusters.persons[c] = 0
            for j in range(rows.shape[1]):
                clusters.lo[c, j] = clusters.hi[c, j] = rows[i, j]
                clusters.cost[c, j] = range_cost(axes, j, rows[i, j], rows[i, j])
        _join(axes, clusters, c, rows[i], persons[i], first + i)


@kernel
def choose(axes: Axes, clusters: OpenClusters, row: Reals, tau: float, enlarged: Reals) -> int:
    """Find the cluster that grows least by this row, with the fewest persons; -1 if a new one must be opened."""
    best, n, d = np.inf, clusters.totals[0], len(row)
    for c in range(n):
        more = 0.0
        for j in range(d):
            x, lo, hi = row[j], clusters.lo[c, j], clusters.hi[c, j]
            if x < lo or x > hi:
                more += axes.weight[j] * (range_cost(axes, j, min(x, lo), max(x, hi)) - clusters.cost[c, j])
                if more > best:
                    break
        enlarged[c] = more
        best = min(best, more)
    any_one, small_one = -1, -1
    for c in range(n):
        if enlarged[c] == best:
            if any_one < 0 or clusters.persons[c] < clusters.persons[any_one]:
                any_one = c
            if (small_one < 0 or clusters.persons[c] < clusters.persons[small_one]) and (
                joint_cost(axes, clusters.lo[c], clusters.hi[c], row, row) <= tau + NEAR
            ):
                small_one = c
    if small_one >= 0:
        return small_one
    return any_one if n >= len(clusters.ids) else -1


@kernel
def _join(axes: Axes, clusters: OpenClusters, c: int, row: Reals, person: int, position: int) -> None:
    for j in range(len(row)):
        x = row[j]
        if x < clusters.lo[c, j] or x > clusters.hi[c, j]:
            clusters.lo[c, j], clusters.hi[c, j] = min(clusters.lo[c, j], x), max(clusters.hi[c, j], x)
            clusters.cost[c, j] = range_cost(axes, j, clusters.lo[c, j], clusters.hi[c, j])
    if clusters.rows[c] == 0:
        clusters.head[c] = position
    else:
        clusters.links[clusters.tail[c] & (len(clusters.links) - 1)] = position
    clusters.tail[c] = position
    clusters.rows[c] += 1
    if len(clusters.who) == 0:
        clusters.persons[c] += 1
        clusters.totals[2] += 1
    else:
        clusters.persons[c] += _count(clusters, clusters.ids[c], person)
        clusters.totals[2] += _count(clusters, ALL, person)


@kernel
def _count(clusters: OpenClusters, cluster: int, person: int) -> int:
    """Add a row of a person; 1 if it is the first."""
    place = _place(clusters, cluster, person)
    if clusters.who_id[place] >= 0:
        clusters.times[place] += 1
        return 0
    clusters.who_id[place], clusters.who[place], clusters.times[place] = cluster, person, 1
    return 1


@kernel
def _discount(clusters: OpenClusters, cluster: int, person: int) -> int:
    """Remove a row of a person; 1 if it was the last."""
    place = _place(clusters, cluster, person)
    clusters.times[place] -= 1
    if clusters.times[place] > 0:
        return 0
    _free(clusters, place)
    return 1


@kernel
def members(clusters: OpenClusters, c: int) -> Ints:
    """List the positions of the rows of a cluster, oldest first."""
    found = np.empty(clusters.rows[c], np.int64)
    position = clusters.head[c]
    for i in range(len(found)):
        found[i] = position
        position = clusters.links[position & (len(clusters.links) - 1)]
    return found


@kernel
def refill(axes: Axes, clusters: OpenClusters, c: int, rows: Reals, persons: Ints, positions: Ints) -> None:
    """Set the rows of a cluster whose persons were removed before."""
    clusters.rows[c] = clusters.persons[c] = 0
    shrink(axes, clusters, c, rows)
    for i in range(len(positions)):
        _join(axes, clusters, c, rows[i], persons[i], positions[i])


@kernel
def shrink(axes: Axes, clusters: OpenClusters, c: int, rows: Reals) -> None:
    """Set the box of a cluster to that of these rows."""
    for j in range(rows.shape[1]):
        lo = hi = rows[0, j]
        for i in range(1, len(rows)):
            lo, hi = min(lo, rows[i, j]), max(hi, rows[i, j])
        clusters.lo[c, j], clusters.hi[c, j], clusters.cost[c, j] = lo, hi, range_cost(axes, j, lo, hi)


@kernel
def forget(clusters: OpenClusters, c: int, persons: Ints) -> None:
    """Remove rows of these persons from the counts of the cluster (the caller updates boxes and links)."""
    if len(clusters.who) == 0:
        clusters.persons[c] -= len(persons)
        clusters.totals[2] -= len(persons)
        return
    for person in persons:
        clusters.persons[c] -= _discount(clusters, clusters.ids[c], person)
        clusters.totals[2] -= _discount(clusters, ALL, person)


@kernel
def _address(cluster: int, person: int, length: int) -> int:
    mixed = np.uint64(person) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(cluster) * np.uint64(0xC2B2AE3D27D4EB4F)
    return np.int64((mixed >> np.uint64(32)) & np.uint64(length - 1))  # type: ignore[return-value]


@kernel
def _place(clusters: OpenClusters, cluster: int, person: int) -> int:
    """Find the slot of a person of a cluster, or the free slot for it."""
    mask = len(clusters.who) - 1
    i = _address(cluster, person, len(clusters.who))
    while clusters.who_id[i] >= 0 and not (clusters.who_id[i] == cluster and clusters.who[i] == person):
        i = (i + 1) & mask
    return i


@kernel
def _free(clusters: OpenClusters, gap: int) -> None:
    """Shift entries back into a freed slot, so that no search stops too early."""
    mask, i = len(clusters.who) - 1, gap
    while True:
        i = (i + 1) & mask
        if clusters.who_id[i] < 0:
            break
        home = _address(clusters.who_id[i], clusters.who[i], len(clusters.who))
        if ((i - home) & mask) >= ((i - gap) & mask):
            clusters.who_id[gap], clusters.who[gap] = clusters.who_id[i], clusters.who[i]
            clusters.times[gap] = clusters.times[i]
            gap = i
    clusters.who_id[gap] = -1


@kernel
def rehash_counts(clusters: OpenClusters, who_id: Ints, who: Ints, times: Ints) -> None:
    """Fill an empty table from a shorter one."""
    for i in range(len(who)):
        if who_id[i] >= 0:
            place = _place(clusters, who_id[i], who[i])
            clusters.who_id[place], clusters.who[place], clusters.times[place] = who_id[i], who[i], times[i]


@kernel
def merging_order(axes: Axes, lo: Reals, hi: Reals, c: int) -> Ints:
    """Cluster c and the others, each time the one that enlarges the merged box least.

    >>> from kernel_inputs import number_axes
    >>> ages = np.array([[30.0], [80.0], [34.0]])
    >>> merging_order(number_axes([100.0]), ages, ages, 0).tolist()
    [0, 2, 1]
    """
    n = len(lo)
    order, left = np.empty(n, np.int64), np.ones(n, np.bool_)
    low, high = lo[c].copy(), hi[c].copy()
    order[0], left[c] = c, False
    for step in range(1, n):
        best, least = -1, np.inf
        for other in range(n):
            if left[other]:
                cost = joint_cost(axes, low, high, lo[other], hi[other])
                if cost < least:
                    best, least = other, cost
        order[step], left[best] = best, False
        for j in range(len(low)):
            low[j], high[j] = min(low[j], lo[best, j]), max(high[j], hi[best, j])
    return order


@kernel
def covers_row(axes: Axes, lo: Reals, hi: Reals, row: Reals) -> bool:
    """Whether the written box covers a row: a node covers all its leaves, a star everything.

    >>> from kernel_inputs import number_axes
    >>> box = np.array([30.0]), np.array([40.0])
    >>> [bool(covers_row(number_axes([100.0]), *box, np.array([x]))) for x in (35.0, 41.0)]
    [True, False]
    """
    for j in range(len(row)):
        x = row[j]
        if hi[j] == axes.unknown[j] or (lo[j] != hi[j] and (hi[j] == axes.missing[j] or axes.kind[j] == EQUAL)):
            continue  # a star
        if lo[j] <= x <= hi[j]:
            continue
        if axes.kind[j] == EQUAL or axes.kind[j] == NUMBER or x >= axes.missing[j] or hi[j] == axes.missing[j]:
            return False
        if _node(axes, j, min(x, lo[j]), max(x, hi[j])) != _node(axes, j, lo[j], hi[j]):
            return False
    return True


@kernel
def _node(axes: Axes, j: int, lo: float, hi: float) -> int:
    node, last = axes.leaf_node[axes.leaf_start[j] + np.int64(lo)], np.int64(hi)
    while axes.node_hi[node] < last:
        node = axes.node_parent[node]
    return node


@kernel
def covering(axes: Axes, lo: Reals, hi: Reals, row: Reals) -> NDArray[np.bool_]:
    """Which of these boxes cover a row."""
    found = np.empty(len(lo), np.bool_)
    for i in range(len(lo)):
        found[i] = covers_row(axes, lo[i], hi[i], row)
    return found


@kernel
def inside(axes: Axes, lo: Reals, hi: Reals, rows: Reals) -> NDArray[np.bool_]:
    """Which of these rows a box covers."""
    found = np.empty(len(rows), np.bool_)
    for i in range(len(rows)):
        found[i] = covers_row(axes, lo, hi, rows[i])
    return found


@kernel
def distances(axes: Axes, columns: Reals, x: Reals) -> Reals:
    """Loss of each row written together with x; `columns` has a row for each column, for contiguous access.

    >>> from kernel_inputs import number_axes
    >>> distances(number_axes([10.0]), np.array([[1.0, 6.0]]), np.array([1.0])).tolist()
    [0.0, 0.5]
    """
    far = np.zeros(columns.shape[1])
    for j in range(len(x)):
        weight, own = axes.weight[j], x[j]
        if axes.kind[j] == NUMBER and own < axes.missing[j]:
            _add_widths(far, columns[j], own, weight / axes.span[j], weight, axes.missing[j])
        elif axes.kind[j] == TREE and own < axes.missing[j]:
            _add_losses(far, columns[j], _losses_from(axes, j, own))
        else:
            for i in range(len(far)):
                far[i] += weight * range_cost(axes, j, min(own, columns[j, i]), max(own, columns[j, i]))
    return far


@kernel
def _add_widths(far: Reals, column: Reals, x: float, scale: float, most: float, missing: float) -> None:
    for i in range(len(far)):
        far[i] += most if column[i] >= missing else abs(column[i] - x) * scale


@kernel
def _losses_from(axes: Axes, j: int, x: float) -> Reals:
    """Cost of a cell with x and another leaf, for each leaf, missing and unknown: by the leaves under each ancestor of x."""
    leaves = np.int64(axes.missing[j])
    losses, node, leaf = np.full(leaves + 2, axes.weight[j]), axes.leaf_node[axes.leaf_start[j] + np.int64(x)], np.int64(x)
    losses[leaf] = 0.0
    for other in range(leaf + 1, leaves):
        while axes.node_hi[node] < other:
            node = axes.node_parent[node]
        losses[other] = axes.weight[j] * axes.node_loss[node]
    for other in range(leaf):
        losses[other] = axes.weight[j] * axes.node_loss[_node(axes, j, other, x)]
    return losses


@kernel
def _add_losses(far: Reals, column: Reals, losses: Reals) -> None:
    for i in range(len(far)):
        far[i] += losses[np.int64(column[i])]
