"""`frame.closeknit`: registered in any order of imports, and the same results as the functions."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pandas as pd
import polars as pl
import pytest

import closeknit as ck
from closeknit.accessors import FrameAccessor, ImportWatcher, register

PEOPLE = {"age": [30, 31, 40, 42], "ill": ["flu", "gout", "flu", "gout"]}
SCHEMA = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
FRAMES = {
    "pandas": (pd.DataFrame(PEOPLE), pd.DataFrame, "closeknit"),
    "polars": (pl.DataFrame(PEOPLE), pl.DataFrame, "closeknit"),
    "polars, short": (pl.DataFrame(PEOPLE), pl.DataFrame, "ck"),
    "polars, lazy": (pl.LazyFrame(PEOPLE), pl.DataFrame, "closeknit"),
    "polars, lazy and short": (pl.LazyFrame(PEOPLE), pl.DataFrame, "ck"),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_the_methods_are_the_functions(frame: str) -> None:
    given, library, name = FRAMES[frame]
    release = getattr(given, name).anonymize(SCHEMA, [ck.KAnonymity(2)], "mondrian", seed=2**80)
    same = ck.anonymize(given, SCHEMA, [ck.KAnonymity(2)], "mondrian", seed=2**80)
    assert type(release.frame) is library and release.certificate == same.certificate
    assert getattr(release.frame, name).audit(certificate=release.certificate).ok
    assert getattr(release.frame, name).audit(SCHEMA, [ck.KAnonymity(3)]).status == "not met"
    assert getattr(given, name).suggest() == ck.suggest(given)


ORDERS = {
    "closeknit first": "import closeknit, pandas as pd, polars as pl",
    "closeknit between": "import polars as pl\nfrom closeknit import Schema\nfrom pandas import DataFrame\nimport pandas as pd",
    "libraries first, then reloaded": "import pandas as pd, polars as pl, closeknit, importlib\nimportlib.reload(closeknit)",
}


@pytest.mark.parametrize("order", ORDERS)
def test_any_order_of_imports_registers(order: str) -> None:
    check = "print(*[type(frame({'a': [1]}).closeknit).__name__ for frame in (pd.DataFrame, pl.DataFrame, pl.LazyFrame)])"
    left = "import sys\nprint([type(finder).__name__ for finder in sys.meta_path if 'Watcher' in type(finder).__name__])"
    code = f"import warnings\nwarnings.simplefilter('error')\n{ORDERS[order]}\n{check}\n{left}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["FrameAccessor " * 2 + "FrameAccessor", "[]"]


def test_a_library_that_is_missing_stays_missing() -> None:
    code = """
import sys, importlib.util
sys.path[:] = [path for path in sys.path if "site-packages" not in path]
import closeknit
try:
    import pandas
except ModuleNotFoundError as error:
    print(error.name, importlib.util.find_spec("polars"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "pandas None"


def test_a_finder_that_asks_all_finders_does_not_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asking:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
            return next((spec for other in sys.meta_path[:1] if (spec := other.find_spec(name, path, target))), None)

    watcher = ImportWatcher(["pandas"])
    monkeypatch.setattr(sys, "meta_path", [watcher, Asking, *sys.meta_path])
    spec = watcher.find_spec("pandas")
    assert spec is not None and spec.name == "pandas" and watcher.find_spec("json") is None


def test_an_attribute_of_the_frames_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pd.DataFrame, "closeknit", "mine")
    register(pd)
    assert pd.DataFrame.closeknit == "mine"  # type: ignore[attr-defined]
    assert isinstance(pl.DataFrame(PEOPLE).ck, FrameAccessor)  # type: ignore[attr-defined]
