"""What an audit checks in addition to the numbers: order, bytes, inventory, notes, and JSON, one sentence per fault.

Whatever can be written in two ways can carry a hidden bit: the order of rows and columns, an unneeded quote, a `.0`, a
foreign file. A release is therefore written in one way only, and an audit demands it of a release whose certificate
claims it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from closeknit.api.publishing import derive_notes
from closeknit.api.recipe import models_from
from closeknit.core.certificate import Certificate, Document
from closeknit.core.certifying import note_formulas, persons_note
from closeknit.core.columns import Columns
from closeknit.core.domain import NUMBER_TEXT, RANGE_TEXT
from closeknit.core.errors import BadInput
from closeknit.core.exact import plain_number
from closeknit.core.formats import upgrade_format
from closeknit.core.formulas import ESCAPED, escape_columns
from closeknit.core.kinds import Numeric, texts_of
from closeknit.core.reading import find_stars
from closeknit.core.schema import Schema
from closeknit.core.strict_json import json_text, parse_json, read_limited
from closeknit.core.table import Form
from closeknit.forms.cell_labels import tight_note
from closeknit.io.canonical import canonical_blocks, content_hash
from closeknit.io.files import read_written, sha256_of
from closeknit.release.release_paths import ALLOWED_FILES, CERTIFICATE, FORMATS, RELEASE, REPORT, read_certificate
from closeknit.report.report_records import PublicReport

REPEATED = ("form", "rows", "suppressed", "classes", "loss", "joint", "estimates", "notes", "content_sha256")


def find_order_faults(columns: Columns, schema: Schema, form: Form) -> Iterator[str]:
    """Columns and rows that are not in canonical order, and numbers that are not in their one spelling."""
    names = [name for name in form.list_columns(schema) if name in columns]
    if names != (found := [name for name in columns if name in names]):
        yield f"the columns are in the order {', '.join(found)}; the schema's order is {', '.join(names)}"
    yield from form.list_unsorted(columns, schema)
    for name, kind in schema.sensitive.items():
        if isinstance(kind, Numeric) and columns[name].values.dtype.kind == "O":
            odd = (text for text in texts_of(columns[name].values) if NUMBER_TEXT.fullmatch(text) and not _is_plain(text))
            yield from (f"column '{name}': '{text}' is not the shortest spelling of its number" for text in list(odd)[:1])


def _is_plain(text: str) -> bool:
    value = float(text)
    return text == plain_number(value) or (value.is_integer() and text == str(int(value)))


def find_byte_faults(file: Any, blocks: Iterable[bytes]) -> Iterator[str]:
    """Where a CSV file is not the canonical text of its cells, `blocks`; other files and frames are not compared."""
    if not isinstance(file, str | PathLike) or Path(file).suffix.lower() != ".csv" or not Path(file).is_file():
        return
    line = 1
    with open(file, "rb") as written:
        for block in chain(blocks, [b""]):
            found = written.read(len(block) or 1)
            if found != block:
                same = next(
                    (i for i, (a, b) in enumerate(zip(found, block, strict=False)) if a != b), min(len(found), len(block))
                )
                line += block.count(b"\n", 0, same)
                right = "quote only where it is needed, end lines with a line feed, write UTF-8 without byte order mark"
                yield f"{Path(file).name} is not canonical CSV at line {line:,}: {right}"
                return
            line += block.count(b"\n")


def find_file_faults(data: Any, claimed: Certificate) -> Iterator[str]:
    """Files that are not byte for byte those that were certified: the release itself and, next to it, its parts."""
    for file in claimed.files if isinstance(data, str | PathLike) else ():
        place = Path(data).with_name(Path(file.name).name)
        if place.is_file() and file.sha256 != sha256_of(place):
            yield f"the bytes of {file.name} differ from what was certified: its SHA-256 is another one"


def find_part_faults(data: Any, parts: Mapping[str, Columns], claimed: Certificate) -> Iterator[str]:
    """Parts of the release next to it that do not repeat its content."""
    for name, columns in parts.items() if isinstance(data, str | PathLike) else ():
        file = Path(data).with_name(name + Path(data).suffix)
        if not file.exists():
            continue
        columns = escape_columns(columns) if claimed.escape_formulas else columns
        if content_hash(read_written(file)) != content_hash(columns):
            yield f"{file.name} differs from {Path(data).name}"
        else:
            yield from find_byte_faults(file, canonical_blocks(columns))
        if file.name not in {listed.name for listed in claimed.files}:
            yield f"{file.name} is next to the release, and its certificate does not name it"


def find_inventory_faults(data: str | PathLike[str], parts: Iterable[str], claimed: Certificate) -> Iterator[str]:
    """Whatever is in the public folder and is not the release, or is named in the certificate and is not there."""
    file = Path(data)
    listed = {Path(listed.name).name for listed in claimed.files}
    expected = {file.name, *(f"{name}.{suffix}" for name in (RELEASE, *parts) for suffix in FORMATS)}
    for entry in sorted(file.parent.iterdir()):
        known = entry.name in (listed & expected) or entry.name == file.name
        if not known and not (entry.is_file() and ALLOWED_FILES.fullmatch(entry.name)):
            right = "a public folder has the files of its certificate, the report, README and signatures (.sig); remove it"
            yield f"{entry.name} is not part of the release: {right}"
    yield from (
        f"{name} is named in the certificate and is not in the folder"
        for name in sorted(listed)
        if not (file.parent / name).exists()
    )
    for entry in sorted(file.iterdir()) if file.is_dir() else ():
        if entry.name.startswith((".", "_")):
            yield f"{file.name}/{entry.name} is not read as a part of the release: remove it"


def find_note_faults(claimed: Certificate, columns: Columns, form: Form, formulas: Sequence[str]) -> Iterator[str]:
    """Notes that follow from the written cells, the published schema and the form, and that the certificate does not have.

    `columns`: each written value of a column at least once; `formulas`: what is noted of cells that a spreadsheet runs.
    """
    schema, models = Schema.from_forms(claimed.columns), models_from([guarantee.model for guarantee in claimed.guarantees])
    hidden = [find_stars(columns[name]) for name in schema.sensitive] if form.suppressed == "hidden" else []
    first, *others = derive_notes(schema, models, form, int(np.logical_and.reduce(hidden).sum()) if hidden else 0)
    single = {tight_note(name) for name in schema.quasi if not any(map(RANGE_TEXT.fullmatch, texts_of(columns[name].values)))}
    escaped = (*formulas, ESCAPED) if claimed.escape_formulas else note_formulas(formulas)
    if not any(note.startswith(first) for note in claimed.notes):
        yield f"the certificate does not note: {first}"
    if not any(note.startswith(_PERSONS) for note in claimed.notes):
        yield f"the certificate does not note what k counts: {' or '.join(_PERSONS)}"
    for note in (*others, *escaped):
        if note not in claimed.notes and note not in single:
            yield f"the certificate does not note: {note}"


_PERSONS = (persons_note(Schema(person="person")), persons_note(Schema()))


def find_json_faults(file: Path) -> Iterator[str]:
    """A certificate, or the report next to it, that is not written as closeknit writes it; a report that differs from it."""
    claimed = read_certificate(file)
    if not _is_canonical(claimed, read_limited(file)):
        yield f"{file.name} is not written as closeknit writes it: key order, spacing or numbers differ"
    place = file.with_name(REPORT)
    if file.name != CERTIFICATE or not place.is_file():
        return
    try:
        text = read_limited(place)
        report = PublicReport.from_json(text, REPORT)
    except (BadInput, UnicodeDecodeError) as bad:
        yield f"{REPORT} cannot be read: {bad}"
        return
    if not _is_canonical(report, text):
        yield f"{REPORT} is not written as closeknit writes it: key order, spacing or numbers differ"
    differing = [key for key in REPEATED if getattr(report, key) != getattr(claimed, key)]
    differing += [] if [explained.guarantee for explained in report.guarantees] == list(claimed.guarantees) else ["guarantees"]
    yield from (f"{REPORT}, {key}: differs from {file.name}" for key in differing)


def find_text_faults(claimed: Certificate, text: str) -> Iterator[str]:
    """A certificate in a table that is not written as closeknit writes it."""
    if not _is_canonical(claimed, text):
        yield "the stored certificate is not written as closeknit writes it: key order, spacing or numbers differ"


def _is_canonical(record: Document, text: str) -> bool:
    """Fields that a later version adds may be absent; the others are written in one way, by the keys of their format."""
    content = parse_json(text)
    current = json_text(record.model_dump(mode="json", exclude_unset=True))
    return text == json_text(content) and json_text(upgrade_format(content)) == current
