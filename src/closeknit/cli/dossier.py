"""The command `closeknit dossier`: what a reviewer of a release reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.options import Force, print_utf8, refuse_existing, shorten_path


def dossier(
    framework: Annotated[str, typer.Option("--for", metavar="NAME", help="wp216, ico, ema, hipaa, nist or iso27559.")],
    folder: Annotated[Path | None, typer.Argument(metavar="FOLDER", help="The public folder of a release.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="New folder for the dossier.")] = None,
    answers: Annotated[Path | None, typer.Option(metavar="FILE", help="What people state, as --template prints it.")] = None,
    recipe: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The private recipe: a private edition, with the original.")
    ] = None,
    population: Annotated[
        str | None, typer.Option(metavar="FILE", help="A list of all people from whom the table was drawn, or their number.")
    ] = None,
    sampling_fraction: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Share of the population that is in the table.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="The signer's public key: verify the signature.")] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="With --recipe: run the method again so often, for the minimality attack.")
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Write dossier.pdf too; needs closeknit[pdf].")] = False,
    template: Annotated[bool, typer.Option("--template", help="Print an empty file of answers instead.")] = False,
    force: Force = False,
) -> None:
    """Write a dossier: each question of a framework with the number that answers it, and boxes for what a person must answer.

    The public edition uses the public folder alone. With the private recipe the dossier also shows the risk before, the
    attacks that need the original and the accuracy of queries: do not share it.

    \b
    closeknit dossier out/ --for ema -o dossier/ --pdf
    closeknit dossier --for ema --template > answers.yaml
    closeknit dossier out/ --for ema --answers answers.yaml --recipe out.private/recipe.yaml -o dossier.private/
    """
    if not template and (folder is None or output is None):
        raise typer.BadParameter("name the folder of a release, and a folder for the dossier with -o")
    with handle_errors():
        from closeknit.api.dossiers import dossier as build
        from closeknit.api.dossiers import framework_of, save_dossier, write_template

        asked = framework_of(framework)
        if template:
            print_utf8(write_template(asked))
            return
        assert folder is not None and output is not None
        refuse_existing(Path(os.path.abspath(output)), force)
        people = int(population) if population is not None and population.isdecimal() else population
        found = build(
            folder,
            framework,
            answers=answers,
            recipe=recipe,
            population=people,
            sampling_fraction=sampling_fraction,
            key=key,
            runs=runs,
        )
        files = save_dossier(found, output, pdf, force)
        share = "public: may be shared" if found.edition == "public" else "private: do not share"
        typer.echo(f"{shorten_path(output)}/  {', '.join(files)}: {share}")
        typer.echo(f"{found.boxes - found.open_boxes} of {found.boxes} boxes are answered")
