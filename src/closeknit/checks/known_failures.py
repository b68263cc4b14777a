"""Checks that are known to fail: thing -> check -> reason. An entry must be removed once its check passes."""

from __future__ import annotations

KNOWN: dict[str, dict[str, str]] = {}
