"""`choose_k`: proposes a k if none is required: small classes lose little and disclose much, large ones the reverse.

Source: the dissertation on methods to achieve t-closeness, ch. 6 (a plan there). For k = 2..l, with l distinct sensitive
values, the table is partitioned; T_k is the largest distance of a class, I_k the loss; the k with the least
C = alpha T_k + (1 - alpha) I_k is chosen.

Different from the source:
- T and I are scaled to [0, 1] over the candidates (a constant series is 0): for an ordered attribute I grows faster than T
  falls, so that the unscaled C picks one of the smallest k; `scaled=False` shows it;
- of equal C the larger k is chosen; k ends at min(l, n); with many values `MOST` candidates are tried, evenly spaced in their
  logarithm; with less than two values or rows there is nothing to choose, and all rows are one class;
- a simpler rule, if a limit is known: `t=0.2` chooses the least loss with T_k <= t.

Cost: one release for each candidate, in several processes if the table is large.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from closeknit import __version__
from closeknit.api.comparing import build_methods, check_comparison, deduplicate_warnings
from closeknit.api.parameter_sweep import amount
from closeknit.api.recipe import MethodSpec, ModelSpecs, models_from
from closeknit.api.request_checks import draw_seed, encode_table, read_table
from closeknit.api.table_release import check_guarantees
from closeknit.api.tradeoff import report_points
from closeknit.api.trials import Setting, TrialResult, Trials
from closeknit.api.worker_pool import WorkerPool, processes
from closeknit.core.choice import Candidate, Choice, scores
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.exact import Number, fraction
from closeknit.core.method import Progress, ignore_progress
from closeknit.core.params import number, whole
from closeknit.core.schema import Schema, require_schema
from closeknit.core.table import Table
from closeknit.io.csv import CsvFormat
from closeknit.methods import StackAndDeal
from closeknit.models import KAnonymity, TCloseness

MOST = 50  # default number of candidates


def choose_k(
    data: Any,
    schema: Schema,
    models: ModelSpecs = (),
    method: MethodSpec | None = None,
    *,
    column: str | None = None,
    alpha: Number = 0.5,
    t: Number | None = None,
    ks: Iterable[int] | None = None,
    scaled: bool = True,
    distance: str | None = None,
    seed: int | None = None,
    csv: CsvFormat | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Choice:
    """Choose the k with the best balance of closeness and loss, or the one with the least loss within a limit of t.

    Args:
        data: A frame, a mapping of columns, or the path of a file.
        schema: Role, kind and hierarchy of each column.
        models: Guarantees that every candidate must meet too.
        method: The method to try; default: Stack & Deal on this sensitive attribute.
        column: The sensitive attribute whose distance counts, if there are several.
        alpha: Weight of the closeness, from 0 to 1; the loss has the weight `1 - alpha`.
        t: A limit; the k with the least loss within it is chosen, and `alpha` is not used.
        ks: Candidates; default: from 2 to the number of distinct sensitive values.
        scaled: Whether closeness and loss are scaled to [0, 1] over the candidates.
        distance: Distance between sensitive values, as in `TCloseness`.
        seed: Seed of all releases; default: random.
        csv: Format of a CSV file; what it leaves open is detected.
        jobs: Number of processes; default: one per core if the table is large.
        progress: Called with the current step and the share of the work done.
    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(120), ck.datasets.hospital_schema()
    >>> found = ck.choose_k(table, schema, column="disease", ks=[2, 4, 8], method="mondrian")
    >>> [candidate.k for candidate in found.candidates], found.chosen.score == min(c.score for c in found.candidates)
    ([2, 4, 8], True)
    """
    secret, requested = _secret(require_schema(schema), column), _check_candidates(ks)
    (chosen_method,) = build_methods([method or (StackAndDeal(column=secret) if len(schema.sensitive) > 1 else StackAndDeal())])
    weight = number("alpha", alpha, least=0, most=1)
    closeness = TCloseness(secret, 1 if t is None else t, distance)
    others = [model for model in models_from(models) if not (isinstance(model, KAnonymity) and model.by_class)]
    seed = draw_seed(seed)
    check_guarantees(schema, [KAnonymity(1), closeness, *others], chosen_method, None)
    table = encode_table(read_table(data, csv, schema)[0], schema, data)
    candidates = _candidates(table, secret) if requested is None else requested
    base: dict[str, Any] = {"closeknit": __version__, "rows": len(table), "seed": seed, "column": closeness.column}
    if not candidates:
        return Choice(**base, rule="nothing to choose", k=len(table), candidates=())
    with deduplicate_warnings():
        check_comparison(table, [KAnonymity(1), closeness, *others], [chosen_method])
    trials = Trials(table, seed, (closeness,), allow_vacuous=False)
    tasks = [Setting(chosen_method, (KAnonymity(k), *others)) for k in candidates]
    with WorkerPool(trials, processes(jobs, len(table))) as workers:
        tried: list[TrialResult] = workers.each(
            Trials.__call__, tasks, partial(report_points, progress or ignore_progress, 0.0, 1.0)
        )
    found, k = _choose_candidate(candidates, tried, weight, closeness if t is not None else None, scaled)
    rule = f"the least loss with t <= {t}" if t is not None else f"the least C, alpha = {amount(alpha)}"
    return Choice(**base, rule=rule if scaled or t is not None else f"{rule}, not scaled", k=k, candidates=found)


def _secret(schema: Schema, column: str | None) -> str:
    if column is None and len(schema.sensitive) == 1:
        return next(iter(schema.sensitive))
    if column is None:
        right = "name one with column=" if schema.sensitive else "name one under sensitive"
        many = "several sensitive columns" if schema.sensitive else "no sensitive column"
        raise BadInput(f"the schema has {many}", right=right)
    if not isinstance(column, str):
        raise BadInput(f"column={column!r} is not one column", right="name one of " + ", ".join(schema.sensitive))
    return column


def _check_candidates(ks: Iterable[int] | None) -> list[int] | None:
    """Return the given candidates, sorted."""
    if ks is None:
        return None
    given = sorted({whole("k", k, least=1) for k in ks}) if isinstance(ks, Iterable) else []
    if not given:
        raise BadInput(f"ks={ks!r} names no k", right="give a list such as [2, 5, 10], or leave it out")
    return given


def _candidates(table: Table, secret: str) -> list[int]:
    """Return 2..min(l, n), or some of them."""
    values = int((table.one_class().histograms[secret].reference > 0).sum())
    most = min(values, len(table))
    if most - 1 <= MOST:
        return list(range(2, most + 1))
    return [int(k) for k in np.unique(np.round(np.geomspace(2, most, MOST)).astype(np.int64))]


def _choose_candidate(
    ks: Sequence[int], tried: Sequence[TrialResult], alpha: Fraction, limit: TCloseness | None, scaled: bool
) -> tuple[tuple[Candidate, ...], int]:
    """Return the candidates with their results, and the best k; of equally good ones the largest."""
    found = {
        k: (t, Fraction(one.loss))
        for k, one in zip(ks, tried, strict=True)
        if one.loss is not None and (t := one.exact(0)) is not None
    }
    if not found:
        raise Unsatisfiable("a release with any of these k", str(tried[0].reason), "try other ks, or request less in models")
    weighted: dict[int, Fraction] = {}
    if limit is None:
        ts, losses = zip(*found.values(), strict=True)
        ranked = weighted = dict(zip(found, scores(ts, losses, alpha, scaled), strict=True))
    else:
        ranked = _within(found, limit)
    candidates = tuple(
        Candidate(k=k, t=one.level(0), loss=one.loss, score=float(weighted[k]) if k in weighted else None, reason=one.reason)
        for k, one in zip(ks, tried, strict=True)
    )
    return candidates, min(ranked, key=lambda k: (ranked[k], -k))


def _within(found: dict[int, tuple[Fraction, Fraction]], limit: TCloseness) -> dict[int, Fraction]:
    """Return the losses of those within the limit."""
    within = {k: loss for k, (t, loss) in found.items() if t <= fraction("t", limit.t)}
    if not within:
        measured = f"the nearest of these k reaches {float(min(t for t, _ in found.values())):.6g}"
        raise Unsatisfiable(limit.describe(None), measured, "try larger ks, or request the guarantee itself in models")
    return within
