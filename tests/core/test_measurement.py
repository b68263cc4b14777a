"""A measurement is the sum of the measurements of its parts, and a certificate states it."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.measurement import Measurement, PrivateContext
from closeknit.core.reading import Reading
from conftest import examples

# Losses are sums of powers of two, so that they are exact in any order.
SCHEMA = ck.Schema(
    quasi={"age": ck.numeric(0, 64), "zip": ck.prefix()},
    sensitive={"ill": ck.flat(), "pay": ck.numeric()},
    importance={"age": 3},
)
AGES, ZIPS = ("[0, 16]", "[16, 48]", "*", "8", None), ("47**", "48**", "4711", "****")
ILLS, PAYS = ("flu", "Flu", "gout", "*", None), (1, 2, 3)
JOINT = ck.TCloseness(("ill", "pay"), 1)
MODELS = [
    ck.KAnonymity(2),
    ck.TCloseness("ill", 0.5),
    ck.TCloseness("pay", 0.3),
    ck.LDiversity("ill", 2),
    ck.BetaLikeness("ill", 1.5),
    ck.TCloseness(("ill", "pay"), 0.6),
]
ROWS = st.lists(
    st.tuples(st.sampled_from(AGES), st.sampled_from(ZIPS), st.sampled_from(ILLS), st.sampled_from(PAYS), st.integers(0, 5)),
    min_size=1,
    max_size=40,
)


def read(rows: list[Any], in_persons: bool) -> Reading:
    names = ("age", "zip", "ill", "pay")
    columns = Columns.of({name: [row[j] for row in rows] for j, name in enumerate(names)})
    persons = dict.fromkeys(names, np.array([row[4] for row in rows])) if in_persons else None
    return ck.generalized().read(columns, SCHEMA, persons, (("ill", "pay"),))


def part_of(reading: Reading, chosen: Any) -> Reading:
    """Some classes of a release, against the references of all of it."""
    rows, whole = np.flatnonzero(np.isin(reading.class_of, chosen)), reading.classes
    classes = Classes(
        whole.sizes[chosen],
        whole.persons[chosen],
        {name: histogram.take(chosen) for name, histogram in whole.histograms.items()},
        {name: histogram.take(chosen) for name, histogram in whole.by_person.items()},
        {name: values[chosen] for name, values in whole.matched.items()},
        {name: values[chosen] for name, values in whole.heads.items()},
    )
    class_of = np.searchsorted(chosen, reading.class_of[rows]).astype(np.int32)
    return Reading(reading.columns.take(rows), reading.schema, class_of, classes, reading.named_by)


def measure(reading: Reading, in_persons: bool) -> Measurement:
    return Measurement.of(reading, MODELS, private=PrivateContext(True) if in_persons else None, joint=JOINT)


@given(ROWS, st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=examples(60), deadline=None)
def test_the_whole_is_the_sum_of_its_parts_by_classes(rows: list[Any], in_persons: bool, random: Any) -> None:
    reading = read(rows, in_persons)
    whole, places = measure(reading, in_persons), [random.randrange(3) for _ in range(len(reading.classes))]
    chosen = [np.flatnonzero(np.array(places) == place) for place in range(3)]
    parts = [measure(part_of(reading, one), in_persons) for one in chosen if len(one)]
    random.shuffle(parts)
    through_json = [Measurement.model_validate_json(part.model_dump_json()) for part in parts]  # as executors send them
    assert whole == reduce(add, parts) == sum(through_json, Measurement())
    assert (whole.rows, whole.count) == (len(rows), len(reading.classes))


@given(ROWS)
@settings(max_examples=examples(30), deadline=None)
def test_a_certificate_states_the_measurement(rows: list[Any]) -> None:
    reading = read(rows, in_persons=False)
    found = Measurement.of(reading, MODELS, suppressed=3, joint=JOINT).certify(SCHEMA, {"generalized": {}}, ["a", "b", "a"])
    sizes = [sum(reading.class_of == index) for index in range(len(reading.classes))]
    assert (found.rows, found.suppressed, found.notes) == (len(rows), 3, ("a", "b"))
    assert (found.classes.smallest, found.classes.largest) == (min(sizes), max(sizes))
    assert found.classes.discernibility == sum(size**2 for size in sizes) and found.classes.count == len(sizes)
    assert found.guarantees[0].measured == min(sizes) and found.guarantees[0].met == (min(sizes) >= 2)
    means = [found.loss.columns[name][0] for name in ("age", "zip")]
    assert math.isclose(found.loss.a, ((3 * means[0] + means[1]) / 4 * len(rows) + 3) / (len(rows) + 3))


@pytest.mark.parametrize(("levels", "worst"), [((2, 3), 2), ((3, 2), 2)])
def test_the_worse_part_counts(levels: tuple[int, int], worst: int) -> None:
    """Two classes in two parts: the smaller one decides, whichever part is first."""
    rows = [("8", "4711", "flu", 1, 0)] * levels[0] + [("*", "4711", "gout", 2, 0)] * levels[1]
    reading = read(rows, in_persons=False)
    first, second = (measure(part_of(reading, np.array([place])), False) for place in range(2))
    found = (first + second).guarantees[0]
    assert (found.measured, found.worst and found.worst.rows) == (worst, worst)


def test_nothing_and_a_measurement_is_the_measurement() -> None:
    found = measure(read([("8", "4711", "flu", 1, 0)] * 2, False), False)
    assert found + Measurement() == found == Measurement() + found
