"""Points: the cells of both grids, how points are read, and that a release of them is audited."""

from __future__ import annotations

import sys
from pathlib import Path

import h3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import closeknit as ck
from closeknit.api.suggestion import suggest
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.geohash import ALPHABET, geohash_bounds, geohash_of
from closeknit.core.kind_forms import kind_form, kind_from
from closeknit.core.points import read_point

HOMES = [f"{48.1 + i % 5 / 50:.3f},{11.5 + i / 60:.3f}" for i in range(20)]
HOMES += ["52.52,13.405", "52.53,13.41", "-33.86,151.21", "0,0"]
ILL = ["flu", "gout", "acne"] * 8


def texts(*values: str) -> np.ndarray:
    return np.array(values, dtype=object)


LATITUDES, LONGITUDES = st.floats(-90, 90, allow_subnormal=False), st.floats(-180, 180, allow_subnormal=False)


def test_known_cells() -> None:
    known = {"u4pruydqqvj": (57.64911, 10.40744), "ezs42": (42.605, -5.603), "9q8yyk": (37.7749, -122.4194)}
    for cell, (latitude, longitude) in known.items():
        assert geohash_of(latitude, longitude, len(cell)) == cell


@given(LATITUDES, LONGITUDES, st.integers(1, 12))
def test_a_cell_holds_its_point_and_the_cells_above_hold_the_cell(latitude: float, longitude: float, size: int) -> None:
    cell = geohash_of(latitude, longitude, size)
    (south, north), (west, east) = geohash_bounds(cell)
    assert south <= latitude <= north and west <= longitude <= east
    for shorter in range(1, size):
        assert geohash_of(latitude, longitude, shorter) == cell[:shorter]
    assert set(cell) <= set(ALPHABET) and len(cell) == size


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("48.137,11.575", (48.137, 11.575)),
        ("48.137; 11.575", (48.137, 11.575)),
        ("-33.86 151.21", (-33.86, 151.21)),
        ("48.1°, 11.5°", (48.1, 11.5)),
        ("POINT (11.575 48.137)", (48.137, 11.575)),
        ("90,180", (90.0, 180.0)),
        ("151.21,-33.86", None),
        ("48,137;11,575", None),
        ("48.137", None),
        ("Munich", None),
        ("1e1,2", None),
    ],
)
def test_texts(text: str, place: tuple[float, float] | None) -> None:
    assert read_point(text) == place


def test_labels_and_losses_of_geohash() -> None:
    domain, codes = ck.point(4).bind(texts("48.137,11.575", "48.137,11.575", "48.9,11.1", "52.52,13.405"))
    assert domain.size == 3 and codes.tolist()[0] == codes.tolist()[1]
    assert domain.labels(np.array([0, 0]), np.array([2, 3])) == ["u", "*"]
    assert ck.point(4).losses(["u", "u2", "u28", "u281", "*", ""])[:, 0].tolist() == [0.75, 0.5, 0.25, 0, 1, 0]
    for wrong, words in (("u281z", "finer than the precision 4"), ("a", "not a cell of geohash"), ("u28*", "not a cell")):
        with pytest.raises(BadValue, match=words):
            ck.point(4).losses([wrong])


def test_labels_and_losses_of_h3() -> None:
    kind = ck.point(3, grid="h3")
    domain, _ = kind.bind(texts("48.137,11.575", "48.2,11.6", "52.52,13.405"))
    labels = {domain.labels(np.array([lo]), np.array([hi]))[0] for lo in range(domain.size) for hi in range(lo, domain.size)}
    assert labels - {"*"} and all(h3.is_valid_cell(label) for label in labels - {"*"})
    cell = h3.latlng_to_cell(48.137, 11.575, 3)
    cells = [str(h3.cell_to_parent(cell, resolution)) for resolution in range(4)]
    assert kind.losses([*cells, "*", ""])[:, 0].tolist() == [0.75, 0.5, 0.25, 0, 1, 0]


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, right in (("151.21,-33.86", "write latitude before longitude"), ("Munich", "write latitude and longitude")):
        with pytest.raises(BadValue, match="is not a point") as refused:
            ck.point().bind(texts("48.137,11.575", text))
        assert right in str(refused.value.locate("home", 2))
    for params, words in (
        ({"precision": 13}, "precision=13"),
        ({"precision": 0}, "precision=0"),
        ({"grid": "s2"}, "grid='s2'"),
    ):
        with pytest.raises(BadInput, match=words):
            ck.point(**params)
    assert ck.point(0, "h3").finest == 0
    monkeypatch.setitem(sys.modules, "h3", None)
    with pytest.raises(BadInput, match=r"install closeknit\[geo\]"):
        ck.point(grid="h3").bind(texts("48.137,11.575"))


def test_recipes_read_it_back() -> None:
    for kind in (ck.point(), ck.point(7), ck.point(9, "h3")):
        assert kind_from(kind_form(kind)) == kind


@pytest.mark.parametrize("grid", ["geohash", "h3"])
def test_a_release_is_audited_and_attacked(grid: str, tmp_path: Path) -> None:
    table = Columns.of({"home": list(HOMES), "ill": ILL})
    schema = ck.Schema(quasi={"home": ck.point(5, grid)}, sensitive={"ill": ck.flat()})
    release = ck.anonymize(table, schema, [ck.KAnonymity(3)], seed=2**80)
    release.save(tmp_path / "out")
    assert ck.audit(tmp_path / "out").ok and 0 < release.loss < 1
    kind = ck.point(5, grid)
    finest, _ = kind.bind(np.array(HOMES, dtype=object))
    for text in HOMES:
        assert text not in (tmp_path / "out" / "release.csv").read_text(encoding="utf-8")
    assert set(release.frame.column("home").to_pylist()) <= {"*", *(finest.tree.labels if finest.tree else ())}
    found = ck.attack(release, original=table, schema=schema)
    assert any(each.attack == "candidate_rows" for each in found.findings)


def test_a_sensitive_point_is_published_as_a_cell(tmp_path: Path) -> None:
    table = Columns.of({"age": list(range(24)), "home": list(HOMES)})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"home": ck.point(3)})
    release = ck.anonymize(table, schema, [ck.KAnonymity(3), ck.LDiversity("home", 2)], seed=2**80)
    assert all(len(cell) == 3 for cell in release.frame.column("home").to_pylist())
    release.save(tmp_path / "out")
    assert ck.audit(tmp_path / "out").ok


def test_a_stream_asks_for_a_declared_domain() -> None:
    schema = ck.Schema(quasi={"home": ck.point()}, sensitive={"ill": ck.flat()})
    with pytest.raises(BadInput, match="is point, and its domain would be read from the rows"):
        ck.Castle(schema, k=2, delta=4)


def test_suggest_recognises_pairs() -> None:
    assert suggest(Columns.of({"home": list(HOMES[:22])})).schema.quasi["home"] == ck.point()
    swapped = suggest(Columns.of({"home": ["151.21,-33.86", "151.22,-33.87"]})).reasons["home"]
    assert swapped.kind == "flat"
    one = suggest(Columns.of({"home": [*HOMES[:20], "95.0,11.0"]})).reasons["home"]
    assert one.kind == "point" and not one.sure and "row 21" in one.reason
