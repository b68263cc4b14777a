"""What a written cell says of a row, as a range: of numbers where leaves have no tree, else of leaf codes.

It is the way back from `Domain.labels`. A domain is the one that was bound to the original table: how many codes a mask such as
`47***` stands for is not written in the cell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain, read_ranges
from closeknit.core.kinds import BadValue
from closeknit.core.tree import STAR

Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


def counts_leaves(domain: Domain) -> bool:
    """Whether ranges of this column are runs of leaves: a tree has them, and so have numbers in bins."""
    return domain.tree is not None or domain.ends is not None


def cell_ranges(domain: Domain, cells: Sequence[str]) -> Ends:
    """Lower and upper end of each written cell, both inside; NaN where the cell is empty. `*` is the whole domain.

    >>> from closeknit.core.kinds import numeric, prefix
    >>> codes, _ = prefix().bind(np.array(["47605", "47602", "47906"], dtype=object))
    >>> [ends.tolist() for ends in cell_ranges(codes, ["4760*", "47906", "*", ""])]
    [[0.0, 2.0, 0.0, nan], [1.0, 2.0, 2.0, nan]]
    >>> ages, _ = numeric(0, 120).bind(np.array([30, 41]))
    >>> [ends.tolist() for ends in cell_ranges(ages, ["[30, 41]", "30", "*", ""])]
    [[30.0, 30.0, 0.0, nan], [41.0, 30.0, 120.0, nan]]
    """
    lo, hi = _leaf_ends(domain, cells) if counts_leaves(domain) else _number_ends(domain, cells)
    for i in np.flatnonzero(lo > hi).tolist():
        raise BadValue(i, f"'{cells[i]}' is not a range: its ends are exchanged", "write the lower end first")
    return lo, hi


def outermost(domain: Domain) -> tuple[float, float]:
    """The ends of the whole domain: declared bounds, or else what occurs; first and last code where leaves are counted.

    >>> from closeknit.core.kinds import flat, numeric
    >>> outermost(numeric().bind(np.array([41, 30]))[0]), outermost(flat().bind(np.array(["m", "f"]))[0])
    ((30.0, 41.0), (0.0, 1.0))
    """
    if counts_leaves(domain):
        return 0.0, float(max(domain.size - 1, 0))
    if domain.bounds is not None:
        return domain.bounds
    numbers = domain.numbers
    return (float(numbers[0]), float(numbers[-1])) if numbers is not None and len(numbers) else (0.0, 0.0)


def _number_ends(domain: Domain, cells: Sequence[str]) -> Ends:
    try:
        lo, hi = read_ranges(cells)
    except ValueError as bad:
        what = f"'{cells[bad.args[0]]}' is neither a number nor a range"
        raise BadValue(bad.args[0], what, "write a number, a range like [20, 30], or '*'") from None
    star = np.array([cell == STAR for cell in cells], dtype=bool)
    low, high = outermost(domain)
    return np.where(star, low, lo), np.where(star, high, hi)


def _leaf_ends(domain: Domain, cells: Sequence[str]) -> Ends:
    ends = np.full((len(cells), 2), np.nan)
    nodes = _nodes(domain)
    for i, cell in enumerate(cells):
        if cell == STAR:
            ends[i] = outermost(domain)
        elif cell in nodes:
            ends[i] = nodes[cell]
        elif cell != "":
            ends[i] = _find_bins(domain, i, cell) if domain.tree is None else _find_masked(domain, i, cell)
    return ends[:, 0], ends[:, 1]


def _nodes(domain: Domain) -> dict[str, tuple[int, int]]:
    if domain.tree is None:
        return {text: (leaf, leaf) for leaf, text in enumerate(domain.texts)}
    tree = domain.tree
    named = zip(tree.labels[1:-1], tree.lo[1:-1].tolist(), tree.hi[1:-1].tolist(), strict=True)  # without `*` and missing
    return {label: (lo, hi) for label, lo, hi in named}


def _find_bins(domain: Domain, i: int, cell: str) -> tuple[int, int]:
    """Several bins as one range."""
    assert domain.numbers is not None
    try:
        (lo,), (hi,) = read_ranges([cell])
    except ValueError:
        raise BadValue(i, f"'{cell}' is neither a bin nor a range", "write a bin, a range of bins, or '*'") from None
    inside = np.flatnonzero((domain.numbers >= lo) & (domain.numbers <= hi))
    if len(inside) == 0:
        raise BadValue(i, f"'{cell}' holds no bin of the column", "write a bin, a range of bins, or '*'")
    return int(inside[0]), int(inside[-1])


def _find_masked(domain: Domain, i: int, cell: str) -> tuple[int, int]:
    """A mask of another length: that of a code which was suppressed."""
    head = cell.rstrip(STAR)
    fits = [leaf for leaf, text in enumerate(domain.texts) if text.startswith(head) and len(text) > len(head)]
    if head in (cell, "") or not fits:
        raise BadValue(
            i, f"'{cell}' is neither a value nor a node of the column", "give the table that the release was made of"
        )
    return fits[0], fits[-1]
