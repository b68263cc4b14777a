"""The verbs: `anonymize` a table, `audit` a release made by anyone, `suggest` what the columns are, `run` a recipe."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from closeknit import __version__
from closeknit.core.audit import Audit, Checked, differences, finer_secrets
from closeknit.core.certificate import Certificate, Promise, certify, class_sizes, judge, loss_record
from closeknit.core.columns import Columns
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.loss import measure, written_texts
from closeknit.core.method import Method, Progress, silent
from closeknit.core.model import Model
from closeknit.core.params import number, spec, whole
from closeknit.core.published import Reading
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Outcome, Partition, Table
from closeknit.core.tree import Int32
from closeknit.doors.canonical import content_hash
from closeknit.doors.csv import CsvFormat
from closeknit.doors.files import kind_of, read, sha256_of
from closeknit.doors.parquet import parquet_types
from closeknit.fills.persons import together
from closeknit.fills.repair import repaired
from closeknit.forms import REGISTRY as FORMS
from closeknit.forms import generalized
from closeknit.methods import StackAndDeal
from closeknit.recipe import Recipe, made, models_from, recipe_forms
from closeknit.release import Release
from closeknit.suggestion import Suggestion
from closeknit.suggestion import suggest as guess

SHORT_SEED = 2**64
PUBLISHED = ("quasi", "sensitive", "plain", "importance")  # what a certificate says of its columns


def anonymize(data: Any, schema: Schema, models: Sequence[Model], method: Method | None = None, *, suppress: float = 0.0,
              form: Form | None = None, seed: int | None = None, csv: CsvFormat | None = None,
              progress: Progress | None = None) -> Release:  # fmt: skip
    """A certified release of a frame or file, or `Unsatisfiable`; nothing is written.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital(200)
    >>> schema = ck.datasets.hospital_schema()
    >>> ck.anonymize(table, schema, [ck.KAnonymity(4), ck.TCloseness("disease", 0.3)]).certificate.ok
    True
    """
    method, form, tell = method or StackAndDeal(), form or generalized(), progress or silent
    number("suppress", suppress, least=0, most=1)
    seed = _seed(seed)
    tell("reading", 0.0)
    columns = read(data, csv, schema.needed)
    tell("encoding", 0.1)
    table = schema.encode(columns)
    _check_request(table, models, method, form)
    partition, form = _partition(table, models, method, form, seed, tell)
    tell("writing", 0.8)
    columns, certificate = _published(table, partition, models, form)
    tell("done", 1.0)
    described = _data_form(data, csv)
    parquet = described is not None and kind_of(data) == ".parquet"
    return Release(
        columns,
        certificate,
        partition=_by_input_row(table, partition),
        recipe=recipe_forms(schema, list(models), method, form, suppress, seed, described),
        like=None if described or isinstance(data, Columns) else data,
        format="parquet" if parquet else "csv",
        types=parquet_types(data) if parquet else None,
    )


def run(recipe: Recipe, progress: Progress | None = None) -> Release:
    """The release that a recipe describes."""
    if recipe.data_path is None:
        raise BadInput("the recipe names no data", right="add the key data with the path of the table")
    return anonymize(
        recipe.data_path, recipe.schema, recipe.models, recipe.method, suppress=recipe.suppress, form=recipe.form,
        seed=recipe.seed, csv=recipe.csv, progress=progress,
    )  # fmt: skip


def suggest(data: Any, csv: CsvFormat | None = None) -> Suggestion:
    """A guess at kinds, roles and hierarchies of a table's columns, each with its reason.

    >>> import closeknit as ck
    >>> ck.suggest(ck.datasets.hospital(500)).reasons["age"].kind
    'numeric'
    """
    return guess(read(data, csv))


def _seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(128)
    if whole("seed", seed, least=0) < SHORT_SEED:
        warnings.warn("the seed is short and can be guessed; leave it out to have one drawn", stacklevel=3)
    return seed


def _data_form(data: Any, csv: CsvFormat | None) -> dict[str, Any] | None:
    """Where the table came from, as a recipe says it; None for a frame."""
    if not isinstance(data, str | PathLike):
        return None
    return {"path": str(Path(data).resolve()), **(spec(csv) if csv else {})}


def _check_request(table: Table, models: Sequence[Model], method: Method, form: Form) -> None:
    """Refuse what cannot be meant or kept before any work is done."""
    schema = table.schema
    if not models:
        raise BadInput("no promise was asked for", right="give at least one model, such as KAnonymity(6)")
    if not schema.quasi:
        raise BadInput("the schema has no quasi column", right="name the columns by which a person could be recognised")
    for name in schema.quasi:
        if name in schema.sensitive and not method.serves_both:
            right = f"give it one role; {method.name} cannot serve a column that is both"
            raise BadInput("is listed as quasi and as sensitive", column=name, right=right)
    _check_models(schema, models, form)
    _check_plain(table)
    _check_whole_table(table, models)


def _check_models(schema: Schema, models: Sequence[Model], form: Form) -> None:
    for model in models:
        if model.column is not None and model.column not in schema.sensitive:
            right = "sensitive columns are: " + (", ".join(schema.sensitive) or "none")
            raise BadInput(f"{model.name} is asked for a column that is not sensitive", column=model.column, right=right)
        if form.name not in model.forms:
            right = "choose " + " or ".join(sorted(model.forms))
            raise BadInput(f"{model.name} has no meaning in the form '{form.name}'", right=right)


def _check_plain(table: Table) -> None:
    for name, column in table.plain.items():
        alone = int((column.counts == 1).sum()) + int((column.codes < 0).sum() == 1)  # a missing cell is a value too
        if alone and name not in table.schema.allow_unique:
            right = "make it quasi, sensitive or identifier, or name it in allow_unique"
            raise BadInput(
                f"is plain, and {alone:,} of its values occur in one row only: it may identify that row",
                column=name,
                right=right,
            )


def _check_whole_table(table: Table, models: Sequence[Model]) -> None:
    """A monotone promise that the table as one class does not keep cannot be kept by any partition."""
    classes = table.one_class()
    for name, histogram in classes.histograms.items():
        if (histogram.reference > 0).sum() == 1:
            warnings.warn(f"column '{name}': every row has the same secret, so every release tells it", stacklevel=4)
    for model in models:
        model.refuse(classes)
        if model.monotone and not model.holds(classes).all():
            domain = classes.histograms[model.column].domain if model.column else None
            reached = f"the whole table as one class reaches {model.levels(classes)[0]:.6g}"
            hint = f"asked was {model.asked}, and smaller classes reach less; ask for less"
            raise Unsatisfiable(model.describe(domain), reached, hint)


def _partition(table: Table, models: Sequence[Model], method: Method, form: Form, seed: int,
               tell: Progress) -> tuple[Partition, Form]:  # fmt: skip
    """The method's partition, with the rows of one person together, repaired where a promise does not hold yet."""

    def work(part: Table) -> Outcome:
        return method.run(part, models, seed, tell)

    keep = table.persons is not None and table.schema.person_rows == "together"
    outcome = together(table, work) if keep else work(table)
    return repaired(table, outcome.partition, models), outcome.form or form


