"""What a certificate, a schema or a recipe may ask for is limited before anything is allocated.

Unchecked, most of these requests would not end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.core.columns import Columns
from closeknit.core.limits import MOST_BYTES, MOST_NODES
from closeknit.forms.release_reading import reading_of

CELLS: dict[str, list[object]] = {"age": [*range(30, 36)], "icd": ["A1", "A2", "A3", "B1", "B2", "B3"], "wage": [*range(6)]}
SCHEMA = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"icd": ck.flat(), "wage": ck.numeric()})
MANY = [str(i) for i in range(MOST_NODES + 1)]


@pytest.fixture(scope="module")
def made() -> ck.Release:
    return ck.anonymize(Columns.of(CELLS), SCHEMA, [ck.KAnonymity(3), ck.TCloseness("wage", 0.5)])


def nested(levels: int) -> Any:
    return {"x": nested(levels - 1)} if levels else ["A1"]


REQUESTED: dict[str, tuple[str, Any, str]] = {
    "bins": ("wage", {"numeric": {"lo": 0, "hi": 10, "bins": 10**6}}, "bins=1000000 is too large"),
    "bins beyond any number": ("wage", {"numeric": {"lo": 0, "hi": 10, "bins": 10**40}}, "too large"),
    "a tiny step": ("wage", {"numeric": {"lo": 0, "hi": 10, "step": 1e-300}}, r"step=1e-300 makes more than 10\^18 steps"),
    "a tiny step without bounds": ("wage", {"numeric": {"step": 1e-300}}, r"step=1e-300 makes more than 10\^18 steps"),
    "a long code": ("icd", {"prefix": {"length": 10**9}}, "length=1000000000 is too large"),
    "a wide tree": ("icd", {"tree": MANY}, "the hierarchy has 500,001 nodes or more"),
    "a tree in parts": ("icd", {"tree": {"a": MANY[: MOST_NODES // 2], "b": MANY[MOST_NODES // 2 :]}}, "500,001 nodes or more"),
    "a deep tree": ("icd", {"tree": nested(150)}, "deeper than 110 levels"),
    "many intervals": ("wage", {"intervals": {"lo": 0, "hi": 10, "width": 1e-9}}, "makes 10,000,000,000 intervals"),
    "many edges": ("wage", {"intervals": {"edges": list(range(10**5))}}, "the edges make 99,999 intervals"),
    "many levels of intervals": (
        "wage",
        {"intervals": {"lo": 0, "hi": 9, "width": 1, "levels": [2] * 10**5}},
        "100,000 levels",
    ),
    "balanced values": ("icd", {"balanced": {"values": MANY, "fanout": 2}}, "500,001 nodes or more"),
    "many levels of dates": ("icd", {"date": {"levels": ["day"] * 10**5}}, "date has levels"),
}


def refused(ask: Any, said: str) -> None:
    with pytest.raises(ck.BadInput, match=said) as caught:
        ask()
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize("case", REQUESTED)
def test_certificates_schemas_and_recipes_share_the_limits(made: ck.Release, tmp_path: Path, case: str) -> None:
    column, kind, said = REQUESTED[case]
    stated = json.loads(made.certificate.to_json())
    stated["columns"]["sensitive"][column] = kind
    claimed = ck.Certificate.model_validate(stated)
    refused(lambda: ck.audit(made.columns, certificate=claimed), said)
    refused(lambda: ck.attack(made.columns, certificate=claimed), said)
    kinds = {"icd": "flat", "wage": "numeric", column: kind}
    requested = {"schema": {"quasi": {"age": "numeric"}, "sensitive": kinds}, "models": [{"k_anonymity": {"k": 3}}]}
    if case != "a tiny step without bounds":  # what it makes is known with the table
        refused(lambda: Recipe.of(requested), said)


@pytest.mark.parametrize("key", ["guarantees", "notes", "files"])
def test_lists_of_a_certificate_are_limited(made: ck.Release, tmp_path: Path, key: str) -> None:
    made.save(tmp_path / "out", report=False)
    file = tmp_path / "out" / "certificate.json"
    stated = json.loads(file.read_text("utf-8"))
    stated[key] = stated[key][:1] * 20_000
    file.write_text(json.dumps(stated), "utf-8")
    refused(lambda: ck.audit(tmp_path / "out"), rf"certificate\.json: .*key '{key}'.* at most")


def test_large_files_are_refused_unread(made: ck.Release, tmp_path: Path) -> None:
    made.save(tmp_path / "out")
    for file in (tmp_path / "out" / "certificate.json", tmp_path / "recipe.yaml"):
        with open(file, "wb") as sparse:
            sparse.truncate(MOST_BYTES + 1)
    refused(lambda: ck.audit(tmp_path / "out"), r"certificate\.json: has 67,108,865 bytes; .* at most 67,108,864")
    refused(lambda: ck.attack(tmp_path / "out"), r"certificate\.json: has 67,108,865 bytes")
    refused(lambda: Recipe.read(tmp_path / "recipe.yaml"), r"recipe\.yaml: has 67,108,865 bytes")


@pytest.mark.soak  # reading the 500,000 nodes up to the limit takes seconds
def test_a_short_recipe_cannot_name_one_node_many_times(tmp_path: Path) -> None:
    levels = "".join(f"  l{i}: &l{i} {{a{i}: *l{i - 1}, b{i}: *l{i - 1}}}\n" for i in range(1, 40))
    text = "notes: []\nschema:\n  plain: []\n  quasi: {job: {tree: *l39}}\nmodels: []\n"
    (tmp_path / "recipe.yaml").write_text(f"output:\n  l0: &l0 {{x: null}}\n{levels}{text}", "utf-8")
    refused(lambda: Recipe.read(tmp_path / "recipe.yaml"), "column 'job': the hierarchy has 500,001 nodes or more")


SAMPLES: dict[str, Callable[[ck.Release], object]] = {
    "count=1000001": lambda release: ck.metrics.queries(Columns.of(CELLS), SCHEMA, lambda_=1, count=1_000_001),
    "count=9000000000": lambda release: ck.metrics.window_errors(
        release.columns, np.arange(6), Columns.of(CELLS), SCHEMA, window=2, lambda_=1, count=9_000_000_000
    ),
    "draws=9000000000": lambda _: ck.attacks.membership(
        np.zeros(1, np.int32), np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int32), most=0, draws=9_000_000_000
    ),
    "draws=8000000": lambda release: ck.attacks.minimality(
        release.columns, lambda same: same, Columns.of(CELLS), [0] * 6, SCHEMA, draws=8_000_000
    ),
    "most=6000000": lambda release: ck.attacks.intersection(release, release, Columns.of(CELLS), most=6_000_000),
    "most=9000000": lambda release: ck.attacks.association_rules(reading_of(release), "icd", most=9_000_000),
    "b=101": lambda release: ck.attacks.background(reading_of(release), "icd", b=101),
}


@pytest.mark.parametrize("case", SAMPLES)
def test_samples_of_metrics_and_attacks_are_limited(made: ck.Release, case: str) -> None:
    started = time.monotonic()
    refused(
        lambda: SAMPLES[case](made), rf"^{case} is too large; \w+ must be a whole number of at least \d and at most [\d,]+$"
    )
    assert time.monotonic() - started < 5


def test_group_bys_of_a_level_are_limited() -> None:
    cells: dict[str, list[object]] = {f"q{i}": [1, 2] for i in range(20)} | {"ill": ["flu", "gout"]}
    schema = ck.Schema(quasi={f"q{i}": ck.numeric() for i in range(20)}, sensitive={"ill": ck.flat()})
    release = ck.anonymize(Columns.of(cells), schema, [ck.KAnonymity(2)])
    said = "level=10 makes 184,756 group-bys; choose at most 100,000"
    refused(lambda: ck.metrics.kl_divergence(release, Columns.of(cells), schema, level=10), said)
