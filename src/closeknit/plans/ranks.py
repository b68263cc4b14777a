"""`Ranks`: a plan by which a row's class follows from its rank in its bucket alone, so that no machine has to see all rows.

Rows of a bucket are ranked in the order of their Hilbert keys or as they are, and in both in the order of all their cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.combined_secrets import Secret
from closeknit.core.row_sorting import groups
from closeknit.kernels.arrays import Int64
from closeknit.plans.plan import Plan

STRIDE = 4_096  # classes from one place to the next whose first ranks are kept


@dataclass(frozen=True, eq=False)
class Ranks:
    """`bucket_of[code]` is the bucket of an attribute's leaf. Either a class takes the next rows of every bucket, as many as
    its kind says, or rows are dealt one by one to `count` classes, bucket after bucket (`firsts` has the rows before each).

    Kinds are few however many classes there are, so the plan of a large table is one small number a class.

    >>> plan = Plan.of([np.array([0])], np.array([3, 0]), np.array([[2], [1]]))
    >>> Ranks.of_plan("disease", plan).class_of(np.zeros(3, np.int32), np.arange(3)).tolist()
    [0, 0, 1]
    >>> dealt = Ranks.of_deal("disease", np.array([0, 1]), np.array([2, 1]), 2)
    >>> dealt.class_of(np.array([0, 0, 1]), np.array([0, 1, 0])).tolist()
    [0, 1, 0]
    """

    secret: Secret | None  # None: all rows are in bucket 0
    bucket_of: NDArray[np.int32]
    count: int
    kinds: Int64 | None = None  # [kinds, buckets]: rows of each bucket
    kind_of: NDArray[np.integer] | None = None  # of each class
    rows_before: Int64 | None = None  # [buckets, places]: rows of the bucket before every `STRIDE`-th class
    firsts: Int64 | None = None  # [buckets]

    @classmethod
    def of_plan(cls, secret: Secret | None, plan: Plan) -> Ranks:
        """As the fill `sweep` fills a plan."""
        allotments = plan.allotments
        kind_of, count = groups([(column, int(column.max(initial=0)) + 1) for column in allotments.T], len(allotments))
        kinds = np.zeros((count, len(plan.sizes)), dtype=np.int64)
        kinds[kind_of] = allotments
        taken = [np.add.reduceat(column, np.arange(0, len(column), STRIDE)) for column in allotments.T]
        rows_before = np.stack([np.append(0, np.cumsum(rows)[:-1]) for rows in taken])
        small: NDArray[np.integer] = kind_of.astype(np.int16) if count < 1 << 15 else kind_of
        return cls(secret, plan.bucket_of, len(allotments), kinds, small, rows_before)

    @classmethod
    def of_deal(cls, secret: Secret | None, bucket_of: NDArray[np.integer], sizes: Int64, count: int) -> Ranks:
        """Row z of the stack goes to class z mod count."""
        return cls(secret, bucket_of.astype(np.int32), count, firsts=np.cumsum(sizes) - sizes)

    @property
    def curved(self) -> bool:
        """Whether rows of a bucket are sorted along the Hilbert curve."""
        return self.kinds is not None

    def class_of(self, buckets: NDArray[np.integer], ranks: Int64) -> NDArray[np.int32]:
        """Class of each row."""
        if self.firsts is not None:
            return ((self.firsts[buckets] + ranks) % self.count).astype(np.int32)
        classes = np.empty(len(ranks), dtype=np.int32)
        for bucket in np.unique(buckets).tolist():
            mine = buckets == bucket
            classes[mine] = self._class_of(bucket, ranks[mine])
        return classes

    def _class_of(self, bucket: int, ranks: Int64) -> NDArray[np.int64]:
        """Of rows of one bucket; what their classes take is written out between the first and the last of them only."""
        assert self.kinds is not None and self.kind_of is not None and self.rows_before is not None
        rows_before = self.rows_before[bucket]
        first, last = np.searchsorted(rows_before, [ranks.min(), ranks.max()], side="right") - 1
        rows = self.kinds[self.kind_of[first * STRIDE : (last + 1) * STRIDE], bucket]
        return first * STRIDE + np.searchsorted(rows_before[first] + np.cumsum(rows), ranks, side="right")


def deal_classes(sizes: Int64, count: int) -> tuple[NDArray[np.int32], Int64]:
    """Of classes that a stack is dealt to, each that differs from the one before: the class and bucket of its rows.

    From one class to the next the buckets of its rows change only where a bucket begins in the stack.

    >>> classes, buckets = deal_classes(np.array([4, 2]), 3)
    >>> classes.tolist(), buckets.tolist()
    ([0, 0, 1, 1], [0, 0, 0, 1])
    """
    n, firsts = int(sizes.sum()), np.cumsum(sizes) - sizes
    chosen = np.unique(np.append(firsts % count, [0, n % count]))
    chosen = chosen[chosen < count]
    places = chosen[:, None] + np.arange(-(-n // count)) * count
    inside = places < n
    classes = np.broadcast_to(np.arange(len(chosen), dtype=np.int32)[:, None], places.shape)[inside]
    return classes, np.searchsorted(np.cumsum(sizes), places[inside], side="right")
