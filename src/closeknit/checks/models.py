"""Checks of a guarantee: it equals its naive definition on generated classes, and its verdict agrees with its level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from closeknit.checks.failures import require
from closeknit.checks.naive_cells import ground, tree
from closeknit.checks.oracle import oracle_alone, oracle_holds, oracle_level, oracle_vacuous
from closeknit.core.classes import Classes
from closeknit.core.combined_secrets import CodedSecret, Secret, join_secrets, parts
from closeknit.core.errors import BadInput
from closeknit.core.params import spec
from closeknit.core.share_limits import Limits
from closeknit.core.vacuity import find_stand_alone

ModelCheck = Callable[[Any, Any, int], None]
COLUMN = "secret"
VALUES: dict[str, list[str]] = {
    "numeric": ["10", "20", "30", "45.5", "80"],
    "tree": ["flu", "asthma", "ulcer", "colic", "gout"],
    "flat": ["A", "B", "AB", "0"],
    "prefix": ["1205", "1206", "1999", "4760"],
}


@dataclass(frozen=True, eq=False)
class Sample:
    """Generated rows: the class, the sensitive value and the person of each; `column` names the columns of a value."""

    class_of: list[int]
    secrets: list[Any]  # a text or None; a tuple of them where the guarantee combines several columns
    persons: list[int] | None
    kind: Any
    column: Secret = COLUMN

    @property
    def count(self) -> int:
        """Number of classes."""
        return max(self.class_of) + 1

    def classes(self, class_of: list[int] | None = None) -> Classes:
        """Return the classes as a model sees them."""
        chosen = np.array(class_of or self.class_of, dtype=np.int32)
        persons = None if self.persons is None else np.array(self.persons, dtype=np.int64)
        secrets: dict[Secret, CodedSecret] = {}
        if self.kind is not None:
            cells = [self.secrets] if isinstance(self.column, str) else list(zip(*self.secrets, strict=True))
            secrets |= {name: _encode_secret(self.kind, column) for name, column in zip(parts(self.column), cells, strict=True)}
            if isinstance(self.column, tuple):
                secrets[self.column] = join_secrets(list(secrets.values()))
        return Classes.of(chosen, int(chosen.max()) + 1, secrets, persons)

    def rows(self, number: int) -> list[int]:
        """Return the rows of one class."""
        return [row for row, class_of in enumerate(self.class_of) if class_of == number]


def _encode_secret(kind: Any, cells: Sequence[str | None]) -> CodedSecret:
    texts = sorted({cell for cell in cells if cell is not None})
    domain, leaves = kind.bind(np.array(texts, dtype=object))
    leaf: dict[str | None, int] = dict(zip([*texts, None], [*leaves.tolist(), domain.size], strict=True))
    return np.array([leaf[cell] for cell in cells], dtype=np.int32), domain


def samples(model: Any, kind: Any, seed: int) -> Iterator[Sample]:
    """Yield rows with and without persons, with and without missing values where the guarantee allows them."""
    rng = np.random.default_rng([seed, 77])
    name = "flat" if kind is None else kind.name
    column = model.column or COLUMN
    for gaps in (0.0, 0.2):
        for with_persons in (False, True):
            rows = int(rng.integers(8, 40))
            weights = rng.dirichlet(np.ones(len(VALUES[name])))
            cells = []
            for _ in parts(column):
                drawn = rng.choice(VALUES[name], rows, p=weights).tolist()
                cells.append([None if rng.random() < gaps else value for value in drawn])
            secrets = cells[0] if isinstance(column, str) else list(zip(*cells, strict=True))
            class_of = np.concatenate([np.arange(4), rng.integers(0, 4, rows - 4)]).tolist()
            # no person is in two classes: one who is can be counted in either, and merging then removes a holder
            persons = (
                [100 * c + int(p) for c, p in zip(class_of, rng.integers(0, 4, rows), strict=True)] if with_persons else None
            )
            sample = Sample(class_of, secrets, persons, kind, column)
            if not gaps or _has_place(model, replace(sample, persons=None)):
                yield sample


def _has_place(model: Any, sample: Sample) -> bool:
    """Whether the guarantee means something for these values."""
    try:
        model.refuse(sample.classes())
    except BadInput:
        return False
    return True


def oracle_params(model: Any, sample: Sample, rows: list[int]) -> dict[str, Any]:
    """Return the model's parameters with persons and ground distance as the oracle takes them."""
    params: dict[str, Any] = dict(spec(model))
    params.pop("column", None)
    params.pop("over", None)
    distance = params.pop("distance", None)
    if model.bounds == "distance" and isinstance(sample.column, str):
        params["ground"] = ground(sample.kind, distance, sample.secrets)
    elif params.get("kind") == "semantic":
        params["ground"] = tree(sample.kind, {value for value in sample.secrets if value is not None})
    if sample.persons is not None and "persons" in model.needs:
        params["persons"] = [sample.persons[row] for row in rows]
    return params


