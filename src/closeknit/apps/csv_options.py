"""The options that say how a CSV file is written, shared by the commands that read one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from closeknit.core.errors import BadInput

if TYPE_CHECKING:
    from closeknit.doors.csv import CsvFormat

Delimiter = Annotated[str | None, typer.Option(help="Sign between the cells of a CSV file; 'tab' for a tab.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a CSV file, e.g. latin-1.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal sign of a CSV file: '.' or ','.")]


def csv_format(delimiter: str | None, encoding: str | None, decimal: str | None) -> CsvFormat | None:
    """None where nothing was said: then the suffix of the file decides. Else a delimiter that was not said is guessed."""
    if delimiter is None and encoding is None and decimal is None:
        return None
    from closeknit.doors.csv import CsvFormat

    tab = delimiter in ("tab", r"\t")
    return CsvFormat(delimiter="\t" if tab else delimiter, encoding=encoding or "utf-8", decimal=decimal or ".")


def csv_form(csv: CsvFormat | None) -> dict[str, Any]:
    """What was said, as a recipe writes it."""
    from closeknit.core.params import spec

    return spec(csv) if csv else {}


def refuse_other_delimiter(file: Path, names: list[str]) -> None:
    """One column with a delimiter in its name is a table that was read with the wrong one."""
    sign = next((sign for sign in ";\t|" if sign in names[0]), None) if len(names) == 1 else None
    if sign is not None:
        known = "tab" if sign == "\t" else sign
        raise BadInput(f"the header is one column, '{names[0]}'", file=file, right=f"say --delimiter '{known}'")
