"""`dossier`: the questions of a framework about a release, each with the number that answers it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from closeknit import __version__
from closeknit.api.dossiers.evidence import Evidence, gather_evidence
from closeknit.api.dossiers.frameworks import FRAMEWORKS, Asked, Framework, framework_of
from closeknit.api.dossiers.numbers import NEEDS, NUMBERS, ORIGINAL
from closeknit.api.dossiers.statements import Statements, write_template
from closeknit.core.exact import Number
from closeknit.io.folders import save_folder, write_inside
from closeknit.report.dossier_page import dossier_page, dossier_pdf
from closeknit.report.dossier_record import Answer, Dossier, DossierSource, Question

HTML, JSON, PDF = "dossier.html", "dossier.json", "dossier.pdf"


def dossier(
    folder: str | PathLike[str],
    framework: str,
    *,
    answers: str | PathLike[str] | None = None,
    recipe: str | PathLike[str] | None = None,
    population: Any = None,
    sampling_fraction: Number | None = None,
    key: str | PathLike[str] | None = None,
    runs: int | None = None,
) -> Dossier:
    """The dossier of a saved release, from its public folder alone or (private) with the original.

    Args:
        folder: the public folder of the release.
        framework: "wp216", "ico", "ema", "hipaa", "nist" or "iso27559".
        answers: a YAML file with what people state; see `closeknit dossier --template`.
        recipe: the private recipe: adds what needs the original, and makes the dossier private.
        population: a list of all people from whom the table was drawn, or their number.
        sampling_fraction: share of the population that is in the table.
        key: the public key of the signer, to verify the signature.
        runs: how often to run the method again for the minimality attack, which may take long; default: it is not tried.

    >>> import tempfile, closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(11)])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     release.save(f"{place}/out", report=False)
    ...     found = ck.dossier(f"{place}/out", "ema")
    >>> found.edition, found.questions[2].answers[0].value
    ('public', 'k = 11: a risk of at most 1/11 = 0.09091; policies round 1/11 to 0.09')
    """
    asked = framework_of(framework)
    stated = Statements() if answers is None else Statements.read(answers, asked)
    evidence = gather_evidence(folder, recipe, population, sampling_fraction, key, runs)
    return build_dossier(asked, evidence, stated)


def build_dossier(framework: Framework, evidence: Evidence, stated: Statements) -> Dossier:
    """The dossier from what was computed and stated.

    Args:
        framework: what is asked.
        evidence: what was computed.
        stated: what people state.
    """
    return Dossier(
        closeknit=__version__,
        framework=framework.name,
        title=framework.title,
        sources=tuple(DossierSource(title=title, address=address) for title, address in framework.sources),
        edition="public" if evidence.recipe is None else "private",
        rows=evidence.certificate.rows,
        suppressed=evidence.certificate.suppressed,
        content_sha256=evidence.certificate.content_sha256,
        audit="; ".join([evidence.audit.status, *evidence.audit.findings]),
        signatures=tuple(signature.line() for signature in evidence.audit.signatures),
        questions=tuple(_answer(question, evidence, stated) for question in framework.questions),
        findings=evidence.attacks.findings,
        untried=evidence.attacks.untried,
        utility=tuple(answer for name in ("loss", "queries") for answer in NUMBERS[name](evidence)),
        notes=(*evidence.certificate.notes, *evidence.risk.notes),
        missing=evidence.missing,
    )


def _answer(question: Asked, evidence: Evidence, stated: Statements) -> Question:
    answers: list[Answer] = []
    missing: list[str] = []
    for name in question.numbers:
        if name == "attempt":
            answers += stated.multiply(evidence.risk.attacker("prosecutor").highest)
            continue
        found = list(NUMBERS[name](evidence))
        answers += found
        if not found and name in NEEDS:
            what, needs = NEEDS[name]
            given = needs == ORIGINAL and evidence.recipe is not None
            missing.append(f"{what} ({'does not apply to this release' if given else needs})")
    boxes = tuple(stated.fill(key, label) for key, label in question.boxes)
    return Question(section=question.section, text=question.text, answers=tuple(answers), boxes=boxes, missing=tuple(missing))


def save_dossier(found: Dossier, folder: str | PathLike[str], pdf: bool = False, force: bool = False) -> list[str]:
    """Write `dossier.html`, `dossier.json` and, if requested, `dossier.pdf` into a folder; all or nothing.

    Args:
        found: the dossier.
        folder: the folder, which must not exist unless `force`.
        pdf: whether to write a PDF too; needs `closeknit[pdf]`.
        force: whether to replace an earlier dossier there.

    Returns:
        The names of the files.
    """
    page = dossier_page(found)
    files = {HTML: page.encode(), JSON: found.to_json().encode()}
    files |= {PDF: dossier_pdf(page)} if pdf else {}

    def write(place: Path) -> None:
        for name, content in files.items():
            write_inside(place / name, content)

    private = found.edition == "private"
    save_folder(Path(folder), write, private=private, force=force, ours=(HTML, JSON, PDF).__contains__)
    return list(files)


__all__ = ["FRAMEWORKS", "dossier", "framework_of", "save_dossier", "write_template"]
