"""What the page of a release shows, read from the files that were saved with it: nothing is computed again.

`out/` holds what may leave, `out.private/` what stays at home; a page shows both to whoever made them, and offers them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from closeknit.attacks.finding import Finding, worst_first
from closeknit.core.certificate import Certificate
from closeknit.core.combined_secrets import parts, render_secret
from closeknit.core.errors import BadInput
from closeknit.io.faults import explain_os_error
from closeknit.report.record import ExplainedGuarantee, PrivateReport, PublicReport

CERTIFICATE, REPORT, RECIPE = "certificate.json", "report.json", "recipe.yaml"
SHOWN_RISKS = 12
LABELS = 360  # pixels of the name of an attack
HIGH = 0.9  # a risk that is said before anything is downloaded


@dataclass(frozen=True)
class GuaranteeResult:
    """A guarantee as the certificate has it."""

    text: str
    means: str
    requested: str
    measured: str
    held: bool
    status: str  # recomputable or attested
    worst: str | None  # the class that comes nearest to breaking it, by its cells
    worst_rows: int | None


@dataclass(frozen=True)
class Attack:
    """What one attack reaches at worst."""

    title: str
    knows: str
    risk: float
    sentence: str
    needs_original: bool  # told at home only


@dataclass(frozen=True)
class SampleRows:
    """Rows of one class as they were and as they are written, each in its own order."""

    rows: int
    raw_columns: tuple[str, ...]
    raw: tuple[tuple[str, ...], ...]
    written_columns: tuple[str, ...]
    written: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class File:
    """A file of a download."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Result:
    """All that the page shows."""

    ok: bool
    lines: tuple[str, ...]  # the certificate as the command line prints it
    guarantees: tuple[GuaranteeResult, ...]
    rows: int
    suppressed: int
    class_word: str
    classes: int
    smallest: int
    largest: int
    loss: float
    loss_by_column: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]
    sample: SampleRows | None
    attacks: tuple[Attack, ...]  # worst first
    warnings: tuple[str, ...]  # to be read before anything is shared
    missing: tuple[str, ...]  # what could not be shown, and why
    command: str
    leaves: tuple[File, ...]  # what may leave
    stays: tuple[File, ...]  # what stays at home

    def record(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)


def result(out: Path, name: str = "table.csv") -> Result:
    """The release in `out` and what stays at home beside it; `name` is what the table was called by its owner.

    >>> import tempfile, closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/out")
    ...     found = result(Path(folder, "out"))
    >>> found.ok, found.guarantees[0].measured, [file.name for file in found.leaves]
    (True, '5', ['certificate.json', 'release.csv', 'report.html', 'report.json'])
    """
    home = private_folder(out)
    certificate = Certificate.from_json(_text(out / CERTIFICATE), CERTIFICATE)
    released = PublicReport.from_json(_text(out / REPORT), REPORT)
    private = PrivateReport.from_json(_text(home / REPORT), REPORT) if (home / REPORT).is_file() else None
    sizes, attacks = certificate.classes, _attacks(released, private)
    return Result(
        ok=certificate.ok,
        lines=tuple(str(certificate).splitlines()),
        guarantees=tuple(_build_guarantee(told) for told in released.guarantees),
        rows=certificate.rows,
        suppressed=certificate.suppressed,
        class_word=released.class_words,
        classes=sizes.count,
        smallest=sizes.smallest,
        largest=sizes.largest,
        loss=certificate.loss.a,
        loss_by_column=tuple((column, a) for column, (a, _) in certificate.loss.columns.items()),
        notes=certificate.notes,
        sample=_build_sample(private),
        attacks=attacks,
        warnings=(*_warn_unprotected(certificate), *_warn_attacks(attacks)),
        missing=private.missing if private else (),
        command=command(name),
        leaves=_files(out),
        stays=_files(home),
    )


def private_folder(out: Path) -> Path:
    """Where what stays at home stands beside a release.

    >>> private_folder(Path("case/out")).name
    'out.private'
    """
    return out.with_name(out.name + ".private")


