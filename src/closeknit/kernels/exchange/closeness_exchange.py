"""Exchanges between a class and nearby rows that bring its sensitive values closer to the distribution in all rows.

Every ground distance used here is a tree with weights: the earth mover's distance is the sum over its nodes of weight *
|share of the class under the node - share of all rows|. A line is a tree of one branch. The change by an exchange is then a
difference of two sums along paths to the root, stored for every node and updated when a class changes, not for each trial.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.boxes import Codes, Ints, Reals

CLOSE = 1e-12  # rounding error of float sums; guarantees are decided elsewhere, exactly


class Secrets(NamedTuple):
    """The trees of all sensitive attributes, concatenated; a node follows its parent, a root is its own parent."""

    node: Codes  # [n, secrets] of each row
    start: Ints  # [secrets + 1] first node of each attribute
    parent: Ints  # [nodes]
    weight: Reals  # [nodes] 0 at a root
    share: Reals  # [nodes] of all rows under the node
    line: NDArray[np.bool_]  # [secrets] a tree of one branch
    t: Reals  # [secrets] the requested t


def no_secrets(n: int) -> Secrets:
    """No sensitive attributes.

    >>> no_secrets(3).node.shape
    (3, 0)
    """
    none, real = np.empty(0, np.int64), np.empty(0)
    return Secrets(np.empty((n, 0), np.int32), np.zeros(1, np.int64), none, real, real, np.empty(0, np.bool_), real)


class Survey(NamedTuple):
    """Distances of a class, and the change by adding or removing a row of each leaf, summed from the root down."""

    distance: Reals  # [secrets]
    more: Reals  # [nodes]
    less: Reals  # [nodes]


@kernel
def _survey(secrets: Secrets, members: Codes) -> Survey:
    nodes, size = len(secrets.parent), len(members)
    under = np.zeros(nodes, np.int64)
    found = Survey(np.zeros(len(secrets.t)), np.zeros(nodes), np.zeros(nodes))
    for row in members:
        for s in range(len(secrets.t)):
            under[secrets.node[row, s]] += 1
    for x in range(nodes - 1, -1, -1):
        if secrets.parent[x] != x:
            under[secrets.parent[x]] += under[x]
    for s in range(len(secrets.t)):
        for x in range(secrets.start[s], secrets.start[s + 1]):
            above, weight = secrets.parent[x], secrets.weight[x]
            extra = under[x] / size - secrets.share[x]
            found.distance[s] += weight * abs(extra)
            found.more[x] = found.more[above] + weight * (abs(extra + 1 / size) - abs(extra))
            found.less[x] = found.less[above] + weight * (abs(extra - 1 / size) - abs(extra))
    return found


@kernel
def excess(secrets: Secrets, members: Codes) -> float:
    """Excess of the worst sensitive attribute over its t; never below 0.

    >>> from kernel_inputs import two_values
    >>> excess(two_values(t=0.25), np.array([0, 1], np.int32))
    0.25
    """
    found, worst = _survey(secrets, members), 0.0
    for s in range(len(secrets.t)):
        worst = max(worst, found.distance[s] - secrets.t[s])
    return worst


@kernel
def _common(secrets: Secrets, s: int, a: int, b: int) -> int:
    """Find the lowest common ancestor."""
    if secrets.line[s]:
        return min(a, b)
    while a != b:
        if a > b:
            a = secrets.parent[a]
        else:
            b = secrets.parent[b]
    return a


@kernel
def _excess_with(secrets: Secrets, found: Survey, z: int, y: int) -> float:
    """Excess of the class with row y instead of row z."""
    worst = -np.inf
    for s in range(len(secrets.t)):
        a, b = secrets.node[z, s], secrets.node[y, s]
        top = _common(secrets, s, a, b)
        change = found.less[a] - found.less[top] + found.more[b] - found.more[top]
        worst = max(worst, found.distance[s] + change - secrets.t[s])
    return worst


@kernel
def exchange_members(secrets: Secrets, members: Codes, near: Codes) -> Codes:
    """Exchange each nearby row in turn for the member with the largest gain (ties: the farthest); return the class.

    >>> from kernel_inputs import two_values
    >>> exchange_members(two_values(t=0.25), np.array([0, 1], np.int32), np.array([2, 3], np.int32)).tolist()
    [0, 2]
    """
    members = members.copy()
    found, now = _survey(secrets, members), excess(secrets, members)
    for y in near:
        if now <= CLOSE:
            break
        best, place = now, -1
        for i in range(len(members) - 1, -1, -1):
            then = _excess_with(secrets, found, members[i], y)
            if then < best - CLOSE:
                best, place = then, i
        if place >= 0:
            members[place] = y
            found, now = _survey(secrets, members), best
    return members
