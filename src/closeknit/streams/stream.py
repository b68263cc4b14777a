"""`Stream`: what all stream algorithms share. Rows get positions, wait, and are published in whole classes, written here.

An algorithm decides which rows are published together (`_arrive`, `_due`, `_end` yield `Emission`s); it never writes. A class
is published as one batch, its rows in the order of their written cells, which reveals neither arrival nor person. All choices
derive from a 256-bit secret, drawn once and kept in the checkpoint, and from the decision at hand: unpredictable to others,
and the same on replay.
"""

from __future__ import annotations

import hashlib
import inspect
import secrets as operating_system
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import Certificate
from closeknit.core.columns import NO_CELLS, Columns, concat_columns
from closeknit.core.dates import with_format
from closeknit.core.errors import BadInput
from closeknit.core.model import Model
from closeknit.core.params import whole
from closeknit.core.schema import Schema, require_schema
from closeknit.core.table import WrittenTable
from closeknit.io.files import read
from closeknit.io.frames import to_frame
from closeknit.kernels.arrays import Reals
from closeknit.kernels.geometry.declared_axes import box_costs, boxes_of
from closeknit.streams.arrivals import Arrivals, Coder, Ints
from closeknit.streams.batch_writing import write_classes
from closeknit.streams.cell_notes import count_cells
from closeknit.streams.checkpoint import load, save
from closeknit.streams.counters import Counters
from closeknit.streams.drift import admit_values, refuse_outside
from closeknit.streams.input_rules import InputRules
from closeknit.streams.pending import Pending
from closeknit.streams.rolling_certificate import Scope, build_certificate, count_classes

BLOCK = 4096  # rows of a frame that are processed at once: memory does not grow with the frame
BASE = frozenset(
    {"schema", "models", "secret", "coder", "pending", "counters", "position", "ended", "init_params", "rules", "_names"}
)
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Emission:
    """A class to be published now.

    Args:
        positions: the positions of its rows.
        box: the lower and upper ends that are written; by default those of its rows.
        window: the window whose guarantees it meets, which is published.
        at: the position that is being handled; by default that of the last row.
        joins: whether it extends a class that was published before.
    """

    positions: Ints
    box: tuple[Reals, Reals] | None = None
    window: int | None = None
    at: int | None = None
    joins: bool = False


Emissions = Emission | list[Emission]


