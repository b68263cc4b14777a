"""Column names: checks that they are unique, and the choice of columns to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from closeknit.core.errors import BadInput, suggest_name

Wanted = Sequence[str] | Callable[[Sequence[str]], Sequence[str]] | None  # names, or a function that chooses them


def check_names(names: Sequence[object], file: object = None) -> None:
    """Refuse a table whose columns have no names or equal names.

    >>> check_names(["age", "sex", "age"])
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: column 'age': columns 1 and 3 have this name; give each column its own name
    """
    if not names:
        raise BadInput("the table has no columns", file=file, right="give a table with named columns")
    for place, name in enumerate(names, start=1):
        if not isinstance(name, str):
            raise BadInput(f"column {place} is named {name!r}, which is not text", file=file, right="rename it")
        if not name.strip():
            raise BadInput(f"column {place} has no name", file=file, right="name every column in the header")
        if "\0" in name:
            right = "remove it; if the file is UTF-16, name the encoding"
            raise BadInput(f"the name of column {place} holds a NUL character", file=file, right=right)
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        places = " and ".join(str(place) for place, name in enumerate(names, start=1) if name == twice)
        raise BadInput(f"columns {places} have this name", file=file, column=str(twice), right="give each column its own name")


def refuse_other_names(names: Collection[str], first: Collection[str], file: object) -> None:
    """Refuse a part file with other columns than those before it.

    Args:
        names: its columns.
        first: those of the first part file; sets where their order does not matter.
        file: the part file.
    """
    if names != first:
        raise BadInput("its columns are not those of the part files before it", file=file, right="make them all alike")


def choose_columns(names: Sequence[str], wanted: Wanted, file: object = None) -> list[str]:
    """The columns to read: the wanted ones, which must all exist, or all.

    >>> choose_columns(["age", "sex"], ["sex"])
    ['sex']
    """
    if wanted is None:
        return list(names)
    chosen = wanted(names) if callable(wanted) else wanted
    for name in chosen:
        if name not in names:
            raise BadInput("there is no such column", file=file, column=name, right=suggest_name(name, names))
    return list(dict.fromkeys(chosen))
