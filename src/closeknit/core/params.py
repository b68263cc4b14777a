"""Checks of parameters and their messages, for kinds, models, methods and recipes."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any, SupportsIndex, TypeVar

from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import Number, fraction

T = TypeVar("T")
TEXTS: dict[Any, tuple[type, ...]] = {"str": (str,), "str | None": (str, type(None))}  # annotations that are checked


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number from `least` to `most`.

    >>> whole("k", 6, least=1)
    6
    >>> whole("k", "five", least=1)
    Traceback (most recent call last):
    ...
    closeknit.core.errors.BadInput: k='five' is not a whole number; k must be a whole number of at least 1
    """
    right = f"{name} must be a whole number of at least {least}" + ("" if most is None else f" and at most {most:,}")
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise BadInput(f"{name}={value!r} is not a whole number", right=right)
    number = value.__index__()
    if number < least:
        raise BadInput(f"{name}={number} is too small", right=right)
    if most is not None and number > most:
        raise BadInput(f"{name}={number} is too large", right=right)
    return number


def number(
    name: str, value: Number, least: Number | None = None, most: Number | None = None, above: Number | None = None
) -> Fraction:
    """A finite number inside its limits, as the rational that was written.

    >>> number("t", 0.2, least=0, most=1)
    Fraction(1, 5)
    """
    words = {"above": above, "of at least": least, "of at most": most}
    limits = " and ".join(f"{word} {limit}" for word, limit in words.items() if limit is not None)
    right = f"{name} must be a number {limits}".rstrip()
    try:
        exact = fraction(name, value)
    except BadInput as bad:
        raise bad.replace(right=right) from None
    too_low = (least is not None and exact < fraction(name, least)) or (above is not None and exact <= fraction(name, above))
    if too_low or (most is not None and exact > fraction(name, most)):
        raise BadInput(f"{name}={value} is out of range", right=right)
    return exact


def choice(name: str, value: object, options: Collection[object]) -> None:
    """One of the options, by name.

    >>> choice("order", "random", ["value", "frequency"])
    Traceback (most recent call last):
    ...
    closeknit.core.errors.BadInput: order='random' is unknown; choose one of: value, frequency
    """
    if value not in options:
        raise BadInput(f"{name}={value!r} is unknown", right=suggest_name(value, options))


def build(what: str, thing: type[T], params: Mapping[str, Any]) -> T:
    """Build a dataclass from the named parameters of a file; unknown and missing names are refused."""
    fields = {f.name: f for f in dataclasses.fields(thing) if f.init}  # type: ignore[arg-type]
    for key in params:
        if key not in fields:
            raise BadInput(f"{what} has no parameter '{key}'", right=suggest_name(key, fields))
    for name, field in fields.items():
        optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if name not in params and not optional:
            raise BadInput(f"{what} needs the parameter '{name}'")
        if name in params and field.type in TEXTS and not isinstance(params[name], TEXTS[field.type]):
            raise BadInput(f"{what} has {name}={params[name]!r}, which is not text", right="write it between quotes")
    try:
        return thing(**params)
    except BadInput as bad:
        named = params.get("column") if bad.column is None else bad.column
        raise bad.replace(what=f"{what}: {bad.what}", column=named if isinstance(named, str) else None) from None


def build_from_form(what: str, form: Any, registry: Mapping[str, type[Any]]) -> Any:
    """Build a registered object from its name or from `{name: {parameter: value}}`."""
    if isinstance(form, str):
        form = {form: {}}
    if not isinstance(form, Mapping) or len(form) != 1:
        right = f"write {{name: {{parameter: value}}}} with one of the names {', '.join(sorted(registry))}"
        raise BadInput(f"{what} {form!r} cannot be read", right=right)
    ((name, params),) = form.items()
    if name not in registry:
        raise BadInput(f"{what} '{name}' is unknown", right=suggest_name(name, sorted(registry)))
    if not isinstance(params or {}, Mapping):
        raise BadInput(f"{what} '{name}' has {params!r} for its parameters", right="write {parameter: value}")
    return build(f"{what} '{name}'", registry[name], params or {})


def take(what: str, requested: Any, registry: Mapping[str, type[Any]], kind: type[Any]) -> Any:
    """An object as it is, or built by `build_from_form`; `kind` is the base class of all such objects.

    >>> take("method", [], {"knit": object}, Fraction)
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: a list is not a method; give an instance, or a name: knit
    """
    thing = build_from_form(what, requested, registry) if isinstance(requested, str | Mapping) else requested
    refuse_uncalled(what, thing)
    if not isinstance(thing, kind):
        right = f"give an instance, or a name: {', '.join(sorted(registry))}"
        raise BadInput(f"a {type(thing).__name__} is not a {what}", right=right)
    return thing


def refuse_uncalled(what: str, given: object) -> None:
    """Refuse a class or function in place of what it returns.

    >>> refuse_uncalled("model", Fraction)
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: the model Fraction is not called; write Fraction(...)
    """
    if callable(given) and (name := getattr(given, "__qualname__", "")):
        raise BadInput(f"the {what} {name} is not called", right=f"write {name}(...)")


def spec(thing: Any) -> dict[str, Any]:
    """The parameters of a dataclass that differ from their defaults, for recipes."""
    return {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing) if f.init and getattr(thing, f.name) != f.default}
