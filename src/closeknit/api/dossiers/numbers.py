"""The numbers of a dossier by name: each takes the evidence and yields answers with where they come from.

A name without an answer (an attack that was not tried, a number that needs the original) yields nothing: the dossier lists what
is missing, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from closeknit.api.dossiers.evidence import Evidence
from closeknit.core.audit import CheckedGuarantee
from closeknit.core.certificate import render_level
from closeknit.core.combined_secrets import parts, render_secret
from closeknit.core.grids import render_measured
from closeknit.report.dossier_record import Answer, Basis
from closeknit.risks.risk_record import ESTIMATOR_NAMES, MEANINGS, AttackerRecord, RiskRecord

Number = Callable[[Evidence], Iterator[Answer]]
PRIVATE_ATTACKS = frozenset(
    ["candidate_rows", "singling_out", "downcoding", "minimality", "exchange", "refinement", "matching_buckets", "membership"]
)


def _percent(part: float) -> str:
    return f"{100 * part:.3g} %"


def _risk_basis(record: RiskRecord) -> Basis:
    return "attested" if record.counted == "persons" else "recomputable"


def list_guarantees(evidence: Evidence) -> Iterator[Answer]:
    """Every guarantee of the certificate, as the audit finds it."""
    yield from (_guarantee(one) for one in evidence.audit.guarantees)


def list_sensitive(evidence: Evidence) -> Iterator[Answer]:
    """The guarantees about sensitive attributes; those without one are named."""
    stated = evidence.certificate.guarantees
    about = {guarantee.text for guarantee in stated if guarantee.column is not None}
    yield from (_guarantee(one) for one in evidence.audit.guarantees if one.text in about)
    covered = _find_covered(evidence)
    names = [column.name for column in evidence.report.columns if "sensitive" in column.role and column.name not in covered]
    if names:
        yield Answer(label="Sensitive attributes without a guarantee", value=", ".join(names), basis="recomputable")


def _find_covered(evidence: Evidence) -> set[str]:
    """Sensitive attributes that a guarantee is about."""
    return {name for guarantee in evidence.certificate.guarantees for name in parts(guarantee.column)}


def _guarantee(one: CheckedGuarantee) -> Answer:
    if one.status == "not checkable":
        return Answer(label=one.text, value=f"requested {one.requested}", basis="attested", detail=one.why or "")
    met = {"recomputed": "met", "not met": "not met", "vacuous": "met, and excludes nothing"}[one.status]
    value = f"measured {render_level(one.measured)}, requested {one.requested}"
    return Answer(label=one.text, value=value, basis="recomputable", detail=met)


def list_sizes(evidence: Evidence) -> Iterator[Answer]:
    """How large the classes are."""
    size = evidence.certificate.classes
    yield Answer(
        label="Smallest, average and largest class",
        value=f"{size.smallest:,}; {size.mean:.1f}; {size.largest:,} rows",
        basis="recomputable",
        detail="a class is all rows with the same published quasi-identifiers",
    )


def list_uniques(evidence: Evidence) -> Iterator[Answer]:
    """Rows that no other row equals."""
    record = evidence.risk
    share = record.uniques / record.people if record.people else 0.0
    value = f"{record.uniques:,} of {record.people:,} {record.counted} ({_percent(share)})"
    yield Answer(label="Unique on all quasi-identifiers", value=value, basis=_risk_basis(record))


def attacker(name: str) -> Number:
    """The risk from one attacker, as numbers of a dossier.

    Args:
        name: prosecutor, journalist or marketer.
    """

    def list_risk(evidence: Evidence) -> Iterator[Answer]:
        by_list = evidence.listed and name != "prosecutor"  # who has no list cannot recompute it
        yield from _attacker(evidence.risk.attacker(name), "attested" if by_list else _risk_basis(evidence.risk))

    return list_risk


def _attacker(one: AttackerRecord, basis: Basis, when: str = "") -> Iterator[Answer]:
    detail = f"{one.goal}; {MEANINGS[one.status]}"
    name = f"{one.name.capitalize()}{when}"
    if one.highest is not None:
        yield Answer(label=f"{name}: highest risk", value=f"{one.highest:.4g}", basis=basis, detail=detail)
    yield Answer(label=f"{name}: average risk", value=f"{one.average:.4g}", basis=basis, detail=detail)
    if one.shares:
        shares = "; ".join(f"{_percent(share)} above {t}" for t, share in one.shares.items())
        detail = "share of the people whose risk is greater than the threshold"
        yield Answer(label=f"{name}: people above a threshold", value=shares, basis=basis, detail=detail)


def list_before(evidence: Evidence) -> Iterator[Answer]:
    """The risk of the original table."""
    if evidence.before is not None:
        yield from _attacker(evidence.before.attacker("prosecutor"), "private", ", before")
        yield from _attacker(evidence.before.attacker("journalist"), "private", ", before")


def list_suda(evidence: Evidence) -> Iterator[Answer]:
    """Special uniques of the release, and the columns behind them."""
    found = evidence.suda
    if found is None:
        return
    value = f"{found.scored:,} of {evidence.certificate.rows:,} rows"
    yield Answer(label="Rows that few columns single out (SUDA)", value=value, basis="recomputable")
    if found.scored:
        first = sorted(found.shares.items(), key=lambda item: (-item[1], item[0]))
        shares = "; ".join(f"{name} {_percent(share)}" for name, share in first)
        yield Answer(label="Columns behind them, share of the score", value=shares, basis="recomputable")


def list_distinguishing(evidence: Evidence) -> Iterator[Answer]:
    """Written values of each quasi-identifier that one row has."""
    for name, single in evidence.single.items():
        value = f"written values that only one row has: {single:,}"
        detail = f"declared as {evidence.kinds.get(name, '')}"
        yield Answer(label=f"Column {name} alone", value=value, basis="recomputable", detail=detail)


def finding(name: str) -> Number:
    """The results of one attack, as numbers of a dossier.

    Args:
        name: of the attack.
    """

    def list_findings(evidence: Evidence) -> Iterator[Answer]:
        basis: Basis = "private" if name in PRIVATE_ATTACKS else "recomputable"
        for found in evidence.attacks.findings:
            if found.attack == name:
                of = f" of {render_secret(found.column)}" if found.column else ""
                label = f"{name.replace('_', ' ').capitalize()}{of}: {found.measure}"
                yield Answer(label=label, value=render_measured(found.number), basis=basis, detail=found.sentence)

    return list_findings


def count_attacks(evidence: Evidence) -> Iterator[Answer]:
    """How many attacks were tried; the dossier lists them all."""
    found = evidence.attacks
    worst = f"; the highest risk is {found.risk:.3f} ({found.findings[0].attack.replace('_', ' ')})" if found.findings else ""
    value = f"{len(found.findings)} results{worst}"
    private = evidence.recipe is not None
    detail = "all are listed below, with those that were not tried"
    yield Answer(label="Attacks tried", value=value, basis="private" if private else "recomputable", detail=detail)
    yield Answer(label="Attacks not tried", value=str(len(found.untried)), basis="recomputable", detail="with reasons below")


def list_removed(evidence: Evidence) -> Iterator[Answer]:
    """Columns that are not published."""
    if evidence.recipe is not None:
        schema = evidence.recipe.schema
        removed = [*schema.identifier, *([schema.person] if schema.person else []), *schema.drop]
        value = ", ".join(removed) or "none"
        yield Answer(label="Direct identifiers and other removed columns", value=value, basis="private", detail="not published")


def list_roles(evidence: Evidence) -> Iterator[Answer]:
    """Published columns, and what was done with each."""
    loss, covered = evidence.certificate.loss.columns, _find_covered(evidence)
    for column in evidence.report.columns:
        if "quasi" in column.role:
            lost = loss[column.name][0] if column.name in loss else None
            kind = f"declared as {evidence.kinds.get(column.name, '')}"
            detail = kind if lost is None else f"loss {lost:.3f} (0: unchanged, 1: nothing left); {kind}"
            value = _name_technique(next(iter(evidence.certificate.form)), lost)
            yield Answer(label=f"Quasi-identifier {column.name}", value=value, basis="recomputable", detail=detail)
        else:
            kept = "published as it is, " + ("protected by a guarantee" if column.name in covered else "unprotected")
            yield Answer(label=f"{column.role.capitalize()} column {column.name}", value=kept, basis="recomputable")


def _name_technique(form: str, lost: float | None) -> str:
    """What was done with a quasi-identifier, by the form of the release and the loss of the column."""
    if form != "generalized" or lost is None:
        return form
    return "published as it is" if lost == 0 else "suppressed: every cell is *" if lost == 1 else "generalized"


def list_threshold(evidence: Evidence) -> Iterator[Answer]:
    """The threshold that was requested, by class size."""
    for guarantee in evidence.certificate.guarantees:
        if guarantee.model.get("k_anonymity", {}).get("k"):
            k = guarantee.model["k_anonymity"]["k"]
            rounds = "; policies round 1/11 to 0.09" if k == 11 else ""
            value = f"k = {k}: a risk of at most 1/{k} = {1 / k:.4g}{rounds}"
            yield Answer(label="Requested threshold", value=value, basis="recomputable")


def list_population(evidence: Evidence) -> Iterator[Answer]:
    """The reference population of the journalist's numbers."""
    value = evidence.population or "not given: the numbers are those of the table itself, as upper bounds"
    yield Answer(label="Reference population", value=value, basis="stated" if evidence.population else "recomputable")


