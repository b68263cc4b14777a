"""The benchmarks run on small generated tables, and a second run takes the place of the first on their page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def bench(page: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), *arguments, "--rows", "300", "--results", str(page)]
    environment = {**os.environ, "CLOSEKNIT_RIVALS": str(page.with_name("absent"))}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_page_has_every_section_once(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for names in (["rivals"], ["sal", "adult", "rivals"]):
        done = bench(page, *names)
        assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert [title.split(":")[0].split()[1] for title in titles] == ["SAL", "Adult", "Other"]
    assert text.count("is generated (300 rows") == 2, "a stand-in is never silent"
    assert "Not measured: the rivals' environment is absent" in text
    assert str(tmp_path) not in text, "a page names no place"


def test_unknown_name_is_refused(tmp_path: Path) -> None:
    done = bench(tmp_path / "page.md", "nothing")
    assert done.returncode == 2
    assert "there is no benchmark 'nothing'" in done.stderr
    assert not (tmp_path / "page.md").exists()
