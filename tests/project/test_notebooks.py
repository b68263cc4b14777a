"""The notebooks of the documentation: each is run, and prints what its stored outputs show.

`CLOSEKNIT_RENEW=1 pytest tests/project/test_notebooks.py` stores the outputs of today.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import closeknit

nbformat = pytest.importorskip("nbformat", reason="nbformat, which reads notebooks, is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient, which runs notebooks, is not installed")
pytest.importorskip("ipykernel", reason="ipykernel, which runs notebooks, is not installed")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def printed(notebook: Any) -> list[str]:
    """What each cell of code prints, or the value that it ends with."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
            found.append("".join(texts))
    return found


def run_notebook(notebook: Any, folder: Path) -> Any:
    """A copy with the outputs of a new kernel, without what differs from run to run."""
    done = nbformat.from_dict(notebook)
    nbclient.NotebookClient(done, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in done.cells:
        cell.metadata.clear()
    return done


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_prints_what_is_stored(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = str(Path(closeknit.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    stored = nbformat.read(path, as_version=4)
    done = run_notebook(stored, tmp_path)
    assert not any(output.get("name") == "stderr" for cell in done.cells for output in cell.get("outputs", []))
    if os.environ.get("CLOSEKNIT_RENEW") == "1":
        nbformat.write(done, path)
        stored = done
    assert printed(done) == printed(stored)
    assert any(printed(stored))