def equals_its_definition(model: Any, kind: Any, seed: int) -> None:
    """Levels and verdicts equal the naive definition."""
    for sample in samples(model, kind, seed):
        classes = sample.classes()
        levels, holds = model.levels(classes), model.holds(classes)
        for number in range(sample.count):
            rows = sample.rows(number)
            values = [sample.secrets[row] for row in rows]
            params = oracle_params(model, sample, rows)
            level = float(oracle_level(model.name, values, sample.secrets, **params))
            require(
                math.isclose(levels[number], level, rel_tol=1e-9, abs_tol=1e-12),
                f"{model}: {levels[number]} is not {level} on {values}",
            )
            right = oracle_holds(model.name, values, sample.secrets, **params)
            require(bool(holds[number]) == right, f"{model}: holds is {holds[number]} on {values} in {sample.secrets}")
            exact = model.exact_level(classes, number)
            require(
                exact is None or math.isclose(exact, level, rel_tol=1e-9, abs_tol=1e-12),
                f"{model}: the exact level {exact} is not {level}",
            )


def holds_where_its_level_does(model: Any, kind: Any, seed: int) -> None:
    """Off the limit the verdict is that of the level."""
    limit = float(Fraction(str(getattr(model, model.limit_field))))
    for sample in samples(model, kind, seed):
        classes = sample.classes()
        for level, holds in zip(model.levels(classes), model.holds(classes), strict=True):
            if abs(level - limit) > 1e-6:
                require(
                    bool(holds) == (level > limit if model.higher_is_safer else level < limit),
                    f"{model}: level {level} and holds {holds}",
                )


def boundary_is_exact(model: Any, kind: Any, seed: int) -> None:
    """With the exact level of a class as its limit a guarantee with `<=` or `>=` holds; a hair tighter it does not."""
    field = model.limit_field
    strict = model.requested.startswith("< ")
    for sample in samples(model, kind, seed):
        classes = sample.classes()
        for number in range(sample.count):
            exact = model.exact_level(classes, number)
            if exact is None or exact <= 0:
                continue
            whole = isinstance(getattr(model, field), int) and exact.denominator == 1
            hair = Fraction(1) if whole else Fraction(1, 10**15)
            sign = 1 if model.higher_is_safer else -1
            require(
                _holds(model, field, exact, classes, number) is not strict,
                f"{model}: the verdict at its limit {exact} is wrong",
            )
            require(
                _holds(model, field, exact + sign * hair, classes, number) in (False, None),
                f"{model}: it still holds beyond {exact}",
            )


def _holds(model: Any, field: str, limit: Fraction, classes: Classes, number: int) -> bool | None:
    """Return the verdict with another limit; None where the limit itself is invalid (t above 1)."""
    value = int(limit) if limit.denominator == 1 else str(limit)
    try:
        other = replace(model, **{field: value})
    except (ValueError, BadInput):
        return None
    return bool(other.holds(classes)[number])


def merging_keeps_it(model: Any, kind: Any, seed: int) -> None:
    """If the guarantee is declared monotone, merging two classes that meet it gives a class that meets it."""
    if not model.monotone:
        return
    for sample in samples(model, kind, seed):
        holds = model.holds(sample.classes())
        for one in range(sample.count):
            for other in range(one):
                if holds[one] and holds[other]:
                    merged = [other if number == one else number for number in sample.class_of]
                    both = model.holds(sample.classes(merged))[other]
                    require(both, f"{model}: two classes that meet it merge into one that does not")


