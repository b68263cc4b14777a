"""What people state in a dossier: a YAML file with an answer for each box, and who gives it.

```yaml
by: Ann Example, data protection officer
date: 2026-01-31
answers:
  purpose: Research on length of stay
  attempt: {text: 1, by: Bob Example}      # another person for one box
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

from closeknit.api.dossiers.frameworks import Framework
from closeknit.api.recipe import parse_forms
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.params import number
from closeknit.core.strict_json import read_text
from closeknit.report.dossier_record import Answer, Box

RIGHT = "write it as 'closeknit dossier --for NAME --template' prints it"
KEYS = ("by", "date", "answers")


@dataclass(frozen=True)
class Statements:
    """Answers of people.

    Args:
        texts: the answer of each box, by its key.
        by: who gives it.
        on: when, for all of them.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    by: Mapping[str, str] = field(default_factory=dict)
    on: str | None = None

    @classmethod
    def read(cls, file: str | PathLike[str], framework: Framework) -> Statements:
        """Read a file of answers; an unknown box, or an answer by no one, is refused.

        Args:
            file: the YAML file.
            framework: its boxes.
        """
        place = Path(file)
        content = parse_forms(read_text(place, "name a file of answers"), place)
        if not isinstance(content, Mapping) or not isinstance(content.get("answers") or {}, Mapping):
            raise BadInput("is not a file of answers", file=place, right=RIGHT)
        for key in content:
            if key not in KEYS:
                raise BadInput(f"has the unknown key '{key}'", file=place, right=suggest_name(key, KEYS))
        on = content.get("date")
        if on is not None and not isinstance(on, date):
            raise BadInput(f"date={on!r} is not a day", file=place, right="write it as 2026-01-31")
        known = [key for question in framework.questions for key, _ in question.boxes]
        texts: dict[str, str] = {}
        by: dict[str, str] = {}
        for key, given in (content.get("answers") or {}).items():
            if key not in known:
                raise BadInput(f"'{key}' is no box of {framework.name}", file=place, right=suggest_name(key, known))
            text, who = _parse_answer(given, content.get("by"))
            if text:
                if not who:
                    right = "add by: NAME, at the top or next to the answer"
                    raise BadInput(f"no one states the answer '{key}'", file=place, right=right)
                texts[key], by[key] = text, who
        return cls(texts, by, None if on is None else str(on))._check_attempt(place)

    def _check_attempt(self, place: Path) -> Statements:
        if "attempt" in self.texts:
            try:
                number("attempt", self.texts["attempt"], least=0, most=1)
            except BadInput as bad:
                raise bad.replace(file=place) from None
        return self

    def fill(self, key: str, label: str) -> Box:
        """The box of a question, with its answer if there is one.

        Args:
            key: of the box.
            label: what is asked.
        """
        text = self.texts.get(key)
        return Box(key=key, label=label, text=text, by=self.by.get(key), on=self.on if text else None)

    def multiply(self, highest: float | None) -> list[Answer]:
        """The stated probability of an attempt times the highest risk, where both are known.

        Args:
            highest: the highest risk of the release.
        """
        if "attempt" not in self.texts or highest is None:
            return []
        attempt = float(number("attempt", self.texts["attempt"]))
        detail = f"probability of an attempt as stated by {self.by['attempt']}, times the risk if it is attempted"
        value = f"{attempt:.4g} × {highest:.4g} = {attempt * highest:.4g}"
        return [Answer(label="Attempt × highest risk", value=value, basis="stated", detail=detail)]


def _parse_answer(given: Any, usual: Any) -> tuple[str, str]:
    if isinstance(given, Mapping):
        given, usual = given.get("text"), given.get("by", usual)
    return ("" if given is None else str(given).strip()), ("" if usual is None else str(usual).strip())


def write_template(framework: Framework) -> str:
    """A file of answers with every box of a framework, empty.

    Args:
        framework: the framework.
    """
    lines = [f"# Answers for: {framework.title}", "by:      # who states them", "date:    # as 2026-01-31", "answers:"]
    seen: set[str] = set()
    for question in framework.questions:
        for key, label in question.boxes:
            if key not in seen:
                lines += [f"  # {question.section}: {label}", f"  {key}:"]
                seen.add(key)
    return "\n".join(lines) + "\n"
