"""Build lines of text from few distinct cells: bytes in, bytes out.

Neighbouring lines of a sorted table begin with the same cells: the common start with the previous line is copied at once.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.geometry.boxes import Codes, Ints
from closeknit.kernels.lanes import Bytes, copy

SPARE = 15  # bytes after a text that copying may touch


@kernel
def lines(codes: Codes, places: Ints, starts: Ints, texts: Bytes) -> Bytes:
    """The text of all rows, cell after cell. `codes`: [columns, rows].

    Column j has the texts `places[j]` up to `places[j + 1]`, the last of them for the code -1; text x is
    `texts[starts[x]:starts[x + 1]]`, followed by fifteen spare bytes.

    >>> texts, starts = np.frombuffer(b"a,,b\\nc\\n\\n" + bytes(15), np.uint8), np.array([0, 2, 3, 5, 7, 8])
    >>> lines(np.array([[0, 0, -1], [0, 1, -1]], np.int32), np.array([0, 2, 5]), starts, texts).tobytes()
    b'a,b\\na,c\\n,\\n'
    """
    columns, rows = codes.shape
    total = 0
    for j in range(columns):
        for r in range(rows):
            text = _text(codes, places, j, r)
            total += starts[text + 1] - starts[text]
    out = np.empty(total + SPARE, np.uint8)
    at = before = whole(0)  # start of this line, and of the previous one
    for r in range(rows):
        j, end = whole(0), at
        while r > 0 and j < columns and codes[j, r] == codes[j, r - 1]:
            text = _text(codes, places, j, r)
            end += starts[text + 1] - starts[text]
            j += 1
        copy(out, at, out, before, end - at)
        while j < columns:
            text = _text(codes, places, j, r)
            copy(out, end, texts, starts[text], starts[text + 1] - starts[text])
            end += starts[text + 1] - starts[text]
            j += 1
        before, at = at, end
    return out[:total]


@bare
def _text(codes: Codes, places: Ints, j: int, r: int) -> int:
    return places[j + 1] - 1 if codes[j, r] < 0 else places[j] + codes[j, r]


@kernel
def whole_numbers(values: Ints, end: Bytes) -> tuple[Ints, Bytes]:
    """Whole numbers as decimal digits, each with the same suffix: the start of every text, and all texts.

    >>> starts, texts = whole_numbers(np.array([7, -120, 0]), np.frombuffer(b",", np.uint8))
    >>> starts.tolist(), texts.tobytes()
    ([0, 2, 7, 9], b'7,-120,0,')
    """
    starts = np.zeros(len(values) + 1, np.int64)
    texts = np.empty(len(values) * (20 + len(end)), np.uint8)
    digits = np.empty(20, np.uint8)
    at = 0
    for i in range(len(values)):
        if values[i] < 0:
            texts[at] = 45
            at += 1
        rest, count = min(values[i], -values[i]), 0  # negative, because the negative range has one more number
        while rest != 0 or count == 0:
            last = rest % -10
            digits[count] = 48 - last
            rest = (rest - last) // 10
            count += 1
        for x in range(count):
            texts[at + x] = digits[count - 1 - x]
        at += count
        for byte in end:
            texts[at] = byte
            at += 1
        starts[i + 1] = at
    return starts, texts[:at].copy()
