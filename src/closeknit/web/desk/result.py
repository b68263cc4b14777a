"""The page of a release, read from its saved files: nothing is computed again.

`out/` holds the public files, `out.private/` the private ones. The page shows both to their owner and offers them separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from closeknit.attacks.finding import Finding, worst_first
from closeknit.core.certificate import Certificate
from closeknit.core.combined_secrets import parts, render_secret
from closeknit.core.errors import BadInput, keep_printable
from closeknit.core.grids import render_measured
from closeknit.io.faults import explain_os_error
from closeknit.metrics.usefulness import Usefulness
from closeknit.release.release_paths import CERTIFICATE, RECIPE, REPORT, private_folder
from closeknit.report.report_records import ExplainedGuarantee, PrivateReport, PublicReport, Sample
from closeknit.report.utility_charts import explain_loss, utility_pictures

SHOWN_RISKS = 12
LABELS = 360  # pixels of the name of an attack
HIGH = 0.9  # risks from here on are shown above the downloads


@dataclass(frozen=True)
class GuaranteeResult:
    """A guarantee of the certificate."""

    text: str
    means: str
    requested: str
    measured: str
    met: bool
    status: str  # recomputable or attested
    worst: str | None  # the cells of the class that is nearest to violating it


@dataclass(frozen=True)
class Attack:
    """The worst result of one attack."""

    title: str
    knows: str
    risk: float
    sentence: str
    needs_original: bool  # private


@dataclass(frozen=True)
class File:
    """A file of a download."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Result:
    """The contents of the page."""

    certificate: Certificate
    guarantees: tuple[GuaranteeResult, ...]
    class_word: str
    loss_means: str  # in a sentence
    sample: Sample | None
    usefulness: Usefulness | None
    attacks: tuple[Attack, ...]  # worst first
    risk: tuple[tuple[str, ...], ...]  # before and after, or after alone; the first line is the heading
    warnings: tuple[str, ...]  # to read before sharing
    missing: tuple[str, ...]  # what could not be shown, and why
    command: str
    public_files: tuple[File, ...]  # may be shared
    private_files: tuple[File, ...]  # do not share


def result(out: Path, name: str = "table.csv") -> Result:
    """Read the release in `out` and its private folder; `name` is the owner's name of the table.

    >>> import tempfile, closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/out")
    ...     found = result(Path(folder, "out"))
    >>> found.certificate.ok, found.guarantees[0].measured, [file.name for file in found.public_files]
    (True, '5', ['certificate.json', 'release.csv', 'report.html', 'report.json'])
    """
    private_out = private_folder(out)
    certificate = Certificate.from_json(_text(out / CERTIFICATE), CERTIFICATE)
    released = PublicReport.from_json(_text(out / REPORT), REPORT)
    private = PrivateReport.from_json(_text(private_out / REPORT), REPORT) if (private_out / REPORT).is_file() else None
    attacks = _attacks(released, private)
    return Result(
        certificate=certificate,
        guarantees=tuple(_build_guarantee(explained) for explained in released.guarantees),
        class_word=released.class_words,
        loss_means=explain_loss(certificate.loss),
        sample=private.sample if private else None,
        usefulness=private.usefulness if private else None,
        attacks=attacks,
        risk=_risk(released, private),
        warnings=(*_warn_unprotected(certificate), *_warn_attacks(attacks)),
        missing=private.missing if private else (),
        command=command(name),
        public_files=_files(out),
        private_files=_files(private_out),
    )


def command(name: str) -> str:
    """Return the command that repeats the release, for a folder with both recipe and table.

    >>> command("patients.csv")
    'closeknit anonymize recipe.yaml -o again/   # in the folder of recipe.yaml and patients.csv'
    """
    printable = keep_printable(name, "?")
    return f"closeknit anonymize {RECIPE} -o again/   # in the folder of {RECIPE} and {printable}"


def pictures(out: Path) -> dict[str, str]:
    """Draw loss by column, risk by attack, distributions and associations as SVG, like the report; this takes a second.

    >>> import tempfile, closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/out")
    ...     sorted(pictures(Path(folder, "out")))
    ['associations', 'distributions', 'loss', 'risk']
    """
    from closeknit.report import charts

    found = result(out)
    loss = [{"name": column, "value": value} for column, (value, _) in found.certificate.loss.columns.items()]
    risk = [{"name": attack.title, "value": attack.risk} for attack in found.attacks[:SHOWN_RISKS]]
    title = "Bar chart: loss by column, from 0 to 1."
    drawn = {"loss": charts.bars(loss, value="loss", title=title, most=1)} if loss else {}
    title = "Bar chart: risk of each attack, from 0 (nothing learned) to 1 (fully disclosed)."
    drawn |= {"risk": charts.bars(risk, value="risk", title=title, most=1, labels=LABELS)} if risk else {}
    return {**drawn, **(utility_pictures(found.usefulness) if found.usefulness else {})}


def _build_guarantee(explained: ExplainedGuarantee) -> GuaranteeResult:
    guarantee = explained.guarantee
    measured = "attested" if guarantee.status == "attested" else render_measured(guarantee.measured)
    worst = guarantee.worst
    cells = None if worst is None else ", ".join(f"{name} {cell or 'missing'}" for name, cell in worst.cells.items())
    return GuaranteeResult(
        guarantee.text, explained.means, guarantee.requested, measured, guarantee.met, guarantee.status, cells
    )


def _attacks(released: PublicReport, private: PrivateReport | None) -> tuple[Attack, ...]:
    own = private.findings if private else ()
    return tuple(_attack(found, found in own) for found in worst_first([*released.findings, *own]))


def _risk(released: PublicReport, private: PrivateReport | None) -> tuple[tuple[str, ...], ...]:
    """Return the risk from each attacker as a table; one of an earlier version has none."""
    if private is not None and private.risk is not None:
        return tuple(map(tuple, private.risk.lines()))
    return () if released.risk is None else tuple(map(tuple, released.risk.grid()))


def _warn_unprotected(certificate: Certificate) -> list[str]:
    """Warn about sensitive attributes without a guarantee."""
    named = {name for guarantee in certificate.guarantees for name in parts(guarantee.column)}
    names = [name for name in certificate.columns.get("sensitive", {}) if name not in named]
    return [
        f"No guarantee protects {name}: an adversary who recognizes the class of a person sees every value of {name} in it, "
        "and may learn that person's value."
        for name in names
    ]


def _warn_attacks(attacks: Sequence[Attack]) -> list[str]:
    """Warn about each attack that nearly always succeeds against at least one person."""
    return [
        f"{attack.title.capitalize()}: an adversary who knows {attack.knows} is right about at least one person with a "
        f"probability of {attack.risk:.0%}. {attack.sentence}"
        for attack in attacks
        if attack.risk >= HIGH
    ]


def _attack(found: Finding, needs_original: bool) -> Attack:
    of = f" of {render_secret(found.column)}" if found.column else ""
    return Attack(found.attack.replace("_", " ") + of, found.knows, found.risk, found.sentence, needs_original)


def _files(folder: Path) -> tuple[File, ...]:
    if not folder.is_dir():
        return ()
    return tuple(File(file.name, file.stat().st_size) for file in sorted(folder.iterdir()) if file.is_file())


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput("is not UTF-8 text", file=file.name, right="anonymize the table again") from None
    except OSError as error:
        raise explain_os_error(error, file.name) from None
