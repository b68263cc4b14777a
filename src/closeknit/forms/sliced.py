"""The form `sliced`: exact cells in groups of columns that do not line up with each other (see `forms.grouped`).

`columns` are the groups; if left out, quasi-identifiers are one group and sensitive attributes another (bucketization).
`levels` writes columns coarser that would disclose too much next to a sensitive value, or single out a person (column
generalization).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from closeknit.core.errors import BadInput
from closeknit.core.schema import Schema
from closeknit.forms.bucketized import two_groups
from closeknit.forms.cell_labels import check_levels
from closeknit.forms.grouped import ColumnGroups, Grouped


@dataclass(frozen=True)
class Sliced(Grouped):
    """Writes and reads column groups.

    Args:
        columns: the groups of columns; quasi-identifiers and sensitive attributes if None.
        levels: per column, the lowest level to write; `*` is the last one.
        number: name of the column with the number of the bucket.
    """

    name: ClassVar[str] = "sliced"
    columns: ColumnGroups | None = None
    levels: Mapping[str, int | str] | None = None
    number: str = "bucket"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", None if self.columns is None else column_groups_of(self.columns))
        object.__setattr__(self, "levels", check_levels(self.levels))

    def column_groups(self, schema: Schema) -> ColumnGroups:
        """As requested, in that order."""
        return two_groups(schema) if self.columns is None else self.columns


def sliced(
    columns: Sequence[Sequence[str]] | None = None, levels: Mapping[str, int | str] | None = None, number: str = "bucket"
) -> Sliced:
    """The form that writes exact cells and breaks the links between groups of columns.

    Args:
        columns: the groups of columns; quasi-identifiers and sensitive attributes if left out.
        levels: per column, the lowest level to write; `*` is the last one.
        number: name of the column with the number of the bucket.

    >>> sliced([["age", "sex"], ["zip", "disease"]]).columns
    (('age', 'sex'), ('zip', 'disease'))
    """
    return Sliced(columns, levels, number)  # type: ignore[arg-type]


def column_groups_of(columns: object) -> ColumnGroups:
    """Lists of names as a recipe writes them."""
    right = "write lists of names: columns: [[age, sex], [zip, disease]]"
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise BadInput(f"columns={columns!r} is not a list of groups", right=right)
    for group in columns:
        if isinstance(group, str) or not isinstance(group, Sequence) or not group or not all(isinstance(n, str) for n in group):
            raise BadInput(f"columns: {group!r} is not a group of columns", right=right)
    return tuple(tuple(group) for group in columns)
