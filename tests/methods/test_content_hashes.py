"""Releases stay what they were: a few of the recorded content hashes, and under soak all of them."""

from __future__ import annotations

import json

import pytest

import content_hashes
from conftest import SOAK

FEW = ("knit, t", "sabre, two", "burel, beta", "mondrian, k", "microaggregation, k", "form snapped", "stream castle", "slicing")
RECORDED = json.loads(content_hashes.GOLDEN.read_text())
MAKE = dict([*content_hashes.local_releases(), *content_hashes.streams()])


@pytest.mark.grows
@pytest.mark.parametrize("name", MAKE if SOAK else FEW)
def test_releases_are_what_was_recorded(name: str) -> None:
    assert MAKE[name]() == RECORDED[name]
