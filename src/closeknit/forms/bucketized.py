"""The form `bucketized`: exact quasi-identifiers in one table, sensitive values in another, and the bucket's number in both.

Sources: the paper on slicing, sec. 3.1 (Table 1(c)); the dissertation on methods to achieve t-closeness, ch. 2, which calls it
anatomization. Different from the source: the dissertation's tables 2.4 and 2.5 have buckets of one record, which disclose
everything; here the guarantees are judged on every bucket. Several sensitive attributes remain linked, as in a generalized
release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from closeknit.core.errors import BadInput
from closeknit.core.schema import Schema
from closeknit.forms.grouped import ColumnGroups, Grouped


@dataclass(frozen=True)
class Bucketized(Grouped):
    """Writes and reads two groups of columns.

    Args:
        number: name of the column with the number of the bucket.
    """

    name: ClassVar[str] = "bucketized"
    number: str = "bucket"

    def column_groups(self, schema: Schema) -> ColumnGroups:
        """Quasi-identifiers, and sensitive attributes."""
        return two_groups(schema)

    def part_names(self, count: int) -> list[str]:
        """The names of the two tables."""
        return ["quasi", "sensitive"]


def bucketized(number: str = "bucket") -> Bucketized:
    """The form that writes two tables.

    Args:
        number: name of the column with the number of the bucket.

    >>> bucketized()
    Bucketized(number='bucket')
    """
    return Bucketized(number)


def two_groups(schema: Schema) -> ColumnGroups:
    """Quasi-identifiers, and sensitive attributes."""
    for name in schema.plain:
        right = "put it into a group of the form sliced(columns=[...]), or drop it"
        raise BadInput("is plain, which is neither quasi nor sensitive", column=name, right=right)
    for name in schema.sensitive:
        if name in schema.quasi:
            right = "give it one role, or choose its group: sliced(columns=[...])"
            raise BadInput("is quasi and sensitive", column=name, right=right)
    if not schema.sensitive:
        raise BadInput("there is no sensitive column to separate", right="name one, or choose the form generalized")
    return tuple(schema.quasi), tuple(schema.sensitive)
