"""The error of a failed check."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Error = TypeVar("Error", bound=Exception)


class CheckFailed(AssertionError):
    """A check that failed, in one sentence."""


def require(truth: object, sentence: str) -> None:
    """Raise `CheckFailed` unless the condition holds (an `assert` is skipped under `python -O`).

    >>> require(1 + 1 == 3, "one and one are two")
    Traceback (most recent call last):
    ...
    closeknit.checks.failures.CheckFailed: one and one are two
    """
    if not truth:
        raise CheckFailed(sentence)


def require_refusal(kind: type[Error], run: Callable[[], object], sentence: str) -> Error:
    """Return the error by which something is refused, or raise `CheckFailed`.

    >>> str(require_refusal(ValueError, lambda: int("x"), "x is accepted as a number"))[:15]
    'invalid literal'
    """
    try:
        run()
    except kind as refusal:
        return refusal
    raise CheckFailed(sentence)
