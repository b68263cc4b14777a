"""Two kinds of trouble: the user's input is wrong (`BadInput`), or the guarantee cannot be kept (`Unsatisfiable`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_SAID = 1_000  # characters of one part of a sentence, which may quote a value of any length
MOST_LISTED = 20  # names in a sentence
MOST_COMPARED = 100  # characters of a name: comparing costs the square of it
NEAR = 0.7  # how similar a name must be to be suggested, from 0 to 1


class CloseknitError(Exception):
    """Anything closeknit refuses to do; the message is one sentence made for the person who asked."""

    status = 2


class BadInput(CloseknitError):
    """Input or usage that is wrong: what, where (file, column, row, value) and what would be right.

    >>> print(BadInput("'abc' is not a number", column="age", row=7, right="write digits, or declare it as missing"))
    column 'age', row 7: 'abc' is not a number; write digits, or declare it as missing
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


def _clip(text: str) -> str:
    return text if len(text) <= MOST_SAID else f"{text[: MOST_SAID // 2]} ... {text[-MOST_SAID // 2 :]}"


class Unsatisfiable(CloseknitError):
    """A guarantee that cannot be kept: what was asked, what is reachable, and a hint. Nothing has been written.

    >>> print(Unsatisfiable("10-anonymity", "the table has 4 rows", "ask for k of at most 4"))
    10-anonymity cannot be kept: the table has 4 rows; ask for k of at most 4
    """

    status = 1
    verdict = "cannot be kept"

    def __init__(self, requested: str, reachable: str, hint: str) -> None:
        self.requested, self.reachable, self.hint = requested, reachable, hint
        super().__init__(f"{requested} {self.verdict}: {reachable}; {hint}")


class Vacuous(Unsatisfiable):
    """A guarantee that would be met and excludes nothing on this table. Nothing has been written.

    >>> print(Vacuous("t-closeness of sex, t = 0.9", "every value may stand alone in a class", "request less than 0.5"))
    t-closeness of sex, t = 0.9 is vacuous: every value may stand alone in a class; request less than 0.5
    """

    verdict = "is vacuous"


def suggest_name(given: object, known: Iterable[object]) -> str:
    """What to write instead of a name that is unknown: the most similar known name, or else the known names.

    `given` is the unknown name and `known` are those that would be right. Case, spaces, `-` and `_` make no difference.

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
