"""The buckets of a sliced release that a profile fits into, and the probability of each sensitive value for it.

A profile is what an adversary knows about a row: one code per column group, -1 for a code that the release does not
have. It fits into a bucket that has each of its codes. There it represents `weight * count` rows with a sensitive value, where
`weight = prod (share of the code in the bucket)` over the groups other than the secret's; as printed in the source, divided
once more by the size of the bucket. Sums below `TINY` and decisions close to the limit are left to rationals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.boxes import Codes, Ints

TINY = 1e-250  # a product of many shares can underflow


class Postings(NamedTuple):
    """Buckets of every code, group by group: code x of group i is in `buckets[starts[base[i] + x] : ... + 1]`, in order."""

    sizes: Ints  # [b] rows of each bucket
    base: Ints  # [groups]
    starts: Ints
    buckets: Codes
    counts: Ints  # rows of the bucket with the code
    value_starts: Ints  # for each posting the sensitive values with it; none in groups without the secret
    values: Codes
    value_counts: Ints


@kernel
def disclosures(postings: Postings, place: int, profiles: Codes, by_size: bool, allowed: Ints,
                width: int) -> tuple[Reals, Codes, Ints, Ints]:  # fmt: skip
    """For each profile the probability and the code of its likeliest value, its buckets, and how many of them fail alone.

    A bucket fails alone if more than `allowed[rows]` rows with the known part in the secret's group have one value. The first
    number is -1 where a float cannot decide, and 0 where the profile fits into no bucket.

    >>> one = np.zeros(1, np.int64)
    >>> bucket = Postings(np.array([3]), one, np.array([0, 1]), np.zeros(1, np.int32), np.array([3]),
    ...                   np.array([0, 2]), np.array([4, 6], np.int32), np.array([1, 2]))
    >>> found = disclosures(bucket, 0, np.zeros((1, 1), np.int32), True, np.array([0, 0, 1, 1]), 7)
    >>> [x.tolist() for x in found]
    [[0.6666666666666666], [6], [1], [1]]
    """
    m = len(profiles)
    worst, value = np.zeros(m), np.full(m, -1, np.int32)
    matches, failing = np.zeros(m, np.int64), np.zeros(m, np.int64)
    mass, touched, seen = np.zeros(width), np.empty(width, np.int32), np.full(width, -1)
    for q in range(m):
        rare = _rarest(postings, profiles[q])
        if rare < 0:
            continue
        count, total = 0, 0.0
        code = postings.base[rare] + profiles[q, rare]
        for e in range(postings.starts[code], postings.starts[code + 1]):
            at, weight = _fit(postings, place, profiles[q], postings.buckets[e], by_size)
            if at < 0:
                continue
            rows, peak = 0, 0
            for x in range(postings.value_starts[at], postings.value_starts[at + 1]):
                s, here = postings.values[x], postings.value_counts[x]
                if seen[s] != q:
                    seen[s], touched[count], count = q, s, count + 1
                mass[s] += weight * here
                rows, peak = rows + here, max(peak, here)
            total += weight * rows
            matches[q] += 1
            failing[q] += peak > allowed[rows]
        for x in range(count):
            s = touched[x]
            share = mass[s] / total if total > TINY else -1.0
            if x == 0 or share > worst[q] or (share == worst[q] and s < value[q]):
                worst[q], value[q] = share, s
            mass[s] = 0.0
    return worst, value, matches, failing


@kernel
def _rarest(postings: Postings, profile: Codes) -> int:
    """Find the group whose code is in the fewest buckets; -1 if one is in none."""
    rare, fewest = -1, np.int64(0)
    for i in range(len(profile)):
        if profile[i] < 0:
            return -1
        code = postings.base[i] + profile[i]
        length = postings.starts[code + 1] - postings.starts[code]
        if rare < 0 or length < fewest:
            rare, fewest = i, length
    return rare


@kernel
def _fit(postings: Postings, place: int, profile: Codes, bucket: int, by_size: bool) -> tuple[int, float]:
    """Index of the sensitive values for the profile in this bucket, and the weight of each; -1 if it does not fit."""
    size = postings.sizes[bucket]
    weight, at = 1.0 if by_size else 1.0 / size, -1
    for i in range(len(profile)):
        code = postings.base[i] + profile[i]
        e = position(postings.buckets, postings.starts[code], postings.starts[code + 1], bucket)
        if e < 0:
            return -1, 0.0
        if i == place:
            at = e
        else:
            weight *= postings.counts[e] / size
    return at, weight


@kernel
def position(ascending: Codes, lo: int, hi: int, number: int) -> int:
    """Index of a number in a range of indices; -1 if it is not there.

    >>> numbers = np.array([1, 3, 5], np.int32)
    >>> position(numbers, 0, 3, 3), position(numbers, 0, 3, 4)
    (1, -1)
    """
    end = hi
    while lo < hi:
        middle = (lo + hi) >> 1
        if ascending[middle] < number:
            lo = middle + 1
        else:
            hi = middle
    return lo if lo < end and ascending[lo] == number else -1


@kernel
def list_admitted(codes: Codes, starts: Ints, total: int, groups: int) -> Codes:
    """List every profile that some bucket admits: bucket b has the codes `codes[starts[b * groups + i] : ... + 1]` of group i.

    >>> list_admitted(np.array([0, 1, 5], np.int32), np.array([0, 2, 3]), 2, 2).tolist()
    [[0, 5], [1, 5]]
    """
    profiles = np.empty((total, groups), np.int32)
    turn, at = np.zeros(groups, np.int64), 0
    for first in range(0, len(starts) - 1, groups):
        turn[:] = 0
        i = 0
        while i < groups:
            for g in range(groups):
                profiles[at, g] = codes[starts[first + g] + turn[g]]
            at += 1
            i = 0
            while i < groups:
                turn[i] += 1
                if starts[first + i] + turn[i] < starts[first + i + 1]:
                    break
                turn[i] = 0
                i += 1
    return profiles
