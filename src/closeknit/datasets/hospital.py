"""A generated hospital table without real persons, with correlations like those of a real one.

The area is correlated with age and work; age, sex, work and season with the disease; disease and age with the length of stay;
stay and disease with the charge. Generalizing the quasi-identifiers therefore loses information, and knowing them would
disclose something about the sensitive attributes.
"""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.dates import date
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kinds import flat, numeric, prefix
from closeknit.core.params import whole
from closeknit.core.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Disease(NamedTuple):
    """Frequency, typical age and its spread, sex, season and work, length of stay and cost of a disease."""

    name: str
    group: str
    common: float
    age: float
    spread: float
    women: float  # log odds: above 0 more women, below 0 more men
    winter: float  # log odds between midwinter and the yearly mean
    work: str  # the group of jobs that has it more often
    days: float
    cost: float  # without the daily rate


DISEASES = (
    Disease("influenza", "respiratory", 1.6, 45, 45, 0.1, 1.6, "service", 4, 300),
    Disease("pneumonia", "respiratory", 1.8, 72, 25, -0.1, 0.9, "none", 9, 900),
    Disease("asthma", "respiratory", 1.0, 15, 20, 0.1, -0.3, "craft", 3, 500),
    Disease("bronchitis", "respiratory", 1.3, 60, 30, 0.0, 0.8, "outdoor", 5, 400),
    Disease("hypertension", "circulatory", 1.7, 62, 18, 0.0, 0.1, "office", 3, 600),
    Disease("heart failure", "circulatory", 1.9, 78, 14, -0.1, 0.3, "none", 10, 2200),
    Disease("heart attack", "circulatory", 1.3, 66, 15, -0.6, 0.3, "office", 7, 9500),
    Disease("stroke", "circulatory", 1.2, 74, 15, 0.0, 0.1, "none", 13, 5200),
    Disease("gastritis", "digestive", 1.4, 45, 25, 0.1, 0.0, "service", 2, 450),
    Disease("stomach ulcer", "digestive", 0.8, 55, 20, -0.3, 0.1, "office", 5, 2400),
    Disease("appendicitis", "digestive", 1.3, 22, 14, -0.1, -0.1, "none", 3, 3600),
    Disease("gallstones", "digestive", 1.1, 52, 17, 0.6, 0.0, "office", 4, 4100),
    Disease("fracture", "injury", 2.0, 40, 45, -0.2, 0.3, "outdoor", 6, 3900),
    Disease("concussion", "injury", 1.2, 18, 20, -0.4, -0.2, "craft", 2, 700),
    Disease("burn", "injury", 0.5, 30, 22, -0.4, 0.2, "craft", 8, 3000),
    Disease("back strain", "injury", 1.3, 44, 14, 0.0, 0.0, "craft", 3, 500),
    Disease("breast cancer", "cancer", 0.7, 61, 14, 2.5, 0.0, "none", 6, 8800),
    Disease("lung cancer", "cancer", 0.8, 68, 11, -0.4, 0.0, "craft", 10, 9800),
    Disease("colon cancer", "cancer", 0.8, 70, 13, -0.1, 0.0, "none", 9, 9300),
    Disease("prostate cancer", "cancer", 0.7, 71, 11, -1.0, 0.0, "none", 5, 7900),
)


# Jobs of working people: share inside their group, and log odds towards women.
JOBS = {
    "office": {
        "accountant": (1.0, 0.2),
        "clerk": (1.8, 0.6),
        "engineer": (1.0, -0.9),
        "lawyer": (0.5, 0.0),
        "manager": (1.0, -0.3),
    },
    "craft": {"carpenter": (0.8, -1.8), "electrician": (1.0, -1.8), "mechanic": (1.1, -1.8), "welder": (0.7, -2.0)},
    "service": {
        "cook": (1.0, 0.0),
        "driver": (1.1, -1.2),
        "nurse": (1.3, 1.5),
        "shop assistant": (1.6, 0.8),
        "teacher": (1.2, 0.9),
    },
    "outdoor": {"farmer": (1.2, -0.6), "fisher": (0.4, -1.8), "gardener": (0.8, -0.1)},
    "none": {
        "child": (0.0, 0.0),
        "homemaker": (1.0, 1.6),
        "job seeker": (0.9, -0.1),
        "retired": (0.0, 0.0),
        "student": (0.0, 0.0),
    },
}

# Areas: first digits of the zip code, share of the patients, mean age, and how common each group of jobs is.
AREAS = (
    ("021", 0.24, 46.0, {"office": 2.4, "craft": 0.8, "service": 1.6, "outdoor": 0.1, "none": 0.7}),
    ("022", 0.15, 34.0, {"office": 1.6, "craft": 0.5, "service": 1.4, "outdoor": 0.2, "none": 1.0}),
    ("024", 0.20, 50.0, {"office": 1.3, "craft": 1.2, "service": 1.2, "outdoor": 0.3, "none": 0.8}),
    ("026", 0.13, 66.0, {"office": 0.8, "craft": 0.7, "service": 1.4, "outdoor": 0.8, "none": 0.9}),
    ("015", 0.16, 48.0, {"office": 0.5, "craft": 2.3, "service": 1.0, "outdoor": 0.5, "none": 1.1}),
    ("013", 0.12, 54.0, {"office": 0.3, "craft": 0.9, "service": 0.8, "outdoor": 2.4, "none": 0.7}),
)
ZIPS_PER_AREA = 12

