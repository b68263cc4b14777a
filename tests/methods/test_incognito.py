"""Incognito: the same vector as an exhaustive search made of dictionaries and rationals; pruning, suppressing, persons."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.levels import top_level
from closeknit.core.method import ignore_progress
from closeknit.core.model import Model
from closeknit.core.table import Outcome, Table
from closeknit.forms import generalized
from closeknit.forms.generalized import Generalized
from closeknit.methods.incognito import Incognito
from conftest import examples
from exhaustive import AXES, SECRETS, Axis, Narrow, Row, encoded, exhaustive, holds

ALLOW_VACUOUS = True
SEED = 2**100 + 1
K = ck.KAnonymity
GUARANTEES: list[list[Any]] = [
    [K(2)],
    [K(3), ck.TCloseness("disease", 0.4)],
    [ck.TCloseness("wage", 0.3), ck.TCloseness("disease", 0.5, "equal")],
    [K(2), ck.LDiversity("blood", 2)],
    [ck.LDiversity("disease", 1.7, "entropy")],
    [K(2), ck.LDiversity("disease", 2, "recursive", 2)],
    [ck.BetaLikeness("disease", 1.5), K(2)],
    [ck.DeltaDisclosure("blood", 1.1)],
    [K(2), Narrow(5)],
    [Narrow(6), ck.TCloseness("wage", 0.5)],
]


@st.composite
def requests(draw: st.DrawFn, most_rows: int) -> tuple[Any, ...]:
    names = draw(st.lists(st.sampled_from(list(AXES)), min_size=1, max_size=3, unique=True))
    gaps = st.sampled_from([None]) if draw(st.booleans()) else st.nothing()
    cells = {name: st.one_of(st.sampled_from(AXES[name].values), gaps) for name in names}
    secret = {name: st.sampled_from(values) for name, (_, values) in SECRETS.items()}
    rows = draw(st.lists(st.fixed_dictionaries({**cells, **secret}), min_size=1, max_size=most_rows))
    weights = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=len(names), max_size=len(names)))
    room = draw(st.sampled_from([0, 0, 1, 2, len(rows) // 2, len(rows)]))
    return rows, {name: AXES[name] for name in names}, draw(st.sampled_from(GUARANTEES)), room, weights, list(SECRETS)


def searched(table: Table, models: Sequence[Model], method: Incognito | None = None) -> Outcome | None:
    try:
        return (method or Incognito()).run(table, models, 0, ignore_progress)
    except ck.Unsatisfiable:
        return None


def agree(
    rows: list[Row], axes: dict[str, Axis], models: Sequence[Model], room: int, weights: list[int], secrets: Sequence[str]
) -> None:
    table = encoded(rows, axes, weights, secrets, room)
    outcome, found = searched(table, models), exhaustive(rows, axes, models, room, weights)
    if found is None:
        assert outcome is None
        return
    assert outcome is not None and isinstance(outcome.form, Generalized) and outcome.form.levels is not None
    tops = [top_level(domain) for domain in table.quasi_domains]  # `*` is the last level: its number would disclose the tree
    written = zip(outcome.form.levels.values(), tops, strict=True)
    assert tuple(top if level == "*" else level for level, top in written) == found.vector
    assert all(level != top for level, top in zip(outcome.form.levels.values(), tops, strict=True))
    assert {int(row) for row in table.rows[outcome.partition.class_of < 0]} == found.suppressed


@settings(max_examples=examples(250))
@given(requests(most_rows=14))
def test_it_finds_what_an_exhaustive_search_finds(request: tuple[Any, ...]) -> None:
    agree(*request)


@pytest.mark.soak
@settings(max_examples=1000)
@given(requests(most_rows=40))
def test_it_finds_what_an_exhaustive_search_finds_in_larger_tables(request: tuple[Any, ...]) -> None:
    agree(*request)


@pytest.mark.parametrize("room", [0, 7])
@pytest.mark.parametrize("guarantees", GUARANTEES, ids=str)
def test_lattices_of_four_columns_are_pruned_and_lose_nothing(guarantees: list[Any], room: int) -> None:
    rng = np.random.default_rng([len(str(guarantees)), room])
    axes = {name: AXES[name] for name in ("job", "zip", "weight", "sex")}
    drawn = {name: axis.values for name, axis in axes.items()} | {name: values for name, (_, values) in SECRETS.items()}
    rows = [{name: values[rng.integers(len(values))] for name, values in drawn.items()} for _ in range(60)]
    agree(rows, axes, guarantees, room, [1, 2, 1, 1], list(SECRETS))


# Pruning and counting -----------------------------------------------------------------------------------------------------


class UnprunedTCloseness(ck.TCloseness):
    """The same guarantee that does not say that it is monotone."""

    monotone = False


def hospital(rows: int) -> Table:
    return ck.datasets.hospital_schema().encode(ck.datasets.hospital(rows))


def counts_in(outcome: Outcome) -> tuple[int, int, int]:
    """Vectors of the lattice, judged over all columns, looked at over some."""
    *_, size, judged, looked = re.findall(r"([\d,]+) (?:vectors|judged|on some)", outcome.notes[0])
    return tuple(int(count.replace(",", "")) for count in (size, judged, looked))  # type: ignore[return-value]


def test_a_model_that_is_not_monotone_is_asked_of_every_vector_and_the_answer_is_the_same() -> None:
    table = hospital(400)
    size, judged, looked = counts_in(found(table, [ck.TCloseness("disease", 0.2)]))
    size_too, judged_too, looked_too = counts_in(found(table, [UnprunedTCloseness("disease", 0.2)]))
    assert size == size_too and looked_too == 0
    assert judged + looked < judged_too <= size
    levels = [found(table, [kind("disease", 0.2)]).form for kind in (ck.TCloseness, UnprunedTCloseness)]
    assert levels[0] == levels[1]


def found(table: Table, models: Sequence[Model]) -> Outcome:
    outcome = searched(table, models)
    assert outcome is not None
    return outcome


def test_rows_that_repeat_cost_no_further_vector() -> None:
    table = hospital(200)
    many = table.take(np.repeat(np.arange(len(table)), 50))
    once, often = found(table, [K(2)]), found(many, [K(100)])
    assert once.form == often.form and once.notes == often.notes
    assert often.partition.class_of[::50].tolist() == once.partition.class_of.tolist()


def test_levels_that_part_no_rows_are_left_out_of_the_lattice() -> None:
    axes = {"zip": AXES["zip"], "sex": AXES["sex"]}
    rows = [{"zip": "470", "sex": sex, "blood": "A"} for sex in "fmfm"]
    outcome = found(encoded(rows, axes, [1, 1], ["blood"]), [K(2)])
    assert counts_in(outcome)[0] == 2  # zip is the same everywhere, sex or `*`
    assert outcome.form == generalized(levels={"zip": 0, "sex": 0})


def test_missing_cells_stay_empty_until_the_star() -> None:
    axes = {"job": AXES["job"], "age": AXES["age"]}
    rows = [{"job": job, "age": age, "blood": "A"} for job in ("clerk", None) for age in (21, 25)]
    table = encoded(rows, axes, [1, 1], ["blood"])
    outcome = found(table, [K(2)])
    assert outcome.form == generalized(levels={"job": 0, "age": "*"})
    cells = outcome.form.write(table, outcome.partition).columns
    assert Counter(zip(cells["job"].cells(), cells["age"].cells(), strict=True)) == {("clerk", "*"): 2, (None, "*"): 2}


def test_a_recipient_reads_the_release_back() -> None:
    release = ck.anonymize(
        ck.datasets.hospital(300), ck.datasets.hospital_schema(), [K(4), ck.TCloseness("disease", 0.25)], Incognito()
    )
    text = json.loads(release.certificate.to_json())
    assert set(text["form"]["generalized"]["levels"]) == set(ck.datasets.hospital_schema().quasi)
    audit = ck.audit(release.frame, certificate=release.certificate)
    assert audit.ok and not audit.findings


# Withholding --------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*every row has the same value")
@settings(max_examples=examples(40))
@given(requests(most_rows=20), st.sampled_from([0.0, 0.1, 0.3]))
def test_what_is_certified_is_what_was_found(request: tuple[Any, ...], share: float) -> None:
    rows, axes, models, _, weights, secrets = request
    if any(isinstance(model, Narrow) for model in models):
        return
    room = int(len(rows) * Fraction(str(share)))
    best = exhaustive(rows, axes, models, room, weights)
    table = encoded(rows, axes, weights, secrets)
    columns = Columns.of({name: [row[name] for row in rows] for name in [*axes, *secrets]})
    try:
        release = ck.anonymize(columns, table.schema, models, Incognito(), suppress=share, seed=2**100)
    except ck.Unsatisfiable:
        # what one class of everything cannot keep is refused before any search
        assert best is None or not all(holds(model, rows, rows) for model in models)
        return
    assert best is not None and release.certificate.ok
    assert release.loss == pytest.approx(float(best.loss), abs=1e-9)
    assert release.certificate.suppressed == len(best.suppressed) <= room


def test_a_good_group_is_not_given_up_for_the_bad_one_that_it_meets_in_fewer_columns() -> None:
    axes = {"job": AXES["job"], "zip": AXES["zip"]}
    rows = [{"job": "clerk", "zip": "470", "blood": blood} for blood in "ABAB"]
    rows += [{"job": "clerk", "zip": "471", "blood": "A"}] * 5  # with these, clerks are not diverse, and too many to suppress
    rows += [{"job": job, "zip": "480", "blood": blood} for job in ("sailor", "farmer", "herder") for blood in "ABABABAB"]
    guarantees = [ck.LDiversity("blood", 2, "frequency")]
    agree(rows, axes, guarantees, 5, [1, 1], ["blood"])
    outcome = found(encoded(rows, axes, [1, 1], ["blood"], 5), guarantees)
    assert outcome.form == generalized(levels={"job": 0, "zip": 0})
    assert counts_in(outcome)[2] == 0  # no size is guaranteed, so nothing prunes


def test_a_suppressed_leaf_makes_the_node_above_it_cheaper() -> None:
    axes = {"zip": AXES["zip"], "sex": AXES["sex"]}
    many = {("470", "f"): 65, ("471", "f"): 35, ("472", "m"): 1, ("120", "f"): 50}
    rows = [{"zip": code, "sex": sex, "blood": "A"} for (code, sex), count in many.items() for _ in range(count)]
    agree(rows, axes, [K(40)], 36, [1, 1], ["blood"])
    outcome = found(encoded(rows, axes, [1, 1], ["blood"], 36), [K(40)])
    assert outcome.form == generalized(levels={"zip": 1, "sex": 0})  # all rows written so would lose more than 36 suppressed


def test_distances_are_those_of_the_tree_without_suppressed_secrets() -> None:
    """A tree read off the data loses its deepest branch with the suppressed row, and what is left is farther apart."""
    ill = ck.Hierarchy.from_nested({"a": {"deep": {"deeper": ["x"]}}, "b": ["u", "v"]}, from_data=True)
    schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"ill": ill})
    columns = Columns.of({"sex": [*"f" * 9, *"m" * 9, "o"], "ill": [*"u" * 9, *"v" * 9, "x"]})
    near = ck.anonymize(columns, schema, [K(2), ck.TCloseness("ill", 0.25)], Incognito(), suppress=0.1)
    assert (
        near.certificate.suppressed == 1 and near.certificate.guarantees[1].measured == 0.25
    )  # half of the rows, half the way
    far = ck.anonymize(columns, schema, [K(2), ck.TCloseness("ill", 0.2)], Incognito(), suppress=0.1)
    assert far.certificate.ok and far.loss == 1  # with the whole tree it would seem to be 0.125


# Persons ------------------------------------------------------------------------------------------------------------------


def with_persons(rule: str) -> Table:
    cells = {
        "sex": ["f", "f", "m", "m", "f", "f", "m", "m"],
        "job": ["clerk", "lawyer", "clerk", "clerk", "sailor", "sailor", "sailor", "sailor"],
        "blood": list("ABABABAB"),
        "who": [1, 1, 2, 3, 4, 5, 6, 7],
    }
    schema = ck.Schema(
        quasi={"sex": ck.flat(), "job": AXES["job"].kind}, sensitive={"blood": ck.flat()}, person="who", person_rows=rule
    )
    return schema.encode(Columns.of(cells))


def test_rows_of_a_person_stand_in_one_group_where_they_have_to() -> None:
    apart, together = (found(with_persons(rule), [K(1)]) for rule in ("count-once", "together"))
    assert apart.form == generalized(levels={"sex": 0, "job": 0})
    assert together.form == generalized(levels={"sex": 0, "job": 1})  # clerk and lawyer meet in `office`


def test_k_counts_persons() -> None:
    table = with_persons("together")
    assert found(replace(table, persons=None), [K(2)]).form == generalized(levels={"sex": 0, "job": 1})
    assert found(table, [K(2)]).form == generalized(levels={"sex": 0, "job": "*"})  # both women of the office are one


# Refusals and a known optimum ---------------------------------------------------------------------------------------------


def test_a_large_lattice_is_refused_with_its_size_and_the_columns_that_make_it() -> None:
    table = hospital(300)
    outcome = found(table, [K(2)])
    size = counts_in(outcome)[0]
    assert searched(table, [K(2)], Incognito(most=size)) is not None
    with pytest.raises(ck.BadInput, match=f"{size:,} vectors .* most={size - 1:,}; leave columns out .*zip"):
        searched(table, [K(2)], Incognito(most=size - 1))


def test_what_no_vector_keeps_is_refused() -> None:
    rows = [{"sex": "f", "blood": "A"}] * 5
    table = encoded(rows, {"sex": AXES["sex"]}, [1], ["blood"])
    with pytest.raises(ck.Unsatisfiable, match="at most 4 rows cannot be met: none of the 1 vectors"):
        Incognito().run(table, [Narrow(4)], 0, ignore_progress)


@pytest.mark.parametrize(("t", "loss"), [(None, 0.645), (0.2, 0.788)])
def test_the_known_optimum_on_adult(data_folder: Path, t: float | None, loss: float) -> None:
    """Thirty thousand complete training rows: what an independent tool found on the same lattice of 2,160 vectors."""
    frame = pl.read_csv(data_folder / "adult" / "adult.csv.gz", infer_schema=False).head(32_561)
    quasi = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass")
    complete = frame.filter(~pl.any_horizontal(pl.all() == "?")).select([*quasi, "occupation"])
    trees = data_folder / "adult" / "hierarchies"
    kinds = {name: ck.Hierarchy.read_csv(trees / f"adult_hierarchy_{name}.csv") for name in complete.columns}
    schema = ck.Schema(quasi={name: kinds[name] for name in quasi}, sensitive={"occupation": kinds["occupation"]})
    guarantees: list[Model] = [K(6)] if t is None else [K(6), ck.TCloseness("occupation", t)]
    release = ck.anonymize(complete, schema, guarantees, Incognito())
    assert release.certificate.ok and release.certificate.suppressed == 0
    assert round(release.loss, 3) == loss


def test_level_of_a_column_that_is_all_stars_discloses_nothing_of_its_codes():
    forms = []
    for codes in (["123", "456"], ["123", "4567890"]):
        table = pa.table({"zip": [*codes * 2, "78", "99"], "ill": list("abcabc")})
        schema = ck.Schema(quasi={"zip": ck.prefix()}, sensitive={"ill": ck.flat()})
        release = ck.anonymize(table, schema, [ck.KAnonymity(6)], ck.Incognito(), seed=SEED)
        assert set(release.columns["zip"].cells()) == {"*"}
        forms.append(release.certificate)
    assert forms[0] == forms[1]


def test_what_the_user_says_of_levels_is_not_dropped_in_silence():
    table, schema = ck.datasets.hospital(150), ck.datasets.hospital_schema()
    form = ck.generalized(levels={"sex": 1})
    try:
        release = ck.anonymize(table, schema, [ck.KAnonymity(4)], ck.Incognito(), form=form, seed=SEED)
    except ck.BadInput:
        return  # refused: that is an answer
    assert set(release.columns["sex"].cells()) == {"*"}


def test_a_partition_that_keeps_frequency_diversity_of_persons_counted_once_is_found():
    table = Columns.of({"age": [20, 20, 60, 60], "ill": ["x", "y", "y", "x"], "who": ["1", "2", "1", "2"]})
    kinds = {"quasi": {"age": ck.numeric()}, "sensitive": {"ill": ck.flat()}}
    schema = ck.Schema(**kinds, person="who", person_rows="count-once")
    assert ck.anonymize(table, schema, [ck.LDiversity("ill", 2, "frequency")], ck.Incognito(), seed=SEED).certificate.ok
