"""A release: what it renders and when, what it pickles, what `force` may replace, and its two implementations side by side."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import closeknit as ck
from closeknit.api.reporting import load_release
from closeknit.io import canonical
from closeknit.io.canonical import content_hash
from closeknit.release import LocalRelease, SparkRelease, local_release
from closeknit.release.release_paths import is_own_file, private_folder


@pytest.fixture
def release() -> ck.Release:
    return ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)], ck.Mondrian())


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Columns whose CSV text was rendered."""
    found: list[Any] = []
    render = canonical.canonical_blocks

    def canonical_blocks(columns: Any) -> Iterator[bytes]:
        found.append(columns)
        return render(columns)

    for module in (canonical, local_release):
        monkeypatch.setattr(module, "canonical_blocks", canonical_blocks)
    return found


def test_two_implementations_of_which_none_inherits_from_the_other() -> None:
    assert LocalRelease.__bases__ == SparkRelease.__bases__ == (ck.Release,)
    with pytest.raises(TypeError, match="abstract"):
        ck.Release(None, None, "csv")  # type: ignore[abstract, arg-type]


def test_the_csv_text_is_rendered_only_when_it_is_needed(rendered: list[Any], tmp_path: Path) -> None:
    release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)], ck.Mondrian())
    assert release.loss > 0 and str(release) and repr(release) and release.frame.num_rows == 60 and release.partition.size == 60
    assert rendered == [], "the content hash was computed, and nothing needed it"
    first, second = release.certificate.content_sha256, release.certificate.content_sha256
    assert len(rendered) == 1 and first == second
    release.to_csv(tmp_path / "release.csv")
    assert len(rendered) == 2 and not any(isinstance(value, list | bytes) for value in vars(release).values())


def test_the_content_hash_is_that_of_the_file(release: ck.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    assert release.certificate.content_sha256 == content_hash(release.columns)
    assert load_release(tmp_path / "out").certificate.content_sha256 == release.certificate.content_sha256
    assert ck.audit(tmp_path / "out").ok


def test_nothing_private_is_pickled(release: ck.Release) -> None:
    copy = pickle.loads(pickle.dumps(release))
    assert copy.certificate == release.certificate and copy.columns["age"].cells() == release.columns["age"].cells()
    assert copy.duplicates is None and vars(copy)["_recipe"] is None
    with pytest.raises(ck.BadInput, match="has no partition"):
        _ = copy.partition


def test_every_saved_file_is_one_that_force_may_replace(release: ck.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    private = private_folder(tmp_path / "out")
    saved = [file.name for folder in (tmp_path / "out", private) for file in folder.iterdir()]
    assert len(saved) == 9 and all(map(is_own_file, saved)) and not is_own_file("notes.txt")
    release.save(tmp_path / "out", force=True)
    (private / "notes.txt").write_text("mine")
    with pytest.raises(ck.BadInput, match=r"also contains 'notes\.txt'"):
        release.save(tmp_path / "out", force=True)


def test_a_pickled_release_can_still_be_saved(release: ck.Release, tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(release))
    again.save(tmp_path / "out")
    again.to_parquet(tmp_path / "again.parquet")
    assert ck.audit(tmp_path / "out" / "release.csv", certificate=tmp_path / "out" / "certificate.json").ok


def test_force_replaces_nothing_but_a_release(release: ck.Release, tmp_path: Path) -> None:
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(ck.BadInput, match=r"contains 'chapter.txt', which would be deleted"):
        release.save(precious, force=True)
    assert (precious / "chapter.txt").exists()


def test_force_never_deletes_a_table_next_to_a_release(release: ck.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    (tmp_path / "out" / "original.csv").write_text("age,wage\n31,10\n")
    with pytest.raises(ck.BadInput):
        release.save(tmp_path / "out", force=True)
    assert (tmp_path / "out" / "original.csv").exists()


def test_force_looks_into_the_private_folder_too(release: ck.Release, tmp_path: Path) -> None:
    private_folder(tmp_path / "out").mkdir()
    (private_folder(tmp_path / "out") / "original.csv").write_text("age,wage\n31,10\n")
    with pytest.raises(ck.BadInput):
        release.save(tmp_path / "out", force=True)
    assert (private_folder(tmp_path / "out") / "original.csv").exists()
