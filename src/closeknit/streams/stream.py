"""`Stream`: what all stream algorithms share. Rows get positions, wait, and leave in whole classes; these are written here.

An algorithm says which rows leave together (`_arrive`, `_due`, `_end` give `Emission`s); it never writes. A class leaves as one
batch, its rows in the order of their written cells, so that neither arrival nor person shows. All choices derive from a secret
of 256 bits that is drawn once and kept in the checkpoint, and from what is decided: unpredictable outside, the same on replay.
"""

from __future__ import annotations

import hashlib
import inspect
import secrets as operating_system
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import Certificate
from closeknit.core.columns import Column, Columns, concat_columns
from closeknit.core.dates import with_format
from closeknit.core.errors import BadInput
from closeknit.core.model import Model
from closeknit.core.params import whole
from closeknit.core.schema import Schema, require_schema
from closeknit.core.table import WrittenTable
from closeknit.io.files import read
from closeknit.io.frames import to_frame
from closeknit.kernels.geometry.declared_axes import box_cost, box_costs, boxes_of
from closeknit.streams.arrivals import Arrivals, Coder, Ints, Reals
from closeknit.streams.batch_writing import write_classes
from closeknit.streams.checkpoint import load, save
from closeknit.streams.counters import Counters
from closeknit.streams.pending import Pending
from closeknit.streams.rolling_certificate import build_certificate, count_classes

BLOCK = 4096  # rows of a frame that are taken at once: memory does not grow with the frame
BASE = frozenset({"schema", "models", "secret", "coder", "pending", "counters", "position", "ended", "init_params", "_names"})
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Emission:
    """A class that leaves now: the positions of its rows, and the box that is written (theirs where none is given)."""

    positions: Ints
    box: tuple[Reals, Reals] | None = None
    window: int | None = None  # the guarantee's scope, published
    at: int | None = None  # the position that is being handled; left out, that of the last row that came
    joins: bool = False  # a class that was published before


@dataclass(frozen=True)
class Scope:
    """Of a stream whose guarantees compare with a part of it: how the certificate speaks of that."""

    text: str  # follows the guarantee
    note: str  # follows what the guarantees cover
    why: str  # nobody else can tell


@dataclass(frozen=True, eq=False)
class _PendingWrite:
    """A class that has left `pending` and is not written yet."""

    leaving: Emission
    lo: Reals
    hi: Reals


