"""How the command line ends: one sentence and an exit status instead of a traceback."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from closeknit.core.errors import BadInput, CloseknitError, keep_printable

STOPPED = 130  # the shells' status after an interrupt
NO_READER = 141  # and after a closed pipe


def print_stderr(sentence: str) -> None:
    """Print one line on stderr; line breaks and control characters in a quoted value must not break the line."""
    typer.echo(keep_printable(sentence), err=True)


@contextmanager
def handle_errors() -> Iterator[None]:
    """Around a command: turn a user's mistake into one sentence and an exit status, and a warning into one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _print_warning
            yield
    except CloseknitError as error:
        print_stderr(f"closeknit: {error}")
        raise typer.Exit(error.status) from None
    except BrokenPipeError:
        os._exit(NO_READER)  # an ordinary exit would flush the buffer again, and may abort on a reader's thread
    except OSError as error:
        print_stderr(f"closeknit: {_explain_os_error(error)}")
        raise typer.Exit(BadInput.status) from None
    except MemoryError:
        print_stderr("closeknit: the table does not fit into memory; give fewer rows or columns, or use a larger machine")
        raise typer.Exit(BadInput.status) from None
    except KeyboardInterrupt:
        print_stderr("closeknit: stopped")
        raise typer.Exit(STOPPED) from None


def exit_now(code: object) -> NoReturn:
    """End the process at once: on a busy machine an ordinary exit may abort on a reader's thread that is just starting."""
    try:
        for each in filter(None, (sys.stdout, sys.stderr)):  # None if it was closed from the start
            each.flush()
    except BrokenPipeError:
        code = NO_READER
    os._exit(code if isinstance(code, int) else int(code is not None))


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    print_stderr(f"warning: {message}")


def _explain_os_error(error: OSError) -> BadInput:
    from closeknit.io.faults import explain_os_error

    return explain_os_error(error, error.filename or "the system")
