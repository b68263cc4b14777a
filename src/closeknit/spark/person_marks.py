"""Persons on Spark: the rows of a person are collected once and marked; after that, persons are counted by sums.

A hash of the person's cell decides where their rows are collected. There a number replaces the cell, and all rows of the person
get the codes of their first row in canonical order: cuts use these *places*, so no cut separates a person's rows. Marks say
which row is the first of its person, and which is the first with its sensitive value. In any set of whole persons, sums of
marked rows are the number of persons, and of values counted once per person.

The number of values that can be matched to different persons is not a sum. For cuts, the values of first rows are a safe count,
since each has its own person; before the work, only guarantees that no matching can meet are refused; classes are judged on
their rows.

The numbers depend on the persons and the number of rows, not on partitions. They are private.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram, view_of
from closeknit.core.columns import Column
from closeknit.core.combined_secrets import Secret, parts
from closeknit.core.errors import BadInput
from closeknit.core.model import Model
from closeknit.core.schema import sort_values
from closeknit.io.batches import Block, block_from, cells_in, encode_block, numbers_in, rows_at
from closeknit.spark.coding import WHO, Coding, hash_codes, sum_counts
from closeknit.spark.packed_frame import PackedFrame

TOGETHER = 1_000_000  # rows that are collected in one place, approximately
END = 32  # characters at the beginning and the end of a long text that are hashed

HEAD = ("", "head")  # counted like a sensitive attribute: 1 if a row is the first of its person
Counts = NDArray[np.int64]


def mark_persons(packs: PackedFrame, coding: Coding, models: Sequence[Model]) -> tuple[PackedFrame, Coding]:
    """Coded rows with numbers, places and marks, persisted, and the coding with counts of persons."""
    count, secrets = -(-coding.rows // TOGETHER), list_diverse(models)
    shared = packs.share(coding)

    def place_of(block: Block) -> NDArray[np.int64]:
        return person_places(_persons(block, shared.value), count)

    def mark(block: Block) -> Block:
        coding = shared.value
        persons = _persons(block, coding)
        numbers = sort_values(persons).codes.astype(np.int64) * count + person_places(persons, count)
        rest = {name: block.column(name) for name in coding.all_names if name != WHO}
        return add_marks(coding, encode_block({**rest, WHO: numbers}), secrets)

    kept = packs.repartition(place_of, count).each(mark).persist()
    return kept, replace(coding, tallies=_count_tallies(kept, coding, _tallies(coding, models)))


def _persons(block: Block, coding: Coding) -> Column:
    persons = cells_in(block, [WHO])[WHO]
    if (persons.codes < 0).any():
        right = "fill it in: a row without a person cannot be counted"
        raise BadInput("a row has no person", column=coding.head.schema.person, right=right)
    return persons


def person_places(persons: Column, count: int) -> NDArray[np.int64]:
    """A number below `count` for each row, the same for equal cells in all packs.

    >>> names = Column(np.array(["Ann", "Bartholomew"], dtype=object), np.array([0, 1, 0], dtype=np.int32))
    >>> alone = Column(np.array(["Ann"], dtype=object), np.array([0], dtype=np.int32))
    >>> places = person_places(names, 1000)
    >>> bool(places[0] == places[2] == person_places(alone, 1000)[0] != places[1])
    True
    """
    values, kind = persons.values, persons.values.dtype.kind
    if kind == "O":
        known: NDArray[np.generic] = np.array([_both_ends(str(value)) for value in values.tolist()], dtype="U")
    else:
        known = values.astype(np.float64) + 0.0 if kind == "f" else values.astype(np.int64)  # 0.0 and -0.0 are equal
    signs = np.ascontiguousarray(known).view(np.int32).reshape(len(known), -1)
    return hash_codes(signs[:, ::-1], count)[persons.codes]  # reversed: the padding of short texts does not change the hash


def _both_ends(text: str) -> str:
    """The ends of a long text, so that one long text does not widen the array of all of them."""
    return text if len(text) <= 2 * END else text[:END] + text[-END:]


def add_marks(coding: Coding, block: Block, secrets: Sequence[str]) -> Block:
    """All rows of some persons in canonical order, with places and marks; values of `secrets` are marked once per person."""
    table, order = coding.table(block)
    assert table.persons is not None
    _, first, person_of = np.unique(table.persons, return_index=True, return_inverse=True)
    places, ordered = table.quasi[first], rows_at(block, order)
    found = {name: ordered.column(name) for name in coding.all_names}
    found |= {name: np.ascontiguousarray(places[person_of, j]) for j, name in enumerate(coding.place_names)}
    marks = {"head": np.zeros(len(table), dtype=np.int32)}
    marks["head"][first] = 1
    for name in secrets:
        codes, domain = table.secret(name)
        mark = marks[_once(coding, name)] = np.zeros(len(table), dtype=np.int32)
        mark[np.unique(person_of.astype(np.int64) * (domain.size + 1) + codes, return_index=True)[1]] = 1
    return encode_block({**found, **marks})


def _once(coding: Coding, secret: str) -> str:
    """The column that marks the values of a sensitive attribute, each once per person."""
    return f"o{list(coding.head.schema.sensitive).index(secret)}"


# Tallies: counted like sensitive attributes -----------------------------------------------------------------------------------


def first_row_tally(secret: Secret) -> tuple[str, ...]:
    """The tally of a sensitive attribute in the first rows of persons: 0 counts all other rows, i + 1 counts leaf i."""
    return ("", "head", *parts(secret))


def once_tally(secret: str) -> tuple[str, ...]:
    """The tally of the values of a sensitive attribute, each once per person."""
    return ("", "once", secret)


def is_tally(name: Secret) -> bool:
    """Whether this names a tally rather than a sensitive attribute."""
    return name[:1] == ("",)


def list_diverse(models: Sequence[Model]) -> list[str]:
    """The sensitive attributes whose guarantees count persons."""
    return [model.column for model in models if isinstance(model.column, str) and "persons" in model.needs]


def list_tallies(coding: Coding, models: Sequence[Model]) -> dict[Secret, Counts]:
    """What cuts count in addition to the sensitive attributes, with the counts of all rows."""
    if not coding.tallies:
        return {}
    names = [HEAD, *(tally for name in list_diverse(models) for tally in (first_row_tally(name), once_tally(name)))]
    return {name: coding.tallies[name] for name in names}


def _tallies(coding: Coding, models: Sequence[Model]) -> dict[Secret, int]:
    """The tallies of all rows, with their numbers of leaves."""
    names: list[Secret] = [*map(first_row_tally, coding.head.references), *map(once_tally, list_diverse(models))]
    return {HEAD: 2} | {name: len(coding.head.references[_secret(name)]) + 1 for name in names}


def _secret(tally: Secret) -> Secret:
    return tally[2] if len(tally) == 3 else tuple(tally[2:])


def tally_leaves(coding: Coding, tally: Secret, block: Block) -> NDArray[np.int32]:
    """The leaf of each row in a tally."""
    head = numbers_in(block, "head").astype(np.int32)
    if tally == HEAD:
        return head
    leaf = coding.leaves_of(_secret(tally), block)
    mark = head if tally[1] == "head" else numbers_in(block, _once(coding, tally[2]))
    return np.where(mark > 0, leaf + 1, 0).astype(np.int32)


def _count_tallies(packs: PackedFrame, coding: Coding, tallies: Mapping[Secret, int]) -> dict[Secret, Counts]:
    shared = packs.share(coding)

    def count_block(block: Block) -> Block:
        found = [np.bincount(tally_leaves(shared.value, name, block), minlength=leaves) for name, leaves in tallies.items()]
        there = [np.flatnonzero(rows) for rows in found]
        tally = np.repeat(np.arange(len(found)), list(map(len, there)))
        rows = np.concatenate([rows[leaves] for rows, leaves in zip(found, there, strict=True)])
        return block_from({"tally": tally, "leaf": np.concatenate(there), "rows": rows.astype(np.int64)})

    found = sum_counts(packs.each(count_block), {"tally": "bigint", "leaf": "bigint"}).toArrow()
    tally, leaf, rows = (numbers_in(found, name).astype(np.int64) for name in ("tally", "leaf", "rows"))
    return {
        name: np.bincount(leaf[tally == i], rows[tally == i], leaves).astype(np.int64)
        for i, (name, leaves) in enumerate(tallies.items())
    }


# What follows from sums of marked rows ----------------------------------------------------------------------------------------


def count_persons(classes: Classes, tallies: Sequence[Mapping[Secret, Counts]], surely: bool) -> Classes:
    """Classes of whole persons, with counts of persons.

    `surely`: whether the number of values matched to persons is a lower bound; else it is an upper bound.
    """
    if not tallies or HEAD not in tallies[0]:
        return classes
    persons = np.array([side[HEAD][1] for side in tallies])
    by_person: dict[Secret, Histogram] = {}
    matched: dict[Secret, Counts] = {}
    with_value: dict[Secret, Counts] = {}
    for name in _diverse_in(tallies[0]):
        once = classes.histograms[name].recount(np.stack([side[once_tally(name)][1:] for side in tallies]))
        first = classes.histograms[name].recount(np.stack([side[first_row_tally(name)][1:] for side in tallies]))
        for folded, known in product((False, True), repeat=2):
            view, values, heads = view_of(name, folded, known), once, first
            if folded:  # a person with two spellings counts for both: the value is then overestimated, which is safe
                values, heads = values.fold_values() or values, heads.fold_values() or heads
            if known:
                values, heads = values.drop_missing(), heads.drop_missing()
            by_person[view] = values
            matched[view] = np.diff(heads.starts) if surely else np.minimum(np.diff(values.starts), persons)
            with_value[view] = heads.totals if surely and known else persons
    return Classes(classes.sizes, persons, classes.histograms, by_person, matched, with_value)


def _diverse_in(tallies: Mapping[Secret, Counts]) -> Iterator[str]:
    return (name[2] for name in tallies if name[:2] == ("", "once"))


def whole_class(coding: Coding) -> Classes:
    """All rows as one class, with upper bounds for the matched values."""
    return count_persons(coding.one_class(), [coding.tallies], surely=False)


def references_of_firsts(coding: Coding) -> dict[Secret, Counts] | None:
    """The distribution of sensitive values over the first rows of all persons; None without a person column."""
    if not coding.tallies:
        return None
    return {secret: coding.tallies[first_row_tally(secret)][1:] for secret in coding.head.references}
