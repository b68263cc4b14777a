"""The rolling certificate of a stream: what is guaranteed for all rows published so far, from counters of constant size.

Levels are those of the worst batch. A generalization that several batches share has at least the persons and the diversity of
the worst of them, so what every batch meets, the published rows meet. Pending rows are not covered. A guarantee counted in
persons, or compared with a private window, is attested: the certificate states only whether it is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from closeknit.core.certificate import ROLLING, Certificate, Guarantee
from closeknit.core.certifying import list_codings, list_unprotected, persons_note
from closeknit.core.classes import Classes
from closeknit.core.combined_secrets import CodedSecret, Secret, parts
from closeknit.core.dates import without_format
from closeknit.core.kinds import Kind, Numeric, flat, numeric
from closeknit.core.look_alikes import FoldedModel
from closeknit.core.loss import LossSums
from closeknit.core.measurement import Judged, Measurement, state_request
from closeknit.core.model import Model, least_rows
from closeknit.core.schema import Schema
from closeknit.core.vacuity import vacuity_notes
from closeknit.forms.cell_labels import tight_note
from closeknit.kernels.arrays import Int32, Reals
from closeknit.kernels.geometry.declared_axes import NUMBER, TREE, range_costs
from closeknit.streams.arrivals import Arrivals
from closeknit.streams.cell_notes import list_cells
from closeknit.streams.digests import digest_codes, fold_digests
from closeknit.streams.window_tables import secret_codes

if TYPE_CHECKING:
    from closeknit.streams.stream import Stream

WINDOW = "window"


@dataclass(frozen=True)
class Scope:
    """How a certificate describes guarantees that compare with a part of the stream.

    Args:
        text: follows each guarantee.
        note: follows the note on what the guarantees cover.
        why: why a recipient cannot recompute them.
    """

    text: str
    note: str
    why: str


def build_certificate(stream: Stream) -> Certificate:
    """The certificate of what a stream has published so far.

    >>> from closeknit.core.kinds import flat, numeric
    >>> from closeknit.streams.castle import Castle
    >>> stream = Castle(Schema(quasi={"age": numeric(0, 100)}, sensitive={"ill": flat()}), k=2, delta=2, l=2)
    >>> published = [stream.push({"age": age, "ill": ill}) for age, ill in ((30, "flu"), (40, "gout"), (90, "flu"))]
    >>> print("\\n".join(str(stream.certificate).splitlines()[:4]))
    met     k-anonymity, k = 2: measured 2
    met     distinct l-diversity of ill, l = 2: measured 2
    rows    2 published, 0 suppressed, 1 classes of 2 to 2 rows
    loss    0.1000 (General Loss Metric A; B: 0.1000)
    """
    said = (ROLLING, *notes(stream))
    return _measure_stream(stream).certify(render_schema(stream, stream.schema.sensitive), {"generalized": {}}, said)


def _measure_stream(stream: Stream) -> Measurement:
    """What the counters have added up over time."""
    counters = stream.counters
    judged = [_judge_model(stream, number, model) for number, model in enumerate(stream.models)]
    return Measurement(
        rows=counters.rows_out,
        suppressed=counters.suppressed,
        count=counters.batches,
        smallest=counters.smallest,
        largest=counters.largest,
        squares=counters.squares,
        k=least_rows(stream.models),
        losses=_sum_losses(stream),
        judged=(*judged, *(attest_model(stream, model) for model in stream.extra_models)),
    )


def count_classes(stream: Stream, rows: Arrivals, sizes: Sequence[int], lo: Reals, hi: Reals, alone: Sequence[bool]) -> None:
    """Add the loss and the levels of published classes to the counters.

    Args:
        stream: the stream.
        rows: the rows of the classes, class after class.
        sizes: rows of each class.
        lo: lower ends of the boxes of the classes.
        hi: upper ends.
        alone: which classes are rows that join a class published before, and are not judged by themselves.
    """
    unknown = int((rows.quasi == stream.coder.axes.unknown).sum())
    stream.counters.add_losses(sizes, range_costs(stream.coder.axes, *stream.coder.snap_boxes(lo, hi)), unknown)
    measured = [(i, model) for i, model in enumerate(stream.models) if model.bounds != "size" and not model.compares]
    judged = ~np.repeat(np.array(alone, dtype=bool), sizes)
    if not measured or not judged.any():
        return
    kept, number_of = np.unique(np.repeat(np.arange(len(sizes)), sizes)[judged], return_inverse=True)
    rows, class_of = rows.take(np.flatnonzero(judged)), number_of.astype(np.int32)
    if declared := [(i, model) for i, model in measured if model.reference is not None]:
        _measure_values(stream, rows, class_of, declared)  # other classes change nothing: declared values do not look alike
    measured = [(i, model) for i, model in measured if model.reference is None]
    if any("values" in model.needs for _, model in measured):  # class by class, as the stream judged them
        for number in range(len(kept)):
            one = rows.take(np.flatnonzero(class_of == number))
            _measure_values(stream, one, np.zeros(len(one), dtype=np.int32), measured)
        return
    secrets: dict[Secret, CodedSecret] = {
        name: digest_codes(fold_digests(rows.secrets[:, j], rows.cells[name]))  # the worse of the two
        for j, name in enumerate(stream.schema.sensitive)
        if any(name in parts(model.column) for _, model in measured)
    }
    persons = None if stream.schema.person is None else rows.persons
    classes = Classes.of(class_of, len(kept), secrets, persons)
    for i, model in measured:
        _add_levels(stream, i, model, classes)


def _measure_values(stream: Stream, rows: Arrivals, class_of: Int32, measured: Sequence[tuple[int, Model]]) -> None:
    """Classes for guarantees that read the values themselves: as written, and with look-alike values as one."""
    kinds = stream.schema.sensitive
    secrets: dict[Secret, CodedSecret] = {
        name: secret_codes(kinds[name], rows.secrets[:, j], rows.cells[name]) for j, name in enumerate(kinds)
    }
    persons = None if stream.schema.person is None else rows.persons
    classes = Classes.of(class_of, int(class_of.max()) + 1, secrets, persons)
    for i, model in measured:
        for judge in (model, FoldedModel(model)) if model.column else (model,):
            _add_levels(stream, i, judge, classes)


def _add_levels(stream: Stream, number: int, model: Model, classes: Classes) -> None:
    levels = model.levels(classes)
    stream.counters.add_level(number, float(levels.min() if model.higher_is_safer else -levels.max()))
    stream.counters.broken += int((~model.holds(classes)).sum())


def _judge_model(stream: Stream, number: int, model: Model) -> Judged:
    counters = stream.counters
    if model.compares or (stream.schema.person is not None and "persons" in model.needs):
        return attest_model(stream, model, counters.broken == 0 and _meets_size(stream))
    level = counters.worst.get(number) if model.bounds != "size" else _measure_smallest(model, counters.fewest_persons)
    measured = None if level is None or counters.batches == 0 or not np.isfinite(level) else abs(float(level))
    met = _meets_size(stream) if model.bounds == "size" else counters.broken == 0
    guarantee = Guarantee(**_state_model(stream, model), met=met, status="recomputable", measured=measured)
    return Judged(guarantee=guarantee, higher_is_safer=model.higher_is_safer, level=measured)


def _measure_smallest(model: Model, persons: int) -> float:
    """The level of the smallest class, for a guarantee about sizes alone."""
    one = np.array([persons], dtype=np.int64)
    return float(model.levels(Classes(one, one, {}))[0])


def _meets_size(stream: Stream) -> bool:
    return stream.counters.batches == 0 or stream.counters.fewest_persons >= least_rows(stream.models)


def attest_model(stream: Stream, model: Model, met: bool = True) -> Judged:
    """A guarantee that only the data owner can judge, as every class was before it was published.

    Args:
        stream: the stream.
        model: the guarantee.
        met: whether every class meets it.
    """
    why = model.why_attested or (stream.scope.why if model.compares and stream.scope else None)
    guarantee = Guarantee(**_state_model(stream, model), met=met, status="attested", why=why)
    return Judged(guarantee=guarantee, higher_is_safer=model.higher_is_safer)


def _state_model(stream: Stream, model: Model) -> dict[str, Any]:
    requested = model.origin  # closeness to the long run is requested as closeness
    kind = stream.schema.sensitive.get(requested.column) if isinstance(requested.column, str) else None
    domain = None if kind is None else kind.declared_domain
    scope = stream.scope.text if requested is model and model.compares and stream.scope else ""
    return {**state_request(requested, model.describe(domain) + scope), "requested": model.requested}


def _sum_losses(stream: Stream) -> LossSums:
    """Both variants; variant B of a tree's node follows from variant A and the number of leaves."""
    counters, axes = stream.counters, stream.coder.axes
    a = np.array(counters.column_losses or [0.0] * len(stream.schema.quasi))
    some = np.array(counters.column_rows or [0] * len(stream.schema.quasi))
    leaves = np.array([0 if domain is None else domain.size for domain in stream.coder.domains.values()])
    nodes = (axes.kind == TREE) & (leaves > 1)
    b = np.where(nodes, (leaves * a - some) / np.maximum(leaves - 1, 1), a)
    sums = dict(zip(stream.schema.quasi, zip(a.tolist(), b.tolist(), strict=True), strict=True))
    return {**sums, WINDOW: (0.0, 0.0)} if stream.scope else sums


