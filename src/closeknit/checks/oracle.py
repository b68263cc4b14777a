"""Independent definitions of the guarantees: dictionaries and rationals, one class at a time, deliberately slow.

Nothing here is shared with `models` or `kernels`, so that the two can check each other. A class is the list of its rows'
sensitive values (`None` = missing, suppressed ones left out; tuples where a guarantee combines several attributes), the
reference is that list for the whole release. `persons` names the person of each row of the class. `ground` defines the
distance: a list is an ordered domain, a nested mapping a tree (`None` marks a leaf), a function any distance between two
values, and None the equal distance.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import Any

from closeknit.checks.risk_oracle import average_risk, delta_presence, k_map, population_uniqueness, records_at_risk

Value = Hashable
Level = Fraction | Decimal | float
Shares = dict[Value, Fraction]
Verdict = tuple[Level, bool]


def oracle_level(name: str, values: Sequence[Value], reference: Sequence[Value], **params: Any) -> Level:
    """Return the level of a class; `params` are those of the model, with `persons` and `ground`.

    >>> oracle_level("t_closeness", ["a", "a"], ["a", "a", "b", "b"], t=1)
    Fraction(1, 2)
    """
    return DEFINITIONS[name](list(values), list(reference), params)[0]


def oracle_holds(name: str, values: Sequence[Value], reference: Sequence[Value], **params: Any) -> bool:
    """Return whether a class meets the guarantee.

    >>> oracle_holds("k_anonymity", ["a", "a"], ["a", "a", "b"], k=3)
    False
    """
    return DEFINITIONS[name](list(values), list(reference), params)[1]


def oracle_keeps(name: str, values: Sequence[Value], reference: Sequence[Value], **params: Any) -> bool:
    """Return whether a class meets the guarantee on the values as written and, where some look alike, on the folded values.

    >>> oracle_keeps("l_diversity", ["flu", "Flu"], [], l=2)
    False
    """
    folds = oracle_folds([*values, *reference], params.get("ground"))
    holds = oracle_holds(name, values, reference, **params)
    if not holds or all(value == fold for value, fold in folds.items()):
        return holds
    return oracle_holds(name, [folds[value] for value in values], [folds[value] for value in reference], **params)


def oracle_folds(values: Sequence[Value], ground: Any = None) -> dict[Value, Value]:
    """Return for each value the first one that it looks like, in the order of the tree, else of the texts.

    >>> oracle_folds(["flu", "Flu ", "gout", None]) == {"flu": "Flu ", "Flu ": "Flu ", "gout": "gout", None: None}
    True
    """
    present = {value for value in values if value is not None}
    leaves = _leaves(_root(ground)) if isinstance(ground, Mapping) else sorted(present, key=str)
    order = [leaf for leaf in leaves if leaf in present]
    first: dict[str, Value] = {}
    return {None: None} | {value: first.setdefault(_fold_text(str(value)), value) for value in order}


INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)


def _fold_text(text: str) -> str:
    for _ in range(5):  # normalizing and case folding may require each other
        text = INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).casefold()
    return re.sub(r"\s+", " ", text).strip()


def oracle_alone(name: str, reference: Sequence[Value], **params: Any) -> dict[Value, int]:
    """Return the values that may stand alone in a class, with their rows: a class of only this value meets the limit.

    >>> oracle_alone("t_closeness", ["a", "a", "a", "b"], t="1/4")
    {'a': 3}
    """
    rows = Counter(reference)
    return {value: count for value, count in rows.items() if oracle_holds(name, [value] * count, reference, **params)}


def oracle_vacuous(name: str, reference: Sequence[Value], k: int, **params: Any) -> bool:
    """Return whether every value with at least `k` rows may stand alone, and there is one.

    >>> [oracle_vacuous("t_closeness", ["a", "a", "a", "b"], k, t="1/4") for k in (1, 2, 4)]
    [False, True, False]
    """
    frequent = [value for value, count in Counter(reference).items() if count >= k]
    return bool(frequent) and set(frequent) <= set(oracle_alone(name, reference, **params))


def _exact(value: object) -> Fraction:
    return Fraction(str(value))


def _shares(values: Sequence[Value]) -> Shares:
    return {value: Fraction(count, len(values)) for value, count in Counter(values).items()}


# k-anonymity and diversity ------------------------------------------------------------------------------------------


def _k_anonymity(values: list[Value], reference: list[Value], params: Mapping[str, Any]) -> Verdict:
    persons = params.get("persons")
    heads = len(values) if persons is None else len(set(persons))
    return Fraction(heads), heads >= params["k"]


def _l_diversity(values: list[Value], reference: list[Value], params: Mapping[str, Any]) -> Verdict:
    kind, least, persons = params.get("kind", "distinct"), _exact(params["l"]), params.get("persons")
    if not params.get("missing_is_a_value"):
        persons = persons and [person for person, value in zip(persons, values, strict=True) if value is not None]
        values = [value for value in values if value is not None]
    if not values:
        return (Fraction(0) if kind == "recursive" else math.inf), True
    carriers: dict[Value, set[Hashable]] = {}
    for row, value in enumerate(values):
        carriers.setdefault(value, set()).add(row if persons is None else persons[row])
    counts = sorted((len(people) for people in carriers.values()), reverse=True)
    heads = len(set().union(*carriers.values()))
    distinct = _matching(carriers)
    if kind == "distinct":
        return Fraction(distinct), distinct >= least
    if kind == "frequency":
        return min(Fraction(heads, counts[0]), Fraction(distinct)), counts[0] * least <= heads and distinct >= least
    if kind == "recursive":
        tail = sum(counts[int(least) - 1 :])
        if tail == 0 or distinct < least:
            return math.inf, False
        return Fraction(counts[0], tail), counts[0] < _exact(params["c"]) * tail
    total = sum(counts)
    with localcontext() as context:
        context.prec = 80
        entropy = -sum(((Decimal(c) / total) * (Decimal(c) / total).ln() for c in counts), Decimal(0))
        level = min(entropy.exp(), Decimal(distinct))
    enough = total**total >= least**total * math.prod(c**c for c in counts)
    return level, bool(enough) and distinct >= least


def _matching(carriers: Mapping[Value, set[Hashable]]) -> int:
    """Return the most values that can be assigned to different persons who hold them (augmenting paths)."""
    given: dict[Hashable, Value] = {}

    def give(value: Value, visited: set[Hashable]) -> bool:
        for person in carriers[value]:
            if person in visited:
                continue
            visited.add(person)
            if person not in given or give(given[person], visited):
                given[person] = value
                return True
        return False

    return sum(give(value, set()) for value in carriers)


# t-closeness --------------------------------------------------------------------------------------------------------


def _diverse_slicing(values: list[Value], reference: list[Value], params: Mapping[str, Any]) -> Verdict:
    """Judge one bucket; `checks.worlds` judges whole releases."""
    return _l_diversity(values, reference, {**params, "kind": "frequency"})


def _t_closeness(values: list[Value], reference: list[Value], params: Mapping[str, Any]) -> Verdict:
    if not values:
        return Fraction(0), True
    if isinstance(values[0], tuple):
        level = joint_distance(values, reference)
    else:
        level = earth_movers_distance(_shares(reference), _shares(values), params.get("ground"))
    return level, level <= _exact(params["t"])


def joint_distance(rows: Sequence[Value], reference: Sequence[Value]) -> Fraction:
    """Return the total variation of combined attributes, each row the tuple of its values.

    >>> joint_distance([("x", "u"), ("y", "v")], [("x", "u"), ("y", "v"), ("x", "v"), ("y", "u")])
    Fraction(1, 2)
    """
    here, there = Counter(rows), Counter(reference)
    apart = [abs(Fraction(here[pair], len(rows)) - Fraction(there[pair], len(reference))) for pair in {*here, *there}]
    return sum(apart, Fraction(0)) / 2


def earth_movers_distance(p: Shares, q: Shares, ground: Any = None) -> Fraction:
    """Return the earth mover's distance, by the definition of the ground distance.

    >>> earth_movers_distance({1: Fraction(1)}, {3: Fraction(1)}, [1, 2, 3])
    Fraction(1, 1)
    """
    surplus = {value: q.get(value, Fraction(0)) - p.get(value, Fraction(0)) for value in {*p, *q}}
    if ground is None:
        return sum((abs(x) for x in surplus.values()), Fraction(0)) / 2
    if callable(ground):
        return transport(p, q, ground)
    if isinstance(ground, Mapping):
        root = _root(ground)
        below = _costs(root, surplus)[1] if None not in surplus else _costs({**root, None: None}, surplus)[1]
        return below / _height(root)
    running = accumulate(surplus.get(value, Fraction(0)) for value in ground[:-1])
    return sum((abs(x) for x in running), Fraction(0)) / max(len(ground) - 1, 1)


def _root(tree: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the children of the root: a single named top node with children is the root itself."""
    (only,) = tree.values() if len(tree) == 1 else (None,)
    return only if only else tree