def list_population_uniques(evidence: Evidence) -> Iterator[Answer]:
    """Expected population uniques, by every estimator."""
    found = evidence.risk.population_uniques
    if found is None:
        return
    if not evidence.risk.uniques:
        detail = "no row of the release is unique, so no estimator expects any"
        yield Answer(label="Expected population uniques", value="0 people", basis="recomputable", detail=detail)
        return
    for name, expected in found.expected.items():
        value = f"{expected:,.1f} people ({_percent(expected / found.population)})" if expected is not None else "no fit"
        chosen = "chosen by the decision rule; " if name == found.rule else ""
        detail = chosen + found.reasons.get(name, found.spread if name == found.rule else "")
        yield Answer(
            label=f"Expected population uniques, {ESTIMATOR_NAMES.get(name, name)}",
            value=value,
            basis="recomputable",
            detail=detail,
        )


def list_loss(evidence: Evidence) -> Iterator[Answer]:
    """The information loss, in total and by column."""
    loss = evidence.certificate.loss
    detail = "General Loss Metric, 0: unchanged, 1: nothing left"
    yield Answer(label="Information loss", value=f"{loss.a:.4f}", basis="recomputable", detail=detail)
    columns = "; ".join(f"{name} {a:.3f}" for name, (a, _) in loss.columns.items())
    yield Answer(label="Loss by column", value=columns, basis="recomputable")


