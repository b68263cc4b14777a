"""The probability of a sensitive value for a person with a known profile, over all buckets that match the profile.

With the share f(t,B) of rows of a bucket B that match the profile t (the product over the column groups) and the distribution
D(t,B) of the sensitive attribute given the known part of its group: `p(t,s) = sum_B p(t,B) D(t,B)[s]`, where p(t,B) is f(t,B)
times the size of the bucket ("size") or f(t,B) alone ("paper"), divided by the sum over all buckets. If all combinations of the
groups of a bucket are equally likely, "size" is the expected share of the value among the rows that match t; "paper" is the
same only for buckets of equal size.

Suppressed values (-1) do not count. Cost: one sort of the rows, and per profile a search in the buckets of its rarest code.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from closeknit.core.exact import near
from closeknit.core.row_sorting import groups
from closeknit.core.slices import Slices
from closeknit.kernels.arrays import Int32, Int64
from closeknit.kernels.slicing.profile_matching import Postings, disclosures, list_admitted

WEIGHTS = ("size", "paper")


def worst_disclosure(slices: Slices, profiles: Int32, weight: str) -> tuple[float, int, int]:
    """The largest p(t,s) over some profiles, the place of the first profile that has it, and the value's code.

    (0.0, -1, -1) if no profile matches any bucket.

    >>> bucket, secret = np.zeros(3, np.int32), np.array([0, 0, 1], np.int32)
    >>> known = np.zeros((3, 1), np.int32)
    >>> level, profile, value = worst_disclosure(Slices(bucket, known, 0, secret), known, "size")
    >>> round(level, 4), profile, value
    (0.6667, 0, 0)
    """
    index, (first, distinct) = _Index.of(slices), _distinct(profiles)
    level, value, *_ = index.floats(distinct, weight, np.arange(len(slices.secret) + 1))
    for q in np.flatnonzero(level < 0):
        shares = index.exact(index.encode_profiles(distinct[q : q + 1])[0], weight)
        value[q] = min(shares, key=lambda s: (-shares[s], s))
        level[q] = shares[int(value[q])]
    if not (level > 0).any():
        return 0.0, -1, -1
    peak = level.max()
    worst = int(np.flatnonzero(level == peak)[np.argmin(first[level == peak])])
    return float(peak), int(first[worst]), int(value[worst])


def exact_disclosure(slices: Slices, profile: Int32, weight: str) -> dict[int, Fraction]:
    """p(t,s) of one profile in rationals: value -> share, only values that are possible.

    >>> bucket, secret = np.zeros(3, np.int32), np.array([0, 0, 1], np.int32)
    >>> exact_disclosure(Slices(bucket, np.zeros((3, 1), np.int32), 0, secret), np.zeros(1, np.int32), "size")
    {0: Fraction(2, 3), 1: Fraction(1, 3)}
    """
    index = _Index.of(slices)
    return index.exact(index.encode_profiles(profile.reshape(1, -1))[0], weight)


def keeps_diverse(slices: Slices, profiles: Int32, l: Fraction, weight: str) -> bool:
    """Whether p(t,s) <= 1/l for all these profiles and every value, decided exactly.

    >>> bucket, secret = np.zeros(3, np.int32), np.array([0, 1, 2], np.int32)
    >>> keeps_diverse(Slices(bucket, np.zeros((3, 1), np.int32), 0, secret), np.zeros((1, 1)), Fraction(3), "size")
    True
    """
    index, (_, distinct) = _Index.of(slices), _distinct(profiles)
    level, _, matches, failing = index.floats(distinct, weight, most_alike(len(slices.secret), l))
    if ((failing > 0) & (matches == 1)).any():
        return False  # decided by one bucket, in whole numbers
    open_ = failing > 0  # if no bucket fails alone, their mean does not fail
    close = near(level, float(1 / l)) | (level < 0)
    if (open_ & ~close & (level > float(1 / l))).any():
        return False
    return all(
        max(index.exact(index.encode_profiles(distinct[q : q + 1])[0], weight).values()) <= 1 / l
        for q in np.flatnonzero(open_ & close)
    )


def matching_buckets(slices: Slices, profiles: Int32) -> Int64:
    """How many buckets each profile matches.

    >>> known = np.array([[0, 5], [1, 5], [1, 6]], np.int32)
    >>> slices = Slices(np.array([0, 0, 1], np.int32), known, 1, np.zeros(3, np.int32))
    >>> matching_buckets(slices, np.array([[1, 6], [0, 6]], np.int32)).tolist()
    [1, 0]
    """
    return _Index.of(slices).floats(profiles, "size", np.arange(len(slices.secret) + 1))[2]


def most_alike(rows: int, l: Fraction) -> Int64:
    """For 0, 1, ... rows: how many may have the same value if no value may exceed the share 1/l.

    >>> most_alike(4, Fraction(2)).tolist()
    [0, 0, 1, 1, 2]
    """
    if rows * l.denominator < 1 << 62:
        return np.arange(rows + 1) * l.denominator // l.numerator
    return np.array([n * l.denominator // l.numerator for n in range(rows + 1)], dtype=np.int64)


def list_profiles(slices: Slices, most: int) -> Int32 | None:
    """All profiles that match some bucket, whether such rows exist or not; None if there are more than `most`.

    >>> known = np.array([[0, 5], [1, 5], [1, 6]], np.int32)
    >>> profiles = list_profiles(Slices(np.array([0, 0, 1], np.int32), known, 1, np.zeros(3, np.int32)), 10)
    >>> sorted(profiles.tolist())
    [[0, 5], [1, 5], [1, 6]]
    """
    width, buckets = slices.known.shape[1], len(slices.sizes)
    found: list[tuple[Int64, Int32]] = []
    for i in range(width):
        codes, place = np.unique(slices.known[:, i], return_inverse=True)
        cells = np.unique(slices.bucket_of.astype(np.int64) * len(codes) + place)
        found.append((cells // len(codes) * width + i, codes[cells % len(codes)]))
    owner, codes = (np.concatenate(parts) for parts in zip(*found, strict=True))
    counts = np.bincount(owner, minlength=buckets * width).reshape(buckets, width)
    total = sum(prod(row) for row in counts.tolist())
    if total > most:
        return None
    starts = np.concatenate([[0], np.cumsum(counts.ravel())])
    profiles = list_admitted(codes[np.argsort(owner, kind="stable")].astype(np.int32), starts, total, width)
    return _distinct(profiles)[1]


def _distinct(profiles: Int32) -> tuple[Int64, Int32]:
    """The first place of every profile that occurs, and these profiles."""
    columns = [np.unique(column, return_inverse=True)[1] for column in profiles.T]
    group, _ = groups([(codes, int(codes.max(initial=0)) + 1) for codes in columns], len(profiles))
    first = np.unique(group, return_index=True)[1]
    return first, profiles[first]


@dataclass(frozen=True, eq=False)
class _Index:
    """The buckets that contain each code of a column group; codes and values are numbered without gaps."""

    postings: Postings
    place: int
    codes: tuple[Int32, ...]  # per group: the codes that occur
    values: Int32  # the sensitive values that occur

    @classmethod
    def of(cls, slices: Slices) -> _Index:
        """From the rows of a release."""
        sizes, seen = slices.sizes, slices.secret >= 0
        values, value_of = np.unique(slices.secret[seen], return_inverse=True)
        found: list[tuple[Int64, Int64]] = []
        base: list[int] = []
        starts: list[Int64] = []
        at = 0
        codes = tuple(np.unique(column) for column in slices.known.T)
        for i, names in enumerate(codes):
            rows = seen if i == slices.place else np.ones_like(seen)  # a suppressed value is no candidate
            keys = np.searchsorted(names, slices.known[rows, i]) * len(sizes) + slices.bucket_of[rows]
            cells, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
            base.append(sum(len(part) for part in starts))
            starts.append(at + np.searchsorted(cells, np.arange(len(names) + 1) * len(sizes)))
            if i == slices.place:
                pairs, value_counts = np.unique(place * max(len(values), 1) + value_of, return_counts=True)
                owner = at + pairs // max(len(values), 1)
            found.append((cells % len(sizes), counts))
            at += len(cells)
        buckets, counts = (np.concatenate(parts) for parts in zip(*found, strict=True))
        postings = Postings(
            sizes,
            np.array(base),
            np.concatenate(starts),
            buckets.astype(np.int32),
            counts,
            np.searchsorted(owner, np.arange(at + 1)),
            (pairs % max(len(values), 1)).astype(np.int32),
            value_counts,
        )
        return cls(postings, slices.place, codes, values)

    def encode_profiles(self, profiles: Int32) -> Int32:
        """Profiles in the numbering of this index; -1 for codes that do not occur."""
        columns = []
        for names, column in zip(self.codes, profiles.T, strict=True):
            at = np.minimum(np.searchsorted(names, column), len(names) - 1)
            columns.append(np.where(names[at] == column, at, -1))
        return np.stack(columns, axis=1).astype(np.int32)

    def floats(self, profiles: Int32, weight: str, allowed: Int64) -> tuple[NDArray[np.float64], Int32, Int64, Int64]:
        """Per profile: the largest p(t,s) (-1 if a float cannot decide), its value, matching buckets, and failing ones."""
        width = max(len(self.values), 1)
        level, value, *counts = disclosures(
            self.postings, self.place, self.encode_profiles(profiles), weight == "size", allowed, width
        )
        return level, np.append(self.values, np.int32(-1))[value], counts[0], counts[1]

    def exact(self, profile: Int32, weight: str) -> dict[int, Fraction]:
        """p(t,s) of one coded profile."""
        p, entries = self.postings, [range(0)] * len(profile)
        if (profile < 0).any():
            return {}
        for i, code in enumerate(profile.tolist()):
            entries[i] = range(p.starts[p.base[i] + code], p.starts[p.base[i] + code + 1])
        shared = reduce(np.intersect1d, [p.buckets[e.start : e.stop] for e in entries])
        at = [e.start + np.searchsorted(p.buckets[e.start : e.stop], shared) for e in entries]
        power = len(profile) - (weight == "size")
        by_size: dict[int, dict[int, int]] = {}  # the denominator of a term is a power of the size of its bucket
        for j, bucket in enumerate(shared.tolist()):
            alike = prod(int(p.counts[at[i][j]]) for i in range(len(profile)) if i != self.place)
            sums = by_size.setdefault(int(p.sizes[bucket]), {})
            for x in range(p.value_starts[at[self.place][j]], p.value_starts[at[self.place][j] + 1]):
                value = int(p.values[x])
                sums[value] = sums.get(value, 0) + alike * int(p.value_counts[x])
        mass: dict[int, Fraction] = {}
        for size, sums in by_size.items():
            for value, count in sums.items():
                mass[value] = mass.get(value, Fraction(0)) + Fraction(count, size**power)
        total = sum(mass.values())
        return {int(self.values[value]): mass[value] / total for value in sorted(mass)}
