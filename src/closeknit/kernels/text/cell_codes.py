"""Cells of a plain text table, without any quotes: each column's distinct cells are numbered in order of appearance.

One hash table serves all columns. The key of a short cell is the cell itself, with its length and column; longer ones are
compared byte by byte if their keys are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.geometry.boxes import Codes, Ints
from closeknit.kernels.geometry.sorted_buckets import Keys
from closeknit.kernels.lanes import Bytes

NEWLINE = 10
ROOM = 1 << 10  # initial capacity in distinct cells; one of four slots is used
SHORT, LONG = 6, 15  # bytes of a short cell, and the length code of any other
MOST_COLUMNS = 1 << 12
STEP = np.uint64(0x9E3779B97F4A7C15)


class CellTable(NamedTuple):
    """Distinct cells of all columns, and the hash table that finds them."""

    keys: Keys  # [slots]
    slots: Codes  # [slots] a cell and one, 0 where free
    entries: Ints  # [room, 4] column, code, start and end of each cell
    known: Ints  # [read columns] their number


@kernel
def read_cells(data: Bytes, first: int, end: int, delimiter: int, place: Ints, rows: int) -> tuple[int, Codes, Ints]:
    """Codes `[read columns, rows]` of the lines in `data[first:end]`, -1 for an empty cell, and every distinct cell.

    Column j is read as `place[j]`, and skipped where that is -1. A distinct cell is a row of its column, code, start and end.
    The first number is the number of rows; it is -1 if a line does not have as many cells as the others.

    >>> data = np.frombuffer(b"a,x\\nb,\\na,x\\n", np.uint8)
    >>> count, codes, distinct = read_cells(data, 0, len(data), ord(","), np.array([0, 1]), 3)
    >>> count, codes.tolist(), distinct.tolist()
    (3, [[0, 1, 0], [0, -1, 0]], [[0, 0, 0, 1], [1, 0, 2, 3], [0, 1, 4, 5]])
    """
    read = place.max() + 1
    codes = np.empty((read, rows), np.int32)
    room = ROOM
    while room < 2 * len(place):
        room *= 2
    keys, slots, entries = np.zeros(4 * room, np.uint64), np.zeros(4 * room, np.int32), np.empty((room, 4), np.int64)
    table = CellTable(keys, slots, entries, np.zeros(read, np.int64))
    state = np.array([0, first, 0])  # rows, the start of the next one, distinct cells
    while _read_rows(data, end, delimiter, place, codes, table, state):
        table = _roomier(table, state[2])
    return state[0], codes, table.entries[: state[2]].copy()


@bare
def _read_rows(data: Bytes, end: int, delimiter: int, place: Ints, codes: Codes, table: CellTable, state: Ints) -> bool:
    """Read rows until all are read or the capacity may not suffice for one more; whether the latter is so."""
    keys, slots, entries, known = table.keys, table.slots, table.entries, table.known
    width, row, at, count = len(place), state[0], state[1], state[2]
    while at < end and row >= 0 and count + width <= len(entries):
        if data[at] == NEWLINE and width > 1:  # an empty line
            at += 1
            continue
        for j in range(width):
            begin, cell = at, np.uint64(0)
            while at < end and data[at] != delimiter and data[at] != NEWLINE:
                cell = (
                    (cell << np.uint64(8)) ^ np.uint64(data[at]) if at < begin + SHORT else (cell ^ np.uint64(data[at])) * STEP
                )
                at += 1
            if (at < end and data[at] == delimiter) == (j == width - 1):
                row = -2
                break
            column = place[j]
            if column >= 0 and begin == at:
                codes[column, row] = -1
            elif column >= 0:
                slot = _slot(keys, slots, entries, data, _key(cell, column, at - begin), begin, at)
                if slots[slot] == 0:
                    entries[count, 0], entries[count, 1], entries[count, 2], entries[count, 3] = (
                        column,
                        known[column],
                        begin,
                        at,
                    )
                    keys[slot], slots[slot] = _key(cell, column, at - begin), count + 1
                    known[column] += 1
                    count += 1
                codes[column, row] = entries[slots[slot] - 1, 1]
            at += 1
        row += 1
    state[0], state[1], state[2] = row, at, count
    return at < end and row >= 0


@bare
def _key(cell: np.uint64, column: int, length: int) -> np.uint64:
    """The key of a cell; for a short cell its complete content. Never 0, which marks a free slot."""
    size = np.uint64(length if length <= SHORT else LONG)
    low = cell & np.uint64((1 << 8 * SHORT) - 1)
    return (size << np.uint64(60)) | (np.uint64(column) << np.uint64(8 * SHORT)) | low


@bare
def _slot(keys: Keys, slots: Codes, entries: Ints, data: Bytes, key: np.uint64, begin: int, end: int) -> int:
    """Find the slot of a cell, or the free slot for it."""
    slot = _first_slot(keys, key)
    while slots[slot] != 0:
        if keys[slot] == key and (end - begin <= SHORT or _same(data, entries, slots[slot] - 1, begin, end)):
            break
        slot = (slot + 1) & (len(keys) - 1)
    return slot


@bare
def _same(data: Bytes, entries: Ints, entry: int, begin: int, end: int) -> bool:
    same, first = 0, entries[entry, 2]
    while same < end - begin and data[first + same] == data[begin + same]:
        same += 1
    return same == end - begin == entries[entry, 3] - first


@bare
def _first_slot(keys: Keys, key: np.uint64) -> int:
    return whole(((key * STEP) >> np.uint64(32)) & np.uint64(len(keys) - 1))  # type: ignore[arg-type]


@kernel
def _roomier(table: CellTable, count: int) -> CellTable:
    """Double the capacity."""
    keys, slots, entries = table.keys, table.slots, table.entries
    more, there = np.zeros(2 * len(keys), np.uint64), np.zeros(2 * len(keys), np.int32)
    lines = np.empty((2 * len(entries), 4), np.int64)
    lines[:count] = entries[:count]
    for old in range(len(keys)):
        if slots[old] != 0:
            slot = _first_slot(more, keys[old])
            while there[slot] != 0:
                slot = (slot + 1) & (len(more) - 1)
            more[slot], there[slot] = keys[old], slots[old]
    return CellTable(more, there, lines, table.known)
