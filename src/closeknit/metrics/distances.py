"""Distances between the distribution of a sensitive attribute in each class and in the release, in addition to t-closeness.

With p the shares of the values in the release and q in the class, m their mean, and logarithms to base 2 (so all are in bits):
- `kl`: sum p log(p/q), the direction of the sources; unlimited where the class lacks a value;
- `gain`: sum q log(q/p), the information gained by knowing the class; always finite;
- `js`, Jensen-Shannon: half of sum p log(p/m) + sum q log(q/m); at most 1;
- `variation`: half of sum |p - q|, which is the equal distance;
- `t`: earth mover's distance by the kind of the column; None where it is undefined (an order with missing values).

Source: the thesis on SABRE and BUREL, sec. 4.1 (it names no base; its printed numbers are those of base 2).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from closeknit.core.certificate import Record, WorstClass
from closeknit.core.classes import Histogram
from closeknit.core.errors import BadInput
from closeknit.core.exact import sum_products
from closeknit.core.grids import render_measured
from closeknit.core.reading import Reading
from closeknit.forms.release_reading import Published, reading_of
from closeknit.kernels.arrays import Reals
from closeknit.metrics.privacy_levels import closeness
from closeknit.metrics.queries import choose_secret
from closeknit.models.t_closeness import TCloseness, default_distance


class Spread(Record):
    """One distance over all classes; a distance of None is unlimited.

    Args:
        worst: The largest distance of a class.
        mean: The mean over the rows.
        lower: The lower quartile of the rows.
        median: The median of the rows.
        upper: The upper quartile of the rows.
        unlimited: Share of the rows in classes with an unlimited distance.
        worst_class: The class with the largest distance.
    """

    worst: float | None
    mean: float | None
    lower: float | None
    median: float | None
    upper: float | None
    unlimited: float = 0.0
    worst_class: WorstClass | None = None

    def __str__(self) -> str:
        return f"worst {render_measured(self.worst)}, mean {render_measured(self.mean)}"


class ClassDistances(Record):
    """Distances of every class to the release, for one sensitive attribute.

    Args:
        secret: The sensitive attribute.
        base: The base of every logarithm.
        distance: The ground distance of `t`.
        t: Earth mover's distance; None where it is undefined.
        kl: Sum p log(p/q), with shares p in the release and q in the class; unlimited where the class lacks a value.
        gain: Sum q log(q/p), the information gained by knowing the class.
        js: Jensen-Shannon divergence, at most 1.
        variation: Total variation, half of sum |p - q|.
    """

    secret: str
    base: Literal[2] = 2
    distance: str | None
    t: Spread | None
    kl: Spread
    gain: Spread
    js: Spread
    variation: Spread

    def __str__(self) -> str:
        named = {f"t ({self.distance})": self.t, "KL": self.kl, "gain": self.gain, "JS": self.js, "variation": self.variation}
        return f"{self.secret}: " + "; ".join(f"{name} {found}" for name, found in named.items() if found is not None)


def class_distances(published: Published | Reading, secret: str | None = None) -> ClassDistances:
    """Summarize the distances of `distances_by_class`.

    Args:
        published: A release, or what its form read.
        secret: Sensitive attribute; None takes the first.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> found = class_distances(ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.Mondrian()), "stay")
    >>> found.distance, found.js.worst < found.variation.worst < 1, found.kl.worst
    ('ordered', True, None)
    """
    reading = reading_of(published)
    name = choose_secret(reading.schema, secret)
    arrays, seen = distances_by_class(reading, name), reading.of(name)
    spreads: dict[str, Any] = {"t": None} | {what: _spread(levels, seen) for what, levels in arrays.items()}
    distance = default_distance(seen.classes.histograms[name].domain) if "t" in arrays else None
    return ClassDistances(secret=name, distance=distance, **spreads)


def distances_by_class(published: Published | Reading, secret: str) -> dict[str, Reals]:
    """Return every distance as an array with one entry per class of the attribute; infinite is unlimited.

    Args:
        published: A release, or what its form read.
        secret: Sensitive attribute that is not perturbed.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> found = distances_by_class(ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.Mondrian()), "disease")
    >>> sorted(found), bool((found["js"] <= found["variation"]).all())
    (['gain', 'js', 'kl', 't', 'variation'], True)
    """
    reading = reading_of(published)
    if secret in reading.retained:
        what = "is perturbed: its written values are not those of the class"
        raise BadInput(what, column=secret, right="see the gamma of its law, which bounds what it discloses")
    classes = reading.of(choose_secret(reading.schema, secret)).classes
    histogram = classes.histograms[secret]
    own = default_distance(histogram.domain)
    near = [model.levels(classes) for model in closeness(reading, secret) if model.distance == own]
    found = {"t": near[0]} if near else {}
    return found | divergences(histogram) | {"variation": TCloseness(secret, 1, "equal").levels(classes)}


def divergences(histogram: Histogram) -> dict[str, Reals]:
    """Return `kl`, `gain` and `js` of each class; 0 where all its values are suppressed.

    >>> from closeknit.core.kinds import flat
    >>> domain, codes = flat().bind(np.array(["flu", "gout"], dtype=object))
    >>> class_of, rows = np.array([0, 0, 1, 1], dtype=np.int32), codes[[0, 1, 1, 1]]
    >>> {name: found.round(3).tolist() for name, found in divergences(Histogram.of(class_of, 2, rows, domain)).items()}
    {'kl': [0.189, inf], 'gain': [0.208, 0.415], 'js': [0.049, 0.138]}
    """
    count, owner = len(histogram.starts) - 1, histogram.owner
    q = histogram.counts / histogram.totals[owner]
    p = histogram.reference[histogram.values] / max(int(histogram.reference.sum()), 1)

    def sum_by_class(terms: Reals) -> Reals:
        return np.bincount(owner, weights=terms, minlength=count).astype(np.float64)

    filled = histogram.totals > 0
    # share in the release of the values that the class lacks
    lacked = np.where(filled, np.maximum(1.0 - sum_by_class(p), 0.0), 0.0)
    lacking = filled & (np.diff(histogram.starts) < np.count_nonzero(histogram.reference))
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.where(lacking, np.inf, sum_by_class(np.where(p > 0, p * np.log2(p / q), 0.0)))
        gain = sum_by_class(q * np.log2(q / p))
        halves = np.where(p > 0, p * np.log2(2 * p / (p + q)), 0.0) + q * np.log2(2 * q / (p + q))
    js = (sum_by_class(halves) + np.where(lacking, lacked, 0.0)) / 2
    return {name: np.maximum(found, 0.0) for name, found in {"kl": kl, "gain": gain, "js": js}.items()}


def _spread(levels: Reals, reading: Reading) -> Spread:
    sizes = reading.classes.sizes
    if len(levels) == 0:
        return Spread(worst=None, mean=None, lower=None, median=None, upper=None)
    worst = int(np.argmax(levels))
    order = np.argsort(levels, kind="stable")
    reach = np.cumsum(sizes[order])
    places = np.minimum(np.searchsorted(reach, np.array([0.25, 0.5, 0.75]) * reach[-1]), len(order) - 1)
    lower, median, upper = (_replace_infinite(levels[order[place]]) for place in places)
    return Spread(
        worst=_replace_infinite(levels[worst]),
        mean=_replace_infinite(sum_products(levels, sizes) / int(sizes.sum())),
        lower=lower,
        median=median,
        upper=upper,
        unlimited=float(sizes[np.isinf(levels)].sum() / sizes.sum()),
        worst_class=WorstClass(cells=reading.cells_of(worst), rows=int(sizes[worst])),
    )


def _replace_infinite(level: float) -> float | None:
    return float(level) if np.isfinite(level) else None
