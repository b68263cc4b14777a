"""`Plan`: which sensitive values share a bucket, and how many rows of every bucket each class takes. Which rows, a fill
decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Int64

Buckets = Sequence[NDArray[np.int32]]


@dataclass(frozen=True, eq=False)
class Plan:
    """`bucket_of[code]` is the bucket of a leaf (-1 where no row has it; the missing leaf is last), `allotments[c, j]` the
    rows of bucket `j` in class `c`. Classes are in the order of the tree of halves: neighbours here split late.

    >>> plan = Plan.of([np.array([0, 2]), np.array([1])], np.array([3, 2, 1, 0]), np.array([[2, 1], [2, 1]]))
    >>> plan.bucket_of.tolist(), plan.sizes.tolist(), plan.class_sizes.tolist()
    ([0, 1, 0, -1], [4, 2], [3, 3])
    """

    bucket_of: NDArray[np.int32]
    sizes: Int64
    allotments: Int64

    @classmethod
    def of(cls, buckets: Buckets, counts: Int64, allotments: Int64) -> Plan:
        """From buckets of leaf codes; checked."""
        bucket_of = np.full(len(counts), -1, dtype=np.int32)
        for j, codes in enumerate(buckets):
            bucket_of[codes] = j
        plan = cls(bucket_of, bucket_sizes(buckets, counts), np.asarray(allotments, dtype=np.int64))
        plan.check(counts)
        return plan

    @property
    def class_sizes(self) -> Int64:
        """Rows of every class."""
        sizes: Int64 = self.allotments.sum(axis=1)
        return sizes

    def check(self, counts: Int64 | None = None) -> None:
        """Raise `ValueError` where rows would be lost, dealt twice or stand alone; `counts` of the leaves, where known."""
        count = len(self.sizes)
        used = self.bucket_of[self.bucket_of >= 0]
        faults = {
            "a leaf has a bucket that does not exist": (self.bucket_of < -1).any() or (used >= count).any(),
            "a bucket has no value": len(np.unique(used)) != count,
            "a bucket has no row": (self.sizes <= 0).any(),
            "allotments are not one column per bucket": self.allotments.shape[1:] != (count,),
        }
        if not any(faults.values()):
            faults["an allotment is negative"] = (self.allotments < 0).any()
            faults["a class has no row"] = (self.class_sizes <= 0).any()
            faults["the classes do not take every row once"] = (self.allotments.sum(axis=0) != self.sizes).any()
        if counts is not None and not any(faults.values()):
            of_bucket = np.bincount(used, weights=counts[self.bucket_of >= 0], minlength=count)
            faults["a value that occurs has no bucket"] = (counts[self.bucket_of < 0] != 0).any()
            faults["a bucket's size is not the sum of its values"] = (of_bucket != self.sizes).any()
        for fault, found in faults.items():
            if found:
                raise ValueError(f"broken plan: {fault}")


def bucket_sizes(buckets: Buckets, counts: Int64) -> Int64:
    """Rows of every bucket.

    >>> bucket_sizes([np.array([0, 2]), np.array([1])], np.array([3, 2, 1]))
    array([4, 2])
    """
    return np.array([counts[codes].sum() for codes in buckets], dtype=np.int64)