class Stream(ABC):
    """Base class of stream algorithms: `push`, `push_many`, `tick`, `flush`, `save`, `load`, and a rolling `certificate`.

    A subclass defines `_arrive` and `_end`; every other hook has a default. `batches_of`, `batches_due` and `batches_at_end`
    return one batch at a time.

    Args:
        schema: roles and kinds of the columns; every quasi domain must be declared.
        models: the requested guarantees.
        seed: makes all choices reproducible; by default the secret is random.
    """

    name: ClassVar[str] = ""
    timed: bool = False  # whether `tick` matters: a delay in seconds counts from the last tick before a row arrived
    longest_delay: float | None = None  # that is guaranteed, in rows, or in seconds if it is timed
    clock: Any = None  # of a timed stream: a function that returns seconds, or "tick" for the last tick
    init_params: Mapping[str, Any]  # kept in the checkpoint
    scope: Scope | None = None
    rules: InputRules = InputRules()  # for rows that do not arrive as declared
    reuse: bool | str = False  # whether rows may be published with a generalization that was published before: see `Castle`
    folds: bool = False  # whether look-alike sensitive values count as one
    extra_models: Sequence[Model] = ()  # further guarantees, measured privately

    def __new__(cls, *args: Any, **params: Any) -> Self:
        stream = super().__new__(cls)
        if args or params:  # a copy has neither
            stream.init_params = inspect.signature(cls.__init__).bind(stream, *args, **params).arguments
            stream.init_params.pop("self", None)
        return stream

    def __init__(self, schema: Schema, models: Sequence[Model], seed: int | None = None) -> None:
        _refuse(schema)
        schema = schema.with_kinds(with_format)
        self.schema, self.models = schema, tuple(models)
        self.secret = operating_system.token_bytes(32) if seed is None else _derive_secret(seed)
        self.coder = Coder(schema, self.secret, self.folds)
        self.pending = Pending()
        self.counters = Counters()
        self.position = 0  # of the next row
        self.ended = False
        self._names: tuple[str, ...] | None = None  # columns of the last row pushed

    def push(self, row: Mapping[str, Any]) -> list[Row]:
        """Add one row.

        Args:
            row: a cell for each column of the schema; None where it is missing.

        Returns:
            The rows that are published now.
        """
        if not isinstance(row, Mapping) or (names := tuple(row)) != self._names:
            _check_names(self.schema, row)
            self.rules.refuse_run_rules("push")
            self._names = names
        self._refuse_ended()
        classes = self._emit_all(self._accept(self.coder.encode_row(row, self.position)))
        return self._write_classes(classes).columns.list_rows() if classes else []

    @property
    def due(self) -> float | None:
        """When the next row must be published, in seconds; None if no row waits or the delay is counted in rows."""
        return None

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes for the certificate in addition to the guarantees."""
        return ()

    @property
    def certificate(self) -> Certificate:
        """What holds for all rows published so far."""
        return build_certificate(self)

    def push_many(self, frame: Any) -> Any:
        """Add all rows of a table, one after the other.

        Args:
            frame: a table of pandas, polars or Arrow, or `Columns`.

        Returns:
            The rows that are published, as a table of the same library.
        """
        self.rules.refuse_run_rules("push_many")
        columns = read(frame, None, self.schema.list_needed)
        written = self._join_batches(block.columns for block in self.blocks_of(columns))
        return written if isinstance(frame, Columns) else to_frame(written, frame, text=self.schema.quasi)

    def tick(self, now: float) -> list[Row]:
        """Advance the clock, also if no row arrives.

        Args:
            now: the time in seconds.

        Returns:
            The rows whose delay is over.
        """
        return self._join_batches(self.batches_due(now)).list_rows()

    def flush(self) -> list[Row]:
        """End the stream.

        Returns:
            The rows that can still be published; the remaining ones are suppressed.
        """
        self._refuse_ended()
        return self._join_batches(block.columns for block in self.blocks_at_end()).list_rows()

    def blocks_of(self, columns: Columns) -> Iterator[WrittenTable]:
        """As `push_many`, block by block, with the position of each published row, which is private.

        Args:
            columns: the rows that arrive.
        """
        self._refuse_ended()
        meanings = self.coder.meanings(columns)
        refuse_outside(self, meanings)
        for a in range(0, columns.rows, BLOCK):
            rows = meanings.rows(a, min(a + BLOCK, columns.rows), self.position)
            if classes := self._emit_all(self._accept(rows)):
                yield self._write_classes(classes)

    def blocks_at_end(self) -> Iterator[WrittenTable]:
        """As `flush`, with the position of each published row, which is private."""
        self._refuse_ended()
        if classes := self._emit_all(self._end()):
            yield self._write_classes(classes)
        self._close()

    def batches_of(self, columns: Columns) -> Iterator[Columns]:
        """As `push_many`, batch by batch. If a row is refused, the stream is unchanged.

        Args:
            columns: the rows that arrive.
        """
        self._refuse_ended()
        yield from self._batches(self._accept(self.coder.encode(columns, self.position)))

    def batches_due(self, now: float) -> Iterator[Columns]:
        """As `tick`, batch by batch.

        Args:
            now: the time in seconds.
        """
        self._refuse_ended()
        yield from self._batches(self._due(seconds(now)))

    def batches_at_end(self) -> Iterator[Columns]:
        """As `flush`, batch by batch."""
        self._refuse_ended()
        yield from self._batches(self._end())
        self._close()

    def save(self, path: str | PathLike[str]) -> None:
        """Write a private checkpoint, whole or not at all.

        Args:
            path: the file, from which `load` resumes.
        """
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Resume from a checkpoint; a file of another algorithm or version is refused.

        Args:
            path: a file that `save` wrote.
        """
        stream = load(path, cls)
        assert isinstance(stream, cls)
        return stream

    # what an algorithm defines -----------------------------------------------------------------------------------------

    @abstractmethod
    def _arrive(self, rows: Arrivals, first: int) -> Iterable[Emissions]:
        """Rows arrived, the first at position `first`, and are pending; yield what each makes publishable, in order.

        Classes in one list are published at once.
        """

    @abstractmethod
    def _end(self) -> Iterable[Emissions]:
        """No more rows arrive; yield what can still be published."""

    def _due(self, now: float) -> Iterable[Emissions]:
        """The time is `now`; yield the classes that are due. By default none: the delay is counted in rows."""
        return ()

    def _state(self) -> dict[str, Any]:
        """What a checkpoint keeps of the algorithm in addition to pending rows, counters and secret.

        Numbers, texts, bytes, dates, None, arrays, and lists, tuples, sets and dicts of them. By default all attributes that
        `Stream` does not define. Return less where `_restore` can derive the rest; the size must be bounded by the delay.
        """
        return {name: value for name, value in vars(self).items() if name not in BASE}

    def _restore(self, state: dict[str, Any]) -> None:
        """Resume from `_state`, in a new stream with the same parameters, pending rows, counters and secret."""
        for name, value in state.items():
            setattr(self, name, value)

    def recheck_models(
        self, rows: Arrivals, positions: Ints, class_of: NDArray[np.integer], windows: Ints | None
    ) -> dict[Model, bool]:
        """After a whole stream: for guarantees that compare with a part of it, whether the published classes meet them.

        Args:
            rows: all rows of the stream.
            positions: the published ones.
            class_of: the class of each published row.
            windows: the window of each published row.
        """
        return {}

    # what it may use ---------------------------------------------------------------------------------------------------

    def _suppress(self, positions: Ints) -> None:
        """Count these rows as suppressed and forget them."""
        self.counters.suppressed += len(positions)
        if len(positions):
            self.pending.drop(positions)

    def choice(self, *what: object) -> np.random.Generator:
        """Random numbers for one decision, from the private seed of the stream.

        Args:
            what: the name of the decision and what identifies it.
        """
        text = "/".join(str(part) for part in what)
        return np.random.default_rng(np.frombuffer(hashlib.sha256(self.secret + text.encode()).digest(), dtype=np.uint64))

    # how classes are written -------------------------------------------------------------------------------------------

    def _refuse_ended(self) -> None:
        if self.ended:
            raise BadInput("the stream has ended", right="nothing can be pushed after flush(); begin a new stream")

    def _accept(self, rows: Arrivals) -> Iterable[Emissions]:
        """Give rows their positions and hand them to the algorithm."""
        first = self.position
        admit_values(self, rows)
        self.pending.add(rows, first)
        self.position += len(rows)
        self.counters.rows_in += len(rows)
        return self._arrive(rows, first)

    def _join_batches(self, batches: Iterable[Columns]) -> Columns:
        return concat_columns(list(batches) or [self._empty()])

    def _batches(self, emissions: Iterable[Emissions]) -> Iterator[Columns]:
        return (self._write_classes([one]).columns for each in emissions for one in self._emit(each))

    def _emit_all(self, emissions: Iterable[Emissions]) -> list[Emission]:
        return [one for each in emissions for one in self._emit(each)]

    def _emit(self, emitted: Emissions) -> list[Emission]:
        """Count classes and remove them from `pending` before the algorithm is asked for the next one."""
        classes = [emitted] if isinstance(emitted, Emission) else emitted
        if not classes:
            return []
        rows = np.concatenate([each.positions for each in classes])
        class_of = np.repeat(np.arange(len(classes)), [len(each.positions) for each in classes])
        lo, hi = boxes_of(self.pending.quasi(rows), class_of, len(classes))
        for i, each in enumerate(classes):
            lo[i], hi[i] = each.box or (lo[i], hi[i])
        at = self.position - 1 if classes[0].at is None else classes[0].at
        persons, losses = self.pending.persons(rows), box_costs(self.coder.axes, lo, hi)
        self.counters.count_classes(rows, class_of, None if classes[0].joins else persons, losses, at)
        self.pending.drop(rows)
        return [replace(each, box=box) for each, box in zip(classes, zip(lo, hi, strict=True), strict=True)]

    def _close(self) -> None:
        self._suppress(self.pending.positions())
        self.ended = True

    def _write_classes(self, classes: Sequence[Emission]) -> WrittenTable:
        """The cells of counted classes, whose rows stay in the ring until the next rows arrive."""
        positions, sizes = np.concatenate([each.positions for each in classes]), [len(each.positions) for each in classes]
        rows, boxes = self.pending.take(positions), [each.box for each in classes if each.box is not None]
        lo, hi = (np.stack(side) for side in zip(*boxes, strict=True))
        count_classes(self, rows, sizes, lo, hi, [each.joins for each in classes])
        written = write_classes(self.coder, rows, sizes, lo, hi, [each.window for each in classes])
        count_cells(self, written.columns, sizes)
        return WrittenTable(written.columns, positions[written.rows])

    def _empty(self) -> Columns:
        return Columns(dict.fromkeys(self.schema.published, NO_CELLS), 0)


