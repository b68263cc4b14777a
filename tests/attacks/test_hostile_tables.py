"""Random tables with what made guarantees hollow once: look-alike and missing values, equal rows, decimals, constant prefixes.

Each release is attacked from its written cells, by code that shares nothing with the models: every class is judged again by
the oracle, a vacuous guarantee must have been refused, no true decimal and no count of raw values may be published, and a
release that is changed anywhere must not pass its audit.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest

import closeknit as ck
from closeknit.checks.naive_cells import rows_of
from closeknit.checks.oracle import oracle_keeps, oracle_vacuous
from closeknit.core.columns import Columns
from closeknit.core.params import spec
from conftest import SOAK, SOAK_SEED

RELEASES = 10_000 if SOAK else 60
ILLS = ["flu", "Flu", "flu ", "\ufb02u", "fl\u200bu", "gout", "HIV", "acne", None]
METHODS = ["mondrian", "microaggregation", "stack_and_deal", "sabre", "burel", "incognito", "knit"]
QUASI = ["age", "dose", "zip", "sex"]


def draw_table(rng: random.Random) -> Columns:
    """A few rows, many of them equal; illnesses depend on the age, so that careless classes disclose them."""
    ills = rng.sample(ILLS, rng.randint(2, len(ILLS)))
    rows = []
    for _ in range(rng.randint(8, 60)):
        age = rng.choice([30, 31, 31, 31, 45, 60])
        ill = ills[age % len(ills)] if rng.random() < 0.5 else rng.choice(ills)
        zip_code = f"ICD-{rng.choice('AB')}{rng.randint(0, 3)}"
        rows.append((age, round(rng.random() * 10, 3), zip_code, rng.choice("fm"), ill))
    return Columns.of(dict(zip([*QUASI, "ill"], map(list, zip(*rows, strict=True)), strict=True)))


def draw_models(rng: random.Random) -> list[Any]:
    of_ill = [
        ck.LDiversity("ill", rng.randint(1, 3)),
        ck.LDiversity("ill", rng.choice([1, 1.5, 2]), "frequency"),
        ck.TCloseness("ill", rng.choice([0.2, 0.4, 0.9])),
        ck.BetaLikeness("ill", rng.choice([0.5, 2, 20])),
        ck.DeltaDisclosure("ill", rng.choice([0.7, 2])),
    ]
    return [ck.KAnonymity(rng.randint(2, 5)), *rng.sample(of_ill, rng.randint(0, 2))]


def draw_release(rng: random.Random) -> tuple[Columns, list[Any], ck.Release] | None:
    """None where the request is refused, as it may be."""
    table, models, name = draw_table(rng), draw_models(rng), rng.choice(METHODS)
    kinds = {"age": ck.numeric(), "dose": ck.numeric(), "zip": ck.prefix(), "sex": ck.flat()}
    quasi = {column: kinds[column] for column in rng.sample(QUASI, rng.randint(1, 3))}
    schema = ck.Schema(quasi=quasi, sensitive={"ill": ck.flat()}, drop=[column for column in QUASI if column not in quasi])
    method = {"knit": {"proposals": 2000}} if name == "knit" else name
    try:
        return table, models, ck.anonymize(table, schema, models, method, seed=2**90 + rng.getrandbits(32))
    except (ck.Unsatisfiable, ck.BadInput):
        return None


def attack(table: Columns, models: list[Any], release: ck.Release, rng: random.Random) -> list[str]:
    """What is wrong with a release."""
    quasi = list(release.certificate.columns["quasi"])
    cells, ills = rows_of(release.columns, quasi), [ill for (ill,) in rows_of(release.columns, ["ill"])]
    classes = defaultdict(list)
    for cell, ill in zip(cells, ills, strict=True):
        classes[cell].append(ill)
    found = []
    for model in models:
        params = {key: value for key, value in spec(model).items() if key not in ("column", "distance")}
        found += [f"{model}: {cell}" for cell, those in classes.items() if not oracle_keeps(model.name, those, ills, **params)]
        if model.column and oracle_vacuous(model.name, ills, models[0].k, **params):
            found.append(f"{model} is vacuous")
    if "dose" in quasi:
        ends = {end.strip("[] ") for (cell,) in rows_of(release.columns, ["dose"]) for end in str(cell).split(",")}
        step = Fraction(str(release.certificate.columns["quasi"]["dose"]["numeric"]["step"]))
        true = ends & {str(dose) for dose in table["dose"].cells()}
        found += [f"dose {end} is printed" for end in true if Fraction(end) % step]
    said = release.certificate.to_json()
    found += [f"the certificate has {key}" for key in ('"nodes"', '"leaves"', str(2**90)[:20]) if key in said]
    audit = ck.audit(release.columns, certificate=release.certificate)
    found += [f"its own audit says {audit.status}"] if audit.status != "met" else []
    return found + [f"unnoticed: {what}" for what, changed in tampered(release, rng) if ck.audit(*changed[:1], **changed[1]).ok]


def tampered(release: ck.Release, rng: random.Random) -> list[tuple[str, tuple[Columns, dict[str, Any]]]]:
    """The release with two rows exchanged, with another sensitive value, and without one of its notes."""
    certificate, rows = release.certificate, release.columns.rows
    cells = {name: column.cells() for name, column in release.columns.items()}
    order = list(range(rows))
    a, b = rng.sample(order, 2)
    order[a], order[b] = b, a
    changes = []
    if any(column[a] != column[b] for column in cells.values()):
        changes.append(("two rows exchanged", release.columns.take(order)))
    other = [*cells["ill"]]
    other[a] = "plague"
    changes.append(("another value", Columns.of({**cells, "ill": other})))
    fewer = json.loads(certificate.to_json())
    fewer["notes"] = fewer["notes"][1:]
    without = ck.Certificate.from_json(json.dumps(fewer))
    found = [(what, (columns, {"certificate": certificate})) for what, columns in changes]
    return [*found, ("a note removed", (release.columns, {"certificate": without}))]


@pytest.mark.grows
@pytest.mark.parametrize("part", range(4))
@pytest.mark.filterwarnings("ignore")
def test_no_release_of_a_hostile_table_is_hollow(part: int) -> None:
    rng, made, tries = random.Random(f"{SOAK_SEED if SOAK else 1} {part}"), 0, 0
    while made < RELEASES // 4:
        tries += 1
        if (drawn := draw_release(rng)) is not None:
            made += 1
            faults = attack(*drawn, rng)
            assert faults == [], (tries, drawn[1], faults)
    assert made >= tries // 10, "most requests were refused, so little was tried"
