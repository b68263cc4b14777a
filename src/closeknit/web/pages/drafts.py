"""Changes of the recipe under way: each is kept with the one before it, so that it can be taken back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from closeknit.web.case_tasks import draft_of, save_draft
from closeknit.web.cases import Case
from closeknit.web.desk.draft import Draft

KEPT = 50  # earlier drafts


def change(case: Case, draft: Mapping[str, Any]) -> None:
    """Save another draft; the one that was there can be had back."""
    if draft == draft_of(case):
        return
    folder = case.folder / "drafts"
    folder.mkdir(mode=0o700, exist_ok=True)
    numbers = _numbers(case)
    place = folder / f"{max(numbers, default=0) + 1}.yaml"
    place.write_bytes(case.draft.read_bytes())
    place.chmod(0o600)
    for number in numbers[: -KEPT + 1]:
        (folder / f"{number}.yaml").unlink(missing_ok=True)
    save_draft(case, draft)


def undo(case: Case) -> None:
    """Back to the draft before the last change."""
    for number in _numbers(case)[-1:]:
        (case.folder / "drafts" / f"{number}.yaml").replace(case.draft)


def changes(case: Case) -> int:
    """How many changes can be taken back."""
    return len(_numbers(case))


def _numbers(case: Case) -> list[int]:
    return sorted(int(place.stem) for place in (case.folder / "drafts").glob("*.yaml"))


def mark(draft: Draft, *keys: str) -> str:
    """A sign of these parts of a draft: what was found for another sign is out of date.

    >>> mark({"models": []}, "models") == mark({"models": [], "method": "knit"}, "models")
    True
    """
    told = json.dumps({key: draft.get(key) for key in keys}, default=str)  # the order of columns is a part of it
    return hashlib.sha256(told.encode()).hexdigest()[:16]
