"""Optional libraries: loaded when a file needs them, with a sentence that names the extra if they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from closeknit.core.errors import BadInput


def load_extra(module: str, extra: str, what: str, file: object = None) -> Any:
    """The module of an optional library.

    Args:
        module: name of the module.
        extra: the extra of closeknit that installs it.
        what: what needs it, for the message.
        file: the file or address that needs it.

    >>> load_extra("no_such_module", "excel", "spreadsheets", "people.xlsx")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: people.xlsx: spreadsheets need another package; install it with: pip install ...[excel]'
    """
    try:
        return import_module(module)
    except ImportError:
        right = f"install it with: pip install 'closeknit[{extra}]'"
        raise BadInput(f"{what} need another package", file=file, right=right) from None
