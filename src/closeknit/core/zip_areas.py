"""Three-digit ZIP areas of 20,000 people or fewer, which the HIPAA Safe Harbor rule writes as 000.

The rule (45 CFR 164.514(b)(2)(i)(B)) asks for the current publicly available data of the Bureau of the Census: give them as a
file with an area and its population per line. The list of the census of 2000, which guidance often quotes, is a choice with a
note of its own.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from closeknit.core.errors import BadInput
from closeknit.core.strict_json import read_text

CENSUS_2000 = "census2000"
SMALL_2000 = (
    "036",
    "059",
    "063",
    "102",
    "203",
    "556",
    "692",
    "790",
    "821",
    "823",
    "830",
    "831",
    "878",
    "879",
    "884",
    "890",
    "893",
)
MOST_PEOPLE = 20_000  # of an area that is not published
HIDDEN_AREA = "000"
AREA_DIGITS = len(HIDDEN_AREA)
_AREA = re.compile(r"\d{3}")
_COUNT = re.compile(r"\d{1,12}")
RIGHT = "write an area of three digits and its population in each line: 021,1012345"


def read_small_areas(file: str | PathLike[str]) -> tuple[str, ...]:
    """The areas that are written as 000: those of 20,000 people or fewer, and those that the file does not have.

    Args:
        file: a CSV file with an area of three digits and its population in each line, with or without a heading; or
            "census2000" for the list of the census of 2000.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+", suffix=".csv") as pops:
    ...     _ = pops.write("zip3,population\\n021,900000\\n036,14000\\n"), pops.flush()
    ...     small = read_small_areas(pops.name)
    >>> "021" in small, "036" in small, "999" in small
    (False, True, True)
    """
    if str(file) == CENSUS_2000:
        return SMALL_2000
    place = Path(file)
    text = read_text(place, "name a file of ZIP areas")
    people: dict[str, int] = {}
    for number, cells in enumerate(csv.reader(text.splitlines(), delimiter=";" if ";" in text.partition("\n")[0] else ","), 1):
        area, count = (cell.strip() for cell in (*cells, "", "")[:2])
        if (number == 1 and not _AREA.fullmatch(area)) or not cells:
            continue  # a heading
        if not _AREA.fullmatch(area) or not _COUNT.fullmatch(count):
            raise BadInput(f"'{area},{count}' is not an area with its population", file=place, row=number, right=RIGHT)
        if area in people:
            raise BadInput(f"the area '{area}' occurs twice", file=place, row=number, right="remove one of the lines")
        people[area] = int(count)
    if not people:
        raise BadInput("has no area", file=place, right=RIGHT)
    return tuple(area for area in _all_areas() if people.get(area, 0) <= MOST_PEOPLE)


def check_areas(given: object) -> tuple[str, ...]:
    """The areas that are written as 000, from a list of them, a file, or "census2000".

    Args:
        given: what a kind was given.

    >>> check_areas(["059", "036"])
    ('036', '059')
    """
    if isinstance(given, str | PathLike):
        return read_small_areas(given)
    if not isinstance(given, list | tuple):
        raise BadInput(f"zip3={given!r} is neither a file nor a list of areas", right="write zip3: FILE, or zip3: census2000")
    for area in given:
        if not isinstance(area, str) or not _AREA.fullmatch(area) or area == HIDDEN_AREA:
            raise BadInput(f"zip3 has the area {area!r}", right="write areas as three digits between quotes, such as '036'")
    return tuple(sorted(set(given)))


def _all_areas() -> Iterable[str]:
    return (f"{area:03}" for area in range(1, 1000))
