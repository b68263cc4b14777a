"""The preset `hipaa_safe_harbor`: the levels that the rule fixes, filled into the schema of a recipe.

What the recipe leaves open is filled in; what contradicts the rule is refused. Columns are recognised by their names and kinds
alone, so that the expansion does not depend on the data: `closeknit audit --safe-harbor` looks at the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from closeknit.core.errors import BadInput
from closeknit.metrics.safe_harbor import AGE, BIRTH, CATEGORIES, NAMES, PARTS_OF_NAMES, POSTAL, split_name

OPTIONS = {
    "reference": "the day on which ages are counted, needed where there are dates of birth",
    "zip3": "a file with the population of each three-digit ZIP area, or census2000; without it ZIP codes are dropped",
}
TOP = 90  # years
DIGITS = 3  # of a ZIP code
RULE = "Safe Harbor"


def fix_levels(schema: Any, options: Mapping[str, Any]) -> Any:
    """The schema with the levels of the rule.

    Args:
        schema: as the recipe writes it.
        options: reference and zip3.

    >>> fix_levels({"quasi": {"age": "numeric", "zip": "prefix", "admission": "date"}}, {})
    {'quasi': {'age': {'numeric': {'top': 90}}, 'admission': {'date': {'level': 'year'}}}, 'drop': ['zip']}
    """
    if not isinstance(schema, Mapping):
        return schema  # reported where the recipe is read
    quasi = schema.get("quasi")
    _refuse_identifiers(schema)
    fixed: dict[str, Any] = {}
    dropped: list[str] = []
    for name, form in quasi.items() if isinstance(quasi, Mapping) else ():
        found = _fix_column(str(name), form, options)
        if found is None:
            dropped.append(name)
        else:
            fixed[name] = found
    written = {**schema, "quasi": fixed if isinstance(quasi, Mapping) else quasi}
    drop = schema.get("drop") or []
    return {**written, "drop": [*([drop] if isinstance(drop, str) else drop), *dropped]} if dropped else written


def _fix_column(name: str, form: Any, options: Mapping[str, Any]) -> Any:
    """The kind of a quasi-identifier at the level of the rule; None if it is dropped."""
    words = set(split_name(name))
    kind, params = next(iter(form.items())) if isinstance(form, Mapping) and form else (form, {})
    params = dict(params) if isinstance(params, Mapping) else {}
    if kind == "numeric" and words & AGE:
        if params.get("top", TOP) > TOP:
            raise BadInput(f"has top={params['top']}, and {RULE} asks for {TOP}", column=name, right=f"write top: {TOP}")
        return {"numeric": {**params, "top": params.get("top", TOP)}}
    if kind == "numeric" and words & BIRTH:
        return {"numeric": {**params, "bottom": _reference(name, options).year - TOP}}
    if kind == "date":
        finest = params["levels"][0] if params.get("levels") else params.get("level", "year")
        if finest not in ("year", "decade"):
            raise BadInput(f"has the level {finest}, and {RULE} asks for year", column=name, right="write level: year")
        levels = {} if "levels" in params else {"level": finest}
        born = {"reference": str(_reference(name, options))} if words & BIRTH else {}
        return {"date": {**params, **levels, **born}}
    if words & POSTAL:
        if "zip3" not in options:
            return None
        return {"prefix": {**params, "keep": DIGITS, "zip3": str(options["zip3"])}}
    return form


def _reference(name: str, options: Mapping[str, Any]) -> date:
    given = options.get("reference")
    try:
        return given if isinstance(given, date) else date.fromisoformat(str(given))
    except ValueError:
        what = "is a date of birth, and ages need a reference date" if given is None else f"reference={given!r} is not a day"
        raise BadInput(what, column=name, right="write preset: {hipaa_safe_harbor: {reference: 2024-12-31}}") from None


def _refuse_identifiers(schema: Mapping[str, Any]) -> None:
    """Columns that the rule removes must not be published under any role."""
    for role in ("quasi", "sensitive", "plain"):
        for name in schema.get(role) or ():
            words = set(split_name(str(name)))
            for category, vocabulary in NAMES.items():
                permitted = (category == "C" and role == "quasi") or (category == "B" and role == "quasi" and words & POSTAL)
                part = category == "A" and words <= PARTS_OF_NAMES
                if (words & vocabulary or part) and not permitted:
                    what = f"is listed as {role}, and {RULE} removes it: ({category}) {CATEGORIES[category]}"
                    right = "list it as quasi" if category == "C" else "list it as identifier or drop"
                    raise BadInput(what, column=str(name), right=right)
