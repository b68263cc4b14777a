"""Compiled code trusts a checkpoint: whatever is not what was written is refused before it is used."""

from __future__ import annotations

import io
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import closeknit as ck
from closeknit.core.errors import BadInput
from closeknit.streams.packing import DIGEST, from_bytes, to_bytes
from closeknit.streams.stream import Stream

SCHEMA = ck.Schema(quasi={"age": ck.numeric(0, 100), "sex": ck.flat()}, sensitive={"ill": ck.flat()}, person="name")


def kept(path: Path, stream: Stream) -> bytes:
    for i in range(31):
        stream.push({"age": i * 37 % 100, "sex": "f", "ill": "abc"[i % 3], "name": i % 7})
    stream.save(path)
    return path.read_bytes()


STREAMS = [
    lambda: ck.Castle(SCHEMA, k=3, delta=20, seed=1, reuse="held", order="input"),
    lambda: ck.SabreWindow(SCHEMA, [ck.TCloseness("ill", 0.4)], omega=16, advance=8, k=2, seed=1),
]


@pytest.mark.parametrize("made", STREAMS)
def test_arrays_of_a_checkpoint_that_changed_places_are_refused(made: Any, tmp_path: Path) -> None:
    stream = made()
    data = kept(tmp_path / "kept", stream)
    with zipfile.ZipFile(io.BytesIO(data[DIGEST:])) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    names = [name for name in parts if name != "plain.npy"]
    for one, other in pairwise(names):
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w") as file:
            for name in parts:
                file.writestr(name, parts[other if name == one else one if name == other else name])
        for head in (b"", data[:DIGEST]):
            (tmp_path / "kept").write_bytes(head + memory.getvalue())
            with pytest.raises(BadInput, match="not a checkpoint"):
                type(stream).load(tmp_path / "kept")


@pytest.mark.parametrize("made", STREAMS)
def test_a_checkpoint_with_any_other_bit_is_refused(made: Any, tmp_path: Path) -> None:
    stream = made()
    data = kept(tmp_path / "kept", stream)
    for place in range(0, len(data), 97):
        (tmp_path / "kept").write_bytes(data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :])
        with pytest.raises(BadInput, match="not a checkpoint"):
            type(stream).load(tmp_path / "kept")


def test_what_is_packed_is_read_back_whole_or_not_at_all() -> None:
    with pytest.raises(ValueError):
        from_bytes(to_bytes([1])[:-1])
