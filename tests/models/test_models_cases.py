"""The guarantees case by case: exact limits, printed errors of the sources, missing secrets, persons, bad parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from closeknit.core.classes import Classes, Histogram
from closeknit.core.dates import Date
from closeknit.core.errors import BadInput
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kinds import flat, numeric
from closeknit.core.model import Model
from closeknit.models import REGISTRY, BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, TCloseness

SECRET = "secret"


def counted(rows: list[tuple[int, str]], kind: Any = None, persons: list[int] | None = None) -> Classes:
    """Classes from (class, secret) pairs; an empty secret is missing."""
    texts = sorted({text for _, text in rows if text})
    domain, codes = (kind or flat()).bind(np.array(texts, dtype=object))
    leaf = dict(zip(texts, codes.tolist(), strict=True)) | {"": domain.size}
    class_of = np.array([c for c, _ in rows], dtype=np.int32)
    secrets = np.array([leaf[text] for _, text in rows], dtype=np.int32)
    people = None if persons is None else np.array(persons, dtype=np.int64)
    return Classes.of(class_of, int(class_of.max()) + 1, {SECRET: (secrets, domain)}, people)


def test_beta_of_one_is_met_by_two_equally_frequent_values() -> None:
    classes = counted([(0, "a"), (0, "a"), (1, "b"), (1, "b")])
    assert BetaLikeness(SECRET, 1, "basic").holds(classes).all()
    assert not BetaLikeness(SECRET, "0.999999999999", "basic").holds(classes).any()
    assert not BetaLikeness(SECRET, 1).holds(classes).any()  # q = 1 exceeds p(1 - ln p) = .847


def test_a_threshold_is_what_was_written() -> None:
    # 3 of 10 rows against 1 of 5: the distance is exactly 1/10, which no binary float is
    rows = [(0, "a")] * 3 + [(0, "b")] * 7 + [(1, "a")] * 1 + [(1, "b")] * 9
    assert TCloseness(SECRET, 0.1).holds(counted(rows)).all()
    assert not TCloseness(SECRET, 0.0999999999999).holds(counted(rows)).any()


def test_strict_guarantees_exclude_equality() -> None:
    classes = counted([(0, "a")] * 4 + [(0, "b")] * 2)
    assert not LDiversity(SECRET, 2, "recursive", 2).holds(classes)[0]
    assert LDiversity(SECRET, 2, "recursive", 2.0000001).holds(classes)[0]


@pytest.mark.parametrize("each", [1, 5, 40_000])
def test_entropy_of_equal_counts_is_exact(each: int) -> None:
    classes = counted([(0, text) for text in "abcde" for _ in range(each)])
    assert LDiversity(SECRET, 5, "entropy").holds(classes)[0]
    assert not LDiversity(SECRET, 5.000000000001, "entropy").holds(classes)[0]


def test_entropy_of_a_large_class_is_decided_by_digits() -> None:
    classes = counted([(0, "a")] * 30_001 + [(0, "b")] * 30_000)
    level = float(LDiversity(SECRET, 2, "entropy").levels(classes)[0])
    assert math.isclose(level, 2.0, abs_tol=1e-9)
    assert not LDiversity(SECRET, 2, "entropy").holds(classes)[0]
    assert LDiversity(SECRET, 1.9999999996, "entropy").holds(classes)[0]


def test_entropy_of_a_large_uneven_class_may_equal_its_limit() -> None:
    rows = [(0, "common")] * 2**14 + [(0, f"rare {i}") for i in range(2**14)]
    classes = counted(rows)  # half of the rows 1 bit each, half 15 bits: 8 bits
    assert LDiversity(SECRET, 256, "entropy").holds(classes)[0]
    assert not LDiversity(SECRET, "256.000000000000000000000000000001", "entropy").holds(classes)[0]


def test_recursive_tail_begins_with_the_lth_value() -> None:
    """The dissertation prints r_1 as first summand, which would make every c > 1 hold."""
    classes = counted([(0, "a")] * 6 + [(0, "b")] * 2 + [(0, "c")])
    assert LDiversity(SECRET, 2, "recursive", 3).exact_level(classes, 0) == Fraction(6, 3)
    assert LDiversity(SECRET, 3, "recursive", 3).exact_level(classes, 0) == Fraction(6, 1)
    assert not LDiversity(SECRET, 4, "recursive", 3).holds(classes)[0]


def test_shares_are_taken_of_the_class_in_one_fixed_order() -> None:
    """Not of the table, and not with the class sorted by its own frequencies (errata 30)."""
    classes = counted([(0, "1"), (0, "3"), (0, "3"), (1, "1"), (1, "2"), (1, "2")], numeric())
    level = TCloseness(SECRET, 1).exact_level(classes, 0)
    assert level == (abs(Fraction(1, 3) - Fraction(2, 6)) + abs(Fraction(1, 3) - Fraction(4, 6))) / 2


def test_delta_uses_the_natural_logarithm() -> None:
    rows = [(0, "a")] * 2 + [(0, "b")] * 2 + [(1, "a")] * 1 + [(1, "b")] * 7
    level = DeltaDisclosure(SECRET, 1).levels(counted(rows))[0]
    assert level == pytest.approx(math.log((1 / 2) / (3 / 12)))


def test_depth_is_counted_from_the_root_named_or_not() -> None:
    """`below` = L judges inner nodes at depth > L, the root having depth 0 (errata 28)."""
    branches = {"R": {"RR": ["r1", "r2"]}, "D": ["d1", "d2"]}
    for tree in (branches, {"Any": branches}):
        rows = [(0, "r1"), (0, "r2"), (1, "d1"), (1, "d2")]
        classes = counted(rows, Hierarchy.from_nested(tree))
        levels = [BetaLikeness(SECRET, 9, "semantic", below=below).levels(classes).tolist() for below in range(3)]
        assert levels == [[math.inf, math.inf], [math.inf, 0.0], [0.0, 0.0]]


def test_relative_ranges_need_positive_values() -> None:
    classes = counted([(0, "0"), (0, "5"), (1, "9"), (1, "5")], numeric())
    with pytest.raises(BadInput, match="not above 0"):
        BetaLikeness(SECRET, 1, "range", eps=1, relative=True).holds(classes)
    assert BetaLikeness(SECRET, 2, "range", eps=1).holds(classes).all()


def test_range_likeness_sees_neighbours_that_single_values_hide() -> None:
    rows = [(0, str(v)) for v in (10, 11, 50, 90)] + [(1, str(v)) for v in (20, 30, 40, 60, 70, 80, 100, 110)]
    classes = counted(rows, numeric())
    assert BetaLikeness(SECRET, 9).holds(classes).all()
    assert BetaLikeness(SECRET, 9, "range", eps=0.5).holds(classes).all()
    assert BetaLikeness(SECRET, 9, "range", eps=1).holds(classes).tolist() == [False, True]  # 1/2 > 1/6 (1 + ln 6)


@pytest.mark.parametrize(
    ("kind", "known", "with_missing"),
    [
        ("distinct", [1, 2, math.inf], [2, 3, 1]),
        ("entropy", [1, 2, math.inf], [6 / 5 ** (5 / 6), 3, 1]),
        ("frequency", [1, 2, math.inf], [6 / 5, 3, 1]),
        ("recursive", [math.inf, 1, 0], [5, 1 / 2, math.inf]),
    ],
)
def test_diversity_is_over_known_values(kind: str, known: list[float], with_missing: list[float]) -> None:
    """Five times HIV and one missing value disclose HIV; missing values alone disclose no known one."""
    classes = counted([*[(0, "HIV")] * 5, (0, ""), (1, "HIV"), (1, "flu"), (1, ""), (2, ""), (2, "")])
    c = 9 if kind == "recursive" else None
    default, restored = (LDiversity(SECRET, 2, kind, c, missing_is_a_value=value) for value in (False, True))
    assert default.levels(classes) == pytest.approx(known) and default.holds(classes).tolist() == [False, True, True]
    assert restored.levels(classes) == pytest.approx(with_missing)
    assert not restored.holds(classes)[2]
    assert "missing is a value" in restored.describe(None) and "missing" not in default.describe(None)


def test_missing_is_a_value_of_distances_and_disclosure() -> None:
    classes = counted([(0, "a"), (0, ""), (1, "a"), (1, "a")])
    assert TCloseness(SECRET, 1).exact_level(classes, 0) == Fraction(1, 4)
    assert DeltaDisclosure(SECRET, 1).levels(classes)[1] == math.inf


def test_an_ordered_distance_refuses_missing_values_and_names_the_alternatives() -> None:
    classes = counted([(0, "1"), (0, ""), (1, "2")], numeric())
    with pytest.raises(BadInput, match=r"'equal'.*'hierarchical'"):
        TCloseness(SECRET, 0.5).refuse(classes)
    with pytest.raises(BadInput, match="missing"):
        TCloseness(SECRET, 0.5).levels(classes)
    TCloseness(SECRET, 0.5, "equal").refuse(classes)


def test_a_distance_without_its_structure_is_refused() -> None:
    with pytest.raises(BadInput, match="without an order"):
        TCloseness(SECRET, 0.5, "ordered").refuse(counted([(0, "a"), (0, "b")]))
    numbers = counted([(0, "1"), (0, "2")], numeric())
    with pytest.raises(BadInput, match="without a hierarchy"):
        TCloseness(SECRET, 0.5, "hierarchical").refuse(numbers)
    with pytest.raises(BadInput, match="without a hierarchy"):
        BetaLikeness(SECRET, 1, "semantic", below=0).refuse(numbers)
    with pytest.raises(BadInput, match="without an order"):
        BetaLikeness(SECRET, 1, "range", eps=1).refuse(counted([(0, "a"), (0, "b")]))


def test_the_distance_is_always_named() -> None:
    days = np.array(["2024-01-01", "2024-02-01"], dtype=object)
    tree = Hierarchy.from_nested({"R": ["a", "b"], "D": ["c"]})
    kinds = [(numeric(), np.array([1, 2])), (flat(), days), (Date(), days), (tree, np.array(["a"], dtype=object))]
    texts = [TCloseness("x", 0.2).describe(kind.bind(values)[0]) for kind, values in kinds]
    named = [text.removeprefix("t-closeness of x, t = 0.2, ").removesuffix(" distance") for text in texts]
    assert named == ["ordered", "equal", "ordered", "hierarchical"]
    assert "equal" in TCloseness("x", 0.2, "equal").describe(None)


def test_declared_empty_bins_count_and_absent_values_do_not() -> None:
    domain, codes = numeric(0, 40, bins=4).bind(np.array([5, 15]))
    secrets = {SECRET: (codes, domain)}
    classes = Classes.of(np.array([0, 1], dtype=np.int32), 2, secrets)
    assert TCloseness(SECRET, 1).exact_level(classes, 0) == Fraction(1, 6)
    plain, plain_codes = numeric().bind(np.array([5, 15, 25, 35]))
    suppressed = Classes.of(np.array([0, 1, -1, -1], dtype=np.int32), 2, {SECRET: (plain_codes, plain)})
    assert TCloseness(SECRET, 1).exact_level(suppressed, 0) == Fraction(1, 2)
    assert TCloseness(SECRET, 1).levels(suppressed).tolist() == [0.5, 0.5]


def test_a_person_with_several_rows_counts_once() -> None:
    classes = counted([(0, "a"), (0, "a"), (0, "b")], persons=[1, 1, 2])
    assert KAnonymity(3).holds(classes).tolist() == [False]
    assert LDiversity(SECRET, 2, "frequency").holds(classes)[0]
    assert LDiversity(SECRET, 2, "entropy").holds(classes)[0]


@pytest.mark.parametrize(
    "model",
    [
        LDiversity(SECRET, 3),
        LDiversity(SECRET, 3, "entropy"),
        LDiversity(SECRET, 3, "frequency"),
        LDiversity(SECRET, 3, "recursive", 5),
    ],
    ids=lambda model: model.kind,
)
def test_one_person_with_many_values_is_not_diverse(model: LDiversity) -> None:
    rows = [(0, "a"), (0, "b"), (0, "c"), (1, "a"), (1, "b"), (1, "c")]
    classes = counted(rows, persons=[1, 1, 1, 2, 3, 4])
    assert model.holds(classes).tolist() == [False, True]


def test_a_value_that_all_persons_carry_is_not_hidden_by_their_other_values() -> None:
    classes = counted([(0, "flu"), (0, "flu"), (0, "ulcer"), (0, "SARS")], persons=[1, 2, 2, 2])
    assert LDiversity(SECRET, 2, "frequency").exact_level(classes, 0) == 1


SUPPRESSED = [
    KAnonymity(1),
    LDiversity(SECRET, 9),
    LDiversity(SECRET, 9, "entropy"),
    LDiversity(SECRET, 9, "recursive", 1),
    LDiversity(SECRET, 9, "frequency"),
    TCloseness(SECRET, 0),
    BetaLikeness(SECRET, 0.01),
    BetaLikeness(SECRET, 0.01, "basic"),
    BetaLikeness(SECRET, 0.01, "range", eps=100),
    DeltaDisclosure(SECRET, 0.01),
]


@pytest.mark.parametrize("model", SUPPRESSED, ids=lambda model: model.describe(None))
def test_a_class_whose_secrets_are_suppressed_discloses_nothing(model: Model) -> None:
    domain, codes = numeric().bind(np.array([1, 2]))
    codes = np.array([codes[0], codes[1], -1, -1], dtype=np.int32)
    classes = Classes.of(np.array([0, 0, 1, 1], dtype=np.int32), 2, {SECRET: (codes, domain)})
    assert model.holds(classes)[1]
    assert model.levels(classes)[1] in ((2.0, math.inf) if model.higher_is_safer else (0.0,))


@pytest.mark.parametrize("model", SUPPRESSED, ids=lambda model: model.describe(None))
def test_no_classes_at_all(model: Model) -> None:
    domain, codes = numeric().bind(np.zeros(0))
    classes = Classes.of(np.zeros(0, dtype=np.int32), 0, {SECRET: (codes, domain)})
    assert model.levels(classes).tolist() == [] == model.holds(classes).tolist()


def test_a_constant_secret() -> None:
    classes = counted([(0, "a"), (0, "a"), (1, "a")])
    for model in (TCloseness(SECRET, 0), BetaLikeness(SECRET, 0.001), DeltaDisclosure(SECRET, 0.001)):
        assert model.holds(classes).all() and model.levels(classes).tolist() == [0.0, 0.0]
    for model in (LDiversity(SECRET, 2), LDiversity(SECRET, 2, "entropy"), LDiversity(SECRET, 2, "recursive", 9)):
        assert not model.holds(classes).any()


BAD: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (KAnonymity, (0,), "k=0"),
    (KAnonymity, (-1,), "k=-1"),
    (KAnonymity, ("five",), "k='five'"),
    (KAnonymity, (2.5,), "k=2.5"),
    (KAnonymity, (True,), "k=True"),
    (TCloseness, ("x", 1.1), "t=1.1"),
    (TCloseness, ("x", -0.1), "t=-0.1"),
    (TCloseness, ("x", math.nan), "t=nan"),
    (TCloseness, ("x", math.inf), "t=inf"),
    (TCloseness, ("x", "much"), "t='much'"),
    (TCloseness, ("x", 0.1, "euclidean"), "distance='euclidean'"),
    (LDiversity, ("x", 0), "l=0"),
    (LDiversity, ("x", 1.5), "l=1.5"),
    (LDiversity, ("x", 0.5, "entropy"), "l=0.5"),
    (LDiversity, ("x", 2, "some"), "kind='some'"),
    (BetaLikeness, ("x", math.nan), "beta=nan"),
    (LDiversity, ("x", 2, "recursive"), "needs c"),
    (LDiversity, ("x", 2, "distinct", 3), "c=3"),
    (LDiversity, ("x", 2, "recursive", 0), "c=0"),
    (BetaLikeness, ("x", 0), "beta=0"),
    (BetaLikeness, ("x", 1, "weak"), "kind='weak'"),
    (BetaLikeness, ("x", 1, "enhanced", 1), "below=1"),
    (BetaLikeness, ("x", 1, "basic", None, 2), "eps=2"),
    (BetaLikeness, ("x", 1, "semantic"), "needs below"),
    (BetaLikeness, ("x", 1, "semantic", -1), "below=-1"),
    (BetaLikeness, ("x", 1, "range"), "needs eps"),
    (BetaLikeness, ("x", 1, "range", None, -1), "eps=-1"),
    (BetaLikeness, ("x", 1, "basic", None, None, True), "relative=True"),
    (BetaLikeness, ("x", 1, "range", None, 1, "yes"), "relative='yes'"),
    (DeltaDisclosure, ("x", 0), "delta=0"),
    (DeltaDisclosure, ("x", math.nan), "delta=nan"),
]


@pytest.mark.parametrize(("model", "params", "named"), BAD, ids=[named for _, _, named in BAD])
def test_a_bad_parameter_is_named(model: Callable[..., Any], params: tuple[Any, ...], named: str) -> None:
    with pytest.raises(BadInput) as caught:
        model(*params)
    assert named in str(caught.value)


def test_the_registry_knows_every_model_by_its_name() -> None:
    assert {name: cls.name for name, cls in REGISTRY.items()} == {name: name for name in REGISTRY}
    assert {"k_anonymity", "l_diversity", "t_closeness", "beta_likeness", "delta_disclosure"} <= set(REGISTRY)
    assert KAnonymity.forms == {"generalized", "perturbed"}, "exact quasi-identifiers have no k"


@pytest.mark.parametrize(
    "model",
    [
        KAnonymity(10**30),
        LDiversity(SECRET, 10**30),
        LDiversity(SECRET, 10**30, "recursive", 1),
        LDiversity(SECRET, "2.00000000000000000000000001", "entropy"),
        TCloseness(SECRET, "0.00000000000000000000000001"),
        LDiversity(SECRET, "2.00000000000000000000000001", "frequency"),
        BetaLikeness(SECRET, "0.00000000000000000000000001"),
        DeltaDisclosure(SECRET, "0.00000000000000000000000001"),
    ],
    ids=lambda model: model.describe(None),
)
def test_limits_of_any_size_and_precision(model: Model) -> None:
    assert not model.holds(counted([(0, "a"), (0, "b"), (1, "a"), (1, "c")])).any()


def two_values(p: tuple[int, int], q: tuple[int, int]) -> Classes:
    """A class with the counts `q` of two numbers and a reference with the counts `p`."""
    domain, _ = numeric().bind(np.array([1, 2]))
    values, starts = np.array([0, 1], dtype=np.int32), np.array([0, 2], dtype=np.int64)
    histogram = Histogram(starts, values, np.array(q, dtype=np.int64), np.array([*p, 0], dtype=np.int64), domain)
    return Classes(np.array([sum(q)]), np.array([sum(q)]), {SECRET: histogram})


@pytest.mark.parametrize("model", [BetaLikeness(SECRET, 9), BetaLikeness(SECRET, 9, "range", eps=0)], ids=lambda m: m.kind)
def test_the_cap_is_decided_by_digits_where_a_float_cannot(model: BetaLikeness) -> None:
    whole = 10**15
    cap = int(Decimal("0.33025850929940456840179914546843642076") * whole)  # (1 + ln 10) / 10
    assert model.holds(two_values((1, 9), (cap, whole - cap)))[0]
    assert not model.holds(two_values((1, 9), (cap + 1, whole - cap - 1)))[0]


def test_delta_is_decided_by_digits_where_a_float_cannot() -> None:
    whole, model = 10**17, DeltaDisclosure(SECRET, 1)
    most = int(Decimal("0.27182818284590452353602874713526624978") * whole)  # e / 10
    assert model.holds(two_values((1, 9), (most, whole - most)))[0]
    assert not model.holds(two_values((1, 9), (most + 1, whole - most - 1)))[0]
    least = int(Decimal("0.18393972058572116079776188508073043372") * whole) + 1  # 1 / 2e
    assert model.holds(two_values((1, 1), (least, whole - least)))[0]
    assert not model.holds(two_values((1, 1), (least - 1, whole - least + 1)))[0]
