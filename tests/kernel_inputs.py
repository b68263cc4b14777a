"""The simplest inputs of kernels, for tests and for doctests of kernels."""

from __future__ import annotations

import numpy as np

from closeknit.kernels.exchange.closeness_exchange import Secrets
from closeknit.kernels.exchange.knit_guard import CAPS, Guard
from closeknit.kernels.geometry.boxes import Codes, Scales
from closeknit.kernels.geometry.declared_axes import Axes


def flat_scales(sizes: list[int], numeric: bool = True) -> Scales:
    """Evenly spaced numeric columns, or trees of one level."""
    leaves = np.array(sizes, np.int64) + 1
    start = np.concatenate(([0], np.cumsum(leaves)[:-1])).astype(np.int64)
    position = np.concatenate([np.minimum(np.arange(n) / max(n - 2, 1), 1.0) for n in leaves])
    root = (start + np.arange(len(sizes)) + leaves).astype(np.int32)  # a column's leaves precede its root
    leaf_node = np.concatenate([np.arange(r - n, r) for r, n in zip(root, leaves, strict=True)])
    leaf = np.concatenate([np.append(np.arange(n), -1) for n in leaves])
    parent = np.concatenate([np.append(np.full(n, r), -1) for n, r in zip(leaves, root, strict=True)])
    hi = np.where(leaf >= 0, leaf, np.repeat(leaves - 1, leaves + 1))
    return Scales(
        np.full(len(sizes), numeric), leaves - 1, start, position, leaf_node.astype(np.int32), parent.astype(np.int32),
        np.maximum(leaf, 0).astype(np.int32), hi.astype(np.int32), (leaf < 0).astype(np.float64),
        np.full(len(sizes), 1 / max(len(sizes), 1)),
    )  # fmt: skip


def number_axes(spans: list[float]) -> Axes:
    """Columns of numbers of equal importance."""
    d = len(spans)
    none, reals = np.zeros(0, np.int64), np.zeros(0)
    far = np.full(d, 1e300)
    return Axes(
        np.zeros(d, np.int64), np.array(spans, np.float64), far, 2 * far, np.zeros(d, np.int64), none, none, none, reals,
        np.full(d, 1 / max(d, 1)),
    )  # fmt: skip


def one_cap(secret: Codes, k: int) -> Guard:
    """No value may have more than half of a class.

    >>> one_cap(np.array([0, 1, 1], np.int32), 2).rows.tolist()
    [3, 1, 2]
    """
    m, n = int(secret.max()) + 1, len(secret)
    zeros, ones = np.zeros(m + 1, np.int64), np.ones(m + 1, np.int64)
    half = np.append(1, ones[1:] * 2)
    return Guard(
        k, (secret + 1).reshape(n, 1).astype(np.int32), np.array([0, m + 1]), np.array([CAPS]), zeros, np.append(0, ones[1:]),
        zeros, np.append(n, np.bincount(secret)), np.zeros((1, n + 1), np.int64), ones, half, zeros, ones, zeros[:1],
        np.zeros(1),
    )  # fmt: skip


def two_values(t: float) -> Secrets:
    """Two rows of one value and two of another.

    >>> two_values(0.1).share.tolist()
    [1.0, 0.5, 0.5]
    """
    node = np.array([[1], [1], [2], [2]], np.int32)
    parent, line = np.zeros(3, np.int64), np.zeros(1, np.bool_)
    return Secrets(node, np.array([0, 3]), parent, np.array([0, 0.5, 0.5]), np.array([1, 0.5, 0.5]), line, np.array([t]))
