"""The digest of a coded table: what draws may depend on, so that two tables never share their coins."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from closeknit.core.table import Table


def digest_table(table: Table) -> bytes:
    """SHA-256 over the codes of a table in its row order, the leaves that they stand for, and persons; private.

    Args:
        table: the encoded table.

    >>> from closeknit.core.columns import Columns
    >>> from closeknit.core.kinds import flat
    >>> from closeknit.core.schema import Schema
    >>> schema = Schema(quasi={"sex": flat()})
    >>> one, two = (digest_table(schema.encode(Columns.of({"sex": cells}))) for cells in (["f", "m"], ["f", "n"]))
    >>> len(one), one == two
    (32, False)
    """
    found = sha256(repr([len(table), table.schema.published]).encode())
    for domain in (*table.quasi_domains, *table.sensitive_domains):
        found.update(sha256(repr(tuple(domain.texts)).encode()).digest())
    for codes in (table.quasi, table.sensitive, table.persons):
        if codes is not None:
            found.update(sha256(np.ascontiguousarray(codes).tobytes()).digest())
    return found.digest()
