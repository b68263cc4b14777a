"""Changes of the draft recipe: earlier drafts are kept, so that a change can be undone."""

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
    """Save another draft and keep the previous one."""
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
    """Restore the draft before the last change."""
    for number in _numbers(case)[-1:]:
        (case.folder / "drafts" / f"{number}.yaml").replace(case.draft)


def changes(case: Case) -> int:
    """Return how many changes can be undone."""
    return len(_numbers(case))


def _numbers(case: Case) -> list[int]:
    return sorted(int(place.stem) for place in (case.folder / "drafts").glob("*.yaml"))


def mark_table(case: Case, draft: Draft) -> str:
    """Return a digest of what the level of the raw table depends on: columns, roles, and whether there is a population."""
    return mark({**draft, "people": case.people and case.people.name}, "data", "schema", "people")


def mark(draft: Draft, *keys: str) -> str:
    """Return a digest of these keys of a draft: results for another digest are out of date.

    >>> mark({"models": []}, "models") == mark({"models": [], "method": "knit"}, "models")
    True
    """
    text = json.dumps({key: draft.get(key) for key in keys}, default=str)  # the order of columns matters
    return hashlib.sha256(text.encode()).hexdigest()[:16]