def command(name: str) -> str:
    """What makes the same release again, where recipe and table lie in one folder.

    >>> command("patients.csv")
    'closeknit anonymize recipe.yaml -o again/   # with patients.csv beside recipe.yaml'
    """
    printable = "".join(sign if sign.isprintable() else "?" for sign in name)
    return f"closeknit anonymize {RECIPE} -o again/   # with {printable} beside {RECIPE}"


def pictures(out: Path) -> dict[str, str]:
    """Loss by column and risk by attack as the report draws them, SVG for a page; drawing takes a second.

    >>> import tempfile, closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/out")
    ...     sorted(pictures(Path(folder, "out")))
    ['loss', 'risk']
    """
    from closeknit.report import charts

    found = result(out)
    loss = [{"name": column, "value": value} for column, value in found.loss_by_column]
    risk = [{"name": attack.title, "value": attack.risk} for attack in found.attacks[:SHOWN_RISKS]]
    title = "Bar chart: loss by column, from 0 to 1."
    drawn = {"loss": charts.bars(loss, value="loss", title=title, most=1)} if loss else {}
    title = "Bar chart: risk of each attack, from 0 (nothing learned) to 1 (somebody given away)."
    return {**drawn, **({"risk": charts.bars(risk, value="risk", title=title, most=1, labels=LABELS)} if risk else {})}


def _build_guarantee(told: ExplainedGuarantee) -> GuaranteeResult:
    guarantee = told.guarantee
    attested = guarantee.status == "attested"
    measured = "attested" if attested else "no limit" if guarantee.measured is None else f"{guarantee.measured:.4g}"
    worst = guarantee.worst
    cells = None if worst is None else ", ".join(f"{name} {cell or 'missing'}" for name, cell in worst.cells.items())
    rows = None if worst is None else worst.rows
    return GuaranteeResult(
        guarantee.text, told.means, guarantee.requested, measured, guarantee.met, guarantee.status, cells, rows
    )


def _attacks(released: PublicReport, private: PrivateReport | None) -> tuple[Attack, ...]:
    at_home = private.findings if private else ()
    return tuple(_attack(found, found in at_home) for found in worst_first([*released.findings, *at_home]))


def _warn_unprotected(certificate: Certificate) -> list[str]:
    """A sentence about the sensitive attributes for which no guarantee was requested."""
    named = {name for guarantee in certificate.guarantees for name in parts(guarantee.column)}
    names = [name for name in certificate.columns.get("sensitive", {}) if name not in named]
    return [
        f"No guarantee protects {name}: whoever recognises the class of a person sees every value of {name} in it, "
        "and may learn the person's own."
        for name in names
    ]


def _warn_attacks(attacks: Sequence[Attack]) -> list[str]:
    """A sentence about each attack that nearly always succeeds against the person who is worst off."""
    return [
        f"{attack.title.capitalize()}: an adversary who knows {attack.knows} is right about at least one person with a "
        f"probability of {attack.risk:.0%}. {attack.sentence}"
        for attack in attacks
        if attack.risk >= HIGH
    ]


def _attack(found: Finding, needs_original: bool) -> Attack:
    of = f" of {render_secret(found.column)}" if found.column else ""
    return Attack(found.attack.replace("_", " ") + of, found.knows, found.risk, found.sentence, needs_original)


def _build_sample(private: PrivateReport | None) -> SampleRows | None:
    found = private.sample if private else None
    if found is None:
        return None
    return SampleRows(found.rows, found.raw_columns, found.raw, found.written_columns, found.written)


def _files(folder: Path) -> tuple[File, ...]:
    if not folder.is_dir():
        return ()
    return tuple(File(file.name, file.stat().st_size) for file in sorted(folder.iterdir()) if file.is_file())


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput("is not UTF-8 text", file=file.name, right="make the release again") from None
    except OSError as error:
        raise explain_os_error(error, file.name) from None
