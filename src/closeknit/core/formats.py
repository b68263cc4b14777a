"""Formats of saved documents: certificates, reports, comparisons, frontiers. Earlier formats are read by their keys.

| format | versions | difference |
| --- | --- | --- |
| 1 | 0.1 and drafts of 0.2 | `promises`, `asked`, `reached`, `held`, `withheld` |
| 2 | from 0.2 | `guarantees`, `requested`, `measured`, `met`, `suppressed` |
"""

from __future__ import annotations

from typing import Any

FORMAT = 2
RENAMED = {
    "withheld": "suppressed",
    "promises": "guarantees",
    "promise": "guarantee",
    "asked": "requested",
    "reached": "measured",
    "held": "met",
}
# Below these keys stand names that a user chose, or parameters, and no key of a record.
VERBATIM = frozenset(
    {"columns", "cells", "form", "model", "method", "estimates", "recipe", "details", "loss_by_column", "outside_majority"}
)
BY_COLUMN = frozenset({"distances", "diversity", "secrets"})  # records under the names of columns


def upgrade_format(content: Any) -> Any:
    """A document of an earlier format with the keys of the current one; its format number stays.

    Args:
        content: the parsed document.

    >>> upgrade_format({"format": 1, "withheld": 3, "columns": {"asked": "flat"}})
    {'format': 1, 'suppressed': 3, 'columns': {'asked': 'flat'}}
    """
    return _rename_keys(content) if isinstance(content, dict) and content.get("format") == 1 else content


def _rename_keys(content: Any, by_column: bool = False) -> Any:
    if isinstance(content, list):
        return [_rename_keys(part) for part in content]
    if not isinstance(content, dict):
        return content
    if by_column:
        return {name: _rename_keys(record) for name, record in content.items()}
    return {
        _current_key(key, value): value if key in VERBATIM else _rename_keys(value, key in BY_COLUMN)
        for key, value in content.items()
    }


def _current_key(key: str, value: Any) -> str:
    return "levels" if key == "reached" and isinstance(value, dict) else RENAMED.get(key, key)