WOMEN, MEN, FAMILIES = map(
    str.split,
    (
        "Ada Alice Amina Anna Bella Carla Chloé Clara Diana Elena Emma Eva Fatima Grace Hanna Ida Ines Jane Julia Kim "
        "Laura Lea Lina Lucy Maria Mei Mia Nadia Nina Nora Olga Paula Rosa Ruth Sara Sofia Tara Vera Yuki Zoë",
        "Adam Ali Amir Anton Ben Bruno Carl Chen Daniel David Emil Erik Felix Finn Frank Georg Hugo Ian Ivan Jack Jan "
        "José João Karl Kofi Leo Luca Marc Max Milan Noah Omar Otto Paul Peter Ravi Sam Theo Tom Victor",
        "Adams Ahmed Allen Baker Bauer Bell Berg Brown Carter Chan Clark Costa Cruz Davis Diaz Evans Fischer Ford "
        "Garcia Gray Green Gupta Hall Hansen Hill Hughes Ito Jansen Johnson Jones Kaya Keller King Klein Kovács Lee "
        "Lewis Lopez Martin Meyer Miller Moore Moreau Müller Nguyen Novak O'Brien Okafor Olsen Park Patel Perez "
        "Phillips Price Rossi Ryan Santos Sato Schmidt Scott Silva Singh Smith Stone Suzuki Tanaka Taylor Turner Walker "
        "Wang Weber White Wilson Wong Wood Wright Yilmaz Young Zhang Ødegaard",
    ),
)

FIRST_DAY, DAYS = np.datetime64("2023-01-01"), 731


def hospital(rows: int = 10_000, seed: int = 7) -> Columns:
    """A table of admissions: name, age, sex, zip, job, admission, disease, stay (days), charge.

    Args:
        rows: number of rows.
        seed: seed of the generator; equal seeds give equal tables.

    >>> table = hospital(rows=100)
    >>> table.rows, list(table)
    (100, ['name', 'age', 'sex', 'zip', 'job', 'admission', 'disease', 'stay', 'charge'])
    """
    rows = whole("rows", rows, least=1)
    rng = np.random.default_rng(whole("seed", seed, least=0))
    area = rng.choice(len(AREAS), rows, p=[share for _, share, _, _ in AREAS])
    women = rng.random(rows) < 0.53
    age = _ages(rng, area, women)
    job, work = _jobs(rng, area, age, women)
    day = _days(rng, rows)
    disease = _diseases(rng, age, women, work, day)
    stay = _stays(rng, disease, age)
    columns = {
        "name": _names(rng, women),
        "age": Column.of(age),
        "sex": _texts(["female", "male"], np.where(women, 0, 1)),
        "zip": _zips(rng, area),
        "job": _texts([name for jobs in JOBS.values() for name in jobs], job),
        "admission": Column.of(FIRST_DAY + day),
        "disease": _texts([one.name for one in DISEASES], disease),
        "stay": Column.of(stay),
        "charge": Column.of(_charges(rng, disease, stay)),
    }
    return Columns(columns, rows)


def hospital_schema() -> Schema:
    """Role and kind of each column of the hospital table.

    >>> hospital_schema().sensitive["disease"].tree.size
    20
    """
    diseases: dict[str, list[str]] = {}
    for one in DISEASES:
        diseases.setdefault(one.group, []).append(one.name)
    jobs = {("not employed" if group == "none" else group): list(names) for group, names in JOBS.items()}
    return Schema(
        identifier=["name"],
        quasi={
            "age": numeric(0, 100),
            "sex": flat(),
            "zip": prefix(5),
            "job": Hierarchy.from_nested(jobs),
            "admission": date(),
        },
        sensitive={"disease": Hierarchy.from_nested(diseases), "stay": numeric(), "charge": numeric()},
    )


def hospital_recipe(path: str | PathLike[str]) -> dict[str, Any]:
    """A recipe for the hospital table as plain mappings, with k = 6 and t = 0.2 for the disease.

    Args:
        path: the file with the table.

    >>> hospital_recipe("patients.csv")["models"]
    [{'k_anonymity': {'k': 6}}, {'t_closeness': {'column': 'disease', 't': 0.2}}]
    """
    return {
        "data": fspath(path),
        "schema": hospital_schema().forms(),
        "models": [{"k_anonymity": {"k": 6}}, {"t_closeness": {"column": "disease", "t": 0.2}}],
        "method": "stack_and_deal",
    }


def _ages(rng: np.random.Generator, area: Ints, women: NDArray[np.bool_]) -> Ints:
    mean = np.array([age for _, _, age, _ in AREAS])[area] + np.where(women, 2.0, 0.0)
    age = rng.normal(mean, 21.0)
    child = rng.random(len(area)) < 0.10
    return np.clip(np.where(child, rng.uniform(0, 18, len(area)), age), 0, 99).astype(np.int64)


