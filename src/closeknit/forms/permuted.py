"""The form `permuted`: one table with exact quasi-identifiers, in which numeric sensitive values are exchanged inside a bucket.

Source: the dissertation on methods to achieve t-closeness, ch. 2, as permutation. Different from the source: the values of a
bucket are sorted, which discloses only the values; a random order could be guessed with its seed. Plain columns remain linked
to the quasi-identifiers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.schema import Schema
from closeknit.forms.grouped import ColumnGroups, Grouped


@dataclass(frozen=True)
class Permuted(Grouped):
    """Writes and reads one table whose sensitive values are not linked to the other cells of their row.

    Args:
        number: name of the column with the number of the bucket.
    """

    name: ClassVar[str] = "permuted"
    number: str = "bucket"

    def column_groups(self, schema: Schema) -> ColumnGroups:
        """All other columns, and the sensitive attributes."""
        if not schema.sensitive:
            raise BadInput("there is no sensitive column to permute", right="name one, or choose the form generalized")
        for name, kind in schema.sensitive.items():
            if kind.name != "numeric":
                right = "permute numbers; for categories choose the form bucketized or perturbed"
                raise BadInput(f"is sensitive and {kind.name}", column=name, right=right)
            if name in schema.quasi:
                raise BadInput("is quasi and sensitive", column=name, right="give it one role, or choose the form sliced")
        return (*schema.quasi, *schema.plain), tuple(schema.sensitive)

    def parts(self, columns: Columns, schema: Schema) -> dict[str, Columns]:
        """It is one table."""
        return {}


def permuted(number: str = "bucket") -> Permuted:
    """The form that exchanges numeric sensitive values inside their bucket.

    Args:
        number: name of the column with the number of the bucket.

    >>> permuted()
    Permuted(number='bucket')
    """
    return Permuted(number)
