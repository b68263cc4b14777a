"""Fields of a form: which values they take, and how their text is parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import fraction

TRUE = ("true", "on", "yes", "1")


@dataclass(frozen=True)
class Field:
    """One parameter: `type` is whole, number, text, choice, yes or list (of numbers); the limits bound its value."""

    name: str
    type: str
    means: str
    needed: bool = False
    default: Any = None
    least: float | None = None
    above: float | None = None  # exclusive lower limit
    most: float | None = None
    choices: tuple[str, ...] = ()
    only: tuple[str, tuple[str, ...]] | None = None  # another field, and its values for which this one has a meaning


def parse_fields(fields: Sequence[Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the texts of a form; empty fields are left out, unknown ones refused.

    >>> fields = [Field("k", "whole", "rows"), Field("edges", "list", "ends"), Field("t", "number", "limit")]
    >>> parse_fields(fields, {"k": " 6 ", "edges": "0, 18 65", "t": "1/6", "other": ""})
    {'k': 6, 'edges': [0, 18, 65], 't': '1/6'}
    """
    known = {field.name: field for field in fields}
    parsed = {}
    for name, value in given.items():
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        if name not in known:
            raise BadInput(f"there is no field '{name}'", right=suggest_name(name, known))
        parsed[name] = _parse_field(known[name], value)
    for field in fields:
        if field.needed and field.name not in parsed:
            raise BadInput(f"'{field.name}' is empty", right=f"enter {field.means}")
    return parsed


def _parse_field(field: Field, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if field.type in ("whole", "number"):
        return number_of(field.name, text)
    if field.type == "list":
        parts = text.replace(";", " ").replace(",", " ").split()
        return parts if field.choices else [number_of(field.name, part) for part in parts]
    if field.type == "yes":
        return text.lower() in TRUE
    return text


def number_of(name: str, text: str) -> int | float | str:
    """Parse a number; a fraction stays as it was written.

    >>> number_of("t", "0.20"), number_of("k", "6"), number_of("t", "1/3")
    (0.2, 6, '1/3')
    """
    exact = fraction(name, text)
    if exact.denominator == 1:
        return int(exact)
    return text if "/" in text else float(text)
