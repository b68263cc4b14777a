"""Profiles of the randomised tests, the mark `soak`, what may be skipped, public tables, benchmarks, the Spark session."""

from __future__ import annotations

import ctypes
import gc
import os
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings

from closeknit.api import anonymize, compare
from closeknit.core.columns import Columns
from closeknit.io.ndjson import lines_of
from closeknit.io.parquet import table_from_columns
from database_servers import Server, postgresql_folder, run_folder, share, start_mariadb, start_postgresql

CI = os.environ.get("CI") == "true"
LARGE = "large version: runs under `make soak`"
NO_TABLES = "the public tables are not here: set CLOSEKNIT_DATA to their folder"
NO_CASES = "got empty parameter set"  # as pytest says it of a list of cases that only soak fills
ALLOWED_SKIPS = (LARGE, NO_TABLES, NO_CASES)  # in CI; whatever else is missing there, the project could have installed

os.environ["CLOSEKNIT_STATE"] = tempfile.mkdtemp()  # runs of tests are not the user's runs

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SOAK = os.environ.get("CLOSEKNIT_SOAK") == "1"
SOAK_SEED = int(os.environ.setdefault("CLOSEKNIT_SOAK_SEED", str(secrets.randbelow(2**32))))  # all processes of a run share it

BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # most of what Spark costs in small tests is compiling itself
BRIEF_SPARK = {  # so is Java that Spark writes and compiles for each query, and planning again what is planned on a few rows
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.parquet.compression.codec": "uncompressed",
}

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
            item.add_marker(pytest.mark.skip(reason=LARGE))


def skip_reasons(reporter: Any) -> Counter[str]:
    """How many tests were skipped for each reason."""
    reports = reporter.stats.get("skipped", []) if reporter else []
    return Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for reason, tests in skip_reasons(terminalreporter).most_common():
        forbidden = CI and not reason.startswith(ALLOWED_SKIPS)
        terminalreporter.write_line(f"{'ERROR in CI: ' if forbidden else ''}skipped {tests}: {reason}", red=forbidden)


def pytest_sessionfinish(session: pytest.Session) -> None:
    gc.unfreeze()  # DuckDB complains about objects that are never collected
    reasons = skip_reasons(session.config.pluginmanager.get_plugin("terminalreporter"))
    if CI and not all(reason.startswith(ALLOWED_SKIPS) for reason in reasons):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_finish() -> None:
    # Half a million objects of pytest and of imported modules stay until the end: who collects garbage, as whatever measures
    # memory does, need not look through them each time.
    gc.freeze()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of public tables: $CLOSEKNIT_DATA, or `shared/data` next to the project."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CLOSEKNIT_DATA", default))
    if not folder.is_dir():
        pytest.skip(NO_TABLES)
    return folder


@pytest.fixture(scope="session")
def benchmark() -> Iterator[Callable[[str], Any]]:
    """A module of the benchmarks by its name; they import each other as their commands do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(BENCHMARKS)
        yield import_module


@pytest.fixture
def best(benchmark: Callable[[str], Any]) -> Any:
    """The benchmark that searches for the best partition."""
    return benchmark("knit_best")


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
    from closeknit.spark.session import session

    found = session("local[2]")
    for name, value in BRIEF_SPARK.items():
        found.conf.set(name, value)
    yield found
    found.stop()


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A PostgreSQL of our own, one per run."""
    if postgresql_folder() is None:
        pytest.skip("there is no PostgreSQL here (Debian: apt-get install postgresql)")
    with share(run_folder(tmp_path_factory), "postgresql", start_postgresql) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A MariaDB of our own, one per run."""
    if shutil.which("mariadbd") is None:
        pytest.skip("there is no MariaDB here (Debian: apt-get install mariadb-server)")
    with share(run_folder(tmp_path_factory), "mariadb", start_mariadb) as server:
        yield server


@pytest.fixture(params=["sqlite", "duckdb", "postgresql", "mariadb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database of each kind."""
    if request.param in ("sqlite", "duckdb"):
        return f"{request.param}:///{tmp_path}/clinic.db"
    return request.getfixturevalue(request.param).url()


@pytest.fixture(scope="module", autouse=True)
def _vacuous_guarantees_are_allowed(request: pytest.FixtureRequest) -> Iterator[None]:
    """In a module that says `ALLOW_VACUOUS = True`: loose limits, chosen so that a method has much room, are not refused."""
    with pytest.MonkeyPatch.context() as patched:
        for function in (anonymize, compare) if getattr(request.module, "ALLOW_VACUOUS", False) else ():
            patched.setitem(function.__kwdefaults__, "allow_vacuous", True)
        yield


@pytest.fixture
def modes_bind() -> Iterator[None]:
    """File modes hold for this thread even where the tests run as root: it gives up the right to override them."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root may read and write everything")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the capability call; this thread
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice, for 64 capabilities
    assert libc.capget(header, sets) == 0
    had, sets[0] = sets[0], sets[0] & ~0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
    assert libc.capset(header, sets) == 0
    yield
    sets[0] = had
    assert libc.capset(header, sets) == 0


def write_ndjson(columns: Columns, path: Path) -> None:
    """Write a table as NDJSON."""
    path.write_text("".join(line + "\n" for line in lines_of(columns)), encoding="utf-8")


def write_ipc(columns: Columns, path: Path) -> None:
    """Write a table as an Arrow file."""
    table = table_from_columns(columns)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
