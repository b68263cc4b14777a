"""The form `permuted`: one table with exact quasi-identifiers, in which numeric secrets are exchanged inside their bucket.

Source: the dissertation on methods to achieve t-closeness, ch. 2, as permutation. Different from the source: the secrets of a
bucket stand in sorted order, which tells only what they are; a drawn order could be guessed with its seed. Plain columns stay
beside the quasi-identifiers.
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
    """Writes and reads one table whose secrets are not beside their owners."""

    name: ClassVar[str] = "permuted"
    number: str = "bucket"

    def column_groups(self, schema: Schema) -> ColumnGroups:
        """Everything but the secrets, and the secrets."""
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
    """The form in which numeric secrets change places inside their bucket.

    >>> permuted()
    Permuted(number='bucket')
    """
    return Permuted(number)