def _published(table: Table, partition: Partition, models: Sequence[Model], form: Form) -> tuple[Columns, Certificate]:
    """Write, read back as a stranger would, and certify what was read."""
    written = form.write(table, partition)
    schema = published_schema(table.take(written.rows), written.columns)
    persons = None if table.persons is None else table.persons[written.rows]
    reading = form.read(written.columns, schema, persons)
    withheld = len(table) - written.columns.rows
    certificate = certify(
        reading, models, version=__version__, form={form.name: spec(form)}, withheld=withheld,
        private_persons=persons is not None, notes=_notes(table, models, form),
    )  # fmt: skip
    return written.columns, certificate


def published_schema(table: Table, columns: Columns) -> Schema:
    """What a certificate may say of the columns: declared kinds, and of domains read off the data only what is written.

    `table` holds the published rows alone.
    """
    schema = table.schema
    quasi = {
        name: kind.published(_of_these(domain, table.quasi[:, j]), written_texts(columns[name]))
        for j, ((name, kind), domain) in enumerate(zip(schema.quasi.items(), table.quasi_domains, strict=True))
    }
    secret = {}
    for name, kind in schema.sensitive.items():
        _, written, _ = schema.coded(columns[name], name, kind)  # of the written values: withheld ones leave no trace
        secret[name] = kind.published(written, None)
    return Schema(quasi=quasi, sensitive=secret, plain=schema.plain, importance=schema.importance)


