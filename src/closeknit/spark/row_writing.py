"""Written rows on Spark: the form writes each block, cells become ranks, rows are sorted by ranks and rendered.

A block holds whole classes. The driver gets the distinct written cells of each column with their counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.row_sorting import Words, pack_columns
from closeknit.core.table import Form, Partition, Table
from closeknit.forms.cell_labels import cell_order, compact, label_column, text_order
from closeknit.io.batches import Block, block_from, cells_in, codes_in, encode_block, numbers_in, rows_at, take_cells
from closeknit.io.canonical import BLOCK_ROWS, text_column
from closeknit.spark.coding import Coding, ValueCounts, count_values
from closeknit.spark.frame_sorting import sort_packs
from closeknit.spark.maps import partition_number, partitions
from closeknit.spark.packed_frame import PackedFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE = 16 * BLOCK_ROWS  # rows of a file of a release
KINDS = {"i": "bigint", "u": "bigint", "f": "double", "b": "boolean", "M": "date", "O": "string"}


class WrittenPacks(NamedTuple):
    """Written rows before they are sorted."""

    packs: PackedFrame
    form: Form
    notes: tuple[str, ...] = ()  # for the recipe
    persisted: tuple[PackedFrame, ...] = ()  # what the rows are computed from


def write_block(
    coding: Coding, form: Form, block: Block, order: NDArray[np.int64], table: Table, partition: Partition, seed: int
) -> Block:
    """The rows of a block as the form writes them; sensitive and plain cells are unchanged."""
    written = form.write(table, partition, seed)
    quasi = {f"q{j}": written.columns[name] for j, name in enumerate(table.schema.quasi)}
    rows = order[written.rows]
    rest = {name: take_cells(block, name, rows) for name in coding.all_names if name not in quasi}
    return encode_block({**quasi, **rest})


@dataclass(frozen=True, eq=False)
class Cells:
    """The distinct written cells of every quasi-identifier in canonical order, and the published sensitive values."""

    labels: Mapping[str, list[str]]  # '' is the missing cell
    counts: Mapping[str, NDArray[np.int64]]  # rows of each label
    shown: Mapping[str, Column]  # the sensitive value of each leaf; none if it is missing or does not occur

    @classmethod
    def of(cls, coding: Coding, written: PackedFrame) -> Cells:
        """Count the cells of written rows."""
        found = count_values(written, coding.quasi_names)
        labels, counts, shown = {}, {}, {}
        schema, head = coding.head.schema, coding.head
        for place, name in zip(coding.quasi_names, schema.quasi, strict=True):
            texts, rows = _all_cells(found[place])
            order = text_order(texts)
            labels[name], counts[name] = [texts[i] for i in order], rows[order]
        for name, values in zip(schema.sensitive, head.shown, strict=True):
            leaves = np.arange(len(values) + 1, dtype=np.int32)
            occurs = coding.counts[name] > 0
            shown[name] = compact(Column(values, np.where(occurs & (leaves < len(values)), leaves, -1).astype(np.int32)))
        return cls(labels, counts, shown)

    def columns(self) -> Columns:
        """Columns in which each written value occurs at least once."""
        quasi = {name: label_column(labels, np.arange(len(labels), dtype=np.int32)) for name, labels in self.labels.items()}
        columns = {**quasi, **self.shown}
        longest = max(map(len, columns.values()))
        repeated = {name: column.take(np.resize(np.arange(len(column)), longest)) for name, column in columns.items()}
        return Columns(repeated, longest)


def _all_cells(found: ValueCounts) -> tuple[list[str], NDArray[np.int64]]:
    texts = [str(value) for value in found.values.tolist()]
    return ([*texts, ""], np.append(found.counts, found.none)) if found.none else (texts, found.counts)


def sort_release(written: PackedFrame, coding: Coding, cells: Cells) -> PackedFrame:
    """Rows in the order of a release, with ranks instead of quasi cells."""
    rank_of = {
        place: {label or None: rank for rank, label in enumerate(cells.labels[name])}
        for place, name in zip(coding.quasi_names, coding.head.schema.quasi, strict=True)
    }
    shared, kept = written.share(rank_of), coding.all_names[len(rank_of) :]
    shown = [cell_order(column) for column in cells.shown.values()]  # the rank of each leaf
    sizes = [*(len(ranks) for ranks in rank_of.values()), *(size for _, size in shown)]

    def rank_cells(block: Block) -> Block:
        columns = cells_in(block, list(shared.value))
        ranks = {name: _ranks(columns[name], ranks) for name, ranks in shared.value.items()}
        return encode_block({**ranks, **{name: block.column(name) for name in kept}})

    def words(block: Block) -> Words:
        quasi, secrets = (codes_in(block, names).T for names in (coding.quasi_names, coding.secret_names))
        ranks = [*quasi, *(place[codes] for (place, _), codes in zip(shown, secrets, strict=True))]
        return pack_columns(list(zip(ranks, sizes, strict=True)))

    count = partitions(written.frame, coding.rows)
    return sort_packs(written.each(rank_cells), words, coding.plain_names, coding.rows, count)


def _ranks(column: Column, rank_of: Mapping[str | None, int]) -> NDArray[np.int32]:
    ranks = [*(rank_of[value] for value in column.values.tolist()), rank_of.get(None, -1)]
    return np.array(ranks, dtype=np.int32)[column.codes]


def split_files(ordered: PackedFrame, coding: Coding, places: Mapping[tuple[Any, ...], int]) -> PackedFrame:
    """Sorted rows with a partition per `FILE` ranks; `places` are the rows before each partition."""
    shared = ordered.share(places)

    def add_ranks(block: Block) -> Block:
        first = shared.value[(partition_number(),)]
        ranks = np.arange(first, first + block.num_rows, dtype=np.int64)
        return encode_block({"rank": ranks, **{name: block.column(name) for name in coding.all_names}})

    def sort_block(block: Block) -> Block:
        return rows_at(block, np.argsort(numbers_in(block, "rank"), kind="stable"))

    files = -(-coding.rows // FILE)
    return ordered.whole().each(add_ranks).repartition(lambda block: numbers_in(block, "rank") // FILE, files).each(sort_block)


def render_frame(ordered: PackedFrame, coding: Coding, cells: Cells, as_text: bool = False) -> DataFrame:
    """The release: sorted rows with labels, values and plain cells; `as_text`: all cells as in a CSV file."""
    schema = coding.head.schema
    shared = ordered.share((coding, cells))
    types = dict.fromkeys(schema.quasi, "string")
    types |= {name: KINDS[cells.shown[name].values.dtype.kind] for name in schema.sensitive}
    types |= dict(coding.plain)
    published = {name: "string" if as_text else types[name] for name in schema.published}

    def render_block(block: Block) -> Block:
        shown = render_columns(*shared.value, block)
        return block_from({name: text_column(shown[name]) if as_text else shown[name] for name in published})

    return ordered.each(render_block).rows(published)


def render_columns(coding: Coding, cells: Cells, block: Block) -> Columns:
    """Sorted rows as written columns."""
    schema, columns = coding.head.schema, {}
    for j, name in enumerate(schema.quasi):
        columns[name] = label_column(cells.labels[name], codes_in(block, [f"q{j}"])[:, 0])
    for j, name in enumerate(schema.sensitive):
        columns[name] = cells.shown[name].take(codes_in(block, [f"s{j}"])[:, 0])
    plain = cells_in(block, coding.plain_names)
    columns |= {name: plain[place] for name, place in zip(schema.plain, coding.plain_names, strict=True)}
    return Columns({name: columns[name] for name in schema.published}, block.num_rows)
