"""`bound_loss`: what no release of a table under the requested guarantees loses less than."""

from __future__ import annotations

from typing import Any

from closeknit.api.recipe import ModelSpecs, Recipe, models_from
from closeknit.api.request_checks import check_models, check_request, encode_table, read_table
from closeknit.core.errors import BadInput
from closeknit.core.limits import MOST_SECONDS
from closeknit.core.loss import LossBound
from closeknit.core.method import Progress, ignore_progress
from closeknit.core.params import number
from closeknit.core.schema import Schema, require_schema
from closeknit.forms import generalized
from closeknit.io.csv import CsvFormat
from closeknit.methods import Knit


def bound_loss(
    data: Any,
    schema: Schema,
    models: ModelSpecs,
    *,
    suppress: float = 0.0,
    seconds: float = 60,
    csv: CsvFormat | None = None,
    progress: Progress | None = None,
) -> LossBound:
    """Compute a lower bound of the loss of every release of a table under these guarantees, whatever the method.

    The bound is proved, and may be far below the best possible release. It is computed from the original table: keep it
    private.

    Args:
        data: A frame, a mapping of columns, or the path of a file.
        schema: Role, kind and hierarchy of each column.
        models: The guarantees.
        suppress: Largest share of rows that may be suppressed; guarantees that compare with all rows are then left out.
        seconds: Time for the bound; more time may raise it.
        csv: Format of a CSV file; what it leaves open is detected.
        progress: Called with the current step and the share of the work done.

    >>> import closeknit as ck
    >>> table, schema, models = ck.datasets.hospital(200), ck.datasets.hospital_schema(), [ck.KAnonymity(5)]
    >>> bound = ck.bound_loss(table, schema, models)
    >>> 0 < bound.loss <= ck.anonymize(table, schema, models).loss
    True
    """
    from closeknit.metrics.loss_bound import bound_table

    number("suppress", suppress, least=0, most=1)
    number("seconds", seconds, least=0, most=MOST_SECONDS)
    schema, requested, progress = require_schema(schema), models_from(models), progress or ignore_progress
    check_models(schema, requested, generalized())
    progress("reading", 0.0)
    table = encode_table(read_table(data, csv, schema)[0], schema, data)
    if suppress == 0:
        check_request(table, requested, Knit())
    return bound_table(table, requested, suppress=suppress > 0, seconds=seconds, progress=progress)


def bound_recipe(recipe: Recipe, seconds: float = 60, progress: Progress | None = None) -> LossBound:
    """Compute the lower bound of a recipe's request on its table.

    Args:
        recipe: the recipe; its method does not matter.
        seconds: time for the bound.
        progress: called with the current step and the share of the work done.
    """
    if recipe.form is not None and recipe.form.name != "generalized":
        raise BadInput(f"the loss of the form '{recipe.form.name}' has no lower bound", right="use the form generalized")
    suppress = float(recipe.options.get("suppress", 0))
    return bound_loss(
        recipe.source, recipe.schema, recipe.models, suppress=suppress, seconds=seconds, csv=recipe.csv, progress=progress
    )
