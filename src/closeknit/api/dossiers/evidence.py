"""`Evidence`: everything that is computed about a release for a dossier, gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from closeknit.api.attacking import AttackReport, attack
from closeknit.api.auditing import audit
from closeknit.api.recipe import Recipe
from closeknit.api.reporting import load_release
from closeknit.api.risking import risk, suda
from closeknit.core.audit import Audit
from closeknit.core.certificate import Certificate
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number
from closeknit.core.kind_forms import kind_text
from closeknit.core.schema import Schema
from closeknit.io.files import read
from closeknit.release.release_paths import CERTIFICATE
from closeknit.report.report_records import PrivateReport, PublicReport
from closeknit.risks.risk_record import RiskRecord

NO_ORIGINAL = "the risk before, the original's utility and attacks that need the original: give the private recipe"
MINIMALITY = "minimality runs the method again, which may take long: request it with --runs"
NO_POPULATION = "population uniques, and a journalist's risk below the upper bound: give a population or a sampling fraction"


@dataclass(frozen=True)
class SpecialUniques:
    """What the search for special uniques found in the release.

    Args:
        scored: rows with a minimal sample unique.
        shares: share of the score by column.
    """

    scored: int
    shares: Mapping[str, float]


@dataclass(frozen=True)
class Evidence:
    """The numbers of a release, from which every answer of a dossier is taken.

    Args:
        certificate: the certificate.
        report: the public report.
        audit: the audit.
        attacks: attacks tried and not tried.
        risk: the risk of the release.
        before: the risk of the original, in a private edition.
        suda: special uniques of the release; None where there are none to look for.
        single: of each quasi-identifier, written values that one row has.
        kinds: of each published column its kind in words.
        private: the private report, in a private edition.
        recipe: the private recipe, in a private edition.
        population: what the journalist's numbers refer to, in words.
        listed: whether that is a list of people, which a recipient does not have.
        missing: what could not be computed, and why.
    """

    certificate: Certificate
    report: PublicReport
    audit: Audit
    attacks: AttackReport
    risk: RiskRecord
    before: RiskRecord | None
    suda: SpecialUniques | None
    single: Mapping[str, int]
    kinds: Mapping[str, str]
    private: PrivateReport | None
    recipe: Recipe | None
    population: str | None
    listed: bool
    missing: tuple[str, ...]


def gather_evidence(
    folder: str | PathLike[str],
    recipe: str | PathLike[str] | None = None,
    population: Any = None,
    sampling_fraction: Number | None = None,
    key: str | PathLike[str] | None = None,
    runs: int | None = None,
) -> Evidence:
    """Compute everything that a dossier needs.

    Args:
        folder: the public folder of a release.
        recipe: the private recipe, for a private edition.
        population: all people from whom the table was drawn, or their number.
        sampling_fraction: share of the population that is in the table.
        key: the public key of the signer.
        runs: how often the method is run again for the minimality attack; None: it is not tried.
    """
    place = Path(folder)
    if not place.exists():
        raise BadInput("there is no such folder", file=place, right="name the public folder of a release")
    if place.is_dir() and not (place / CERTIFICATE).exists():
        raise BadInput(f"there is no {CERTIFICATE} in this folder", file=place, right="name the public folder of a release")
    listed = population if isinstance(population, str | PathLike) else None
    release = load_release(place, recipe)
    requested = None if recipe is None else Recipe.read(recipe)
    counts = any("population" in params for one in release.certificate.guarantees for params in one.model.values())
    found = audit(place, key=key, population=listed if counts else None)
    attacks = _attack(place, requested, listed, runs)
    known = {"population": population, "sampling_fraction": sampling_fraction}
    schema = Schema.from_forms(release.certificate.columns)
    special, why = _special_uniques(place)
    missing = [NO_ORIGINAL] if requested is None else []
    missing += [NO_POPULATION] if population is None and sampling_fraction is None else []
    return Evidence(
        certificate=release.certificate,
        report=release.public_record(),
        audit=found,
        attacks=attacks,
        risk=risk(place, **known).record,
        before=None if requested is None else _risk_before(requested, known),
        suda=special,
        single={name: int((release.columns[name].counts == 1).sum()) for name in schema.quasi if name in release.columns},
        kinds={name: kind_text(kind) for name, kind in {**schema.sensitive, **schema.quasi}.items()},
        private=None if requested is None else release.private_record(attacks=attacks.findings),
        recipe=requested,
        population=_describe_population(population, sampling_fraction),
        listed=population is not None and not isinstance(population, int | float),
        missing=(*missing, *why),
    )


def _attack(place: Path, requested: Recipe | None, population: Any, runs: int | None) -> AttackReport:
    """The attacks; without `runs` the method is not run again, which may take long."""
    if requested is None or runs is not None:
        return attack(place, recipe=requested, population=population, runs=runs)
    found = attack(place, original=requested.source, schema=requested.schema, population=population, csv=requested.csv)
    untried = [MINIMALITY if reason.startswith("minimality needs") else reason for reason in found.untried]
    return found.model_copy(update={"untried": tuple(untried)})


def _risk_before(requested: Recipe, known: Mapping[str, Any]) -> RiskRecord:
    """The risk of the original; it is read once."""
    columns = read(requested.source, requested.csv, requested.schema.list_needed)
    return risk(columns, requested.schema, **known).record


def _special_uniques(place: Path) -> tuple[SpecialUniques | None, tuple[str, ...]]:
    try:
        found = suda(place)
    except BadInput as bad:
        return None, (f"special uniques: {bad}",)
    return SpecialUniques(int((found.scores > 0).sum()), found.column_shares), ()


def _describe_population(population: Any, sampling_fraction: Number | None) -> str | None:
    if population is not None:
        return f"{population:,} people" if isinstance(population, int | float) else "a list of people"
    return None if sampling_fraction is None else f"the table is a share of {sampling_fraction} of the population"
