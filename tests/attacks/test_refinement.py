"""What a method did not do: no true assignment is ever ruled out, and what is ruled out is impossible."""

from __future__ import annotations

import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.attacks.assignment_program import Program
from closeknit.attacks.compiled_guards import Guards
from closeknit.attacks.finding import Finding
from closeknit.attacks.refinement import bound_by_class, encode_classes, find_ranges, refinement
from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, CloseknitError
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.methods import REGISTRY
from closeknit.search.guards import guard_of
from closeknit.search.knit_state import KnitState
from closeknit.search.left_over import find_held
from closeknit.search.vetoed_cuts import find_vetoed_cuts

AGE = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
TREE = ck.Hierarchy.from_nested({"lungs": {"flu": None, "asthma": None}, "belly": {"ulcer": None, "gout": None}})
WIDE = ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat(), "zip": ck.prefix()}, sensitive={"ill": TREE})
ILLS = ["flu", "asthma", "ulcer", "gout"]
GUARANTEES: list[list[Model]] = [
    [ck.LDiversity("ill", 2)],
    [ck.KAnonymity(2), ck.LDiversity("ill", 3)],
    [ck.LDiversity("ill", 1.5, kind="frequency")],
    [ck.LDiversity("ill", 1.7, kind="entropy")],
    [ck.TCloseness("ill", 0.3)],
    [ck.KAnonymity(3), ck.TCloseness("ill", 0.2, distance="equal")],
    [ck.KAnonymity(2), ck.BetaLikeness("ill", 1)],
    [ck.TCloseness("ill", 0.35), ck.LDiversity("ill", 2)],
]
ENSURES = [
    ck.Mondrian(),
    ck.Mondrian("strict"),
    ck.Mondrian("relaxed", "median", "widest"),
    ck.Mondrian("strict", "median"),
    ck.Incognito(),
    ck.StackAndDeal(),
    ck.StackAndDeal(dealing="literal"),
    ck.Sabre(),
    ck.Burel(),
    ck.Fragmentation(),
    ck.Microaggregation(refine=True),
]


def draw_table(seed: int, most: int) -> Columns:
    rng = np.random.default_rng(seed)
    n, ages = int(rng.integers(5, most + 1)), int(rng.integers(2, 30))
    return Columns.of(
        {
            "age": rng.integers(20, 20 + ages, n).tolist(),
            "sex": rng.choice(["f", "m"], n).tolist(),
            "zip": rng.choice(["470", "471", "480"], n).tolist(),
            "ill": rng.choice(ILLS, n, p=rng.dirichlet(np.ones(4))).tolist(),
        }
    )


def release_of(table: Columns, models: Sequence[Model], method: Method) -> Any:
    try:
        return ck.anonymize(table, WIDE, models, method, seed=2**70, allow_vacuous=True)
    except CloseknitError:
        return None


def test_a_cut_that_was_not_made_proves_two_values() -> None:
    """If both who are 30 had different diseases, they would be a class of their own; only HIV occurs twice."""
    table = Columns.of({"age": [30, 30, 40, 40, 40, 40], "ill": ["HIV", "HIV", "flu", "gout", "cold", "ulcer"]})
    found = refinement(table, [0] * 6, AGE, ck.Mondrian("strict"), [ck.LDiversity("ill", 2)])
    assert (found.number, found.risk) == (1.0, 1.0)
    assert found.details["class_alone"] == pytest.approx(1 / 3)
    assert (found.details["one_value_left"], found.details["excluded"], found.details["pairs"]) == (2, 2 * 4 + 4, 30)
    assert found.details["guessed"] == 3 and found.details["guessed_by_class"] == 2
    assert "outside" not in found.knows


def test_levels_that_were_not_lower_prove_two_values() -> None:
    """At the level below, three rows of zip 471 have two values or more whatever they are; so 470 has HIV twice."""
    schema = ck.Schema(quasi={"zip": ck.prefix()}, sensitive={"ill": ck.flat()})
    table = Columns.of({"zip": ["470"] * 2 + ["471"] * 3, "ill": ["HIV", "HIV", "flu", "gout", "cold"]})
    release = ck.anonymize(table, schema, [ck.LDiversity("ill", 2)], ck.Incognito())
    assert set(release.columns["zip"].cells()) == {"47*"}
    found = refinement(table, release.partition, schema, ck.Incognito(), [ck.LDiversity("ill", 2)])
    assert found.number == 1.0 and found.details["one_value_left"] == 2