def _height(tree: Mapping[Any, Any] | None) -> int:
    return 1 + max(_height(child) for child in tree.values()) if tree else 0


def _costs(tree: Mapping[Any, Any], surplus: Shares) -> tuple[Fraction, Fraction]:
    """Return the surplus under a node, and height times the amount moved inside it, summed over the nodes under it."""
    extras, cost = [], Fraction(0)
    for label, child in tree.items():
        extra, below = _costs(child, surplus) if child else (surplus.get(label, Fraction(0)), Fraction(0))
        extras.append(extra)
        cost += below
    lack = -sum((e for e in extras if e < 0), Fraction(0))
    spare = sum((e for e in extras if e > 0), Fraction(0))
    return spare - lack, cost + _height(tree) * min(spare, lack)


def transport(p: Shares, q: Shares, distance: Callable[[Value, Value], Fraction]) -> Fraction:
    """Return the cheapest transport for any distance, by cheapest paths that may send goods back.

    >>> transport({"a": Fraction(1)}, {"a": Fraction(1, 2), "b": Fraction(1, 2)}, lambda u, v: Fraction(u != v))
    Fraction(1, 2)
    """
    supply, demand = dict(p), dict(q)
    sent: dict[tuple[Value, Value], Fraction] = {}
    cost = Fraction(0)
    while any(supply.values()):
        path = _cheapest_path(supply, demand, sent, distance)
        (source, _), (_, sink) = path[0], path[-1]
        back = [sent[pair] for i, pair in enumerate(path) if i % 2]
        amount = min([supply[source], demand[sink], *back])
        for i, (u, v) in enumerate(path):
            sign = -1 if i % 2 else 1
            sent[u, v] = sent.get((u, v), Fraction(0)) + sign * amount
            cost += sign * amount * distance(u, v)
        supply[source] -= amount
        demand[sink] -= amount
    return cost


