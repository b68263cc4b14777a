"""From the classes that were read back from written cells to a certificate: every guarantee measured, or a refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import (
    Certificate,
    ClassSizes,
    Guarantee,
    Joint,
    LossRecord,
    ValueEstimates,
    WorstClass,
    model_form,
)
from closeknit.core.combined_secrets import Secret, least_distance, parts, render_secret
from closeknit.core.domain import Domain
from closeknit.core.errors import Unsatisfiable
from closeknit.core.formulas import RISK, formula_notes
from closeknit.core.look_alikes import look_alike_notes
from closeknit.core.loss import Loss, measure_loss
from closeknit.core.model import Model, least_rows
from closeknit.core.perturbation import estimate_counts
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.core.vacuity import find_stand_alone, vacuity_notes


@dataclass(frozen=True)
class PrivateContext:
    """What only those know who made a release."""

    counts_persons: bool  # k and diversity were counted in persons
    originals: Callable[[str], NDArray[np.int32]] | None = None  # of a secret: as `Model.judge_release` takes them


def judge(reading: Reading, models: Sequence[Model], home: PrivateContext | None = None) -> list[Guarantee]:
    """Every guarantee measured on the classes read back; at home also what a stranger cannot tell, which is then attested.

    Where values look alike it is measured on the values as written and on the folded ones, and the worse of the two counts.
    """
    return [_judge_views(reading, model, home, least_rows(models)) for model in models]


def _judge_views(reading: Reading, model: Model, home: PrivateContext | None, k: int) -> Guarantee:
    written, folded = _judge_model(reading.of(model.column), reading, model, home, k), reading.fold_values(model.column)
    if folded is None:
        return written
    worse = worst_of([written, _judge_model(folded.of(model.column), folded, model, home, k)], model)
    return worse.model_copy(update={"alone": written.alone, "vacuous": written.vacuous})


def worst_of(
    guarantees: Sequence[Guarantee], model: Model, place: Callable[[Guarantee], Any] = lambda guarantee: 0
) -> Guarantee:
    """One guarantee measured several times: it holds if it always does, and reaches what it reaches at worst.

    `place` decides between equals.
    """

    def rank(guarantee: Guarantee) -> tuple[bool, float, Any]:
        level = (
            np.inf if guarantee.measured is None else guarantee.measured
        )  # without limit: the best of sizes, the worst of gains
        return guarantee.met, (level if model.higher_is_safer else -level), place(guarantee)

    return min(guarantees, key=rank).model_copy(update={"met": all(guarantee.met for guarantee in guarantees)})


def _judge_model(seen: Reading, reading: Reading, model: Model, home: PrivateContext | None, k: int) -> Guarantee:
    histogram = seen.classes.histograms.get(model.column) if model.column else None
    text = model.describe(histogram.domain if histogram else None)
    base: dict[str, Any] = {"model": model_form(model), "text": text, "column": model.column, "requested": model.requested}
    if (found_alone := find_stand_alone(model, seen.classes, k)) is not None:
        base |= {"alone": found_alone.share, "vacuous": found_alone.vacuous}
    in_persons = home is not None and home.counts_persons and "persons" in model.needs
    if "release" in model.needs:
        originals = home.originals(str(model.column)) if home and home.originals else None
        found = model.judge_release(reading, originals)
        if found.status != "recomputable" or in_persons:
            status = "attested" if found.status == "recomputable" else found.status
            status = "not checkable" if home is None else status  # to a stranger nobody has attested anything
            return Guarantee(**base, met=found.held, status=status, why=found.why)
        exact = None if found.exact is None else str(found.exact)
        worst = _find_worst(seen, model).get("worst")
        why = None if found.held else found.why
        return Guarantee(**base, met=found.held, status="recomputable", measured=found.level, exact=exact, worst=worst, why=why)
    held = bool(model.holds(seen.classes).all())
    if in_persons:
        return Guarantee(**base, met=held, status="attested")
    return Guarantee(**base, met=held, status="recomputable", **_find_worst(seen, model))


def _find_worst(reading: Reading, model: Model) -> dict[str, Any]:
    levels = model.levels(reading.classes)
    if len(levels) == 0:
        return {}
    return _describe_class(reading, model, levels, int(np.argmin(levels) if model.higher_is_safer else np.argmax(levels)))


def _describe_class(reading: Reading, model: Model, levels: NDArray[np.float64], index: int) -> dict[str, Any]:
    exact = model.exact_level(reading.classes, index)
    worst = WorstClass(cells=reading.cells_of(index), rows=int(reading.classes.sizes[index]))
    measured = float(levels[index]) if np.isfinite(levels[index]) else None
    return {"measured": measured, "exact": None if exact is None else str(exact), "worst": worst}


def joint_distance(reading: Reading, closeness: Model | None) -> Joint | None:
    """The distance of all secrets as one, by the model that measures it; None where there are no classes or no such model."""
    if closeness is None or len(reading.classes) == 0:
        return None
    seen = reading.of(closeness.column)
    histogram = seen.classes.histograms[parts(closeness.column)]
    levels = closeness.levels(seen.classes)
    worst = np.flatnonzero(levels == levels.max())
    index = int(worst[np.argmax(histogram.totals[worst])])  # of equals the largest: in which order they stand tells nothing
    rows = int(histogram.totals[index])
    least = float(least_distance(histogram.reference, rows))
    return Joint(columns=parts(closeness.column), least=least, counted=rows, **_describe_class(seen, closeness, levels, index))


def estimates(reading: Reading) -> dict[str, ValueEstimates]:
    """How many rows have each value of a perturbed secret truly, as far as written cells and law tell."""
    found = {}
    for name, law in reading.retained.items():
        histogram = reading.classes.histograms[name]
        if law.retain == 0 or not histogram.reference.any():
            continue
        numbers = estimate_counts(histogram.reference[: law.values], law.retain)
        texts = [*histogram.domain.texts, ""][: law.values]
        found[name] = dict(zip(texts, zip(*(part.tolist() for part in numbers), strict=True), strict=True))
    return found


def class_sizes(reading: Reading, k: int = 0) -> ClassSizes:
    """Statistics of class sizes."""
    sizes = reading.classes.sizes
    mean = float(sizes.mean()) if len(sizes) else 0.0
    return ClassSizes(
        count=len(sizes),
        smallest=int(sizes.min()) if len(sizes) else 0,
        mean=mean,
        largest=int(sizes.max(initial=0)),
        discernibility=int((sizes * sizes).sum()),
        average_ratio=mean / k if k else None,
    )


def certify(
    reading: Reading,
    models: Sequence[Model],
    *,
    version: str,
    form: Mapping[str, dict[str, Any]],
    suppressed: int,
    home: PrivateContext | None,
    notes: Sequence[str],
    joint: Model | None = None,
    allow_vacuous: bool = False,
) -> Certificate:
    """Measure every model on what was read back; raise `Unsatisfiable` if one is not met, or vacuous and not allowed to be.

    `joint` measures all secrets as one, where there are several.
    """
    guarantees = judge(reading, models, home)
    refuse_broken(guarantees)
    k, vacuous = least_rows(models), vacuity_notes(models, lambda model: reading.of(model.column).classes, allow_vacuous)
    return Certificate(
        closeknit=version,
        form=dict(form),
        columns=reading.schema.forms(),
        rows=reading.columns.rows,
        suppressed=suppressed,
        guarantees=tuple(guarantees),
        classes=class_sizes(reading, k),
        loss=loss_record(measure_loss(reading.columns, reading.schema, suppressed)),
        joint=joint_distance(reading, joint),
        estimates=estimates(reading),
        notes=tuple(
            dict.fromkeys(
                (
                    *notes,
                    *vacuous,
                    *look_alike_notes(references_of(reading, models)),
                    *note_formulas(formula_notes(reading.columns)),
                )
            )
        ),
    )


def references_of(reading: Reading, models: Sequence[Model]) -> dict[Secret, tuple[Domain, NDArray[np.int64]]]:
    """Of every secret that a guarantee speaks of its leaves and their rows."""
    names = dict.fromkeys(model.column for model in models if model.column)
    histograms = {name: reading.of(name).classes.histograms[name] for name in names}
    return {name: (histogram.domain, histogram.reference) for name, histogram in histograms.items()}


def note_formulas(found: Sequence[str]) -> tuple[str, ...]:
    """What a certificate says of cells that a spreadsheet may run, if there are any."""
    return (*found, RISK) if found else ()


def refuse_broken(guarantees: Sequence[Guarantee]) -> None:
    """What is not kept is not certified."""
    for guarantee in guarantees:
        if not guarantee.met:
            level = "no bound" if guarantee.measured is None else f"{guarantee.measured:.6g}"
            measured = (
                "counted at home, it is not kept" if guarantee.status == "attested" else f"the written release reaches {level}"
            )
            raise Unsatisfiable(guarantee.text, measured, guarantee.why or "ask for less, or choose another method")


def loss_record(loss: Loss) -> LossRecord:
    """The loss as the certificate carries it."""
    return LossRecord(a=loss.a, b=loss.b, columns=dict(loss.columns))


def persons_note(schema: Schema, checked: bool = True) -> str:
    """What k counts, in a sentence. `checked`: whether rows that share an identifier were refused.

    >>> persons_note(Schema(identifier=["name"], rows_are_persons=True))
    'every row was counted as a person of its own, as the data owner declares (rows_are_persons)'
    """
    if schema.person is not None:
        return "k and diversity count persons; who they are is not published"
    declared = ", as the data owner declares (rows_are_persons)" if schema.rows_are_persons else ""
    unchecked = "; whether an identifier repeats was not checked" if schema.unique and not checked else ""
    return f"every row was counted as a person of its own{declared}{unchecked}"


def list_unprotected(schema: Schema, models: Sequence[Model]) -> list[str]:
    """Columns that are published and that no guarantee covers, alone or together."""
    guaranteed = {name for model in models for name in parts(model.column)}
    notes, secrets = [], tuple(schema.sensitive)
    if len(secrets) > 1 and not any({*parts(model.column)} == {*secrets} for model in models):
        notes.append(f"knowing one secret may tell another: no guarantee speaks of {render_secret(secrets)}")
    notes += [
        f"column '{name}' is sensitive, but no guarantee speaks of it" for name in schema.sensitive if name not in guaranteed
    ]
    return notes + [f"column '{name}' is published as it is, without any protection" for name in schema.plain]
