"""Strict JSON: text that two programs could read differently is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from closeknit.core.errors import BadInput
from closeknit.core.limits import MOST_BYTES, check_count

RIGHT = "use the file as closeknit wrote it"


def parse_json(text: str, file: object = None, right: str = RIGHT) -> Any:
    """Read JSON; refuse a key that occurs twice, NaN and Infinity, text after the end, and anything that is not JSON.

    Args:
        text: the JSON text.
        file: its name in messages.
        right: what to do where it is refused.

    >>> parse_json('{"rows": 6, "rows": 7}', "certificate.json")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: certificate.json: the key 'rows' occurs twice in one object; use the file ...
    """
    try:
        return json.loads(text, object_pairs_hook=_refuse_twice, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        what = f"is not valid JSON at line {error.lineno}, column {error.colno}: {error.msg.lower()}"
    except RecursionError:
        what = "is nested too deeply"
    except _Ambiguous as ambiguous:
        what = str(ambiguous)
    except ValueError:  # Python refuses to convert so many digits
        what = "has a number with too many digits"
    raise BadInput(what, file=file, right=right)


def json_text(record: Mapping[str, Any]) -> str:
    r"""A record of plain values as the text of a file.

    >>> json_text({"rows": 6})
    '{\n  "rows": 6\n}\n'
    """
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def read_limited(file: str | PathLike[str]) -> str:
    """The text of a small file in UTF-8; a file that is larger than any certificate, report or recipe is refused unread.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+") as small:
    ...     _ = small.write("{}"), small.flush()
    ...     read_limited(small.name)
    '{}'
    """
    place = Path(file)
    try:
        check_count("has {} bytes", place.stat().st_size, MOST_BYTES)
    except BadInput as bad:
        raise bad.replace(file=place, right=f"a certificate, report or recipe has at most {MOST_BYTES:,}") from None
    return place.read_bytes().decode()


def read_text(file: str | PathLike[str], right: str) -> str:
    """The text of a small file; one that cannot be read is refused, and `right` says which file is meant.

    >>> read_text("nowhere.yaml", "name a recipe file")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: nowhere.yaml: cannot be read (No such file or directory); name a recipe file
    """
    try:
        return read_limited(file)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"cannot be read ({why})", file=file, right=right) from None


class _Ambiguous(Exception):
    """Text that has more than one reading."""


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Ambiguous(f"the key '{twice}' occurs twice in one object")
    return found


def _refuse_constant(text: str) -> float:
    raise _Ambiguous(f"has the number {text}, which JSON does not have")
