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


AGES = {"age": [30, 31, None, 42, 95, 97, 99, 99], "ill": ["flu", "gout"] * 4}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_bounds_become_intervals(library: Any) -> None:
    schema = ck.Schema(quasi={"age": ck.numeric(0, 120, top=90)}, sensitive={"ill": ck.flat()})
    form = ck.generalized(cells="bounds")
    release = ck.anonymize(library(AGES), schema, [ck.KAnonymity(2)], "mondrian", form=form, seed=2**80).frame
    ends = [
        tuple(None if pd.isna(end) else end for end in row) for row in zip(release["age_lo"], release["age_hi"], strict=True)
    ]
    assert {(30, 42), (90, None), (None, None)} == set(ends)
    if library is pl.LazyFrame:
        release = release.lazy()
    found = release.closeknit.intervals()
    if library is pd.DataFrame:
        assert list(found) == ["age", "ill"] and found["age"].dtype == "interval[float64, both]"
        read = [(None, None) if pd.isna(one) else (one.left, one.right) for one in found["age"]]
        assert read == [(lo, float("inf") if hi is None and lo is not None else hi) for lo, hi in ends]
        assert pd.Interval(30, 42, closed="both") in set(found["age"].dropna())
    else:
        found = found.lazy().collect()
        assert found.columns == ["age", "ill"] and found.schema["age"] == pl.Struct({"lo": pl.Int64, "hi": pl.Int64})
        assert [(one["lo"], one["hi"]) if one else (None, None) for one in found["age"].to_list()] == ends
    with pytest.raises(ck.BadInput, match="has no columns of bounds; publish it with form"):
        library(PEOPLE).closeknit.intervals()
    with pytest.raises(ck.BadInput, match="there is a column 'age' next to its bounds"):
        library({"age": [1], "age_lo": [1], "age_hi": [1]}).closeknit.intervals()


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
