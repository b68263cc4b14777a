"""The first call of an installation: what is compiled, what a person at the terminal sees of it, and where it is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest
from numba import njit
from numba.core import config
from numba.core.errors import TypingError

from closeknit.kernels import caching, compiling
from closeknit.kernels.geometry.boxes import range_loss
from kernel_inputs import flat_scales

UNITS = 109  # functions that are compiled for a first release of the generated table

FIRST_CALL = """
import json
from numba.core import event
from closeknit import KAnonymity, TCloseness, anonymize
from closeknit.cli.progress import with_compiling
from closeknit.datasets import hospital, hospital_schema

class Compiled(event.Listener):
    def on_start(self, event):
        made = event.data["dispatcher"]
        if made.py_func.__module__.startswith("closeknit"):
            units.append(f"{type(made).__name__} {made.py_func.__module__}.{made.py_func.__name__}")
    def on_end(self, event):
        pass

units, texts = [], []
event.register("numba:compile", Compiled())
with with_compiling(lambda what, share: texts.append(what)) as progress:
    anonymize(hospital(200), hospital_schema(), [KAnonymity(6), TCloseness("disease", 0.3)], seed=1, progress=progress)
print(json.dumps([units, texts]))
"""


def first_call(folder: Path) -> tuple[list[str], list[str]]:
    """Functions that were compiled, and texts of progress, of a process with this cache."""
    world = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", FIRST_CALL], env=world, capture_output=True, text=True, check=True)
    units, texts = json.loads(done.stdout)
    return units, texts


def test_first_call_compiles_each_kernel_once_and_says_so(tmp_path: Path) -> None:
    units, texts = first_call(tmp_path)
    assert {unit for unit in units if units.count(unit) > 1} <= {
        "_Part closeknit.kernels.counting.sorting.ascend"
    }  # codes and numbers
    assert 0 < len(units) <= UNITS
    shown = [text.split() for text in texts if text.startswith("compiling")]
    assert [text[:2] + text[3:4] for text in shown] == [["compiling", "(once),", "of"]] * len(units)
    assert [int(text[2]) for text in shown] == list(range(1, len(units) + 1))
    assert all(int(text[2]) <= int(text[4]) for text in shown)
    assert "encoding" in texts and not texts[-1].startswith("compiling")
    units, texts = first_call(tmp_path)
    assert units == [] and not any(text.startswith("compiling") for text in texts)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An installation, a home and a folder for temporary files of a process that has not chosen yet."""
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setattr(caching, "HERE", tmp_path / "installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(caching.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    caching.cache_folder.cache_clear()
    yield tmp_path
    caching.cache_folder.cache_clear()


def refuse(monkeypatch: pytest.MonkeyPatch, *closed: Path) -> None:
    """No file can be made under these folders; an administrator could otherwise write anywhere."""
    writable = caching._is_writable
    monkeypatch.setattr(
        caching, "_is_writable", lambda folder: not any(folder.is_relative_to(each) for each in closed) and writable(folder)
    )


def test_cache_is_next_to_the_kernels(places: Path) -> None:
    assert caching.cache_folder() == places / "installed" / "__pycache__"


def test_read_only_installation_has_its_cache_with_the_user(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, places / "installed")
    assert caching.cache_folder().parent == places / "home" / "closeknit"


def test_without_a_home_the_cache_is_temporary_and_private(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, places / "installed", places / "home")
    folder = caching.cache_folder()
    assert folder.is_relative_to(places / "tmp") and folder.parent.stat().st_mode & 0o777 == 0o700


def test_temporary_folder_of_another_user_is_not_used(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, places / "installed", places / "home")
    folder = caching.cache_folder().parent
    caching.cache_folder.cache_clear()
    folder.chmod(0o777)
    assert caching.cache_folder() is None


def test_kernel_without_any_cache_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)
    assert compiling.bare(range_loss.py_func)(flat_scales([5]), 0, 1, 3) == 0.5


def test_other_code_of_numba_calls_no_kernel() -> None:
    """It would hand over the tuple in a way that the kernel does not read."""

    @njit
    def lost(scales):  # type: ignore[no-untyped-def]
        return range_loss(scales, 0, 1, 3)

    with pytest.raises(TypingError, match="range_loss is a kernel, and only kernels call it"):
        lost(flat_scales([5]))
    assert compiling.kernel(lost.py_func)(flat_scales([5])) == 0.5


def test_change_of_a_called_kernel_makes_cached_code_stale(places: Path) -> None:
    here = places / "installed"
    here.mkdir()
    (here / "calls.py").write_text("from closeknit.kernels.called import one\n", encoding="utf-8")
    (here / "called.py").write_text("one = 1\n", encoding="utf-8")
    before = caching._stamp(here / "calls.py")
    (here / "called.py").write_text("one = 2\n", encoding="utf-8")
    caching._stamp.cache_clear()
    assert caching._stamp(here / "calls.py") != before


def test_cached_code_whose_types_have_moved_since_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of another version may name a class of a module that no longer exists: it is not unpickled."""
    monkeypatch.setattr(caching, "cache_folder", lambda: tmp_path)
    old = caching.KernelCache(range_loss.py_func)._cache_file
    current = caching.KernelCache(range_loss.py_func)._cache_file
    monkeypatch.setattr(old, "_version", numba.__version__ + "0" * 64)
    monkeypatch.setattr(old, "_dump", lambda _: b"cclosed_module\nGone\n.")  # a pickle that imports closed_module
    old._save_index({})
    with pytest.raises(ModuleNotFoundError):
        old._load_index()
    assert current._load_index() == {}
