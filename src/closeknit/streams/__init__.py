"""Unbounded data: one file per stream algorithm; rows arrive by `push` and `push_many` and are published in batches."""

from __future__ import annotations

from closeknit.streams.burel_window import BurelWindow
from closeknit.streams.castle import Castle
from closeknit.streams.knit_stream import KnitStream
from closeknit.streams.knn_stream import KnnStream
from closeknit.streams.sabre_window import SabreWindow
from closeknit.streams.stream import Stream
from closeknit.streams.windowed import Windowed

REGISTRY: dict[str, type[Stream]] = {
    stream.name: stream for stream in (KnitStream, Castle, KnnStream, SabreWindow, BurelWindow, Windowed)
}