def test_levels_use_what_is_known_of_other_classes() -> None:
    """A group of another class that does not meet the guarantee explains the level: then nothing follows for this class."""
    schema = ck.Schema(quasi={"zip": ck.prefix()}, sensitive={"ill": ck.flat()})
    pair = ["HIV", "HIV", "flu", "gout", "cold"]
    for other, proved in ((["a", "b", "c", "d"], True), (["a", "a", "c", "d"], False)):
        cells = {"zip": ["470"] * 2 + ["471"] * 3 + ["580"] * 2 + ["581"] * 2, "ill": [*pair, *other]}
        release = ck.anonymize(Columns.of(cells), schema, [ck.LDiversity("ill", 2)], ck.Incognito())
        assert set(release.columns["zip"].cells()) == {"47*", "58*"}
        found = refinement(Columns.of(cells), release.partition, schema, ck.Incognito(), [ck.LDiversity("ill", 2)])
        assert (found.number == 1.0) is proved
        assert not proved or found.knows.endswith("all sensitive values outside the class")


Allow = Callable[[Any], bool]  # of these rows as a class


def enumerate_ranges(
    table: Table, program: Program, models: Sequence[Model], is_consistent: Callable[[Allow], bool]
) -> tuple[Any, Any]:
    """Least and most rows of each block with each value, by trying every assignment; rows in one order stand for all orders."""
    codes, domain = table.secret("ill")
    values = program.values["ill"]
    least = np.full((len(program.blocks), len(values)), 10**6)
    most = np.full((len(program.blocks), len(values)), -1)
    verdicts: dict[tuple[int, ...], bool] = {}
    reference = table.count_values("ill").reference
    for way in set(itertools.permutations(codes[program.members].tolist())):
        given = codes.copy()
        given[program.members] = way

        def holds(part: Any, given: Any = given) -> bool:
            key = tuple(np.bincount(given[part], minlength=domain.size + 1))
            if key not in verdicts:
                secret = {"ill": (given[part], domain)}
                classes = Classes.of(np.zeros(len(part), dtype=np.int32), 1, secret, None, {"ill": reference})
                verdicts[key] = all(bool(model.holds(classes).all()) for model in models)
            return verdicts[key]

        if is_consistent(holds):
            counts = np.stack([program.count_values(given[block.members], "ill") for block in program.blocks])
            least, most = np.minimum(least, counts), np.maximum(most, counts)
    return least, most


def are_vetoed(vetoes: Sequence[Any], holds: Allow) -> bool:
    return all(any(not holds(part) for part in veto) for veto in vetoes)


def compare_with_enumeration(seed: int, models: Sequence[Model], method: Method) -> int:
    columns = draw_table(seed, 8)
    release = release_of(columns, models, method)
    if release is None:
        return 0
    table, partition, judged = encode_classes(columns, release.partition, WIDE, models)
    vetoes, guards, narrower = method.find_vetoes(table, partition, judged), Guards.of(table, judged), 0
    assert vetoes is not None
    for number in range(partition.count):
        members = np.flatnonzero(partition.class_of == number)
        program = Program.of(table, members, vetoes.of_class(number), guards, 10**6)
        assert program is not None and Program.of(table, members, vetoes.of_class(number), guards, program.size - 1) is None
        true = program.count_true("ill")
        least, most = find_ranges(program, "ill", true, 10**6)
        listed = vetoes.of_class(number)
        expected = enumerate_ranges(table, program, judged, lambda holds, listed=listed: are_vetoed(listed, holds))
        assert program.unsettled == 0
        if any(getattr(model, "kind", "") == "entropy" for model in models):  # the program requires less than the guarantee
            assert (least <= expected[0]).all() and (most >= expected[1]).all()
        else:
            assert np.array_equal(least, expected[0]) and np.array_equal(most, expected[1])
        free = np.minimum(true.sum(axis=1)[:, None], true.sum(axis=0)[None])
        narrower += int((most < free).any())
    return narrower


def test_the_program_equals_an_enumeration() -> None:
    narrower = 0
    for seed in range(3):
        for models in GUARANTEES:
            for method in (ck.Mondrian("strict"), ck.Mondrian(), ck.Incognito()):
                narrower += compare_with_enumeration(seed, models, method)
    assert narrower > 1  # it is not always the class alone


@pytest.mark.soak
def test_the_program_equals_an_enumeration_on_many_tables() -> None:
    for seed in range(100, 200):
        for models in GUARANTEES:
            for method in (ck.Mondrian("strict"), ck.Mondrian(), ck.Incognito()):
                compare_with_enumeration(seed, models, method)


