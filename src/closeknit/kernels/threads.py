"""Compiled loops in threads: they release the interpreter lock, and results do not depend on the number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

from closeknit.kernels.geometry.boxes import Ints

THREADS = 4  # at most

Part = TypeVar("Part")
Found = TypeVar("Found")


def in_threads(work: Callable[[Part], Found], parts: Sequence[Part]) -> list[Found]:
    """Apply `work` to each part in threads and return the results in order.

    >>> in_threads(abs, [-1, 2])
    [1, 2]
    """
    threads = min(THREADS, os.cpu_count() or 1, len(parts))
    if threads <= 1:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))


def spans(weights: Ints, least: int) -> list[tuple[int, int]]:
    """Split a sequence into (start, end) spans of about equal weight, none much lighter than `least`.

    >>> spans(np.array([4, 1, 1, 1, 1]), 4)
    [(0, 1), (1, 5)]
    """
    total = int(weights.sum())
    parts = int(np.clip(total // least, 1, 2 * THREADS))
    if parts == 1:
        return [(0, len(weights))]
    ends = np.searchsorted(np.cumsum(weights), total * np.arange(1, parts) // parts) + 1
    return list(pairwise(np.unique([0, *ends, len(weights)]).tolist()))
