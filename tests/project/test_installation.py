"""Wheel, sdist and each extra: built, installed into an environment of its own, and tried as a new user would."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "closeknit"

FIRST_RELEASE = """
import closeknit as ck
from closeknit.io.files import write_csv
write_csv(ck.datasets.hospital(100), "patients.csv")
release = ck.anonymize("patients.csv", ck.datasets.hospital_schema(), [ck.KAnonymity(5)], ck.Mondrian())
release.save("out", report=False)
assert ck.audit("out").ok
"""
TRIALS = {
    "": FIRST_RELEASE,
    "pandas": """
import closeknit as ck, pandas
frame = pandas.DataFrame({"age": [30, 31, 40, 41], "disease": ["flu", "gout", "flu", "acne"]})
schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})
assert isinstance(ck.anonymize(frame, schema, [ck.KAnonymity(2)]).frame, pandas.DataFrame)
""",
    "web": """
import subprocess, sys, urllib.request
words = [sys.executable, "-m", "closeknit", "ui", "--no-browser"]
with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
    try:
        visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())  # the single-use link sets a cookie
        assert visitor.open(server.stdout.readline().strip(), timeout=60).status == 200
    finally:
        server.terminate()
""",
    "spark": """
import closeknit as ck, pathlib

pathlib.Path("t.csv").write_text("age,disease\\n" + "".join(f"{20 + i % 9},{'flu' if i % 2 else 'gout'}\\n" for i in range(90)))
schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})
release = ck.anonymize("t.csv", schema, [ck.KAnonymity(3)], ck.Mondrian(), engine="spark", master="local[1]")
assert release.certificate.ok
""",
}


def run(*words: object, cwd: Path) -> str:
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    done = subprocess.run(list(map(str, words)), cwd=cwd, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


def create_environment(folder: Path) -> Path:
    """The Python of a new environment without any package."""
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    return folder / "venv" / "bin" / "python"


def install(python: Path, *words: object) -> None:
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile", *words, cwd=ROOT)


def test_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = {path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert packed == {str(path.relative_to(SOURCE.parent)) for path in tracked}


def test_installed_wheel_makes_and_audits_a_release(built: Path, tmp_path: Path) -> None:
    """From the wheel alone: what the source tree has and the wheel has not is missed here."""
    python = create_environment(tmp_path)
    install(python, "--no-deps", "--no-index", *built.glob("*.whl"))
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")  # behind the wheel's own folder
    command = tmp_path / "venv" / "bin" / "closeknit"
    assert run(command, "--version", cwd=tmp_path).startswith("closeknit ")
    assert str(site) in run(python, "-c", "import closeknit; print(closeknit.__file__)", cwd=tmp_path)
    run(python, "-c", FIRST_RELEASE, cwd=tmp_path)
    assert "numeric" in run(command, "inspect", "patients.csv", cwd=tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("extra", TRIALS)
def test_extra_is_enough_for_what_it_offers(extra: str, tmp_path: Path) -> None:
    """`pip install .` and `pip install '.[web]'` and so on, each alone, with what the registry has."""
    python = create_environment(tmp_path)
    install(python, "-c", "constraints.txt", f"{ROOT}[{extra}]" if extra else ROOT)
    run(python, "-c", TRIALS[extra], cwd=tmp_path)


@pytest.mark.soak
def test_sdist_can_be_installed(built: Path, tmp_path: Path) -> None:
    python = create_environment(tmp_path)
    install(python, "-c", "constraints.txt", *built.glob("*.tar.gz"))
    run(python, "-c", FIRST_RELEASE, cwd=tmp_path)
