"""Random k-anonymous partitions, seeded: blind to the sensitive attributes, or with only some of dealing's properties.

P1: class sizes differ by one at most. P2: the counts of each value in two classes differ by one at most. How uniform each is:

- `sizes_k` (Group 1: sizes k or k + 1): every partition of the rows into such classes is equally likely;
- `sizes_free` (Group 2: sizes of at least k): every such partition is equally likely. There are far more partitions into many
  classes than into few, so sizes stay near k;
- `count_first` (also Group 2): the number of classes is drawn evenly from 2 to n/k, then their sizes, evenly, then the rows.
  Not uniform over partitions: few and large classes are as likely as many and small ones;
- `neither` (A) and `sizes_only` (B): the uniform ones, without those that have P2 (or, for A, P1) by chance;
- `values_only_count_first` (also D): likewise with the number of classes drawn first;
- `both` (C), `values_only` (D), `values_within` 2 and 3 (Rand1, Rand2; sizes of at least k): a walk on tables of counts (class
  by value) that proposes each change as often as its opposite and takes all that keep the property. In the long run all tables
  of counts that it can reach are equally likely. For C these are all of them with its class sizes; for the others no one has
  proved so. Each partition is `STEPS` steps a cell from the one before (the first from dealing); rows of a value are
  interchangeable and drawn evenly. C has floor(n/k) classes, the others floor(n/(k + 1)), so that sizes can differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

Int32 = NDArray[np.int32]
Sampler = Callable[[int, int, np.random.Generator], Int32]
STEPS = 10


def shuffled(sizes: NDArray[np.integer], rng: np.random.Generator) -> Int32:
    """Class of each row: classes of these sizes, every choice of their rows equally likely.

    >>> np.bincount(shuffled(np.array([2, 3]), np.random.default_rng(0))).tolist()
    [2, 3]
    """
    class_of: Int32 = rng.permutation(np.repeat(np.arange(len(sizes), dtype=np.int32), sizes))
    return class_of


def sizes_k(n: int, k: int, rng: np.random.Generator) -> Int32:
    """Group 1.

    >>> sorted(set(np.bincount(sizes_k(100, 7, np.random.default_rng(0))).tolist()))
    [7, 8]
    """
    counts = np.arange(-(-n // (k + 1)), n // k + 1)
    if len(counts) == 0:
        raise ValueError(f"{n} rows cannot stand in classes of {k} or {k + 1}")
    larger = n - k * counts
    smaller = counts - larger
    ways = -(smaller * gammaln(k + 1) + larger * gammaln(k + 2) + gammaln(smaller + 1) + gammaln(larger + 1))
    chosen = rng.choice(len(counts), p=np.exp(ways - logsumexp(ways)))
    return shuffled(np.repeat([k, k + 1], [smaller[chosen], larger[chosen]]), rng)


def sizes_free(n: int, k: int, rng: np.random.Generator) -> Int32:
    """Group 2: the class of the first free row gets its size in proportion to the partitions that go on from there.

    >>> int(np.bincount(sizes_free(100, 7, np.random.default_rng(0))).min()) >= 7
    True
    """
    ways, sizes, left = _partitions(n, k), [], n
    while left:
        size = np.arange(k, left + 1)
        share = _choices(left, size) + ways[left - size]
        sizes.append(int(rng.choice(size, p=np.exp(share - logsumexp(share)))))
        left -= sizes[-1]
    return shuffled(np.array(sizes), rng)


def count_first(n: int, k: int, rng: np.random.Generator) -> Int32:
    """Group 2 with the number of classes drawn first.

    >>> int(np.bincount(count_first(100, 7, np.random.default_rng(0))).min()) >= 7
    True
    """
    count = int(rng.integers(min(2, n // k), n // k + 1))  # one class of everything says nothing
    bars = np.sort(rng.choice(n - k * count + count - 1, count - 1, replace=False))
    return shuffled(k + np.diff(np.concatenate([[-1], bars, [n - k * count + count - 1]])) - 1, rng)


@lru_cache
def _partitions(n: int, k: int) -> NDArray[np.float64]:
    """Logarithm of the number of partitions of m rows into classes of at least k, for every m up to n."""
    ways = np.full(n + 1, -np.inf)
    ways[0] = 0.0
    for m in range(k, n + 1):
        size = np.arange(k, m + 1)
        ways[m] = logsumexp(_choices(m, size) + ways[m - size])
    return ways


def _choices(m: int, size: NDArray[np.integer]) -> NDArray[np.float64]:
    """Logarithm of the choices of the others in the class of one of m rows."""
    return gammaln(m) - gammaln(size) - gammaln(m - size + 1)


def neither(codes: Int32, k: int, rng: np.random.Generator) -> Iterator[Int32]:
    """A: neither P1 nor P2."""
    return _without(codes, k, rng, sizes_free, lambda class_of: width(class_of, codes) < 2 or uneven(class_of) < 2)


def sizes_only(codes: Int32, k: int, rng: np.random.Generator) -> Iterator[Int32]:
    """B: P1, not P2."""
    return _without(codes, k, rng, sizes_k, lambda class_of: width(class_of, codes) < 2)


def both(codes: Int32, k: int, rng: np.random.Generator) -> Iterator[Int32]:
    """C: P1 and P2.

    >>> codes = np.repeat(np.arange(4), [9, 7, 3, 2]).astype(np.int32)
    >>> one = next(both(codes, 5, np.random.default_rng(0)))
    >>> uneven(one), width(one, codes)
    (1, 1)
    """
    return _Walk(codes, k, 1, True, rng).partitions(lambda class_of: True)


def values_only(codes: Int32, k: int, rng: np.random.Generator) -> Iterator[Int32]:
    """D: P2, not P1."""
    return _Walk(codes, k, 1, False, rng).partitions(lambda class_of: uneven(class_of) > 1)


def values_only_count_first(codes: Int32, k: int, rng: np.random.Generator) -> Iterator[Int32]:
    """D with the number of classes drawn first, evenly from 2 up: each partition begins a walk of its own."""
    while True:
        count = int(rng.integers(2, max(2, len(codes) // (k + 1)) + 1))
        yield next(values_only(codes, max(k, len(codes) // count - 1), rng))


def values_within(codes: Int32, k: int, most: int, rng: np.random.Generator) -> Iterator[Int32]:
    """Rand1 (`most` = 2) and Rand2 (3): counts of a value differ by so much at most, and of some value by so much."""
    return _Walk(codes, k, most, False, rng).partitions(lambda class_of: width(class_of, codes) == most)


def uneven(class_of: Int32) -> int:
    """Largest difference of two class sizes."""
    return int(np.ptp(np.bincount(class_of)))


def width(class_of: Int32, codes: Int32) -> int:
    """Largest difference of the counts of a value in two classes."""
    return int(np.ptp(_table(class_of, codes), axis=0).max())


def _table(class_of: Int32, codes: Int32) -> NDArray[np.int64]:
    values = int(codes.max()) + 1
    counts: NDArray[np.int64] = np.bincount(class_of * values + codes, minlength=values * (int(class_of.max()) + 1))
    return counts.reshape(-1, values)


def _without(
    codes: Int32, k: int, rng: np.random.Generator, draw: Sampler, refused: Callable[[Int32], bool]
) -> Iterator[Int32]:
    while True:
        class_of = draw(len(codes), k, rng)
        if not refused(class_of):
            yield class_of


class _Walk:
    """Random changes of a table of counts; with `equal`, class sizes stay as dealing makes them."""

    def __init__(self, codes: Int32, k: int, most: int, equal: bool, rng: np.random.Generator) -> None:
        self.k, self.most, self.equal, self.rng = k, most, equal, rng
        count = len(codes) // k if equal else max(1, len(codes) // (k + 1))
        dealt = np.arange(len(codes), dtype=np.int32) % count
        self.counts = _table(dealt, np.sort(codes))
        self.sizes = np.bincount(dealt)
        self.rows = np.argsort(codes, kind="stable")
        self.values = int(codes.max()) + 1
        # for each value: how many classes have so many of it
        self.classes_with = np.array([np.bincount(column, minlength=len(codes) + 6) for column in self.counts.T])

    def partitions(self, taken: Callable[[Int32], bool]) -> Iterator[Int32]:
        while True:
            self.walk(STEPS * len(self.sizes) * self.values)
            class_of = self.drawn()
            if taken(class_of):
                yield class_of

    def walk(self, steps: int) -> None:
        classes = self.rng.integers(0, len(self.sizes), (steps, 2))
        values = self.rng.integers(0, self.values, (steps, 2))
        _walked(self.counts, self.sizes, self.classes_with, classes, values, self.k, self.most, self.equal)

    def drawn(self) -> Int32:
        """Rows of each value are given to the classes in the order of a shuffle."""
        class_of = np.empty(len(self.rows), dtype=np.int32)
        start = 0
        for column in self.counts.T:
            stop = start + int(column.sum())
            class_of[self.rows[start:stop]] = shuffled(column, self.rng)
            start = stop
        return class_of


@njit(cache=True)
def _walked(counts, sizes, classes_with, classes, values, k, most, equal):  # type: ignore[no-untyped-def]
    for step in range(len(classes)):
        one, other = classes[step]
        given, got = values[step]
        if one == other or (equal and given == got) or (not equal and sizes[one] == k):
            continue
        if not _moved(counts, classes_with, one, other, given, most):
            continue
        if equal and not _moved(counts, classes_with, other, one, got, most):
            _moved(counts, classes_with, other, one, given, most)  # back: what was kept before is kept again
            continue
        if not equal:
            sizes[one] -= 1
            sizes[other] += 1


@njit(cache=True)
def _moved(counts, classes_with, one, other, value, most):  # type: ignore[no-untyped-def]
    """One row of a value from class to class, unless there is none or its counts would be too far apart."""
    less, more, have = counts[one, value], counts[other, value], classes_with[value]
    if less == 0:
        return False
    _change(have, less, more, -1)
    # counts differed by `most` at the most before, so only these can be too far from the two that changed
    low, high = more - most, less + most
    if have[high] or have[high + 1] or (low >= 0 and have[low]):
        _change(have, less, more, 1)
        return False
    counts[one, value] -= 1
    counts[other, value] += 1
    return True


@njit(cache=True)
def _change(have, less, more, way):  # type: ignore[no-untyped-def]
    have[less] += way
    have[more] += way
    have[less - 1] -= way
    have[more + 1] -= way
