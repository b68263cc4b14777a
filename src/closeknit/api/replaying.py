"""`replay`: the rows of a table through a stream; what it publishes is a release, judged like any other."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.api.publishing import all_secrets, publish_sensitive
from closeknit.api.request_checks import read_table
from closeknit.core.certificate import Certificate, model_form
from closeknit.core.certifying import list_cell_notes, refuse_unmet
from closeknit.core.columns import Column, Columns, concat_columns
from closeknit.core.errors import BadInput, Unsatisfiable, refuse_empty
from closeknit.core.loss import list_texts
from closeknit.core.measurement import Judged, Measurement, PrivateContext
from closeknit.core.method import Method
from closeknit.core.model import Model, joints
from closeknit.core.params import choice
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import row_order
from closeknit.forms import generalized
from closeknit.forms.cell_labels import cell_order, compact, text_order
from closeknit.io.files import kind_of
from closeknit.io.source import Source
from closeknit.io.sources import source_of
from closeknit.release import LocalRelease, Origin, Release
from closeknit.streams.batch_writing import encode_cells
from closeknit.streams.rolling_certificate import WINDOW, attest_model, notes, render_schema
from closeknit.streams.stream import Stream

ORDERS = ("as it stands", "shuffled")


def replay(stream: Stream, table: Any, order: str = "as it stands") -> Release:
    """Push all rows of a table through a stream, flush it, and return what it published as a `Release`.

    Classes are read back from the written cells (and the window number); `partition` has the class of every input row, -1 where
    it was suppressed.

    Args:
        stream: a stream at its beginning.
        table: a frame or the path of a file.
        order: "as it stands", or "shuffled" by the stream's secret.

    Raises:
        Unsatisfiable: every row was suppressed, or a guarantee is not met.

    >>> import closeknit as ck
    >>> from closeknit.streams import Castle
    >>> schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 71, 32, 70], "ill": ["flu", "gout", "flu", "flu"]})
    >>> release = replay(Castle(schema, k=2, delta=3), table)
    >>> release.columns["age"].cells(), release.partition.tolist(), release.certificate.ok
    (['[30, 32]', '[30, 32]', '[70, 71]', '[70, 71]'], [0, 1, 0, 1], True)
    """
    refuse_started(stream)
    choice("order", order, ORDERS)
    columns, _ = read_table(table, None, stream.schema)
    refuse_empty(columns.rows)
    came = np.arange(columns.rows) if order == ORDERS[0] else stream.choice("replay").permutation(columns.rows)
    columns = columns.take(came)
    published = [*stream.blocks_of(columns), *stream.blocks_at_end()]
    if not published:
        measured = "every row was suppressed"
        raise Unsatisfiable(f"a release by {stream.name}", measured, "request less, or let rows wait longer")
    rows = np.concatenate([block.rows for block in published])
    released, behind = _sort_rows(stream, concat_columns([block.columns for block in published]), rows)
    reading, certificate = _certify_replay(stream, columns, released, behind)
    partition = np.full(columns.rows, -1, dtype=np.int32)
    partition[came[behind]] = reading.class_of
    source = source_of(table)
    path = source if isinstance(source, str | PathLike) else None
    return LocalRelease(
        released,
        certificate,
        partition=partition,
        recipe=_recipe(stream, source if isinstance(source, Source) else path),
        like=None if path or isinstance(source, Columns | Source) else table,
        format="parquet" if path and kind_of(path) == ".parquet" else "csv",
        origin=Origin(columns.take(np.argsort(came)), stream.schema, tuple(stream.models)),
    )


def refuse_started(stream: object) -> None:
    """Refuse what is not a stream, or one that has taken rows.

    Args:
        stream: what the user gave.
    """
    if not isinstance(stream, Stream):
        raise BadInput(f"{stream!r} is no stream", right="give an instance, such as Castle(schema, k=100, delta=10_000)")
    if stream.position or stream.ended:
        raise BadInput("the stream has taken rows already", right="give one at its beginning")


def _sort_rows(stream: Stream, written: Columns, rows: NDArray[np.int64]) -> tuple[Columns, NDArray[np.int64]]:
    """Rows in the canonical order of a release, and their positions; lists of values are in order too."""
    quasi, cells = render_schema(stream, {}).quasi, dict[str, Column]()
    for name in (*quasi, *stream.schema.sensitive, *stream.schema.plain):
        column = compact(written[name])
        if name in quasi:
            texts = list_texts(column)[:-1]
            order = text_order(texts)
            ranked = Column(np.array([texts[i] for i in order], dtype=object), np.argsort(order))  # type: ignore[arg-type]
        else:
            ranked = encode_cells(np.array([*column.values.tolist()], dtype=object))
        cells[name] = Column(ranked.values, np.append(ranked.codes, -1).astype(np.int32)[column.codes])
    order = row_order([cell_order(column) for column in cells.values()], written.rows)
    return Columns(cells, written.rows).take(order), rows[order]


def _certify_replay(
    stream: Stream, columns: Columns, released: Columns, behind: NDArray[np.int64]
) -> tuple[Reading, Certificate]:
    """Read back as a recipient does, and judge; guarantees that refer to windows are judged against these, privately."""
    schema = render_schema(stream, {}).model_copy(update={"sensitive": publish_sensitive(stream.schema, released)})
    rows = stream.coder.encode(columns, 0)
    persons = None if stream.schema.person is None else dict.fromkeys(schema.published, rows.persons[behind])
    own = [model for model in stream.models if not model.compares]
    joint = all_secrets(schema)
    reading = generalized().read(released, schema, persons, joints([*own, joint]))
    suppressed, private = columns.rows - released.rows, PrivateContext(persons is not None)
    measured = Measurement.of(reading, own, suppressed=suppressed, private=private, joint=joint)
    refuse_unmet(measured.guarantees)
    windows = np.array(list_texts(released[WINDOW]))[released[WINDOW].codes].astype(np.int64) if stream.scope else None
    met = stream.recheck_models(rows, behind, reading.class_of, windows)
    judged = dict(zip(own, measured.judged, strict=True))
    for model in (*stream.models, *stream.extra_models):
        judged.setdefault(model, _attest_window(stream, model, met))
    measured = measured.model_copy(update={"judged": tuple(judged[model] for model in (*stream.models, *stream.extra_models))})
    listed = [*notes(stream, checked=True), *list_cell_notes(reading, own, allow_vacuous=True)]
    return reading, measured.certify(reading.schema, {"generalized": {}}, listed)


def _attest_window(stream: Stream, model: Model, met: Mapping[Model, bool]) -> Judged:
    judged = attest_model(stream, model, met.get(model, True))
    if not judged.guarantee.met:
        raise Unsatisfiable(judged.guarantee.text, "not met when compared with its window", "choose another stream")
    return judged


def _recipe(stream: Stream, place: Source | str | PathLike[str] | None) -> dict[str, Any]:
    """Enough to run the stream again; the secret that it drew is in its checkpoint only."""
    others = ("schema", "models", "seed")
    params = {name: value for name, value in stream.init_params.items() if name not in others}
    params |= {name: model_form(value) for name, value in params.items() if isinstance(value, Method)}
    recipe: dict[str, Any] = {}
    if place is not None:
        recipe["data"] = place.form() if isinstance(place, Source) else {"path": str(Path(place).resolve())}
    recipe |= {
        "schema": stream.schema.forms(),
        "models": [model_form(model) for model in stream.init_params.get("models") or ()],
    }
    recipe |= {"stream": {stream.name: params}} | (
        {} if stream.init_params.get("seed") is None else {"seed": stream.init_params["seed"]}
    )
    return recipe
