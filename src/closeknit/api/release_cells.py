"""The cells of a release as `audit`, `attack` and `report` read them, in their canonical order wherever they are stored."""

from __future__ import annotations

from typing import Any

from closeknit.api.recipe import form_of
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.formulas import unescape_columns
from closeknit.core.row_sorting import row_order
from closeknit.core.schema import Schema
from closeknit.core.table import Form
from closeknit.forms import generalized
from closeknit.forms.cell_labels import cell_order
from closeknit.io.csv import CsvFormat
from closeknit.io.files import read_written
from closeknit.io.source import Source
from closeknit.io.sources import source_of


def read_cells(
    data: Any, schema: Schema, form: Form, escapes: bool = False, csv: CsvFormat | None = None
) -> tuple[Columns, Columns]:
    """Return the written cells, and the cells without escaped formulas; rows without an order of their own are sorted.

    Args:
        data: The file of a release, its address, a `Source`, or a frame.
        schema: The published columns.
        form: How the cells are written.
        escapes: Whether formulas are escaped.
        csv: How a CSV file is written.
    >>> import closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> read_cells(release.frame, ck.datasets.hospital_schema(), ck.generalized())[0].rows
    60
    """
    written, source = read_written(data, csv), source_of(data)
    columns = unescape_columns(written) if escapes else written
    if not isinstance(source, Source) or source.ordered:
        return written, columns
    keys = [name for name in form.sort_keys(columns, schema) if name in columns]
    order = row_order([cell_order(columns[name]) for name in keys], columns.rows)
    return written.take(order), columns.take(order)


def read_certified(data: Any, certificate: Certificate, csv: CsvFormat | None = None) -> tuple[Columns, Columns]:
    """Return the same by the form and schema of a certificate.

    Args:
        data: The file of a release, its address, a `Source`, or a frame.
        certificate: Its certificate.
        csv: How a CSV file is written.
    """
    schema, form = Schema.from_forms(certificate.columns), form_of(certificate.form) or generalized()
    return read_cells(data, schema, form, certificate.escape_formulas, csv)
