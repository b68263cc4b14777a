"""What mkdocs does not do by itself: notebooks and the pages of the root folder as pages, a link to the glossary everywhere.

Notebooks become Markdown here because the usual plugin adds 600 kB to each page and loads scripts from another host.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
FROM_ROOT = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
GLOSSARY = "glossary.md"
LINKED = ("tests/methods/test_soft_stop.py",)  # files of the repository that pages link to: the site has a copy


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each notebook and for the pages that are kept in the root folder."""
    for name, source in FROM_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        for page, kept in FROM_ROOT.items():
            text = text.replace(f"]({kept})", f"]({page})")
        files.append(File.generated(config, name, content=text))
    for source in LINKED:
        files.append(File.generated(config, source, content=(ROOT / source).read_text(encoding="utf-8")))
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        notebook = json.loads(file.content_string)
        title = posixpath.basename(file.src_uri)
        download = f"[Download this notebook]({title})"
        files.append(File.generated(config, file.src_uri.replace(".ipynb", ".md"), content=notebook_page(notebook, download)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to notebooks to their pages, and end every page with a link to the glossary."""
    if not page.file.src_uri.startswith("notebooks/"):
        markdown = markdown.replace(".ipynb)", ".md)")
    for name, source in [*FROM_ROOT.items(), *((source, source) for source in LINKED)]:
        markdown = markdown.replace(f"](../{source})", f"]({name})")
    if page.file.src_uri == GLOSSARY:
        return markdown
    glossary = posixpath.relpath(GLOSSARY, posixpath.dirname(page.file.src_uri) or ".")
    return f"{markdown}\n\n---\n\nThe [glossary]({glossary}) defines the terms of this page.\n"


def notebook_page(notebook: dict[str, Any], download: str) -> str:
    """The notebook as Markdown: texts as they are, code and printed output as blocks, HTML and SVG output as it is shown."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(_fence("python", source))
        parts += [_output(output) for output in cell["outputs"]]
    parts.insert(1, download)
    return "\n\n".join(parts)


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fence("text", "".join(output["text"]))
    if output["output_type"] == "error":
        return _fence("text", f"{output['ename']}: {output['evalue']}")
    data = output["data"]
    for shown in ("text/html", "image/svg+xml"):
        if shown in data:
            return re.sub(r"\n\s*\n", "\n", "".join(data[shown]))
    return _fence("text", "".join(data["text/plain"]))


def _fence(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
