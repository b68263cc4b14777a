"""Guarantees about classes: one file per model, each a frozen value. `REGISTRY`: name in a recipe -> class."""

from __future__ import annotations

from closeknit.core.model import Model
from closeknit.models.average_risk import AverageRisk as AverageRisk
from closeknit.models.beta_likeness import BetaLikeness as BetaLikeness
from closeknit.models.delta_disclosure import DeltaDisclosure as DeltaDisclosure
from closeknit.models.delta_presence import DeltaPresence as DeltaPresence
from closeknit.models.diverse_slicing import DiverseSlicing as DiverseSlicing
from closeknit.models.k_anonymity import KAnonymity as KAnonymity
from closeknit.models.k_map import KMap as KMap
from closeknit.models.l_diversity import LDiversity as LDiversity
from closeknit.models.population_uniqueness import PopulationUniqueness as PopulationUniqueness
from closeknit.models.posterior_bound import PosteriorBound as PosteriorBound
from closeknit.models.records_at_risk import RecordsAtRisk as RecordsAtRisk
from closeknit.models.t_closeness import TCloseness as TCloseness
from closeknit.models.transparency import Transparency as Transparency

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
