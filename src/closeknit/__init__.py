"""closeknit publishes tables about people under promises that anybody can check.

The names below load on first use, so that `import closeknit` costs next to nothing.

>>> import closeknit as ck
>>> ck.KAnonymity(6).k
6
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from closeknit import datasets as datasets
    from closeknit.api import anonymize, audit, compare, suggest
    from closeknit.core.certificate import Certificate
    from closeknit.core.dates import date
    from closeknit.core.errors import BadInput, CloseknitError, Unsatisfiable
    from closeknit.core.hierarchy import Hierarchy
    from closeknit.core.kinds import flat, numeric, prefix
    from closeknit.core.schema import Schema
    from closeknit.forms import generalized
    from closeknit.methods import (
        Burel,
        FcmDraw,
        Fragmentation,
        Incognito,
        Microaggregation,
        Mondrian,
        PcaDraw,
        Sabre,
        StackAndDeal,
    )
    from closeknit.models import BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, TCloseness
    from closeknit.release import Release

_HOME = {
    "BadInput": "closeknit.core.errors",
    "BetaLikeness": "closeknit.models",
    "Certificate": "closeknit.core.certificate",
    "CloseknitError": "closeknit.core.errors",
    "DeltaDisclosure": "closeknit.models",
    "Hierarchy": "closeknit.core.hierarchy",
    "KAnonymity": "closeknit.models",
    "LDiversity": "closeknit.models",
    "Release": "closeknit.release",
    "Schema": "closeknit.core.schema",
    "StackAndDeal": "closeknit.methods",
    "Sabre": "closeknit.methods",
    "Burel": "closeknit.methods",
    "FcmDraw": "closeknit.methods",
    "Fragmentation": "closeknit.methods",
    "PcaDraw": "closeknit.methods",
    "Microaggregation": "closeknit.methods",
    "Incognito": "closeknit.methods",
    "Mondrian": "closeknit.methods",
    "TCloseness": "closeknit.models",
    "Unsatisfiable": "closeknit.core.errors",
    "anonymize": "closeknit.api",
    "audit": "closeknit.api",
    "compare": "closeknit.api",
    "date": "closeknit.core.dates",
    "flat": "closeknit.core.kinds",
    "generalized": "closeknit.forms",
    "numeric": "closeknit.core.kinds",
    "prefix": "closeknit.core.kinds",
    "suggest": "closeknit.api",
}
_ROOMS = ("datasets",)

__all__ = [
    "BadInput",
    "BetaLikeness",
    "Burel",
    "Certificate",
    "CloseknitError",
    "DeltaDisclosure",
    "FcmDraw",
    "Fragmentation",
    "Hierarchy",
    "Incognito",
    "KAnonymity",
    "LDiversity",
    "Microaggregation",
    "Mondrian",
    "PcaDraw",
    "Release",
    "Sabre",
    "Schema",
    "StackAndDeal",
    "TCloseness",
    "Unsatisfiable",
    "anonymize",
    "audit",
    "compare",
    "datasets",
    "date",
    "flat",
    "generalized",
    "numeric",
    "prefix",
    "suggest",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
