"""SIMD instructions: compare eight codes or copy sixteen bytes at once, which the compiler does not derive from a loop.

Rows and boxes are stored in lanes: their columns, padded to a multiple of eight. A box is a row of lower ends, then one of
upper ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare
from closeknit.kernels.geometry.boxes import Codes

LANES = 8

Bytes = NDArray[np.uint8]


def _eight(typing: Any, boxes: Any, at: Any, over: Any, rows: Any, x: Any) -> Any:
    """Widen eight lower ends at index `at` of the flat boxes, and eight upper ends `over` later, by the codes at index `x`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        eight = ir.VectorType(ir.IntType(32), LANES)

        def at_place(array: int, place: Any) -> Any:
            data = context.make_array(signature.args[array])(context, builder, args[array]).data
            return builder.bitcast(builder.gep(data, [place]), eight.as_pointer())

        codes = builder.load(at_place(3, args[4]), align=4)
        for place, sign in ((args[1], "<"), (builder.add(args[1], args[2]), ">")):
            there = at_place(0, place)
            old = builder.load(there, align=4)
            builder.store(builder.select(builder.icmp_signed(sign, codes, old), codes, old), there, align=4)
        return context.get_dummy_value()

    return types.void(boxes, types.int64, types.int64, rows, types.int64), build


def _sixteen(typing: Any, out: Any, at: Any, source: Any, first: Any) -> Any:
    """Copy sixteen bytes from index `first` of the source to index `at`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sixteen = ir.VectorType(ir.IntType(8), 2 * LANES)

        def at_place(array: int, place: Any) -> Any:
            data = context.make_array(signature.args[array])(context, builder, args[array]).data
            return builder.bitcast(builder.gep(data, [place]), sixteen.as_pointer())

        builder.store(builder.load(at_place(2, args[3]), align=1), at_place(0, args[1]), align=1)
        return context.get_dummy_value()

    return types.void(out, types.int64, source, types.int64), build


_widen_eight: Any = intrinsic(_eight)
_copy_sixteen: Any = intrinsic(_sixteen)


@bare
def width_of(columns: int) -> int:
    """Return the number of lanes for this many columns.

    >>> width_of(3), width_of(9)
    (8, 16)
    """
    return -(-columns // LANES) * LANES


@bare
def widen(boxes: Codes, box: int, rows: Codes, x: int, width: int) -> None:
    """Widen box `box` so that it covers row x; both arrays are flat.

    >>> boxes = np.array([5] * 8 + [6] * 8, np.int32)
    >>> widen(boxes, 0, np.arange(8, dtype=np.int32), 0, 8)
    >>> boxes.tolist()
    [0, 1, 2, 3, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7]
    """
    for lane in range(0, width, LANES):
        _widen_eight(boxes, 2 * box * width + lane, width, rows, x * width + lane)


@bare
def copy(out: Bytes, at: int, source: Bytes, first: int, length: int) -> None:
    """Copy bytes to index `at`; up to fifteen more are read and written after them, so both arrays need that much padding.

    >>> out = np.zeros(20, np.uint8)
    >>> copy(out, 1, np.frombuffer(b"abc" + bytes(15), np.uint8), 1, 2)
    >>> out[:4].tobytes()
    b'\\x00bc\\x00'
    """
    for x in range(0, length, 2 * LANES):
        _copy_sixteen(out, at + x, source, first + x)
