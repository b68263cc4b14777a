"""Mondrian as a user meets it: guarantees kept by the oracle, vetoes at the limit, ties and gaps, refusals, and Adult."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import closeknit as ck
from closeknit.checks.methods import guarantee_met, persons_stay_together, run_case, run_once
from closeknit.checks.tables import Case
from closeknit.core.columns import Columns
from closeknit.core.method import ignore_progress
from closeknit.core.model import Model
from closeknit.kernels.cutting.cut_offers import offers
from closeknit.search import refine

ALLOW_VACUOUS = True
OPTIONS = list(itertools.product(("relaxed", "strict"), ("median", "best"), ("widest", "try-all")))


# Guarantees, ties, edges ---------------------------------------------------------------------------------------------------


def two_halves(secrets: str, ages: Sequence[int], models: list[Model], **more: Any) -> ck.Release:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"secret": ck.flat()})
    case = Case("halves", Columns.of({"age": list(ages), "secret": list(secrets)}), schema, tuple(models))
    return run_case(ck.Mondrian(**more), case)


@pytest.mark.parametrize("options", OPTIONS, ids="-".join)
def test_a_cut_is_vetoed_exactly_beyond_the_limit(options: tuple[str, str, str]) -> None:
    """Each side is 1/4 from the whole: allowed at 1/4, and not a billionth below, which a float could not distinguish."""
    split, cut, dims = options
    for t, classes in ((Fraction(1, 4), 2), (Fraction(1, 4) - Fraction(1, 10**12), 1)):
        release = two_halves(
            "aaababbb",
            [1, 1, 1, 1, 2, 2, 2, 2],
            [ck.KAnonymity(4), ck.TCloseness("secret", t)],
            split=split,
            cut=cut,
            dims=dims,
        )
        assert release.certificate.classes.count == classes


def test_ties_are_dealt_evenly_by_secret() -> None:
    """Rows equal in every quasi column are not split by their secrets: both sides of a divided tie get some of each."""
    ages = [1] * 2 + [2] * 8 + [3] * 2
    release = two_halves("ab" + "aaaabbbb" + "ab", ages, [ck.KAnonymity(6)], cut="median", dims="widest")
    assert release.certificate.classes.count == 2
    by_class = {number: [] for number in release.partition.tolist()}
    for number, secret in zip(release.partition.tolist(), "abaaaabbbbab", strict=True):
        by_class[number].append(secret)
    assert [Counter(secrets) for secrets in by_class.values()] == [Counter("aaabbb")] * 2


def test_strict_keeps_equal_values_together() -> None:
    rng = np.random.default_rng(3)
    ages = rng.integers(0, 6, 80).tolist()
    release = two_halves("".join(rng.choice(list("abc"), 80)), ages, [ck.KAnonymity(3)], split="strict")
    assert len(set(zip(ages, release.partition.tolist(), strict=True))) == len(set(ages)) == release.certificate.classes.count


@pytest.mark.parametrize("options", OPTIONS, ids="-".join)
@pytest.mark.parametrize(
    ("ages", "classes"),
    [([5] * 12, 1), ([5] * 11 + [6], 1), ([5] * 8 + [6] * 4, 2), ([None] * 12, 1), ([None] * 4 + [7] * 8, 2), ([*range(7)], 1)],
)
def test_ties_and_gaps(options: tuple[str, str, str], ages: list[Any], classes: int) -> None:
    """Nothing to cut, too few to cut, two values, gaps apart from numbers, n < 2k."""
    split, cut, dims = options
    release = two_halves(
        "ab" * 6 if len(ages) == 12 else "ababa" + "ab", ages, [ck.KAnonymity(4)], split=split, cut=cut, dims=dims
    )
    found = release.certificate.classes
    assert found.smallest >= 4
    assert found.count == classes or (split == "relaxed" and len(set(ages)) > 1 and found.count > classes)


@pytest.mark.parametrize("options", OPTIONS, ids="-".join)
def test_every_guarantee_may_veto(options: tuple[str, str, str]) -> None:
    """tMondrian, LMondrian, DMondrian, diversity, all at once, judged by the oracle from the cells."""
    table, schema = ck.datasets.hospital(250), ck.datasets.hospital_schema()
    requested: list[list[Model]] = [
        [ck.TCloseness("disease", 0.2), ck.TCloseness("stay", 0.15)],
        [ck.BetaLikeness("disease", 1.5)],
        [ck.DeltaDisclosure("disease", 1.1)],
        [ck.LDiversity("disease", 3), ck.LDiversity("stay", 2, "entropy")],
    ]
    for models in requested:
        case = Case("hospital", table, schema, tuple(models))
        guarantee_met(ck.Mondrian(*options), case)
        assert run_once(ck.Mondrian(*options), case).certificate.classes.count > 1


@pytest.mark.parametrize("person_rows", ["together", "count-once"])
def test_persons(person_rows: str) -> None:
    rng = np.random.default_rng(8)
    cells = {"age": rng.integers(0, 30, 120), "secret": rng.choice(list("abc"), 120), "who": rng.integers(0, 50, 120)}
    schema = ck.Schema(
        quasi={"age": ck.numeric()},
        sensitive={"secret": ck.flat()},
        person="who",
        person_rows=person_rows,  # type: ignore[arg-type]
    )
    columns = Columns.of({name: [f"p{x}" if name == "who" else x for x in column.tolist()] for name, column in cells.items()})
    case = Case("persons", columns, schema, (ck.KAnonymity(4), ck.LDiversity("secret", 2), ck.TCloseness("secret", 0.4)))
    guarantee_met(ck.Mondrian(), case)
    persons_stay_together(ck.Mondrian(), case)
    assert run_once(ck.Mondrian(), case).certificate.classes.count > 1


@dataclass(frozen=True)
class AtMost(Model):
    """Not monotone: at most so many rows in a class."""

    rows: int
    name = "at_most"
    column = None
    requested = "few rows"

    def describe(self, domain: object) -> str:
        return "few rows"

    def levels(self, classes: Any) -> np.ndarray:
        return classes.sizes.astype(float)

    def holds(self, classes: Any) -> np.ndarray:
        return classes.sizes <= self.rows


def test_the_whole_table_has_to_hold_even_if_smaller_classes_would() -> None:
    table = ck.Schema(quasi={"age": ck.numeric()}).encode(Columns.of({"age": list(range(9))}))
    with pytest.raises(ck.Unsatisfiable, match="whole table"):
        ck.Mondrian().run(table, [AtMost(len(table) - 1)], 0, ignore_progress)
    assert ck.Mondrian().run(table, [AtMost(len(table))], 0, ignore_progress).partition.count > 1


def test_many_small_children_take_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaf after leaf cut off a flat tree would take two thousand rounds; a tree that halves all the time takes ten."""
    rng = np.random.default_rng(4)
    rounds = []
    monkeypatch.setattr(refine, "offers", lambda *given: rounds.append(1) or offers(*given))
    cells = {"town": [f"t{x}" for x in rng.integers(0, 2000, 6000)], "age": rng.integers(0, 5, 6000).tolist()}
    schema = ck.Schema(quasi={"town": ck.flat(), "age": ck.numeric()})
    for options in OPTIONS:
        rounds.clear()
        found = ck.Mondrian(*options).run(schema.encode(Columns.of(cells)), [ck.KAnonymity(2)], 0, ignore_progress)
        assert found.partition.count > 1000 and len(rounds) <= 60


