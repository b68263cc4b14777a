"""Tables, guarantees and exhaustive searches that the tests of lower bounds share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import closeknit as ck
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.search.repair import find_broken_classes

REQUESTED: list[list[Model]] = [
    [ck.KAnonymity(3)],
    [ck.KAnonymity(2), ck.TCloseness("disease", 0.4)],
    [ck.KAnonymity(2), ck.TCloseness("stay", 0.2)],
    [ck.KAnonymity(2), ck.BetaLikeness("disease", 2)],
    [ck.LDiversity("disease", 2, "frequency"), ck.LDiversity("disease", 3)],
    [ck.KAnonymity(2), ck.LDiversity("disease", 2.5, "entropy")],
    [ck.KAnonymity(2), ck.DeltaDisclosure("stay", 2.5)],
    [ck.KAnonymity(2), ck.TCloseness("disease", 0.5), ck.TCloseness("stay", 0.3)],
]


def hospital(rows: int, seed: int, quasi: Sequence[str] = ("age", "sex", "job")) -> Table:
    whole = ck.datasets.hospital_schema()
    schema = ck.Schema(quasi={name: whole.quasi[name] for name in quasi}, sensitive=whole.sensitive)
    frame = ck.datasets.hospital(rows, seed=seed)
    return schema.encode(frame)


def partitions(rows: list[int]) -> Iterator[list[list[int]]]:
    """Every way to part the rows into sets."""
    if not rows:
        yield []
        return
    first, rest = rows[0], rows[1:]
    for size in range(len(rest) + 1):
        for others in itertools.combinations(rest, size):
            for more in partitions([row for row in rest if row not in others]):
                yield [[first, *others], *more]


def least(best: Any, table: Table, models: Sequence[Model], suppress: bool = False) -> float:
    """The least loss over all partitions, each judged by the models themselves; with suppression a refused class loses 1."""
    sets = [list(s) for size in range(1, len(table) + 1) for s in itertools.combinations(range(len(table)), size)]
    holds = {}
    for members in sets:
        class_of = np.full(len(table), -1, dtype=np.int32)
        class_of[members] = 0
        broken = find_broken_classes(replaced(table), Partition(class_of, 1), models)
        holds[tuple(members)] = not broken.any()
    lost = [1.0]
    for parts in partitions(list(range(len(table)))):
        if suppress or all(holds[tuple(part)] for part in parts):
            class_of = np.full(len(table), -1, dtype=np.int32)
            for c, part in enumerate(parts):
                if holds[tuple(part)]:
                    class_of[part] = c
            lost.append(best.loss_of(table, Partition(class_of, len(parts))) + float((class_of < 0).mean()))
    return min(lost)


def replaced(table: Table) -> Table:
    """The table with its whole as what classes are judged against, also where some rows are left out."""
    whole = {name: histogram.reference for name, histogram in table.one_class().histograms.items()}
    return replace(table, references=whole)
