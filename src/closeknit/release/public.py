"""The public report, computed from the written cells and the certificate alone.

Everything is counted from the canonical texts of the cells, the values of each column in the order in which they first appear.
So it makes no difference whether cells are in memory, in a CSV or in a Parquet file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit import __version__
from closeknit.attacks.on_release import try_release
from closeknit.attacks.requirements import list_untried
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Column, Columns
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of
from closeknit.io.canonical import cell_texts
from closeknit.metrics.measures import measures
from closeknit.release.guarantee_meanings import meaning
from closeknit.release.spreads import secret_spreads
from closeknit.report.report_records import ExplainedGuarantee, PublicReport, ShownColumn
from closeknit.risks.risk import count_release, measure_risk


@dataclass(frozen=True, eq=False)
class TextRelease:
    """Written cells as text, with their certificate."""

    columns: Columns
    certificate: Certificate


def as_text(columns: Columns) -> Columns:
    """The same cells, distinct ones as text in the order of their first row; an empty cell is a missing one.

    Args:
        columns: the cells.

    >>> column = as_text(Columns.of({"cost": [3.0, None, 0.5]}))["cost"]
    >>> column.values.tolist(), column.codes.tolist()
    (['3', '0.5'], [0, -1, 1])
    """
    return Columns({name: _text_column(column) for name, column in columns.items()}, columns.rows)


def _text_column(column: Column) -> Column:
    texts = [*cell_texts(column), ""]
    used, first = np.unique(column.codes, return_index=True)
    order = used[np.argsort(first)].tolist()
    place: dict[str, int] = {"": -1}
    code_of = np.full(len(texts), -1, dtype=np.int32)
    for code in order:  # two values may have one text
        code_of[code] = place.setdefault(texts[code], len(place) - 1)
    values = np.array([text for text in place if text != ""], dtype=object)
    codes: NDArray[np.int32] = code_of[column.codes]
    return Column(values, codes)


def to_text_release(published: Published) -> TextRelease:
    """A release as it would be read from a file.

    Args:
        published: the release.
    """
    return TextRelease(as_text(published.columns), published.certificate)


def public_report(texts: TextRelease) -> PublicReport:
    """The content of the public page.

    Args:
        texts: the release.

    >>> import closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> public_report(to_text_release(release)).guarantees[0].guarantee.requested
    '>= 5'
    """
    certificate, reading = texts.certificate, reading_of(texts)
    counts, notes = count_release(reading, certificate)
    schema = Schema.from_forms(certificate.columns)
    findings, skipped = try_release(reading)
    word = "class" if {"generalized", "perturbed"} & set(certificate.form) else "bucket"
    return PublicReport(
        closeknit=__version__,
        form=certificate.form,
        rows=certificate.rows,
        suppressed=certificate.suppressed,
        columns=_columns(schema),
        guarantees=tuple(
            ExplainedGuarantee(guarantee=guarantee, means=meaning(guarantee, word)) for guarantee in certificate.guarantees
        ),
        classes=certificate.classes,
        loss=certificate.loss,
        secrets=secret_spreads(reading, certificate, word),
        findings=tuple(findings),
        untried=(*skipped, *list_untried(reading)),
        measures=measures(texts),
        joint=certificate.joint,
        estimates=certificate.estimates,
        risk=measure_risk(counts, notes=notes).record,
        notes=certificate.notes,
        content_sha256=certificate.content_sha256,
    )


def _columns(schema: Schema) -> tuple[ShownColumn, ...]:
    shown = []
    for name in schema.published:
        roles = [role for role in ("quasi", "sensitive", "plain") if name in getattr(schema, role)]
        kind = schema.quasi.get(name) or schema.sensitive.get(name)
        shown.append(ShownColumn(name=name, role=" and ".join(roles), kind=kind.name if kind else None))
    return tuple(shown)
