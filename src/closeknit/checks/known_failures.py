"""Checks that are known to fail: thing -> check -> reason. Strict: one that passes again must be taken off the table."""

from __future__ import annotations

KNOWN: dict[str, dict[str, str]] = {}
