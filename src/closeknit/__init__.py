"""closeknit publishes tables about people under guarantees that anybody can check.

The names below load on first use, so that `import closeknit` costs next to nothing.

>>> import closeknit as ck
>>> ck.KAnonymity(6).k
6
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from closeknit import attacks as attacks
    from closeknit import datasets as datasets
    from closeknit import metrics as metrics
    from closeknit.api import (
        anonymize,
        attack,
        audit,
        certificate_on_spark,
        choose_k,
        compare,
        flush_on_spark,
        frontier,
        replay,
        run,
        stream_on_spark,
        suggest,
    )
    from closeknit.core.certificate import Certificate
    from closeknit.core.dates import date
    from closeknit.core.errors import BadInput, CloseknitError, Unsatisfiable
    from closeknit.core.hierarchy import Hierarchy
    from closeknit.core.kinds import flat, numeric, prefix
    from closeknit.core.schema import Schema
    from closeknit.forms import bucketized, generalized, multiset, permuted, perturbed, sliced
    from closeknit.methods import (
        Anatomy,
        Burel,
        FcmDraw,
        Fragmentation,
        Incognito,
        Knit,
        Microaggregation,
        Mondrian,
        PcaDraw,
        Sabre,
        Slicing,
        StackAndDeal,
    )
    from closeknit.models import (
        BetaLikeness,
        DeltaDisclosure,
        DiverseSlicing,
        KAnonymity,
        LDiversity,
        PosteriorBound,
        TCloseness,
    )
    from closeknit.release import Release
    from closeknit.streams import BurelWindow, Castle, KnnStream, SabreWindow, Windowed

_HOME = {
    "Anatomy": "closeknit.methods",
    "BadInput": "closeknit.core.errors",
    "BetaLikeness": "closeknit.models",
    "BurelWindow": "closeknit.streams",
    "Castle": "closeknit.streams",
    "Certificate": "closeknit.core.certificate",
    "CloseknitError": "closeknit.core.errors",
    "DeltaDisclosure": "closeknit.models",
    "DiverseSlicing": "closeknit.models",
    "Hierarchy": "closeknit.core.hierarchy",
    "KAnonymity": "closeknit.models",
    "KnnStream": "closeknit.streams",
    "LDiversity": "closeknit.models",
    "Release": "closeknit.release",
    "Schema": "closeknit.core.schema",
    "StackAndDeal": "closeknit.methods",
    "Sabre": "closeknit.methods",
    "SabreWindow": "closeknit.streams",
    "Slicing": "closeknit.methods",
    "Burel": "closeknit.methods",
    "FcmDraw": "closeknit.methods",
    "Fragmentation": "closeknit.methods",
    "PcaDraw": "closeknit.methods",
    "Microaggregation": "closeknit.methods",
    "Incognito": "closeknit.methods",
    "Knit": "closeknit.methods",
    "Mondrian": "closeknit.methods",
    "PosteriorBound": "closeknit.models",
    "TCloseness": "closeknit.models",
    "Unsatisfiable": "closeknit.core.errors",
    "Windowed": "closeknit.streams",
    "anonymize": "closeknit.api",
    "attack": "closeknit.api",
    "audit": "closeknit.api",
    "choose_k": "closeknit.api",
    "compare": "closeknit.api",
    "date": "closeknit.core.dates",
    "flat": "closeknit.core.kinds",
    "frontier": "closeknit.api",
    "generalized": "closeknit.forms",
    "sliced": "closeknit.forms",
    "permuted": "closeknit.forms",
    "perturbed": "closeknit.forms",
    "multiset": "closeknit.forms",
    "bucketized": "closeknit.forms",
    "numeric": "closeknit.core.kinds",
    "prefix": "closeknit.core.kinds",
    "replay": "closeknit.api",
    "flush_on_spark": "closeknit.api",
    "run": "closeknit.api",
    "stream_on_spark": "closeknit.api",
    "certificate_on_spark": "closeknit.api",
    "suggest": "closeknit.api",
}
_ROOMS = ("attacks", "datasets", "metrics")

__all__ = [
    "Anatomy",
    "BadInput",
    "BetaLikeness",
    "Burel",
    "BurelWindow",
    "Castle",
    "Certificate",
    "CloseknitError",
    "DeltaDisclosure",
    "DiverseSlicing",
    "FcmDraw",
    "Fragmentation",
    "Hierarchy",
    "Incognito",
    "KAnonymity",
    "Knit",
    "KnnStream",
    "LDiversity",
    "Microaggregation",
    "Mondrian",
    "PcaDraw",
    "PosteriorBound",
    "Release",
    "Sabre",
    "SabreWindow",
    "Schema",
    "Slicing",
    "StackAndDeal",
    "TCloseness",
    "Unsatisfiable",
    "Windowed",
    "anonymize",
    "attack",
    "attacks",
    "audit",
    "bucketized",
    "certificate_on_spark",
    "choose_k",
    "compare",
    "datasets",
    "date",
    "flat",
    "flush_on_spark",
    "frontier",
    "generalized",
    "metrics",
    "multiset",
    "numeric",
    "permuted",
    "perturbed",
    "prefix",
    "replay",
    "run",
    "sliced",
    "stream_on_spark",
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
