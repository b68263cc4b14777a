"""The form `multiset`: every column is a group by itself, so a bucket discloses only the counts of the values of each column.

Source: the paper on slicing, sec. 3.1 (Table 1(d), 1(e)), as multiset-based generalization. It has fewer links than ranges
have, but discloses exact values, and so more about each column by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from closeknit.core.schema import Schema
from closeknit.forms.grouped import ColumnGroups, Grouped


@dataclass(frozen=True)
class Multiset(Grouped):
    """Writes and reads one group per column.

    Args:
        number: name of the column with the number of the bucket.
    """

    name: ClassVar[str] = "multiset"
    number: str = "bucket"

    def column_groups(self, schema: Schema) -> ColumnGroups:
        """Each column by itself."""
        return tuple((name,) for name in schema.published)


def multiset(number: str = "bucket") -> Multiset:
    """The form that links no two columns.

    Args:
        number: name of the column with the number of the bucket.

    >>> multiset("group")
    Multiset(number='group')
    """
    return Multiset(number)
