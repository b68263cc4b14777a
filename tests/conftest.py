"""Profiles of the randomised tests, the mark `soak`, the folder of public tables, the benchmarks, and the session of Spark."""

from __future__ import annotations

import gc
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SOAK = os.environ.get("CLOSEKNIT_SOAK") == "1"
SOAK_SEED = int(os.environ.setdefault("CLOSEKNIT_SOAK_SEED", str(secrets.randbelow(2**32))))  # all processes of a run share it

BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # most of what Spark costs in small tests is compiling itself
BRIEF_SPARK = {  # so is Java that Spark writes and compiles for each query, and planning anew what is planned on a few rows
    "spark.sql.shuffle.partitions": "2", "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false", "spark.sql.parquet.compression.codec": "uncompressed",
}  # fmt: skip

# `make test` must say the same thing twice; fresh randomness is the work of `make soak`.
settings.register_profile("default", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("soak", deadline=None, max_examples=2000, derandomize=False, print_blob=True)
settings.load_profile("soak" if SOAK else "default")


def examples(usual: int) -> int:
    """For `@settings(max_examples=examples(20))`: as many in `make test`, forty times as many in `make soak`."""
    return usual * 40 if SOAK else usual


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What uses Spark comes first: a process of `-n 2` begins with the first tests and is robbed of its last ones only, so all
    # of these meet in one process and share one session.
    items.sort(key=lambda item: "java" not in getattr(item, "fixturenames", ()))
    if SOAK:
        return
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.skip(reason="large version: runs under `make soak`"))


def pytest_collection_finish() -> None:
    # Half a million objects of pytest and of imported modules stay until the end: who collects garbage, as whatever measures
    # memory does, need not look through them each time.
    gc.freeze()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of public tables: $CLOSEKNIT_DATA, or `shared/data` beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CLOSEKNIT_DATA", beside))
    if not folder.is_dir():
        pytest.skip("the public tables are not here: set CLOSEKNIT_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def benchmark() -> Iterator[Callable[[str], Any]]:
    """A module of the benchmarks by its name; they import each other as their commands do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(BENCHMARKS)
        yield import_module


@pytest.fixture(scope="session")
def java() -> None:
    """Spark is there, and what it runs on."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'closeknit[spark]'")
    if shutil.which("java") is None:
        pytest.skip("there is no Java: install openjdk-17-jre-headless")
    os.environ.setdefault("JDK_JAVA_OPTIONS", BRIEF_JAVA)


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[Any]:
    """One session of this machine for all tests."""
    from closeknit.engines.spark_session import session

    found = session("local[2]")
    for name, value in BRIEF_SPARK.items():
        found.conf.set(name, value)
    yield found
    found.stop()
