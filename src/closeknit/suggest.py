"""The older name of `closeknit.suggestion`."""

from closeknit.suggestion import Guess, Suggestion, suggest

__all__ = ["Guess", "Suggestion", "suggest"]
