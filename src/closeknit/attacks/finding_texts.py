"""How findings speak: whole sentences for whoever keeps the table, with singular and plural where they belong."""

from __future__ import annotations

from collections.abc import Container

from closeknit.core.combined_secrets import Secret, render_secret
from closeknit.core.reading import Reading

IN_TABLE = "the quasi-identifiers of somebody who is in the table"


def format_count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> format_count(1, "row"), format_count(1200, "row"), format_count(2, "person", "people")
    ('1 row', '1,200 rows', '2 people')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """A share in hundredths; what is not quite none or all is never written so.

    >>> [percent(share) for share in (0, 0.00001, 1 / 3, 0.99999, 1)]
    ['0 %', 'less than 0.1 %', '33.3 %', 'more than 99.9 %', '100 %']
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    if 0.999 < share < 1:
        return "more than 99.9 %"
    return f"{100 * share:.3g} %"


def certainty(chance: float) -> str:
    """How sure somebody is.

    >>> certainty(1), certainty(0.95)
    ('for sure', 'with probability 95 %')
    """
    return "for sure" if chance == 1 else f"with probability {percent(chance)}"


def times(factor: float) -> str:
    """How many times as much.

    >>> times(2.5), times(12345.6)
    ('2.5 times', '12,346 times')
    """
    return f"{factor:,.0f} times" if factor >= 100 else f"{factor:.3g} times"


def place(reading: Reading, index: int) -> str:
    """One class by its written cells.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"wage": ck.flat()})
    >>> place(ck.generalized().read(Columns.of({"sex": ["f", "m"], "wage": [3, 4]}), schema), 0)
    'sex = f'
    """
    return ", ".join(f"{name} = {cell or 'missing'}" for name, cell in reading.cells_of(index).items()) or "the whole release"


def value_name(texts: tuple[str, ...], code: int) -> str:
    """A leaf in a sentence.

    >>> value_name(("flu", "gout"), 1), value_name(("flu", "gout"), 2)
    ('gout', 'missing')
    """
    return texts[code] if code < len(texts) else "missing"


def unit(people: Container[object], column: str) -> tuple[str, str]:
    """What is counted: persons where they are known, else rows.

    >>> unit({"wage": 1}, "wage"), unit({}, "wage")
    (('person', 'people'), ('row', 'rows'))
    """
    return ("person", "people") if column in people else ("row", "rows")


def not_shown(column: Secret) -> str:
    """Where there is nothing to attack.

    >>> not_shown("wage")
    'No value of wage is shown, so there is nothing to learn.'
    """
    return f"No value of {render_secret(column)} is shown, so there is nothing to learn."
