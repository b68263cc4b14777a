"""`replay`: a table as if its rows came one after the other; what leaves the stream as a release, judged like any other."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit import __version__
from closeknit.api.publishing import all_secrets
from closeknit.api.request_checks import read_table
from closeknit.core.certificate import Certificate, Guarantee, model_form
from closeknit.core.certifying import PrivateContext, certify
from closeknit.core.columns import Column, Columns, concat_columns
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.loss import list_texts
from closeknit.core.model import Model, joints
from closeknit.core.params import choice
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import row_order
from closeknit.core.schema import Schema
from closeknit.forms import generalized
from closeknit.forms.cell_labels import cell_order, compact, text_order
from closeknit.io.files import kind_of
from closeknit.release import Origin, Release
from closeknit.streams.batch_writing import encode_cells
from closeknit.streams.rolling_certificate import WINDOW, attest_model, notes, render_schema
from closeknit.streams.stream import Stream

ORDERS = ("as it stands", "shuffled")


def replay(stream: Stream, table: Any, order: str = "as it stands") -> Release:
    """Let all rows of a frame or file come, end the stream, and give what left as a `Release` with its certificate.

    Rows come as they stand, or in an order that the stream's secret draws ("shuffled"). Classes are read back from the written
    cells (and the number of the window); `partition` tells the class of every input row, -1 where it was suppressed.

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
    if columns.rows == 0:
        raise BadInput("the table has no rows", right="give at least one row")
    came = np.arange(columns.rows) if order == ORDERS[0] else stream.choice("replay").permutation(columns.rows)
    columns = columns.take(came)
    left = [*stream.blocks_of(columns), *stream.blocks_at_end()]
    if not left:
        measured = "every row was suppressed"
        raise Unsatisfiable(f"a release by {stream.name}", measured, "ask for less, or give rows more time to wait")
    rows = np.concatenate([block.rows for block in left])
    released, behind = _sort_rows(stream, concat_columns([block.columns for block in left]), rows)
    reading, certificate = _certify_replay(stream, columns, released, behind)
    partition = np.full(columns.rows, -1, dtype=np.int32)
    partition[came[behind]] = reading.class_of
    path = table if isinstance(table, str | PathLike) else None
    return Release(
        released,
        certificate,
        partition=partition,
        recipe=_recipe(stream, path),
        like=None if path or isinstance(table, Columns) else table,
        format="parquet" if path and kind_of(path) == ".parquet" else "csv",
        origin=Origin(columns.take(np.argsort(came)), stream.schema, tuple(stream.models)),
    )


def refuse_started(stream: object) -> None:
    """What is no stream, or no new one."""
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
    """Read back as a stranger would and judged; what compares with windows is judged against them, at home."""
    schema = _build_public_schema(stream, released)
    rows = stream.coder.encode(columns, 0)
    persons = None if stream.schema.person is None else dict.fromkeys(schema.published, rows.persons[behind])
    own = [model for model in stream.models if not model.compares]
    joint = all_secrets(schema)
    reading = generalized().read(released, schema, persons, joints([*own, *filter(None, [joint])]))
    certificate = certify(
        reading,
        own,
        version=__version__,
        form={"generalized": {}},
        suppressed=columns.rows - released.rows,
        home=PrivateContext(persons is not None),
        notes=notes(stream, checked=True),
        joint=joint,
        allow_vacuous=True,
    )
    windows = np.array(list_texts(released[WINDOW]))[released[WINDOW].codes].astype(np.int64) if stream.scope else None
    held = stream.recheck_models(rows, behind, reading.class_of, windows)
    guarantees = dict(zip(own, certificate.guarantees, strict=True))
    for model in (*stream.models, *stream.extra_models):
        guarantees.setdefault(model, _attest_guarantee(stream, model, held))
    return reading, certificate.model_copy(
        update={"guarantees": tuple(guarantees[m] for m in (*stream.models, *stream.extra_models))}
    )


def _attest_guarantee(stream: Stream, model: Model, held: Mapping[Model, bool]) -> Guarantee:
    guarantee = attest_model(stream, model, held.get(model, True))
    if not guarantee.met:
        raise Unsatisfiable(guarantee.text, "judged against its window at home, it is not kept", "choose another stream")
    return guarantee


def _build_public_schema(stream: Stream, released: Columns) -> Schema:
    """Declared kinds; of a tree that was made from data only what is written."""
    secret = {}
    for name, kind in stream.schema.sensitive.items():
        secret[name] = kind.publish_kind(stream.schema.encode_column(released[name], name, kind)[1].texts, sensitive=True)
    shown = render_schema(stream, {})
    return Schema(quasi=shown.quasi, sensitive=secret, plain=shown.plain, importance=shown.importance)


def _recipe(stream: Stream, path: str | PathLike[str] | None) -> dict[str, Any]:
    """Enough to run the stream again; the secret that it drew stays with its checkpoint."""
    beside = ("schema", "models", "seed")
    params = {name: value for name, value in stream.init_params.items() if name not in beside}
    params |= {name: model_form(value) for name, value in params.items() if hasattr(value, "run")}
    recipe: dict[str, Any] = {} if path is None else {"data": {"path": str(Path(path).resolve())}}
    recipe |= {
        "schema": stream.schema.forms(),
        "models": [model_form(model) for model in stream.init_params.get("models") or ()],
    }
    recipe |= {"stream": {stream.name: params}} | (
        {} if stream.init_params.get("seed") is None else {"seed": stream.init_params["seed"]}
    )
    return recipe
