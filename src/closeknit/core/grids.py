"""Cells as lines of text whose columns stand below each other."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(grid: Sequence[Sequence[str]]) -> list[str]:
    """One line for each row, every cell as wide as the widest of its column.

    >>> aligned([["k", "loss"], ["10", "0.5"]])
    ['k   loss', '10  0.5']
    """
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in grid]
