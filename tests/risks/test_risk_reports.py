"""Risk in the reports and at the last step of the page: after alone in public, before and after in private."""

from __future__ import annotations

from pathlib import Path

import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.web.desk.result import result


@pytest.fixture(scope="module")
def release() -> ck.Release:
    table = {"age": [*range(30, 42)], "sex": list("fm" * 6), "ill": list("abc" * 4)}
    schema = ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat()}, sensitive={"ill": ck.flat()})
    return ck.anonymize(Columns.of(table), schema, [ck.KAnonymity(3)], ck.Mondrian())


def test_the_public_report_has_the_risk_of_the_written_cells_and_nothing_of_the_original(release: ck.Release) -> None:
    found = release.public_record()
    assert found.risk == ck.risk(release).record and found.risk.uniques == 0
    page = release.report()
    assert page.count("Re-identification risk") == 1 and "Risk of the release, from its written cells" in page
    assert (
        "classes of 12, not of 11" in page
        and "upper bound" in page
        and "before" not in page.split("Re-identification")[1][:1500]
    )


def test_the_private_report_compares(release: ck.Release) -> None:
    found = release.private_record().risk
    assert found is not None and found.before.uniques == 12 and found.after == release.public_record().risk
    page = release.report(private=True)
    assert page.count("Re-identification risk") == 1 and "share above 0.09" in page


def test_persons_are_counted_in_the_private_report_only() -> None:
    table = {"age": [30, 30, 31, 31, 40, 40, 41, 41], "who": list("aabbccdd")}
    schema = ck.Schema(quasi={"age": ck.numeric()}, person="who")
    release = ck.anonymize(Columns.of(table), schema, [ck.KAnonymity(2)])
    private, public = release.private_record().risk, release.public_record().risk
    assert private is not None and (private.before.counted, private.after.counted, public.counted) == (
        "persons",
        "persons",
        "rows",
    )
    assert private.after.attackers[0].highest == 0.5 and public.attackers[0].highest == 0.25
    assert any("lower bound" in note for note in public.notes)


def test_the_page_of_a_release_shows_before_and_after(release: ck.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    assert result(tmp_path / "out").risk[:2] == (
        ("attacker", "measure", "before", "after"),
        ("prosecutor", "highest", "1", "0.3333"),
    )
    (tmp_path / "out.private" / "report.json").unlink()
    assert result(tmp_path / "out").risk[0][:3] == ("attacker", "highest", "average")
