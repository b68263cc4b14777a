"""Builders of hierarchies: plain functions from values or edges to nested mappings (`None` marks a leaf).

`Hierarchy` offers each of them as a class method and marks trees that are derived from data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any

import numpy as np

from closeknit.core.dates import Date
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.exact import Number, plain_number
from closeknit.core.kinds import Kind, Prefix
from closeknit.core.limits import MOST_INTERVALS, MOST_LEVELS, MOST_NODES, check_count
from closeknit.core.params import number, whole
from closeknit.core.tree import STAR

Dicts = dict[str, Any]  # label -> the same again, or None for a leaf
TOO_MANY = "the hierarchy has {} nodes or more"
Edges = tuple[tuple[float, float], ...]  # the numbers of each leaf: lo <= x < hi, the last one closed


def label_of(value: object) -> str:
    """A label as text, formatted as raw cells of that type are.

    >>> label_of(3.0), label_of(True), label_of("3.0")
    ('3', 'true', '3.0')
    """
    if value is None:
        raise BadInput("a hierarchy has a node without a name", right="write null, yes or no as a name between quotes")
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return plain_number(value) if isinstance(value, int | float | np.number) else str(value)  # type: ignore[arg-type]


def normalize_nested(form: object, level: int = 1, numbers: Iterator[int] | None = None) -> Dicts | None:
    """Mappings, lists and scalars as a file or a person writes them, in one uniform shape.

    >>> normalize_nested({"respiratory": ["flu", "SARS"], "other": ["ulcer", {"skin": ["acne"]}], 7: None})
    {'respiratory': {'flu': None, 'SARS': None}, 'other': {'ulcer': None, 'skin': {'acne': None}}, '7': None}
    """
    if form is None:
        return None
    if level > MOST_LEVELS:
        raise BadInput(f"the hierarchy is deeper than {MOST_LEVELS} levels", right="leave out levels with a single node")
    if isinstance(form, Mapping):
        entries = list(form.items())
    elif isinstance(form, list | tuple):
        entries = [entry for item in form for entry in (item.items() if isinstance(item, Mapping) else [(item, None)])]
    else:
        raise BadInput(f"'{form}' at level {level} below the root is not a list of values", right=f"write [{form}]")
    check_count(TOO_MANY, len(entries), MOST_NODES)
    nested: Dicts = {}
    numbers = numbers or count(1)  # of all nodes, whatever their level: a short text can name one node many times
    for name, below in entries:
        check_count(TOO_MANY, next(numbers), MOST_NODES)
        label = label_of(name)
        if label in nested:
            raise BadInput(f"'{label}' occurs twice at level {level} below the root", right="each value has one place")
        nested[label] = normalize_nested(below, level + 1, numbers)
    return nested or None


def interval_edges(
    edges: Sequence[Number] | None = None, *, lo: Number | None = None, hi: Number | None = None, width: Number | None = None
) -> list[float]:
    """Edges as listed, or from `lo` to `hi` in steps of `width` (the last step may be shorter).

    >>> interval_edges(lo=0, hi=1, width=0.3)
    [0.0, 0.3, 0.6, 0.9, 1.0]
    """
    if edges is not None:
        check_count("the edges make {} intervals", len(edges) - 1, MOST_INTERVALS)
        exact = [number("edge", edge) for edge in edges]
        if len(exact) < 2:
            raise BadInput("intervals need at least two edges", right="give the edges in ascending order")
        for before, after in pairwise(exact):
            if not before < after:
                raise BadInput(
                    f"edge {plain_number(float(after))} follows {plain_number(float(before))}",
                    right="give the edges in ascending order",
                )
        return [float(edge) for edge in exact]
    if lo is None or hi is None or width is None:
        raise BadInput("intervals need their edges", right="give edges, or lo, hi and width")
    low, high, step = number("lo", lo), number("hi", hi), number("width", width, above=0)
    if not low < high:
        raise BadInput(f"intervals have lo={lo} and hi={hi}", right="lo must be below hi")
    steps = -((low - high) // step)
    check_count(f"width={width} makes {{}} intervals", steps, MOST_INTERVALS)
    return [float(low + i * step) for i in range(steps)] + [float(high)]


def intervals(edges: Sequence[float], fanout: int = 2, levels: Sequence[int] | None = None) -> tuple[Dicts, Edges]:
    """Neighbouring intervals, joined `fanout` by `fanout` up to `*`; `levels` gives the number for each level instead.

    >>> intervals([0, 5, 10, 15, 20], levels=[2])[0]
    {'[0, 10)': {'[0, 5)': None, '[5, 10)': None}, '[10, 20]': {'[10, 15)': None, '[15, 20]': None}}
    """
    top = edges[-1]
    if levels is None:
        whole("fanout", fanout, least=2)
    row = [((low, high), None) for low, high in pairwise(edges)]
    leaves = tuple(ends for ends, _ in row)
    nodes: list[tuple[tuple[float, float], Dicts | None]] = list(row)

    def label(ends: tuple[float, float]) -> str:
        return f"[{plain_number(ends[0])}, {plain_number(ends[1])}{']' if ends[1] == top else ')'}"

    for join in _joins(len(nodes), fanout, levels):
        groups = [nodes[i : i + join] for i in range(0, len(nodes), join)]
        nodes = [((g[0][0][0], g[-1][0][1]), {label(ends): below for ends, below in g}) for g in groups]
    return {label(ends): below for ends, below in nodes}, leaves


def _joins(size: int, fanout: int, levels: Sequence[int] | None) -> list[int]:
    """How many neighbours each level joins; the level that would hold one node is `*` itself."""
    if levels is not None:
        check_count("the intervals have {} levels", len(levels), MOST_LEVELS)
        return [whole("levels", join, least=2) for join in levels]
    joins = []
    while size > fanout:
        joins.append(fanout)
        size = -(-size // fanout)
    return joins


def quantile_edges(values: Iterable[Number | None], bins: int) -> list[float]:
    """Distinct quantiles of the values that are not missing.

    >>> quantile_edges([1, 1, 1, 2, None, 8, 9], 2)
    [1.0, 9.0]
    """
    whole("bins", bins, least=1, most=MOST_INTERVALS)
    present = np.sort(np.array([float(number("value", value)) for value in values if value is not None]))
    if not present.size:
        raise BadInput("quantiles need at least one value")
    ranks = [max(-(-len(present) * i // bins) - 1, 0) for i in range(bins + 1)]
    edges = sorted(set(present[ranks].tolist()))
    return edges if len(edges) > 1 else [edges[0], edges[0]]


def prefix(values: Iterable[object], length: int | None = None) -> Dicts:
    """Codes masked from the right, one level per character.

    >>> prefix(["47605", "47602"])["4****"]["47***"]["476**"]
    {'4760*': {'47602': None, '47605': None}}
    """
    return _nest_values(Prefix(length), values)


def dates(values: Iterable[object], levels: Sequence[str] | None = None) -> Dicts:
    """A list of days under their months, years and so on.

    >>> dates(["2024-03-17", "2024-01-02"], ["day", "quarter"])
    {'2024-Q1': {'2024-01-02': None, '2024-03-17': None}}
    """
    return _nest_values(Date() if levels is None else Date(tuple(levels)), values)


def _nest_values(kind: Kind, values: Iterable[object]) -> Dicts:
    texts = list(dict.fromkeys(label_of(value) for value in values if value is not None))
    if not texts:
        raise BadInput("a hierarchy needs at least one leaf")
    try:
        tree = kind.bind(np.array(texts, dtype=object))[0].tree
    except BadValue as bad:
        raise bad.locate() from None
    assert tree is not None
    nested = tree.to_nested()
    return nested[STAR] if set(nested) == {STAR} else nested  # type: ignore[return-value]


def build_balanced(values: Iterable[object], fanout: int) -> Dicts:
    """Ordered values in groups of nearly equal size, level by level; all leaves have the same depth.

    >>> build_balanced("abcde", 3)
    {'a..c': {'a': None, 'b': None, 'c': None}, 'd..e': {'d': None, 'e': None}}
    """
    whole("fanout", fanout, least=2)
    names = [label_of(value) for value in values]
    check_count(TOO_MANY, len(names), MOST_NODES)
    if not names:
        raise BadInput("a hierarchy needs at least one leaf")
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise BadInput(f"leaf '{twice}' occurs twice in its hierarchy", right="each value has one place")
    level: list[tuple[str, str, Dicts | None]] = [(name, name, None) for name in names]  # first leaf, last leaf, below
    while len(level) > fanout:
        groups = -(-len(level) // fanout)
        cuts = [-(-len(level) * i // groups) for i in range(groups + 1)]
        joined = [level[a:b] for a, b in pairwise(cuts)]
        level = [(g[0][0], g[-1][1], {_span(first, last): below for first, last, below in g}) for g in joined]
    return {_span(first, last): below for first, last, below in level}


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first}..{last}"


def rare(values: Mapping[Any, int] | Iterable[object], limit: int, label: str = "(rare)") -> Dicts:
    """Only the values that occur fewer than `limit` times share a node; the others are leaves directly under `*`.

    >>> rare({"flu": 90, "gout": 2, "acne": 1}, limit=5)
    {'flu': None, '(rare)': {'acne': None, 'gout': None}}
    """
    whole("limit", limit, least=1)
    counts: Counter[str] = Counter()
    for value, times in values.items() if isinstance(values, Mapping) else ((cell, 1) for cell in values):
        if value is not None:
            counts[label_of(value)] += times
    if not counts:
        raise BadInput("a hierarchy needs at least one leaf")
    few = {value: None for value in sorted(counts) if counts[value] < limit}
    nested: Dicts = {value: None for value in sorted(counts) if value not in few}
    if label in counts:
        raise BadInput(f"'{label}' is itself a value", right="choose another label for the rare values")
    return nested | ({label: few} if len(few) > 1 else few)
