"""Written cells as ranges: of numbers if leaves have no tree, else of leaf codes. The inverse of `Domain.labels`.

The domain is the one that is bound to the original table: how many codes a mask such as `47***` covers is not written in the
cell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from closeknit.core.domain import Domain, read_ranges
from closeknit.core.errors import BadValue
from closeknit.core.tree import STAR
from closeknit.kernels.arrays import Reals


def cell_ranges(domain: Domain, cells: Sequence[str]) -> tuple[Reals, Reals]:
    """Lower and upper end of each written cell, both inclusive; NaN for an empty cell. `*` is the whole domain.

    Args:
        domain: the domain of the original column.
        cells: written cells.

    >>> from closeknit.core.kinds import numeric, prefix
    >>> codes, _ = prefix().bind(np.array(["47605", "47602", "47906"], dtype=object))
    >>> [ends.tolist() for ends in cell_ranges(codes, ["4760*", "47906", "*", ""])]
    [[0.0, 2.0, 0.0, nan], [1.0, 2.0, 2.0, nan]]
    >>> ages, _ = numeric(0, 120).bind(np.array([30, 41]))
    >>> [ends.tolist() for ends in cell_ranges(ages, ["[30, 41]", "30", "*", ""])]
    [[30.0, 30.0, 0.0, nan], [41.0, 30.0, 120.0, nan]]
    """
    lo, hi = _leaf_ends(domain, cells) if domain.counts_leaves else read_ranges(cells)
    star = np.array([cell == STAR for cell in cells], dtype=bool)
    low, high = domain.span
    return np.where(star | np.isneginf(lo), low, lo), np.where(star | np.isposinf(hi), high, hi)  # codes are open


def _leaf_ends(domain: Domain, cells: Sequence[str]) -> tuple[Reals, Reals]:
    ends = np.full((len(cells), 2), np.nan)
    nodes = _nodes(domain)
    for i, cell in enumerate(cells):
        if cell in nodes:
            ends[i] = nodes[cell]
        elif cell not in (STAR, ""):
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
    except BadValue:
        raise BadValue(i, f"'{cell}' is neither a bin nor a range", "write a bin, a range of bins, or '*'") from None
    inside = np.flatnonzero((domain.numbers >= lo) & (domain.numbers <= hi))
    if len(inside) == 0:
        raise BadValue(i, f"'{cell}' holds no bin of the column", "write a bin, a range of bins, or '*'")
    return int(inside[0]), int(inside[-1])


def _find_masked(domain: Domain, i: int, cell: str) -> tuple[int, int]:
    """A mask of another length: that of a suppressed code."""
    head = cell.rstrip(STAR)
    fits = [leaf for leaf, text in enumerate(domain.texts) if text.startswith(head) and len(text) > len(head)]
    if head in (cell, "") or not fits:
        raise BadValue(i, f"'{cell}' is neither a value nor a node of the column", "give the original table of the release")
    return fits[0], fits[-1]
