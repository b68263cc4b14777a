"""Methods that scale by a plan: the driver plans from histograms, and a row's class follows from its rank in its bucket.

Rows are sorted by bucket, Hilbert key and cells over all partitions; how many rows of a bucket stand in each partition is
counted, so each row knows its rank where it lies. Classes in blocks of neighbouring numbers are then repaired, cut further and
written; which numbers share a block follows from the plan alone, so the result does not depend on partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Histogram
from closeknit.core.geometry import points
from closeknit.core.joint import Secret, parts
from closeknit.core.method import Method, silent
from closeknit.core.model import Model
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Partition
from closeknit.doors.batches import Block, block_from, codes_in, numbers_in
from closeknit.engines.spark_coding import Coding
from closeknit.engines.spark_hash import offsets
from closeknit.engines.spark_maps import Work, each_batch, each_group, each_in_turn, in_order_of, place_of_partition
from closeknit.engines.spark_writing import written_block, written_types
from closeknit.fills.candidates import Candidates
from closeknit.kernels.shelves import curve
from closeknit.plans.ranks import Ranks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK = 500_000  # rows of classes that are worked on together
SIGN = np.uint64(1 << 63)


class RankedMethod(Method, Protocol):
    """A method whose plan is one of ranks."""

    def ranks(self, own: Callable[[Secret], Histogram], schema: Schema, models: Sequence[Model]) -> Ranks:
        """The plan, from histograms of the secrets over all rows; or a refusal where its options need all rows."""


def ranked(coding: Coding, coded: DataFrame, method: RankedMethod, models: Sequence[Model], form: Form,
           seed: int) -> tuple[DataFrame, DataFrame]:  # fmt: skip
    """The written rows of all classes, and what Spark keeps for them meanwhile."""
    plan = method.ranks(coding.own, coding.head.schema, models)
    per_block = max(BLOCK * plan.count // coding.rows, 1)
    shared = coded.sparkSession.sparkContext.broadcast(coding)

    def written(block: Block) -> Block:
        coding = shared.value
        table, order = coding.table(block)
        classes = Partition.of(numbers_in(block, "class")[order])
        candidates = Candidates(table, models, silent, "filling")
        candidates.add(classes.class_of, classes.count)
        return written_block(coding, form, block, order, table, candidates.finished(), seed)

    kept = _sorted(coding, coded, plan)
    classed = _classed(coding, kept, plan, per_block)
    return each_group(classed, "block", coding.rows, written, written_types(coding)), kept


def _sorted(coding: Coding, coded: DataFrame, plan: Ranks) -> DataFrame:
    """Rows by bucket, then along the curve where the plan goes along it, then by all their cells."""
    words = [f"k{i}" for i in range(curve(np.zeros((1, len(coding.quasi_names)))).shape[1])] if plan.curved else []
    shared = coded.sparkSession.sparkContext.broadcast((coding, plan))

    def keyed(block: Block) -> Block:
        coding, plan = shared.value
        keys = {"bucket": plan.bucket_of[_leaves(coding, plan.secret, block)]}
        if plan.curved:
            quasi = codes_in(block, coding.quasi_names)
            along = curve(points(replace(coding.head, quasi=quasi, rows=np.arange(len(quasi)))))
            keys |= {name: (along[:, i] ^ SIGN).view(np.int64) for i, name in enumerate(words)}  # Spark's numbers have a sign
        return block_from({**keys, **{name: block.column(name) for name in coding.types}})

    types = {"bucket": "int", **dict.fromkeys(words, "bigint"), **coding.types}
    by = ["bucket", *words, *coding.types]
    return in_order_of(each_batch(coded, keyed, types), by, coding.rows).drop(*words).persist()


def _leaves(coding: Coding, secret: Secret | None, block: Block) -> NDArray[np.int32]:
    """What of each row the plan speaks of."""
    if secret is None:
        return np.zeros(block.num_rows, dtype=np.int32)
    names = list(coding.head.schema.sensitive)
    codes = codes_in(block, [f"s{names.index(name)}" for name in parts(secret)])
    return codes[:, 0] if isinstance(secret, str) else coding.joints[secret].place(codes)


def _classed(coding: Coding, rows: DataFrame, plan: Ranks, per_block: int) -> DataFrame:
    """Sorted rows with the class that their ranks give them, and the block of it."""
    shared, kept = rows.sparkSession.sparkContext.broadcast((plan, offsets(rows, "bucket"))), list(coding.types)

    def begin() -> Work:
        plan, before = shared.value
        part = place_of_partition()
        seen = {bucket: rank for (place, bucket), rank in before.items() if place == part}

        def classed(block: Block) -> Block:
            buckets = numbers_in(block, "bucket")
            ranks = np.empty(len(buckets), dtype=np.int64)
            starts = np.flatnonzero(np.diff(buckets, prepend=-1))
            for start, end in zip(starts, np.append(starts[1:], len(buckets)), strict=True):
                bucket = int(buckets[start])
                ranks[start:end] = seen[bucket] + np.arange(end - start)
                seen[bucket] += int(end - start)
            classes = plan.class_of(buckets, ranks)
            rest = {name: block.column(name) for name in kept}
            return block_from({"class": classes, "block": (classes // per_block).astype(np.int32), **rest})

        return classed

    return each_in_turn(rows, begin, {"class": "int", "block": "int", **coding.types})
