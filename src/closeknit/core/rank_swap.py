"""Rank swapping: numbers of a column are exchanged with others whose rank is near, before anything else happens.

Source: Moore, R. A. (1996), Controlled data-swapping techniques for masking public use microdata sets. Different from the
source: instead of exchanging pairs, all known numbers are permuted at once; each moves by at most the given share of ranks.
Key of rank i: i + u * w with u drawn uniformly from [0, 1); sorting the keys moves no number by more than w ranks. The multiset
of the column is kept, its association with other columns is weakened. No guarantee follows: guarantees are judged on the
exchanged numbers, and a true number is within w ranks of the written one. The form `permuted` is the counterpart whose
guarantees are about the true numbers.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.kinds import Numeric, numbers_of, texts_of
from closeknit.core.row_sorting import row_order, tie_order
from closeknit.core.schema import Schema


def list_swapped(schema: Schema) -> dict[str, Numeric]:
    """The columns whose numbers are exchanged."""
    kinds = {**schema.quasi, **schema.sensitive}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, Numeric) and kind.swap is not None}


def refuse_swaps(schema: Schema, where: str) -> None:
    """Refuse columns whose numbers are to be exchanged where they cannot be.

    Args:
        schema: the columns.
        where: where not, for the message.
    """
    for name in list_swapped(schema):
        raise BadInput(f"its numbers cannot be exchanged {where}", column=name, right="leave swap out, or exchange them before")


def swap_ranks(columns: Columns, schema: Schema, seed: int) -> Columns:
    """The table with exchanged numbers; the result depends on the rows and the seed, not on the order of the rows.

    Args:
        columns: the raw table.
        schema: its columns.
        seed: the private seed.
    """
    kinds = list_swapped(schema)
    if not kinds:
        return columns
    canonical = row_order([_rank_texts(column) for _, column in sorted(columns.items())], columns.rows)
    swapped = {name: _swap_column(name, columns[name], kind, canonical, schema, seed) for name, kind in kinds.items()}
    return Columns({**columns.columns, **swapped}, columns.rows)


def _rank_texts(column: Column) -> tuple[NDArray[np.int64], int]:
    """Codes in the order of the texts, so that neither the order of the rows nor that of the values decides; missing last."""
    texts, place = np.unique(np.array(texts_of(column.values), dtype=object), return_inverse=True)
    return np.append(place.ravel(), len(texts))[column.codes], len(texts) + 1


def _swap_column(name: str, column: Column, kind: Numeric, canonical: NDArray[np.int64], schema: Schema, seed: int) -> Column:
    used = np.flatnonzero((column.counts > 0) & ~schema.flag_missing(column.values))
    try:
        numbers, place = np.unique(numbers_of(column.values[used]), return_inverse=True)
    except BadValue as bad:
        raise bad.locate(name, column.first_row(int(used[bad.index]))) from None
    rank_of = np.full(len(column.values) + 1, -1)
    rank_of[used] = place.ravel()
    ranks = rank_of[column.codes]
    rows = canonical[ranks[canonical] >= 0]  # with a known number, in canonical order
    own = int.from_bytes(sha256(f"closeknit swap {seed} {name}".encode()).digest(), "big")
    order = rows[tie_order([(ranks[rows], len(numbers))], len(rows), own)]
    codes = column.codes.copy()
    codes[order] = column.codes[order[draw_order(len(order), float(kind.swap or 0), own)]]
    return Column(column.values, codes)


def draw_order(count: int, percent: float, seed: int) -> NDArray[np.int64]:
    """A random permutation of ranks in which none moves by more than a share of all ranks.

    Args:
        count: how many ranks.
        percent: the largest move, in percent of `count`; at least one rank.
        seed: of the draws.

    >>> order = draw_order(1000, 5, 7)
    >>> int(np.abs(order - np.arange(1000)).max()) <= 50, sorted(order.tolist()) == list(range(1000))
    (True, True)
    """
    most = max(1.0, np.floor(count * percent / 100))
    draws = np.random.default_rng(seed).random(count)
    return np.argsort(np.arange(count) + draws * most, kind="stable")
