"""The kind of a column, from its values first and its name second."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.api.suggestion.profile import Profile
from closeknit.api.suggestion.vocabulary import CODES, COUNTS, ICD, POSTAL
from closeknit.core.date_texts import ISO, Moment, detect_format, reader
from closeknit.core.date_times import DateTime
from closeknit.core.dates import LEVELS, Date
from closeknit.core.domain import LOOKS_WRITTEN, NUMBER_TEXT
from closeknit.core.duration_texts import DURATION, coarsest_unit, read_duration
from closeknit.core.durations import Duration
from closeknit.core.exact import plain_number
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.itemsets import ItemSet
from closeknit.core.kinds import BadValue, Flat, Kind, Numeric, Prefix
from closeknit.core.points import Point
from closeknit.core.steps import PARTS, has_decimals, propose_step

FEW = 10  # up to this many different whole numbers look like codes
MANY = 100  # more categories than this need a node for the rare ones
SOME = 0.2  # share of the rows with several items, from which a column is one of sets
TOO_MANY = 1000  # and more than this need a hierarchy written by hand
FEW_DAYS = 62  # date-times within them are of little use without their time of day
MOSTLY = 0.9  # share of the rows that decides; exceptions are reported

_DAY = re.compile(r"(\d{4}([-./])\d\d?\2\d\d?|\d\d?([./-])\d\d?\3\d{4})([T ].*)?")
_COARSER = {"month": re.compile(r"\d{4}-\d\d"), "quarter": re.compile(r"\d{4}-Q[1-4]")}
_OTHER_DATE = {
    re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d\d"): "years need four digits to make it a date",
    re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])"): 'a date with format: "%Y%m%d"',
}
_ICD = re.compile(r"[A-TV-Z]\d[0-9AB](\.?[0-9A-Z]{1,4})?")
_POINT = re.compile(r"[+-]?\d{1,2}\.\d+\s*[,;]\s*[+-]?\d{1,3}\.\d+|POINT\s*\(.*\)", re.IGNORECASE)
_ITEM = re.compile(r"[\w.-]{1,12}")
_MONEY = re.compile(r"[$€£+-]?\s?\d[\d.,' ]*\s?[%€$£]?")


class KindGuess(NamedTuple):
    """A kind, the reason, and whether it is certain."""

    kind: Kind
    reason: str
    sure: bool


def guess_kind(seen: Profile) -> KindGuess:
    """Guess the kind of a column; the reason names a value that this kind cannot read.

    >>> from closeknit.core.columns import Columns
    >>> from closeknit.api.suggestion.profile import profile_of
    >>> guess_kind(profile_of("plz", Columns.of({"plz": ["04109", "80331"]})["plz"]))
    KindGuess(kind=Prefix(length=5), reason='postal codes of 5 characters', sure=True)
    """
    if not seen.distinct:
        return KindGuess(Flat(), "no values at all", False)
    for look in (_guess_native, _codes, _dates, _durations, _points, _numbers, _sets):
        guess = look(seen)
        if guess is not None:
            return guess
    return _categories(seen)


def _guess_native(seen: Profile) -> KindGuess | None:
    """Recognize typed dates and booleans."""
    if seen.values.dtype.kind == "b":
        return KindGuess(Flat(), "true and false", True)
    if seen.values.dtype.kind != "M":
        return None
    fault = _fault(Date(), seen)
    low, high = (str(day)[:10] for day in (seen.values.min(), seen.values.max()))
    return KindGuess(Date(), f"dates from {low} to {high}{fault}", not fault)


def _codes(seen: Profile) -> KindGuess | None:
    """Recognize codes whose first characters are the most significant."""
    texts, whole = seen.texts, seen.values.dtype.kind in "iu"
    if seen.values.dtype.kind not in "Oiu":
        return None
    lengths = {len(text) for text in texts}
    digits = all(text.isascii() and text.isdigit() for text in texts)
    length = lengths.pop() if len(lengths) == 1 else None
    if seen.match_word(POSTAL) and all(re.fullmatch(r"(?=.*\d)[\w -]{3,10}", text) for text in texts):
        zeros = "; leading zeros may be lost" if whole and length is None else ""
        long = f"{length} characters" if length else "several lengths"
        return KindGuess(Prefix(length), f"postal codes of {long}{zeros}", not zeros)
    if digits and not whole and length and length >= 3 and any(text[0] == "0" for text in texts):
        return KindGuess(Prefix(length), f"codes of {length} digits, some with leading zeros", False)
    if seen.distinct >= 3 and not whole and all(_ICD.fullmatch(text) for text in texts):
        return KindGuess(Prefix(), "codes like those of ICD-10", seen.match_word(ICD) is not None)
    return None


def _dates(seen: Profile) -> KindGuess | None:
    if seen.values.dtype.kind != "O":
        return None
    if _share(seen, _DAY) >= MOSTLY:
        return _days([text for text in seen.texts if _DAY.fullmatch(text)], seen)
    for level, pattern in _COARSER.items():
        if _share(seen, pattern) >= MOSTLY:
            kind = Date(LEVELS[LEVELS.index(level) :])
            fault = _fault(kind, seen)
            fit = [text for text in seen.texts if pattern.fullmatch(text)]
            return KindGuess(kind, f"{level}s from {min(fit)} to {max(fit)}{fault}", not fault)
    for pattern, remedy in _OTHER_DATE.items():
        if _share(seen, pattern) >= MOSTLY:
            return KindGuess(Flat(), f"looks like dates ('{seen.texts[0]}'): {remedy}", False)
    return None


def _days(texts: list[str], seen: Profile) -> KindGuess:
    """Recognize days or date-times by their format; if day and month are ambiguous, the user has to decide."""
    try:
        format = detect_format(texts)
    except BadValue as bad:
        return KindGuess(Date(), f"dates, but {bad.what}; {bad.right}", False)
    written = None if format == ISO else format
    read = [moment for text in texts if (moment := reader(format)(text))]
    if not read:
        fault = _fault(Date(format=written), seen)
        return KindGuess(Flat(), f"looks like dates ('{texts[0]}'){fault}", False)
    first, last = min(read, key=_moment)[1].date(), max(read, key=_moment)[1].date()
    coarsest = max(LEVELS.index(level) for level, _ in read)
    if coarsest < LEVELS.index("day") and (last - first).days < FEW_DAYS:
        timed = DateTime(levels=LEVELS[coarsest:], format=written)
        fault = _fault(timed, seen)
        return KindGuess(timed, f"date-times from {first} to {last}{fault}; date would cut off the time of day", not fault)
    kind = Date(format=written)
    fault = _fault(kind, seen)
    times = any(level != "day" for level, _ in read)
    cut = "; times of day are cut off, the kind datetime would keep them" if times else ""
    return KindGuess(kind, f"dates from {first} to {last}{fault}{cut}", not fault)


def _moment(found: Moment) -> datetime:
    return found[1]


def _durations(seen: Profile) -> KindGuess | None:
    """Recognize durations, in the coarsest unit in which all are whole."""
    if seen.values.dtype.kind != "O" or _share(seen, DURATION) < MOSTLY:
        return None
    read = [seconds for text in seen.texts if (seconds := read_duration(text)) is not None]
    kind = Duration(unit=coarsest_unit(read))
    fault = _fault(kind, seen)
    return KindGuess(kind, f"durations such as '{seen.texts[0]}', written as numbers of {kind.unit}s{fault}", not fault)


def _points(seen: Profile) -> KindGuess | None:
    """Recognize pairs of decimals that can be latitude and longitude."""
    if seen.values.dtype.kind != "O" or _share(seen, _POINT) < MOSTLY:
        return None
    fault = _fault(Point(), seen)
    return KindGuess(Point(), f"latitude and longitude, such as '{seen.texts[0]}'{fault}", not fault)


def _numbers(seen: Profile) -> KindGuess | None:
    if seen.values.dtype.kind not in "iufO" or (seen.values.dtype.kind == "O" and _share(seen, NUMBER_TEXT) < MOSTLY):
        return None
    numbers = _floats(seen)
    whole = bool(np.all(numbers == np.floor(numbers)))
    low, high = (plain_number(float(end)) for end in (numbers.min(), numbers.max()))
    fault = _fault(Numeric(), seen)
    reason = f"{'whole numbers' if whole else 'numbers'} from {low} to {high}, {seen.distinct:,} distinct{fault}"
    nominal = seen.match_word(CODES) is not None
    few = seen.distinct <= FEW and seen.distinct * 5 <= seen.rows
    if whole and not fault and (nominal or few) and not seen.match_word(COUNTS):
        why = "few different" if few else "its name suggests codes"
        return KindGuess(Flat(), f"{reason}: {why}, so perhaps codes; numeric if their order has a meaning", False)
    return KindGuess(Numeric(), reason, not fault)


def _sets(seen: Profile) -> KindGuess | None:
    """Recognize sets of codes: many combinations of few short items."""
    if seen.values.dtype.kind != "O":
        return None
    for separator in ",;|":
        if _share(seen, re.compile(rf"[^{separator}]+\{separator}.*")) < SOME:
            continue
        items = {item.strip() for text in seen.texts for item in text.split(separator)}
        if len(items) < seen.distinct and all(_ITEM.fullmatch(item) for item in items):
            codes = all(_ICD.fullmatch(item) for item in items)
            kind = ItemSet(Prefix() if codes else Flat(), separator)
            what = "codes like those of ICD-10" if codes else "items, which a hierarchy would generalize"
            return KindGuess(kind, f"{seen.distinct:,} sets of {len(items):,} {what}", False)
    return None


def _categories(seen: Profile) -> KindGuess:
    reason = f"text, {seen.distinct:,} distinct value{'s' * (seen.distinct > 1)}"
    written = next((text for text in seen.texts if LOOKS_WRITTEN.fullmatch(text)), None)
    if written is not None:
        return KindGuess(Flat(), f"'{written}' looks like a written range: is this table a release already?", False)
    if _share(seen, _MONEY) >= MOSTLY:
        reason += f", such as '{seen.texts[0]}': numeric if written in plain digits (see --decimal)"
        return KindGuess(Flat(), reason, False)
    return KindGuess(Flat(), reason, True)


def refine_kind(guess: KindGuess, seen: Profile) -> KindGuess:
    """Refine the kind of a quasi-identifier: a step for decimals and long tails, a node for rare categories."""
    if guess.kind == Numeric() and guess.sure:
        step = _step(seen)
        if step is None:
            return guess
        use = (
            "its ranges end at multiples of the step" if has_decimals(_floats(seen)) else "the step is used by snap and coarsen"
        )
        return guess._replace(kind=Numeric(step=step), reason=f"{guess.reason}; {use}")
    if not isinstance(guess.kind, Flat) or seen.distinct <= MANY or not guess.sure:
        return guess
    limit = max(seen.rows // 200, 2)
    few = int((seen.counts < limit).sum())
    if seen.distinct > TOO_MANY or few in (0, seen.distinct) or "(rare)" in seen.texts:
        return guess._replace(reason=f"{guess.reason}: many; a hierarchy would help", sure=False)
    counts = dict(zip(seen.texts, seen.counts.tolist(), strict=True))
    reason = f"{guess.reason}; those in fewer than {limit:,} rows share a node; a hierarchy of your own would be better"
    return KindGuess(Hierarchy.rare(counts, limit), reason, False)


def _step(seen: Profile) -> float | None:
    """Return the step of decimals and of whole numbers with a long tail or many values; None for few whole numbers."""
    numbers, step = _floats(seen), _propose_step(seen)
    if step is None or has_decimals(numbers):
        return step
    far = float(np.abs(numbers - np.median(np.repeat(numbers, seen.counts))).max())
    return step if step > 1 and (far > 3 * PARTS * step or len(numbers) > TOO_MANY) else None


def _propose_step(seen: Profile) -> float | None:
    numbers = _floats(seen)
    order = np.argsort(numbers)
    return propose_step(numbers[order], seen.counts[order])


def snap_cost(kind: Kind, seen: Profile) -> float | None:
    """Estimate the loss added to a column of whole numbers if its ranges end at steps: a range grows by a step on average.

    >>> from closeknit.core.columns import Columns
    >>> from closeknit.api.suggestion.profile import profile_of
    >>> snap_cost(Numeric(step=5), profile_of("age", Columns.of({"age": [20, 25, 70]})["age"]))
    0.1
    """
    if not isinstance(kind, Numeric):
        return None
    numbers = _floats(seen)
    if len(numbers) != seen.distinct or has_decimals(numbers) or (step := kind.step or _propose_step(seen)) is None:
        return None
    return float(step / (numbers.max() - numbers.min()))


def _fault(kind: Kind, seen: Profile) -> str:
    """Return the first value that the kind cannot read, with its row; empty if it reads everything."""
    try:
        kind.bind(seen.values)
    except BadValue as bad:
        return f", but row {seen.first_row(bad.index):,}: {bad.what}"
    return ""


def _floats(seen: Profile) -> NDArray[np.float64]:
    if seen.values.dtype.kind != "O":
        numbers = seen.values.astype(np.float64)
        return numbers[np.isfinite(numbers)] if np.isfinite(numbers).any() else np.zeros(1)
    return np.array([float(text) for text in seen.texts if NUMBER_TEXT.fullmatch(text)])


def _share(seen: Profile, pattern: re.Pattern[str]) -> float:
    """Return the share of the rows whose value matches a pattern."""
    sample = seen.texts[:: max(seen.distinct // TOO_MANY, 1)]
    if not any(pattern.fullmatch(text) for text in sample):  # most patterns match nothing, and some columns are long
        return 0.0
    fits = np.array([pattern.fullmatch(text) is not None for text in seen.texts])
    return float(seen.counts[fits].sum()) / seen.rows
