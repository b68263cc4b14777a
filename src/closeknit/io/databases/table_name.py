"""`TableName`: a table and its schema, as a user writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from closeknit.core.errors import BadInput

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
CERTIFICATE = "_certificate"  # appended to the name of a release


@dataclass(frozen=True)
class TableName:
    """The exact names, as they are stored: nothing is folded to lower case.

    >>> TableName.of("clinic.patients"), str(TableName.of('"my.schema"."a b"'))
    (TableName(table='patients', schema='clinic'), '"my.schema"."a b"')
    """

    table: str
    schema: str | None = None

    @classmethod
    def of(cls, text: str) -> TableName:
        """Parse `table`, `schema.table`, or with quotes `"my schema"."my table"`.

        Args:
            text: what the user writes.
        """
        parts: list[str] = []
        at = 0
        while found := _PART.match(text, at):
            parts.append(found[1].replace('""', '"') if found[1] else found[2].strip())
            at = found.end()
            if text[at : at + 1] != ".":
                break
            at += 1
        if at != len(text) or text[-1:] == "." or not 1 <= len(parts) <= 2 or not all(parts) or "\0" in text:
            right = 'write table or schema.table, and names with a dot or a quote as "a.b"'
            raise BadInput(f"{text!r} is not the name of a table", right=right)
        return cls(*reversed(parts))

    def with_suffix(self, suffix: str) -> TableName:
        """The table that belongs to this one.

        Args:
            suffix: what is appended to the name.
        """
        return replace(self, table=self.table + suffix)

    def __str__(self) -> str:
        parts = [self.table] if self.schema is None else [self.schema, self.table]
        return ".".join(part if re.fullmatch(r'[^".\s]+', part) else '"' + part.replace('"', '""') + '"' for part in parts)
