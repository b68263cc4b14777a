"""Which people the rows of a release may belong to: one `Covering` for each group of columns that belong together.

Where only groups of columns belong together, cells of another group reveal nothing about a row.
"""

from __future__ import annotations

from typing import Any

from closeknit.attacks.beliefs import NotApplicable
from closeknit.core.columns import Columns
from closeknit.core.covering import Covering, list_known_quasi, raw_kind, raw_schema
from closeknit.core.errors import BadInput
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.core.written_kinds import Nodes
from closeknit.forms.release_reading import Published, reading_of
from closeknit.io.files import read


def coverings(reading: Reading, people: Columns, schema: Schema | None = None) -> list[Covering]:
    """Return one covering for each group of columns that belong together and include known quasi-identifiers.

    >>> import closeknit as ck
    >>> from closeknit.forms.release_reading import reading_of
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> (found,) = coverings(reading_of(ck.anonymize(table, schema, [ck.KAnonymity(5)])), table, schema)
    >>> found.names, bool((found.people_in_boxes >= 5).all())
    (('age', 'sex', 'zip', 'job', 'admission'), True)
    """
    raw = raw_schema(reading, schema)
    known = list_known_quasi(raw, reading.columns, people)
    together = reading.column_groups or (tuple(known),)
    groups_of = [[name for name in group if name in known] for group in together]
    return [Covering.of(reading.columns, people, raw, names) for names in groups_of if names]


def covering_of(published: Published, people: Any, schema: Schema | None = None) -> Covering:
    """Return the covering of a release whose cells belong together; one with exact quasi-identifiers is refused.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> int(covering_of(ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.StackAndDeal()), table, schema).people.sum())
    60
    """
    reading = reading_of(published)
    if reading.column_groups:
        right = "use matching_buckets, or record_linkage of a sensitive attribute"
        raise NotApplicable("quasi-identifiers are published exactly, so rows cover only themselves", right=right)
    (covering,) = coverings(reading, people_of(people, reading, schema), schema)
    return covering


def people_of(people: Any, reading: Reading, schema: Schema | None = None, other: Reading | None = None) -> Columns:
    """Read the columns of people that a schema, a release or another release uses, from a frame, file or `Columns`."""
    raw = raw_schema(reading, schema)
    wanted = list(dict.fromkeys([*raw.used, *reading.schema.used, *(() if other is None else other.schema.used)]))
    columns = read(people, None, lambda names: [name for name in wanted if name in names])
    if columns.rows == 0:
        raise BadInput("there are no people in this table", right="give at least one row")
    return columns


def schema_of_other(reading: Reading, schema: Schema | None) -> Schema:
    """Return the schema of the raw columns for another release: as its certificate declares it, else as in `schema`."""
    if schema is None:
        return raw_schema(reading, None)
    quasi = {
        name: (schema.quasi.get(name) or raw_kind(name, kind)) if isinstance(kind, Nodes) else kind
        for name, kind in reading.schema.quasi.items()
    }
    missing = tuple(dict.fromkeys([*reading.schema.missing, *schema.missing]))
    return schema.model_copy(update={"quasi": quasi, "missing": missing})
