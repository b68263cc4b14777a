"""Promises about classes: one file per family, each a frozen value. `REGISTRY`: name in a recipe -> class."""

from __future__ import annotations

from closeknit.core.model import Model
from closeknit.models.k_anonymity import KAnonymity
from closeknit.models.t_closeness import TCloseness

REGISTRY: dict[str, type[Model]] = {model.name: model for model in (KAnonymity, TCloseness)}

__all__ = ["REGISTRY", "KAnonymity", "TCloseness"]
