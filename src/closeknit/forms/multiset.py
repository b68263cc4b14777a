"""The form `multiset`: every column stands alone, so a bucket tells how often it has each value of each column and no more.

Source: the paper on slicing, sec. 3.1 (Table 1(d), 1(e)), as multiset-based generalization. It has fewer links than ranges
have, but tells exact values, and so more about each column by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from closeknit.core.schema import Schema
from closeknit.forms.grouped import ColumnGroups, Grouped


@dataclass(frozen=True)
class Multiset(Grouped):
    """Writes and reads one group for every column."""

    name: ClassVar[str] = "multiset"
    number: str = "bucket"

    def column_groups(self, schema: Schema) -> ColumnGroups:
        """Each column by itself."""
        return tuple((name,) for name in schema.published)


def multiset(number: str = "bucket") -> Multiset:
    """The form that keeps no two columns together.

    >>> multiset("group")
    Multiset(number='group')
    """
    return Multiset(number)
