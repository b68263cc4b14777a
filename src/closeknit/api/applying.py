"""`apply`: later rows, written with the labels of an earlier release.

The later rows are a release of their own: every class of them meets every guarantee alone, whatever was published before. Rows
that would be safe only in a class that was published before are not written: someone who has both releases could subtract one
from the other. Series of releases of the same people are not supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.api.publishing import publish_table
from closeknit.api.recipe import form_of, models_from
from closeknit.api.request_checks import check_models, check_plain, draw_seed, encode_table, read_table
from closeknit.api.table_release import by_input_row
from closeknit.core.certificate import Certificate, model_form
from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.date_shift import refuse_shifts
from closeknit.core.dates import Date
from closeknit.core.domain import Domain, read_ranges
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.kinds import Kind, Numeric, Prefix
from closeknit.core.levels import at_level, top_level
from closeknit.core.model import Model, joints
from closeknit.core.params import number
from closeknit.core.rank_swap import refuse_swaps
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.core.table import Partition, Table
from closeknit.core.tree import STAR
from closeknit.forms.cell_labels import text_order
from closeknit.forms.generalized import Generalized
from closeknit.io.csv import CsvFormat
from closeknit.kernels.arrays import Int32
from closeknit.release.local_release import LocalRelease
from closeknit.release.origin import Origin
from closeknit.release.recoding import Recoding

NOTE = (
    "labels are those of an earlier release; every class meets the guarantees without the rows published before; the rows must "
    "be of people who are in no earlier release"
)
AT_ONCE = 1 << 24  # rows times classes that are compared at once


@dataclass(frozen=True)
class _Recoded(Generalized):
    """`generalized` with the labels of each class given; read back like any other."""

    classes: Sequence[Sequence[str]] = field(default=(), init=False, compare=False)  # no parameter: not in a certificate

    def _labels(self, table: Table, lo: Int32, hi: Int32) -> dict[str, tuple[list[str], Int32]]:
        found = {}
        for j, name in enumerate(table.schema.quasi):
            texts = list(dict.fromkeys(row[j] for row in self.classes))
            ordered = [texts[i] for i in text_order(texts)]
            place = {text: i for i, text in enumerate(ordered)}
            found[name] = ordered, np.array([place[row[j]] for row in self.classes], dtype=np.int32)
        return found


def apply(
    recoding: Recoding | str | PathLike[str],
    data: Any,
    *,
    suppress: float = 0.0,
    seed: int | None = None,
    csv: CsvFormat | None = None,
) -> LocalRelease:
    """Write later rows with the labels of an earlier release, as a release of their own.

    Args:
        recoding: `release.recoding`, or the path of a saved one.
        data: the later rows: a frame, a mapping of columns, or the path of a file.
        suppress: largest share of the rows that may be suppressed: those that no label covers, and those of classes that do not
            meet a guarantee alone.
        seed: makes drawn values reproducible; default: 128 random bits.
        csv: format of a CSV file; what it leaves open is detected.

    Raises:
        Unsatisfiable: More rows would have to be suppressed.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric(step=10, coarsen=True)}, sensitive={"ill": ck.flat()})
    >>> first = {"age": [21, 25, 34, 38], "ill": ["flu", "gout", "flu", "acne"]}
    >>> import pyarrow as pa
    >>> release = ck.anonymize(pa.table(first), schema, [ck.KAnonymity(2)], ck.Incognito())
    >>> later = pa.table({"age": [35, 31, 39], "ill": ["flu", "flu", "gout"]})
    >>> ck.apply(release.recoding, later).frame["age"].to_pylist()
    ['[30, 40]', '[30, 40]', '[30, 40]']
    """
    known = recoding if isinstance(recoding, Recoding) else Recoding.read(recoding)
    share = number("suppress", suppress, least=0, most=1)
    schema, form = known.schema, form_of(known.form)
    models = [model for model in models_from(list(known.models)) if not model.of_method]  # a method's, not a recoding's
    assert isinstance(form, Generalized)
    refuse_shifts(schema, "when a recoding is applied")
    refuse_swaps(schema, "when a recoding is applied")
    if schema.person is not None and schema.person_rows == "together":
        what = "all rows of a person must be in one class, and labels may separate them"
        raise BadInput(what, column=schema.person, right="publish the rows with anonymize, or use person_rows='count-once'")
    check_models(schema, models, form)
    columns, _ = read_table(data, csv, schema)
    table = form.before(encode_table(columns, schema, data), 0).join_secrets(joints(models))
    check_plain(table)
    labels, class_of = _find_levels(table, form) if known.lookup else _find_classes(table, known.classes)
    class_of = _drop_unmet(table, class_of, models)
    if (class_of < 0).sum() > share * len(table) or not (class_of >= 0).any():
        _refuse(table, class_of)
    seed = draw_seed(seed)
    written, certificate, partition = _publish(table, class_of, labels, models, form, seed)
    by_row = by_input_row(table, partition)
    like = None if isinstance(data, str | PathLike | Columns) else data
    requested = [model_form(model) for model in models]
    recipe = {"schema": schema.forms(), "models": requested, "form": dict(known.form), "seed": seed, "notes": [NOTE]}
    origin = Origin(columns, schema, tuple(models))
    return LocalRelease(written, certificate, partition=by_row, recipe=recipe, like=like, origin=origin)


def _publish(
    table: Table, class_of: Int32, labels: Sequence[Sequence[str]], models: Sequence[Model], form: Generalized, seed: int
) -> tuple[Columns, Certificate, Partition]:
    partition = Partition.of(class_of)
    used = np.unique(class_of[class_of >= 0]).tolist()
    shape = _Recoded(form.snap, None, form.suppressed, form.cells, form.bounds)
    object.__setattr__(shape, "classes", [labels[i] for i in used])
    written, certificate = publish_table(replace(table, allow_vacuous=True), partition, models, shape, seed)
    notes = (*certificate.notes, NOTE)
    return written, certificate.model_copy(update={"notes": notes}), partition


def _drop_unmet(table: Table, class_of: Int32, models: Sequence[Model]) -> Int32:
    """Drop whole classes that do not meet a guarantee alone, until all others do: each drop changes the reference."""
    judged = [model for model in models if "release" not in model.needs]
    while (class_of >= 0).any():
        kept = np.flatnonzero(class_of >= 0)
        partition = Partition.of(class_of[kept])
        classes: Classes = table.take(kept).count_classes(partition)
        met = np.logical_and.reduce([model.holds(classes) for model in judged]) if judged else np.ones(len(classes), dtype=bool)
        if met.all():
            break
        class_of = class_of.copy()
        class_of[kept[~met[partition.class_of]]] = -1
    return class_of


def _refuse(table: Table, class_of: Int32) -> None:
    alone = int((class_of < 0).sum())
    what = f"writing {alone:,} of {len(table):,} rows with the labels of the earlier release"
    reached = "no label covers them, or they form no class that meets every guarantee alone"
    hint = (
        "they must not join classes that were published before, because two releases could be subtracted, and series of "
        f"releases are not supported yet: allow suppress={float(alone / len(table)):.3g}, wait for more rows, or publish them "
        "with anonymize"
    )
    raise Unsatisfiable(what, reached, hint)


def _find_levels(table: Table, form: Generalized) -> tuple[list[tuple[str, ...]], Int32]:
    """Full-domain: the label of each value at the level of its column, known before or not."""
    columns = []
    for j, (name, domain) in enumerate(zip(table.schema.quasi, table.quasi_domains, strict=True)):
        level = (form.levels or {})[name]
        leaves = np.arange(domain.size + 1, dtype=np.int32)
        top = top_level(domain)
        cells = at_level(domain, top if isinstance(level, str) else min(int(level), top)).labels(leaves, leaves)
        columns.append(np.array(cells, dtype=object)[table.quasi[:, j]])
    coded = [np.unique(column.astype(str), return_inverse=True) for column in columns]
    class_of, count = groups([(codes.astype(np.int32), len(texts)) for texts, codes in coded], len(table))
    first = np.full(count, -1, dtype=np.int64)
    first[class_of[::-1]] = np.arange(len(table))[::-1]
    return [tuple(str(column[row]) for column in columns) for row in first.tolist()], class_of.astype(np.int32)


def _find_classes(table: Table, classes: Sequence[tuple[str, ...]]) -> tuple[Sequence[tuple[str, ...]], Int32]:
    """The class of each row with the least loss among those whose labels cover it, the first of equal ones; -1 for none."""
    schema: Schema = table.schema
    holds = [
        _holds(kind, domain, [row[j] for row in classes])
        for j, (kind, domain) in enumerate(zip(schema.quasi.values(), table.quasi_domains, strict=True))
    ]
    weights = np.array(schema.weights())
    lost = np.stack([kind.losses([row[j] for row in classes])[:, 0] for j, kind in enumerate(schema.quasi.values())], axis=1)
    by_loss = np.argsort(lost @ weights, kind="stable")
    class_of = np.full(len(table), -1, dtype=np.int32)
    step = max(AT_ONCE // max(len(classes), 1), 1)
    for first in range(0, len(table), step):
        rows = table.quasi[first : first + step]
        fits = np.logical_and.reduce([of_column[rows[:, j]] for j, of_column in enumerate(holds)])[:, by_loss]
        best = np.argmax(fits, axis=1)
        class_of[first : first + step] = np.where(fits[np.arange(len(rows)), best], by_loss[best], -1)
    return classes, class_of


def _holds(kind: Kind, domain: Domain, labels: Sequence[str]) -> NDArray[np.bool_]:
    """For each leaf of the later rows, the missing one last, which labels cover it: [leaves + 1, labels]."""
    found = np.zeros((domain.size + 1, len(labels)), dtype=bool)
    distinct = {label: _find_covered(kind, domain, label) for label in dict.fromkeys(labels)}
    for i, label in enumerate(labels):
        found[: domain.size, i] = distinct[label]
        found[domain.size, i] = label in (STAR, "")
    return found


def _find_covered(kind: Kind, domain: Domain, label: str) -> NDArray[np.bool_]:
    """Which leaves a label covers."""
    if label in (STAR, ""):
        return np.full(domain.size, label == STAR)
    if isinstance(kind, Numeric):
        assert domain.numbers is not None
        (low,), (high,) = read_ranges([label])
        return (domain.numbers >= low) & (domain.numbers <= high)
    if isinstance(kind, Date):
        assert domain.numbers is not None
        span = kind.units_below(label) or (1, 0)
        return (domain.numbers >= span[0]) & (domain.numbers <= span[1])
    if isinstance(kind, Prefix):
        head = label.rstrip(STAR)
        return np.array([text == label or (head != label and text.startswith(head)) for text in domain.texts], dtype=bool)
    if domain.tree is not None and label in domain.tree.labels:
        node = list(domain.tree.labels).index(label)
        leaves = np.arange(domain.size)
        return (leaves >= domain.tree.lo[node]) & (leaves <= domain.tree.hi[node])
    return np.array([text == label for text in domain.texts], dtype=bool)
