"""Two kinds of trouble: the user's input is wrong (`BadInput`), or the promise cannot be kept (`Unsatisfiable`)."""

from __future__ import annotations


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
        self,
        what: str,
        *,
        file: object = None,
        column: str | None = None,
        row: int | None = None,
        right: str | None = None,
    ) -> None:
        self.what, self.file, self.column, self.row, self.right = what, file, column, row, right
        where = [str(file)] if file is not None else []
        where += [f"column '{column}'"] if column is not None else []
        where += [f"row {row:,}"] if row is not None else []
        sentence = ", ".join(where) + (": " if where else "") + what
        super().__init__(sentence + (f"; {right}" if right else ""))


class Unsatisfiable(CloseknitError):
    """A promise that cannot be kept: what was asked, what is reachable, and a hint. Nothing has been written.

    >>> print(Unsatisfiable("10-anonymity", "the table has 4 rows", "ask for k of at most 4"))
    10-anonymity cannot be kept: the table has 4 rows; ask for k of at most 4
    """

    status = 1

    def __init__(self, asked: str, reached: str, hint: str) -> None:
        self.asked, self.reached, self.hint = asked, reached, hint
        super().__init__(f"{asked} cannot be kept: {reached}; {hint}")
