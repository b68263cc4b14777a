"""What dealing reaches compared with random partitions: worst distance of a class, over k."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import closeknit as ck
import partitions
from closeknit.core.method import ignore_progress
from closeknit.core.table import Partition
from experiments.small_tables import Secret
from pictures import Panel
from trials import SEED

Int32 = NDArray[np.int32]
Groups = Callable[[Int32, int, np.random.Generator], Iterator[Int32]]
BY_VALUE, BY_FREQUENCY = "Stack & Deal", "Stack & Deal by frequency, as printed"
ORDERS = {BY_VALUE: "value", BY_FREQUENCY: "frequency"}
DISTANCE = "worst ordered distance (privacy loss)"


def dealt(secret: Secret, k: int, order: str = "value") -> Partition:
    """Classes as printed: one row after the other to each class in turn."""
    method = ck.StackAndDeal(order=order, dealing="literal", column=secret.name)
    return method.run(secret.table, [ck.KAnonymity(k)], SEED, ignore_progress).partition


def distances(secret: Secret, partition: Partition) -> NDArray[np.float64]:
    """Ordered distance of each class, in the order of values."""
    return np.asarray(ck.TCloseness(secret.name, 1, "ordered").levels(secret.table.count_classes(partition)), dtype=np.float64)


def least_distinct(secret: Secret, partition: Partition) -> int:
    """The fewest different values that a class has."""
    return int(ck.LDiversity(secret.name, 1).levels(secret.table.count_classes(partition)).min())


def over_k(secret: Secret, ks: Sequence[int], order: str = "value") -> dict[float, float]:
    """What dealing reaches."""
    return {k: float(distances(secret, dealt(secret, k, order)).max()) for k in ks}


@dataclass(frozen=True)
class Drawn:
    """Random partitions of one group: for each k what each of them reaches, and the mean size of its classes."""

    measured: dict[float, NDArray[np.float64]]
    sizes: dict[float, NDArray[np.float64]]

    @classmethod
    def of(cls, secret: Secret, group: Groups, ks: Sequence[int], draws: int, seed: int) -> Drawn:
        measured, sizes = {}, {}
        codes, _ = secret.table.secret(secret.name)
        for k in ks:
            rng = np.random.default_rng([31, seed, k])
            drawn = [Partition.of(one) for one in itertools.islice(group(codes, k, rng), draws)]
            if any(int(np.bincount(one.class_of).min()) < k for one in drawn):
                raise AssertionError(f"a random class has fewer than {k} rows")
            measured[k] = np.array([distances(secret, one).max() for one in drawn])
            sizes[k] = np.array([len(codes) / one.count for one in drawn])
        return cls(measured, sizes)

    def lines(self, name: str = "random") -> dict[str, dict[float, float]]:
        """Least, median and largest."""
        of = {"least": np.min, "median": np.median, "largest": np.max}
        return {f"{name}, {what}": {k: float(number(r)) for k, r in self.measured.items()} for what, number in of.items()}

    def below(self, line: dict[float, float]) -> dict[float, int]:
        """How many lie below the line, at each k."""
        return {k: int((found < line[k] - 1e-12).sum()) for k, found in self.measured.items()}

    def sizes_below(self, line: dict[float, float]) -> list[float]:
        """Of those below the line: the mean size of their classes, as a multiple of k."""
        return [float(s / k) for k, found in self.measured.items() for s in self.sizes[k][found < line[k] - 1e-12]]

    def gained(self, line: dict[float, float]) -> float:
        """The most by which one lies below the line, as a share of it."""
        return max(float((line[k] - found.min()) / line[k]) for k, found in self.measured.items())


def free_sizes(codes: Int32, k: int, rng: np.random.Generator) -> Iterator[Int32]:
    """Every partition into classes of at least k is equally likely."""
    while True:
        yield partitions.sizes_free(len(codes), k, rng)


def count_first(codes: Int32, k: int, rng: np.random.Generator) -> Iterator[Int32]:
    """The number of classes is drawn first: sizes differ a lot."""
    while True:
        yield partitions.count_first(len(codes), k, rng)


def within(most: int) -> Groups:
    """Counts of a value differ by so much at most, and of some value by so much."""
    return lambda codes, k, rng: partitions.values_within(codes, k, most, rng)


def panel(title: str, lines: dict[str, dict[float, float]]) -> Panel:
    """Worst distance over k."""
    return Panel("k", DISTANCE, lines, title=title)


def at(ks: Sequence[float]) -> str:
    """At which k."""
    return f"k = {', '.join(f'{k:g}' for k in ks)}" if ks else "no k"
