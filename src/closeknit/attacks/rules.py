"""Association rules: an adversary who knows a few items of a person's basket infers another one (rho-uncertainty).

The adversary knows a set chi of at most `chi_most` items of a person's basket, and wants to know whether a further, sensitive
item is in it. The confidence of the rule chi -> item is the share of baskets with chi that also have the item. A release meets
rho-uncertainty if no rule has a confidence above rho; the number is the smallest such rho: the largest confidence over all chi
that occur in a basket. With `known_class` the adversary also knows the quasi-identifiers, and only baskets of the class count.

Baskets are the cells of a sensitive column (`flu;gout;ulcer`), or the rows that share a number in a published column (`by`). An
empty cell is an empty basket; a suppressed one (`*`) is not a basket.

Source: J. Cao, P. Karras, C. Raïssi, K.-L. Tan. rho-uncertainty: inference-proof transaction anonymization. PVLDB 3(1), 2010.
Every set of items that occurs has to be counted, rare ones in particular, so none can be pruned by its support. Equal baskets
are counted once; sets grow by one item at a time, and the search ends with the size at which a rule is certain. Cost: the sets
of that size in all different baskets, at most `most` of them; larger chi are then left out, and the finding reports it.
`risk` is the largest confidence: the probability of being right about the most exposed person.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import NotApplicable, refuse_unknown
from closeknit.attacks.finding import Detail, Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_count
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.kinds import texts_of
from closeknit.core.limits import MOST_COMBINATIONS
from closeknit.core.params import whole
from closeknit.core.reading import Reading, find_stars
from closeknit.core.row_sorting import groups
from closeknit.kernels.arrays import Int64

MOST = 1 << 22  # sets of items, with repetitions, that are examined for one size


@dataclass(frozen=True, eq=False)
class Baskets:
    """Distinct baskets: basket i has the items `items[starts[i]:starts[i+1]]`, ascending."""

    starts: Int64
    items: Int64
    owner: Int64  # class of each basket
    weights: Int64  # how often it occurs there
    names: list[str]


@dataclass(frozen=True)
class Rule:
    """chi -> item, with the baskets that follow it and those that have chi."""

    chi: tuple[int, ...]
    item: int
    support: int  # baskets with chi and the item
    base: int  # baskets with chi

    @property
    def confidence(self) -> float:
        """Share of baskets with chi that have the item."""
        return self.support / self.base


def association_rules(
    reading: Reading,
    column: str,
    chi_most: int = 3,
    items: Collection[str] | None = None,
    by: str | None = None,
    known_class: bool = False,
    separator: str = ";",
    most: int = MOST,
) -> Finding:
    """Find the rule of largest confidence from known items of a basket to another item.

    Args:
        reading: The release as its form reads it (`reading_of`).
        column: Sensitive attribute that holds the baskets, or their items with `by`.
        chi_most: Largest number of known items.
        items: Sensitive items; None takes all.
        by: Published column whose equal values make rows one basket; None reads each cell as a basket.
        known_class: Whether the adversary also knows the class.
        separator: Text between two items of a cell.
        most: Largest number of item sets that are examined for one size.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"drugs": ck.flat()})
    >>> cells = Columns.of({"sex": ["f", "f", "m"], "drugs": ["aspirin;insulin", "aspirin", "aspirin;insulin;iron"]})
    >>> print(association_rules(ck.generalized().read(cells, schema), "drugs", chi_most=1, items=["insulin"]))
    1.000  association rules of drugs: An adversary who knows that iron is in a person's `drugs` infers insulin
    with certainty (1 of 1 basket).
    """
    refuse_unknown(reading, column)
    chi_most, most = whole("chi_most", chi_most, 0), whole("most", most, 1, MOST_COMBINATIONS)
    if column in reading.retained:
        raise NotApplicable("is perturbed, so its cells are not true baskets", column=column, right="see homogeneity")
    found = _by_number(reading, column, by, known_class) if by else _by_cells(reading, column, separator, known_class)
    rule, examined = surest_rule(found, _flag_sensitive(found, items, column), chi_most, most)
    details: dict[str, Detail] = {"baskets": int(found.weights.sum()), "known_at_most": examined}
    if rule is not None:
        chi = ", ".join(found.names[i] for i in rule.chi)
        details |= {"known_items": chi, "item": found.names[rule.item], "support": rule.support, "base": rule.base}
    return Finding(
        attack="association_rules",
        knows=f"{IN_TABLE}, and some items of the basket"
        if known_class
        else "some items of the basket of a person in the table",
        column=column,
        measure="largest confidence of a rule",
        number=rule.confidence if rule else None,
        risk=rule.confidence if rule else 0,
        sentence=_sentence(found, rule, column, examined, examined < chi_most),
        details=details,
    )


def _sentence(found: Baskets, rule: Rule | None, column: str, examined: int, short: bool) -> str:
    left = f" Sets of more than {format_count(examined, 'known item')} were too many to examine." if short else ""
    if rule is None:
        return f"No basket of `{column}` shows a sensitive item, so no rule leads to one.{left}"
    chi = [found.names[i] for i in rule.chi]
    item, sure = found.names[rule.item], certainty(rule.confidence)
    if not chi:
        who = f"An adversary who knows no item infers {item} in a person's `{column}` {sure}"
    else:
        listed = ", ".join(chi[:-1]) + (" and " if chi[1:] else "") + chi[-1]
        are = "are" if chi[1:] else "is"
        who = f"An adversary who knows that {listed} {are} in a person's `{column}` infers {item} {sure}"
    return f"{who} ({rule.support:,} of {format_count(rule.base, 'basket')}).{left}"


def surest_rule(found: Baskets, wanted: NDArray[np.bool_], chi_most: int, most: int) -> tuple[Rule | None, int]:
    """Return the rule of largest confidence, and the size of chi up to which all sets were examined.

    Among equal rules the one with the fewest known items comes first, then the one of most baskets.

    >>> two = Baskets(np.array([0, 2, 3]), np.array([0, 1, 0]), np.zeros(2, int), np.array([1, 3]), ["aspirin", "insulin"])
    >>> surest_rule(two, np.array([False, True]), 2, 100)
    (Rule(chi=(), item=1, support=1, base=4), 2)
    """
    levels = [_empty_sets(found)]
    best: Rule | None = None
    for size in range(chi_most + 1):  # of chi; sets of chi and the item have one more
        last = levels[-1]
        if size and last.rows_after(found) > most:
            return best, size - 1
        levels.append(last.extend_sets(found, levels[-2] if size else None))
        rule = levels[-1].surest(last, wanted, levels)
        if rule and (best is None or rule.support * best.base > best.support * rule.base):
            best = rule
        if len(levels[-1].support) == 0 or (best and best.support == best.base):
            break
    return best, chi_most


@dataclass(frozen=True, eq=False)
class _Sets:
    """All sets of one size with their support, and each occurrence of one: its basket, and the item it ends with."""

    support: Int64  # [sets]
    keys: Int64  # [sets] ascending: number of the set without its last item * items + that item
    without: list[Int64]  # per place in the set: number of the set that lacks that item, one size down
    set_of: Int64  # [occurrences]
    basket: Int64
    after: Int64  # place of the basket's next item among all items

    def rows_after(self, found: Baskets) -> int:
        """Count the occurrences of the sets with one more item."""
        return int((found.starts[self.basket + 1] - self.after).sum())

    def extend_sets(self, found: Baskets, before: _Sets | None) -> _Sets:
        """Extend every set by every further item of its baskets."""
        more = found.starts[self.basket + 1] - self.after
        source = np.repeat(np.arange(len(more)), more)
        place = np.arange(len(source)) - np.repeat(np.cumsum(more) - more, more) + self.after[source]
        width = max(len(found.names), 1)
        keys, set_of = np.unique(self.set_of[source] * width + found.items[place], return_inverse=True)
        basket = self.basket[source]
        support = np.bincount(set_of, found.weights[basket], minlength=len(keys)).astype(np.int64)
        parent, last = keys // width, keys % width
        lacking = [np.searchsorted(self.keys, part[parent] * width + last) for part in self.without] if before else []
        return _Sets(support, keys, [*lacking, parent], set_of, basket, place + 1)

    def surest(self, smaller: _Sets, wanted: NDArray[np.bool_], levels: list[_Sets]) -> Rule | None:
        """Return the best rule whose items form one of these sets."""
        width, best = len(wanted), None
        members = _members(levels, width)
        for place, base_of in enumerate(self.without):
            item = members[place]
            base = smaller.support[base_of]
            confidence = np.where(wanted[item], self.support / base, -1.0) if len(base) else np.zeros(0)
            if len(confidence) == 0 or confidence.max() < 0:
                continue
            top = np.flatnonzero(confidence == confidence.max())
            one = int(top[np.argmax(self.support[top])])
            chi = tuple(int(members[other][one]) for other in range(len(members)) if other != place)
            rule = Rule(chi, int(item[one]), int(self.support[one]), int(base[one]))
            if best is None or (rule.support * best.base, rule.support) > (best.support * rule.base, best.support):
                best = rule
        return best


def _members(levels: list[_Sets], width: int) -> list[Int64]:
    """Return the items of the sets of the last level, place by place."""
    number, items = np.arange(len(levels[-1].keys)), []
    for level in levels[:0:-1]:
        key = level.keys[number]
        items.append(key % width)
        number = key // width
    return items[::-1]


def _empty_sets(found: Baskets) -> _Sets:
    """The empty set of each class: every basket has it."""
    classes = int(found.owner.max(initial=-1)) + 1
    support = np.bincount(found.owner, found.weights, minlength=classes).astype(np.int64)
    return _Sets(support, np.arange(classes), [], found.owner, np.arange(len(found.owner)), found.starts[:-1])


def _by_cells(reading: Reading, column: str, separator: str, known_class: bool) -> Baskets:
    """Read each cell as a basket."""
    if not separator:
        raise BadInput("separator='' separates nothing", right="give the text between two items, such as ';'")
    shown = reading.cells(column)
    kept = np.flatnonzero(~find_stars(reading.columns[column]))
    seen = reading.of(column)
    owner = seen.class_of[kept].astype(np.int64) if known_class else np.zeros(len(kept), np.int64)
    cells = [sorted({item.strip() for item in text.split(separator)} - {""}) for text in [*texts_of(shown.values), ""]]
    names = sorted({item for cell in cells for item in cell})
    number = {name: i for i, name in enumerate(names)}
    keys, weights = np.unique(owner * len(cells) + shown.codes[kept] % len(cells), return_counts=True)
    of_cell = [[number[item] for item in cell] for cell in cells]
    lengths = np.array([len(cell) for cell in of_cell], dtype=np.int64)[keys % len(cells)]
    first = np.cumsum([0, *map(len, of_cell)])[keys % len(cells)]
    pool = np.array([item for cell in of_cell for item in cell], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths) + np.repeat(first, lengths)
    return Baskets(starts, pool[place], keys // len(cells), weights, names)


def _by_number(reading: Reading, column: str, by: str, known_class: bool) -> Baskets:
    """Read the rows of one number as a basket, in one class, or in each of its classes where classes are known."""
    if by not in reading.columns:
        raise BadInput("is not in the release", column=by, right=suggest_name(by, reading.columns))
    if not any({column, by} <= set(group) for group in reading.column_groups or ((column, by),)):
        raise NotApplicable(f"is in another column group than '{column}', so nothing joins them", column=by)
    shown, numbers = reading.cells(column), reading.columns[by]
    kept = np.flatnonzero(~find_stars(reading.columns[column]))
    owner = reading.of(column).class_of[kept] if known_class else np.zeros(len(kept), np.int32)
    basket, count = groups([(owner, int(owner.max(initial=0)) + 1), numbers.take(kept).coded], len(kept))
    texts = texts_of(shown.values)
    order = np.argsort(np.array(texts, dtype=object), kind="stable")
    rank = np.append(np.argsort(order), -1)[shown.codes[kept]]
    pairs = np.unique((basket.astype(np.int64) * (len(texts) + 1) + rank)[rank >= 0])
    starts = np.searchsorted(pairs, np.arange(count + 1) * (len(texts) + 1))
    classes = np.zeros(count, np.int64)
    classes[basket] = owner
    return Baskets(starts, pairs % (len(texts) + 1), classes, np.ones(count, np.int64), [texts[i] for i in order])


def _flag_sensitive(found: Baskets, items: Collection[str] | None, column: str) -> NDArray[np.bool_]:
    """Return which items are sensitive."""
    if items is None:
        return np.ones(len(found.names), dtype=bool)
    sensitive = {items} if isinstance(items, str) else set(items)
    for item in sorted(sensitive - set(found.names)):
        raise BadInput(f"no basket has the item '{item}'", column=column, right="name items as they are written")
    return np.array([name in sensitive for name in found.names], dtype=bool)
