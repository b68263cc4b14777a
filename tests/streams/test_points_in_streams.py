"""Places in streams: the declared area, its cells, and what is outside of it."""

from __future__ import annotations

import numpy as np
import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.points import Point


def places(count: int) -> Columns:
    draw = np.random.default_rng(5)
    points = [f"{48 + 1.2 * a:.4f},{11 + 1.2 * b:.4f}" for a, b in draw.random((count, 2))]
    return Columns.of({"home": points, "ill": [("flu", "gout", "burn")[i % 3] for i in range(count)]})


def schema_of(**area: object) -> ck.Schema:
    return ck.Schema(quasi={"home": ck.point(5, **area)}, sensitive={"ill": ck.flat()})  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [ck.Castle, ck.KnnStream])
def test_cells_of_the_declared_area_are_published_and_audited(stream: type) -> None:
    table = places(300)
    release = ck.replay(stream(schema_of(within="u28,u29,u2b,u0x,u0z"), k=5, delta=40, seed=2**100), table)
    cells = set(release.frame["home"].to_pylist())
    assert cells != {"*"} and all(cell == "*" or cell.startswith("u") for cell in cells)
    assert any(len(cell) >= 3 for cell in cells)
    assert release.certificate.ok and ck.audit(release.frame, certificate=release.certificate).ok


def test_a_point_outside_of_the_area_is_counted_and_hidden() -> None:
    stream = ck.Castle(schema_of(within="u28"), k=2, delta=4, seed=2**100)
    rows = [("48.137,11.575", "flu"), ("52.52,13.405", "gout"), ("48.14,11.58", "flu"), ("nowhere", "burn")]
    written = [row for home, ill in rows for row in stream.push({"home": home, "ill": ill})] + stream.flush()
    assert written and stream.counters.unknown == 2
    assert not any("52.52" in str(row) or "nowhere" in str(row) for row in written)


def test_the_area_is_checked() -> None:
    with pytest.raises(ck.BadInput, match=r"its domain would be read from the rows; declare it in advance: .*point\(within=\)"):
        ck.Castle(schema_of(), k=2, delta=4)
    with pytest.raises(ck.BadInput, match="and 'a1' is not a cell"):
        ck.point(5, within="u28,a1")
    with pytest.raises(ck.BadInput, match="finer than its precision"):
        ck.point(2, within="u28")
    with pytest.raises(ck.BadInput, match="point has more than 500,000 cells within 'u'"):
        ck.Castle(schema_of(within="u"), k=2, delta=4)
    with pytest.raises(ck.BadInput, match=r"'52\.52,13\.405' is outside the declared cells"):
        ck.anonymize(
            Columns.of({"home": ["48.1,11.5", "52.52,13.405"], "ill": ["flu", "gout"]}),
            schema_of(within="u28"),
            [ck.KAnonymity(2)],
        )
    assert len(Point(4, within="u28,u29").list_cells()) == 64
