"""The options for the format of a CSV file, shared by the commands that read one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from closeknit.io.csv import CsvFormat

Delimiter = Annotated[str | None, typer.Option(help="Delimiter of a CSV file; 'tab' for a tab.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a CSV file, e.g. latin-1.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal separator of a CSV file: '.' or ','.")]
Thousands = Annotated[str | None, typer.Option(help="Thousands separator: '.', ',', ' ', \"'\", or '' for none.")]


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is written, as far as the options say it."""

    delimiter: Delimiter = None
    encoding: Encoding = None
    decimal: Decimal = None
    thousands: Thousands = None

    @property
    def format(self) -> CsvFormat | None:
        """The format; None if no option was given. What they leave open is detected."""
        if self == CsvOptions():
            return None
        from closeknit.io.csv import CsvFormat

        delimiter = "\t" if self.delimiter in ("tab", r"\t") else self.delimiter
        return CsvFormat(delimiter, encoding=self.encoding, decimal=self.decimal, thousands=self.thousands)


NO_CSV = CsvOptions()


def describe_format(form: Mapping[str, Any]) -> str:
    """Describe a detected or given format; a guessed encoding is marked as such.

    >>> describe_format({"delimiter": "\\t", "encoding": "cp1252"})
    'delimiter tab, encoding cp1252 (not UTF-8: check the names with accents)'
    """
    shown = {**form, "delimiter": "tab"} if form.get("delimiter") == "\t" else dict(form)
    if "encoding" in form and not str(form["encoding"]).lower().startswith("utf"):
        shown["encoding"] = f"{form['encoding']} (not UTF-8: check the names with accents)"
    return ", ".join(f"{name} {sign if len(sign) > 1 else repr(sign)}" for name, sign in shown.items())
