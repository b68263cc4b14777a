"""The command `closeknit bound`: what no release under a recipe's guarantees loses less than."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.options import Json, print_json, read_recipe


def bound_loss(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe; its method does not matter.")],
    seconds: Annotated[float, typer.Option(min=0, help="Time for the bound; more time may raise it.")] = 60,
    release: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A release under the same guarantees, to state how far it is above.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a proved lower bound: no release of the table under the recipe's guarantees loses less, whatever the method.

    The bound comes from the original table: keep it private. It may be far below the best possible release.

    \b
    closeknit bound recipe.yaml
    closeknit bound recipe.yaml --seconds 300 --release out/
    """
    with handle_errors():
        from closeknit import __version__
        from closeknit.api.bounding import bound_recipe
        from closeknit.api.reporting import load_release
        from closeknit.cli import show
        from closeknit.cli.progress import ProgressBar

        made = None if release is None else load_release(str(release), None)
        with ProgressBar() as bar:
            found = bound_recipe(read_recipe(recipe, None), seconds, bar)
        if as_json:
            gap = {} if made is None else {"release_loss": made.loss, "gap": found.gap(made.loss)}
            print_json({"closeknit": __version__, **found.model_dump(mode="json"), **gap})
            return
        lines = [f"No release under these guarantees loses less than {found.loss:.4f} (General Loss Metric A)."]
        lines += [] if made is None else [found.describe(made.loss)]
        lines += found.remarks()
        show.console().print("\n".join([*lines, "", show.PRIVATE]), markup=False, soft_wrap=True)
