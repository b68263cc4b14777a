"""`attack`: the disclosure risk of a release, for recipients and for adversaries who know more, worst first."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit import __version__
from closeknit.api.anonymizing import anonymize
from closeknit.api.recipe import Recipe, form_of, method_of, models_from, usual_method
from closeknit.api.release_cells import read_certified
from closeknit.api.repeating import build_repeat
from closeknit.attacks.exchange import Repeat
from closeknit.attacks.finding import Finding, findings_summary, worst_first
from closeknit.attacks.minimality import Rerun
from closeknit.attacks.on_release import try_release
from closeknit.attacks.private_attacks import with_original, with_other, with_population
from closeknit.attacks.requirements import BY_CLASS, BY_RECIPE, NEEDS, ORIGINAL, list_applicable
from closeknit.core.certificate import Certificate, Document
from closeknit.core.columns import Columns
from closeknit.core.covering import raw_schema
from closeknit.core.errors import BadInput, CloseknitError
from closeknit.core.grids import Summary
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema, require_schema
from closeknit.forms.release_reading import Published, reading_of
from closeknit.io.canonical import content_hash
from closeknit.io.csv import CsvFormat
from closeknit.io.files import read
from closeknit.io.source import NAME_IT
from closeknit.io.sources import place_of
from closeknit.release.public import TextRelease
from closeknit.release.release_paths import find_certificate, read_certificate, release_file

CERTIFIED = "name it with --certificate (in Python: certificate=); 'closeknit risk' measures a table that is no release"
THEIRS = "name the public folder of the other release, or put its certificate next to it"
Repetition = tuple[Rerun, NDArray[np.int32], Repeat, tuple[Method, Sequence[Model]]]


class AttackReport(Document):
    """The results of attacks, worst first, and the attacks that could not run. Private, unless only the release was used.
    >>> print(AttackReport(closeknit="0.1.0", rows=4, findings=(), untried=("minimality needs the recipe",)))
    nothing was found in 4 rows
    not tried: minimality needs the recipe
    """

    what: ClassVar[str] = "the record of attacks"
    where: ClassVar[str] = "use one as 'closeknit attack --json' writes it"

    rows: int
    findings: tuple[Finding, ...]
    untried: tuple[str, ...]

    @property
    def risk(self) -> float:
        """The risk of the worst finding."""
        return self.findings[0].risk if self.findings else 0.0

    def summary(self) -> Summary:
        """Return the findings as a table, worst first."""
        title = f"Attacks on {self.rows:,} rows: the highest risk is {self.risk:.3f}"
        return findings_summary(title, self.findings, [f"not tried: {reason}" for reason in self.untried])

    def __str__(self) -> str:
        found = [str(finding) for finding in self.findings] or [f"nothing was found in {self.rows:,} rows"]
        return "\n".join([*found, *(f"not tried: {reason}" for reason in self.untried)])


def attack(
    release: Any,
    *,
    original: Any = None,
    schema: Schema | None = None,
    population: Any = None,
    other: Any = None,
    recipe: Recipe | str | PathLike[str] | None = None,
    certificate: Any = None,
    baskets: Sequence[str] = (),
    runs: int | None = None,
    solves: int | None = None,
    neighbours: int | None = None,
    seed: int = 0,
    csv: CsvFormat | None = None,
) -> AttackReport:
    """Run every attack whose requirements are given.

    Args:
        release: A release, its file with the certificate next to it, or its public folder.
        original: The original table; its rows are compared with the release.
        schema: The schema of the original table.
        population: A list of all persons who may be in the table, with their quasi-identifiers.
        other: Another release of the same people, given like `release`.
        recipe: The private recipe: it provides the original table, its schema, and the method with its seed.
        certificate: The certificate of the release, if it is not next to the file.
        baskets: Sensitive attributes whose cells list several items.
        runs: How often minimality and exchange each rerun the method; default: by the size of the table.
        solves: How many integer programs the refinement attack solves for each sensitive attribute; default: 200.
        neighbours: Exchange reruns the method on so many rows around a drawn person; default: on the whole table.
        seed: Seed of the attacks that draw random samples.
        csv: Format of CSV files; what it leaves open is detected.

    Returns:
        The findings, worst first, and the attacks that could not run. Private, unless only the release was used.
    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.StackAndDeal())
    >>> found = ck.attack(release, original=table, schema=schema)
    >>> [each.risk for each in found.findings if each.attack == "candidate_rows"], found.untried[0]
    ([0.2], 'minimality needs the recipe with its method and seed, to rerun it')
    """
    published, baskets = load_published(release, certificate, csv, CERTIFIED), _check_baskets(baskets)
    requested = Recipe.read(Path(recipe)) if isinstance(recipe, str | PathLike) else recipe
    schema = (requested.schema if requested is not None else None) if schema is None else require_schema(schema)
    theirs = None if other is None else load_published(other, None, csv, THEIRS)
    shared = () if theirs is None else reading_of(theirs).schema.used
    table = _original(original, requested, schema, csv, published.certificate, shared)
    reading = reading_of(published)
    people = None if population is None else _population(population, reading, schema, csv)
    found, reasons = try_release(reading, baskets)
    missing = _list_missing(reading, table, people, theirs)
    if table is not None and schema is not None:
        again = _prepare_rerun(published, table, requested)
        rerun, class_of, repeat, made_by = (None, None, None, None) if isinstance(again, str) else again
        budgets: dict[str, Any] = {"runs": runs, "solves": solves, "neighbours": neighbours, "seed": seed}
        known: dict[str, Any] = {"rerun": rerun, "class_of": class_of, "repeat": repeat, "made_by": made_by}
        found += with_original(published, table, schema, population=people, other=theirs, **known, **budgets)
        reasons += [again] if isinstance(again, str) else _list_inapplicable(found)
        missing += BY_RECIPE[1:] if isinstance(again, str) else []
        if rerun is not None and not reading.retained and all(each.attack != "minimality" for each in found):
            reasons.append("minimality: the method does not use a sensitive attribute, or the classes are too large")
        if reading.retained:
            reasons.append("intersection and minimality of a perturbed attribute: any person may have any value")
    else:
        missing += BY_RECIPE
        found += with_population(published, people, schema) if people is not None else []
        found += with_other(published, theirs, people, schema) if theirs is not None else []
    if theirs is not None and all(each.attack != "row_join" for each in found):
        reasons.append("row join: the releases share no rows of sensitive or plain cells")
    untried = [*reasons, *(_explain_missing(each, requested is not None and table is None) for each in missing)]
    return AttackReport(
        closeknit=__version__, rows=published.columns.rows, findings=tuple(worst_first(found)), untried=tuple(untried)
    )


def _explain_missing(attack: str, no_data: bool) -> str:
    """Return what an attack needs; `no_data`: the recipe is there, and names no table."""
    by_original = NEEDS[attack].startswith(ORIGINAL)
    if no_data and (by_original or attack in BY_RECIPE):
        return f"{attack} needs {ORIGINAL}: the recipe names no data; add the key data with the path of the table"
    return f"{attack} needs {NEEDS[attack]}" + ": give them, or the recipe that names them" * by_original


def _list_inapplicable(found: Sequence[Finding]) -> list[str]:
    """Return the attacks that had the class of each row and nothing to do."""
    tried = {each.attack for each in found}
    return [f"{attack}: the cells of this form are not those of classes" for attack in BY_CLASS if attack not in tried]


def _list_missing(reading: Reading, table: Columns | None, population: Columns | None, other: Published | None) -> list[str]:
    """Return the attacks that apply here and lack something; those that rerun the method are left to the caller."""
    people = {"population linkage", "delta presence"} if population is not None else set()
    with_other = {"row join", *(["intersection"] if table is not None else [])} if other is not None else set()
    original = {"candidate rows", "matching buckets", "singling out"} if table is not None else set()
    return [attack for attack in list_applicable(reading) if attack not in people | with_other | original | {*BY_RECIPE}]


def load_published(release: Any, certificate: Any = None, csv: CsvFormat | None = None, right: str = NAME_IT) -> Published:
    """Return a release as it is, or read from a file with its certificate, which must match its cells.

    `right`: what to do where there is no certificate next to the file.

    >>> import closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> load_published(release) is release
    True
    """
    if isinstance(release, Published) and certificate is None:
        return release
    release = release_file(release)
    certificate = find_certificate(release, right) if certificate is None else certificate
    if certificate is None:
        raise BadInput(f"{type(release).__name__} is not a release", right="give a Release, or a file and its certificate")
    claimed = read_certificate(certificate)
    written, columns = read_certified(release, claimed, csv)
    if content_hash(written) != claimed.content_sha256:
        file = place_of(release)
        right = "give the file that was certified; 'closeknit audit' reports what differs"
        raise BadInput("the content does not match its certificate", file=file, right=right)
    return TextRelease(columns, claimed)


def _check_baskets(baskets: Any) -> list[str]:
    given = [baskets] if isinstance(baskets, str) else baskets
    if not isinstance(given, list | tuple):
        right = "name sensitive columns whose cells list several items"
        raise BadInput(f"baskets={baskets!r} is not a list of columns", right=right)
    return list(given)


def _original(
    original: Any,
    recipe: Recipe | None,
    schema: Schema | None,
    csv: CsvFormat | None,
    certificate: Certificate,
    shared: Sequence[str],
) -> Columns | None:
    """Return the columns of the schema and those that another release shares; a table of another release is refused."""
    if original is None and (recipe is None or recipe.data is None):
        return None
    if schema is None:
        raise BadInput("the original table comes without a schema", right="give the schema, or the recipe")
    source, format = (original, csv) if original is not None else (recipe.data, recipe.csv)  # type: ignore[union-attr]
    needed = schema.list_needed
    columns = read(
        source, format, lambda names: [*needed(names), *(name for name in shared if name in schema.removed and name in names)]
    )
    rows = certificate.rows + certificate.suppressed
    if columns.rows != rows:
        what = f"the original table has {columns.rows:,} rows, but the release was computed from {rows:,}"
        file = place_of(source)
        raise BadInput(what, file=file, right="give the table of this release, or its recipe")
    return columns


def _population(population: Any, reading: Reading, schema: Schema | None, csv: CsvFormat | None) -> Columns:
    """Read a population; a cell that does not fit the schema is refused with the name of the file."""
    columns, raw = read(population, csv), raw_schema(reading, schema)
    for name in [name for name in raw.quasi if name in columns]:
        try:
            raw.encode_column(columns[name], name, raw.quasi[name])
        except BadInput as bad:
            raise bad.replace(file=place_of(population) or "the population") from None
    return columns


def _prepare_rerun(published: Published, table: Columns, requested: Recipe | None) -> Repetition | str:
    """Return functions that repeat the release for other tables, the class of each row, and what made them; or why not."""
    if requested is None:
        return f"minimality needs {NEEDS['minimality']}"
    recipe, schema = requested, requested.schema.without_identifiers()  # these were not even read
    if recipe.stream is not None:
        return "minimality of a stream: its randomness comes from the private key in its checkpoint"
    if recipe.seed is None:
        return "minimality needs the seed of the release: the recipe in its private folder has it"

    def run(columns: Columns) -> Any:
        with warnings.catch_warnings(action="ignore"):  # these tables are hypothetical
            own = columns.select(schema.used)  # without those of another release
            return anonymize(own, schema, recipe.models, recipe.method, **recipe.options)

    def rerun(columns: Columns) -> Columns | None:
        try:
            cells: Columns = run(columns).columns
        except CloseknitError:
            return None
        return cells

    try:
        repeated = run(table)
    except CloseknitError as error:
        return f"minimality: the recipe gives no release of this table ({error})"
    if content_hash(repeated.columns) != content_hash(published.columns):
        return "minimality: the recipe gives another release of this table, so it is not the recipe of this one"
    repeat = build_repeat(schema, recipe.models, recipe.method, allow_vacuous=recipe.allow_vacuous, **recipe.options)
    method = usual_method(form_of(recipe.form)) if recipe.method is None else method_of(recipe.method)
    return rerun, repeated.partition, repeat, (method, models_from(recipe.models))