def _cheapest_path(
    supply: Shares, demand: Shares, sent: Mapping[tuple[Value, Value], Fraction], distance: Callable[[Value, Value], Fraction]
) -> list[tuple[Value, Value]]:
    """Return the pairs (from, to) of a path from a supply to a demand; every second pair sends goods back (Bellman-Ford)."""
    left: dict[Value, tuple[Fraction, list[Any]]] = {u: (Fraction(0), []) for u, rest in supply.items() if rest > 0}
    right: dict[Value, tuple[Fraction, list[Any]]] = {}
    changed = True
    while changed:
        changed = False
        for u, (cost, path) in list(left.items()):
            for v in demand:
                if v not in right or cost + distance(u, v) < right[v][0]:
                    right[v] = cost + distance(u, v), [*path, (u, v)]
                    changed = True
        for (u, v), amount in sent.items():
            if amount > 0 and v in right and (u not in left or right[v][0] - distance(u, v) < left[u][0]):
                left[u] = right[v][0] - distance(u, v), [*right[v][1], (u, v)]
                changed = True
    return min((right[v] for v, rest in demand.items() if rest > 0), key=lambda found: found[0])[1]


# beta-likeness and delta-disclosure ---------------------------------------------------------------------------------


def _beta_likeness(values: list[Value], reference: list[Value], params: Mapping[str, Any]) -> Verdict:
    kind = params.get("kind", "enhanced")
    p, q = _shares(reference), _shares(values)
    level, capped = Fraction(0), False
    for group in _groups(kind, p, params):
        rho1 = sum((p.get(value, Fraction(0)) for value in group), Fraction(0))
        rho2 = sum((q.get(value, Fraction(0)) for value in group), Fraction(0))
        if rho2 > rho1:
            if rho1 == 0:
                return math.inf, False
            level = max(level, (rho2 - rho1) / rho1)
            capped |= kind != "basic" and rho2 / rho1 > 1 - _log(rho1)
    return (math.inf if capped else level), not capped and level <= _exact(params["beta"])


