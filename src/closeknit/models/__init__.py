"""Guarantees about classes: one file per model, each a frozen value. `REGISTRY`: name in a recipe -> class."""

from __future__ import annotations

from closeknit.core.model import Model
from closeknit.models.beta_likeness import BetaLikeness
from closeknit.models.delta_disclosure import DeltaDisclosure
from closeknit.models.diverse_slicing import DiverseSlicing
from closeknit.models.k_anonymity import KAnonymity
from closeknit.models.l_diversity import LDiversity
from closeknit.models.posterior_bound import PosteriorBound
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
}

__all__ = [
    "REGISTRY",
    "BetaLikeness",
    "DeltaDisclosure",
    "DiverseSlicing",
    "KAnonymity",
    "LDiversity",
    "PosteriorBound",
    "TCloseness",
    "Transparency",
]
