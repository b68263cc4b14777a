"""What a stream does with rows that do not arrive as declared: late, corrected, from a wrong clock, or with new values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from closeknit.core.errors import BadInput
from closeknit.core.params import build, choice, number, whole

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
RUN_RULES = ("key", "remember", "late", "jump", "patience")
GENERALIZE, REFUSE, ACCEPT = "generalize", "refuse", "accept"


@dataclass(frozen=True)
class InputRules:
    """The rules for rows that do not arrive as declared. `push` and Spark follow the first two, `closeknit stream` all.

    Args:
        unknown: a value outside its declared domain: "generalize" (its class writes `*`) or "refuse" (the row is left out).
        alarm: the largest share of such values in a column, of 1,000 rows; above it an alarm is raised.
        key: the column that identifies a record; a row that repeats a key is refused: both versions could be subtracted.
        remember: the number of keys that are remembered.
        late: a row that is older than one that arrived: "refuse", or "accept", as if it were as old as that one.
        jump: the longest step of the time column that a single row can cause, as "1h"; by default any.
        patience: how long an output may be down before the run ends, as "1h".

    >>> InputRules.of({"key": "record", "unknown": "refuse", "alarm": 0.05})
    InputRules(unknown='refuse', alarm=0.05, key='record', remember=100000, late='refuse', jump=None, patience='1h')
    >>> InputRules(unknown="drop")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: unknown='drop' is unknown; choose one of: generalize, refuse
    """

    unknown: str = GENERALIZE
    alarm: float = 0.01
    key: str | None = None
    remember: int = 100_000
    late: str = REFUSE
    jump: str | None = None
    patience: str = "1h"

    def __post_init__(self) -> None:
        choice("unknown", self.unknown, (GENERALIZE, REFUSE))
        choice("late", self.late, (REFUSE, ACCEPT))
        number("alarm", self.alarm, least=0, most=1)
        whole("remember", self.remember, least=1)
        if not isinstance(self.key, str | None):
            raise BadInput(f"key={self.key!r} is not a column", right="name a column of the rows")
        parse_seconds("patience", self.patience)
        if self.jump is not None:
            parse_seconds("jump", self.jump)

    @classmethod
    def of(cls, form: Any) -> InputRules:
        """From the value of the key `rules` of a recipe's stream.

        Args:
            form: a mapping of parameters.
        """
        if not isinstance(form, Mapping):
            raise BadInput(f"rules {form!r} cannot be read", right="write {key: record, late: accept}")
        return build("rules", cls, form)

    def refuse_run_rules(self, where: str) -> None:
        """Refuse rules about an input or an output where there is none, so that no one relies on them.

        Args:
            where: where there is none.

        >>> InputRules(key="record").refuse_run_rules("push")
        Traceback (most recent call last):
        closeknit.core.errors.BadInput: the rule key='record' belongs to an input and output, which push has not; ...
        """
        for name in RUN_RULES:
            if (value := getattr(self, name)) != getattr(InputRules, name):
                right = "use 'closeknit stream' without --engine spark, the service, or leave the rule out"
                raise BadInput(f"the rule {name}={value!r} belongs to an input and output, which {where} has not", right=right)


def parse_seconds(name: str, text: object) -> float:
    """A time such as "5m" in seconds.

    Args:
        name: what it is, for a message.
        text: the time.

    >>> parse_seconds("delta", "1.5m")
    90.0
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", str(text))
    if not found or float(found[1]) == 0:
        raise BadInput(f"{name}={text!r} is not a time", right="write '30s', '5m' or '2h'")
    return float(found[1]) * SECONDS[found[2]]
