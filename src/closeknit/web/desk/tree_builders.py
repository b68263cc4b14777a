"""Builders of a column's kind and hierarchy, with their fields; each returns a form for the draft.

Hierarchies derived from the table (quantiles, rare and balanced trees) are marked `from_data`, so that no certificate
discloses them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from closeknit.api.suggestion.profile import Profile
from closeknit.core.columns import Column
from closeknit.core.date_texts import possible_formats
from closeknit.core.dates import DAY_LEVELS, LEVELS
from closeknit.core.domain import NUMBER_TEXT
from closeknit.core.duration_texts import UNITS
from closeknit.core.errors import BadInput
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kind_forms import kind_form, kind_from
from closeknit.core.kinds import BadValue, numbers_of, texts_of
from closeknit.core.limits import MOST_INTERVALS
from closeknit.core.params import choice, whole
from closeknit.core.points import GRIDS
from closeknit.core.steps import round_step
from closeknit.web.desk.fields import Field, parse_fields

LO, HI = "the smallest possible number", "the largest possible number"
FANOUT = Field("fanout", "whole", "how many neighbours are merged on the next level", default=2, least=2)
BUILDERS: dict[str, tuple[str, tuple[Field, ...]]] = {
    "flat": ("each value as it is, or hidden", ()),
    "numeric": (
        "numbers, written as ranges",
        (
            Field("lo", "number", LO),
            Field("hi", "number", HI),
            Field("step", "number", "ranges of decimals end at multiples of it, and with snap those of whole numbers", above=0),
            Field("bins", "whole", "ranges of equal width between both ends", least=1),
            Field("top", "number", "numbers from here on are one value, written as 90+"),
            Field("bottom", "number", "numbers up to here are one value, written as <=18"),
            Field("coarsen", "yes", "replace numbers by cells of the step before anything else"),
        ),
    ),
    "intervals": (
        "numbers in intervals of your choice, merged level by level",
        (
            Field("lo", "number", LO),
            Field("hi", "number", HI),
            Field("width", "number", "the width of an interval", above=0),
            Field("edges", "list", "or a list of edges"),
            FANOUT,
        ),
    ),
    "quantiles": (
        "numbers in intervals with about the same number of rows",
        (Field("bins", "whole", "how many intervals", needed=True, default=8, least=1), FANOUT),
    ),
    "prefix": (
        "codes masked from the right, such as postal codes",
        (
            Field("length", "whole", "how many characters a full code has", least=1),
            Field("keep", "whole", "how many characters are kept; the others are masked before anything else", least=1),
        ),
    ),
    "dates": (
        "days under months, quarters, years and decades",
        (
            Field("levels", "list", "the levels, finest first", default=DAY_LEVELS, choices=LEVELS),
            Field("format", "text", "format, such as %d.%m.%Y; empty: detect it"),
        ),
    ),
    "datetime": (
        "times of day under days, months and years",
        (
            Field("levels", "list", "the levels, finest first", default=LEVELS, choices=LEVELS),
            Field("format", "text", "format, such as %d.%m.%Y %H:%M; empty: detect it"),
        ),
    ),
    "duration": (
        "durations such as PT1H30M or 1:30:00, written as ranges of numbers",
        (
            Field("unit", "text", "what the numbers count", default="minute", choices=tuple(UNITS)),
            Field("lo", "number", LO),
            Field("hi", "number", HI),
            Field("step", "number", "ranges of decimals end at multiples of it", above=0),
        ),
    ),
    "point": (
        "latitude and longitude, written as cells of a grid",
        (
            Field("precision", "whole", "characters of the finest cell with geohash, its resolution with h3", least=0),
            Field("grid", "text", "the grid", default="geohash", choices=tuple(GRIDS)),
        ),
    ),
    "itemset": (
        "several items in a cell, each generalized by itself",
        (
            Field(
                "items", "text", "prefix for codes that are masked from the right", default="flat", choices=("flat", "prefix")
            ),
            Field("separator", "text", "what separates the items", default=","),
        ),
    ),
    "rare": (
        "frequent values as they are, rare ones together",
        (
            Field("limit", "whole", "values in fewer rows than this are rare", needed=True, default=10, least=1),
            Field("label", "text", "the name of their node", default="(rare)"),
        ),
    ),
    "balanced": (
        "values in their order, in groups of equal size",
        (Field("fanout", "whole", "values in a group", needed=True, default=4, least=2),),
    ),
}


def build_kind(builder: str, column: Column, name: str, given: Mapping[str, Any], missing: Sequence[str] = ()) -> object:
    """Build a kind from the fields of a form, as the draft writes it.

    >>> from closeknit.core.columns import Columns
    >>> ages = Columns.of({"age": ["3", "41", "30", "70"]})["age"]
    >>> build_kind("intervals", ages, "age", {"lo": "0", "hi": "100", "width": "25"})
    {'intervals': {'lo': 0, 'hi': 100, 'width': 25}}
    >>> build_kind("quantiles", ages, "age", {"bins": "2"})
    {'tree': {'*': ['[3, 30)', '[30, 70]']}, 'from_data': True, 'edges': [3.0, 30.0, 70.0]}
    """
    choice("builder", builder, tuple(BUILDERS))
    params = parse_fields(BUILDERS[builder][1], given)
    if builder in ("quantiles", "rare", "balanced"):
        return kind_form(_from_data(builder, _profile_present(column, name, missing), params))
    form = {"dates": "date"}.get(builder, builder)
    written: object = {form: params} if params else form
    if builder == "intervals" and not params:
        raise BadInput("intervals need their edges", column=name, right="give lo, hi and width, or the edges")
    kind_from(written)  # refuse it here, where the sentence is about the typed values
    return written


def list_builders(column: Column, name: str, missing: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Return the builders that suit a column, each with its description and fields; numbers get round bounds.

    >>> from closeknit.core.columns import Columns
    >>> ages = list_builders(Columns.of({"age": ["3", "41", "30", "70"]})["age"], "age")
    >>> list(ages), [field["default"] for field in ages["intervals"]["fields"]]
    (['flat', 'numeric', 'intervals', 'quantiles', 'prefix', 'rare', 'balanced'], [0, 80, 10, None, 2])
    """
    seen = _profile_present(column, name, missing)
    numeric = bool(seen.distinct) and _all_numbers(seen)
    dates = bool(seen.distinct) and (_can_read("date", seen) or bool(possible_formats(seen.texts)))
    suits = {
        "numeric": numeric,
        "intervals": numeric,
        "quantiles": numeric,
        "dates": dates,
        "prefix": _can_read("prefix", seen),
        "datetime": dates and (_can_read("datetime", seen) or ":" in seen.texts[0]),
        "duration": bool(seen.distinct) and not numeric and _can_read("duration", seen),
        "itemset": any(sign in text for text in seen.texts for sign in ",;|"),
        "point": bool(seen.distinct) and not numeric and _can_read("point", seen),
    }
    round_ends = _round_ends(seen) if numeric else {}
    found = {}
    for builder, (means, fields) in BUILDERS.items():
        if suits.get(builder, True):
            usual = round_ends if builder == "intervals" else {}
            shown = [{**asdict(field), "default": usual.get(field.name, field.default)} for field in fields]
            found[builder] = {"means": means, "fields": shown}
    return found


