"""Forms in which rows do not line up: the tables of the paper on slicing, what is refused, and all checks through them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import closeknit as ck
from closeknit.api.publishing import publish_table
from closeknit.checks import check_method, methods
from closeknit.checks.naive_cells import rows_of, text_of
from closeknit.checks.tables import edge_tables, random_tables, tables_of_both_roles
from closeknit.checks.views import view
from closeknit.core.columns import Columns
from closeknit.core.method import Method, can_plan
from closeknit.core.model import Model, Verdict
from closeknit.core.reading import Reading
from closeknit.core.table import Form, Outcome, Partition, Table

ALLOW_VACUOUS = True
SEED = 2**99 + 1
QUASI, DISEASE = ("age", "sex", "zip"), "disease"
# Table 1(a) of the paper on slicing, and its buckets
PEOPLE = [
    (22, "M", "47906", "dyspepsia"),
    (22, "F", "47906", "flu"),
    (33, "F", "47905", "flu"),
    (52, "F", "47905", "bronchitis"),
    (54, "M", "47302", "flu"),
    (60, "M", "47302", "dyspepsia"),
    (60, "M", "47304", "dyspepsia"),
    (64, "F", "47304", "gastritis"),
]
BUCKETS = np.repeat([0, 1], 4)


def table_1(**roles: Any) -> tuple[Columns, ck.Schema]:
    columns = Columns.of(dict(zip((*QUASI, DISEASE), map(list, zip(*PEOPLE, strict=True)), strict=True)))
    quasi = {"age": ck.numeric(), "sex": ck.flat(), "zip": ck.prefix(5)}
    return columns, ck.Schema(**{"quasi": quasi, "sensitive": {DISEASE: ck.flat()}, **roles})


def written(form: Form, class_of: Any = BUCKETS, **roles: Any) -> Columns:
    columns, schema = table_1(**roles)
    table = schema.encode(columns)
    return form.write(table, Partition.of(np.asarray(class_of)[table.rows]), 0).columns


def contents(form: Any, *groups: tuple[str, ...]) -> list[list[Counter[Any]]]:
    """Bucket by bucket, and in each group by group, how often each combination of cells stands there."""
    columns = written(form)
    numbers = [cell for (cell,) in rows_of(columns, ["bucket"])]
    return [
        [
            Counter(row for row, there in zip(rows_of(columns, group), numbers, strict=True) if there == bucket)
            for group in groups
        ]
        for bucket in dict.fromkeys(numbers)
    ]


def of_people(bucket: int, *group: str) -> Counter[Any]:
    """The same of the raw table."""
    places = [(*QUASI, DISEASE).index(name) for name in group]
    return Counter(tuple(text_of(PEOPLE[i][p]) for p in places) for i in np.flatnonzero(bucket == BUCKETS))


# The tables of the source --------------------------------------------------------------------------------------------


def test_table_1b_generalized() -> None:
    shown = written(ck.generalized())
    classes = {
        ("[22, 52]", "*", "4790*"): ["bronchitis", "dyspepsia", "flu", "flu"],  # the source prints [20-52], but no row has 20
        ("[54, 64]", "*", "4730*"): ["dyspepsia", "dyspepsia", "flu", "gastritis"],
    }
    assert rows_of(shown, [*QUASI, DISEASE]) == [(*cells, value) for cells, values in classes.items() for value in values]
    suppressed = written(ck.generalized(cells="stars"), [0, 1, 1, 2, 3, 4, 4, 5])
    assert rows_of(suppressed, QUASI)[:3] == [("22", "M", "47906"), ("52", "F", "47905"), ("54", "M", "47302")]
    assert rows_of(suppressed, QUASI).count(("60", "M", "*")) == 2 and rows_of(suppressed, QUASI).count(("*", "F", "*")) == 2


@pytest.mark.parametrize(
    ("form", "groups"),
    [
        (ck.bucketized(), (QUASI, (DISEASE,))),  # 1(c)
        (ck.multiset(), (("age",), ("sex",), ("zip",), (DISEASE,))),  # 1(d), and 1(e): one attribute per column
        (ck.sliced([["age"], ["sex"], ["zip"], [DISEASE]]), (("age",), ("sex",), ("zip",), (DISEASE,))),
        (ck.sliced([["age", "sex"], ["zip", DISEASE]]), (("age", "sex"), ("zip", DISEASE))),  # 1(f)
        (ck.sliced(), (QUASI, (DISEASE,))),
    ],
    ids=["1c", "1d", "1e", "1f", "sliced without groups is bucketized"],
)
def test_table_1_in_groups(form: Any, groups: tuple[tuple[str, ...], ...]) -> None:
    assert form.column_groups(table_1()[1]) == groups
    assert contents(form, *groups) == [[of_people(bucket, *group) for group in groups] for bucket in (0, 1)]


def test_table_1f_as_printed() -> None:
    """Every cell in its place: buckets by content, groups sorted inside."""
    shown = written(ck.sliced([["age", "sex"], ["zip", DISEASE]]))
    assert list(shown) == ["bucket", *QUASI, DISEASE]
    assert rows_of(shown, list(shown)) == [
        ("1", "22", "F", "47905", "bronchitis"),
        ("1", "22", "M", "47905", "flu"),
        ("1", "33", "F", "47906", "dyspepsia"),
        ("1", "52", "F", "47906", "flu"),
        ("2", "54", "M", "47302", "dyspepsia"),
        ("2", "60", "M", "47302", "flu"),
        ("2", "60", "M", "47304", "dyspepsia"),
        ("2", "64", "F", "47304", "gastritis"),
    ]


def test_an_adversary_sees_the_bucket_and_the_known_cells_of_the_group() -> None:
    columns, schema = table_1()
    table = schema.encode(columns)
    form = ck.sliced([["age", "sex"], ["zip", DISEASE]])
    _, certificate = publish_table(table, Partition.of(BUCKETS[table.rows]), [ck.LDiversity(DISEASE, 2, "frequency")], form)
    (guarantee,) = certificate.guarantees
    assert guarantee.exact == "2" and guarantee.worst is not None, "one half: the worst share of Table 1(f)"
    assert set(guarantee.worst.cells) == {"bucket", "zip"} and guarantee.worst.rows == 2
    assert certificate.classes.count == 2 and certificate.classes.smallest == 4 and "2 buckets of 4" in str(certificate)
    with pytest.raises(ck.Unsatisfiable):
        publish_table(table, Partition.of(BUCKETS[table.rows]), [ck.LDiversity(DISEASE, 3, "frequency")], form)


def test_the_judge_of_whole_releases_knows_the_numbers_of_the_source() -> None:
    """p(t,s) of Table 1(f), and a release of unequal buckets that is 2-diverse as printed and discloses a value with 3/5."""
    _, schema = table_1()
    form = {"sliced": {"columns": [["age", "sex"], ["zip", DISEASE]]}}
    shown = view(written(ck.sliced(**form["sliced"])), schema, form)
    for age, sex, zipcode, _ in PEOPLE:
        for weight in ("size", "paper"):
            assert shown.measure_disclosure(DISEASE, ((str(age), sex), (zipcode,)), weight) == Fraction(1, 2)
    rows = [
        ("1", "x", "h"),
        ("2", "x", "g"),
        ("1", "x", "e"),
        ("1", "x", "f"),
        ("1", "x", "e"),
        ("2", "x", "f"),
        ("1", "x", "e"),
    ]
    buckets = [1, 5, 3, 4, 2, 6, 2]
    cells = {"bucket": buckets, **{name: [row[i] for row in rows] for i, name in enumerate("ABS")}}
    kinds = {name: ck.flat() for name in "ABS"}
    unequal = view(
        Columns.of(cells),
        ck.Schema(quasi={n: kinds[n] for n in "AB"}, sensitive={"S": kinds["S"]}),
        {"sliced": {"columns": ["A", "BS"]}},
    )
    profiles = [(("1",), ("x",)), (("2",), ("x",))]
    assert max(unequal.measure_disclosure("S", profile, "paper") for profile in profiles) == Fraction(1, 2)
    assert max(unequal.measure_disclosure("S", profile, "size") for profile in profiles) == Fraction(3, 5)


def test_column_generalization_writes_a_group_coarser() -> None:
    form = ck.sliced([["age", "sex"], ["zip", DISEASE]], levels={"zip": 1})
    (first, second) = (bucket[0] for bucket in contents(form, ("zip", DISEASE)))
    assert first == Counter({("4790*", "flu"): 2, ("4790*", "dyspepsia"): 1, ("4790*", "bronchitis"): 1})
    assert {zipcode for zipcode, _ in second} == {"4730*"}


def test_permuted_numbers_stand_in_order_inside_their_bucket() -> None:
    columns = Columns.of({"zip": ["1", "1", "2", "2"], "wage": [9, 3, 7, 5], "ward": ["a", "b", "a", "b"]})
    schema = ck.Schema(quasi={"zip": ck.flat()}, sensitive={"wage": ck.numeric()}, plain=["ward"])
    table = schema.encode(columns)
    shown = ck.permuted().write(table, Partition.of(np.array([0, 0, 1, 1])[table.rows])).columns
    assert rows_of(shown, ["bucket", "zip", "ward", "wage"]) == [
        ("1", "1", "a", "3"),
        ("1", "1", "b", "9"),
        ("2", "2", "a", "5"),
        ("2", "2", "b", "7"),
    ]


# What is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "roles", "says"),
    [
        (ck.sliced([[*QUASI, DISEASE]]), {}, "one group"),
        (ck.sliced([["age", "sex", DISEASE], ["zip", DISEASE]]), {}, "'disease': is in two groups"),
        (ck.sliced([["age", "sex"], ["age", "zip", DISEASE]]), {}, "'age': is in two groups"),
        (ck.sliced([["age", "sex"], [DISEASE]]), {}, "'zip': is in no group"),
        (
            ck.sliced([["age", "sex"], [DISEASE]]),
            {"quasi": {"age": ck.numeric(), "sex": ck.flat()}, "plain": ["zip"]},
            "'zip': is plain and in no group",
        ),
        (ck.sliced([["age", "sex", "wage"], ["zip", DISEASE]]), {}, "'wage': is in a group but not published"),
        (ck.sliced(number="age"), {}, "'age': is a column of the table"),
        (ck.bucketized(number=DISEASE), {}, "'disease': is a column of the table"),
        (ck.sliced(levels={DISEASE: 1}), {}, "'disease': has a level and is sensitive"),
        (ck.sliced(levels={"zip": 9}), {}, "'zip': has no level 9"),
        (ck.bucketized(), {"quasi": {"age": ck.numeric(), "sex": ck.flat()}, "plain": ["zip"]}, "'zip': is plain"),
        (ck.bucketized(), {"sensitive": {DISEASE: ck.flat(), "age": ck.numeric()}}, "'age': is quasi and sensitive"),
        (ck.bucketized(), {"quasi": {name: ck.flat() for name in (*QUASI, DISEASE)}, "sensitive": {}}, "no sensitive column"),
        (ck.permuted(), {}, "'disease': is sensitive and flat"),
        (ck.permuted(), {"sensitive": {DISEASE: ck.flat(), "age": ck.numeric()}}, "sensitive"),
        (ck.generalized(), {"sensitive": {DISEASE: ck.flat(), "age": ck.numeric()}}, "'age': is quasi and sensitive"),
    ],
)
def test_what_cannot_be_written_is_refused(form: Any, roles: dict[str, Any], says: str) -> None:
    with pytest.raises(ck.BadInput) as no:
        written(form, **roles)
    assert says in str(no.value) and no.value.right, str(no.value)


def test_a_release_without_the_number_of_the_bucket_is_refused() -> None:
    columns, schema = table_1()
    with pytest.raises(ck.BadInput, match="'bucket'"):
        ck.audit(columns, schema, [ck.LDiversity(DISEASE, 1)], form="bucketized")


@pytest.mark.parametrize(
    "form", ["bucketized", "sliced", "multiset", {"sliced": {"columns": [["age", "zip"], ["sex", DISEASE]]}}]
)
def test_k_anonymity_means_nothing_where_cells_are_exact(form: Any) -> None:
    columns, schema = table_1()
    with pytest.raises(ck.BadInput, match="k_anonymity has no meaning"):
        ck.anonymize(columns, schema, [ck.KAnonymity(2)], ck.Mondrian(), form=form)


def two_secrets() -> tuple[Columns, ck.Schema]:
    columns, schema = table_1()
    wage = Columns.of({"wage": [3, 4, 3, 4, 3, 4, 3, 4]})["wage"]
    secrets = {DISEASE: ck.flat(), "wage": ck.numeric()}
    return Columns({**columns.columns, "wage": wage}, 8), schema.model_copy(update={"sensitive": secrets})


def test_a_guarantee_about_secrets_that_nothing_joins_is_refused() -> None:
    columns, schema = two_secrets()
    both = ck.TCloseness((DISEASE, "wage"), 0.9)
    apart = [["age", "wage"], ["sex", "zip", DISEASE]]
    for form in ("multiset", {"sliced": {"columns": apart}}):
        with pytest.raises(ck.BadInput, match="disease and wage together: they are in different groups"):
            ck.anonymize(columns, schema, [both], ck.Mondrian(), form=form)
    release = ck.anonymize(columns, schema, [both, ck.TCloseness("wage", 0.9)], ck.Mondrian(), form="bucketized")
    assert release.certificate.ok and release.certificate.joint is not None
    alone = ck.anonymize(columns, schema, [ck.TCloseness("wage", 0.9)], ck.Mondrian(), form="multiset")
    assert alone.certificate.joint is None, "unlinked attributes have no joint distance"
    for made in (release, alone):
        assert ck.audit(made.columns, certificate=made.certificate).ok


# The whole way -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Through(Method):
    """A method whose partition is written in another form, so that all checks of methods judge that form, too."""

    method: Any
    form: Any
    name = "through"

    @property
    def serves_both(self) -> bool:
        return self.form.name in ("sliced", "multiset")

    @property
    def usual_form(self) -> str:
        return str(self.form.name)

    def run(self, table: Table, models: Any, seed: int, progress: Any) -> Outcome:
        form = self.form
        if form.name == "sliced":  # what is only quasi in two groups, and what is both alone
            quasi = [name for name in table.schema.quasi if name not in table.schema.sensitive]
            alone = [(name,) for name in table.schema.sensitive if name in table.schema.quasi]
            alone.append(tuple(name for name in table.schema.sensitive if name not in table.schema.quasi))
            form = replace(form, columns=tuple(group for group in (tuple(quasi[::2]), tuple(quasi[1::2]), *alone) if group))
        return replace(self.method.run(table, models, seed, progress), form=form)


TABLES = [table for table in (*edge_tables(), *tables_of_both_roles(), *random_tables(3, seed=6)) if table.name != "64 columns"]
THROUGH = [
    (ck.Mondrian(), ck.bucketized(), 15),
    (ck.Mondrian(), ck.sliced(), 15),
    (ck.Mondrian(), ck.multiset("#"), 15),
    (ck.Mondrian(), ck.permuted(), 3),
    (ck.Burel(), ck.bucketized(), 2),
]


@pytest.mark.parametrize(("method", "form", "tables"), THROUGH, ids=[f"{m.name}-{f.name}" for m, f, _ in THROUGH])
def test_any_method_keeps_its_guarantees_in_any_form(method: Any, form: Any, tables: int) -> None:
    fit = [table for table in TABLES if method.name == "mondrian" or can_plan(method, table.models)]
    assert check_method(Through(method, form), fit) >= tables * len(methods.CHECKS)


def test_a_column_of_both_roles_is_a_secret_for_whoever_knows_the_others() -> None:
    cells = {"age": [1, 1, 2, 2], "blood": ["A", "B", "A", "B"], "disease": ["flu", "gout", "gout", "flu"]}
    kinds = {"age": ck.numeric(), "blood": ck.flat(), "disease": ck.flat()}
    schema = ck.Schema(quasi={n: kinds[n] for n in ("age", "blood")}, sensitive={n: kinds[n] for n in ("blood", "disease")})
    table = schema.encode(Columns.of(cells))
    one, whole = Partition.of([0, 0, 0, 0]), ck.sliced([["age"], ["blood", "disease"]])
    reading = whole.read(whole.write(table, one).columns, schema, joints=[("blood", "disease")])
    assert reading.of("blood").named_by == ("bucket",), "the disease is not known, and the blood group is what is asked"
    assert reading.of("disease").named_by == ("bucket", "blood"), "whoever knows the blood group looks there"
    assert reading.of(("blood", "disease")).named_by == ("bucket",), "neither is known who wants to learn both"
    with pytest.raises(ck.BadInput, match="quasi and as sensitive"):
        ck.anonymize(Columns.of(cells), schema, [ck.LDiversity("blood", 2)], ck.Mondrian(), form="multiset")


@dataclass(frozen=True)
class Remembering(Model):
    """A guarantee about the whole release that keeps what it is shown."""

    name = "remembering"
    needs = frozenset({"release"})
    column: str
    shown: list[Any]

    requested = "nothing"

    def describe(self, domain: Any) -> str:
        return "remembering"

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        self.shown.append((reading.slices(self.column), originals))
        return Verdict(True, None, "attested", why="it only looks")


@pytest.mark.parametrize("columns", [[["age", "sex"], ["zip", DISEASE]], [["age"], ["sex"], ["zip"], [DISEASE]]])
def test_the_data_owner_knows_the_profile_of_each_row(columns: list[list[str]]) -> None:
    """The known part of every original row, in the codes in which the release is seen."""
    raw, schema = table_1()
    table, shown = schema.encode(raw), []
    form = ck.sliced(columns)
    release, certificate = publish_table(table, Partition.of(BUCKETS[table.rows]), [Remembering(DISEASE, shown)], form)  # type: ignore[list-item]
    assert certificate.guarantees[0].status == "attested" and certificate.guarantees[0].why == "it only looks"
    ((slices, originals),) = shown
    known = [[name for name in group if name != DISEASE] for group in columns]
    cells_of = [dict(zip(slices.known[:, i].tolist(), rows_of(release, names), strict=True)) for i, names in enumerate(known)]
    profiles = Counter(tuple(cells_of[i][code] for i, code in enumerate(row)) for row in originals.tolist())
    assert profiles == Counter(tuple(row) for row in zip(*(rows_of(raw, names) for names in known), strict=True))


def test_rows_without_a_bucket_are_not_written() -> None:
    for form in (ck.bucketized(), ck.multiset(), ck.sliced([["age", "sex"], ["zip", DISEASE]])):
        empty = written(form, [-1] * 8)
        assert empty.rows == 0 and list(empty) == ["bucket", *QUASI, DISEASE]
        some = written(form, [-1, -1, -1, -1, 0, 0, 0, 0])
        assert rows_of(some, ["bucket"]) == [("1",)] * 4 and "bronchitis" not in some[DISEASE].values.tolist()


def test_numbers_of_buckets_have_no_gaps() -> None:
    columns, schema = table_1()
    table = schema.encode(columns)
    partition = Partition(np.where(BUCKETS[table.rows] == 0, 0, 2).astype(np.int32), 4)
    shown = ck.bucketized().write(table, partition).columns
    assert shown["bucket"].values.tolist() == [1, 2] and rows_of(shown, ["bucket"]) == [("1",)] * 4 + [("2",)] * 4
