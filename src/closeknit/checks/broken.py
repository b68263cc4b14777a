"""What a check says when a thing does not keep its word."""

from __future__ import annotations


class Broken(AssertionError):
    """A check that failed, in one sentence."""


def need(truth: object, sentence: str) -> None:
    """Go on if it is true. (A statement `assert` would be silent under `python -O`.)

    >>> need(1 + 1 == 3, "one and one are two")
    Traceback (most recent call last):
    ...
    closeknit.checks.broken.Broken: one and one are two
    """
    if not truth:
        raise Broken(sentence)
