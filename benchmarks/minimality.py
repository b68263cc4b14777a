"""The minimality attack on every method: how much the method reveals beyond what its equivalence classes do.

The adversary knows the method with its parameters, all quasi-identifiers, which rows are in which class, and every sensitive
value outside one class. All ways to assign the sensitive values of this class to its members are tried, with several seeds.

- *Seed known*: ways after which the same seed gives the same release remain (`closeknit.attacks.minimality`).
- *Seed unknown*: a way counts as often as there are seeds after which these very members are a class again: by Bayes' rule
  that is the adversary's posterior, up to what else the release reveals.

Guessed right: how often the likeliest value of a member is the true one, on average over members; from the class alone that is
the largest share of a value in it. Where seeds are drawn, one half of them chooses the value and the other half measures how
likely it is, so that the luck of the draw does not count.

`python benchmarks/minimality.py "k = 4"` prints the methods under one set of guarantees.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import closeknit as ck
from closeknit.attacks.deals import Deals
from closeknit.core.columns import Columns
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.io.canonical import content_hash
from closeknit.methods import REGISTRY
from sections import Section

ROWS, TABLES, SEEDS, WAYS, CLASSES = 36, 3, 4, 60, 3  # seeds of each way; ways of a class at most; classes of a table
FIRST = 2**127  # seeds are long, so that nothing is said about them
SCHEMA = ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat(), "zip": ck.numeric()}, sensitive={"ill": ck.flat()})
GUARANTEES: dict[str, list[Model]] = {
    "k = 4": [ck.KAnonymity(4)],
    "k = 3, t = 0.25": [ck.KAnonymity(3), ck.TCloseness("ill", "0.25")],
    "k = 3, beta = 1": [ck.KAnonymity(3), ck.BetaLikeness("ill", 1)],
    "l = 1.5 (frequency)": [ck.LDiversity("ill", 1.5, "frequency")],
}
FEWER = {"knit": {"proposals": 20_000}}  # of a method that would take long; all others as they are by default
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Disclosed:
    """What one class reveals: alone, with the method and its seed, with the method alone."""

    alone: float
    seed_known: float
    seed_unknown: float
    sure: bool  # a person's value is certain, with the seed
    ways: int
    left: int  # ways that give the release, with the seed
    again: float  # share of seeds after which the class comes again, with the true secrets


def run(section: Section, rows: int | None) -> None:
    """Every guarantee and method; in a quick run one guarantee and two seeds."""
    report(section, list(GUARANTEES) if rows is None else list(GUARANTEES)[1:2], *((TABLES, SEEDS) if rows is None else (1, 2)))


def report(section: Section, names: Sequence[str], tables: int, seeds: int) -> None:
    """The named guarantees, every method that serves them, by default as `anonymize` has it."""
    found: list[list[str]] = []
    refused: dict[str, list[str]] = {}
    for name in names:
        for method_name, method in REGISTRY.items():
            try:
                chosen = method(**FEWER.get(method_name, {}))
                found_classes = [
                    one for table in range(tables) for one in disclosed_by_classes(table, GUARANTEES[name], chosen, seeds)
                ]
            except ck.CloseknitError as no:  # it cannot plan for these guarantees, or its form has no use for them
                refused.setdefault(name, []).append(f"{method_name} ({type(no).__name__})")
                continue
            found.append([name, method_name, *_summed(found_classes)])
    section.say(
        f"{tables} generated tables of {ROWS} rows (age, sex, zip; an illness of three values that depends on age), up to "
        f"{CLASSES} classes of each with at most {WAYS} ways to assign its values; {seeds} seeds for each way. The adversary "
        "knows all sensitive values outside the class. Guessed right: mean over the members of these classes."
    )
    section.table(
        [
            "guarantees",
            "method",
            "classes",
            "ways",
            "remaining, seed known",
            "disclosed for sure, seed known",
            "guessed right, class alone",
            "with the method and its seed",
            "with the method, seed unknown",
            "seeds that give the class again",
        ],
        found,
    )
    for name, methods in refused.items():
        section.say(f"Not for {name}: {', '.join(methods)}.")


def _summed(classes: Sequence[Disclosed]) -> list[str]:
    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values)) if values else float("nan")

    return [
        f"{len(classes)}",
        f"{mean([one.ways for one in classes]):.1f}",
        f"{mean([one.left for one in classes]):.1f}",
        f"{sum(one.sure for one in classes)} of {len(classes)}",
        f"{mean([one.alone for one in classes]):.1%}",
        f"{mean([one.seed_known for one in classes]):.1%}",
        f"{mean([one.seed_unknown for one in classes]):.1%}",
        f"{mean([one.again for one in classes]):.0%}",
    ]


def patients(seed: int) -> Columns:
    """A small table in which the illness leans on age."""
    rng = np.random.default_rng([2026, seed])
    age = rng.integers(20, 70, ROWS)
    ill = np.minimum(rng.integers(0, 3, ROWS), (age + rng.integers(-20, 20, ROWS)) // 25)
    names = np.array(["flu", "gout", "ulcer"])
    cells = {"age": age, "sex": rng.choice(["f", "m"], ROWS), "zip": rng.integers(0, 9, ROWS), "ill": names[np.clip(ill, 0, 2)]}
    return Columns.of({name: column.tolist() for name, column in cells.items()})


def disclosed_by_classes(number: int, models: Sequence[Model], method: Method, seeds: int) -> list[Disclosed]:
    """Attack the classes with the fewest ways."""
    table = patients(number)
    release = ck.anonymize(table, SCHEMA, models, method, seed=FIRST)
    goal = content_hash(release.columns)
    few = [c for c, ways in Deals.of(table, release.partition, SCHEMA).fewest_first(1 << 16) if ways <= WAYS][:CLASSES]
    return [_attack_class(table, models, method, seeds, release.partition, c, goal) for c in few]


def _attack_class(
    table: Columns, models: Sequence[Model], method: Method, seeds: int, class_of: NDArray[np.integer], number: int, goal: str
) -> Disclosed:
    deals = Deals.of(table, class_of, SCHEMA, [number])
    like = deals.slots[1]
    value = table["ill"].codes[like].astype(np.int64)
    true = table["ill"].codes[deals.members]
    has, gives, again = [], [], []
    for slots in deals.every():
        here = deals.table(slots)
        has.append(value[slots])
        hits = np.zeros(seeds)
        for i in range(seeds):
            made = ck.anonymize(here, SCHEMA, models, method, seed=FIRST + i)
            hits[i] = _is_class(made.partition, deals.members)
            if i == 0:
                gives.append(float(content_hash(made.columns) == goal))
        again.append(hits)
    secrets, kept, drawn = np.array(has), np.array(gives), np.array(again)
    even = np.ones(len(secrets))
    posterior = _shares(secrets, kept)
    return Disclosed(
        alone=_guessed(secrets, even, even),
        seed_known=_guessed(secrets, kept, kept),
        seed_unknown=(
            _guessed(secrets, *(drawn[:, half::2].sum(axis=1) for half in (0, 1)))
            + _guessed(secrets, *(drawn[:, half::2].sum(axis=1) for half in (1, 0)))
        )
        / 2,
        sure=bool(posterior.max() > 1 - 1e-9),
        ways=len(secrets),
        left=int(kept.sum()),
        again=float(drawn[(secrets == true).all(axis=1)].mean()),
    )


def _is_class(class_of: NDArray[np.integer], members: NDArray[np.int64]) -> bool:
    """Return whether exactly these rows are a class."""
    there = class_of[members]
    return bool((there == there[0]).all() and (class_of == there[0]).sum() == len(members))


def _shares(secrets: NDArray[np.int64], weight: Reals) -> Reals:
    """Return the posterior of each member's values: [members, values]; uniform where no way has weight."""
    weight = weight if weight.sum() > 0 else np.ones(len(weight))
    values = range(int(secrets.max()) + 1)
    return np.array([[weight[column == v].sum() for v in values] for column in secrets.T]) / weight.sum()


def _guessed(secrets: NDArray[np.int64], choosing: Reals, judging: Reals) -> float:
    """Return how often the likeliest value by one weight is right by the other, on average over members."""
    chosen = _shares(secrets, choosing).argmax(axis=1)
    return float(_shares(secrets, judging)[np.arange(len(chosen)), chosen].mean())


def main(names: Sequence[str]) -> None:
    """Print single guarantees, without writing them anywhere."""
    section = Section("The minimality attack")
    report(section, names or list(GUARANTEES), TABLES, SEEDS)
    print(section.text())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
