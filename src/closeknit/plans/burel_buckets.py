"""BUREL's plan: as few buckets as possible such that no choice of rows inside them makes a value too frequent.

With f(p) = p * (1 + min(beta, -ln p)) (basic likeness: p * (1 + beta)), a bucket may hold values whose shares sum up to
f of the smallest of them: should all its rows in a class carry that one value, the guarantee still holds. A class may take
`a_j` rows of bucket j while a_j / |a| <= f(smallest share in j).

Source: the thesis on SABRE and BUREL, sec. 4.3.1 and 4.3.2, `DPpartition` and `biSplit`.

Different from the source:
- values combine up to and *including* equality, as its own lemma and example need (six equal values, beta = 1: three buckets;
  with the printed `<` six);
- the minimum is one over runs of values in the order of frequency only;
- f increases and a prefix never needs more buckets than the whole, so the earliest start of a run that may end here, and the
  last prefix with as few buckets as that one, give what the printed O(m^2) recursion gives in O(m).
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from closeknit.core.exact import NEAR, decimal, log
from closeknit.core.params import choice
from closeknit.kernels.arrays import Int32, Int64
from closeknit.plans.plan import Buckets

KINDS = ("enhanced", "basic")


def most_rows(count: int, n: int, beta: Fraction, kind: str = "enhanced") -> int:
    """The largest whole number of n * f(count / n): rows that a bucket may have whose rarest value has `count`.

    >>> most_rows(2, 19, Fraction(2)), most_rows(3, 19, Fraction(2)), most_rows(7, 7, Fraction(2))
    (6, 8, 7)
    """
    most = math.floor(count * (1 + beta))
    if kind == "basic" or count == 0:
        return most
    return min(most, _cap(count, n))


@lru_cache(maxsize=1 << 12)  # plans for many nominal betas ask for the same
def _cap(count: int, n: int) -> int:
    with localcontext() as context:
        context.prec = 60
        cap = count * (1 - log(Fraction(count, n)))
        return int(cap.to_integral_value(ROUND_FLOOR))


def dp_partition(counts: Int64, beta: Fraction, kind: str = "enhanced") -> list[Int32]:
    """Buckets of present leaf codes (ascending inside), rare values first; equally frequent values in the order of their codes.

    >>> [codes.tolist() for codes in dp_partition(np.array([2, 3, 3, 3, 4, 4, 0]), Fraction(2))]
    [[0, 1], [2, 3], [4, 5]]
    """
    choice("kind", kind, KINDS)
    present = np.flatnonzero(counts > 0)
    order = present[np.argsort(counts[present], kind="stable")].astype(np.int32)
    rows = counts[order].astype(np.int64)
    n = int(rows.sum())
    distinct, where = np.unique(rows, return_inverse=True)
    most = np.array([most_rows(int(c), n, beta, kind) for c in distinct.tolist()], dtype=np.int64)[where]
    buckets = np.split(order, _run_starts(rows, most)[1:]) if len(order) else []
    return [np.sort(codes) for codes in buckets]


def _run_starts(rows: Int64, most: Int64) -> Int64:
    """Where the runs of the printed recursion start: fewest runs, the last one as short as that allows."""
    before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(rows)]).tolist()
    fewest = [0] * len(before)
    start = [0] * len(before)
    last_with = [0]  # the last prefix that needs so many buckets
    b = 0
    for e in range(1, len(before)):
        while b < e - 1 and before[e] - before[b] > most[b]:
            b += 1
        start[e], fewest[e] = last_with[fewest[b]], fewest[b] + 1
        last_with[fewest[e] :] = [e]
    starts, e = [], len(before) - 1
    while e > 0:
        e = start[e]
        starts.append(e)
    return np.array(starts[::-1], dtype=np.int64)


class LikenessTest:
    """Judges allotments: whatever rows a fill picks, no value gets above f of its share.

    >>> counts = np.array([2, 3, 3, 3, 4, 4, 0])
    >>> test = LikenessTest(counts, dp_partition(counts, Fraction(2)), Fraction(2))
    >>> test.allows(np.array([1, 1, 2])), test.allows(np.array([1, 1, 1]))
    (True, False)
    """

    def __init__(self, counts: Int64, buckets: Buckets, beta: Fraction, kind: str = "enhanced") -> None:
        choice("kind", kind, KINDS)
        self.beta, self.kind = Fraction(beta), kind
        self.n = int(counts.sum())
        self.rarest = np.array([counts[codes].min() for codes in buckets], dtype=np.int64)
        self.limits = np.array([likeness_limit(Fraction(int(c), self.n), self.beta, kind) for c in self.rarest])

    def allows(self, a: Int64) -> bool:
        """Whether a_j / |a| <= f(smallest share in j) for every bucket j."""
        s = int(a.sum())
        over = a / s - self.limits
        if (over > NEAR).any():
            return False
        unclear = np.flatnonzero(over > -NEAR)
        return all(self._within(int(self.rarest[j]), Fraction(int(a[j]), s)) for j in unclear.tolist())

    def _within(self, rarest: int, q: Fraction) -> bool:
        p = Fraction(rarest, self.n)
        if q > p * (1 + self.beta):
            return False
        return self.kind == "basic" or p == 1 or log(p) <= decimal(1 - q / p)


def likeness_limit(p: Fraction, beta: Fraction, kind: str = "enhanced") -> float:
    """f(p): the largest share in a class of a value with share p in the release, as a float.

    >>> round(likeness_limit(Fraction(1, 10), Fraction(100)), 6)
    0.330259
    """
    gain = float(beta) if kind == "basic" else min(float(beta), -math.log(p))
    return float(p) * (1 + gain)