class Stream(ABC):
    """The contract: `push`, `push_many`, `tick`, `flush`, `save`, `load`. Whoever needs each batch apart asks `batches_of`,
    `batches_due` and `batches_at_end`."""

    name: ClassVar[str]
    timed: bool = False  # whether `tick` matters: a delay in seconds counts from the last tick before a row came
    clock: Any = None  # of a timed stream: what tells the time of a row; "tick" is the last tick
    init_params: Mapping[str, Any]  # what it was made with; kept with the checkpoint
    scope: Scope | None = None
    folds: bool = False  # whether its rows know sensitive values by what they fold to
    extra_models: Sequence[Model] = ()  # guarantees beside `models`, counted at home

    def __new__(cls, *args: Any, **params: Any) -> Self:
        stream = super().__new__(cls)
        if args or params:  # a copy is made without any
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
        self._names: tuple[str, ...] | None = None  # of the last row that was pushed

    def push(self, row: Mapping[str, Any]) -> list[Row]:
        """One row comes; the rows that leave now."""
        if not isinstance(row, Mapping) or (names := tuple(row)) != self._names:
            _check_names(self.schema, row)
            self._names = names
        self._refuse_ended()
        left = self._emit_all(self._accept(self.coder.encode_row(row, self.position)))
        return _as_rows(self._write_classes(left).columns) if left else []

    @property
    def due(self) -> float | None:
        """When the next row has to leave, in seconds; None where none waits or no time tells."""
        return None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a certificate has to say beside the guarantees."""
        return ()

    @property
    def certificate(self) -> Certificate:
        """What holds for all rows that have left so far."""
        return build_certificate(self)

    def push_many(self, frame: Any) -> Any:
        """All rows of a frame come, one after the other; a frame of the rows that leave."""
        columns = read(frame, None, self.schema.list_needed)
        whole_frame = self._join_batches(block.columns for block in self.blocks_of(columns))
        return whole_frame if isinstance(frame, Columns) else to_frame(whole_frame, frame, text=self.schema.quasi)

    def tick(self, now: float) -> list[Row]:
        """Time has come; the rows whose delay is over leave, also when no row comes."""
        return _as_rows(self._join_batches(self.batches_due(now)))

    def flush(self) -> list[Row]:
        """The stream has ended; what may still leave, leaves, and the rest is suppressed."""
        self._refuse_ended()
        return _as_rows(self._join_batches(block.columns for block in self.blocks_at_end()))

    def blocks_of(self, columns: Columns) -> Iterator[WrittenTable]:
        """As `push_many`, block by block, and the position of each row that leaves: that stays at home."""
        self._refuse_ended()
        meanings = self.coder.meanings(columns)
        for a in range(0, columns.rows, BLOCK):
            rows = meanings.rows(a, min(a + BLOCK, columns.rows), self.position)
            if left := self._emit_all(self._accept(rows)):
                yield self._write_classes(left)

    def blocks_at_end(self) -> Iterator[WrittenTable]:
        """As `flush`, in the same way."""
        self._refuse_ended()
        if left := self._emit_all(self._end()):
            yield self._write_classes(left)
        self._close()

    def batches_of(self, columns: Columns) -> Iterator[Columns]:
        """As `push_many`, batch by batch. Rows that are refused leave the stream as it was."""
        self._refuse_ended()
        yield from self._batches(self._accept(self.coder.encode(columns, self.position)))

    def batches_due(self, now: float) -> Iterator[Columns]:
        """As `tick`, batch by batch."""
        self._refuse_ended()
        yield from self._batches(self._due(seconds(now)))

    def batches_at_end(self) -> Iterator[Columns]:
        """As `flush`, batch by batch."""
        self._refuse_ended()
        yield from self._batches(self._end())
        self._close()

    def save(self, path: str | PathLike[str]) -> None:
        """A private file from which `load` goes on as if nothing had happened; it appears whole or not at all."""
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The stream that was saved; a file of another algorithm or version is refused."""
        stream = load(path, cls)
        assert isinstance(stream, cls)
        return stream

    # what an algorithm says ------------------------------------------------------------------------------------------

    @abstractmethod
    def _arrive(self, rows: Arrivals, first: int) -> Iterable[Emission | list[Emission]]:
        """Rows came (they are pending already); what leaves because of each of them, in order; a list leaves at once."""

    @abstractmethod
    def _end(self) -> Iterable[Emission | list[Emission]]:
        """No row will come."""

    def _due(self, now: float) -> Iterable[Emission | list[Emission]]:
        """The time is now; nothing to do where a delay is counted in rows."""
        return ()

    def _state(self) -> dict[str, Any]:
        """What a checkpoint keeps of the algorithm beside pending rows, counters, secret: numbers, texts, bytes, dates, None,
        arrays, and lists, tuples, sets and dicts of them. Left as it is: whatever `self` has that `Stream` does not know.
        Say less where something can be made again (and then make it in `_restore`), never more than the delay bounds."""
        return {name: value for name, value in vars(self).items() if name not in BASE}

    def _restore(self, state: dict[str, Any]) -> None:
        """Go on from what `_state` gave: called on a new stream made with the same parameters, after its pending rows, counters
        and secret have been put back."""
        for name, value in state.items():
            setattr(self, name, value)

    # what it may use ---------------------------------------------------------------------------------------------------

    def recheck_models(
        self, rows: Arrivals, positions: Ints, class_of: NDArray[np.integer], windows: Ints | None
    ) -> dict[Model, bool]:
        """After a whole stream: which guarantees that compare with a part of it are kept by these classes of its rows."""
        return {}

    def _suppress(self, positions: Ints) -> None:
        """These rows never leave; they are counted."""
        self.counters.suppressed += len(positions)
        if len(positions):
            self.pending.drop(positions)

    def choice(self, *what: object) -> np.random.Generator:
        """Random numbers for one decision, from the secret and what is decided."""
        text = "/".join(str(part) for part in what)
        return np.random.default_rng(np.frombuffer(hashlib.sha256(self.secret + text.encode()).digest(), dtype=np.uint64))

    # how it is written -------------------------------------------------------------------------------------------------

    def _refuse_ended(self) -> None:
        if self.ended:
            raise BadInput("the stream has ended", right="nothing can be pushed after flush(); begin another one")

    def _accept(self, rows: Arrivals) -> Iterable[Emission | list[Emission]]:
        """Rows get their positions and wait."""
        first = self.position
        self.pending.add(rows, first)
        self.position += len(rows)
        self.counters.rows_in += len(rows)
        self.counters.unknown += rows.unknown
        return self._arrive(rows, first)

    def _join_batches(self, batches: Iterable[Columns]) -> Columns:
        return concat_columns(list(batches) or [self._empty()])

    def _batches(self, leaving: Iterable[Emission | list[Emission]]) -> Iterator[Columns]:
        return (self._write_classes([one]).columns for each in leaving for one in self._emit(each))

    def _emit_all(self, leaving: Iterable[Emission | list[Emission]]) -> list[_PendingWrite]:
        return [one for each in leaving for one in self._emit(each)]

    def _emit(self, leaving: Emission | list[Emission]) -> list[_PendingWrite]:
        return [self._emit_one(leaving)] if isinstance(leaving, Emission) else self._emit_many(leaving)

    def _emit_many(self, classes: list[Emission]) -> list[_PendingWrite]:
        """As one after the other, but quicker; each is written as the box of its rows."""
        if not classes:
            return []
        rows = np.concatenate([each.positions for each in classes])
        class_of = np.repeat(np.arange(len(classes)), [len(each.positions) for each in classes])
        lo, hi = boxes_of(self.pending.quasi(rows), class_of, len(classes))
        at = self.position - 1 if classes[0].at is None else classes[0].at
        losses = box_costs(self.coder.axes, lo, hi)
        self.counters.count_classes(rows, class_of, self.pending.persons(rows), losses, at)
        self.pending.drop(rows)
        return [_PendingWrite(*each) for each in zip(classes, lo, hi, strict=True)]

    def _close(self) -> None:
        self._suppress(self.pending.positions())
        self.ended = True

    def _emit_one(self, leaving: Emission) -> _PendingWrite:
        """A class is counted and waits no more before the next one is asked for."""
        rows, at = leaving.positions, self.position - 1 if leaving.at is None else leaving.at
        lo, hi = leaving.box or (side[0] for side in boxes_of(self.pending.quasi(rows), np.zeros(len(rows), np.int64), 1))
        loss = float(box_cost(self.coder.axes, lo, hi))
        self.counters.count_class(rows, None if leaving.joins else self.pending.persons(rows), loss, at)
        self.pending.drop(rows)
        return _PendingWrite(leaving, lo, hi)

    def _write_classes(self, left: Sequence[_PendingWrite]) -> WrittenTable:
        """Their cells: they stay in the ring until the next rows come."""
        positions = np.concatenate([each.leaving.positions for each in left])
        rows, sizes = self.pending.take(positions), [len(each.leaving.positions) for each in left]
        lo, hi = np.stack([each.lo for each in left]), np.stack([each.hi for each in left])
        count_classes(self, rows, sizes, lo, hi, [each.leaving.joins for each in left])
        found = write_classes(self.coder, rows, sizes, lo, hi, [each.leaving.window for each in left])
        return WrittenTable(found.columns, positions[found.rows])

    def _empty(self) -> Columns:
        return Columns({name: Column(np.empty(0, dtype=object), np.empty(0, np.int32)) for name in self.schema.published}, 0)