def _of_these(domain: Domain, codes: Int32) -> Domain:
    """A tree that was read off the data, with the leaves that these rows have: withheld ones are not counted."""
    if domain.tree is None or domain.declared:
        return domain
    occurs = np.bincount(codes, minlength=domain.size + 1)[: domain.size] > 0
    before = np.concatenate([[0], np.cumsum(occurs)])
    tree = domain.tree
    leaves = (before[np.minimum(tree.hi + 1, tree.size)] - before[np.minimum(tree.lo, tree.size)]).astype(np.int32)
    return replace(domain, texts=tuple(np.array(domain.texts)[occurs].tolist()), tree=replace(tree, leaves=leaves))


def _notes(table: Table, models: Sequence[Model], form: Form) -> list[str]:
    """What a reader of the certificate has to know beside the numbers."""
    schema = table.schema
    notes = ["promises cover the published rows only, and refer to how secrets are spread over them"]
    notes.append(
        "every row was counted as a person of its own"
        if schema.person is None
        else "k and diversity count persons; who they are is not published"
    )
    if not getattr(form, "snap", False):
        notes += [
            f"column '{name}': both ends of a range are true values of somebody in the class"
            for name, domain in zip(schema.quasi, table.quasi_domains, strict=True)
            if domain.tree is None and domain.ends is None  # ends of bins are declared
        ]
    return notes + _unprotected(schema, models)


def _unprotected(schema: Schema, models: Sequence[Model]) -> list[str]:
    """Columns that are published and that no promise covers."""
    promised = {model.column for model in models}
    notes = [f"column '{name}' is sensitive, but no promise speaks of it" for name in schema.sensitive if name not in promised]
    return notes + [f"column '{name}' is published as it is, without any protection" for name in schema.plain]


def _ground_notes(reading: Reading, models: Sequence[Model]) -> list[str]:
    """Where a distance counts values that nobody has: many of them make every distance small."""
    notes = []
    for name in dict.fromkeys(model.column for model in models if model.family == "closeness" and model.column):
        histogram = reading.classes.histograms[name]
        size, present = histogram.domain.size, int((histogram.reference[:-1] > 0).sum())
        if histogram.domain.declared and present < size:
            notes.append(f"column '{name}': its declared domain has {size:,} values, {present:,} of them occur")
    return notes


def _by_input_row(table: Table, partition: Partition) -> Any:
    class_of = np.empty(len(table), dtype=np.int32)
    class_of[table.rows] = partition.class_of
    return class_of


