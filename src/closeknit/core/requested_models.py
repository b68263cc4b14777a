"""Requested guarantees: as a list, and refused where no one can judge them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from closeknit.core.errors import BadInput
from closeknit.core.model import Model
from closeknit.core.params import refuse_uncalled


def list_models(models: object) -> list[Model]:
    """The requested guarantees as a list; a single guarantee, or anything else, is refused.

    >>> list_models("k_anonymity")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: models='k_anonymity' is no list of guarantees; write [KAnonymity(6)], even for one
    """
    found: list[Any] = list(models) if isinstance(models, Iterable) and not isinstance(models, str | Mapping) else [None]
    for model in found:
        refuse_uncalled("model", model)
    if not all(isinstance(model, Model) for model in found):
        raise BadInput(f"models={models!r} is no list of guarantees", right="write [KAnonymity(6)], even for one")
    return found


def refuse_whole(models: Iterable[Model], where: str) -> None:
    """Refuse guarantees that are judged on all written cells together, where no one has them together.

    >>> from closeknit.models import KAnonymity
    >>> refuse_whole([KAnonymity(5, over=["age"])], "a stream publishes class by class")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: k-anonymity, k = 5, over age is judged on all written cells together, and a stream ...
    """
    for model in models:
        if model.of_method:
            raise BadInput(f"'{model.describe(None)}' is a property of a method for tables, and {where}", right="leave it out")
        if not model.by_class:
            right = "request it for a table on one machine, or a guarantee about classes, such as k_anonymity"
            raise BadInput(f"{model.describe(None)} is judged on all written cells together, and {where}", right=right)
