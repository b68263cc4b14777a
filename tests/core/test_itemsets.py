"""Set-valued columns: what a class writes, what a cell means, its loss, and that a release of them is audited."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import closeknit as ck
from closeknit.api.suggestion import suggest
from closeknit.checks.naive_cells import covers
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.kind_forms import kind_form, kind_from

TREE = ck.Hierarchy.from_nested({"heart": {"rhythm": ["I48", "I49"], "I10": None}, "sugar": ["E10", "E11"], "J45": None})
ITEMS = st.sets(st.sampled_from(["I48", "I49", "I10", "E10", "E11", "J45"]), min_size=1)
KINDS = {"prefix": ck.prefix(3), "tree": TREE, "flat": ck.flat()}


def texts(*values: str) -> np.ndarray:
    return np.array(values, dtype=object)


@given(st.lists(ITEMS, min_size=1, max_size=8), st.sampled_from(sorted(KINDS)))
def test_a_label_covers_its_sets_and_is_the_tightest_that_does(sets: list[set[str]], name: str) -> None:
    kind = ck.itemset(KINDS[name])
    raw = [",".join(one) for one in sets]
    domain, codes = kind.bind(texts(*raw))
    for lo in range(domain.size):
        for hi in range(lo, domain.size):
            (label,) = domain.labels(np.array([lo]), np.array([hi]))
            inside = [text for text, code in zip(raw, codes.tolist(), strict=True) if lo <= code <= hi]
            assert all(covers(kind, label, text) for text in inside)
            assert domain.tree is not None
            tighter = [other for other in domain.tree.labels[1:-1] if all(covers(kind, other, text) for text in inside)]
            losses = kind.losses([label, *tighter])[:, 0]
            assert losses[0] <= min([1.0, *losses[1:]]) and 0 <= losses[0] <= 1


def test_order_spaces_and_repeats_do_not_matter() -> None:
    domain, codes = ck.itemset(separator=";").bind(texts("b; a", "a;b;b", "a;b;"))
    assert domain.texts == ("a,b",) and codes.tolist() == [0, 0, 0]


def test_losses_are_those_of_the_most_general_node() -> None:
    kind = ck.itemset(TREE)
    assert kind.losses(["I48,E10", "rhythm,E10", "heart,J45", "*", ""])[:, 0].tolist() == [0, 2 / 6, 3 / 6, 1, 0]
    with pytest.raises(BadValue) as refused:
        kind.losses(["I48", "I48,K50"])
    assert refused.value.index == 1 and "item 'K50'" in str(refused.value.locate("codes", 2))


@pytest.mark.parametrize(
    ("raw", "words"), [("I48,K50", "item 'K50' is not a leaf"), (" , ", "has no items"), ("I48,*", "has the item '*'")]
)
def test_what_is_refused(raw: str, words: str) -> None:
    with pytest.raises(BadValue) as refused:
        ck.itemset(TREE).bind(texts("I48", raw))
    assert refused.value.index == 1 and words in refused.value.what
    for items in (ck.numeric(), ck.Hierarchy.rare({"flu": 9, "gout": 1}, 5), ck.Hierarchy.intervals(lo=0, hi=4, width=1)):
        with pytest.raises(BadInput, match="itemset has items of the kind"):
            ck.itemset(items)
    with pytest.raises(BadInput, match="separator"):
        ck.itemset(separator=" ")


def test_recipes_read_it_back(tmp_path: Path) -> None:
    for kind in (ck.itemset(), ck.itemset(ck.prefix(3)), ck.itemset(TREE, ";")):
        assert kind_from(kind_form(kind)) == kind
    assert kind_form(ck.itemset()) == "itemset" and kind_form(ck.itemset(ck.prefix())) == {"itemset": {"items": "prefix"}}
    (tmp_path / "codes.csv").write_text("E10;sugar;*\nE11;sugar;*\n", encoding="utf-8")
    read = kind_from({"itemset": {"items": {"csv": "codes.csv"}}}, tmp_path)
    assert read.losses(["sugar"])[:, 0].tolist() == [1] and kind_form(ck.itemset(TREE, ";").publish_kind([])) == kind_form(
        ck.itemset(TREE)
    )


@pytest.mark.parametrize("name", KINDS)
def test_a_release_is_audited_and_attacked(name: str, tmp_path: Path) -> None:
    cells = ["E10;I48", "E11;I48", "E11;I49", "E10;I10", "J45", "J45", "J45;E10", "E11;J45"] * 3
    table = Columns.of({"codes": list(cells), "age": list(range(24))})
    for schema in (
        ck.Schema(quasi={"codes": ck.itemset(KINDS[name], ";")}, sensitive={"age": ck.numeric()}),
        ck.Schema(quasi={"age": ck.numeric()}, sensitive={"codes": ck.itemset(KINDS[name], ";")}),
    ):
        release = ck.anonymize(table, schema, [ck.KAnonymity(3)], seed=2**80)
        release.save(tmp_path / "out", force=True, report=False)
        assert ck.audit(tmp_path / "out").ok and ck.audit(release.frame, schema, [ck.KAnonymity(3)]).ok
        assert ";" not in (tmp_path / "out" / "release.csv").read_text(encoding="utf-8")
        assert ck.attack(release, original=table, schema=schema).findings


def test_suggest_recognizes_sets_of_codes() -> None:
    icd = ["E11,I10", "E11", "I10,J45", "E11,J45", "I10", "E11,I10,J45", "J45"] * 4
    assert suggest(Columns.of({"dx": icd})).schema.sensitive["dx"] == ck.itemset(ck.prefix())
    tags = [text.replace(",", ";").replace("E11", "red").replace("I10", "blue").replace("J45", "green") for text in icd]
    assert suggest(Columns.of({"tags": tags})).schema.quasi["tags"] == ck.itemset(separator=";")
    names = [f"Smith{i}, John{i}" for i in range(30)]
    assert suggest(Columns.of({"tags": names})).reasons["tags"].kind != "itemset"
