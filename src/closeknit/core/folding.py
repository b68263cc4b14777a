"""Values that look alike: `flu`, `Flu`, `flu ` and the ligature form are spellings of one value to everyone who reads them.

`fold_text` is the only definition of looking alike; guarantees are required of the values as written and of the folded ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import combining, normalize

import numpy as np
from numpy.typing import NDArray

# Characters without a width of their own: soft hyphen, joiners, fillers, direction marks, invisible operators, selectors, tags.
_RANGES = (
    "AD-AD 34F-34F 61C-61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164-3164 FE00-FE0F FEFF-FEFF FFA0-FFA0 "
    "E0000-E007F E0100-E01EF"
)
_ENDS = [[int(end, 16) for end in ends.split("-")] for ends in _RANGES.split()]
ZERO_WIDTH = dict.fromkeys(code for first, last in _ENDS for code in range(first, last + 1))


def fold_text(text: str) -> str:
    """The text without differences that the eye does not see; equal results mean that two texts look alike.

    In this order, again until nothing changes: NFKC normalization, the characters of `ZERO_WIDTH` removed, case folding, runs
    of white space as one space with none at either end. The tables are those of Python's Unicode version.

    >>> spellings = ["flu", "flu ", "Flu", "fl\\u200bu", "\\ufb02u", "\\u00a0flu"]
    >>> {fold_text(spelling) for spelling in spellings}
    {'flu'}
    >>> fold_text("Hay  fever"), fold_text("STRASSE") == fold_text("straße")
    ('hay fever', True)
    """
    if text.isascii():  # most are, and NFKC leaves them as they are
        return " ".join(text.lower().split())
    while True:
        folded = " ".join(normalize("NFKC", text).translate(ZERO_WIDTH).casefold().split())
        if folded == text:
            return folded
        text = folded


def strip_accents(text: str) -> str:
    """The text without accents and other marks on its letters.

    >>> strip_accents("Prénom"), strip_accents("Größe")
    ('Prenom', 'Große')
    """
    return "".join(letter for letter in normalize("NFKD", text) if not combining(letter))


def first_alike(texts: Sequence[str]) -> NDArray[np.int32] | None:
    """For each text the place of the first one that looks like it; None where no two look alike.

    >>> first_alike(["Flu", "gout", "flu"]).tolist(), first_alike(["flu", "gout"])
    ([0, 1, 0], None)
    """
    places: dict[str, int] = {}
    first = [places.setdefault(fold_text(text), i) for i, text in enumerate(texts)]
    return None if len(places) == len(texts) else np.array(first, dtype=np.int32)
