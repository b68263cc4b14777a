"""The logic behind the page of a release: it says what the files say, and warns above the download."""

from __future__ import annotations

from pathlib import Path

import pytest

import closeknit as ck
from closeknit.core.errors import BadInput
from closeknit.web.desk import draft, protection, result

DRAFT = ck.datasets.hospital_recipe("table.csv")


def test_the_page_of_a_release_says_what_its_files_say(tmp_path: Path) -> None:
    recipe = draft.recipe_of(DRAFT)
    release = ck.anonymize(ck.datasets.hospital(300), recipe.schema, recipe.models, seed=2**70)
    release.save(tmp_path / "out")
    found = result.result(tmp_path / "out", "patients.csv")
    assert found.certificate.ok and [file.name for file in found.certificate.files] == ["release.csv"]
    assert found.certificate.guarantees == release.certificate.guarantees and found.certificate.loss == release.certificate.loss
    assert [kept.met for kept in found.guarantees] == [True, True] and found.sample is not None
    assert [attack.risk for attack in found.attacks] == sorted((attack.risk for attack in found.attacks), reverse=True)
    assert any(attack.needs_original for attack in found.attacks) and not all(attack.needs_original for attack in found.attacks)
    assert {"recipe.yaml", "classes.csv"} <= {file.name for file in found.private_files}
    assert not set(found.public_files) & set(found.private_files)
    high = [attack for attack in found.attacks if attack.risk >= result.HIGH]
    assert (
        len(found.warnings) == len(high) + len(protection.list_unprotected(DRAFT))
        and "No guarantee protects" in found.warnings[0]
    )
    assert str(tmp_path) not in repr(found) and "patients.csv" in found.command
    for file in (tmp_path / "out.private").iterdir():
        file.unlink()
    assert result.result(tmp_path / "out").sample is None
    (tmp_path / "out" / "report.json").unlink()
    with pytest.raises(BadInput, match=r"report\.json"):
        result.result(tmp_path / "out")