def _groups(kind: str, p: Shares, params: Mapping[str, Any]) -> Iterator[list[Value]]:
    if kind == "semantic":
        yield from _nodes(_root(params["ground"]), 0, params["below"])
        return
    yield from ([value] for value in p)
    if kind == "range":
        domain = sorted((value for value in p if value is not None), key=_exact)
        numbers = [_exact(value) for value in domain]
        eps = _exact(params["eps"])
        for i, low in enumerate(numbers):
            for j in range(i, len(numbers)):
                if (numbers[j] - low) / (low if params.get("relative") else 1) <= eps:
                    yield domain[i : j + 1]


def _nodes(tree: Mapping[Any, Any], depth: int, below: int) -> Iterator[list[Value]]:
    if depth > below:
        yield list(_leaves(tree))
    for child in tree.values():
        if child:
            yield from _nodes(child, depth + 1, below)


def _leaves(tree: Mapping[Any, Any]) -> Iterator[Value]:
    for label, child in tree.items():
        if child:
            yield from _leaves(child)
        else:
            yield label


def _log(x: Fraction) -> Fraction:
    """Return the natural logarithm to 80 digits, as the rational of those digits."""
    with localcontext() as context:
        context.prec = 80
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).ln())


def _delta_disclosure(values: list[Value], reference: list[Value], params: Mapping[str, Any]) -> Verdict:
    p, q = _shares(reference), _shares(values)
    if not values:
        return Fraction(0), True
    if set(p) != set(q):
        return math.inf, False
    level = max(abs(_log(q[value] / share)) for value, share in p.items())
    return level, level < _exact(params["delta"])


def _posterior_bound(values: list[Value], reference: list[Value], params: Mapping[str, Any]) -> Verdict:
    """Classes change no odds; the law does, and `amplification` measures it."""
    return Fraction(1), True


def _transparency(values: list[Value], reference: list[Value], params: Mapping[str, Any]) -> Verdict:
    """Classes do not show it; the exact law of the method does, and its tests compute that."""
    return Fraction(0), True


def amplification(chances: Mapping[Value, Shares]) -> Fraction:
    """Return the largest ratio of two true values' probabilities of one written value: `chances[true][written]`.

    >>> amplification({"a": {"a": Fraction(3, 4), "b": Fraction(1, 4)}, "b": {"a": Fraction(1, 4), "b": Fraction(3, 4)}})
    Fraction(3, 1)
    """
    written = {value for shares in chances.values() for value in shares}
    return max(one[value] / other[value] for value in written for one in chances.values() for other in chances.values())


DEFINITIONS: dict[str, Callable[[list[Value], list[Value], Mapping[str, Any]], Verdict]] = {
    "k_anonymity": _k_anonymity,
    "l_diversity": _l_diversity,
    "t_closeness": _t_closeness,
    "beta_likeness": _beta_likeness,
    "delta_disclosure": _delta_disclosure,
    "diverse_slicing": _diverse_slicing,
    "posterior_bound": _posterior_bound,
    "transparency": _transparency,
    "k_map": k_map,
    "average_risk": average_risk,
    "records_at_risk": records_at_risk,
    "delta_presence": delta_presence,
    "population_uniqueness": population_uniqueness,
}