def _profile_present(column: Column, name: str, missing: Sequence[str]) -> Profile:
    """Profile the values that occur and are not declared as missing; undeclared markers count as values."""
    texts = texts_of(column.values)
    used = [i for i in np.flatnonzero(column.counts > 0).tolist() if texts[i] not in missing]
    return Profile(name, column, np.array(used, dtype=np.int64), (), ())


def _from_data(builder: str, seen: Profile, params: dict[str, Any]) -> Hierarchy:
    if builder == "rare":
        return Hierarchy.rare(dict(zip(seen.texts, seen.counts.tolist(), strict=True)), **params)
    if builder == "balanced":
        key = (lambda text: (float(text), text)) if _all_numbers(seen) else (lambda text: (0.0, text))
        return Hierarchy.balanced(sorted(seen.texts, key=key), from_data=True, **params)
    return Hierarchy.quantiles(_sample_ranks(seen, whole("bins", params["bins"], least=1, most=MOST_INTERVALS)), **params)


def _sample_ranks(seen: Profile, bins: int) -> list[float]:
    """Return a few values with the same quantiles: two per interval, at evenly spaced ranks, and the smallest one."""
    try:
        numbers = numbers_of(seen.values)
    except BadValue as bad:
        raise bad.locate(seen.name, seen.first_row(bad.index)) from None
    if not len(numbers):
        raise BadInput("quantiles need at least one value", column=seen.name)
    order = np.argsort(numbers, kind="stable")
    ends, rows = np.cumsum(seen.counts[order]), int(seen.counts.sum())
    ranks = [max(-(-rows * i // (2 * bins)) - 1, 0) for i in range(1, 2 * bins + 1)]
    ranks[0] = 0
    return [float(numbers[order[np.searchsorted(ends, rank, side="right")]]) for rank in ranks]


def _all_numbers(seen: Profile) -> bool:
    return seen.values.dtype.kind in "iuf" or (
        seen.values.dtype.kind == "O" and all(NUMBER_TEXT.fullmatch(text) for text in seen.texts)
    )


def _can_read(form: str, seen: Profile) -> bool:
    try:
        kind_from(form).bind(seen.values)
    except BadValue:
        return False
    return True


def _round_ends(seen: Profile) -> dict[str, int | float]:
    """Return bounds that do not disclose minimum and maximum, and a width for about ten intervals."""
    numbers = numbers_of(seen.values)
    low, high = float(numbers.min()), float(numbers.max())
    span = (high - low) or 1.0
    width = round_step(span / 10)
    ends = {"lo": math.floor(low / width) * width, "hi": math.floor(high / width + 1) * width, "width": width}
    return {key: int(end) if float(end).is_integer() else float(f"{end:.12g}") for key, end in ends.items()}
