"""The canonical CSV text of a table, and the content hash that a frame, a CSV file and a Parquet file share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.kernels.text.csv_lines import SPARE, lines, whole_numbers
from closeknit.kernels.threads import in_threads

BLOCK_ROWS = 65_536
AT_ONCE = 8  # blocks that are rendered in parallel; no more are in memory at once
_TO_QUOTE = re.compile('[,"\r\n]')


def canonical_blocks(columns: Columns) -> Iterator[bytes]:
    r"""The header line, then the lines of each block of rows: minimal quoting, `\n`, UTF-8, missing = empty cell.

    >>> list(canonical_blocks(Columns.of({"age": ["[30, 39]", "41"], "cost": [3.0, None]})))
    [b'age,cost\n', b'"[30, 39]",3\n41,\n']
    """
    alone = len(columns) == 1
    header = ",".join(_quote(name, alone) for name in columns)
    yield (header + "\n").encode()
    if not columns:
        return
    ends = [","] * (len(columns) - 1) + ["\n"]
    cells = [_render_values(column, end, alone) for column, end in zip(columns.values(), ends, strict=True)]
    places = np.cumsum([0, *(len(lengths) for lengths, _ in cells)])  # where the texts of each column begin
    starts = np.concatenate([[0], np.cumsum(np.concatenate([lengths for lengths, _ in cells]))])
    texts = np.concatenate([*(written for _, written in cells), np.zeros(SPARE, dtype=np.uint8)])

    def block(first: int) -> bytes:
        codes = np.stack([column.codes[first : first + BLOCK_ROWS] for column in columns.values()])
        return lines(codes, places, starts, texts).tobytes()

    for first in range(0, columns.rows, AT_ONCE * BLOCK_ROWS):
        end = min(columns.rows, first + AT_ONCE * BLOCK_ROWS)
        yield from in_threads(block, range(first, end, BLOCK_ROWS))


def content_hash(columns: Columns) -> str:
    """SHA-256 over the SHA-256 digests of the header and of each block of rows.

    >>> content_hash(Columns.of({"age": ["30"]})) == content_hash(Columns.of({"age": [30]}))
    True
    """
    return hash_of_blocks(canonical_blocks(columns))


def hash_of_blocks(blocks: Iterator[bytes]) -> str:
    """The content hash of a canonical text given as its blocks, header first.

    >>> hash_of_blocks(iter([b"age\\n", b"30\\n"])) == content_hash(Columns.of({"age": [30]}))
    True
    """
    return hash_of_digests(digest(block) for block in blocks)


def digest(block: bytes) -> bytes:
    """The digest of one block in the content hash.

    >>> digest(b"").hex()[:6]
    'e3b0c4'
    """
    return hashlib.sha256(block).digest()


def hash_of_digests(digests: Iterable[bytes]) -> str:
    """The content hash from the digests of the blocks, header first.

    >>> hash_of_digests([digest(b"age\\n"), digest(b"30\\n")]) == content_hash(Columns.of({"age": [30]}))
    True
    """
    return hashlib.sha256(b"".join(digests)).hexdigest()


def cell_texts(column: Column) -> list[str]:
    """The unquoted text of each distinct value: whole floats without `.0`, booleans as words, dates in ISO form.

    >>> cell_texts(Columns.of({"cost": [3.0, 0.5]})["cost"])
    ['3', '0.5']
    """
    values = column.values
    if values.dtype == bool:
        return ["true" if value else "false" for value in values.tolist()]
    if values.dtype.kind == "f":
        return [_float_text(value) for value in values]
    if values.dtype.kind == "M":
        return np.datetime_as_string(values.astype("datetime64[D]")).tolist()
    return [str(value) for value in values.tolist()]


def text_column(column: Column) -> Column:
    """The same cells as text.

    >>> text_column(Columns.of({"cost": [3.0, None, 1e16]})["cost"]).cells()
    ['3', None, '1e+16']
    """
    return Column(np.array(cell_texts(column), dtype=object), column.codes)


def _float_text(value: np.floating) -> str:
    return str(value + 0).removesuffix(".0")  # + 0 turns -0.0 into 0.0


def _render_values(column: Column, end: str, alone: bool) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The written text of each distinct value and, last, of a missing one: lengths, and all texts joined."""
    nothing = (_quote("", alone) + end).encode()
    if column.values.dtype.kind == "i":  # nothing to quote in a whole number
        starts, texts = whole_numbers(column.values.astype(np.int64), np.frombuffer(end.encode(), dtype=np.uint8))
        return np.append(np.diff(starts), len(nothing)), np.append(texts, np.frombuffer(nothing, dtype=np.uint8))
    pieces = [*((_quote(text, alone) + end).encode() for text in cell_texts(column)), nothing]
    return np.array([len(piece) for piece in pieces]), np.frombuffer(b"".join(pieces), dtype=np.uint8)


def _quote(text: str, alone: bool) -> str:
    if _TO_QUOTE.search(text) or (alone and not text):
        return '"' + text.replace('"', '""') + '"'
    return text
