"""Files of hierarchies: one leaf per line with everything above it, `leaf;parent;...;root`."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

from closeknit.core.builders import Dicts
from closeknit.core.errors import BadInput
from closeknit.core.tree import STAR

Line = tuple[int, list[str]]  # line number and fields, leaf first


def read_hierarchy(path: str | Path, delimiter: str, encoding: str) -> Dicts:
    """The file as nested mappings, from its root; a faulty line is refused with its number."""
    lines = _lines(Path(path), delimiter, encoding)
    if not lines:
        raise BadInput("the hierarchy file is empty", file=path, right="write one leaf per line: leaf;parent;...;root")
    for row, fields in lines:
        _check_fields(path, row, fields, delimiter)
    _check_leaves(path, lines)
    _check_roots(path, lines)
    _check_parents(path, lines)
    nested: Dicts = {}
    for _, fields in lines:
        place = nested
        for label in fields[:0:-1]:
            place = place.setdefault(label, {})
        place[fields[0]] = None
    return nested


def _lines(path: Path, delimiter: str, encoding: str) -> list[Line]:
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise BadInput(f"delimiter={delimiter!r} is not one character", file=path)
    if not isinstance(encoding, str):
        raise BadInput(f"encoding={encoding!r} is not a name", file=path, right="try 'utf-8', 'latin-1' or 'cp1252'")
    try:
        # a byte order mark belongs to the encoding, not to the first leaf
        marked = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        with open(path, newline="", encoding=marked) as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            return [(reader.line_num, _one_star(fields)) for fields in reader if fields]
    except FileNotFoundError:
        raise BadInput("there is no such hierarchy file", file=path) from None
    except UnicodeDecodeError as bad:
        raise BadInput(f"byte {bad.start} is not {encoding} text", file=path, right="name the encoding of the file") from None
    except LookupError:
        raise BadInput(f"encoding '{encoding}' is unknown", file=path) from None
    except OSError as bad:
        raise BadInput(f"the hierarchy file cannot be read: {bad.strerror}", file=path) from None
    except (csv.Error, ValueError, TypeError) as bad:  # the latter two: an impossible path, delimiter or encoding
        raise BadInput(f"the hierarchy file is not CSV: {bad}", file=path) from None


def _one_star(fields: list[str]) -> list[str]:
    """Remove repetitions of the root, which files of equal width have where a branch is short (`a;*;*`)."""
    while len(fields) > 2 and fields[-2:] == [STAR, STAR]:
        fields = fields[:-1]
    return fields


def _check_fields(path: str | Path, row: int, fields: list[str], delimiter: str) -> None:
    for level, label in enumerate(fields):
        if not label.strip():
            raise BadInput(f"level {level} of '{fields[0]}' is empty", file=path, row=row, right="each level needs a name")
        if label == STAR and level < len(fields) - 1:
            raise BadInput(f"level {level} is '*' below the root '{fields[-1]}'", file=path, row=row, right="'*' is the root")
    if len(fields) < 2:
        right = f"write leaf{delimiter}parent{delimiter}...{delimiter}root"
        raise BadInput(f"'{fields[0]}' has no level above it", file=path, row=row, right=right)


def _check_leaves(path: str | Path, lines: list[Line]) -> None:
    seen: dict[str, int] = {}
    for row, fields in lines:
        if (first := seen.setdefault(fields[0], row)) != row:
            right = "each value has one line"
            raise BadInput(f"leaf '{fields[0]}' (level 0) is already in row {first:,}", file=path, row=row, right=right)


def _check_roots(path: str | Path, lines: list[Line]) -> None:
    first, root = lines[0][0], lines[0][1][-1]
    for row, fields in lines:
        if fields[-1] != root:
            top = f"the root '{fields[-1]}' (level {len(fields) - 1})"
            what = f"'{fields[0]}' ends in {top}, but row {first:,} ends in '{root}'"
            raise BadInput(what, file=path, row=row, right="all lines end in the same root")


def _check_parents(path: str | Path, lines: list[Line]) -> None:
    """One parent per node, and no leaf is a node over other leaves; a name may repeat over several levels (`1;1;1;*`)."""
    parents: dict[str, tuple[str, int]] = {}
    leaves = {fields[0] for _, fields in lines}
    for row, fields in lines:
        for level, label in enumerate(fields[1:-1], start=1):
            if label in leaves and label != fields[0]:
                what = f"'{label}' (level {level}) is a node over '{fields[0]}' and also a leaf"
                raise BadInput(what, file=path, row=row, right="give the node another name")
        for level, (label, parent) in enumerate(pairwise(fields)):
            if label == parent:
                continue
            other, where = parents.setdefault(label, (parent, row))
            if other != parent:
                two = f"the parent '{parent}' here and '{other}' in row {where:,}"
                what = f"not nested: '{label}' (level {level}) has {two}"
                raise BadInput(what, file=path, row=row, right="a node has one parent")
