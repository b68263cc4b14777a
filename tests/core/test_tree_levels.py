"""Declared trees that are coarsened by level before the method."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kind_forms import kind_form, kind_from

ILLNESS = {"respiratory": {"viral": ["flu", "SARS"], "asthma": None}, "digestive": ["ulcer", "gastritis"]}


def test_a_level_replaces_values_before_the_method_and_is_read_back(tmp_path: Path) -> None:
    kind = Hierarchy(ILLNESS, level=1)
    codes = [kind.bind(np.array(texts, dtype=object))[1].tolist() for texts in (["flu", "asthma"], ["viral", "asthma"])]
    assert codes == [[0, 1], [0, 1]]  # raw values, and cells as they are written
    cells = {
        "ill": ["flu", "flu", "SARS", "asthma", "asthma", "ulcer", "gastritis"],
        "sex": ["f", "m", "f", "m", "f", "m", "f"],
    }
    other = cells | {"ill": ["SARS", "SARS", "flu", "asthma", "asthma", "gastritis", "ulcer"]}
    file = tmp_path / "ill.csv"
    lines = ("flu;viral;respiratory", "SARS;viral;respiratory", "asthma;respiratory", "ulcer;digestive", "gastritis;digestive")
    file.write_text("".join(f"{line};*\n" for line in lines), encoding="utf-8")
    for quasi, sensitive in ((("ill", kind), ("sex", ck.flat())), (("sex", ck.flat()), ("ill", kind))):
        schema = ck.Schema(quasi=dict([quasi]), sensitive=dict([sensitive]))
        releases = [ck.anonymize(Columns.of(table), schema, [ck.KAnonymity(2)], seed=2**90) for table in (cells, other)]
        assert releases[0].certificate.content_sha256 == releases[1].certificate.content_sha256  # only the level matters
        written = set(releases[0].columns["ill"].cells())
        assert written <= {"viral", "asthma", "digestive"} and "viral" in written
        assert any("at level 1" in note for note in releases[0].certificate.notes)
        assert ck.audit(releases[0].frame, certificate=releases[0].certificate).status == "met"
    assert kind_from(kind_form(kind)) == kind and kind_from({"csv": file.name, "level": 1}, tmp_path).level == 1
    assert kind.losses(["viral", "digestive"])[:, 0].tolist() == [0.4, 0.4]  # what the level hides is lost


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"level": 3}, "level=3 would write '*' for every value; write a level of at most 2"),
        ({"level": -1}, "level=-1 is too small"),
        ({"level": "high"}, "not a whole number"),
        ({"level": 1, "from_data": True}, "needs a declared tree"),
    ],
)
def test_a_wrong_level_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=re.escape(words)):
        Hierarchy(ILLNESS, **given)
