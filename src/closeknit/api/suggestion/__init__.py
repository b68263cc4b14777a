"""`suggest`: a guess at what each column is, with its reason, and a recipe made of it for a person to correct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from closeknit.api.suggestion.kind_guesses import guess_kind, refine_kind, snap_cost
from closeknit.api.suggestion.profile import Profile, profile_of
from closeknit.api.suggestion.recipe_writer import recipe_text
from closeknit.api.suggestion.role_guesses import guess_role
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.kinds import Kind
from closeknit.core.schema import Schema


@dataclass(frozen=True)
class Guess:
    """What a column seems to be: `kind` is the name of its kind, empty where the role needs none."""

    role: str
    kind: str
    reason: str
    sure: bool


@dataclass(frozen=True)
class Suggestion:
    """A schema that fits the table, and why. Nothing in it was decided by anybody yet."""

    schema: Schema
    reasons: dict[str, Guess]
    rows: int
    doubtful_markers: tuple[str, ...] = ()
    with_missing: tuple[str, ...] = ()
    snap_costs: Mapping[str, float] = field(default_factory=dict)  # loss that snapping would add to columns of whole numbers
    csv: Mapping[str, Any] = field(default_factory=dict)  # how the file is written, where that is not usual

    @cached_property
    def unsure(self) -> list[str]:
        """Columns that need a look most."""
        return [name for name, guess in self.reasons.items() if not guess.sure]

    def to_recipe(self, path: str, csv: Mapping[str, Any] | None = None) -> str:
        """An editable recipe for the table in this file; `csv` says how the file is written, where the suggestion does not.

        >>> table = Columns.of({"name": ["Ann", "Bob"], "age": [41, 30], "disease": ["flu", "gout"]})
        >>> print(suggest(table).to_recipe("patients.csv").split("schema:")[1])
        <BLANKLINE>
          identifier:  # never published
            - name  # names of people
        ...
        """
        return recipe_text(self, path, self.csv if csv is None else csv)


def suggest(columns: Columns) -> Suggestion:
    """Guess role and kind of every column.

    >>> table = Columns.of({"name": ["Ann", "Bob"], "age": [41, 30], "disease": ["flu", "?"]})
    >>> {name: (guess.role, guess.kind) for name, guess in suggest(table).reasons.items()}
    {'name': ('identifier', ''), 'age': ('quasi', 'numeric'), 'disease': ('sensitive', 'flat')}
    """
    if columns.rows == 0 or not len(columns):
        raise BadInput("the table has no rows", right="give at least one row")
    seen = {name: profile_of(name, column) for name, column in columns.items()}
    reasons: dict[str, Guess] = {}
    kinds: dict[str, Kind] = {}
    for name, one in seen.items():
        reasons[name], kinds[name] = _guess(one)
        if reasons[name].role == "person" and any(g.role == "person" for n, g in reasons.items() if n != name):
            reasons[name] = Guess("identifier", "", reasons[name].reason + "; another column is the person already", False)
    if not any(guess.role == "person" for guess in reasons.values()):
        reasons = {name: _doubt_repeated(guess, seen[name]) for name, guess in reasons.items()}
    return Suggestion(
        _schema(reasons, kinds, seen),
        reasons,
        columns.rows,
        tuple(dict.fromkeys(marker for one in seen.values() for marker in one.doubtful)),
        tuple(name for name, one in seen.items() if one.missing),
        {
            name: cost
            for name, guess in reasons.items()
            if guess.role == "quasi" and (cost := snap_cost(kinds[name], seen[name])) is not None
        },
    )


def _guess(seen: Profile) -> tuple[Guess, Kind]:
    kind = guess_kind(seen)
    role = guess_role(seen, kind)
    if role.role in ("identifier", "person"):
        return Guess(role.role, "", role.reason, role.sure), kind.kind
    if role.role == "quasi":
        kind = refine_kind(kind, seen)
    reason = f"{role.reason}; {kind.reason}{_note_spellings(seen) if kind.kind.name in ('flat', 'prefix', 'tree') else ''}"
    return Guess(role.role, kind.kind.name, reason, role.sure and kind.sure), kind.kind


def _note_spellings(seen: Profile) -> str:
    """A remark on look-alike values: numbers and dates are read by value, whatever their spelling."""
    if seen.spellings is None:
        return ""
    value, many = seen.spellings
    return f"; {many:,} spellings of {value!r}: make them one value before publishing"


def _doubt_repeated(guess: Guess, seen: Profile) -> Guess:
    """An identifier that repeats is never sure: `anonymize` refuses it until somebody declares whose rows these are."""
    if guess.role != "identifier" or seen.rows == seen.distinct:
        return guess
    reason = (
        f"{guess.reason}; {seen.rows - seen.distinct:,} of {seen.rows:,} rows repeat a value: make it the person if these are "
        "rows of one person, or add rows_are_persons: true"
    )
    return replace(guess, reason=reason, sure=False)


def _schema(reasons: Mapping[str, Guess], kinds: Mapping[str, Kind], seen: Mapping[str, Profile]) -> Schema:
    def having(role: str) -> list[str]:
        return [name for name, guess in reasons.items() if guess.role == role]

    return Schema(
        identifier=having("identifier"),
        quasi={name: kinds[name] for name in having("quasi")},
        sensitive={name: kinds[name] for name in having("sensitive")},
        person=next(iter(having("person")), None),
        missing=list(dict.fromkeys(marker for one in seen.values() for marker in one.markers)),
    )


__all__ = ["Guess", "Suggestion", "suggest"]