def test_looser_guarantees_lose_less() -> None:
    table, schema = ck.datasets.hospital(600), ck.datasets.hospital_schema()
    losses = [
        ck.anonymize(table, schema, [ck.KAnonymity(4), ck.TCloseness("disease", t)], ck.Mondrian()).loss for t in (0.05, 0.2, 1)
    ]
    assert losses[0] > losses[1] > losses[2]


# Adult -------------------------------------------------------------------------------------------------------------------


QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass")
AIMS = {0.15: 0.64, 0.20: 0.55, 0.25: 0.38, 0.35: 0.15, 0.50: 0.07, None: 0.052}


@pytest.mark.parametrize("method", [ck.Mondrian(), ck.Mondrian("strict", "median", "widest")], ids=["default", "plain"])
def test_adult_loses_no_more_than_a_plain_mondrian_can(data_folder: Path, method: ck.Mondrian) -> None:
    frame = pl.read_csv(data_folder / "adult" / "adult.csv.gz", infer_schema=False).head(32_561)
    frame = frame.filter(~pl.any_horizontal(pl.all() == "?")).select([*QUASI, "occupation"])
    assert frame.height == 30_162

    def tree(name: str) -> ck.Hierarchy:
        return ck.Hierarchy.read_csv(data_folder / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv")

    quasi = {name: ck.numeric() if name == "age" else tree(name) for name in QUASI}
    schema = ck.Schema(quasi=quasi, sensitive={"occupation": tree("occupation")})
    for t, aim in AIMS.items():
        closer = [] if t is None else [ck.TCloseness("occupation", t)]
        assert ck.anonymize(frame, schema, [ck.KAnonymity(6), *closer], method).loss <= aim
