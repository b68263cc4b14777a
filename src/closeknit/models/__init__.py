"""Guarantees about classes: one file per model, each a frozen value. `REGISTRY`: name in a recipe -> class."""

from __future__ import annotations

from closeknit.core.model import Model
from closeknit.models.average_risk import AverageRisk
from closeknit.models.beta_likeness import BetaLikeness
from closeknit.models.delta_disclosure import DeltaDisclosure
from closeknit.models.delta_presence import DeltaPresence
from closeknit.models.diverse_slicing import DiverseSlicing
from closeknit.models.k_anonymity import KAnonymity
from closeknit.models.k_map import KMap
from closeknit.models.l_diversity import LDiversity
from closeknit.models.population_uniqueness import PopulationUniqueness
from closeknit.models.posterior_bound import PosteriorBound
from closeknit.models.records_at_risk import RecordsAtRisk
from closeknit.models.t_closeness import TCloseness
from closeknit.models.transparency import Transparency

REGISTRY: dict[str, type[Model]] = {
    KAnonymity.name: KAnonymity,
    LDiversity.name: LDiversity,
    TCloseness.name: TCloseness,
    BetaLikeness.name: BetaLikeness,
    DeltaDisclosure.name: DeltaDisclosure,
    DiverseSlicing.name: DiverseSlicing,
    PosteriorBound.name: PosteriorBound,
    Transparency.name: Transparency,
    KMap.name: KMap,
    AverageRisk.name: AverageRisk,
    RecordsAtRisk.name: RecordsAtRisk,
    DeltaPresence.name: DeltaPresence,
    PopulationUniqueness.name: PopulationUniqueness,
}

__all__ = [
    "REGISTRY",
    "AverageRisk",
    "BetaLikeness",
    "DeltaDisclosure",
    "DeltaPresence",
    "DiverseSlicing",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "PopulationUniqueness",
    "PosteriorBound",
    "RecordsAtRisk",
    "TCloseness",
    "Transparency",
]
