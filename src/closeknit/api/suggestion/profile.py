"""`Profile` of a column whose role is unknown: the words of its name, its values, its missing-value codes."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from closeknit.api.suggestion.vocabulary import SINGULAR
from closeknit.core.columns import Column
from closeknit.core.domain import NUMBER_TEXT
from closeknit.core.folding import first_alike
from closeknit.core.kinds import texts_of
from closeknit.metrics.safe_harbor import split_name

# Missing-value codes of any column, and of columns of numbers or dates.
SIGNS = frozenset(["", "?", "-", "--", ".", "na", "n/a", "#n/a", "n.a.", "nan", "null", "nil"])
WORDS = frozenset(["unknown", "missing", "unk", "not known", "not available", "not recorded", "not reported"])
WORDS_IN_NUMBERS = WORDS | {"none", "no", "x"}
SENTINEL = re.compile(r"(-(7+|8+|9+)|99+)(\.0+)?")  # codes that look like numbers
FAR = 2  # times the range of all other values, and times the greatest: that far above them is a code


@dataclass(frozen=True)
class Profile:
    """A column and its name.

    Args:
        name: the name.
        column: the cells.
        used: positions of the distinct values that occur and are not missing-value codes.
        markers: missing-value codes, spelled as they occur.
        doubtful: those that may be values.
        sentinels: numbers such as -9 and 999 that are likely to be missing-value codes.
    """

    name: str
    column: Column
    used: NDArray[np.int64]
    markers: tuple[str, ...]
    doubtful: tuple[str, ...]
    sentinels: tuple[str, ...] = ()

    @cached_property
    def values(self) -> NDArray[np.generic]:
        """Distinct values, without missing-value codes."""
        return self.column.values[self.used]

    @cached_property
    def texts(self) -> list[str]:
        """The same as text."""
        return texts_of(self.values)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each distinct value."""
        return self.column.counts[self.used]

    @property
    def rows(self) -> int:
        """Rows with a value."""
        return int(self.counts.sum())

    @property
    def distinct(self) -> int:
        """Number of distinct values."""
        return len(self.used)

    @property
    def missing(self) -> int:
        """Rows without a value."""
        return len(self.column) - self.rows

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The name in lower-case words: home, zip and code for `HomeZip_code`."""
        return split_name(self.name)

    def match_word(self, vocabulary: Collection[str]) -> str | None:
        """Return the first word of the name (or all words together) that is in the vocabulary."""
        for word in (*self.words, "".join(self.words)):
            for form in (word, word if word.endswith("ss") or word in SINGULAR else word.removesuffix("s")):
                if form in vocabulary:
                    return form
        return None

    @cached_property
    def spellings(self) -> tuple[str, int] | None:
        """The value with the most look-alike spellings, in its most frequent spelling, and their number.

        >>> from closeknit.core.columns import Columns
        >>> cells = Columns.of({"ill": ["flu", "flu", "Flu", "flu ", "gout"]})["ill"]
        >>> profile_of("ill", cells).spellings
        ('flu', 3)
        """
        first = first_alike(self.texts)
        if first is None:
            return None
        mine = np.flatnonzero(first == int(np.bincount(first).argmax()))
        return self.texts[mine[np.argmax(self.counts[mine])]], len(mine)

    def first_row(self, index: int) -> int:
        """Return the first row (from 1) with this distinct value."""
        return self.column.first_row(int(self.used[index]))


def profile_of(name: str, column: Column, values: Collection[str] = ()) -> Profile:
    """Profile a column; missing-value codes are spelled as they occur.

    Args:
        name: the name.
        column: the cells.
        values: numbers that are no missing-value codes here, because they are values of other columns.

    >>> from closeknit.core.columns import Columns
    >>> seen = profile_of("HomeZip", Columns.of({"HomeZip": ["02138", "?", "02139", None]})["HomeZip"])
    >>> seen.words, seen.markers, seen.distinct, seen.missing
    (('home', 'zip'), ('?',), 2, 2)
    >>> profile_of("age", Columns.of({"age": [30, 41, -9, 52]})["age"]).markers
    ('-9',)
    """
    occurs = np.flatnonzero(column.counts > 0).tolist()
    found, doubtful = _find_markers(column, occurs) if column.values.dtype.kind == "O" else ({}, [])
    rest = [i for i in occurs if i not in found]
    sentinels = _find_sentinels(column, rest)
    codes = {**found, **{i: text for i, text in sentinels.items() if text not in values}}
    used = np.array([i for i in rest if i not in codes], dtype=np.int64)
    doubtful += [text for text in codes.values() if text in sentinels.values()]
    return Profile(name, column, used, tuple(codes.values()), tuple(doubtful), tuple(sentinels.values()))


def _find_markers(column: Column, occurs: list[int]) -> tuple[dict[int, str], list[str]]:
    """Return the texts that are missing-value codes, and those of them that may be values."""
    texts = {i: str(column.values[i]) for i in occurs}
    plain = {i: text.strip().lower() for i, text in texts.items() if len(text) < 20}
    held = {i for i, word in plain.items() if word in SIGNS or word in WORDS_IN_NUMBERS}
    rest = [text for i, text in texts.items() if i not in held]
    ordered = bool(rest) and all(text[0].isdigit() or NUMBER_TEXT.fullmatch(text) for text in rest[:1000])
    known = SIGNS | (WORDS_IN_NUMBERS if ordered else WORDS)
    found = {i: texts[i] for i in plain if i in held and plain[i] in known}
    short = bool(rest) and all(len(text) == 2 and text.isalpha() for text in rest)
    return found, [texts[i] for i in found if not ordered and (plain[i] in WORDS or (short and plain[i] == "na"))]


def _find_sentinels(column: Column, places: list[int]) -> dict[int, str]:
    """Return codes such as -9 and 999 in a column of numbers: the only negative ones, or far above all others."""
    if column.values.dtype.kind not in "iufO":
        return {}
    texts = dict(zip(places, texts_of(column.values[places]), strict=True))
    codes = {i: text for i, text in texts.items() if SENTINEL.fullmatch(text)}
    others = {text for i, text in texts.items() if i not in codes} if codes else set()
    if not others or not all(map(NUMBER_TEXT.fullmatch, others)):
        return {}
    low, high = min(map(float, others)), max(map(float, others))
    far = high + FAR * max(high - low, high)
    return {i: text for i, text in codes.items() if (low >= 0 if text[0] == "-" else float(text) > far)}
