"""Kinds of column in recipes and certificates: a name, or a mapping from one name to its parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date as Day
from pathlib import Path
from typing import Any

from closeknit.core.date_times import DateTime
from closeknit.core.dates import Date
from closeknit.core.durations import Duration
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.itemsets import ItemSet
from closeknit.core.kinds import Flat, Kind, Numeric, Prefix
from closeknit.core.params import build, refuse_uncalled
from closeknit.core.points import Point
from closeknit.core.written_kinds import Nodes, WrittenNodes
from closeknit.core.zip_areas import CENSUS_2000

ALL = (Numeric, Duration, Date, DateTime, Prefix, Point, Flat, ItemSet, Hierarchy, WrittenNodes, Nodes)
KINDS: dict[str, type[Kind]] = {kind.name: kind for kind in ALL}
EXTRA_KEYS = {"tree": ("from_data", "edges", "level"), "csv": ("delimiter", "encoding", "level")}  # allowed next to the name
BUILDERS = {"intervals": ("edges", "lo", "hi", "width", "fanout", "levels"), "balanced": ("values", "fanout", "from_data")}
MOST_SHOWN = 8  # of a list in a few words
LISTS = ("edges", "values", "levels")
FORMS = (*KINDS, "csv", *BUILDERS)


def kind_from(form: object, base: Path | None = None) -> Kind:
    """The kind that a recipe describes; paths are relative to `base`, the folder of the recipe.

    >>> kind_from("flat"), kind_from({"numeric": {"lo": 0, "hi": 120}})
    (Flat(), Numeric(lo=0, hi=120))
    >>> kind_from({"tree": {"respiratory": ["flu", "SARS"], "digestive": ["ulcer"]}}).tree.size
    3
    """
    if isinstance(form, Kind):
        return form
    if isinstance(form, str):
        return _build_kind(form, None, {}, base)
    if not isinstance(form, Mapping):
        refuse_uncalled("kind of column", form)
        raise BadInput(f"{form!r} is not a kind of column", right=f"write one of: {', '.join(FORMS)}")
    names = [key for key in form if key in FORMS]
    if not names and form:
        _refuse_unknown("kind of column", next(iter(form)), FORMS)
    if len(names) != 1:
        raise BadInput(
            f"a kind of column is one name, not {len(names)}: {', '.join(map(str, form)) or 'none'}",
            right=f"write one of: {', '.join(FORMS)}",
        )
    extra = {str(key): value for key, value in form.items() if key != names[0]}
    return _build_kind(names[0], form[names[0]], extra, base)


def _build_kind(name: str, params: Any, extra: dict[str, Any], base: Path | None) -> Kind:
    if name not in FORMS:
        _refuse_unknown("kind of column", name, FORMS)
    for key in extra:
        if key not in EXTRA_KEYS.get(name, ()):
            _refuse_unknown(f"key next to '{name}'", key, EXTRA_KEYS.get(name, ()))
    if name == "tree":
        if not params:
            raise BadInput("tree needs its values", right="write tree: {node: [leaf, leaf], ...}, or csv: FILE")
        return Hierarchy(params, **extra)
    if name == "csv":
        if not isinstance(params, str | Path):
            raise BadInput(f"csv={params!r} is not the path of a hierarchy file", right="write csv: FILE")
        return Hierarchy.read_csv(params if base is None else base / params, **extra)
    if params is not None and not isinstance(params, Mapping):
        raise BadInput(f"{name} has {params!r} instead of named parameters", right=f"write {name}: {{name: value, ...}}")
    # YAML reads 2024-01-31 as a date
    named: dict[str, Any] = {str(key): str(value) if isinstance(value, Day) else value for key, value in (params or {}).items()}
    if name == ItemSet.name and "items" in named:
        named["items"] = kind_from(named["items"], base)
    if isinstance(areas := named.get("zip3"), str) and areas != CENSUS_2000 and base is not None:
        named["zip3"] = str(base / areas)
    if name in BUILDERS:
        for key in named:
            if key not in BUILDERS[name]:
                _refuse_unknown(f"parameter of {name}", key, BUILDERS[name])
            if key in LISTS and not isinstance(named[key], list | tuple):
                raise BadInput(f"{name} has {key}={named[key]!r}", right=f"write a list: {key}: [...]")
        for key in ("values", "fanout") if name == "balanced" else ():
            if key not in named:
                raise BadInput(f"balanced needs the parameter '{key}'")
        return Hierarchy.intervals(**named) if name == "intervals" else Hierarchy.balanced(**named)
    return build(name, KINDS[name], named)


def _refuse_unknown(what: str, name: object, known: Collection[str]) -> None:
    raise BadInput(f"there is no {what} '{name}'", right=suggest_name(name, known))


def kind_form(kind: Kind) -> object:
    """The kind as a recipe or a certificate writes it, which `kind_from` reads. The order of a tree's keys matters.

    >>> kind_form(Numeric()), kind_form(Hierarchy.from_nested({"A": ["x", "y"], "B": ["z"]}, from_data=True))
    ('numeric', {'tree': {'A': ['x', 'y'], 'B': ['z']}, 'from_data': True})
    """
    params = kind.spec()
    if kind.name == "tree":
        nested = params.pop("nested")
        return {"tree": _short(nested), **params}
    return {kind.name: params} if params else kind.name


def kind_text(kind: Kind) -> str:
    """The kind in a few words; for a tree only its size.

    >>> kind_text(Numeric(lo=0, hi=120)), kind_text(Hierarchy.from_nested({"A": ["x", "y"], "B": ["z"]}))
    ('numeric(lo=0, hi=120)', 'tree of 3 leaves')
    """
    if isinstance(kind, Hierarchy):
        return f"tree of {kind.tree.size:,} leaves" + (f" at level {kind.level}" if kind.level else "")
    shown = {name: _brief(value) for name, value in kind.spec().items() if not isinstance(value, Mapping)}
    return f"{kind.name}({', '.join(f'{name}={value}' for name, value in shown.items())})" if shown else kind.name


def _brief(value: object) -> object:
    return f"{len(value)} of them" if isinstance(value, list | tuple) and len(value) > MOST_SHOWN else value


def _short(nested: Mapping[str, Any]) -> object:
    """A node that has only leaves as a list."""
    if all(below is None for below in nested.values()):
        return list(nested)
    return {label: None if below is None else _short(below) for label, below in nested.items()}
