"""`closeknit apply`: later rows with the labels of an earlier release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.csv_options import NO_CSV, CsvOptions
from closeknit.cli.options import Force, expand_groups, free_folder, print_utf8, shorten_path


@expand_groups
def apply(
    recoding: Annotated[Path, typer.Argument(metavar="RECODING", help="The recoding.json of an earlier private folder.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The later rows, with the columns of the earlier table.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder of the release; FOLDER.private gets the private files.")
    ],
    suppress: Annotated[float, typer.Option(min=0, max=1, help="Largest share of the rows that may be suppressed.")] = 0.0,
    written: CsvOptions = NO_CSV,
    force: Force = False,
) -> None:
    """Write later rows with the labels of an earlier release, as a release of their own.

    Every class of the later rows meets every guarantee alone. Rows that would be safe only in a class that was published before
    are refused, or suppressed up to --suppress: someone who has both releases could subtract one from the other.

    \b
    closeknit apply out.private/recoding.json later.csv -o later/
    closeknit apply out.private/recoding.json later.csv -o later/ --suppress 0.1
    """
    with handle_errors():
        from closeknit.api import apply as apply_recoding
        from closeknit.io.sources import source_of

        folder = free_folder(output, force)
        assert folder is not None
        release = apply_recoding(recoding, source_of(file, {}), suppress=suppress, csv=written.format)
        release.save(folder, force=force)
        print_utf8(f"{release.certificate}\n\n")
        typer.echo(f"{shorten_path(folder)}/  public, may be shared; {shorten_path(folder)}.private/  private, do not share")
        typer.echo(f"next: closeknit audit {shorten_path(folder)}/")