def audit(data: Any, schema: Schema | None = None, models: Sequence[Model] | None = None, *,
          certificate: Certificate | str | PathLike[str] | None = None, csv: CsvFormat | None = None) -> Audit:  # fmt: skip
    """Recompute every promise of a release made by anyone, from its cells alone.

    Either say what the columns are and what is to be checked (`schema`, `models`), or give the certificate that came with it.

    >>> import closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(200), ck.datasets.hospital_schema(), [ck.KAnonymity(4)])
    >>> ck.audit(release.frame, certificate=release.certificate).ok
    True
    """
    claimed = _certificate(certificate)
    if claimed is not None:
        schema = schema or Schema.from_forms(claimed.columns)
        models = models or models_from([promise.model for promise in claimed.promises])
    if schema is None or not models:
        raise BadInput("there is nothing to audit against", right="give a certificate, or a schema and models")
    if not schema.quasi:
        right = "name the columns by which a person could be recognised"
        raise BadInput("no column is quasi, so there are no classes to judge", right=right)
    form = made("form", claimed.form, FORMS) if claimed else generalized()
    _check_models(schema, models, form)
    columns = read(data, csv)
    findings = _check_columns(columns, schema)
    findings += _identity(data, columns, claimed) if claimed else []
    persons = columns[schema.person].codes.astype(np.int64) if schema.person and schema.person in columns else None
    reading = form.read(columns, schema, persons)
    findings += finer_secrets(columns, schema)
    attested = {promise.text for promise in claimed.promises if promise.status == "attested"} if claimed else set()
    promises = judge(reading, models)
    checked = [_checked(p, model, schema, persons is not None, attested) for p, model in zip(promises, models, strict=True)]
    withheld = claimed.withheld if claimed else 0
    loss = loss_record(measure(columns, schema, withheld))
    sizes = class_sizes(reading, max((model.least_size for model in models), default=0))
    findings += differences(reading, promises, sizes, loss, claimed) if claimed else []
    return Audit(
        promises=tuple(checked),
        findings=tuple(findings),
        rows=columns.rows,
        classes=sizes,
        notes=tuple(_unprotected(schema, models) + _ground_notes(reading, models)),
        loss=None if np.isnan(loss.a) else loss,
    )


def _certificate(given: Certificate | str | PathLike[str] | None) -> Certificate | None:
    if given is None or isinstance(given, Certificate):
        return given
    file = Path(given)
    try:
        return Certificate.from_json(file.read_text(encoding="utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot be read ({error})", file=file, right="name a certificate.json") from None


def _check_columns(columns: Columns, schema: Schema) -> list[str]:
    """Every column that is judged must be there; an identifier must not."""
    for name in (*schema.quasi, *schema.sensitive):
        if name not in columns:
            raise BadInput("is not in the release", column=name, right="its columns are " + ", ".join(columns))
    known = {*schema.used, *schema.identifier}
    for name in columns:
        if name not in known:
            raise BadInput("has no role", column=name, right="name its role in the schema")
    leaked = [*schema.identifier, *([schema.person] if schema.person else [])]
    return [f"column '{name}' identifies people and must not be in a release" for name in leaked if name in columns]


def _identity(data: Any, columns: Columns, claimed: Certificate) -> list[str]:
    """Whether this is the release that the certificate speaks of: its rows, its content, the bytes of its file."""
    findings = [
        f"the certificate has the key '{key}' under columns, which a certificate never has"
        for key in claimed.columns  # markers of missing values would join cells that differ
        if key not in PUBLISHED
    ]
    if columns.rows != claimed.rows:
        findings.append(f"the release has {columns.rows:,} rows, its certificate says {claimed.rows:,}")
    if content_hash(columns) != claimed.content_sha256:
        findings.append("the content differs from what was certified: its content hash is another one")
    if isinstance(data, str | PathLike):
        for file in claimed.files:
            if file.name == Path(data).name and file.sha256 != sha256_of(data):
                findings.append(f"the bytes of {file.name} differ from what was certified: its SHA-256 is another one")
            if file.rows != claimed.rows:
                findings.append(f"the certificate says {claimed.rows:,} rows, and {file.rows:,} of its file {file.name}")
    return findings


def _checked(promise: Promise, model: Model, schema: Schema, persons: bool, attested: set[str]) -> Checked:
    in_persons = "persons" in model.needs and ((schema.person is not None and not persons) or promise.text in attested)
    if in_persons:
        why = "it was counted in persons, who are not published"
        return Checked(text=promise.text, asked=promise.asked, status="not checkable", why=why)
    return Checked.of(promise)
