"""Range ends: the ends of a tight range are true values, and such a value can single a row out.

A tight range `[30, 41]` says that one person in the class is 30 and one is 41. So two descriptions of people follow from
each range: the column equals one of its ends, and every other quasi-identifier lies inside the written cell of the class. The
description *isolates* a row if it fits exactly one row of the table.

- `range_ends` needs the release alone: how many ranges have ends that are true values, and how many rows of a class may have
  such a value. At least one row has it, and at least one has the other end, so a class of m rows leaves at most m - 1.
  `risk`: the largest 1 / (m - 1). It is what anyone derives of `downcoding` and `singling_out`: `recovered` cells of all
  `generalized_cells`, and the descriptions.
- `singling_out` compares with the original rows: the share of descriptions that isolate a row, and of rows that are isolated.

Some descriptions isolate a row by chance: one that a share w of all people fits isolates one of n independent rows with
probability n * w * (1 - w)^(n - 1), at most about 1/e where n is large. `baseline` is the mean of this over all descriptions,
where w is the product over columns of the share of rows that fit in that column alone, as if columns were independent.
`risk` is the share of descriptions that isolate a row beyond the baseline: (share - baseline) / (1 - baseline).

Source: Cohen and Nissim, Towards formalizing the GDPR's notion of singling out (predicate singling out, the baseline).
Different from the source: it takes predicates of negligible weight, and a distribution that is known. Here every description is
counted, and weights are estimated from the table. Suppressed rows that fit a description count: they are in the table.

Cost: the rows inside the cells of each class, found in a tree; a class is left once two rows are found at each of its ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.covering import coverings, people_of
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import format_count, percent
from closeknit.core.columns import Column, Columns
from closeknit.core.covering import Covering, raw_schema
from closeknit.core.domain import read_ranges
from closeknit.core.kinds import Numeric
from closeknit.core.loss import cell_losses, list_texts
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import row_of_each
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of
from closeknit.kernels.arrays import Flags, Reals
from closeknit.kernels.geometry.overlaps import box_tree, points_at_ends


def range_ends(reading: Reading) -> Finding:
    """Count the ranges whose ends are true values, as far as the release alone shows.

    Args:
        reading: The release as its form reads it (`reading_of`).

    >>> import closeknit as ck
    >>> from closeknit.forms.release_reading import reading_of
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 40, 50, 60, 70, 80], "ill": ["flu", "gout"] * 3})
    >>> found = range_ends(reading_of(ck.anonymize(table, schema, [ck.KAnonymity(3)])))
    >>> found.number, found.risk, found.details["ranges"]
    (1.0, 0.5, 2)
    """
    first = np.unique(reading.class_of, return_index=True)[1]
    is_range = np.zeros((len(first), len(reading.tight)), dtype=bool)
    for j, name in enumerate(reading.tight):
        low, high = _ends(reading.columns[name], reading.schema)
        is_range[:, j] = (low < high)[reading.columns[name].codes[first]]
    shows = is_range.any(axis=1)
    if not shows.any():
        raise NotApplicable("no range ends at true values of its class", right="no action is needed")
    sizes = reading.classes.sizes
    fewest = max(int(sizes[shows].min()) - 1, 1)
    ranges, rows, n = int(is_range.sum()), int(sizes[shows].sum()), reading.columns.rows
    losses = cell_losses(reading.columns, reading.schema)
    generalized = sum(int((lost[reading.columns[name].codes, 0] > 0).sum()) for name, lost in losses.items())
    names = [name for j, name in enumerate(reading.tight) if is_range[:, j].any()]
    return Finding(
        attack="range_ends",
        knows="nothing else",
        measure="share of rows whose class has a range that ends at true values",
        number=rows / n,
        risk=1 / fewest,
        sentence=f"Both ends of {format_count(ranges, 'range')} of {', '.join(names)} are true values of rows in the class: "
        f"one row or more, and in the smallest class at most {fewest:,}, {'has' if fewest == 1 else 'have'} exactly that "
        f"value. So {2 * ranges:,} of {format_count(generalized, 'generalized cell')} ({percent(2 * ranges / generalized)}) "
        "are recovered exactly, up to which row has them. Each end describes one row or more of its class; how many ends "
        f"describe exactly one, where at most {percent((1 - 1 / n) ** (n - 1))} would by chance, needs the original table.",
        details={
            "columns": ", ".join(names),
            "ranges": ranges,
            "rows": rows,
            "classes": int(shows.sum()),
            "most_rows": fewest,
            "generalized_cells": generalized,
            "recovered": 2 * ranges,
        },
    )


def singling_out(published: Published, original: Any, schema: Schema | None = None) -> Finding:
    """Measure how many descriptions "column = end of its range, all other columns inside the cells" fit one original row.

    Args:
        published: A release whose cells belong together.
        original: The original rows as a frame, file or `Columns`.
        schema: Schema of the original rows; None reads it from the certificate as far as possible.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric(step=20)}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [31, 42, 42, 55, 61, 77], "ill": ["flu", "gout"] * 3})
    >>> forms = [ck.generalized(), ck.generalized(snap=True)]
    >>> [singling_out(ck.anonymize(table, schema, [ck.KAnonymity(3)], form=form), table, schema).number for form in forms]
    [0.75, 0.0]
    """
    reading = reading_of(published)
    if reading.column_groups:
        raise NotApplicable("quasi-identifiers are written exactly here, not as ranges", right="see record_linkage")
    people, raw = people_of(original, reading, schema), _exact(raw_schema(reading, schema))
    (covering,) = coverings(reading, people, raw)
    found = _Descriptions.of(covering, reading.columns, raw)
    if not found.wanted.any():
        raise NotApplicable("no column is written as ranges", right="no action is needed")
    return _build_finding(found, covering)


def _exact(schema: Schema) -> Schema:
    """Compare numbers by value, not by bin: an end of a bin is compared with the values themselves."""
    exact = {name: kind.without_coding() if isinstance(kind, Numeric) else kind for name, kind in schema.quasi.items()}
    return schema.model_copy(update={"quasi": exact})


def _ends(column: Column, schema: Schema) -> tuple[Reals, Reals]:
    """Return both ends of each distinct written cell, the missing one last; NaN where it is no number."""
    return read_ranges(list_texts(column, schema.missing))


@dataclass(frozen=True, eq=False)
class _Descriptions:
    """For each class, column and end: whether it is wanted, the rows that fit it (2: or more), one of them, and its weight."""

    wanted: Flags  # [classes, columns]
    rows: Reals  # [classes, columns, 2]
    point: NDArray[np.int64]  # [classes, columns, 2]
    weight: Reals  # [classes, columns, 2]

    @classmethod
    def of(cls, covering: Covering, written: Columns, schema: Schema) -> _Descriptions:
        count, width = covering.lo.shape
        row = row_of_each(covering.box_of, count)
        wanted, ends = np.zeros((count, width), dtype=bool), np.full((count, width, 2), -1, dtype=np.int32)
        alone, inside = np.zeros((count, width, 2)), np.zeros((count, width))  # shares of rows
        total = covering.people.sum()
        for j, name in enumerate(covering.names):
            lo, hi = covering.lo[:, j], covering.hi[:, j]
            have = np.bincount(covering.points[:, j], covering.people, hi.max() + 1) / total
            below = np.concatenate([[0], np.cumsum(have)])
            inside[:, j] = below[hi + 1] - below[lo]
            numbers = covering.domains[j].numbers
            if numbers is None or covering.domains[j].tree is not None:
                continue
            low_high = np.stack(_ends(written[name], schema), axis=1)[written[name].codes[row]]
            wanted[:, j] = low_high[:, 0] < low_high[:, 1]
            codes = np.searchsorted(numbers, low_high)
            true = wanted[:, j, None] & (np.append(numbers, np.nan)[codes] == low_high)
            ends[:, j] = np.where(true, codes, -1)
            alone[:, j] = np.where(true, have[np.where(true, codes, 0)], 0)
        tree = box_tree(covering.points, covering.points, covering.people.astype(np.float64))
        rows, point = points_at_ends(tree, covering.lo, covering.hi, ends)
        others = np.stack([np.prod(np.delete(inside, j, axis=1), axis=1) for j in range(width)], axis=1)
        return cls(wanted, rows, point, alone * others[:, :, None])


def _build_finding(of: _Descriptions, covering: Covering) -> Finding:
    n = int(covering.people.sum())
    isolates = of.rows == 1
    chance = n * of.weight * (1 - of.weight) ** (n - 1)
    count = 2 * int(of.wanted.sum())
    share, baseline = float(isolates.sum() / count), float(chance[of.wanted].sum() / count)
    rows = len(np.unique(of.point[isolates]))
    by_column = isolates.sum(axis=(0, 2)) / np.maximum(2 * of.wanted.sum(axis=0), 1)
    worst = int(np.argmax(by_column))
    return Finding(
        attack="singling_out",
        knows="nothing else: the descriptions are read off the release",
        measure="share of descriptions by a range end that fit exactly one row",
        number=share,
        risk=max(share - baseline, 0) / (1 - baseline) if baseline < 1 else 0.0,
        sentence=f'Of {format_count(count, "description")} "column = an end of its range, all other columns inside the cells '
        f'of the class" {percent(share)} fit exactly one row of the table, where {percent(baseline)} would by chance; '
        f"{format_count(rows, 'row')} ({percent(rows / n)}) are singled out.",
        details={
            "descriptions": count,
            "isolating": int(isolates.sum()),
            "baseline": baseline,
            "rows": rows,
            "rows_share": rows / n,
            "table_rows": n,
            "worst_column": covering.names[worst],
            "worst_column_share": float(by_column[worst]),
        },
    )
