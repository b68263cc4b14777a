"""`suggest`: a suggested role and kind of each column with the reason, and a recipe for the user to correct."""

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
from closeknit.core.errors import refuse_empty
from closeknit.core.kinds import Kind
from closeknit.core.schema import Schema


@dataclass(frozen=True)
class Guess:
    """The suggested role and kind of a column; `kind` is empty if the role needs none."""

    role: str
    kind: str
    reason: str
    sure: bool


@dataclass(frozen=True)
class Suggestion:
    """A suggested schema of a table, with reasons. The user decides.

    Args:
        schema: The suggested schema.
        reasons: The suggestion for each column with its reason.
        rows: Number of rows of the table.
        doubtful_markers: Missing-value codes that may be values.
        with_missing: Columns with missing cells.
        snap_costs: Loss that snapping would add to columns of whole numbers.
        csv: Format of the file, if it is unusual.
    """

    schema: Schema
    reasons: dict[str, Guess]
    rows: int
    doubtful_markers: tuple[str, ...] = ()
    with_missing: tuple[str, ...] = ()
    snap_costs: Mapping[str, float] = field(default_factory=dict)
    csv: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def unsure(self) -> list[str]:
        """Columns that the user should check first."""
        return [name for name, guess in self.reasons.items() if not guess.sure]

    def to_recipe(self, path: str, csv: Mapping[str, Any] | None = None, name: str = "recipe.yaml") -> str:
        """Return an editable recipe.

        Args:
            path: Where the table is.
            csv: The format of the file, instead of the one that was detected.
            name: The file of the recipe, as its first lines name it.

        >>> table = Columns.of({"name": ["Ann", "Bob"], "age": [41, 30], "disease": ["flu", "gout"]})
        >>> print(suggest(table).to_recipe("patients.csv").split("schema:")[1])
        <BLANKLINE>
          identifier:  # never published
            - name  # names of people
        ...
        """
        return recipe_text(self, path, self.csv if csv is None else csv, name)


def suggest(columns: Columns) -> Suggestion:
    """Guess role and kind of every column.

    >>> table = Columns.of({"name": ["Ann", "Bob"], "age": [41, 30], "disease": ["flu", "?"]})
    >>> {name: (guess.role, guess.kind) for name, guess in suggest(table).reasons.items()}
    {'name': ('identifier', ''), 'age': ('quasi', 'numeric'), 'disease': ('sensitive', 'flat')}
    """
    refuse_empty(columns.rows if len(columns) else 0)
    seen = {name: profile_of(name, column) for name, column in columns.items()}
    reasons: dict[str, Guess] = {}
    kinds: dict[str, Kind] = {}
    guesses = {name: _guess(one) for name, one in seen.items()}
    read = [one for name, one in seen.items() if guesses[name][0].role != "identifier" and one.distinct > 1]
    sentinels = {text for one in seen.values() for text in one.sentinels}
    values = {text for text in sentinels if any(text in one.texts for one in read)}  # codes are those of all columns
    for name, one in seen.items():
        if values.intersection(one.sentinels):
            seen[name] = profile_of(name, columns[name], values)
            guesses[name] = _guess(seen[name])
        reasons[name], kinds[name] = _doubt_sentinels(guesses[name][0], seen[name]), guesses[name][1]
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


def _doubt_sentinels(guess: Guess, seen: Profile) -> Guess:
    """Name the numbers that look like missing-value codes; the user decides."""
    remarks = ""
    for code in seen.sentinels:
        other = ", but other columns have it as a value: if it means missing here, leave the cell empty"
        remarks += f"; {code} looks like a missing-value code{' and is taken as one' if code in seen.markers else other}"
    return replace(guess, reason=guess.reason + remarks, sure=guess.sure and not remarks)


def _note_spellings(seen: Profile) -> str:
    """Return a remark on look-alike values; numbers and dates are compared by value anyway."""
    if seen.spellings is None:
        return ""
    value, many = seen.spellings
    return f"; {many:,} spellings of {value!r}: make them one value before publishing"


def _doubt_repeated(guess: Guess, seen: Profile) -> Guess:
    """Mark an identifier that repeats as unsure: `anonymize` refuses it until the user declares whose rows these are."""
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
