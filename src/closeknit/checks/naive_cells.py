"""An independent reader of written cells: text, rationals, nested mappings; no code of `core` or `forms`.

Kinds of column are known here by their name alone. `covers` decides whether a written cell contains a raw value, `place` orders
the cells of a column, `ground` returns the distance that an oracle needs.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from closeknit.core.columns import Columns

Row = tuple[str | None, ...]
FIRST, MIDDLE, LAST = 0, 1, 2


def text_of(cell: object) -> str | None:
    """Return a cell as its CSV text; None where it is empty.

    >>> [text_of(cell) for cell in (3.0, 7, True, "a", None)]
    ['3', '7', 'true', 'a', None]
    """
    if cell is None or cell == "":
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(cell).removesuffix(".0")
    return str(cell)


def raw_text(cell: object, markers: Sequence[str]) -> str | None:
    """Return a cell as `text_of` does, with declared missing-value codes as missing."""
    text = text_of(cell)
    return None if text in markers else text


def raw_cells(columns: Columns, name: str, markers: Sequence[str]) -> list[str | None]:
    """Return the cells of a column as `raw_text` does."""
    return [raw_text(cell, markers) for cell in columns[name].cells()]


def rows_of(columns: Columns, names: Sequence[str], markers: Sequence[str] = ()) -> list[Row]:
    """Return the cells of these columns, row by row."""
    texts = [raw_cells(columns, name, markers) for name in names]
    return list(zip(*texts, strict=True)) if texts else [()] * columns.rows


def group_rows(columns: Columns, names: Sequence[str]) -> dict[Row, list[int]]:
    """Return the rows with equal cells: the classes that an adversary sees."""
    groups: dict[Row, list[int]] = {}
    for i, row in enumerate(rows_of(columns, names)):
        groups.setdefault(row, []).append(i)
    return groups


def covers(kind: Any, cell: str | None, raw: str | None) -> bool:
    """Return whether a written cell of this kind of column contains the raw value.

    >>> from closeknit.core.kinds import numeric, prefix
    >>> covers(numeric(), "[20, 30]", "30"), covers(prefix(), "476**", "47906"), covers(numeric(), None, "30")
    (True, False, False)
    """
    if cell == "*":
        return True
    if cell is None or raw is None:
        return cell is None and raw is None
    if kind.name == "numeric":
        low, high = ends(cell)
        return low <= Fraction(raw) <= high
    if kind.name == "prefix":
        kept = cell.rstrip("*")
        return cell == raw or (kept != cell and raw.startswith(kept) and len(raw) > len(kept))
    if kind.name == "date":
        return days(cell)[0] <= days(raw)[0] and days(raw)[1] <= days(cell)[1]
    if kind.name == "datetime":
        return moments(cell)[0] <= moments(raw)[0] and moments(raw)[1] <= moments(cell)[1]
    if kind.name == "duration":
        low, high = ends(cell)
        return low <= units(raw, kind.unit) <= high
    if kind.name == "point":
        return within(kind, cell, raw)
    if kind.name == "itemset":
        nodes, items = cell.split(","), [item.strip() for item in raw.split(kind.separator if kind.separator in raw else ",")]
        return all(any(covers(kind.items, node, item) for node in nodes) for item in items) and all(
            any(covers(kind.items, node, item) for item in items) for node in nodes
        )
    if kind.name == "tree":
        return any(cell in path for path in paths(kind.nested) if _is_leaf(kind, path, raw))
    return cell == raw


def values_inside(kind: Any, cell: str | None) -> list[Any]:
    """Return some raw values that a written cell covers, whether they occur or not.

    >>> from closeknit.core.kinds import numeric, prefix
    >>> values_inside(prefix(), "476**"), values_inside(numeric(), "[20, 31]"), values_inside(numeric(), "20")
    (['47600', '476zz'], [25], [])
    """
    if cell in (None, "*"):
        return ["unknown"] if cell and kind.name == "flat" else []
    cell = str(cell)
    if kind.name == "prefix":
        return [cell.replace("*", fill) for fill in "0z" if "*" in cell]
    if kind.name == "date":
        return [str(day) for day in days(cell)]
    if kind.name == "datetime":
        return [moment.isoformat() for moment in moments(cell)]
    if kind.name in ("numeric", "duration"):
        low, high = ends(cell)
        return [int((low + high) // 2)] if 1 < high - low < 10**300 else []
    return [path[-1] for path in paths(kind.nested) if cell in path] if kind.name == "tree" and kind.edges is None else []


def ends(cell: str) -> tuple[Fraction, Fraction]:
    """Return both ends of a written number or range; that of a top or bottom code is beyond all numbers.

    >>> ends("[20, 30.5]"), ends("90+")[1] > 10**300
    ((Fraction(20, 1), Fraction(61, 2)), True)
    """
    if cell.endswith("+"):
        return Fraction(cell[:-1]), Fraction(10**400)
    if cell.startswith("<="):
        return Fraction(-(10**400)), Fraction(cell[2:])
    low, _, high = cell.strip("[])").partition(", ")
    return Fraction(low), Fraction(high or low)


def days(cell: str) -> tuple[datetime.date, datetime.date]:
    """Return the first and last day of a written day, month, quarter, year or decade, or of all years up to one.

    >>> [day.isoformat() for day in days("2024-Q1")]
    ['2024-01-01', '2024-03-31']
    """
    if cell.startswith("<="):
        return datetime.date.min, datetime.date(int(cell[2:]), 12, 31)
    year = int(cell[:4])
    if cell.endswith("s"):
        return datetime.date(year, 1, 1), datetime.date(year + 9, 12, 31)
    if len(cell) == 4:
        return datetime.date(year, 1, 1), datetime.date(year, 12, 31)
    if "Q" in cell:
        month, months = 3 * int(cell[-1]) - 2, 3
    elif len(cell) == 7:
        month, months = int(cell[5:]), 1
    else:
        return (datetime.date.fromisoformat(cell),) * 2
    after = datetime.date(year + (month + months > 12), (month + months - 1) % 12 + 1, 1)
    return datetime.date(year, month, 1), after - datetime.timedelta(days=1)


def moments(cell: str) -> tuple[datetime.datetime, datetime.datetime]:
    """Return the first and last second of a written second, minute, hour, day or coarser span.

    >>> [moment.isoformat() for moment in moments("2024-03-17T13:45")]
    ['2024-03-17T13:45:00', '2024-03-17T13:45:59']
    """
    first, last = days(cell[:10])
    begin, end = datetime.time.fromisoformat(cell[11:] or "00"), [*map(int, filter(None, cell[11:].split(":")))]
    hour, minute, second = [*end, *[23, 59, 59][len(end) :]]
    return datetime.datetime.combine(first, begin), datetime.datetime.combine(last, datetime.time(hour, minute, second))


def units(raw: str, unit: str) -> Fraction:
    """Return a raw duration as a number of units: hours, minutes and seconds, in ISO form or separated by colons.

    >>> units("PT1H30M", "minute"), units("1:30:30", "minute"), units("7", "minute")
    (Fraction(90, 1), Fraction(181, 2), Fraction(7, 1))
    """
    sizes = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
    if ":" in raw:
        hours, minutes, seconds = map(Fraction, raw.split(":"))
        return (3600 * hours + 60 * minutes + seconds) / sizes[unit]
    if not raw.startswith("PT"):
        return Fraction(raw)
    total, digits = Fraction(0), ""
    for sign in raw.removeprefix("PT"):
        total += Fraction(digits) * {"H": 3600, "M": 60, "S": 1}[sign] if sign in "HMS" else 0
        digits = "" if sign in "HMS" else digits + sign
    return total / sizes[unit]


def within(kind: Any, cell: str, raw: str) -> bool:
    """Return whether a point, or a finer cell, lies in a cell of the grid; geohash by halving the earth bit by bit.

    >>> from closeknit.core.points import point
    >>> within(point(), "u4", "57.65,10.41"), within(point(), "u5", "57.65,10.41"), within(point(), "u4", "u4p")
    (True, False, True)
    """
    if kind.grid == "h3":
        import h3

        finest = h3.latlng_to_cell(*map(float, raw.split(",")), kind.finest) if "," in raw else raw
        return bool(h3.cell_to_parent(finest, h3.get_resolution(cell)) == cell)
    if "," not in raw:
        return raw.startswith(cell)
    latitude, longitude = map(Fraction, raw.split(","))
    places, sides = (longitude, latitude), ([Fraction(-180), Fraction(180)], [Fraction(-90), Fraction(90)])
    for bit in range(5 * len(cell)):
        low, high = sides[bit % 2]
        upper = "0123456789bcdefghjkmnpqrstuvwxyz".index(cell[bit // 5]) >> (4 - bit % 5) & 1
        sides[bit % 2][1 - upper] = (low + high) / 2
    tops = (180, 90)
    return all(low <= place < high or place == high == top for place, (low, high), top in zip(places, sides, tops, strict=True))


def paths(nested: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield every leaf with the nodes above it, leaf last, in the order of the tree.

    >>> list(paths({"A": {"x": None}, "y": None}))
    [('A', 'x'), ('y',)]
    """
    for label, below in nested.items():
        if below:
            yield from paths(below, (*above, label))
        else:
            yield (*above, label)


