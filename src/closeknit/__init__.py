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
    from closeknit.api import anonymize as anonymize
    from closeknit.api import apply as apply
    from closeknit.api import attack as attack
    from closeknit.api import audit as audit
    from closeknit.api import bound_loss as bound_loss
    from closeknit.api import build_repeat as build_repeat
    from closeknit.api import certificate_on_spark as certificate_on_spark
    from closeknit.api import choose_k as choose_k
    from closeknit.api import compare as compare
    from closeknit.api import dossier as dossier
    from closeknit.api import flush_on_spark as flush_on_spark
    from closeknit.api import frontier as frontier
    from closeknit.api import new_keys as new_keys
    from closeknit.api import preset as preset
    from closeknit.api import replay as replay
    from closeknit.api import risk as risk
    from closeknit.api import run as run
    from closeknit.api import safe_harbor as safe_harbor
    from closeknit.api import sign as sign
    from closeknit.api import stream_on_spark as stream_on_spark
    from closeknit.api import suda as suda
    from closeknit.api import suggest as suggest
    from closeknit.core.certificate import Certificate as Certificate
    from closeknit.core.date_times import datetime as datetime
    from closeknit.core.dates import date as date
    from closeknit.core.durations import duration as duration
    from closeknit.core.errors import BadInput as BadInput
    from closeknit.core.errors import CloseknitError as CloseknitError
    from closeknit.core.errors import Unsatisfiable as Unsatisfiable
    from closeknit.core.hierarchy import Hierarchy as Hierarchy
    from closeknit.core.itemsets import itemset as itemset
    from closeknit.core.kinds import flat as flat
    from closeknit.core.kinds import numeric as numeric
    from closeknit.core.kinds import prefix as prefix
    from closeknit.core.points import point as point
    from closeknit.core.schema import Schema as Schema
    from closeknit.forms import bucketized as bucketized
    from closeknit.forms import generalized as generalized
    from closeknit.forms import multiset as multiset
    from closeknit.forms import permuted as permuted
    from closeknit.forms import perturbed as perturbed
    from closeknit.forms import sliced as sliced
    from closeknit.io.database import sql as sql
    from closeknit.io.sources import open_source as open_source
    from closeknit.methods import Anatomy as Anatomy
    from closeknit.methods import Burel as Burel
    from closeknit.methods import FcmDraw as FcmDraw
    from closeknit.methods import FixedLevels as FixedLevels
    from closeknit.methods import Fragmentation as Fragmentation
    from closeknit.methods import Incognito as Incognito
    from closeknit.methods import Knit as Knit
    from closeknit.methods import Microaggregation as Microaggregation
    from closeknit.methods import Mondrian as Mondrian
    from closeknit.methods import PcaDraw as PcaDraw
    from closeknit.methods import Sabre as Sabre
    from closeknit.methods import Slicing as Slicing
    from closeknit.methods import SoftStop as SoftStop
    from closeknit.methods import StackAndDeal as StackAndDeal
    from closeknit.models import AverageRisk as AverageRisk
    from closeknit.models import BetaLikeness as BetaLikeness
    from closeknit.models import DeltaDisclosure as DeltaDisclosure
    from closeknit.models import DeltaPresence as DeltaPresence
    from closeknit.models import DiverseSlicing as DiverseSlicing
    from closeknit.models import KAnonymity as KAnonymity
    from closeknit.models import KMap as KMap
    from closeknit.models import LDiversity as LDiversity
    from closeknit.models import PopulationUniqueness as PopulationUniqueness
    from closeknit.models import PosteriorBound as PosteriorBound
    from closeknit.models import RecordsAtRisk as RecordsAtRisk
    from closeknit.models import TCloseness as TCloseness
    from closeknit.models import Transparency as Transparency
    from closeknit.release import Release as Release
    from closeknit.risks.sample_weights import individual_risk as individual_risk
    from closeknit.streams import BurelWindow as BurelWindow
    from closeknit.streams import Castle as Castle
    from closeknit.streams import KnitStream as KnitStream
    from closeknit.streams import KnnStream as KnnStream
    from closeknit.streams import SabreWindow as SabreWindow
    from closeknit.streams import Windowed as Windowed
    from closeknit.streams.input_rules import InputRules as InputRules

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

__all__ = sorted((*_MODULE_OF, *_PACKAGES))


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
