"""The minimality attack on every method: how much the method reveals beyond what its equivalence classes do.

The adversary knows the method with its parameters, all quasi-identifiers, which rows are in which class, and every sensitive
value outside one class. All ways to assign the sensitive values of this class to its members are tried, with several seeds.
Where no class of a table is small enough (Incognito generalizes whole columns), some ways of its smallest classes are drawn.

- *Seed known*: ways after which the same seed gives the same release remain (`closeknit.attacks.minimality`).
- *Seed unknown*: a way counts as often as there are seeds after which these very members are a class again: by Bayes' rule
  that is the adversary's posterior, up to what else the release reveals.

Guessed right: how often the likeliest value of a member is the true one, on average over members; from the class alone that is
the largest share of a value in it. Where seeds or ways are drawn, one half of them chooses the value and the other half
measures how likely it is, so that the luck of the draw does not count. A value is as likely as its share in the class, times
the share of the ways with this value that remain: where all remain, nothing is added to the class, however few were drawn.

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
DRAWS = 100  # ways drawn where every class has more
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
    drawn: bool  # only some of the ways were tried
    left: float  # ways that give the release, with the seed
    again: float  # share of seeds after which the class comes again, with the true secrets


def run(section: Section, rows: int | None) -> None:
    """Every guarantee and method; in a quick run one guarantee and two seeds."""
    report(section, list(GUARANTEES) if rows is None else list(GUARANTEES)[1:2], *((TABLES, SEEDS) if rows is None else (1, 2)))


def report(section: Section, names: Sequence[str], tables: int, seeds: int) -> None:
    """The named guarantees, every method that serves them, by default as `anonymize` has it."""
    found: list[list[str]] = []
    refused: dict[str, list[str]] = {}
    sampled: set[str] = set()
    for name in names:
        for method_name, method in REGISTRY.items():
            try:
                chosen = method(**FEWER.get(method_name, {}))
                classes_of = [disclosed_by_classes(table, GUARANTEES[name], chosen, seeds) for table in range(tables)]
            except ck.BadInput:  # it cannot plan for these guarantees, or its form has no use for them
                refused.setdefault(name, []).append(f"{method_name} (does not support them)")
                continue
            found_classes = [one for classes in classes_of for one in classes]
            if not found_classes:
                refused.setdefault(name, []).append(f"{method_name} (cannot meet them on these tables)")
                continue
            if any(one.drawn for one in found_classes):
                sampled.add(method_name)
            found.append([name, method_name, *_summed(found_classes)])
    section.say(
        f"{tables} generated tables of {ROWS} rows (age, sex, zip; an illness of three values that depends on age), up to "
        f"{CLASSES} classes of each with at most {WAYS} ways to assign its values; {seeds} seeds for each way. The adversary "
        "knows all sensitive values outside the class. Guessed right: mean over the members of these classes. A table on "
        "which a method cannot meet the guarantees has no classes here."
    )
    for method_name in sorted(sampled):
        section.say(
            f"Estimated for {method_name}: where no class of a table has at most {WAYS} ways, {DRAWS} ways of each of up to "
            f"{CLASSES} classes were drawn; *remaining* is then the share that remained times the ways, and *for sure* is "
            "as far as drawn."
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
        f"{mean([one.ways for one in classes]):,.1f}",
        f"{mean([one.left for one in classes]):,.1f}",
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
    """Attack the classes with the fewest ways; none where the table does not allow these guarantees."""
    table = patients(number)
    try:
        release = ck.anonymize(table, SCHEMA, models, method, seed=FIRST)
    except ck.Unsatisfiable:
        return []
    goal = content_hash(release.columns)
    fewest = Deals.of(table, release.partition, SCHEMA).fewest_first(1 << 16)[:CLASSES]
    few = [c for c, ways in fewest if ways <= WAYS] or [c for c, _ in fewest]
    return [_attack_class(table, models, method, seeds, release.partition, c, goal) for c in few]


def _attack_class(
    table: Columns, models: Sequence[Model], method: Method, seeds: int, class_of: NDArray[np.integer], number: int, goal: str
) -> Disclosed:
    deals = Deals.of(table, class_of, SCHEMA, [number])
    like = deals.slots[1]
    value = table["ill"].codes[like].astype(np.int64)
    true = table["ill"].codes[deals.members]
    drawn = deals.ways > WAYS
    has, gives, again = [], [], []
    for slots in deals.draw_ways(DRAWS, number) if drawn else deals.every():
        here = deals.table(slots)
        has.append(value[slots])
        hits = np.zeros(seeds)
        for i in range(seeds):
            made = ck.anonymize(here, SCHEMA, models, method, seed=FIRST + i)
            hits[i] = _is_class(made.partition, deals.members)
            if i == 0:
                gives.append(float(content_hash(made.columns) == goal))
        again.append(hits)
    secrets, kept, hit = np.array(has), np.array(gives), np.array(again)
    naive = np.bincount(true, minlength=int(value.max()) + 1) / len(true)
    ways = np.arange(len(secrets)) % 2 if drawn else None  # two halves of drawn ways
    every = np.arange(len(secrets)) >= 0
    by_ways = [every if ways is None else ways == half for half in (0, 1)]
    by_seeds = [hit[:, half::2].sum(axis=1) for half in (0, 1)]
    known = [_shares(secrets, kept, tried, naive) for tried in by_ways]
    unknown = [_shares(secrets, hits, tried, naive) for hits, tried in zip(by_seeds, by_ways, strict=True)]
    return Disclosed(
        alone=float(naive.max()),
        seed_known=(_guessed(*known) + _guessed(*reversed(known))) / 2,
        seed_unknown=(_guessed(*unknown) + _guessed(*reversed(unknown))) / 2,
        sure=bool(_shares(secrets, kept, every, naive).max() > 1 - 1e-9),
        ways=deals.ways,
        drawn=drawn,
        left=float(kept.mean()) * deals.ways,
        again=_count_again(table, models, method, seeds, deals.members),
    )


def _count_again(table: Columns, models: Sequence[Model], method: Method, seeds: int, members: NDArray[np.int64]) -> float:
    """Return the share of seeds after which these members are a class of the true table again."""
    made = [ck.anonymize(table, SCHEMA, models, method, seed=FIRST + i) for i in range(seeds)]
    return float(np.mean([_is_class(one.partition, members) for one in made]))


def _is_class(class_of: NDArray[np.integer], members: NDArray[np.int64]) -> bool:
    """Return whether exactly these rows are a class."""
    there = class_of[members]
    return bool((there == there[0]).all() and (class_of == there[0]).sum() == len(members))


def _shares(secrets: NDArray[np.int64], weight: Reals, tried: NDArray[np.bool_], naive: Reals) -> Reals:
    """Return the posterior of each member's values, [members, values]: the naive one where no tried way has weight."""
    weight = weight * tried if (weight * tried).any() else tried.astype(np.float64)
    shares = np.zeros((secrets.shape[1], len(naive)))
    for member, column in enumerate(secrets.T):
        with_value = [(column == v) & tried for v in range(len(naive))]
        likely = [weight[ways].mean() if ways.any() else weight[tried].mean() for ways in with_value]
        shares[member] = naive * likely
    return (shares / shares.sum(axis=1, keepdims=True)).round(12)  # equal ones are equal


def _guessed(choosing: Reals, judging: Reals) -> float:
    """Return how often the likeliest value by one posterior is right by the other, on average over members."""
    chosen = choosing.argmax(axis=1)
    return float(judging[np.arange(len(chosen)), chosen].mean())


def main(names: Sequence[str]) -> None:
    """Print single guarantees, without writing them anywhere."""
    section = Section("The minimality attack")
    report(section, names or list(GUARANTEES), TABLES, SEEDS)
    print(section.text())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
