"""Written rows on Spark: each block is written by the form, its cells become ranks, rows are sorted by these, and shown.

A block holds whole classes. What the driver sees of the written rows is each column's different cells with their counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.table import Form, Partition, Table
from closeknit.doors.batches import Block, block_from, cells_in, codes_in, taken
from closeknit.doors.canonical import BLOCK_ROWS
from closeknit.engines.spark_coding import Coding, Counted, histograms
from closeknit.engines.spark_maps import Work, each_batch, each_in_turn, in_order_of, place_of_partition
from closeknit.forms.cells import compact, label_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE = 16 * BLOCK_ROWS  # rows of a file of a release
KINDS = {"i": "bigint", "u": "bigint", "f": "double", "b": "boolean", "M": "date", "O": "string"}


def written_types(coding: Coding) -> dict[str, str]:
    """What `written_block` gives, in Spark's words: cells of quasi columns as text, all else as it was."""
    return {name: "string" if name.startswith("q") else kind for name, kind in coding.types.items()}


def written_block(coding: Coding, form: Form, block: Block, order: NDArray[np.int64], table: Table, partition: Partition,
                  seed: int) -> Block:  # fmt: skip
    """The rows of a block as its form writes them; secrets and plain cells stay as they are."""
    written = form.write(table, partition, seed)
    quasi = {f"q{j}": written.columns[name] for j, name in enumerate(table.schema.quasi)}
    rows = order[written.rows]
    rest = {name: taken(block, name, rows) for name in (*coding.secret_names, *coding.plain_names)}
    return block_from({**quasi, **rest})


@dataclass(frozen=True, eq=False)
class Cells:
    """The different written cells of every quasi column in the order of what they say, and the shown values of secrets."""

    labels: Mapping[str, list[str]]  # '' is the missing cell
    counts: Mapping[str, NDArray[np.int64]]  # rows of each label
    shown: Mapping[str, Column]  # of a secret, the value of each leaf; no value where it is missing or nobody has it

    @classmethod
    def of(cls, coding: Coding, frame: DataFrame) -> Cells:
        """Counted in written rows."""
        found = histograms(frame, coding.quasi_names)
        labels, counts, shown = {}, {}, {}
        schema, head = coding.head.schema, coding.head
        for place, name, domain in zip(coding.quasi_names, schema.quasi, head.quasi_domains, strict=True):
            texts, rows = _all_cells(found[place])
            order = domain.label_order(texts)
            labels[name], counts[name] = [texts[i] for i in order], rows[order]
        for name, values in zip(schema.sensitive, head.shown, strict=True):
            leaves = np.arange(len(values) + 1, dtype=np.int32)
            occurs = coding.counts[name] > 0
            shown[name] = compact(Column(values, np.where(occurs & (leaves < len(values)), leaves, -1).astype(np.int32)))
        return cls(labels, counts, shown)

    def columns(self) -> Columns:
        """Each written value at least once: what asks which values there are may ask it."""
        quasi = {name: label_column(labels, np.arange(len(labels), dtype=np.int32)) for name, labels in self.labels.items()}
        columns = {**quasi, **self.shown}
        longest = max(map(len, columns.values()))
        return Columns(
            {name: column.take(np.resize(np.arange(len(column)), longest)) for name, column in columns.items()}, longest
        )


def _all_cells(found: Counted) -> tuple[list[str], NDArray[np.int64]]:
    texts = [str(value) for value in found.values.tolist()]
    return ([*texts, ""], np.append(found.counts, found.none)) if found.none else (texts, found.counts)


def in_order(written: DataFrame, coding: Coding, cells: Cells) -> DataFrame:
    """Rows with the ranks of their quasi cells instead of these, sorted as a release is."""
    rank_of = {
        place: {label or None: rank for rank, label in enumerate(cells.labels[name])}
        for place, name in zip(coding.quasi_names, coding.head.schema.quasi, strict=True)
    }
    shared, kept = written.sparkSession.sparkContext.broadcast(rank_of), [*coding.secret_names, *coding.plain_names]

    def ranked(block: Block) -> Block:
        columns = cells_in(block, list(shared.value))
        ranks = {name: _ranks(columns[name], ranks) for name, ranks in shared.value.items()}
        return block_from({**ranks, **{name: block.column(name) for name in kept}})

    return in_order_of(each_batch(written, ranked, coding.types), [*coding.names, *coding.plain_names], coding.rows)


def _ranks(column: Column, rank_of: Mapping[str | None, int]) -> NDArray[np.int32]:
    ranks = [*(rank_of[value] for value in column.values.tolist()), rank_of.get(None, -1)]
    return np.array(ranks, dtype=np.int32)[column.codes]


def in_files(ordered: DataFrame, coding: Coding, places: Mapping[tuple[Any, ...], int]) -> DataFrame:
    """Sorted rows with a partition for each `FILE` ranks; `places` are the frame's `offsets`."""
    shared = ordered.sparkSession.sparkContext.broadcast(places)

    def begin() -> Work:
        reached = shared.value.get((place_of_partition(),), 0)

        def ranked(block: Block) -> Block:
            nonlocal reached
            ranks = np.arange(reached, reached + block.num_rows, dtype=np.int64)
            reached += block.num_rows
            cells = {name: block.column(name) for name in coding.types}
            return block_from({"file": (ranks // FILE).astype(np.int32), "rank": ranks, **cells})

        return ranked

    placed = each_in_turn(ordered, begin, {"file": "int", "rank": "bigint", **coding.types})
    return placed.repartitionById(-(-coding.rows // FILE), "file").sortWithinPartitions("rank").drop("file", "rank")


def shown_frame(ordered: DataFrame, coding: Coding, cells: Cells) -> DataFrame:
    """The release: sorted rows with labels, values and plain cells under their own names."""
    schema = coding.head.schema
    shared = ordered.sparkSession.sparkContext.broadcast((coding, cells))
    types = dict.fromkeys(schema.quasi, "string")
    types |= {name: KINDS[cells.shown[name].values.dtype.kind] for name in schema.sensitive}
    types |= dict(coding.plain)
    published = {name: types[name] for name in schema.published}

    def show(block: Block) -> Block:
        shown = shown_columns(*shared.value, block)
        return block_from({name: shown[name] for name in published})

    return each_batch(ordered, show, published)


def shown_columns(coding: Coding, cells: Cells, block: Block) -> Columns:
    """Sorted rows as written columns."""
    schema, columns = coding.head.schema, {}
    for j, name in enumerate(schema.quasi):
        columns[name] = label_column(cells.labels[name], codes_in(block, [f"q{j}"])[:, 0])
    for j, name in enumerate(schema.sensitive):
        columns[name] = cells.shown[name].take(codes_in(block, [f"s{j}"])[:, 0])
    plain = cells_in(block, coding.plain_names)
    columns |= {name: plain[place] for name, place in zip(schema.plain, coding.plain_names, strict=True)}
    return Columns({name: columns[name] for name in schema.published}, block.num_rows)
