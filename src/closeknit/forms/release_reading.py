"""A release as a recipient reads it: its cells, by the form that its certificate names."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.params import build_from_form
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.core.table import Form
from closeknit.forms import REGISTRY


@runtime_checkable
class Published(Protocol):
    """What was published, with its certificate: a `Release`."""

    @property
    def columns(self) -> Columns:
        """The written cells."""

    @property
    def certificate(self) -> Certificate:
        """What is guaranteed of them, and how they were written."""


def reading_of(published: Published | Reading) -> Reading:
    """Read a release as a recipient does, by the form that its certificate names.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> reading = reading_of(ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.Mondrian()))
    >>> len(reading.classes), reading.column_groups
    (10, ())
    """
    if isinstance(published, Reading):
        return published
    return form_behind(published).read(published.columns, Schema.from_forms(published.certificate.columns))


def form_behind(published: Published) -> Form:
    """Return the form that the certificate of a release names.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> form_behind(ck.anonymize(table, schema, [ck.KAnonymity(5)], form=ck.generalized(snap=True))).snap
    True
    """
    if not isinstance(published, Published):
        raise BadInput(f"{type(published).__name__} is no release", right="give a Release, or the Reading of a form")
    form: Form = build_from_form("form", published.certificate.form, REGISTRY)
    return form
