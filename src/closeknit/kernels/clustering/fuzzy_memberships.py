"""Memberships of fuzzy clusters that all have the same size, and the means of such clusters, in one fixed order of summing.

For given squared distances `d` the memberships `u` minimise `sum_j w_j sum_i u_ij^2 d_ij` such that every point is fully
assigned (`sum_i u_ij = 1`), every cluster holds the same weight (`sum_j w_j u_ij = n/c`) and nothing is negative. With a price
`b_i` on each cluster, `u_ij = max(0, alpha_j + b_i) / (2 d_ij)`, where alpha_j follows by filling up from the highest price;
Newton's method on the concave dual finds the prices; its matrix is the c x c system of the text books without the
pairs at zero. O(points * c^2) a step.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.boxes import Ints

STEPS = 100  # Newton steps at most; ten are usual
EXACT = 1e-10  # weight that a cluster may miss, of its n/c


@kernel
def square_distances(points: Reals, centres: Reals, more: float) -> Reals:
    """Squared distance of every point to every centre, plus `more` so that none is 0 (a floor would let the objective rise).

    >>> square_distances(np.array([[0.0], [3.0]]), np.array([[1.0], [3.0]]), 0.5).tolist()
    [[1.5, 9.5], [4.5, 0.5]]
    """
    d = np.empty((len(points), len(centres)))
    for j in range(len(points)):
        for i in range(len(centres)):
            total = more
            for x in range(points.shape[1]):
                gap = points[j, x] - centres[i, x]
                total += gap * gap
            d[j, i] = total
    return d


@kernel
def _fill_memberships(d: Reals, weights: Ints, b: Reals, u: Reals) -> float:
    """Fill `u` for the prices `b` and return their dual value."""
    c = len(b)
    order = np.argsort(-b, kind="mergesort")
    value = b.sum() * weights.sum() / c
    for j in range(len(d)):
        shares, priced, alpha = 0.0, 0.0, 0.0
        for i in order:
            if shares > 0.0 and alpha + b[i] <= 0.0:
                break
            shares += 0.5 / d[j, i]
            priced += 0.5 * b[i] / d[j, i]
            alpha = (1.0 - priced) / shares
        for i in range(c):
            u[j, i] = max(0.0, alpha + b[i]) * 0.5 / d[j, i]
            value += weights[j] * u[j, i] * (u[j, i] * d[j, i] - b[i])
    return value


@kernel
def _solve_cholesky(matrix: Reals, right: Reals) -> Reals:
    """Solve by Cholesky, in place; the matrix is positive definite because its diagonal was raised."""
    n = len(right)
    for i in range(n):
        for k in range(i):
            matrix[i, i] -= matrix[i, k] * matrix[i, k]
            right[i] -= matrix[i, k] * right[k]
        matrix[i, i] = np.sqrt(max(matrix[i, i], 1e-300))
        right[i] /= matrix[i, i]
        for r in range(i + 1, n):
            for k in range(i):
                matrix[r, i] -= matrix[r, k] * matrix[i, k]
            matrix[r, i] /= matrix[i, i]
    for i in range(n - 1, -1, -1):
        for r in range(i + 1, n):
            right[i] -= matrix[r, i] * right[r]
        right[i] /= matrix[i, i]
    return right


@kernel
def _curvature(d: Reals, weights: Ints, u: Reals) -> Reals:
    """Derivative of each cluster's weight by each price, over the pairs in use; the lower half."""
    c = d.shape[1]
    matrix = np.zeros((c, c))
    a = np.empty(c)
    for j in range(len(d)):
        total = 0.0
        for i in range(c):
            a[i] = 0.5 / d[j, i] if u[j, i] > 0.0 else 0.0
            total += a[i]
        for i in range(c):
            if a[i] > 0.0:
                matrix[i, i] += weights[j] * a[i]
                pull = weights[j] * a[i] / total
                for k in range(i + 1):
                    matrix[i, k] -= pull * a[k]
    return matrix


@kernel
def _measure_shortfall(weights: Ints, u: Reals) -> Reals:
    """Weight that each cluster is short of n/c."""
    missed = np.full(u.shape[1], weights.sum() / u.shape[1])
    for j in range(len(u)):
        for i in range(u.shape[1]):
            missed[i] -= weights[j] * u[j, i]
    return missed


@kernel
def memberships(d: Reals, weights: Ints) -> Reals:
    """Compute the memberships `[points, clusters]`.

    Prices start at 0, where every pair is in use: from there Newton's method has never failed;
    from the last round's prices it can.

    >>> u = memberships(np.array([[1.0, 9.0], [1.0, 4.0], [4.0, 1.0]]), np.array([1, 1, 1]))
    >>> u.sum(axis=0).round(9).tolist(), u.sum(axis=1).round(9).tolist()
    ([1.5, 1.5], [1.0, 1.0, 1.0])
    """
    c, size = d.shape[1], weights.sum() / d.shape[1]
    b, u, tried = np.zeros(c), np.empty_like(d), np.empty_like(d)
    value = _fill_memberships(d, weights, b, u)
    raised = 1e-12  # share by which the diagonal is raised: the larger, the shorter the step and the surer its gain
    for _ in range(STEPS):
        missed = _measure_shortfall(weights, u)
        if np.abs(missed).max() <= EXACT * size:
            break
        matrix = _curvature(d, weights, u)
        least = 1e-12 * np.diag(matrix).max()
        while raised < 1e12:
            steeper, step = matrix[1:, 1:].copy(), np.zeros(c)
            for i in range(c - 1):
                steeper[i, i] = (steeper[i, i] + least) * (1.0 + raised)
            step[1:] = _solve_cholesky(steeper, missed[1:].copy())  # only differences of prices matter: the first one is fixed
            there = _fill_memberships(d, weights, b + step, tried)
            if there >= value - 1e-14 * abs(value) and (there > value or _closer(weights, tried, missed)):
                break
            raised *= 100.0
        else:
            break
        raised = max(1e-12, raised / 1e4)
        b += step
        value = there
        u, tried = tried, u
    return u


@kernel
def _closer(weights: Ints, u: Reals, missed: Reals) -> bool:
    """Whether the missing weights have fallen: near the end the dual value is too coarse to decide."""
    return np.abs(_measure_shortfall(weights, u)).max() < np.abs(missed).max()


@kernel
def means(points: Reals, amounts: Reals, before: Reals) -> Reals:
    """Compute the mean of each cluster, with weight `amounts[j, i]` for point j; an empty cluster keeps its centre.

    >>> means(np.array([[0.0], [3.0]]), np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[7.0], [8.0]])).tolist()
    [[2.0], [8.0]]
    """
    c, dimensions = before.shape
    sums, total = np.zeros((c, dimensions)), np.zeros(c)
    for j in range(len(points)):
        for i in range(c):
            if amounts[j, i] > 0.0:
                total[i] += amounts[j, i]
                for x in range(dimensions):
                    sums[i, x] += amounts[j, i] * points[j, x]
    for i in range(c):
        for x in range(dimensions):
            sums[i, x] = sums[i, x] / total[i] if total[i] > 0.0 else before[i, x]
    return sums
