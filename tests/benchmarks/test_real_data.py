"""Public tables keep their guarantees, counted again from the saved files with dictionaries and nothing of the package's own.

The tables are not part of the project; where they are absent these tests skip, and generated tables do the same work elsewhere.
"""

from __future__ import annotations

import csv
import gzip
import itertools
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import closeknit as ck
from closeknit.checks.naive_cells import ground
from closeknit.checks.oracle import oracle_holds, oracle_level

ADULT_QUASI = ["age", "workclass", "marital-status", "race", "sex", "native-country", "salary-class"]
Row = tuple[str, ...]


def saved_rows(release: ck.Release, folder: Path) -> list[dict[str, str]]:
    """What a recipient reads in the saved file, by Python's own reader."""
    release.save(folder, report=False)
    with open(folder / "release.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def classes_of(rows: list[dict[str, str]], quasi: list[str], secret: str) -> dict[Row, list[str]]:
    """Secrets of the rows whose written quasi cells are equal."""
    classes: dict[Row, list[str]] = defaultdict(list)
    for row in rows:
        classes[tuple(row[name] for name in quasi)].append(row[secret])
    return classes


def leaves_by_label(file: Path) -> dict[str, set[str]]:
    """Leaves under every label of a hierarchy file."""
    leaves: dict[str, set[str]] = defaultdict(set)
    for line in file.read_text(encoding="utf-8").splitlines():
        leaf, *above = line.split(";")
        for label in (leaf, *above):
            leaves[label].add(leaf)
    return leaves


@pytest.fixture(scope="module")
def adult(data_folder: Path) -> pl.DataFrame:
    frame = pl.read_csv(data_folder / "adult" / "adult.csv.gz", infer_schema=False)
    frame = frame.filter(~pl.any_horizontal(pl.all() == "?")).select([*ADULT_QUASI, "occupation"])
    assert frame.height == 45_222
    return frame


@pytest.fixture(scope="module")
def adult_schema(data_folder: Path) -> ck.Schema:
    def tree(name: str) -> ck.Hierarchy:
        return ck.Hierarchy.read_csv(data_folder / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv")

    quasi = {name: ck.numeric() if name == "age" else tree(name) for name in ADULT_QUASI}
    return ck.Schema(quasi=quasi, sensitive={"occupation": tree("occupation")})


def adult_loss(rows: list[dict[str, str]], data_folder: Path) -> float:
    """General Loss Metric, variant A, from the written cells and the hierarchy files."""
    ages = [[int(end) for end in row["age"].strip("[]").split(", ")] for row in rows]
    lowest, highest = min(age[0] for age in ages), max(age[-1] for age in ages)
    total = Fraction(sum(age[-1] - age[0] for age in ages), highest - lowest)
    for name in ADULT_QUASI[1:]:
        leaves = leaves_by_label(data_folder / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv")
        under = {label: Fraction(len(below) if len(below) > 1 else 0, len(leaves["*"])) for label, below in leaves.items()}
        total += sum(count * under[label] for label, count in Counter(row[name] for row in rows).items())
    return float(total / len(rows) / len(ADULT_QUASI))


@pytest.mark.parametrize("k", [6, 10, 20])
def test_adult_counted_again(k: int, adult: pl.DataFrame, adult_schema: ck.Schema, data_folder: Path, tmp_path: Path) -> None:
    losses = {}
    for dealing in ("literal", "aware"):
        release = ck.anonymize(adult, adult_schema, [ck.KAnonymity(k)], ck.StackAndDeal(dealing=dealing))
        rows = saved_rows(release, tmp_path / dealing)
        classes = classes_of(rows, ADULT_QUASI, "occupation")
        sizes = [len(members) for members in classes.values()]
        made = release.certificate
        assert min(sizes) >= k
        assert (len(sizes), min(sizes), max(sizes)) == (made.classes.count, made.classes.smallest, made.classes.largest)
        assert made.classes.discernibility == sum(size * size for size in sizes)
        assert Counter(row["occupation"] for row in rows) == Counter(adult["occupation"].to_list())
        losses[dealing] = adult_loss(rows, data_folder)
        assert release.loss == pytest.approx(losses[dealing], abs=1e-12)
        assert_dealt_evenly(release, adult["occupation"].to_list(), k)
    assert losses["aware"] < 0.75 * losses["literal"]


def assert_dealt_evenly(release: ck.Release, secrets: list[str], k: int) -> None:
    """Invariants P1 and P2: sizes of two classes, and counts of one value in two classes, differ by at most one."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for one, secret in zip(release.partition.tolist(), secrets, strict=True):
        counts[one][secret] += 1
    sizes = {counter.total() for counter in counts.values()}
    assert min(sizes) >= k
    assert max(sizes) - min(sizes) <= 1
    for value in set(secrets):
        seen = {counter[value] for counter in counts.values()}
        assert max(seen) - min(seen) <= 1, value


def test_adult_cells_hold_their_rows(adult: pl.DataFrame, adult_schema: ck.Schema, data_folder: Path, tmp_path: Path) -> None:
    """Every written class has exactly the rows of one or more dealt classes, and its cells hold their values."""
    part = adult.head(3_000)
    release = ck.anonymize(part, adult_schema, [ck.KAnonymity(6)])
    written = classes_of(saved_rows(release, tmp_path / "out"), ADULT_QUASI, "occupation")
    trees = {n: leaves_by_label(data_folder / "adult" / "hierarchies" / f"adult_hierarchy_{n}.csv") for n in ADULT_QUASI[1:]}
    dealt: dict[int, list[dict[str, str]]] = defaultdict(list)
    for one, row in zip(release.partition.tolist(), part.iter_rows(named=True), strict=True):
        dealt[one].append(row)
    claimed: dict[Row, list[str]] = defaultdict(list)
    for members in dealt.values():
        cells = tuple(_cell(members, name, trees) for name in ADULT_QUASI)
        claimed[cells] += [row["occupation"] for row in members]
    assert {cells: Counter(members) for cells, members in claimed.items()} == {
        cells: Counter(members) for cells, members in written.items()
    }


def _cell(members: list[dict[str, str]], name: str, trees: dict[str, dict[str, set[str]]]) -> str:
    """The tightest range, or the label with the fewest leaves that holds all values."""
    values = {row[name] for row in members}
    if name == "age":
        ages = sorted(int(value) for value in values)
        return str(ages[0]) if len(ages) == 1 else f"[{ages[0]}, {ages[-1]}]"
    return min((label for label, leaves in trees[name].items() if values <= leaves), key=lambda label: len(trees[name][label]))


def assert_guarantees(release: ck.Release, schema: ck.Schema, models: list[ck.TCloseness], folder: Path) -> None:
    """Every guarantee by its naive definition on the saved cells, and its certified level as the worst of all classes."""
    rows = saved_rows(release, folder)
    assert release.certificate.ok
    for model, guarantee in zip(models, release.certificate.guarantees, strict=True):
        name = next(iter(guarantee.model))
        secret = model.column or next(iter(schema.sensitive))
        reference = [row[secret] for row in rows]
        params = {key: value for key, value in guarantee.model[name].items() if key not in ("column", "distance")}
        params["ground"] = ground(schema.sensitive[secret], getattr(model, "distance", None), reference)
        classes = classes_of(rows, list(schema.quasi), secret).values()
        assert all(oracle_holds(name, members, reference, **params) for members in classes), guarantee.text
        levels = [float(oracle_level(name, members, reference, **params)) for members in classes]
        worst = min(levels) if name in ("k_anonymity", "l_diversity") else max(levels)
        assert guarantee.measured == pytest.approx(worst, abs=1e-9), guarantee.text
    audit = ck.audit(folder / "release.csv", certificate=folder / "certificate.json")
    assert audit.ok, audit.findings


def test_adult_with_closeness(adult: pl.DataFrame, adult_schema: ck.Schema, tmp_path: Path) -> None:
    models = [ck.KAnonymity(6), ck.TCloseness("occupation", 0.3), ck.LDiversity("occupation", 3)]
    part = adult.sample(4_000, seed=3)
    assert_guarantees(ck.anonymize(part, adult_schema, models), adult_schema, models, tmp_path / "out")


SMALL = {
    "heart": (
        ["age", "sex", "thalach", "oldpeak"],
        "chol",
        [ck.KAnonymity(5), ck.TCloseness("chol", 0.15), ck.LDiversity("chol", 4, kind="entropy")],
    ),
    "transfusion": (
        ["Recency (months)", "Time (months)"],
        "Frequency (times)",
        [ck.KAnonymity(6), ck.TCloseness("Frequency (times)", 0.2, distance="equal"), ck.BetaLikeness("Frequency (times)", 12)],
    ),
    "haberman": (
        ["age", "year_of_operation", "positive_axillary_nodes"],
        "survival_status",
        [ck.KAnonymity(4), ck.BetaLikeness("survival_status", 1, kind="basic"), ck.DeltaDisclosure("survival_status", 0.9)],
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_tables_with_several_models(name: str, data_folder: Path, tmp_path: Path) -> None:
    quasi, secret, models = SMALL[name]
    frame = pl.read_csv(data_folder / name / f"{name}.csv").select([*quasi, secret])
    kinds = {column: ck.flat() if column == "sex" else ck.numeric() for column in quasi}
    schema = ck.Schema(quasi=kinds, sensitive={secret: ck.flat() if name == "haberman" else ck.numeric()})
    release = ck.anonymize(frame, schema, models)
    assert release.loss < 1
    assert Counter(release.frame[secret].to_list()) == Counter(frame[secret].to_list())
    assert_guarantees(release, schema, models, tmp_path / "out")


def test_suggested_kinds(data_folder: Path) -> None:
    numbers = {
        "adult/adult.csv.gz": ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"],
        "heart/heart.csv": ["age", "trestbps", "chol", "thalach", "oldpeak"],
        "haberman/haberman.csv": ["age", "year_of_operation", "positive_axillary_nodes"],
    }
    for file, expected in numbers.items():
        suggestion = ck.suggest(data_folder / file)
        assert [name for name, guess in suggestion.reasons.items() if guess.kind == "numeric"] == expected
        assert {guess.kind for guess in suggestion.reasons.values()} == {"numeric", "flat"}
        assert not suggestion.schema.plain
    assert ck.suggest(data_folder / "adult" / "adult.csv.gz").schema.missing == ("?",)


def test_first_rows_of_sal(data_folder: Path, tmp_path: Path) -> None:
    census = data_folder / "census"
    with gzip.open(census / "sal500k.csv.gz", "rt", encoding="utf-8") as packed:
        (tmp_path / "sal.csv").write_text("".join(itertools.islice(packed, 20_001)), encoding="utf-8")
    with open(census / "domains.csv", encoding="utf-8") as file:
        bounds = {line["attribute"]: (int(line["first_code"]), int(line["last_code"])) for line in csv.DictReader(file)}
    trees = {name: census / "hierarchies" / f"census_hierarchy_{name}.csv" for name in bounds}
    quasi = {
        name: ck.Hierarchy.read_csv(trees[name]) if trees[name].exists() else ck.numeric(*bounds[name])
        for name in bounds
        if name != "salary-class"
    }
    schema = ck.Schema(quasi=quasi, sensitive={"salary-class": ck.numeric()})
    models = [ck.KAnonymity(6), ck.TCloseness("salary-class", 0.2)]
    release = ck.anonymize(tmp_path / "sal.csv", schema, models)
    rows = saved_rows(release, tmp_path / "out")
    assert len(rows) == 20_000
    classes = classes_of(rows, list(quasi), "salary-class")
    assert min(map(len, classes.values())) >= 6
    measured = max(ordered_distances(list(classes.values())))
    assert measured <= Fraction(1, 5)
    assert Fraction(release.certificate.guarantees[1].exact or "") == measured
    literal = ck.anonymize(tmp_path / "sal.csv", schema, models, ck.StackAndDeal(dealing="literal"))
    assert release.loss < literal.loss


def ordered_distances(classes: list[list[str]]) -> list[Fraction]:
    """Distance of every class from all rows: numbers by the rank of the values that are there."""
    everything = Counter(value for members in classes for value in members)
    values = sorted(everything, key=int)
    distances = []
    for members in classes:
        counts, inside, outside, moved = Counter(members), 0, 0, 0
        for value in values[:-1]:
            inside, outside = inside + counts[value], outside + everything[value]
            moved += abs(inside * everything.total() - outside * len(members))
        distances.append(Fraction(moved, len(members) * everything.total() * (len(values) - 1)))
    return distances
