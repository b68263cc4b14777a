"""`safe_harbor`: what in a table the HIPAA Safe Harbor rule asks to remove, and how many rows are unique all the same."""

from __future__ import annotations

from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from closeknit.api.suggestion import suggest
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, keep_printable, refuse_empty
from closeknit.core.grids import Summarized, Summary
from closeknit.core.record import Record
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.core.strict_json import json_text
from closeknit.core.zip_areas import CENSUS_2000, read_small_areas
from closeknit.io.csv import CsvFormat
from closeknit.io.files import read
from closeknit.metrics.safe_harbor import POSTAL, IdentifierFinding, find_identifiers, split_name
from closeknit.release.release_paths import CERTIFICATE, read_certificate, release_file

OPEN = (
    "a person must still judge: identifiers of relatives, employers and household members, and that no one who publishes knows "
    "that the rest could identify a person (45 CFR 164.514(b)(2)(ii))"
)
CURRENT = "three-digit ZIP areas were compared with the census of 2000; the rule asks for current data: give them with zip3"
UNCHECKED = "whether each three-digit ZIP area has more than 20,000 people was not checked: give their populations with zip3"


class HarborReport(Summarized, Record):
    """What the detectors found; `ok` says that they found nothing, which does not settle the rule.

    Args:
        rows: the number of rows.
        findings: what the rule may ask to remove or to coarsen.
        columns: the quasi-identifiers among which rows are compared.
        unique: rows that no other row equals on them: Safe Harbor guarantees no class size.
        notes: what is left open.
    """

    rows: int
    findings: tuple[IdentifierFinding, ...]
    columns: tuple[str, ...]
    unique: int
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_json(self, examples: bool = False) -> str:
        """The report as text for machines.

        Args:
            examples: whether to include values of the table: private.
        """
        record = self.model_dump(mode="json")
        if not examples:
            record["findings"] = [{**finding, "examples": []} for finding in record["findings"]]
        return json_text({"ok": self.ok, **record})

    def summary(self) -> Summary:
        """Each finding; values of the table are not shown."""
        cells = [[one.column, one.category, one.what, one.by, f"{one.share:.0%}"] for one in self.findings]
        title = f"Safe Harbor detectors on {self.rows:,} rows: {len(self.findings)} findings, {self.unique:,} unique rows"
        return Summary(title, [["column", "category", "what", "by", "share"], *cells], self.notes)

    def to_text(self, examples: bool = False) -> str:
        """The report for people.

        Args:
            examples: whether to include values of the table: private.
        """
        lines = []
        for finding in self.findings:
            lines.append(f"found    {finding.line()}")
            lines += [f"         such as: {'; '.join(finding.examples)}"] if examples else []
        shown = ", ".join(self.columns) or "no column"
        share = self.unique / self.rows if self.rows else 0.0
        lines.append(f"unique   {self.unique:,} of {self.rows:,} rows ({share:.1%}) on {shown}")
        lines += [f"note     {note}" for note in self.notes]
        lines.append(
            f"{len(self.findings)} findings" if self.findings else "no findings: the rule is not settled by this, see the notes"
        )
        return "\n".join(map(keep_printable, lines))

    def __str__(self) -> str:
        return self.to_text()


def safe_harbor(
    data: Any, *, reference: date | str | None = None, zip3: str | PathLike[str] | None = None, csv: CsvFormat | None = None
) -> HarborReport:
    """Look for what the HIPAA Safe Harbor rule asks to remove, in a raw table or in a release.

    It never says that a table meets the rule: parts of it need a person. Rows that are unique on the quasi-identifiers are
    counted next to it, because the rule guarantees no class size.

    Args:
        data: a frame, a file, or the public folder of a release.
        reference: the day on which ages are counted, for years of birth, as 2024-12-31.
        zip3: a file with the population of each three-digit ZIP area, or "census2000".
        csv: how a CSV file is written.

    >>> import closeknit as ck
    >>> report = ck.safe_harbor(ck.datasets.hospital(200))
    >>> report.ok, sorted({(finding.column, finding.category) for finding in report.findings})
    (False, [('admission', 'C'), ('age', 'C'), ('name', 'A'), ('zip', 'B')])
    """
    day = _parse_day(reference)
    small = None if zip3 is None else read_small_areas(zip3)
    file = release_file(data)
    columns = read(file, csv)
    refuse_empty(columns.rows)
    names = _quasi_of(file, columns)
    group, count = groups([columns[name].coded for name in names], columns.rows)
    unique = int((np.bincount(group, minlength=count) == 1).sum()) if names else 0
    postal = any(set(split_name(name)) & POSTAL for name in columns)
    areas = [CURRENT] if str(zip3) == CENSUS_2000 else [UNCHECKED] if small is None else []
    notes = (*(areas if postal else ()), OPEN)
    found = tuple(find_identifiers(columns, day, small))
    return HarborReport(rows=columns.rows, findings=found, columns=tuple(names), unique=unique, notes=notes)


def _parse_day(given: date | str | None) -> date | None:
    if given is None or isinstance(given, date):
        return given
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise BadInput(f"reference={given!r} is not a day", right="write it as 2024-12-31") from None


def _quasi_of(file: Any, columns: Columns) -> list[str]:
    """The quasi-identifiers of the certificate next to a release, or else those that are suggested."""
    place = Path(file).parent / CERTIFICATE if isinstance(file, str | PathLike) else None
    if place is not None and place.exists():
        stated = Schema.from_forms(read_certificate(place).columns)
        return [name for name in stated.quasi if name in columns]
    return list(suggest(columns).schema.quasi)
