"""Methods that scale by a plan: the driver plans from histograms, and a row's class follows from its rank in its bucket.

Rows are sorted by bucket, Hilbert key and cells over all partitions. The rows of a bucket in each partition are counted, so
each executor knows the ranks of its rows. Classes in blocks of neighbouring numbers are then repaired, cut further and
written; which numbers share a block follows from the plan only, so the result does not depend on partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from closeknit.core.geometry import points
from closeknit.core.method import Method, ignore_progress
from closeknit.core.model import Model
from closeknit.core.row_sorting import Words, pack_columns
from closeknit.core.table import Form, Partition
from closeknit.io.batches import Block, codes_in, encode_block, numbers_in
from closeknit.kernels.geometry.sorted_buckets import curve
from closeknit.plans.ranks import Ranks
from closeknit.search.candidate_search import Candidates
from closeknit.spark.coding import Coding
from closeknit.spark.content_hash import offsets
from closeknit.spark.frame_sorting import sort_packs
from closeknit.spark.maps import partition_number, partitions
from closeknit.spark.packed_frame import PackedFrame
from closeknit.spark.row_writing import WrittenPacks, write_block

BLOCK = 500_000  # rows of classes that are processed together


def write_by_ranks(
    coding: Coding, coded: PackedFrame, method: Method, models: Sequence[Model], form: Form, seed: int
) -> WrittenPacks:
    """The written rows of all classes."""
    plan: Ranks = method.ranks(coding.own, coding.head.schema, models)
    per_block = max(BLOCK * plan.count // coding.rows, 1)
    shared = coded.share(coding)

    def write(block: Block) -> Block:
        coding = shared.value
        table, order = coding.table(block)
        classes = Partition.of(numbers_in(block, "class")[order])
        candidates = Candidates(table, models, ignore_progress, "filling")
        candidates.add(classes.class_of, classes.count)
        return write_block(coding, form, block, order, table, candidates.refine_best(), seed)

    kept = _sort_rows(coding, coded, plan).persist()
    blocks = -(-plan.count // per_block)
    classed = _assign_classes(coding, kept, plan).repartition(lambda block: numbers_in(block, "class") // per_block, blocks)
    return WrittenPacks(classed.each(write), form, (), (kept,))


def _sort_rows(coding: Coding, coded: PackedFrame, plan: Ranks) -> PackedFrame:
    """Rows by bucket, then along the Hilbert curve if the plan uses it, then by all their cells."""
    shared = coded.share((coding, plan.bucket_of))
    secret, curved = plan.secret, plan.curved
    sizes = [domain.size + 1 for domain in (*coding.head.quasi_domains, *coding.head.sensitive_domains)]

    def add_buckets(block: Block) -> Block:
        coding, bucket_of = shared.value
        buckets = bucket_of[np.zeros(block.num_rows, np.int32) if secret is None else coding.leaves_of(secret, block)]
        return encode_block({"bucket": buckets, **{name: block.column(name) for name in coding.all_names}})

    def words(block: Block) -> Words:
        coding, _ = shared.value
        codes, along = codes_in(block, coding.names), np.empty((block.num_rows, 0), dtype=np.uint64)
        if curved:
            quasi = np.ascontiguousarray(codes[:, : len(coding.quasi_names)])
            along = curve(points(replace(coding.head, quasi=quasi, rows=np.arange(len(quasi)))))
        return [numbers_in(block, "bucket").astype(np.uint64), *along.T, *pack_columns(list(zip(codes.T, sizes, strict=True)))]

    count = partitions(coded.frame, coding.rows)
    return sort_packs(coded.each(add_buckets), words, coding.plain_names, coding.rows, count)


def _assign_classes(coding: Coding, rows: PackedFrame, plan: Ranks) -> PackedFrame:
    """Sorted rows with the class of their rank."""
    shared = rows.share((plan, offsets(rows, "bucket")))

    def add_classes(block: Block) -> Block:
        plan, before = shared.value
        part, buckets = partition_number(), numbers_in(block, "bucket")
        ranks = np.empty(len(buckets), dtype=np.int64)
        starts = np.flatnonzero(np.diff(buckets, prepend=-1))
        for start, end in zip(starts, np.append(starts[1:], len(buckets)), strict=True):
            ranks[start:end] = before[part, int(buckets[start])] + np.arange(end - start)
        classes = plan.class_of(buckets, ranks)
        return encode_block({"class": classes, **{name: block.column(name) for name in coding.all_names}})

    return rows.whole().each(add_classes)