def list_queries(evidence: Evidence) -> Iterator[Answer]:
    """Errors of COUNT queries, which need the original."""
    for one in evidence.private.queries if evidence.private is not None else ():
        if one.median is not None and one.lower is not None and one.upper is not None:
            value = f"median {_percent(one.median)}, quartiles {_percent(one.lower)} and {_percent(one.upper)}"
            detail = (
                f"{one.queries:,} queries over {one.lambda_} quasi-identifiers, about {_percent(one.theta)} of the rows each"
            )
            yield Answer(label=f"Relative error of COUNT queries on {one.column}", value=value, basis="private", detail=detail)


def list_identity(evidence: Evidence) -> Iterator[Answer]:
    """What identifies the release, so that a later one can be compared with it."""
    yield Answer(label="Content hash of the release", value=evidence.certificate.content_sha256, basis="recomputable")
    yield Answer(label="Version of closeknit", value=evidence.certificate.closeknit, basis="recomputable")


ORIGINAL, PEOPLE = "needs the private recipe", "needs a population or a sampling fraction"
NEEDS: dict[str, tuple[str, str]] = {  # what a number is, and what it needs where it yields nothing
    "before": ("the risk before", ORIGINAL),
    "removed": ("the removed columns", ORIGINAL),
    "singling_out": ("descriptions that fit one row", ORIGINAL),
    "candidate_rows": ("candidate rows", ORIGINAL),
    "queries": ("the error of COUNT queries", ORIGINAL),
    "population_linkage": ("population linkage", "needs a population"),
    "population_uniqueness": ("population uniques", PEOPLE),
    "intersection": ("intersection with another release", "needs another release of the same people: see closeknit attack"),
}
NUMBERS: dict[str, Number] = {
    "guarantees": list_guarantees,
    "sensitive_guarantees": list_sensitive,
    "sizes": list_sizes,
    "uniques": list_uniques,
    "prosecutor": attacker("prosecutor"),
    "journalist": attacker("journalist"),
    "marketer": attacker("marketer"),
    "before": list_before,
    "suda": list_suda,
    "distinguishability": list_distinguishing,
    "range_ends": finding("range_ends"),
    "singling_out": finding("singling_out"),
    "candidate_rows": finding("candidate_rows"),
    "population_linkage": finding("population_linkage"),
    "intersection": finding("intersection"),
    "homogeneity": finding("homogeneity"),
    "skewness": finding("skewness"),
    "joint_secrets": finding("joint_secrets"),
    "attacks": count_attacks,
    "removed": list_removed,
    "roles": list_roles,
    "threshold": list_threshold,
    "population": list_population,
    "population_uniqueness": list_population_uniques,
    "loss": list_loss,
    "queries": list_queries,
    "identity": list_identity,
}
