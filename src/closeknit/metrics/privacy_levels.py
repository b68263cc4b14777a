"""What a release really reaches, guaranteed or not: the level of every family of guarantees for every secret, with its worst
class.

Levels are those of the models, computed on the classes that a stranger reads back, in rows. A number without meaning is None: k
where quasi-identifiers are not generalized; closeness and the like of a perturbed secret, of which the law is told instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from closeknit.core.certificate import Record, WorstClass
from closeknit.core.errors import BadInput
from closeknit.core.measurement import judge
from closeknit.core.model import Model
from closeknit.core.reading import Reading
from closeknit.forms.release_reading import Published, reading_of
from closeknit.models.beta_likeness import BetaLikeness
from closeknit.models.delta_disclosure import DeltaDisclosure
from closeknit.models.k_anonymity import KAnonymity
from closeknit.models.l_diversity import LDiversity
from closeknit.models.t_closeness import DISTANCES, TCloseness, default_distance


class Level(Record):
    """What the worst class reaches: `measured` is None where there is no limit."""

    measured: float | None
    exact: str | None = None
    worst: WorstClass | None = None

    def __str__(self) -> str:
        return "no limit" if self.measured is None else f"{self.measured:.6g}"


class SecretLevels(Record):
    """Of one secret; None (or, of distances, nothing) where it has no meaning."""

    distance: str | None = None  # the ground distance that belongs to the column
    t: dict[str, Level] = Field(default_factory=dict)  # by ground distance: ordered, hierarchical, equal
    beta_basic: Level | None = None
    beta_enhanced: Level | None = None
    delta: Level | None = None
    l_distinct: Level | None = None
    l_entropy: Level | None = None
    l_frequency: Level | None = None
    gamma: float | None = None  # of a perturbed secret

    @property
    def own_t(self) -> Level | None:
        """t by the distance that belongs to the column."""
        return self.t.get(self.distance or "")

    def __str__(self) -> str:
        if self.gamma is not None:
            return f"perturbed, gamma {self.gamma:.6g}"
        told = [f"t {level} ({distance})" for distance, level in self.t.items()]
        named = {
            "beta": self.beta_enhanced,
            "beta (basic)": self.beta_basic,
            "delta": self.delta,
            "l": self.l_distinct,
            "l (entropy)": self.l_entropy,
            "l (frequency)": self.l_frequency,
        }
        return ", ".join([*told, *(f"{name} {level}" for name, level in named.items() if level is not None)])


class PrivacyLevels(Record):
    """Of the whole release: k, and every secret."""

    k: Level | None
    secrets: dict[str, SecretLevels]

    def __str__(self) -> str:
        first = [] if self.k is None else [f"k       {self.k}"]
        return "\n".join([*first, *(f"{name}: {levels}" for name, levels in self.secrets.items())])


def measure_levels(published: Published | Reading) -> PrivacyLevels:
    """Every level of a release (or of what a form read).

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> found = measure_levels(ck.anonymize(table, schema, [ck.KAnonymity(5), ck.LDiversity("disease", 3)], ck.Mondrian()))
    >>> str(found.k), str(found.secrets["disease"].l_distinct), sorted(found.secrets["disease"].t)
    ('5', '3', ['equal', 'hierarchical'])
    """
    reading = reading_of(published)
    k = None if reading.column_groups else _level(reading, KAnonymity(1))
    return PrivacyLevels(k=k, secrets={name: measure_secret(reading, name) for name in reading.schema.sensitive})


def measure_secret(reading: Reading, secret: str) -> SecretLevels:
    """Every level of one secret, in the classes in which it is seen."""
    law = reading.retained.get(secret)
    if law is not None:
        return SecretLevels(gamma=float(law.gamma))
    levels: dict[str, Any] = {
        "beta_basic": _level(reading, BetaLikeness(secret, 1, "basic")),
        "beta_enhanced": _level(reading, BetaLikeness(secret, 1)),
        "delta": _level(reading, DeltaDisclosure(secret, 1)),
        "l_distinct": _level(reading, LDiversity(secret, 1)),
        "l_entropy": _level(reading, LDiversity(secret, 1, "entropy")),
        "l_frequency": _level(reading, LDiversity(secret, 1, "frequency")),
    }
    near = {model.distance: _level(reading, model) for model in closeness(reading, secret)}
    own = default_distance(reading.of(secret).classes.histograms[secret].domain)
    return SecretLevels(distance=own, t={str(name): level for name, level in near.items()}, **levels)


def closeness(reading: Reading, secret: str) -> Iterator[TCloseness]:
    """Closeness of a secret by every distance that has a meaning for it."""
    for distance in DISTANCES:
        model = TCloseness(secret, 1, distance)
        try:
            model.refuse(reading.of(secret).classes)
        except BadInput:
            continue
        yield model


def _level(reading: Reading, model: Model) -> Level:
    (found,) = judge(reading, [model])
    return Level(measured=found.measured, exact=found.exact, worst=found.worst)
