"""Generalized cells that follow from how a release was written, against the original cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.downcoding import _derive_facts, downcoding
from closeknit.attacks.refinement import encode_classes
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.forms.release_reading import form_behind, reading_of

JOBS = ck.Hierarchy.from_nested(
    {"health": {"nurse": None, "doctor": None}, "trade": {"cook": None, "baker": None, "smith": None}}
)
ILL = {"ill": ck.flat()}


def attack(cells: dict[str, list[Any]], quasi: dict[str, Any], k: int, method: Any = None, form: Any = None) -> Any:
    cells = {**cells, "ill": ["flu", "gout"] * (len(next(iter(cells.values()))) // 2)}
    schema = ck.Schema(quasi=quasi, sensitive=ILL)
    table = Columns.of(cells)
    release = ck.anonymize(table, schema, [ck.KAnonymity(k)], method or ck.Mondrian(), form=form)
    return downcoding(release, table, schema, release.partition).details


def test_both_ends_of_a_tight_range_are_cells() -> None:
    found = attack({"age": [30, 31, 50, 52]}, {"age": ck.numeric()}, 2)
    assert (found["generalized_cells"], found["recovered"], found["right"], found["narrowed"]) == (4, 4, 4, 0)


def test_both_children_of_the_lowest_node_are_cells() -> None:
    """Two rows under health are a nurse and a doctor; of three trades it is open which two."""
    found = attack({"job": ["nurse", "doctor", "cook", "smith"]}, {"job": JOBS}, 2)
    assert (found["generalized_cells"], found["recovered"], found["right"], found["narrowed"]) == (4, 2, 2, 0)


def test_a_node_whose_children_are_nodes_is_narrowed() -> None:
    found = attack({"job": ["nurse", "cook"]}, {"job": JOBS}, 2)
    assert (found["generalized_cells"], found["recovered"], found["narrowed"]) == (2, 0, 2)


def test_a_missing_value_is_a_child_of_the_root() -> None:
    """A nurse, and no value: `*` may as well be a nurse and a cook, so nothing follows."""
    found = attack({"job": ["nurse", None]}, {"job": JOBS}, 2)
    assert (found["recovered"], found["narrowed"]) == (0, 0)


@pytest.mark.parametrize("kind", [ck.numeric(step=10), ck.numeric(step=10, coarsen=True)])
def test_steps_recover_nothing_exactly(kind: Any) -> None:
    """Snapped or coarsened: a row lies in the first step and one in the last, and no value is known."""
    form = None if kind.coarsen else ck.generalized(snap=True)
    found = attack({"age": [31, 45, 62, 78]}, {"age": kind}, 2, form=form)
    assert found["recovered"] == found["by_marginal"] == 0
    assert found["narrowed"] == 4


def test_the_lowest_level_says_that_one_class_is_divided() -> None:
    """One level lower k = 2 is not met: of both nodes only health has two children, so it has one row of each."""
    jobs = ck.Hierarchy.from_nested({"health": {"nurse": None, "doctor": None}, "trade": {"cook": None}})
    found = attack({"job": ["nurse", "doctor", "cook", "cook"]}, {"job": jobs}, 2, ck.Incognito())
    assert (found["generalized_cells"], found["recovered"], found["right"]) == (2, 2, 2)


def test_of_two_classes_it_is_open_which_one_is_divided() -> None:
    cells = {"job": ["nurse", "doctor", "cook", "cook", "smith", "smith"]}
    found = attack(cells, {"job": JOBS}, 2, ck.Incognito())
    assert (found["recovered"], found["narrowed"]) == (0, 0)


@pytest.mark.parametrize("method", [ck.Mondrian(), ck.Mondrian("strict"), ck.Knit(), ck.Incognito(), ck.StackAndDeal()])
@pytest.mark.parametrize("snap", [False, True])
def test_every_fact_is_true(method: Any, snap: bool) -> None:
    """Each child that is said to have a row has one."""
    table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    schema = schema.model_copy(update={"quasi": {**schema.quasi, "age": ck.numeric(step=5), "job": ck.flat()}})
    form = None if method.name == "incognito" else ck.generalized(snap=snap)
    release = ck.anonymize(table, schema, [ck.KAnonymity(3)], method, form=form)
    coded, partition, _ = encode_classes(table, release.partition, schema, [])
    checked = 0
    for fact in _derive_facts(coded, partition, form_behind(release), reading_of(release).tight):
        here = coded.quasi[partition.class_of == fact.number, fact.column]
        assert fact.lo <= here.min() and here.max() <= fact.hi
        for low, high in fact.children:
            assert ((low <= here) & (here <= high)).any()
            checked += 1
    assert checked > 0 or method.name == "incognito"
    found = downcoding(release, table, schema, release.partition)
    assert found.details["right"] == found.details["recovered"]


def test_the_private_report_and_the_command_have_it() -> None:
    table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    release = ck.anonymize(table, schema, [ck.KAnonymity(5)])
    found = ck.attacks.with_original(release, table, schema, class_of=np.asarray(release.partition))
    assert "downcoding" in {each.attack for each in found}
    assert "downcoding" in {each.attack for each in release.private_record().findings}


def test_other_forms_and_wrong_classes_are_refused() -> None:
    table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    bucketized = ck.anonymize(table, schema, [ck.LDiversity("disease", 2)], form="bucketized")
    with pytest.raises(NotApplicable, match="not written as cells of classes"):
        downcoding(bucketized, table, schema, bucketized.partition)
    release = ck.anonymize(table, schema, [ck.KAnonymity(5)])
    with pytest.raises(BadInput, match="2 classes do not match the table"):
        downcoding(release, table, schema, [0, 0])


def test_a_column_is_not_counted_again_for_every_class(monkeypatch: pytest.MonkeyPatch) -> None:
    ages = np.random.default_rng(1).integers(0, 500, 600).tolist()
    table = Columns.of({"age": ages, "ill": ["flu", "gout"] * 300})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive=ILL)
    release = ck.anonymize(table, schema, [ck.KAnonymity(3)], ck.Mondrian())
    counted, bincount = [], np.bincount

    def count(codes: Any, **options: Any) -> Any:
        counted.append(len(codes))
        return bincount(codes, **options)

    monkeypatch.setattr(np, "bincount", count)
    found = downcoding(release, table, schema, release.partition).details
    assert found["recovered"] > 200 and counted.count(600) < 20
