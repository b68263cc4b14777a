"""Text that a spreadsheet would run as a formula: how to detect it, write it safely and read it back.

Source: OWASP, "CSV Injection": a cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return may be run, and an
apostrophe in front of it makes it text.

Different from the source: a plain number with a sign (-5, +3.2) is not escaped, and a cell that begins with apostrophes and
then such a sign gets one more. Distinct texts therefore remain distinct, and removing one apostrophe restores the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.domain import NUMBER
from closeknit.core.errors import BadInput
from closeknit.core.kinds import texts_of

SIGNS = "=, +, -, @, tab or carriage return"
# Spark reads the pattern with another library, so it uses only what both libraries read alike.
_PLAIN = NUMBER.replace(r"\d", "[0-9]") + "|[+-]inf"
FORMULA = rf"^(?!(?:{_PLAIN})(?![\s\S]))[=+\-@\t\r]"
_FORMULA, _APOSTROPHES = re.compile(FORMULA), re.compile(r"'+[=+\-@\t\r]")
ESCAPED = "cells and column names that begin like a spreadsheet formula are written with an apostrophe in front"
RISK = "a spreadsheet that opens the release may run them; escape_formulas=True writes them with an apostrophe in front"


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may run a cell with this text.

    >>> [is_formula(text) for text in ("=1+1", "-5", "-5+cmd", "[-5, 3]", "")]
    [True, False, True, False, False]
    """
    return _FORMULA.match(text) is not None


def escape(text: str) -> str:
    """The text as it is written if formulas are escaped.

    >>> escape("=1+1"), escape("'=1+1"), escape("-5")
    ("'=1+1", "''=1+1", '-5')
    """
    return f"'{text}" if is_formula(text) or _APOSTROPHES.match(text) else text


def unescape(text: str) -> str:
    """The text that `escape` wrote.

    >>> unescape("'=1+1"), unescape("''=1+1"), unescape("'tis"), unescape("'-5")
    ('=1+1', "'=1+1", "'tis", "'-5")
    """
    return text[1:] if text.startswith("'") and escape(text[1:]) == text else text


def escape_columns(columns: Columns) -> Columns:
    """Names and text cells as they are written if formulas are escaped; numbers and dates do not change.

    >>> {name: column.cells() for name, column in escape_columns(Columns.of({"+x": ["@a", None], "y": [-1, 2]})).items()}
    {"'+x": ["'@a", None], 'y': [-1, 2]}
    """
    return _change_columns(columns, escape)


def unescape_columns(columns: Columns) -> Columns:
    """What `escape_columns` was given.

    >>> list(unescape_columns(Columns.of({"'+x": ["'@a"]})))
    ['+x']
    """
    read = _change_columns(columns, unescape)
    if len(read) < len(columns):
        name = next(name for name in columns if unescape(name) != name and unescape(name) in columns)
        what = "occurs twice, escaped and not escaped"
        raise BadInput(what, column=unescape(name), right="use the release as it was certified")
    return read


def formula_notes(columns: Columns, others: Sequence[str] = ()) -> list[str]:
    """A sentence per column with cells or a name that a spreadsheet may run; `others` are known to have such cells.

    >>> formula_notes(Columns.of({"job": ["=1+1", "cook"], "shift": ["-5", "+3"]}))
    ["column 'job': some cells begin like a spreadsheet formula (=, +, -, @, tab or carriage return)"]
    """
    cells = [name for name, column in columns.items() if name in others or _has_formula(column)]
    notes = [f"column '{name}': some cells begin like a spreadsheet formula ({SIGNS})" for name in cells]
    return notes + [f"column '{name}': its name begins like a spreadsheet formula" for name in columns if is_formula(name)]


def _has_formula(column: Column) -> bool:
    if column.values.dtype.kind != "O":
        return False
    found = [code for code, text in enumerate(texts_of(column.values)) if is_formula(text)]
    return bool(found) and bool(column.counts[found].any())


def _change_columns(columns: Columns, change: Callable[[str], str]) -> Columns:
    return Columns({change(name): _change_texts(column, change) for name, column in columns.items()}, columns.rows)


def _change_texts(column: Column, change: Callable[[str], str]) -> Column:
    if column.values.dtype.kind != "O":
        return column
    texts = texts_of(column.values)
    changed = [change(text) for text in texts]
    return column if changed == texts else Column(np.array(changed, dtype=object), column.codes)