def standing_alone_equals_its_definition(model: Any, kind: Any, seed: int) -> None:
    """Which values may stand alone, and whether that makes the guarantee vacuous, is what the naive rule says."""
    limit = model.parameter
    loosest = limit.least if model.higher_is_safer or limit.most is None else limit.most
    for judged in (model, replace(model, **{limit.name: loosest})):
        for sample in samples(judged, kind, seed):
            if (found := find_stand_alone(judged, sample.classes(), 1)) is None:
                require(judged.column is None or "release" in judged.needs, f"{judged}: its values are not judged")
                continue
            params = oracle_params(judged, replace(sample, persons=None), [])
            alone = oracle_alone(judged.name, sample.secrets, **params)
            share = sum(alone.values()) / len(sample.secrets)
            same = math.isclose(found.share, share)
            require(same, f"{judged}: {found.share} and not {share} may stand alone in {sample.secrets}")
            for k in (1, 3, 6, 100):
                right = oracle_vacuous(judged.name, sample.secrets, k, **params)
                require(replace(found, k=k).vacuous == right, f"{judged}, k = {k}: vacuous is not {right} in {sample.secrets}")


def text_names_parameters(model: Any, kind: Any, seed: int) -> None:
    """Its text names its parameters, and it can be hashed and compared as a value."""
    require(model == replace(model) and hash(model) == hash(replace(model)), f"{model} is not a value")
    text = model.describe(None)
    require(str(getattr(model, model.parameter.name)) in text, f"{model}: its limit is not in {text!r}")
    require(all(name in text for name in parts(model.column)), f"{model}: its column is not in {text!r}")
    require(model.forms and model.needs, f"{model} does not declare its forms and needs")


def limits_imply_it(model: Any, kind: Any, seed: int) -> None:
    """A class that keeps the limits meets the guarantee: guards ask nothing else."""
    for sample in samples(model, kind, seed):
        classes = sample.classes()
        counted = sample.persons is not None and "persons" in model.needs
        limits = None if model.column is None or counted else model.limits(classes.histograms[model.column])
        if limits is None or not limits.sufficient or limits.distance is not None:
            continue
        histogram, holds = classes.histograms[model.column], model.holds(classes)
        for number in range(sample.count):
            counts = np.zeros(len(histogram.reference), dtype=np.int64)
            part = slice(int(histogram.starts[number]), int(histogram.starts[number + 1]))
            counts[histogram.values[part]] = histogram.counts[part]
            if _keeps(limits, counts, histogram.reference):
                require(bool(holds[number]), f"{model}: a class keeps its limits and does not meet it: {counts}")


def _keeps(limits: Limits, counts: Any, reference: Any) -> bool:
    """Whether a class with these counts keeps all limits on shares."""
    total, everything = int(counts.sum()), int(reference.sum())
    shares = {code: Fraction(int(count), total) for code, count in enumerate(counts) if reference[code]}
    present = [share for code, share in shares.items() if share and (limits.missing_counts or code < len(counts) - 1)]
    entropy = -sum(float(share) * math.log(share) for share in present)
    growth = limits.growth.cap if limits.growth else lambda p: Fraction(1)
    return (
        all(share <= limits.caps.get(code, 1) for code, share in shares.items())
        and all(share >= limits.floors.get(code, 0) for code, share in shares.items())
        and all(share <= growth(Fraction(int(reference[code]), everything)) for code, share in shares.items())
        and len(present) >= limits.values
        and (limits.entropy is None or entropy >= math.log(limits.entropy) + 1e-9)
    )


DEFINED: tuple[ModelCheck, ...] = (equals_its_definition, standing_alone_equals_its_definition)
CHECKS: tuple[ModelCheck, ...] = (
    equals_its_definition,
    holds_where_its_level_does,
    boundary_is_exact,
    merging_keeps_it,
    standing_alone_equals_its_definition,
    text_names_parameters,
    limits_imply_it,
)
