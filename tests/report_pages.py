"""What tests of the reports share: a page as a browser takes it, and a release to be reported on."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from typing import Any

import closeknit as ck

SEED = 271828182845904523536028747135266249775


class Page(HTMLParser):
    """Tags, attributes and text of a page, as a browser takes them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.text).split())


def requests_nothing(page: str) -> None:
    """No script, no handler, nothing that is fetched."""
    read = Page(page)
    fetching = {
        "script",
        "link",
        "iframe",
        "object",
        "embed",
        "img",
        "image",
        "base",
        "form",
        "audio",
        "video",
        "source",
        "use",
    }
    assert {tag for tag, _ in read.tags} & fetching == set()
    for tag, attributes in read.tags:
        requested = [
            name for name in attributes if name.startswith("on") or name in ("src", "href", "xlink:href", "style", "action")
        ]
        assert requested == [], (tag, attributes)
        assert not any(value and "url(" in value for value in attributes.values()), (tag, attributes)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(styles) == 1 and "url(" not in styles[0] and "@import" not in styles[0]
    assert "default-src 'none'" in html.unescape(page)


def hospital(rows: int = 200, **changes: Any) -> ck.Release:
    models = changes.pop("models", [ck.KAnonymity(4), ck.TCloseness("disease", 0.3)])
    requested = {"seed": SEED, **changes}
    return ck.anonymize(ck.datasets.hospital(rows), ck.datasets.hospital_schema(), models, **requested)
