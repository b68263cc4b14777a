"""Sweeps over windows of neighbouring classes, each along another Hilbert curve, while the loss falls.

The curves pass through different corners of the classes, so that different classes become neighbours. A window touches its own
classes only: windows run in threads, and the result does not depend on how many there are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numba import config

from closeknit.kernels.dealing.boundary import Rules
from closeknit.kernels.dealing.class_members import ClassMembers, class_of, corners, rotate
from closeknit.kernels.dealing.class_windows import deal_windows
from closeknit.kernels.geometry.boxes import Codes, Ints, Scales, partition_loss, positions
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys
from closeknit.kernels.geometry.ranges import Costs, costs

WIDTH = 32  # classes in a window: at 64 a sweep gains a quarter more and takes twice the time
PULL = 1.0  # a box alone has plateaus: a mixed column costs the same for any row; the distance to the median decides there


def default_sweeps(n: int) -> int:
    """Number of sweeps: small tables until the gain is small, large ones four.

    >>> default_sweeps(1_000), default_sweeps(50_000), default_sweeps(1_000_000)
    (32, 20, 4)
    """
    return min(32, max(4, 1_000_000 // max(n, 1)))


def _dice(seed: int, sweep: int, d: int, sides: int) -> Ints:
    """Hash to numbers below `sides`, one per column (splitmix64), equal on every machine and version."""
    x = (np.arange(d, dtype=np.uint64) + np.uint64(64 * sweep + 1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x >> np.uint64(33)) % np.uint64(sides)).astype(np.int64)


def _class_order(held: ClassMembers, scales: Scales, sweep: int, seed: int) -> Ints:
    """Sort classes along a Hilbert curve, in every sweep through another corner of their boxes and with other axes first."""
    d, classes = held.quasi.shape[1], np.arange(len(held.start) - 1)
    which = np.array([0, 1, 2, 2])[_dice(seed, 3 * sweep, d, 4)]
    points = positions(scales, corners(held, classes, which)) / 2.0 ** _dice(seed, 3 * sweep + 1, d, 3)
    axes = np.argsort(_dice(seed, 3 * sweep + 2, d, 1 << 30), kind="stable")
    return np.argsort(hilbert_keys(np.ascontiguousarray(points[:, axes])), kind="stable")


def one_sweep(order: Ints, width: int, held: ClassMembers, rules: Rules, price: Costs, pull: float) -> None:
    """Reassign rows in windows of `width` classes along `order`, the first half as long; changes `held.member`."""
    e = len(order)
    edges = np.unique(np.concatenate(([0, e], np.arange(width // 2 if e > width else 0, e, width))))
    threads = min(config.NUMBA_NUM_THREADS, len(edges) - 1)  # type: ignore[attr-defined]
    cuts = np.linspace(0, len(edges) - 1, 4 * threads + 1).astype(int)  # a few parts per thread: they end together
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(deal_windows, edges[a : b + 1], order, held, rules, price, pull) for a, b in pairwise(cuts)]
        for part in parts:
            part.result()


def run_sweeps(
    held: ClassMembers, rules: Rules, scales: Scales, sweeps: int, seed: int = 0, width: int = WIDTH
) -> tuple[float, Codes]:
    """Run sweeps; return the least loss, the initial one included, and its class of each row. The last has no pull."""
    price, e = costs(scales), len(held.start) - 1
    kept = class_of(held)
    best = partition_loss(scales, held.quasi, kept, e)
    for sweep in range(sweeps):
        order = _class_order(held, scales, sweep, seed)
        one_sweep(order, width, held, rules, price, PULL if sweep < sweeps - 1 else 0.0)
        rotate(held)
        now = class_of(held)
        loss = partition_loss(scales, held.quasi, now, e)
        if loss < best:
            best, kept = loss, now
    return best, kept
