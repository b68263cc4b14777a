"""Guarantees over some of the quasi-identifiers: which columns, how a request names them, and how a text does.

A guarantee `over` columns is about groups of rows with equal written cells in these columns. A generalized cell equals only
itself: `[30, 39]` and `[30, 34]` are different cells. A group is a union of equivalence classes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from math import comb

from closeknit.core.errors import BadInput, suggest_name

Over = str | Sequence[str] | None
SIZES = {"pairs": 2, "triples": 3}
MOST_SUBSETS = 2_000


def check_over(over: Over) -> str | tuple[str, ...] | None:
    """The requested columns: names, or "pairs" or "triples" of all quasi-identifiers.

    >>> check_over(["age", "sex"]), check_over("pairs")
    (('age', 'sex'), 'pairs')
    """
    if over is None or (isinstance(over, str) and over in SIZES):
        return over
    right = f"list quasi-identifiers, such as [age, sex], or write {' or '.join(SIZES)}"
    if isinstance(over, str) or not isinstance(over, Iterable):
        raise BadInput(f"over={over!r} is no list of columns", right=right)
    names = tuple(over)
    if not names or not all(isinstance(name, str) for name in names):
        raise BadInput(f"over={list(names)!r} is no list of columns", right=right)
    if len(set(names)) < len(names):
        raise BadInput(f"over={list(names)!r} names a column twice", right="name each column once")
    return names


def list_subsets(over: str | Sequence[str], quasi: Collection[str]) -> list[tuple[str, ...]]:
    """The sets of columns that a request means.

    Args:
        over: what was requested, as `check_over` returns it.
        quasi: all quasi-identifiers.

    >>> list_subsets("pairs", ["age", "sex", "zip"])
    [('age', 'sex'), ('age', 'zip'), ('sex', 'zip')]
    """
    if isinstance(over, str):
        size = SIZES[over]
        if len(quasi) < size:
            raise BadInput(f"over='{over}' needs {size} quasi-identifiers, and there are {len(quasi)}", right="leave over out")
        if (many := comb(len(quasi), size)) > MOST_SUBSETS:
            right = "name the columns that an adversary may know: over=[...]"
            raise BadInput(f"over='{over}' means {many:,} sets of columns, more than {MOST_SUBSETS:,}", right=right)
        return list(combinations(quasi, size))
    for name in over:
        if name not in quasi:
            raise BadInput("is named in over, but is not a quasi-identifier", column=name, right=suggest_name(name, quasi))
    return [tuple(over)]


def render_over(over: Over) -> str:
    """The columns in a text: "age, sex and zip", "any two quasi-identifiers"; empty where all are meant.

    >>> render_over(("age", "sex", "zip")), render_over("pairs"), render_over(None)
    ('age, sex and zip', 'any two quasi-identifiers', '')
    """
    if over is None or isinstance(over, str):
        return "" if over is None else f"any {('two', 'three')[SIZES[over] - 2]} quasi-identifiers"
    *most, last = over
    return f"{', '.join(most)} and {last}" if most else last
