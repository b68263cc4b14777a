"""Parameter sets under which each registered component is checked, and wrong ones that it has to refuse by name.

A registered component without an entry here fails its checks: adding one means adding its parameter sets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from closeknit.checks.tables import DISEASE, JOB
from closeknit.core.date_times import datetime
from closeknit.core.dates import date
from closeknit.core.durations import duration
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.itemsets import itemset
from closeknit.core.kinds import flat, numeric, prefix
from closeknit.core.points import point
from closeknit.core.written_kinds import Nodes, WrittenNodes
from closeknit.methods import Mondrian, StackAndDeal
from closeknit.models import BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, TCloseness

Params = dict[str, Any]

METHODS: dict[str, list[Params]] = {
    "stack_and_deal": [{}, {"dealing": "literal"}, {"order": "frequency"}, {"dealing": "halving"}],
    "sabre": [{}, {"fill": "knn"}, {"fill": "sweep", "bound": "printed", "slack": False, "polish": False}],
    "burel": [{}, {"fill": "knn", "slack": False}, {"fill": "sweep", "polish": False}],
    "fragmentation": [{}, {"bound": "printed", "sizing": "gcd", "slack": False, "polish": False}, {"sizing": "halve"}],
    "fcm_draw": [{}, {"grouping": "balanced", "groups": 7}, {"grouping": "fuzzy", "fill": "sweep", "polish": False}],
    "pca_draw": [{}, {"fill": "hilbert", "groups": 5}, {"embedding": "one-hot", "scaled": False, "polish": False}],
    "microaggregation": [{}, {"first": "t"}, {"refine": True}],
    "incognito": [{}],
    "fixed_levels": [{}],
    "knit": [{"proposals": 20_000}, {}, {"proposals": 0}],
    "anatomy": [{"l": 1.5}, {"l": 2}, {"l": "1.3", "rows": "random"}],
    "slicing": [
        {"l": 1.5},
        {"columns": 2, "cuts": "relaxed", "attached": 1},
        {"cuts": "random", "bucket": 5, "rare": 2},
        {"cuts": "spread", "bucket": 8, "bins": "kmeans"},
        {"cuts": "near", "l": 1.5},
        {"l": 1.5, "diverse": "size", "cuts": "relaxed"},
        {"l": 1.25, "diverse": "paper", "columns": 2, "attached": 1},
    ],
    "soft_stop": [{}, {"eps": "1/2", "c": 1, "share": "1/2", "split": "strict"}],
    "mondrian": [
        {},
        {"cut": "median", "dims": "widest"},
        {"split": "strict", "cut": "median"},
        {"split": "strict", "dims": "widest"},
    ],
}

FORMS: dict[str, list[Params]] = {
    "generalized": [
        {},
        {"snap": True},
        *({"cells": cells} for cells in ("stars", "bounds", "midpoint", "mean", "median", "sample")),
        {"cells": "sample", "bounds": False},
    ],
    "bucketized": [{}, {"number": "group"}],
    "sliced": [{}, {"columns": [["some"], ["others"]]}, {"columns": [["a"], ["b"], ["c"]], "number": "Nº"}],
    "multiset": [{}],
    "permuted": [{}],
    "perturbed": [{"retain": 0.6, "missing": True}, {"retain": "1/4"}],
}

DECLARED = {"flu": 3, "gout": 2, "ulcer": 1, "SARS": 1}  # of the sensitive attribute `ill`, for guarantees that compare with it
# Streams with the sensitive attribute `ill`; the schema and the seed come with the rows.
STREAMS: dict[str, list[Params]] = {
    "knit_stream": [
        {"k": 3, "delta": 12},
        {"k": 3, "delta": 40, "l": 2, "tries": 0},
        {"k": 2, "delta": 35, "models": [LDiversity("ill", 1.5, "entropy")]},
        {"k": 2, "delta": 36, "models": [TCloseness("ill", 0.5, reference=DECLARED)]},
        {"k": 5, "delta": 3},
        {"k": 3, "delta": "25s", "l": 2, "clock": "tick"},
    ],
    "castle": [
        {"k": 3, "delta": 12, "eta": 4},
        {"k": 3, "delta": 20, "l": 2, "mu": 5},
        {"k": 2, "delta": 9, "eta": 2, "reuse": True},
        {"k": 3, "delta": 15, "reuse": "held", "order": "input"},
        {"k": 5, "delta": 3},
        {"k": 3, "delta": "25s", "clock": "tick"},
    ],
    "knn_stream": [
        {"k": 3, "delta": 12},
        {"k": 2, "delta": 20, "models": [LDiversity("ill", 1.5, "entropy")]},
        {"k": 2, "delta": 25, "models": [BetaLikeness("ill", 2, reference=DECLARED)]},
        {"k": 3, "delta": "25s", "l": 2, "clock": "tick"},
    ],
    "sabre_window": [
        {"models": [TCloseness("ill", 0.4)], "omega": 24, "advance": 8, "k": 2},
        {"models": [TCloseness("ill", 0.3), LDiversity("ill", 2)], "omega": 12, "advance": 12},
        {"models": [TCloseness("ill", 0.5)], "omega": 20, "advance": 4, "long_run": 0.6},
    ],
    "burel_window": [
        {"models": [BetaLikeness("ill", 1)], "omega": 24, "advance": 8, "k": 2},
        {"models": [BetaLikeness("ill", 2)], "omega": 15, "advance": 5},
    ],
    "windowed": [
        {"method": Mondrian(), "models": [TCloseness("ill", 0.4), KAnonymity(3)], "omega": 20, "advance": 5},
        {"method": StackAndDeal(), "models": [DeltaDisclosure("ill", 2), KAnonymity(2)], "omega": 30, "advance": 10},
    ],
}

# Parameters, and the kind of the column `secret` that they are meant for (None: the guarantee is about rows alone).
MODELS: dict[str, list[tuple[Params, Any]]] = {
    "k_anonymity": [({"k": 3}, None), ({"k": 3, "over": "pairs"}, None)],
    "l_diversity": [
        ({"column": "secret", "l": 2}, flat()),
        ({"column": "secret", "l": 2, "kind": "entropy"}, flat()),
        ({"column": "secret", "l": 1.7, "kind": "entropy"}, Hierarchy.from_nested(DISEASE)),
        ({"column": "secret", "l": 2, "kind": "recursive", "c": 1.5}, flat()),
        ({"column": "secret", "l": 1.5, "kind": "frequency"}, flat()),
        ({"column": "secret", "l": 1.5, "kind": "frequency", "missing_is_a_value": True}, flat()),
    ],
    "t_closeness": [
        ({"column": "secret", "t": 0.2}, numeric()),
        ({"column": "secret", "t": 0.2}, Hierarchy.from_nested(DISEASE)),
        ({"column": "secret", "t": 0.3}, flat()),
        ({"column": "secret", "t": 0.3, "distance": "equal"}, numeric()),
        ({"column": "secret", "t": 0.3}, prefix()),
        ({"column": ("secret", "other"), "t": 0.25}, flat()),
        ({"column": ("secret", "other", "third"), "t": 0.5, "distance": "equal"}, numeric()),
    ],
    "beta_likeness": [
        ({"column": "secret", "beta": 1.0}, flat()),
        ({"column": "secret", "beta": 1.0, "kind": "basic"}, flat()),
        ({"column": "secret", "beta": 1.0, "kind": "semantic", "below": 0}, Hierarchy.from_nested(DISEASE)),
        ({"column": "secret", "beta": 1.0, "kind": "range", "eps": 20}, numeric()),
    ],
    "delta_disclosure": [({"column": "secret", "delta": 1.2}, flat())],
    "diverse_slicing": [({"column": "secret", "l": 1.5}, flat()), ({"column": "secret", "l": 2, "weight": "size"}, flat())],
    "posterior_bound": [({"column": "secret", "gamma": 3}, Hierarchy.from_nested(DISEASE))],
    "transparency": [({"eps": 1}, None)],
    "k_map": [({"k": 5, "fraction": 0.1}, None), ({"k": 5, "fraction": "1/4", "alpha": 0.1, "kind": "poisson"}, None)],
    "delta_presence": [({"lo": 0, "hi": 0.5, "population": 90}, None)],
    "population_uniqueness": [({"r": 0.1, "N": 900}, None)],
    "average_risk": [({"r": 0.2}, None), ({"r": "1/7"}, None)],
    "records_at_risk": [({"t": 0.2, "share": 0.1}, None), ({"t": 0.09, "share": 0}, None)],
}


def _spoil(right: Params, *together: Params, **wrong: list[Any]) -> list[Params]:
    """Each wrong value of a parameter with right ones of the others; `together`: values that are wrong with each other."""
    alone = [
        {name: value, **{other: right[other] for other in right if other != name}} for name in wrong for value in wrong[name]
    ]
    return [*alone, *together]


SECRET: Params = {"column": "secret"}
# Wrong parameters, with right ones; the message has to name the first.
REFUSED: dict[str, list[Params]] = {
    "stack_and_deal": _spoil({}, order=["random", None], dealing=[3], column=[3]),
    "sabre": _spoil({}, fill=["random"], bound=["tight", None], polish=["no"], slack=[2]),
    "knit": _spoil({}, {"seconds": 1, "proposals": 9}, proposals=[-1, "many", 0.5], seconds=[-1, "all"]),
    "soft_stop": _spoil({}, eps=[0, 11, "much"], c=[0], share=[2], split=["loose"], advice=["age"]),
    "fixed_levels": [],
    "incognito": _spoil({}, most=[0, "many", 2.5]),
    "anatomy": _spoil({}, l=[1, "many"], rows=["far"], column=[3]),
    "slicing": _spoil(
        {},
        {"diverse": "global", "l": 2},
        {"bucket": 1, "cuts": "random"},
        {"cuts": "near", "l": 1},
        columns=[1, "age", [["age"], "sex"]],
        l=[0.5],
        cuts=["loose", "near"],
        bucket=[5],
        min_bucket=[1],
        attached=[-1],
        rare=[0],
        generalize=["no"],
        bins=["none"],
        diverse=["size"],
    ),
    "mondrian": _spoil({}, split=["loose"], cut=[None], dims=[3]),
    "burel": _spoil({}, fill=["random", None], polish=["no"], slack=[2]),
    "fragmentation": _spoil({}, bound=["exact"], sizing=["none"], fill=[None], polish=["no"], slack=[2], columns=["wage"]),
    "fcm_draw": _spoil({}, grouping=["crisp"], groups=[0, 2.5], fill=["random"], polish=["no"]),
    "pca_draw": _spoil({}, embedding=["wide"], scaled=["no"], groups=["few"], fill=[None], polish=[3]),
    "microaggregation": _spoil({}, first=["l", None], refine=["no"]),
    "generalized": _spoil(
        {},
        {"cells": "mean", "levels": {"age": 1}},
        snap=["yes"],
        cells=["dots"],
        suppressed=["lost"],
        levels=[2],
        bounds=[False],
    ),
    "bucketized": [],
    "sliced": _spoil({}, columns=["age, sex", [[], ["age"]], [["age"], [3]]], levels=[[2]]),
    "multiset": [],
    "permuted": [],
    "perturbed": _spoil({"retain": 0.5}, retain=[1, -0.1, 1.5], columns=["disease"], missing=["no"]),
    "k_anonymity": _spoil({}, k=[0, -1, "five", 2.5, True, None]),
    "l_diversity": [
        *_spoil({**SECRET, "l": 2}, l=[0, 2.5], kind=["other"], c=[2]),
        *_spoil({**SECRET, "l": 2, "kind": "recursive"}, c=[0, None]),
        *_spoil({**SECRET, "kind": "entropy"}, l=["nan"]),
        {"l": 2, "column": "secret", "missing_is_a_value": "no"},
    ],
    "t_closeness": _spoil(
        {**SECRET, "t": 0.2},
        {"distance": "ordered", "column": ("secret", "other"), "t": 0.2},
        {"reference": {"flu": 1}, "column": ("secret", "other"), "t": 0.2},
        t=[1.1, -0.1, float("nan"), "much"],
        distance=["far"],
        column=[["secret"], ("secret", "secret"), ("secret", 3), 3],
        reference=[{}, "flu", {"flu": 0}, {"flu": "2/3", "gout": "1/999999937"}],
    ),
    "beta_likeness": [
        *_spoil({**SECRET, "beta": 1}, beta=[0, float("inf")], kind=["other"]),
        *_spoil({**SECRET, "beta": 1, "kind": "semantic"}, below=[None]),
        *_spoil({**SECRET, "beta": 1, "kind": "range"}, eps=[-1]),
    ],
    "diverse_slicing": _spoil({**SECRET, "l": 2}, l=[0.5], weight=["other"]),
    "transparency": _spoil({}, eps=[0, "much", 11]),
    "posterior_bound": _spoil(SECRET, gamma=[0.5, "inf"]),
    "k_map": [
        {"k": 5},
        {"fraction": 0.1, "k": 5, "population": 90},
        {"k": 5, "fraction": 0.01, "kind": "poisson"},
        *_spoil({"k": 5}, population=[0], fraction=[0, 1.5]),
        *_spoil({"k": 5, "fraction": 0.1}, k=[1], alpha=[0], kind=["normal"]),
    ],
    "delta_presence": _spoil(
        {"lo": 0, "hi": 0.5, "population": 90},
        {"lo": 0, "hi": 1, "population": 90},
        {"lo": 0.6, "hi": 0.5, "population": 90},
        hi=[0],
        population=[0],
    ),
    "population_uniqueness": _spoil({"r": 0.1, "N": 90}, r=[1, -0.1], N=[0, 1.5]),
    "average_risk": _spoil({"r": 0.1}, r=[0, 1, "high"], population=[0]),
    "records_at_risk": _spoil({"t": 0.1, "share": 0.1}, t=[1, 0], share=[1, -0.1]),
    "delta_disclosure": _spoil(SECRET, delta=[0, "x"]),
}

CLOSE: Params = {"models": [TCloseness("ill", 0.2)]}
# As above, for streams.
STREAMS_REFUSED: dict[str, list[Params]] = {
    "knit_stream": _spoil({"k": 2}, delta=[0], k=["many"], tries=[-1, 1.5]),
    "castle": _spoil(
        {"k": 2},
        delta=[0, "soon", 1.5],
        k=[0, None],
        eta=[0],
        mu=[0],
        reuse=["often"],
        order=["random"],
        l=[0],
        clock=[3],
        seed=[-1],
    ),
    "knn_stream": _spoil({"k": 2}, delta=[0], k=["many"], clock=["sundial"]),
    "sabre_window": _spoil(CLOSE, {"omega": 10, "advance": 4, **CLOSE}, advance=[0], long_run=[2], fill=["random"]),
    "burel_window": [{"omega": 0, "models": [BetaLikeness("ill", 2)]}],
    "windowed": [{"omega": -5, "method": Mondrian(), "models": [KAnonymity(2)]}],
}

# A kind of column and distinct raw values of it; none for a kind that only published columns have.
KINDS: dict[str, list[tuple[Any, list[Any]]]] = {
    "numeric": [
        (numeric(), [41, 30, 7, 8, 120]),
        (numeric(-5, 5), [-5.0, 0.25, -1e-3, 5.0]),
        (numeric(0, 60, bins=4), [0, 14.5, 15, 31, 60]),
        (numeric(step=5), ["3", "4", "5", "11"]),
        (numeric(0, 120, top=90, bottom=18), [3, 18, 19, 40, 89, 90, 117]),
        (numeric(step=0.5, coarsen=True, top=9), [0.2, 0.4, 3.5, 8.99, 9, 12]),
    ],
    "date": [
        (date(), ["2024-03-17", "2024-01-02", "2031-05-01", "2024-12-31", "2023-12-31"]),
        (date(["month", "year"], lo="2020-01-01", hi="2029-12-31"), ["2024-03", "2024-04", "2020-01"]),
        (date(level="year"), ["2024-03-17", "2024-01-02", "2031-05-01"]),
        (date(["year"], reference="2024-12-31"), ["1930-03-17", "1934-12-31", "1935-01-01", "1941-05-01"]),
        (date(["day", "quarter"]), [np.datetime64("2024-03-17"), np.datetime64("2024-02-29"), np.datetime64("2025-02-28")]),
    ],
    "prefix": [
        (prefix(), ["47605", "47602", "47906", "12345"]),
        (prefix(3), ["äöü", "äöa"]),
        (prefix(), ["1", "12", "123", "2"]),
        (prefix(keep=3), ["02139", "02142", "02239", "99"]),
    ],
    "datetime": [
        (datetime(), ["2024-03-17T13:45:10", "2024-03-17T13:45:59", "2024-03-17T13:46:00", "2024-02-29T00:00:00"]),
        (datetime(["minute", "day"], lo="2024-03-01", hi="2024-03-31"), ["2024-03-17T13:45", "2024-03-17T23:59"]),
        (datetime(["hour", "month"]), ["2024-03-17T13", "2024-03-18T00", "2023-12-31T23"]),
    ],
    "duration": [
        (duration("minute"), ["PT1H30M", "PT45M", "0:12:00", "90"]),
        (duration("hour", 0, 48, step=0.5), ["PT36H", "0:30:00", "PT90S"]),
        (duration("second", 0, 60, bins=4), ["PT0S", "PT15S", "PT31S", "PT60S"]),
        (duration("day"), [1, 3, 12]),
    ],
    "point": [
        (point(), ["48.137,11.575", "48.138,11.576", "52.52,13.405", "-33.86,151.21", "90,180", "0,0"]),
        (point(3), ["48.137,11.575", "48.2,11.6", "-90,-180"]),
        (point(5, grid="h3"), ["48.137,11.575", "48.138,11.576", "52.52,13.405"]),
    ],
    "itemset": [
        (itemset(prefix(3)), ["E11,I10", "E12,I10", "E11", "E10,E11,I10", "J45"]),
        (
            itemset(Hierarchy.from_nested(JOB)),
            ["clerk,lawyer", "clerk", "farmer,sailor", "herder,sailor", "clerk,herder,farmer"],
        ),
        (itemset(flat(), ";"), ["a", "a;b", "b"]),
    ],
    "flat": [(flat(), ["f", "m", "京都", "a, b"]), (flat(), [True, False]), (flat(), ["only"]), (flat(), [3, 4.5])],
    "tree": [
        (Hierarchy.from_nested(JOB), ["clerk", "farmer", "sailor"]),
        (Hierarchy.from_nested(JOB, from_data=True), ["clerk", "farmer", "sailor"]),
        (
            Hierarchy({"all": {"a": {"a1": ["x", "y"], "a2": ["z"]}, "b": {"b1": ["u", "v"]}}}, level=1),
            ["x", "y", "z", "u", "v"],
        ),
        (Hierarchy.from_nested({"all": {"a": {"a1": ["x"]}, "b": ["y", "z"]}}), ["x", "z"]),
        (Hierarchy.intervals(lo=0, hi=100, width=10, levels=[2, 5]), [0, 9.5, 10, 55, 100]),
        (Hierarchy.quantiles([1, 2, 3, 4, 50, 60, 70, 80], bins=4), [1, 2, 3, 50, 80]),
        (Hierarchy.rare({"flu": 90, "gout": 2, "acne": 1}, limit=5), ["flu", "gout", "acne"]),
    ],
    "written": [(WrittenNodes({"47***": "group", "47605": "value"}), [])],
    "nodes": [(Nodes({"47***": 3, "47605": 1}, 9), [])],
}