def list_improvements(state: KnitState, partition: Partition, number: int) -> dict[int, list[list[Any]]]:
    """By other class: both classes after each change of a row of this one that lowers the loss."""
    before, class_of, found = state.loss(partition), partition.class_of, defaultdict(list)
    for row in np.flatnonzero(class_of == number):
        for to in {*range(partition.count)} - {number}:
            for other in [None, *np.flatnonzero(class_of == to)]:
                changed = class_of.copy()
                changed[row] = to
                if other is not None:
                    changed[other] = number
                if state.loss(Partition(changed, partition.count)) < before - 1e-9 and (changed == number).any():
                    found[to].append([np.flatnonzero(changed == each) for each in (number, to)])
    return found


def compare_held(table: Table, partition: Partition, models: Sequence[Model]) -> tuple[int, int, int]:
    """Ranges given what is left over, and those of an enumeration: pairs without and with a change left over, and narrowed."""
    guarded = guard_of(table, models)
    state, held, seen = KnitState.of(table, guarded.guard, []), find_held(table, partition, models), [0, 0, 0]
    guards = Guards.of(table, models)
    codes, domain = table.secret("ill")
    reference = table.count_values("ill").reference

    def is_met(rows: Any) -> bool:
        classes = Classes.of(np.zeros(len(rows), dtype=np.int32), 1, {"ill": (codes[rows], domain)}, None, {"ill": reference})
        return all(bool(model.holds(classes).all()) for model in models)

    for number in np.flatnonzero(np.bincount(partition.class_of) > 1):
        members, exclusion = np.flatnonzero(partition.class_of == number), held.excluded(number)
        changes = list_improvements(state, partition, number)
        kept = [each for each in changes.values() if are_vetoed(each, is_met)]
        assert (exclusion.held, exclusion.left_over) == (len(kept), len(changes) - len(kept))
        offered = find_vetoed_cuts(table, partition, models).of_class(number)
        cuts = held.of_class(number)
        assert len(cuts) == (len(offered) if are_vetoed(offered, is_met) else 0)
        program = Program.of(table, members, cuts, guards, 10**6, exclusion.values)
        true = program.count_true("ill")
        least, most = find_ranges(program, "ill", true, 10**6)
        conditions = [cuts, *kept]
        expected = enumerate_ranges(
            table, program, models, lambda holds, listed=conditions: all(are_vetoed(each, holds) for each in listed)
        )
        assert np.array_equal(least, expected[0]) and np.array_equal(most, expected[1])
        narrower = any((each != bound).any() for each, bound in zip((least, most), bound_by_class(true), strict=True))
        seen = [sum(each) for each in zip(seen, (exclusion.held, exclusion.left_over, narrower), strict=True)]
    return tuple(seen)


def compare_searches(seeds: range, most: int) -> Any:
    """Classes of Knit, and classes drawn at random, on tiny tables."""
    seen = np.zeros((2, 3), dtype=int)
    for seed in seeds:
        columns, rng = draw_table(seed, most), np.random.default_rng(seed)
        models = [model for model in GUARANTEES[seed % len(GUARANTEES)] if getattr(model, "kind", "") != "entropy"]
        if not models or (release := release_of(columns, models, ck.Knit())) is None:
            continue
        table, knitted, judged = encode_classes(columns, release.partition, WIDE, models)
        drawn = Partition.of(rng.integers(0, 3, len(table)).astype(np.int32))
        for i, partition in enumerate((knitted, drawn)):
            seen[i] += compare_held(table, partition, judged)
    return seen


def test_what_is_given_of_a_search_equals_an_enumeration() -> None:
    knit, drawn = compare_searches(range(24), 8)
    assert knit[0] > 20 and knit[2] > 5  # there are conditions, and they narrow classes
    assert drawn[0] > 0 and drawn[1] > 20  # classes drawn at random leave many changes over, which state nothing


@pytest.mark.soak
def test_what_is_given_of_a_search_equals_an_enumeration_on_many_tables() -> None:
    compare_searches(range(100, 300), 9)


def test_knit_is_measured_for_an_adversary_who_is_given_more() -> None:
    """Who is 31 had no gout and no cold: otherwise 31 and 40 would have changed places."""
    table = Columns.of({"age": [30, 31, 32, 40], "ill": ["flu", "flu", "cold", "gout"]})
    found = refinement(table, [0, 1, 1, 0], AGE, ck.Knit(), [ck.LDiversity("ill", 2)])
    assert (found.number, found.details["one_value_left"], found.details["narrowed"]) == (1.0, 4, 4)
    assert found.details["conditions_held"] == 2 and found.details["conditions_left_over"] == 0
    assert "from the data owner" in found.knows and "only the data owner can see" in found.sentence


