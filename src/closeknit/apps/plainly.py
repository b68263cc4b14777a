"""How the command line ends: one sentence and an exit status instead of a traceback."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from closeknit.core.errors import BadInput, CloseknitError

STOPPED = 130  # as shells say it of an interrupt
NO_READER = 141  # and of a closed pipe


def say(sentence: str) -> None:
    """One line on stderr; a value with line breaks or control characters in it must not break the line."""
    line = "".join(sign if sign.isprintable() else "\ufffd" for sign in sentence)
    typer.echo(line, err=True)


@contextmanager
def plainly() -> Iterator[None]:
    """Around a command: a mistake of the user is one sentence and its status, a warning is one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _one_line
            yield
    except CloseknitError as error:
        say(f"closeknit: {error}")
        raise typer.Exit(error.status) from None
    except BrokenPipeError:
        os._exit(NO_READER)  # an ordinary end would write what is buffered once more, and may abort on a reader's thread
    except OSError as error:
        say(f"closeknit: {_refused(error)}")
        raise typer.Exit(BadInput.status) from None
    except MemoryError:
        say("closeknit: the table does not fit into memory; give fewer rows or columns, or use a larger machine")
        raise typer.Exit(BadInput.status) from None
    except KeyboardInterrupt:
        say("closeknit: stopped")
        raise typer.Exit(STOPPED) from None


def leave(code: object) -> NoReturn:
    """End the process at once: on a busy machine an ordinary end may abort on a reader's thread that is just starting."""
    try:
        for each in filter(None, (sys.stdout, sys.stderr)):  # one that was closed from the start is None
            each.flush()
    except BrokenPipeError:
        code = NO_READER
    os._exit(code if isinstance(code, int) else int(code is not None))


def _one_line(message: Warning | str, *_: object, **__: object) -> None:
    say(f"warning: {message}")


def _refused(error: OSError) -> BadInput:
    from closeknit.doors.faults import refused

    return refused(error, error.filename or "the system")
