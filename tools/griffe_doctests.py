"""Shows doctests in docstrings as blocks of code in the API reference; without this they become nested quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>> .*(?:\n(?!\n).*)*", re.M)


class Doctests(griffe.Extension):
    """Puts fences around the doctests of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object; the source stays as it is."""
        if obj.docstring and not re.search(r"^\s*(?:Examples?:|```)", obj.docstring.value, re.M):
            obj.docstring.value = DOCTEST.sub(lambda block: f"```pycon\n{block[0]}\n```", obj.docstring.value)
