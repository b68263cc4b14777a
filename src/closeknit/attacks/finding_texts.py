"""Phrases of the findings' sentences, with singular and plural."""

from __future__ import annotations

from collections.abc import Container

from closeknit.core.combined_secrets import Secret, render_secret
from closeknit.core.reading import Reading

IN_TABLE = "the quasi-identifiers of a person in the table"


def format_count(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> format_count(1, "row"), format_count(1200, "row"), format_count(2, "person", "people")
    ('1 row', '1,200 rows', '2 people')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """Return a share in percent; only exactly 0 and 1 read as 0 % and 100 %.

    >>> [percent(share) for share in (0, 0.00001, 1 / 3, 0.99999, 1)]
    ['0 %', 'less than 0.1 %', '33.3 %', 'more than 99.9 %', '100 %']
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    if 0.999 < share < 1:
        return "more than 99.9 %"
    return f"{100 * share:.3g} %"


def certainty(chance: float) -> str:
    """Return how sure an adversary is.

    >>> certainty(1), certainty(0.95)
    ('with certainty', 'with probability 95 %')
    """
    return "with certainty" if chance == 1 else f"with probability {percent(chance)}"


def times(factor: float) -> str:
    """Return a factor in words.

    >>> times(2.5), times(12345.6)
    ('2.5 times', '12,346 times')
    """
    return f"{factor:,.0f} times" if factor >= 100 else f"{factor:.3g} times"


def place(reading: Reading, index: int) -> str:
    """Return one class by its written cells.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"wage": ck.flat()})
    >>> place(ck.generalized().read(Columns.of({"sex": ["f", "m"], "wage": [3, 4]}), schema), 0)
    'sex = f'
    """
    return ", ".join(f"{name} = {cell or 'missing'}" for name, cell in reading.cells_of(index).items()) or "the whole release"


def value_name(texts: tuple[str, ...], code: int) -> str:
    """Return the text of a leaf code.

    >>> value_name(("flu", "gout"), 1), value_name(("flu", "gout"), 2)
    ('gout', 'missing')
    """
    return texts[code] if code < len(texts) else "missing"


def unit(people: Container[object], column: str) -> tuple[str, str]:
    """Return what is counted: persons where they are known, else rows.

    >>> unit({"wage": 1}, "wage"), unit({}, "wage")
    (('person', 'people'), ('row', 'rows'))
    """
    return ("person", "people") if column in people else ("row", "rows")


def not_shown(column: Secret) -> str:
    """Return the sentence for a sensitive attribute without any published value.

    >>> not_shown("wage")
    'The release shows no value of `wage`, so there is nothing to learn.'
    """
    return f"The release shows no value of `{render_secret(column)}`, so there is nothing to learn."


def format_disclosed(count: int, total: int, one: str = "row", many: str | None = None) -> str:
    """Return for how many rows or people a value is certain.

    >>> format_disclosed(3, 4), format_disclosed(0, 4)
    ('the value is fully disclosed for 3 rows (75 %)', "no one's value is fully disclosed")
    """
    if count == 0:
        return "no one's value is fully disclosed"
    return f"the value is fully disclosed for {format_count(count, one, many)} ({percent(count / total)})"
