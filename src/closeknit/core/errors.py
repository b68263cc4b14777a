"""Two kinds of error: the user's input is wrong (`BadInput`), or the guarantee cannot be met (`Unsatisfiable`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

MOST_CHARACTERS = 1_000  # of one part of a sentence, which may quote a value of any length
MOST_LISTED = 20  # names in a sentence
MOST_COMPARED = 100  # characters of a name: the cost of comparing grows with their square
NEAR = 0.7  # how similar a name must be to be suggested, from 0 to 1


class CloseknitError(Exception):
    """Base class of all errors that closeknit raises; the message is one sentence for the user."""

    status = 2


class BadInput(CloseknitError):
    """Wrong input or usage: what is wrong, where (file, column, row), and what to do.

    Args:
        what: what is wrong, with the value.
        file: the file.
        column: the column.
        row: the row, counted from 1.
        right: what to do.

    >>> print(BadInput("'abc' is not a number", column="age", row=7, right="write digits, or list it under missing"))
    column 'age', row 7: 'abc' is not a number; write digits, or list it under missing
    """

    status = 2

    def __init__(
        self, what: str, *, file: object = None, column: str | None = None, row: int | None = None, right: str | None = None
    ) -> None:
        what, right = _clip(what), right and _clip(right)
        self.what, self.file, self.column, self.row, self.right = what, file, column, row, right
        where = [str(file)] if file is not None else []
        where += [f"column '{column}'"] if column is not None else []
        where += [f"row {row:,}"] if row is not None else []
        sentence = ", ".join(where) + (": " if where else "") + what
        super().__init__(sentence + (f"; {right}" if right else ""))

    def replace(self, **changed: Any) -> BadInput:
        """The same error with other parts, such as the file that it is about.

        Args:
            changed: `what`, `file`, `column`, `row` or `right`.

        >>> print(BadInput("'abc' is not a number", row=7).replace(file="people.csv"))
        people.csv, row 7: 'abc' is not a number
        """
        parts = {"what": self.what, "file": self.file, "column": self.column, "row": self.row, "right": self.right}
        return BadInput(**{**parts, **changed})


def _clip(text: str) -> str:
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]} ... {text[-half:]}"


def keep_printable(text: str, sign: str = "\ufffd") -> str:
    """The text with another sign for each that cannot be printed: line breaks and controls would break a line or a page.

    Args:
        text: any text, such as a name or a cell.
        sign: stands for the others.
    """
    return "".join(each if each.isprintable() else sign for each in text)


def refuse_empty(rows: int, file: object = None, what: str = "the table") -> None:
    """Refuse a table without rows.

    Args:
        rows: number of its rows.
        file: its file.
        what: what it is.
    """
    if rows == 0:
        raise BadInput(f"{what} has no rows", file=file, right="give a table with at least one row")


class BadValue(Exception):
    """One of several distinct values or cells does not fit; `locate` adds column and row.

    Args:
        index: place of the value.
        what: what is wrong with it.
        right: what to do.
    """

    def __init__(self, index: int, what: str, right: str) -> None:
        self.index, self.what, self.right = index, what, right
        super().__init__(what)

    def locate(self, column: str | None = None, row: int | None = None) -> BadInput:
        """The error for the user.

        >>> print(BadValue(0, "'x' is not a number", "correct it").locate("age", 7))
        column 'age', row 7: 'x' is not a number; correct it
        """
        return BadInput(self.what, column=column, row=row, right=self.right)


class Unsatisfiable(CloseknitError):
    """A guarantee that cannot be met. Nothing is written.

    Args:
        requested: the guarantee.
        reachable: what is possible instead.
        hint: what to do.

    >>> print(Unsatisfiable("10-anonymity", "the table has 4 rows", "request k of at most 4"))
    10-anonymity cannot be met: the table has 4 rows; request k of at most 4
    """

    status = 1
    verdict = "cannot be met"

    def __init__(self, requested: str, reachable: str, hint: str) -> None:
        self.requested, self.reachable, self.hint = requested, reachable, hint
        super().__init__(f"{requested} {self.verdict}: {reachable}; {hint}")


class Vacuous(Unsatisfiable):
    """A guarantee that is met and excludes nothing on this table. Nothing is written.

    >>> print(Vacuous("t-closeness of sex, t = 0.9", "every value may stand alone in a class", "request less than 0.5"))
    t-closeness of sex, t = 0.9 is vacuous: every value may stand alone in a class; request less than 0.5
    """

    verdict = "is vacuous"


def suggest_name(given: object, known: Iterable[object]) -> str:
    """What to write instead of an unknown name: the most similar known name, or else the known names.

    Args:
        given: the unknown name; case, spaces, `-` and `_` make no difference.
        known: the names that exist.

    >>> suggest_name("Age", ["age", "sex"]), suggest_name("zip", ["age", "sex"])
    ("did you mean 'age'?", 'choose one of: age, sex')
    """
    import difflib  # needed for a mistake only

    names = list(map(str, known))
    folded: dict[str, str] = {}
    for name in names:
        folded.setdefault(_fold(name), name)
    near = difflib.get_close_matches(_fold(str(given)[:MOST_COMPARED]), folded, n=1, cutoff=NEAR)
    if near:
        return f"did you mean '{folded[near[0]]}'?"
    more = f", ... ({len(names):,} in all)" if len(names) > MOST_LISTED else ""
    return f"choose one of: {', '.join(names[:MOST_LISTED])}{more}" if names else "none is known here"


def _fold(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name.casefold())
