"""closeknit publishes tables about people under privacy guarantees that anyone can verify.

The names below are imported on first use, so that `import closeknit` is fast.

>>> import closeknit as ck
>>> ck.KAnonymity(6).k
6
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from closeknit.accessors import register_all

__version__ = "0.2.0"

if TYPE_CHECKING:
    from closeknit import attacks as attacks
    from closeknit import datasets as datasets
    from closeknit import metrics as metrics
    from closeknit.api import (
        anonymize,
        apply,
        attack,
        audit,
        bound_loss,
        build_repeat,
        certificate_on_spark,
        choose_k,
        compare,
        dossier,
        flush_on_spark,
        frontier,
        new_keys,
        preset,
        replay,
        risk,
        run,
        safe_harbor,
        sign,
        stream_on_spark,
        suda,
        suggest,
    )
    from closeknit.core.certificate import Certificate
    from closeknit.core.date_times import datetime
    from closeknit.core.dates import date
    from closeknit.core.durations import duration
    from closeknit.core.errors import BadInput, CloseknitError, Unsatisfiable
    from closeknit.core.hierarchy import Hierarchy
    from closeknit.core.itemsets import itemset
    from closeknit.core.kinds import flat, numeric, prefix
    from closeknit.core.points import point
    from closeknit.core.schema import Schema
    from closeknit.forms import bucketized, generalized, multiset, permuted, perturbed, sliced
    from closeknit.io.database import sql
    from closeknit.io.sources import open_source
    from closeknit.methods import (
        Anatomy,
        Burel,
        FcmDraw,
        FixedLevels,
        Fragmentation,
        Incognito,
        Knit,
        Microaggregation,
        Mondrian,
        PcaDraw,
        Sabre,
        Slicing,
        SoftStop,
        StackAndDeal,
    )
    from closeknit.models import (
        AverageRisk,
        BetaLikeness,
        DeltaDisclosure,
        DeltaPresence,
        DiverseSlicing,
        KAnonymity,
        KMap,
        LDiversity,
        PopulationUniqueness,
        PosteriorBound,
        RecordsAtRisk,
        TCloseness,
        Transparency,
    )
    from closeknit.release import Release
    from closeknit.risks.sample_weights import individual_risk
    from closeknit.streams import BurelWindow, Castle, KnitStream, KnnStream, SabreWindow, Windowed
    from closeknit.streams.input_rules import InputRules

_NAMES = {
    "closeknit.api": "anonymize apply attack audit bound_loss build_repeat choose_k compare dossier frontier new_keys preset "
    "replay risk run safe_harbor sign suda suggest certificate_on_spark flush_on_spark stream_on_spark",
    "closeknit.core.certificate": "Certificate",
    "closeknit.core.date_times": "datetime",
    "closeknit.core.dates": "date",
    "closeknit.core.durations": "duration",
    "closeknit.core.errors": "BadInput CloseknitError Unsatisfiable",
    "closeknit.core.hierarchy": "Hierarchy",
    "closeknit.core.itemsets": "itemset",
    "closeknit.core.kinds": "flat numeric prefix",
    "closeknit.core.points": "point",
    "closeknit.core.schema": "Schema",
    "closeknit.forms": "bucketized generalized multiset permuted perturbed sliced",
    "closeknit.io.database": "sql",
    "closeknit.io.sources": "open_source",
    "closeknit.methods": "Anatomy Burel FcmDraw FixedLevels Fragmentation Incognito Knit Microaggregation Mondrian PcaDraw "
    "Sabre Slicing SoftStop StackAndDeal",
    "closeknit.models": "AverageRisk BetaLikeness DeltaDisclosure DeltaPresence DiverseSlicing KAnonymity KMap LDiversity "
    "PopulationUniqueness PosteriorBound RecordsAtRisk TCloseness Transparency",
    "closeknit.release": "Release",
    "closeknit.risks.sample_weights": "individual_risk",
    "closeknit.streams": "BurelWindow Castle KnitStream KnnStream SabreWindow Windowed",
    "closeknit.streams.input_rules": "InputRules",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
_PACKAGES = ("attacks", "datasets", "metrics")

__all__ = [
    "Anatomy",
    "AverageRisk",
    "BadInput",
    "BetaLikeness",
    "Burel",
    "BurelWindow",
    "Castle",
    "Certificate",
    "CloseknitError",
    "DeltaDisclosure",
    "DeltaPresence",
    "DiverseSlicing",
    "FcmDraw",
    "FixedLevels",
    "Fragmentation",
    "Hierarchy",
    "Incognito",
    "InputRules",
    "KAnonymity",
    "KMap",
    "Knit",
    "KnitStream",
    "KnnStream",
    "LDiversity",
    "Microaggregation",
    "Mondrian",
    "PcaDraw",
    "PopulationUniqueness",
    "PosteriorBound",
    "RecordsAtRisk",
    "Release",
    "Sabre",
    "SabreWindow",
    "Schema",
    "Slicing",
    "SoftStop",
    "StackAndDeal",
    "TCloseness",
    "Transparency",
    "Unsatisfiable",
    "Windowed",
    "anonymize",
    "apply",
    "attack",
    "attacks",
    "audit",
    "bound_loss",
    "bucketized",
    "build_repeat",
    "certificate_on_spark",
    "choose_k",
    "compare",
    "datasets",
    "date",
    "datetime",
    "dossier",
    "duration",
    "flat",
    "flush_on_spark",
    "frontier",
    "generalized",
    "individual_risk",
    "itemset",
    "metrics",
    "multiset",
    "new_keys",
    "numeric",
    "open_source",
    "permuted",
    "perturbed",
    "point",
    "prefix",
    "preset",
    "replay",
    "risk",
    "run",
    "safe_harbor",
    "sign",
    "sliced",
    "sql",
    "stream_on_spark",
    "suda",
    "suggest",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_all()
