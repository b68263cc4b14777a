"""Plain values as JSON and numeric arrays: what a checkpoint may hold, read back exactly, without running code.

>>> arrays = []
>>> packed = pack({"last": (0.1, None), "codes": np.array([3, 1]), 7: {"Ann", "Bob"}}, arrays)
>>> unpack(json.loads(json.dumps(packed)), arrays) == {"last": (0.1, None), "codes": arrays[0], 7: {"Ann", "Bob"}}
True
>>> pack(object(), [])
Traceback (most recent call last):
TypeError: a checkpoint cannot hold a value of type object
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import deque
from datetime import date
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import array_cells
from closeknit.streams.arrivals import Arrivals

Arrays = list[NDArray[Any]]
DIGEST = sha256().digest_size
TAG = "$"  # marks a mapping that represents a value that JSON does not have
NAMES = {kind: kind.__name__.lower() for kind in (bytes, date, Fraction, tuple, set, deque)} | {
    frozenset: "set",
    Arrivals: "rows",
}


def to_bytes(value: Any) -> bytes:
    """One file: a digest of the content, then the JSON and the numbered arrays.

    >>> from_bytes(to_bytes([1, np.array([2.5])]))
    [1, array([2.5])]
    """
    arrays: Arrays = []
    text = json.dumps(pack(value, arrays), separators=(",", ":"))
    memory = io.BytesIO()
    named: dict[str, Any] = {f"a{i}": array for i, array in enumerate(arrays)}
    np.savez(memory, plain=np.frombuffer(text.encode(), dtype=np.uint8), **named)
    data = memory.getvalue()
    return sha256(data).digest() + data


def from_bytes(data: bytes) -> Any:
    """The value that `to_bytes` was given; any other bytes raise ValueError."""
    digest, data = data[:DIGEST], data[DIGEST:]
    if sha256(data).digest() != digest:  # compiled code trusts the content
        raise ValueError("the content was changed")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = [file[f"a{i}"] for i in range(len(file.files) - 1)]
            return unpack(json.loads(file["plain"].tobytes()), arrays)
    except (OSError, EOFError, KeyError, TypeError, IndexError, RecursionError, zipfile.BadZipFile) as error:
        raise ValueError(str(error)) from None


def pack(value: Any, arrays: Arrays) -> Any:
    """The JSON of a value; arrays are appended to `arrays` and replaced by their numbers."""
    if value is None or isinstance(value, bool | int | float | str):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        return [pack(part, arrays) for part in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value) and TAG not in value:
            return {key: pack(part, arrays) for key, part in value.items()}
        return {TAG: "dict", "of": [[pack(key, arrays), pack(part, arrays)] for key, part in value.items()]}
    return {TAG: (named := _name_of(value)), "of": _content(named, value, arrays)}


def unpack(packed: Any, arrays: Arrays) -> Any:
    """The value of what `pack` returned."""
    if isinstance(packed, list):
        return [unpack(part, arrays) for part in packed]
    if not isinstance(packed, dict):
        return packed
    if TAG not in packed:
        return {key: unpack(part, arrays) for key, part in packed.items()}
    kind, of = packed[TAG], packed["of"]
    if kind == "array":
        return arrays[of]
    if kind == "bytes":
        return bytes.fromhex(of)
    if kind == "date":
        return date.fromisoformat(of)
    if kind == "fraction":
        return Fraction(of)
    parts = unpack(of, arrays)
    if kind == "cells":
        return array_cells(parts)
    if kind == "deque":
        return deque(parts[0], maxlen=parts[1])
    return Arrivals(**parts) if kind == "rows" else {"dict": dict, "tuple": tuple, "set": set}[kind](parts)


def _name_of(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "cells" if value.dtype == object else "array"
    if type(value) not in NAMES:
        raise TypeError(f"a checkpoint cannot hold a value of type {type(value).__name__}")
    return NAMES[type(value)]


def _content(kind: str, value: Any, arrays: Arrays) -> Any:
    if kind == "array":
        arrays.append(value)
        return len(arrays) - 1
    if kind in ("bytes", "date", "fraction"):
        return value.hex() if kind == "bytes" else str(value)
    if kind == "deque":
        return [[pack(part, arrays) for part in value], value.maxlen]
    if kind == "rows":
        return {name: pack(getattr(value, name), arrays) for name in ("quasi", "persons", "secrets", "cells")}
    parts = sorted(value, key=repr) if kind == "set" else value.tolist() if kind == "cells" else value
    return [pack(part, arrays) for part in parts]