def _is_leaf(kind: Any, path: tuple[str, ...], raw: str) -> bool:
    if path[-1] == raw or kind.edges is None:
        return path[-1] == raw
    low, high = (Fraction(end) for end in path[-1].strip("[]()").split(", "))
    try:
        return low <= Fraction(raw) < high or (path[-1].endswith("]") and Fraction(raw) == high)
    except ValueError:
        return False


def place(kind: Any, cell: str | None) -> tuple[Any, ...]:
    """Return the sort key of a written cell in its column: `*` first in trees and last among numbers, missing at the end.

    >>> from closeknit.core.kinds import flat
    >>> sorted(["b", None, "*", "a"], key=lambda cell: place(flat(), cell))
    ['*', 'a', 'b', None]
    """
    if kind.name in ("numeric", "duration"):
        return (LAST, cell is None) if cell in (None, "*") else (MIDDLE, *ends(str(cell)))
    if cell in (None, "*"):
        return (LAST,) if cell is None else (FIRST,)
    cell = str(cell)
    if kind.name in ("date", "datetime"):
        first, last = days(cell) if kind.name == "date" else moments(cell)
        return MIDDLE, first, first - last
    if kind.name == "tree":
        order = list(dict.fromkeys(label for path in paths(kind.nested) for label in path))
        return MIDDLE, order.index(cell)
    return (MIDDLE, cell.rstrip("*"), cell) if kind.name == "prefix" else (MIDDLE, cell)


def ground(kind: Any, distance: str | None, present: Sequence[str | None]) -> Any:
    """Return the ground distance of a sensitive attribute for the oracle; `present` are the published values."""
    chosen = distance or kind.default_distance
    values = {value for value in present if value is not None}
    if chosen == "equal":
        return None
    if chosen == "ordered":
        return sorted(values, key=lambda value: place(kind, value))
    return tree(kind, values)


def tree(kind: Any, values: set[str]) -> dict[str, Any]:
    """Return the nested mapping over an attribute's values: as declared, or built from the present ones."""
    if kind.name == "tree":
        return _prune_tree(kind.nested, values) if kind.from_data else kind.nested
    nested: dict[str, Any] = {}
    for value in sorted(values):
        here = nested
        for kept in range(1, len(value)) if kind.name in ("prefix", "point") else ():
            mask = "*" * (len(value) - kept) if kind.name == "prefix" else ""
            here = here.setdefault(value[:kept] + mask, {})
        here[value] = None
    return {"*": nested}


def _prune_tree(nested: Mapping[str, Any], values: set[str]) -> dict[str, Any]:
    branches = {label: _prune_tree(below, values) if below else None for label, below in nested.items()}
    return {label: branch for label, branch in branches.items() if branch or label in values}
