"""Independent definitions of the guarantees about risk: one class, or a list of class sizes, with plain numbers.

As in `oracle`, nothing is shared with `models`. A class counts its rows, or its persons where `persons` names them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Verdict = tuple[Fraction, bool]


def count_heads(values: Sequence[Hashable], params: Mapping[str, Any]) -> int:
    """Return the persons of a class, or its rows where persons are not known.

    >>> count_heads(["a", "b"], {"persons": [1, 1]})
    1
    """
    persons = params.get("persons")
    return len(values) if persons is None else len(set(persons))


def average_risk(values: list[Hashable], reference: list[Hashable], params: Mapping[str, Any]) -> Verdict:
    """Return the risk of each row of one class, and whether it is at most r.

    >>> average_risk(["a", "b"], [], {"r": 0.5})
    (Fraction(1, 2), True)
    """
    risk = Fraction(1, count_heads(values, params))
    return risk, risk <= Fraction(str(params["r"]))


def records_at_risk(values: list[Hashable], reference: list[Hashable], params: Mapping[str, Any]) -> Verdict:
    """Return the share of the rows of one class that are at risk: all or none.

    >>> records_at_risk(["a", "b"], [], {"t": 0.4, "share": 0.1})
    (Fraction(1, 1), False)
    """
    share = Fraction(Fraction(1, count_heads(values, params)) > Fraction(str(params["t"])))
    return share, share <= Fraction(str(params["share"]))


def k_map(values: list[Hashable], reference: list[Hashable], params: Mapping[str, Any]) -> Verdict:
    """Return the largest number of people that the rows of one class make unlikely, and whether it is at least k.

    >>> k_map(["a"] * 3, [], {"k": 5, "fraction": 0.1})
    (Fraction(5, 1), True)
    """
    heads, reached = count_heads(values, params), 0
    while _enough(heads, reached + 1, params):
        reached += 1
    return Fraction(reached), reached >= params["k"]


def delta_presence(values: list[Hashable], reference: list[Hashable], params: Mapping[str, Any]) -> Verdict:
    """Classes without their cells reveal no one's presence; `count_fitting` looks at cells."""
    return Fraction(0), True


def population_uniqueness(values: list[Hashable], reference: list[Hashable], params: Mapping[str, Any]) -> Verdict:
    """Return whether one class could be a unique of the population: 1 for a single person.

    >>> population_uniqueness(["a"], [], {"r": 0.1, "N": 9})
    (Fraction(1, 1), False)
    """
    alone = Fraction(count_heads(values, params) == 1)
    return alone, alone == 0


def _enough(heads: int, k: int, params: Mapping[str, Any]) -> bool:
    """Whether so many rows are unlikely if the cells fit only k people, or there are k of them."""
    mean = float(Fraction(str(params["fraction"]))) * k
    fewer = math.fsum(math.exp(-mean) * mean**i / math.factorial(i) for i in range(heads))
    given = 1.0 if params.get("kind") == "poisson" else 1 - math.exp(-mean)
    return heads >= k or (1 - fewer) / given <= float(params.get("alpha", 0.05))


def count_fitting(cells: Sequence[str], people: Sequence[Sequence[Any]]) -> int:
    """Return the number of people whom written cells fit: values, ranges, masks and `*`, one cell for each column.

    >>> count_fitting(["[30, 40]", "47*"], [(30, "471"), (41, "471"), (35, "480")])
    1
    """
    return sum(all(map(_fits, cells, person)) for person in people)


def _fits(cell: str, value: Any) -> bool:
    if cell.startswith("["):
        low, high = cell[1:-1].split(",")
        return float(low) <= float(value) <= float(high)
    return cell in ("*", str(value)) or (cell.endswith("*") and str(value).startswith(cell.rstrip("*")))


def oracle_release(name: str, sizes: Sequence[int], **params: Any) -> Verdict:
    """Return the level of a whole release with classes of these sizes, and whether it meets the guarantee.

    >>> oracle_release("average_risk", [1, 1, 2, 3, 5], r=0.41), oracle_release("records_at_risk", [1, 1, 2], t=0.5, share=0.5)
    ((Fraction(5, 12), False), (Fraction(1, 2), True))
    """
    rows = [size for size in sizes for _ in range(size)]
    if name == "average_risk":
        level, limit = sum((Fraction(1, size) for size in rows), Fraction(0)), params["r"]
    else:
        level, limit = Fraction(sum(Fraction(1, size) > Fraction(str(params["t"])) for size in rows)), params["share"]
    level /= max(len(rows), 1)
    return level, level <= Fraction(str(limit))
