"""The private report: the public one, the comparison with the original, and the recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit import __version__
from closeknit.attacks.finding import Finding
from closeknit.attacks.on_release import ON_RELEASE
from closeknit.attacks.private_attacks import with_original
from closeknit.core.errors import BadInput
from closeknit.core.frontier import Frontier
from closeknit.forms.release_reading import reading_of
from closeknit.metrics.learning import release_accuracy
from closeknit.metrics.queries import queries, workload_error
from closeknit.metrics.usefulness import usefulness
from closeknit.release.origin import Origin
from closeknit.release.public import TextRelease
from closeknit.release.samples import find_class
from closeknit.report.report_records import AttestedLevel, PrivateReport, PublicReport, QueryError, Sample
from closeknit.risks.class_counts import ClassCounts
from closeknit.risks.risk import measure_risk
from closeknit.risks.risk_record import RiskChange

QUERIES, LAMBDA, THETA = 1000, 3, 0.1
PARTS = {
    "sample": "Rows before and after",
    "queries": "COUNT queries",
    "usefulness": "Distributions and associations",
    "learning": "What a classifier learns",
    "findings": "Attacks that need the original",
    "risk": "The risk before and after",
}
NO_SAMPLE = "Rows before and after are left out: none of the smallest classes is found in the release by its sensitive values."
NO_ORIGINAL = (
    "The original table is not available: samples, query errors and attacks that need it are left out. "
    "Name the private recipe to include them."
)
NO_FRONTIER = "The loss of other settings was not computed: 'closeknit frontier' computes it."
MORE_ATTACKS = (
    "Attacks that know the method (minimality, refinement), or need a list of the population or another release, take more "
    "time: "
    "'closeknit attack' runs them, and 'closeknit report --attacks' shows them here."
)


def private_report(
    texts: TextRelease,
    released: PublicReport,
    origin: Origin | None,
    partition: NDArray[np.int32] | None,
    recipe: Mapping[str, Any] | None,
    frontier: Frontier | None = None,
    attacks: Sequence[Finding] | None = None,
    target: str | None = None,
) -> PrivateReport:
    """The content of the private page; without the original only how to repeat the release.

    Args:
        texts: the release.
        released: its public report.
        origin: the original and the request, where they are available.
        partition: the class of each row of the original.
        recipe: how the release was computed.
        frontier: what other settings would cost.
        attacks: findings that used more than the release; by default those that the original alone gives.
        target: the column that a classifier shall guess; without it none is trained.
    """
    missing = [NO_ORIGINAL] if origin is None else [MORE_ATTACKS] if attacks is None else []
    missing += [NO_FRONTIER] if frontier is None else []
    shown = {name: part for name, part in (recipe or {}).items() if name not in ("schema", "output")}
    base: dict[str, Any] = {
        "closeknit": __version__,
        "released": released,
        "frontier": frontier,
        "recipe": shown,
        "command": _command(shown),
    }
    given = tuple(found for found in attacks or () if found.attack not in ON_RELEASE)  # those are on the public page
    if origin is None:
        return PrivateReport(**base, findings=given, missing=tuple(missing))
    parts: dict[str, Any] = {}
    makers: dict[str, Callable[[], Any]] = {
        "sample": lambda: _sample(texts, origin, partition),
        "queries": lambda: _query_errors(texts, origin),
        "usefulness": lambda: usefulness(texts, origin.columns, origin.schema),
        "learning": lambda: None if target is None else release_accuracy(texts, origin.columns, origin.schema, target),
        "findings": lambda: given or tuple(with_original(texts, origin.columns, origin.schema, class_of=partition)),
        "risk": lambda: _measure_change(released, origin),
    }
    for name, make in makers.items():
        try:
            parts[name] = make()
        except BadInput as error:  # a certified release can be saved, whatever cannot be compared
            missing.append(f"{PARTS[name]} could not be computed: {error}.")
    missing += [NO_SAMPLE] if parts.get("sample", 0) is None else []
    levels = _levels(texts, origin)
    return PrivateReport(
        **base, **parts, input_rows=origin.columns.rows, duplicates=origin.duplicates, levels=levels, missing=tuple(missing)
    )


def _command(recipe: Mapping[str, Any]) -> str:
    if "stream" in recipe:
        return "closeknit stream recipe.yaml < rows.ndjson > again.ndjson"
    if recipe and "data" not in recipe:
        return "closeknit anonymize recipe.yaml -o again/   # after adding the key data with the path of the table"
    return "closeknit anonymize recipe.yaml -o again/"


def _levels(texts: TextRelease, origin: Origin) -> tuple[AttestedLevel, ...]:
    """The measured level of each attested guarantee: of classes counted in persons, or of the release as a whole."""
    classes = origin.classes() if origin.classes else None
    found = []
    for model, guarantee in zip(origin.models, texts.certificate.guarantees, strict=False):
        stated: dict[str, Any] = {"text": guarantee.text, "requested": guarantee.requested}
        if guarantee.status == "attested" and "release" in model.needs:
            found.append(
                AttestedLevel(**stated, measured=model.judge_release(replace(reading_of(texts), raw=origin.schema), None).level)
            )
        elif guarantee.status == "attested" and "persons" in model.needs and classes is not None and len(classes):
            worse = (np.minimum if model.higher_is_safer else np.maximum).reduce
            levels = worse([model.levels(view) for view in classes.views(model.column)])
            index = model.find_worst(levels)
            measured = float(levels[index]) if np.isfinite(levels[index]) else None
            rows, persons = int(classes.sizes[index]), int(classes.persons[index])
            found.append(AttestedLevel(**stated, measured=measured, rows=rows, persons=persons))
    return tuple(found)


def _measure_change(released: PublicReport, origin: Origin) -> RiskChange | None:
    """The risk of the table and of the release, both in persons where these are known."""
    if released.risk is None:
        return None
    before, after = measure_risk(ClassCounts.of_table(origin.columns, origin.schema)).record, released.risk
    if origin.classes is not None:
        after = measure_risk(ClassCounts.of_sizes(origin.classes().persons, released.suppressed, "persons")).record
    return RiskChange(before=before, after=after)


def _sample(texts: TextRelease, origin: Origin, partition: NDArray[np.int32] | None) -> Sample | None:
    found = None if partition is None else find_class(origin.columns, origin.schema, texts, partition)
    if found is None:
        return None
    raw, written = origin.columns.take(found.raw), texts.columns.take(found.written)
    return Sample(
        raw=_rows(raw, list(raw)),
        raw_columns=tuple(raw),
        written=_rows(written, list(written)),
        written_columns=tuple(written),
        rows=found.rows,
    )


def _rows(columns: Any, names: list[str]) -> tuple[tuple[str, ...], ...]:
    cells = [["" if cell is None else str(cell) for cell in columns[name].cells()] for name in names]
    return tuple(zip(*cells, strict=True))


def _query_errors(texts: TextRelease, origin: Origin) -> tuple[QueryError, ...]:
    """The errors of the same queries on the table and on the release, for each sensitive attribute."""
    found = []
    for secret in origin.schema.sensitive:
        others = len([name for name in origin.schema.quasi if name != secret])
        if others == 0:
            continue
        lambda_ = min(LAMBDA, others)
        workload = queries(origin.columns, origin.schema, secret, lambda_, THETA, QUERIES)
        error = workload_error(texts, origin.columns, workload)
        found.append(QueryError(column=secret, lambda_=lambda_, theta=THETA, **error.model_dump()))
    return tuple(found)
