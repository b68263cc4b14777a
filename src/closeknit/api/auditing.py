"""`audit`: every guarantee of any release, recomputed from its cells alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from closeknit.api.distributed import inspect_on_spark, wants_spark
from closeknit.api.publishing import all_secrets
from closeknit.api.recipe import FormSpec, ModelSpecs, form_of, models_from
from closeknit.api.release_cells import read_cells
from closeknit.api.release_faults import (
    find_byte_faults,
    find_file_faults,
    find_inventory_faults,
    find_json_faults,
    find_note_faults,
    find_order_faults,
    find_part_faults,
    find_text_faults,
)
from closeknit.api.request_checks import check_models
from closeknit.api.signature_checks import check_signatures
from closeknit.core.audit import Audit, CheckedGuarantee, Recomputation, differences, find_finer_secrets
from closeknit.core.certificate import Certificate, Guarantee
from closeknit.core.certifying import COUNTS_PERSONS, list_unprotected
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, refuse_empty, suggest_name
from closeknit.core.formats import FORMAT
from closeknit.core.formulas import formula_notes
from closeknit.core.look_alikes import look_alike_notes
from closeknit.core.model import Model, joints
from closeknit.core.schema import Schema, require_schema
from closeknit.core.table import Form
from closeknit.forms import generalized
from closeknit.io.canonical import canonical_blocks, hash_of_blocks
from closeknit.io.csv import CsvFormat
from closeknit.io.source import Source
from closeknit.io.sources import source_of
from closeknit.release.release_paths import find_certificate, read_certificate, release_file

NOT_ON_SPARK = "the order of rows and the bytes of files were not checked on Spark"
NOT_HERE = "the bytes of the file were not checked, because it is not on this machine"
OF_A_STREAM = "the certificate is that of a stream so far: it has no content hash and no worst classes to compare with"
PUBLISHED = ("quasi", "sensitive", "plain", "importance")  # what a certificate has of its columns


def audit(
    data: Any,
    schema: Schema | None = None,
    models: ModelSpecs | None = None,
    *,
    certificate: Certificate | str | PathLike[str] | None = None,
    form: FormSpec | None = None,
    escape_formulas: bool = False,
    csv: CsvFormat | None = None,
    engine: str | None = None,
    master: str | None = None,
    key: str | PathLike[str] | None = None,
    population: Any = None,
) -> Audit:
    """Recompute every guarantee of any release, from its cells alone.

    Give the certificate of the release, or a schema and models. Without either, the certificate next to the file is
    read. A certificate also claims the form of a release (order, bytes, notes); without one, a form that is not
    canonical is only noted.

    Args:
        data: a frame, a file, a table of a database (`ck.sql`), or the public folder of a release, which must have
            nothing else in it.
        schema: the published columns, where there is no certificate.
        models: the guarantees to check, where there is no certificate.
        certificate: the certificate or its path.
        form: how the cells are written, where there is no certificate and they are not generalized.
        escape_formulas: whether formulas are escaped, where there is no certificate.
        csv: how a CSV file is written, where closeknit did not write it.
        engine: "spark" leaves the rows on Spark; so does a Spark frame.
        master: the address of a Spark cluster.
        key: the public key of the signer; a signature next to the certificate must then be valid.
        population: the people from whom the table is drawn, a path or a frame: guarantees that count them are then
            recomputed. A certificate states only their number, which has to be the same.

    >>> import closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(200), ck.datasets.hospital_schema(), [ck.KAnonymity(4)])
    >>> ck.audit(release.frame, certificate=release.certificate).ok
    True
    """
    data, in_folder, stored = release_file(data), False, False
    if certificate is None and schema is None and models is None:
        certificate = find_certificate(data)
        in_folder = isinstance(certificate, Path)
        stored = isinstance(certificate, Certificate)
    claimed = None if certificate is None else read_certificate(certificate)
    if claimed is not None:
        schema = Schema.from_forms(claimed.columns) if schema is None else schema
        models = models or [guarantee.model for guarantee in claimed.guarantees]
    schema, models = _check_required(schema, models)
    models, uncounted = (models, []) if population is None else _give_population(models, population, claimed)
    shape: Form = form_of(claimed.form if claimed and form is None else form) or generalized()
    check_models(schema, models, shape)
    suppressed, escapes = (claimed.suppressed, claimed.escape_formulas) if claimed else (0, escape_formulas)
    if wants_spark(data, engine, master):
        if escapes:
            raise BadInput("a release with escaped formulas cannot be audited on Spark", right="audit it without an engine")
        columns, seen, content, formulas = inspect_on_spark(data, schema, models, shape, suppressed, csv, master)
        findings = _check_columns(columns, schema, shape)
        inspected = _Inspected(columns, seen, content, formulas, findings, [], [NOT_ON_SPARK], False, {})
    else:
        inspected = _inspect_here(data, schema, models, shape, suppressed, csv, escapes)
    columns, seen, content, formulas, findings, faults, unchecked, persons, parts = inspected
    findings += find_finer_secrets(columns, schema)
    if claimed:
        found = _find_in_files(data, parts, claimed, certificate, in_folder)
        found += find_text_faults(claimed, source_of(data).read_certificate()) if stored else []
        findings += [*_identity(seen.certificate.rows, content, claimed), *differences(seen, claimed, shape.attested), *found]
    signatures, unsigned = check_signatures(certificate, content, key, in_folder)
    unchecked += [OF_A_STREAM] if claimed and claimed.rolling else []  # earlier formats had other orders and notes
    if canonical := claimed is not None and claimed.format == FORMAT and not claimed.rolling:
        faults += find_note_faults(claimed, shape.read_labels(columns, schema), shape, formulas)
    unchecked += uncounted
    unchecked += [] if canonical else [f"the form is not canonical: {fault}" for fault in faults]
    if attested := [part for part in ("loss", "classes") if part in shape.attested]:
        unchecked.append(f"{' and '.join(attested)} cannot be recomputed: numbers replace the ranges of the classes")
    return Audit(
        guarantees=tuple(_check_guarantees(seen, models, schema, persons, claimed)),
        findings=tuple(findings + unsigned + (faults if canonical else [])),
        rows=seen.certificate.rows,
        classes=seen.certificate.classes,
        joint=seen.certificate.joint,
        notes=tuple(_remarks(seen, schema, models) + formulas + unchecked),
        loss=claimed.loss if claimed and attested else seen.certificate.loss,
        signatures=tuple(signatures),
    )


class _Inspected(NamedTuple):
    """What is read off a release before it is compared with its certificate."""

    columns: Columns
    seen: Recomputation
    content: str
    formulas: list[str]
    findings: list[str]
    faults: list[str]  # of the form: they count where a certificate claims it
    unchecked: list[str]
    persons: bool
    parts: Mapping[str, Columns]


def _inspect_here(
    data: Any, schema: Schema, models: list[Model], shape: Form, suppressed: int, csv: CsvFormat | None, escapes: bool
) -> _Inspected:
    written, columns = read_cells(data, schema, shape, escapes, csv)
    refuse_empty(written.rows, what="the release")
    findings, seen, persons = _read_release(columns, schema, models, shape, suppressed)
    blocks, formulas = list(canonical_blocks(written)), formula_notes(columns)
    remote = isinstance(data, str) and "://" in data and data.endswith(".csv")
    findings += [f"{note}, which are not escaped" for note in formula_notes(written)] if escapes else []
    faults = [*find_order_faults(columns, schema, shape), *find_byte_faults(data, blocks)]
    faults += source.find_faults() if isinstance(source := source_of(data), Source) else []
    content, parts = hash_of_blocks(iter(blocks)), shape.parts(columns, schema)
    return _Inspected(columns, seen, content, formulas, findings, faults, [NOT_HERE] if remote else [], persons, parts)


def _check_required(schema: Schema | None, models: ModelSpecs | None) -> tuple[Schema, list[Model]]:
    """What an audit needs to know."""
    if schema is None or not models:
        raise BadInput("there is nothing to audit against", right="give a certificate, or a schema and models")
    schema = require_schema(schema)
    if not schema.quasi:
        right = "name the columns by which a person could be recognised"
        raise BadInput("no column is quasi, so there are no classes to judge", right=right)
    return schema, models_from(models)


def _give_population(models: list[Model], population: Any, claimed: Certificate | None) -> tuple[list[Model], list[str]]:
    """The guarantees with the people whom they count, and why some cannot have them."""
    if not any("population" in model.needs for model in models):
        right = "leave the population out, or use closeknit risk for numbers that no one guaranteed"
        raise BadInput("no guarantee of this release counts people of a population", right=right)
    if claimed and COUNTS_PERSONS in claimed.notes:
        return models, ["the population was not used: persons were counted, and their rows are not known"]
    return [model.with_population(population) for model in models], []


def _find_in_files(
    data: Any, parts: Mapping[str, Columns], claimed: Certificate, certificate: object, in_folder: bool
) -> list[str]:
    """Faults of the files of a release, of its certificate where that is a file, and of a folder that is theirs alone."""
    found = [*find_file_faults(data, claimed), *find_part_faults(data, parts, claimed)]
    found += find_json_faults(Path(certificate)) if isinstance(certificate, str | PathLike) else []
    return [*found, *find_inventory_faults(data, parts, claimed)] if in_folder else found


def _check_guarantees(
    seen: Recomputation, models: Sequence[Model], schema: Schema, persons: bool, claimed: Certificate | None
) -> list[CheckedGuarantee]:
    """Each guarantee as it was recomputed, or why it cannot be and whether the certificate attests it."""
    attested = [guarantee for guarantee in claimed.guarantees if guarantee.status == "attested"] if claimed else []
    in_persons = {guarantee.text for guarantee in attested if not guarantee.why}
    there = zip(seen.certificate.guarantees, models, strict=True)
    checked = [_check_guarantee(guarantee, model, schema, persons, in_persons) for guarantee, model in there]
    if claimed and len(checked) == len(claimed.guarantees):
        then = zip(checked, claimed.guarantees, models, strict=True)
        checked = [found if "release" in model.needs else _mark_uncheckable(found, stated) for found, stated, model in then]
    return [
        found.mark_attested({guarantee.text for guarantee in attested}, claimed.notes if claimed else ()) for found in checked
    ]


def _read_release(
    columns: Columns, schema: Schema, models: Sequence[Model], shape: Form, suppressed: int
) -> tuple[list[str], Recomputation, bool]:
    """What is wrong with the columns of a local release, its recomputation, and whether it has persons."""
    findings = _check_columns(columns, schema, shape)
    heads = columns[schema.person].codes.astype(np.int64) if schema.person and schema.person in columns else None
    persons = None if heads is None else dict.fromkeys(schema.published, heads)
    joint = all_secrets(schema)
    reading = shape.read(columns, schema, persons, joints([*models, joint]))
    joint = joint if joint and reading.joins(joint.column) else None
    return (
        [*findings, *shape.disorder(columns, schema)],
        Recomputation.of(reading, models, joint, suppressed),
        persons is not None,
    )


def _remarks(seen: Recomputation, schema: Schema, models: Sequence[Model]) -> list[str]:
    """What an audit notes of any release."""
    return list_unprotected(schema, models) + _ground_notes(seen, models) + look_alike_notes(seen.references)


def _ground_notes(seen: Recomputation, models: Sequence[Model]) -> list[str]:
    """Where a distance counts values that do not occur: many of them make every distance small."""
    notes = []
    for name in dict.fromkeys(model.column for model in models if model.bounds == "distance" and model.column):
        domain, reference = seen.references[name]
        size, present = domain.size, int((reference[:-1] > 0).sum())
        if domain.declared and present < size:
            notes.append(f"column '{name}': its declared domain has {size:,} values, {present:,} of them occur")
    return notes


def _check_columns(columns: Columns, schema: Schema, form: Form) -> list[str]:
    """Every column that is judged must be there; one that is never published must not."""
    added, listed = form.added, form.list_columns(schema)
    for name in listed:
        if name not in columns and name not in schema.plain:
            raise BadInput("is not in the release", column=name, right=suggest_name(name, columns))
    replaced = {name for name in schema.quasi if name not in listed}
    known = ({*listed, *schema.used, *schema.removed}) - replaced
    for name in columns:
        if name not in known:
            right = f"its ranges are in {name}_lo and {name}_hi" if name in replaced else "name its role in the schema"
            raise BadInput("must not be in this release" if name in replaced else "has no role", column=name, right=right)
    leaked = [name for name in (*schema.identifier, schema.person) if name in columns and name not in added]
    found = [f"column '{name}' identifies people and must not be in a release" for name in leaked]
    dropped = [name for name in schema.drop if name in columns]
    return found + [f"column '{name}' is dropped by the schema and must not be in a release" for name in dropped]


def _identity(rows: int, content: str, claimed: Certificate) -> list[str]:
    """Whether this is the release of the certificate: its rows and its content."""
    findings = [
        f"the certificate has the key '{key}' under columns, which a certificate never has"
        for key in claimed.columns  # markers of missing values would join cells that differ
        if key not in PUBLISHED
    ]
    if rows != claimed.rows:
        findings.append(f"the release has {rows:,} rows, its certificate states {claimed.rows:,}")
    if content != claimed.content_sha256 and not claimed.rolling:
        findings.append("the content differs from what was certified: its content hash is another one")
    for file in claimed.files:
        if file.rows != claimed.rows:
            findings.append(f"the certificate states {claimed.rows:,} rows, and {file.rows:,} of its file {file.name}")
    return findings


def _mark_uncheckable(found: CheckedGuarantee, claimed: Guarantee) -> CheckedGuarantee:
    """A guarantee whose reference is private cannot be recomputed, whatever the release as a whole shows."""
    if claimed.status != "attested" or not claimed.why or claimed.requested != found.requested:
        return found
    return CheckedGuarantee(text=claimed.text, requested=claimed.requested, status="not checkable", why=claimed.why)


def _check_guarantee(guarantee: Guarantee, model: Model, schema: Schema, persons: bool, attested: set[str]) -> CheckedGuarantee:
    in_persons = "persons" in model.needs and ((schema.person is not None and not persons) or guarantee.text in attested)
    # a class has no more persons than rows, and classes over persons are no fewer than over rows
    too_few = model.bounds == "size" and (not model.budget or model.counts_classes) and not guarantee.met
    if in_persons and not too_few:
        why = "it was counted in persons, who are not published"
        return CheckedGuarantee(text=guarantee.text, requested=guarantee.requested, status="not checkable", why=why)
    return CheckedGuarantee.of(guarantee)
