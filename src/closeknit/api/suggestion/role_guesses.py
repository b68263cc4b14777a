"""The role of a column, from its name first and from how often its values repeat second; it is never plain."""

from __future__ import annotations

from typing import NamedTuple

from closeknit.api.suggestion.kind_guesses import KindGuess
from closeknit.api.suggestion.profile import Profile
from closeknit.api.suggestion.vocabulary import (
    ADDRESS,
    COUNTS,
    KEYS,
    KNOWN,
    LENGTH_OF_STAY,
    NAME,
    NAMES,
    NUMBERS,
    OF_PEOPLE,
    PEOPLE,
    PERHAPS_SECRET,
    SECRET,
    SECRET_QUALIFIERS,
)
from closeknit.core.dates import Date
from closeknit.core.durations import Duration
from closeknit.core.points import Point
from closeknit.metrics.identifier_patterns import DIRECT, match_values

ENOUGH = 20  # with fewer rows, unique values mean nothing
SAMPLED = 1000  # distinct values that the detectors look at
MOST_VALUES = 0.5  # share of them that decides
NEARLY = 0.95  # distinct values per row of a column that is nearly unique


class RoleGuess(NamedTuple):
    """A role, the reason, and whether it is certain."""

    role: str
    reason: str
    sure: bool


def guess_role(seen: Profile, kind: KindGuess) -> RoleGuess:
    """Guess the role of a column; without clear evidence it is a quasi-identifier, the careful choice.

    >>> from closeknit.core.columns import Columns
    >>> from closeknit.api.suggestion.kind_guesses import guess_kind
    >>> from closeknit.api.suggestion.profile import profile_of
    >>> seen = profile_of("diagnosis", Columns.of({"diagnosis": ["flu", "gout"]})["diagnosis"])
    >>> guess_role(seen, guess_kind(seen)).role
    'sensitive'
    """
    return _identifier(seen, kind) or _by_values(seen) or _secret(seen) or _unique(seen, kind) or _quasi(seen)


def _identifier(seen: Profile, kind: KindGuess) -> RoleGuess | None:
    """Recognize names, numbers and keys of people by the name of the column."""
    word = seen.match_word(NUMBERS) or seen.match_word(NAMES | ADDRESS)
    key = seen.words[-1] if seen.words and seen.words[-1] in KEYS else None
    people = None if seen.match_word(KNOWN | SECRET | PERHAPS_SECRET | LENGTH_OF_STAY) else seen.match_word(PEOPLE)
    named = NAME - COUNTS if kind.kind.name == "numeric" else NAME
    if named & set(seen.words) and not seen.match_word(SECRET):
        if len(seen.words) == 1 or set(seen.words) & OF_PEOPLE:
            return RoleGuess("identifier", "names of people", True)
        return RoleGuess("identifier", "a name, perhaps of people", False) if _per_row(seen) > 0.5 else None
    if word in NAMES | ADDRESS:  # people share an address, so one that repeats is no key of a person
        return RoleGuess("identifier", f"called '{word}'", True)
    if not word and not key and not (people and _per_row(seen) > 0.05):
        return None
    return _guess_key(seen, word or people, f"called '{word or key or people}'")


def _guess_key(seen: Profile, of_people: str | None, called: str) -> RoleGuess | None:
    """A unique key identifies a row; one that repeats identifies the rows of one person."""
    share, values = _per_row(seen), f"{seen.distinct:,} values in {seen.rows:,} rows"
    if share == 1 and (of_people or seen.rows >= ENOUGH):
        return RoleGuess("identifier", f"{called}, a different value in every row", True)
    if share >= NEARLY and seen.rows >= ENOUGH:
        return RoleGuess("identifier", f"{called}, {values}", False)
    if of_people or share >= 0.05:
        reason = f"{called}, {values}: equal values are rows of one person"
        return RoleGuess("person", reason, of_people is not None and share >= 0.01)
    return RoleGuess("quasi", f"{called}, but {seen.rows // max(seen.distinct, 1):,} rows share a value", False)


def _by_values(seen: Profile) -> RoleGuess | None:
    """Recognize e-mail addresses, telephone numbers, accounts and the like, whatever the column is called."""
    texts = seen.texts[:: max(seen.distinct // SAMPLED, 1)]
    for pattern, matching in match_values(texts, typed=seen.values.dtype.kind in "iufb"):
        if pattern.category in DIRECT and len(matching) >= MOST_VALUES * len(texts):
            return RoleGuess("identifier", f"values look like {pattern.what}", True)
    return None


def _secret(seen: Profile) -> RoleGuess | None:
    word = seen.match_word(SECRET)
    if word:
        alone = all({one, one.removesuffix("s")} & (SECRET | SECRET_QUALIFIERS) for one in seen.words)
        return RoleGuess("sensitive", f"called '{word}'", alone)
    word = seen.match_word(LENGTH_OF_STAY)
    if word:
        return RoleGuess("sensitive", f"called '{word}'", False)
    return None


def _unique(seen: Profile, kind: KindGuess) -> RoleGuess | None:
    """Recognize text or keys that differ in nearly every row."""
    if seen.rows < ENOUGH or _per_row(seen) < NEARLY or isinstance(kind.kind, Date | Duration | Point):
        return None
    if kind.kind.name == "flat":
        return RoleGuess("identifier", f"{seen.distinct:,} different texts in {seen.rows:,} rows", False)
    if kind.kind.name == "numeric" and _counts_rows(seen):
        return RoleGuess("identifier", "numbers the rows", False)
    if kind.kind.name == "prefix" and not kind.sure:
        return RoleGuess("identifier", f"{seen.distinct:,} different codes in {seen.rows:,} rows", False)
    return None


def _counts_rows(seen: Profile) -> bool:
    """Whether the values are consecutive whole numbers, each once."""
    if _per_row(seen) < 1:
        return False
    numbers = sorted(float(text) for text in seen.texts)
    return numbers[-1] - numbers[0] == len(numbers) - 1 and all(number.is_integer() for number in numbers)


def _quasi(seen: Profile) -> RoleGuess:
    word = seen.match_word(KNOWN)
    if word:
        return RoleGuess("quasi", f"called '{word}', which others may know", True)
    word = seen.match_word(PERHAPS_SECRET)
    if word:
        return RoleGuess("quasi", f"called '{word}', perhaps sensitive", False)
    return RoleGuess("quasi", "no clear evidence; defaults to quasi-identifier", False)


def _per_row(seen: Profile) -> float:
    return seen.distinct / max(seen.rows, 1)
