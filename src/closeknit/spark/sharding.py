"""Methods that scale by shards: the code space is cut until a shard fits an executor, which then runs the local code.

A method plans for the sensitive values of its shard; its classes are judged against all rows, and merged if they do not meet a
guarantee. A shard as one class meets all of them, so merging ends. No rows are suppressed, and each shard has its own seed. A
shard without an allowed cut stays whole, and is refused if it has more than `LARGEST` rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from closeknit.core.coins import derive_seed
from closeknit.core.method import Method, ignore_progress
from closeknit.core.model import Model
from closeknit.core.table import Form, Outcome, Table
from closeknit.io.batches import Block, codes_in, encode_block, numbers_in
from closeknit.search.persons import must_keep_together, run_by_person
from closeknit.search.repair import repair_partition
from closeknit.spark.coding import Coding
from closeknit.spark.cut_tree import cut_tree
from closeknit.spark.packed_frame import PackedFrame
from closeknit.spark.person_marks import references_of_firsts
from closeknit.spark.row_writing import WrittenPacks, write_block

SHARD = 1_000_000  # rows of a shard that is not cut further
LARGEST = 20_000_000  # the most rows of a shard that an executor can hold


def write_by_shards(
    coding: Coding, coded: PackedFrame, method: Method, models: Sequence[Model], form: Form, seed: int
) -> WrittenPacks:
    """The written rows of all shards."""
    tree = cut_tree(coding, coded, models, SHARD, LARGEST)
    shared = coded.share((coding, tree))
    nodes = np.flatnonzero(tree.column < 0)
    shards, place_of = len(nodes), np.cumsum(tree.column < 0) - 1

    def add_shards(block: Block) -> Block:
        coding, tree = shared.value
        numbers = tree.shard_of(codes_in(block, coding.place_names))
        return encode_block({"shard": numbers, **{name: block.column(name) for name in coding.all_names}})

    def write(block: Block) -> Block:
        coding, _ = shared.value
        table, order = coding.table(block)
        own = seed if shards == 1 else derive_seed(seed, int(numbers_in(block, "shard")[0]))
        ties = table.tie_order(own)
        table, order = table.take(ties), order[ties]

        def run(part: Table) -> Outcome:
            return method.run(part, models, own, ignore_progress)

        keep = must_keep_together(table, method)
        outcome = run_by_person(table, run, references_of_firsts(coding)) if keep else run(table)
        partition = repair_partition(table, outcome.partition, models)  # judged here, whatever the method plans
        return write_block(coding, outcome.form or form, block, order, table, partition, own)

    packs = coded.each(add_shards).repartition(lambda block: place_of[numbers_in(block, "shard")], shards).each(write)
    return WrittenPacks(packs, form, (f"rows were split into {shards} shards",) if shards > 1 else ())
