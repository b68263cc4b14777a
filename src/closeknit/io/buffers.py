"""Numpy and Arrow over the same memory, because `pa.array`, `pa.scalar` and `to_numpy` would import pandas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from closeknit.core.columns import Codes


def numbers_to_arrow(numbers: NDArray[np.generic], kind: pa.DataType | None = None) -> pa.Array:
    """Fixed-width values as an Arrow array without gaps.

    >>> numbers_to_arrow(np.array([1, 2], dtype=np.int8)).to_pylist()
    [1, 2]
    """
    whole = np.ascontiguousarray(numbers)
    kind = kind or pa.from_numpy_dtype(whole.dtype)
    if whole.dtype == bool:
        whole = np.packbits(whole, bitorder="little")
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(whole)])


def codes_to_arrow(codes: Codes) -> pa.Array:
    """Codes as Arrow indices, -1 as a gap.

    >>> codes_to_arrow(np.array([0, -1], dtype=np.int32)).to_pylist()
    [0, None]
    """
    there = codes >= 0
    gaps = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(pa.int32(), len(codes), [gaps, pa.py_buffer(np.ascontiguousarray(codes))])


def texts_to_arrow(texts: Sequence[str]) -> pa.Array:
    """Strings as an Arrow array with 64-bit offsets.

    >>> texts_to_arrow(["a", "", "ü"]).to_pylist()
    ['a', '', 'ü']
    """
    pieces = [text.encode() for text in texts]
    offsets = np.zeros(len(pieces) + 1, dtype=np.int64)
    np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(pieces))]
    return pa.Array.from_buffers(pa.large_string(), len(pieces), buffers)


def numbers_from_arrow(array: pa.Array) -> NDArray[np.generic]:
    """The values of a fixed-width array; values at gaps are undefined.

    >>> numbers_from_arrow(numbers_to_arrow(np.array([1.5, 2.5]))).tolist()
    [1.5, 2.5]
    """
    data = array.buffers()[1]
    if not len(array) or data is None:
        return np.zeros(len(array), dtype=array.type.to_pandas_dtype())
    if pa.types.is_boolean(array.type):
        return _bits(data, array)
    return np.frombuffer(data, dtype=array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]


def codes_from_arrow(indices: pa.Array) -> Codes:
    """Arrow indices as codes, a gap as -1.

    >>> codes_from_arrow(codes_to_arrow(np.array([0, -1], dtype=np.int32))).tolist()
    [0, -1]
    """
    codes = numbers_from_arrow(indices).astype(np.int32)
    gaps = indices.buffers()[0]
    if gaps is not None and indices.null_count:
        codes[~_bits(gaps, indices)] = -1
    return codes


def _bits(data: pa.Buffer, array: pa.Array) -> NDArray[np.bool_]:
    packed = np.frombuffer(data, dtype=np.uint8)
    return np.unpackbits(packed, bitorder="little", count=array.offset + len(array))[array.offset :].astype(bool)
