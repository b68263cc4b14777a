"""The command `closeknit presets`: what rules and policies ask for, as recipe fragments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.options import print_utf8


def presets(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show this preset expanded.")] = None,
    recipe: Annotated[Path | None, typer.Option(metavar="FILE", help="Print this recipe with its preset expanded.")] = None,
) -> None:
    """List the presets that a recipe can name, or show one expanded: numbers, sources, and what it does not settle.

    In a recipe write 'preset: NAME' next to data and schema.

    \b
    closeknit presets
    closeknit presets ema_0070
    closeknit presets --recipe recipe.yaml
    """
    with handle_errors():
        from closeknit.api.presets import LEFT_OUT, PRESETS, preset

        if recipe is not None:
            print_utf8(_expand(recipe))
            return
        if name is not None:
            print_utf8(f"{preset(name)}\n")
            return
        width = max(map(len, (*PRESETS, *LEFT_OUT)))
        lines = [f"{one.name:{width}}  {one.title}" for one in PRESETS.values()]
        lines += ["", "Not here, because there is no number to cite:"]
        lines += [f"{left:{width}}  {why}" for left, why in LEFT_OUT.items()]
        print_utf8("\n".join(lines) + "\n")


def _expand(file: Path) -> str:
    import yaml

    from closeknit.api.presets import expand_preset
    from closeknit.api.recipe import Recipe, parse_forms

    Recipe.read(file)  # whatever is wrong with it is reported
    forms, _ = expand_preset(parse_forms(file.read_text(encoding="utf-8"), file))
    return str(yaml.safe_dump(forms, sort_keys=False, allow_unicode=True, default_flow_style=None))