def render_schema(stream: Stream, sensitive: dict[str, Kind]) -> Schema:
    """The columns as a certificate describes them. The window number distinguishes rows and has no loss."""
    schema = stream.schema.with_kinds(without_format)
    snapped: Any = {name: replace(cast(Numeric, schema.quasi[name]), snap=True) for name in stream.coder.steps}
    quasi, importance = {**schema.quasi, **snapped}, dict(schema.importance)
    if stream.scope:
        quasi, importance = {**quasi, WINDOW: numeric()}, {**importance, WINDOW: 0}
    shown = {name: flat() if kind.from_data else without_format(kind) for name, kind in sensitive.items()}
    return Schema(quasi=quasi, sensitive=shown, plain=schema.plain, importance=importance)


def _list_vacuous(stream: Stream) -> list[str]:
    """Guarantees that exclude nothing: in how many windows, or at all where no window is compared with."""
    if stream.scope is None:
        two = Classes.of(np.zeros(2, dtype=np.int32), 1, {name: digest_codes(np.arange(2)) for name in stream.schema.sensitive})
        judged = [model for model in stream.models if model.column and "values" not in model.needs]  # whatever the values are
        return vacuity_notes(judged, lambda _: two, allowed=True)
    counted = stream.counters.vacuous
    texts = [
        (_state_model(stream, model)["text"], counted[number])
        for number, model in enumerate(stream.models)
        if number in counted
    ]
    return [f"{text} is vacuous in {windows:,} windows: in them it excludes nothing" for text, windows in texts]


