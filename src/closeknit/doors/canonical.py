"""The canonical CSV text of a table and the content hash that ties a frame, a CSV file and a Parquet file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from closeknit.core.columns import Codes, Column, Columns
from closeknit.doors.buffers import numbers_to_arrow, texts_to_arrow

BLOCK_ROWS = 65_536
_NOTHING = texts_to_arrow([""])[0]
_TO_QUOTE = re.compile('[,"\r\n]')


def canonical_blocks(columns: Columns) -> Iterator[bytes]:
    r"""The header line, then the lines of each block of rows: minimal quoting, `\n`, UTF-8, no value = empty cell.

    >>> list(canonical_blocks(Columns.of({"age": ["[30, 39]", "41"], "cost": [3.0, None]})))
    [b'age,cost\n', b'"[30, 39]",3\n41,\n']
    """
    alone = len(columns) == 1
    header = ",".join(_quoted(name, alone) for name in columns)
    yield (header + "\n").encode()
    if not columns:
        return
    ends = [","] * (len(columns) - 1) + ["\n"]
    cells = [_written(column, end, alone) for column, end in zip(columns.values(), ends, strict=True)]
    for first in range(0, columns.rows, BLOCK_ROWS):
        block = [texts.take(numbers_to_arrow(rows[first : first + BLOCK_ROWS])) for texts, rows in cells]
        yield _bytes_of(block[0] if alone else pc.binary_join_element_wise(*block, _NOTHING))


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
    """What stands for one block in the content hash.

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


def _float_text(value: np.floating) -> str:
    return str(value + 0).removesuffix(".0")  # + 0 turns -0.0 into 0.0


def _written(column: Column, end: str, alone: bool) -> tuple[pa.Array, Codes]:
    """The written text of each distinct value and, at the very last place, of no value; then the place of each row."""
    if column.values.dtype.kind in "iu":  # nothing to quote in a whole number
        texts = [f"{value}{end}" for value in column.values.tolist()] + [_quoted("", alone) + end]
    else:
        texts = [_quoted(text, alone) + end for text in [*cell_texts(column), ""]]
    return texts_to_arrow(texts), np.where(column.codes < 0, np.int32(len(texts) - 1), column.codes)


def _quoted(text: str, alone: bool) -> str:
    if _TO_QUOTE.search(text) or (alone and not text):
        return '"' + text.replace('"', '""') + '"'
    return text


def _bytes_of(lines: pa.Array) -> bytes:
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)
    first, last = int(ends[lines.offset]), int(ends[lines.offset + len(lines)])
    return data.slice(first, last - first).to_pybytes()