def _refuse(schema: Schema) -> None:
    """Refuse a schema that a stream cannot serve."""
    if not require_schema(schema).quasi:
        raise BadInput("the schema has no quasi-identifier", right="name the columns that could identify a person")
    for name in schema.quasi:
        if name in schema.sensitive:
            raise BadInput("is quasi and sensitive", column=name, right="give it one role")
    for name in schema.plain:
        if name not in schema.allow_unique:
            right = "make it quasi, sensitive or identifier, or name it in allow_unique: in a stream a timestamp is a position"
            raise BadInput("is plain in a stream", column=name, right=right)
    if "window" in schema.published:
        raise BadInput("is the name of the window number", column="window", right="rename the column")


def _derive_secret(seed: int) -> bytes:
    return hashlib.sha256(b"stream" + str(whole("seed", seed, least=0)).encode()).digest()


def seconds(now: float) -> float:
    """A time in seconds, checked."""
    try:
        if isfinite(time := float(now)):
            return time
    except (TypeError, ValueError, OverflowError):
        pass
    raise BadInput(f"{now!r} is not a time", right="give seconds, as time.time() does")


def _check_names(schema: Schema, row: Mapping[str, Any]) -> None:
    if not isinstance(row, Mapping):
        right = "give a mapping of column names to cells; push_many takes tables"
        raise BadInput(f"a {type(row).__name__} is not a row", right=right)
    for name in schema.list_needed(list(row)):
        if name not in row:
            raise BadInput("is not in the row", column=name, right="give every column of the schema; None where it is missing")