def notes(stream: Stream, checked: bool = False) -> list[str]:
    """What a reader has to know in addition to the numbers.

    Args:
        stream: the stream.
        checked: whether all rows were available and no identifier repeats.
    """
    schema, counters = stream.schema, stream.counters
    said = ["guarantees cover the published rows only" + (stream.scope.note if stream.scope else "")]
    said.append(persons_note(schema, checked))
    if counters.suppressed:
        said.append(f"{counters.suppressed:,} rows were suppressed: no class could take them in time")
    if counters.unknown_out:
        said.append(f"{counters.unknown_out:,} cells were outside the declared domains: their classes write `*` there")
    if counters.keys:
        said.append(
            f"rows that repeat one of the last {stream.rules.remember:,} keys were refused; older keys were not compared"
        )
    cells = list_cells(stream, [model for model in stream.models if model.compares or not checked], formulas=not checked)
    said += [*counters.list_faults(), *cells, *stream.remarks, *_list_vacuous(stream)]
    number = stream.coder.axes.kind == NUMBER
    said += [
        tight_note(name)
        for name, by_value in zip(schema.quasi, number.tolist(), strict=True)
        if by_value and stream.coder.domains[name] is None and name not in stream.coder.steps
    ]
    return said + list_codings(schema) + list_unprotected(schema, stream.models)
