"""The level that a release reaches for every family of guarantees and every sensitive attribute, with the worst class.

Levels are those of the models, computed on the classes that a recipient reads back, in rows. A level is None where it is
undefined: k where quasi-identifiers are not generalized; closeness and similar guarantees of a perturbed attribute, whose law
is reported instead.
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
    """The level of the worst class.

    Args:
        measured: The level; None where it is unlimited.
        exact: The same level as a fraction, where it is one.
        worst: The worst class.
    """

    measured: float | None
    exact: str | None = None
    worst: WorstClass | None = None

    def __str__(self) -> str:
        return "no limit" if self.measured is None else f"{self.measured:.6g}"


class SecretLevels(Record):
    """Levels of one sensitive attribute; None (or, for distances, no entry) where undefined.

    Args:
        distance: The column's own ground distance.
        t: t-closeness by ground distance: ordered, hierarchical, equal.
        beta_basic: Basic beta-likeness.
        beta_enhanced: Enhanced beta-likeness.
        delta: Delta-disclosure.
        l_distinct: Distinct l-diversity.
        l_entropy: Entropy l-diversity.
        l_frequency: l-diversity by the most frequent value.
        gamma: Gamma of a perturbed attribute.
    """

    distance: str | None = None
    t: dict[str, Level] = Field(default_factory=dict)
    beta_basic: Level | None = None
    beta_enhanced: Level | None = None
    delta: Level | None = None
    l_distinct: Level | None = None
    l_entropy: Level | None = None
    l_frequency: Level | None = None
    gamma: float | None = None

    @property
    def own_t(self) -> Level | None:
        """t by the column's own ground distance."""
        return self.t.get(self.distance or "")

    def __str__(self) -> str:
        if self.gamma is not None:
            return f"perturbed, gamma {self.gamma:.6g}"
        closest = [f"t {level} ({distance})" for distance, level in self.t.items()]
        named = {
            "beta": self.beta_enhanced,
            "beta (basic)": self.beta_basic,
            "delta": self.delta,
            "l": self.l_distinct,
            "l (entropy)": self.l_entropy,
            "l (frequency)": self.l_frequency,
        }
        return ", ".join([*closest, *(f"{name} {level}" for name, level in named.items() if level is not None)])


class PrivacyLevels(Record):
    """Levels of the whole release: k, and every sensitive attribute.

    Args:
        k: k-anonymity; None where quasi-identifiers are not generalized.
        secrets: The levels of each sensitive attribute.
    """

    k: Level | None
    secrets: dict[str, SecretLevels]

    def __str__(self) -> str:
        first = [] if self.k is None else [f"k       {self.k}"]
        return "\n".join([*first, *(f"{name}: {levels}" for name, levels in self.secrets.items())])


def measure_levels(published: Published | Reading) -> PrivacyLevels:
    """Measure every level of a release.

    Args:
        published: A release, or what its form read.

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
    """Measure every level of one sensitive attribute, in its classes."""
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
    """Yield t-closeness of an attribute by every ground distance that is defined for it."""
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
