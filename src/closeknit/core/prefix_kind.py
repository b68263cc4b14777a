"""Codes that are masked from the right, such as zip codes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from closeknit.core.domain import Domain, Values
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.kind import Losses, Nominal, bind_tree, raw_texts
from closeknit.core.limits import MOST_LENGTH
from closeknit.core.params import whole
from closeknit.core.tree import STAR, Tree
from closeknit.core.zip_areas import AREA_DIGITS, HIDDEN_AREA, SMALL_2000, check_areas
from closeknit.kernels.arrays import Int32


@dataclass(frozen=True, repr=False)
class Prefix(Nominal):
    """Codes whose first characters are the most significant (zip codes): masked from the right.

    Args:
        length: characters of a full code; that of the longest one if None.
        keep: first characters that are kept; the others are masked before a method sees the column.
        zip3: three-digit areas that are written as 000, as HIPAA Safe Harbor asks for areas of 20,000 people or fewer; or
            a file with the population of each area, or "census2000".

    >>> domain, codes = Prefix().bind(np.array(["47605", "47602", "47906"], dtype=object))
    >>> domain.labels(np.array([0, 0]), np.array([1, 2]))
    ['4760*', '47***']
    >>> Prefix().losses(["4760*", "47***", "47605", "*"])[:, 0].tolist()
    [0.2, 0.6, 0.0, 1.0]
    >>> Prefix(keep=3).bind(np.array(["02139", "02142"], dtype=object))[0].texts
    ('021**',)
    >>> Prefix(zip3="census2000").bind(np.array(["02139", "03601"], dtype=object))[0].texts
    ('000**', '021**')
    """

    name: ClassVar[str] = "prefix"
    default_distance: ClassVar[str] = "hierarchical"
    length: int | None = None
    keep: int | None = None
    zip3: tuple[str, ...] | str | None = None

    def __post_init__(self) -> None:
        if self.length is not None:
            whole("length", self.length, least=1, most=MOST_LENGTH)
        if self.zip3 is not None:
            object.__setattr__(self, "zip3", check_areas(self.zip3))
            if self.keep not in (None, AREA_DIGITS):
                raise BadInput(f"prefix has zip3 and keep={self.keep}", right=f"write keep: {AREA_DIGITS}, or leave it out")
            object.__setattr__(self, "keep", AREA_DIGITS)
        if self.keep is not None:
            whole("keep", self.keep, least=1, most=self.length or MOST_LENGTH)

    def notes(self, name: str) -> list[str]:
        """The characters that are kept."""
        kept = "character is" if self.keep == 1 else f"{self.keep} characters are"
        notes = [] if self.keep is None else [f"column '{name}': only the first {kept} kept, before anything else"]
        if self.zip3 is not None:
            old = " by the census of 2000; the rule asks for current data" if self.zip3 == SMALL_2000 else ""
            notes.append(f"column '{name}': areas of 20,000 people or fewer are written as {HIDDEN_AREA}{old}")
        return notes

    def _mask(self, text: str) -> str:
        """The code with everything after the kept characters masked; it keeps its length."""
        if self.keep is None:
            return text
        area = text[:AREA_DIGITS]
        hidden = self.zip3 is not None and (area in self.zip3 or not re.fullmatch(r"\d{3}", area))
        return (HIDDEN_AREA if hidden else text[: self.keep]) + STAR * (len(text) - self.keep)

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """Leaves are the codes that occur; a code of another length than `length`, or with a mask, is refused."""
        texts = raw_texts(values)
        for i, text in enumerate(texts):
            if STAR in (text if self.keep is None else text.replace(self._mask(text), "")):
                raise BadValue(i, f"'{text}' looks like a masked code", "give the whole code, or list it under missing")
            if len(text) > MOST_LENGTH:
                what = f"'{text[:20]}...' has {len(text):,} characters"
                raise BadValue(i, what, f"a code has at most {MOST_LENGTH}; make the column flat")
            if self.length is not None and len(text) != self.length:
                raise BadValue(i, f"'{text}' has {len(text)} characters", f"a code of this column has {self.length}")
        texts = list(map(self._mask, texts))
        domain, codes = bind_tree(tree := self.tree(sorted(set(texts))), texts)
        # a kept prefix is a leaf: what it masks is lost whatever a method does
        return replace(domain, node_loss=np.where(tree.height == 0, 0.0, self.losses(tree.labels)[:, 0])), codes

    @property
    def has_fixed_losses(self) -> bool:
        return self.length is not None

    def losses(self, cells: Sequence[str]) -> Losses:
        """Masked characters over `length`, or else over the longest written cell; the same in both variants."""
        width = self.length or max((len(cell) for cell in cells), default=1)
        masked = np.array([width if cell == STAR else cell.count(STAR) for cell in cells], dtype=np.float64)
        loss = np.minimum(masked / max(width, 1), 1.0)
        return np.stack([loss, loss], axis=1)

    def tree(self, texts: Sequence[str]) -> Tree:
        """One level per character; a shorter code is below the masks of its own first characters."""
        if not texts:
            return Tree.of({"none": None})
        width = max(len(text) for text in texts)
        nested: dict[str, Any] = {}
        for text in texts:
            place = nested
            for kept in range(1, len(text.rstrip(STAR))):
                mask = text[:kept] + STAR * (width - kept)
                place = place.setdefault(mask, {})
            place[text] = None
        # one shared first character would become a named root, which changes no distance: keep `*` above it
        return Tree.of({STAR: nested})


def prefix(
    length: int | None = None, keep: int | None = None, zip3: Sequence[str] | str | PathLike[str] | None = None
) -> Prefix:
    """A column of codes that are masked from the right.

    Args:
        length: characters of a full code; that of the longest one if left out.
        keep: first characters that are kept; the others are masked before a method sees the column.
        zip3: a file with the population of each three-digit ZIP area, "census2000", or the areas to hide: those of 20,000
            people or fewer are written as 000.

    >>> prefix(5, keep=3)
    Prefix(length=5, keep=3)
    """
    return Prefix(length, keep, zip3)  # type: ignore[arg-type]
