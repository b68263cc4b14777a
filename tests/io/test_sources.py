"""A source from outside the package: read by every command that takes a file, written to, and audited from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

import closeknit as ck
from closeknit.api.anonymizing import run
from closeknit.api.recipe import Recipe
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.datasets import hospital, hospital_recipe, hospital_schema
from closeknit.io.names import Wanted, choose_columns
from closeknit.io.source import Source
from closeknit.io.sources import REGISTRY, place_of, source_of

STORED: dict[str, tuple[Columns, str]] = {}


@dataclass(frozen=True)
class Memory(Source):
    """Tables of this process under `memory://name`."""

    name: ClassVar[str] = "memory"
    schemes: ClassVar[tuple[str, ...]] = ("memory",)

    url: str
    table: str = "patients"

    def read(self, columns: Wanted = None) -> Columns:
        found = STORED[f"{self.url}/{self.table}"][0]
        return Columns({name: found[name] for name in choose_columns(list(found), columns)}, found.rows)

    def read_certificate(self) -> str:
        return STORED[f"{self.url}/{self.table}"][1]

    def write(self, columns: Columns, certificate: str, private: Mapping[str, Any], replace: bool) -> None:
        assert {"recipe.yaml", "classes.csv"} == set(private) and not replace
        STORED[f"{self.url}/{self.table}"] = columns, certificate


@pytest.fixture
def stored() -> Iterator[None]:
    REGISTRY.append(Memory)
    STORED["memory://here/patients"] = hospital(300), ""
    yield
    REGISTRY.remove(Memory)
    STORED.clear()


def test_a_source_is_anonymized_written_and_audited(stored: None) -> None:
    release = ck.anonymize("memory://here", hospital_schema(), [ck.KAnonymity(5)], seed=2**70)
    release.write_to(Memory("memory://there", "release"))
    found = ck.audit(Memory("memory://there", "release"))
    assert found.ok and found.rows == 300
    private = release._recipe
    assert private is not None and private["data"] == {"url": "memory://here"}
    with pytest.raises(BadInput, match="save it in a folder"):
        release.write_to("people.csv")


def test_a_recipe_names_a_source_with_its_options(stored: None, tmp_path: Path) -> None:
    STORED["memory://here/others"] = STORED["memory://here/patients"]
    recipe = {**hospital_recipe("-"), "data": {"url": "memory://here", "table": "others"}, "seed": 2**70}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    assert run(Recipe.read(tmp_path / "recipe.yaml")).certificate.ok
    with pytest.raises(BadInput, match="no parameter 'tabel'; did you mean 'table'"):
        run(Recipe.of({**recipe, "data": {"url": "memory://here", "tabel": "others"}}))


def test_an_option_of_another_kind_of_source_is_refused() -> None:
    with pytest.raises(BadInput, match="has no option 'sheet'"):
        source_of("people.csv", {"sheet": "A", "header": None})
    assert source_of("people.csv", {"sheet": None}) == "people.csv" and place_of({"a": [1]}) is None