def _refuse(schema: Schema) -> None:
    """What a stream cannot serve."""
    if not require_schema(schema).quasi:
        raise BadInput("the schema has no quasi column", right="name the columns by which a person could be recognised")
    for name in schema.quasi:
        if name in schema.sensitive:
            raise BadInput("is quasi and sensitive", column=name, right="give it one role")
    for name in schema.plain:
        if name not in schema.allow_unique:
            right = "make it quasi, sensitive or identifier, or name it in allow_unique: in a stream a timestamp is a position"
            raise BadInput("is plain in a stream", column=name, right=right)
    if "window" in schema.published:
        raise BadInput("is the name of the window's number", column="window", right="give the column another name")


def _derive_secret(seed: int) -> bytes:
    return hashlib.sha256(b"stream" + str(whole("seed", seed, least=0)).encode()).digest()


def seconds(now: float) -> float:
    """A time that somebody tells."""
    try:
        if isfinite(told := float(now)):
            return told
    except (TypeError, ValueError, OverflowError):
        pass
    raise BadInput(f"{now!r} is no time", right="give seconds, as time.time() does")


def _check_names(schema: Schema, row: Mapping[str, Any]) -> None:
    if not isinstance(row, Mapping):
        right = "give a mapping of column names to cells; push_many takes tables"
        raise BadInput(f"a {type(row).__name__} is not a row", right=right)
    for name in schema.list_needed(list(row)):
        if name not in row:
            raise BadInput("is not in the row", column=name, right="give every column of the schema; None where it is missing")


def _as_rows(columns: Columns) -> list[Row]:
    cells = {name: column.cells() for name, column in columns.items()}
    return [{name: column[i] for name, column in cells.items()} for i in range(columns.rows)]