def _jobs(rng: np.random.Generator, area: Ints, age: Ints, women: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Job of each patient, and the group it belongs to."""
    groups, names = list(JOBS), [name for jobs in JOBS.values() for name in jobs]
    group_of = np.array([g for g, jobs in enumerate(JOBS.values()) for _ in jobs])
    shares, leaning = np.array([pair for jobs in JOBS.values() for pair in jobs.values()]).T
    whole_group = np.bincount(group_of, shares)
    by_area = np.array([[mix[group] for group in groups] for _, _, _, mix in AREAS])
    odds = _log(by_area[:, group_of] * shares / whole_group[group_of])[area] + np.where(women, 0.5, -0.5)[:, None] * leaning
    job = _draw_indices(rng, odds)
    chance = rng.random(len(age))
    job[(age >= 18) & (age < 26) & (chance < 0.45)] = names.index("student")
    job[(age >= 6) & (age < 18)] = names.index("student")
    job[age < 6] = names.index("child")
    job[(age > 66) | ((age > 60) & (chance < 0.35))] = names.index("retired")
    return job, group_of[job]


def _days(rng: np.random.Generator, rows: int) -> Ints:
    """Days since the first one; fewer admissions on weekends."""
    weekday = (np.arange(DAYS) + 6) % 7  # the first day is a Sunday
    weight = np.where(weekday >= 5, 0.6, 1.0)
    return rng.choice(DAYS, rows, p=weight / weight.sum())


def _diseases(rng: np.random.Generator, age: Ints, women: NDArray[np.bool_], work: Ints, day: Ints) -> Ints:
    _, _, common, at, spread, leaning, winter, _, _, _ = (np.array(column) for column in zip(*DISEASES, strict=True))
    groups = list(JOBS)
    risky = np.array([[group != "none" and group == one.work for one in DISEASES] for group in groups])
    season = np.cos(2 * np.pi * (day - 15) / 365.25)
    odds = _log(common / spread) - ((age[:, None] - at) / spread) ** 2 / 2
    odds += np.where(women, 0.5, -0.5)[:, None] * leaning + season[:, None] * winter + 0.7 * risky[work]
    odds[women, [one.name for one in DISEASES].index("prostate cancer")] = -np.inf
    return _draw_indices(rng, odds)


def _stays(rng: np.random.Generator, disease: Ints, age: Ints) -> Ints:
    days = np.array([one.days for one in DISEASES])[disease] * (0.75 + age / 130)
    return np.clip(np.rint(rng.gamma(3.0, days / 3.0)), 1, 60).astype(np.int64)


def _charges(rng: np.random.Generator, disease: Ints, stay: Ints) -> Ints:
    cost = np.array([one.cost for one in DISEASES])[disease]
    daily = 380 + 0.03 * cost
    return (np.rint((cost + daily * stay) * rng.lognormal(0.0, 0.18, len(stay)) / 10) * 10).astype(np.int64)


def _names(rng: np.random.Generator, women: NDArray[np.bool_]) -> Column:
    first = np.where(women, rng.integers(len(WOMEN), size=len(women)), len(WOMEN) + rng.integers(len(MEN), size=len(women)))
    pair = first * len(FAMILIES) + rng.integers(len(FAMILIES), size=len(women))
    given, seen = WOMEN + MEN, [0] * (len(WOMEN + MEN) * len(FAMILIES))
    texts = []
    for one in pair.tolist():  # an identifier must not repeat: namesakes get initials
        texts.append(f"{given[one // len(FAMILIES)]} {_initials(seen[one])}{FAMILIES[one % len(FAMILIES)]}")
        seen[one] += 1
    return Column(np.array(texts, dtype=object), np.arange(len(texts), dtype=np.int32))


def _initials(number: int) -> str:
    """No initial for number 0, then A., B., ..., Z., A. A., ..."""
    text = ""
    while number:
        number, letter = divmod(number - 1, 26)
        text = f"{chr(ord('A') + letter)}. {text}"
    return text


def _zips(rng: np.random.Generator, area: Ints) -> Column:
    """A few zip codes of an area have most of its people."""
    share = 1.0 / np.arange(2, ZIPS_PER_AREA + 2)
    place = rng.choice(ZIPS_PER_AREA, len(area), p=share / share.sum())
    texts = [f"{digits}{(7 * i + 3) % 100:02}" for digits, _, _, _ in AREAS for i in range(ZIPS_PER_AREA)]
    return _texts(texts, area * ZIPS_PER_AREA + place)


def _draw_indices(rng: np.random.Generator, log_weights: Floats) -> Ints:
    """One index per row, drawn by its weights: the largest of the log weights after adding Gumbel noise to each."""
    return np.argmax(log_weights + rng.gumbel(size=log_weights.shape), axis=1)


def _log(weights: Floats) -> Floats:
    return np.log(np.maximum(weights, 1e-300))


def _texts(texts: list[str], which: Ints) -> Column:
    """Only the texts that occur, in their order."""
    return Column(np.array(texts, dtype=object), which.astype(np.int32)).drop_unused()