def attack_many(seeds: range, most: int, solves: int) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = defaultdict(list)
    for seed, models, method in itertools.product(seeds, GUARANTEES, ENSURES):
        table = draw_table(seed, most)
        release = release_of(table, models, method)
        if release is not None:
            found[method.name].append(refinement(table, release.partition, WIDE, method, models, solves=solves))
    return found


def test_no_method_contradicts_what_it_declares() -> None:
    found = attack_many(range(2), 20, 6)
    assert found.keys() == {method.name for method in ENSURES}
    for each in itertools.chain(*found.values()):
        assert "contradicted" not in each.details, each
        assert each.details.get("solves", 0) <= 6
    assert all(any(each.number is not None for each in some) for some in found.values())


@pytest.mark.soak
def test_no_method_contradicts_what_it_declares_on_many_tables() -> None:
    for each in itertools.chain(*attack_many(range(50, 110), 60, 40).values()):
        assert "contradicted" not in each.details, each


def test_every_method_either_ensures_something_or_says_that_it_does_not() -> None:
    """SoftStop stops by chance, and others merge what fails: none of them may claim that nothing was left."""
    ensured = {"knit", *(method.name for method in ENSURES)}
    table, models = draw_table(3, 20), [ck.KAnonymity(2), ck.TCloseness("ill", 0.4)]
    for name, kind in REGISTRY.items():
        if name in ensured or name in {"slicing", "anatomy"}:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = release_of(table, models, kind())
        assert release is not None
        found = refinement(table, release.partition, WIDE, kind(), models)
        assert found.number is None and found.risk == 0
        assert found.sentence == (
            f"There is nothing to derive: {name} ensures no condition on the classes that it returns. This does not show that "
            "the method is safe."
        )


def test_classes_of_another_method_are_no_evidence() -> None:
    """Ages 30 and 40 could have been cut, so Mondrian did not return this class."""
    table = Columns.of({"age": [30, 30, 40, 40], "ill": ["flu", "gout"] * 2})
    found = refinement(table, [0] * 4, AGE, ck.Mondrian("strict"), [ck.LDiversity("ill", 2)])
    assert found.number is None and found.details["contradicted"] == 1
    assert "left over" in found.sentence


@pytest.mark.parametrize(
    ("models", "class_of", "schema", "reason"),
    [
        ([ck.KAnonymity(2)], [0] * 4, AGE, "no guarantee mentions `ill`"),
        ([ck.LDiversity("ill", 2)], [0, 0, 0, -1], AGE, "suppressed rows"),
        ([ck.LDiversity("ill", 2, kind="recursive", c=3)], [0] * 4, AGE, "has no linear form"),
        ([ck.LDiversity("ill", 2), ck.KAnonymity(2, over="pairs")], [0] * 4, AGE, "about the whole release"),
        ([ck.LDiversity("ill", 2)], [0] * 4, AGE.model_copy(update={"person": "who"}), "rows of one person"),
    ],
)
def test_nothing_is_derived_from_what_is_not_ensured(models: Any, class_of: Any, schema: Any, reason: str) -> None:
    table = Columns.of({"age": [30, 30, 40, 40], "ill": ["flu", "flu", "gout", "cold"], "who": [1, 2, 3, 4]})
    found = refinement(table, class_of, schema, ck.Mondrian("strict"), models)
    assert found.number is None and reason in found.sentence


def test_a_small_budget_rules_out_less_and_nothing_wrong() -> None:
    table = Columns.of({"age": [30, 30, 40, 40, 40, 40], "ill": ["HIV", "HIV", "flu", "gout", "cold", "ulcer"]})
    models = [ck.LDiversity("ill", 2)]
    excluded = [
        refinement(table, [0] * 6, AGE, ck.Mondrian("strict"), models, solves=solves).details["excluded"]
        for solves in (1, 3, 100)
    ]
    assert excluded == sorted(excluded) and excluded[0] < excluded[-1] == 12


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"solves": 0}, "solves=0"),
        ({"secret": "il"}, "did you mean 'ill'"),
        ({"class_of": [0, 0]}, "2 classes do not match the table"),
    ],
)
def test_bad_input_is_refused(changed: dict[str, Any], message: str) -> None:
    table = Columns.of({"age": [30, 40, 41], "ill": ["flu", "gout", "flu"]})
    given: dict[str, Any] = {"class_of": [0] * 3, "solves": 5, "secret": None, **changed}
    class_of, secret = given.pop("class_of"), given.pop("secret")
    with pytest.raises(BadInput, match=message):
        refinement(table, class_of, AGE, ck.Mondrian(), [ck.LDiversity("ill", 2)], secret, **given)
