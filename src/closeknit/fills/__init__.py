"""Fills: ways to pick rows for a plan."""

from __future__ import annotations

from closeknit.core.params import choice
from closeknit.fills.fill import Fill
from closeknit.fills.hilbert import Hilbert
from closeknit.fills.knn import Knn
from closeknit.fills.sweep import Sweep

REGISTRY: dict[str, type[Fill]] = {fill.name: fill for fill in (Knn, Hilbert, Sweep)}


def fill_named(name: str) -> Fill:
    """The fill of this name with its defaults.

    >>> fill_named("sweep")
    Sweep()
    >>> fill_named("swoop")
    Traceback (most recent call last):
    ...
    closeknit.core.errors.BadInput: fill='swoop' is unknown; choose one of: knn, hilbert, sweep
    """
    choice("fill", name, REGISTRY)
    return REGISTRY[name]()
