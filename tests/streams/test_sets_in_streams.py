"""Set-valued columns in streams: all sets that are declared, and what is outside of them."""

from __future__ import annotations

import numpy as np
import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.kind_forms import kind_form, kind_from

LEAVES = ["I48", "I49", "I10", "E10", "E11", "J45"]
TREE = ck.Hierarchy.from_nested({"heart": {"rhythm": ["I48", "I49"], "I10": None}, "sugar": ["E10", "E11"], "J45": None})


def schema_of(kind: object) -> ck.Schema:
    return ck.Schema(quasi={"codes": kind}, sensitive={"days": ck.flat()})  # type: ignore[dict-item]


@pytest.mark.parametrize("stream", [ck.Castle, ck.KnnStream, ck.KnitStream])
def test_sets_are_published_and_audited(stream: type) -> None:
    draw = np.random.default_rng(5)
    sets = [";".join(draw.choice(LEAVES, size=draw.integers(1, 4), replace=False)) for _ in range(300)]
    table = Columns.of({"codes": list(sets), "days": [i % 4 for i in range(300)]})
    release = ck.replay(stream(schema_of(ck.itemset(TREE, ";", most=3)), k=5, delta=60, seed=2**100), table)
    cells = set(release.frame["codes"].to_pylist())
    assert cells & {"heart", "heart,sugar", "J45", "J45,heart", "J45,sugar", "sugar"} and not any(";" in cell for cell in cells)
    assert release.certificate.ok and ck.audit(release.frame, certificate=release.certificate).ok


def test_a_set_outside_of_the_declaration_is_counted_and_hidden() -> None:
    stream = ck.Castle(schema_of(ck.itemset(TREE, most=2)), k=2, delta=4, seed=2**100)
    rows = ["I48,E10", "E11,I48,J45", "E10,I49", "K50", "*", "E10"]
    written = [row for codes in rows for row in stream.push({"codes": codes, "days": 1})] + stream.flush()
    assert written and stream.counters.unknown == 3
    assert not any("K50" in str(row) or "I48,J45" in str(row) for row in written)


def test_the_declaration_is_checked() -> None:
    for kind in (ck.itemset(TREE), ck.itemset(ck.prefix(3), most=2), ck.itemset(most=2)):
        with pytest.raises(ck.BadInput, match=r"its domain would be read from the rows; .*itemset\(Hierarchy, most=\)"):
            ck.Castle(schema_of(kind), k=2, delta=4)
    wide = ck.Hierarchy.from_nested({"all": [f"c{i}" for i in range(200)]})
    with pytest.raises(ck.BadInput, match="itemset has more than 500,000 sets of at most 3 items; declare a smaller most"):
        ck.Castle(schema_of(ck.itemset(wide, most=3)), k=2, delta=4)
    with pytest.raises(ck.BadInput, match="most=0"):
        ck.itemset(TREE, most=0)
    with pytest.raises(ck.BadInput, match="has 3 items; at most 2 are declared"):
        ck.anonymize(
            Columns.of({"codes": ["E10", "E10,E11,I10"], "days": [1, 2]}),
            schema_of(ck.itemset(TREE, most=2)),
            [ck.KAnonymity(2)],
        )
    assert kind_from(kind_form(ck.itemset(TREE, most=2))) == ck.itemset(TREE, most=2)
    assert ck.itemset(TREE, most=2).list_sets().size == 6 + 15
