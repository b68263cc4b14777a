"""`closeknit audit --safe-harbor`: what the HIPAA Safe Harbor rule asks to remove."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from closeknit.cli.command_errors import handle_errors, print_stderr
from closeknit.cli.options import print_utf8

if TYPE_CHECKING:
    from closeknit.io.csv import CsvFormat

Reference = Annotated[
    str | None, typer.Option(metavar="DATE", help="With --safe-harbor: the day on which ages are counted, as 2024-12-31.")
]
Zip3 = Annotated[
    str | None, typer.Option(metavar="FILE", help="With --safe-harbor: populations of three-digit ZIP areas, or census2000.")
]


def audit_harbor(
    file: str, reference: str | None, zip3: str | None, csv: CsvFormat | None, examples: bool, as_json: bool
) -> None:
    """Print the findings; exit with 1 if there are any."""
    with handle_errors():
        from closeknit.api import safe_harbor

        found = safe_harbor(file, reference=reference, zip3=zip3, csv=csv)
        print_utf8(found.to_json(examples) if as_json else f"{found.to_text(examples)}\n")
        if examples:
            print_stderr("values of the table are shown: private, do not share")
    if not found.ok:
        raise typer.Exit(1)
