"""What a check says when a thing does not keep its word."""

from __future__ import annotations


class CheckFailed(AssertionError):
    """A check that failed, in one sentence."""


def require(truth: object, sentence: str) -> None:
    """Go on if it is true. (A statement `assert` would be silent under `python -O`.)

    >>> require(1 + 1 == 3, "one and one are two")
    Traceback (most recent call last):
    ...
    closeknit.checks.failures.CheckFailed: one and one are two
    """
    if not truth:
        raise CheckFailed(sentence)
