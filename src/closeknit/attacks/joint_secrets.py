"""Joint secrets: secrets that are each spread well and yet belong together, so that one of them tells another.

The attacker knows the quasi-identifiers of somebody who is in the table and one of the person's secrets, and wants another one.
Computed, over every class and every value of the known secret in it: the posterior of the likeliest value of the other, for
every ordered pair of secrets. Beside it, of somebody who knows none: the total variation between the combinations of all the
secrets in a class and in the whole release.

Source: the paper on multiple sensitive attributes (several secrets at once) and what it leaves open; the total variation is the
equal distance of `TCloseness` of several columns. Left out: perturbed secrets, and secrets in different groups of columns,
since there nothing joins them. `risk` is the largest posterior: the probability to be right about the worst-off person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import NotApplicable, refuse_unknown
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_count, not_shown, percent
from closeknit.core.classes import Classes
from closeknit.core.combined_secrets import join_secrets, render_secret, secret_of
from closeknit.core.reading import Reading, list_known_columns, secret_codes, without_markers
from closeknit.core.row_sorting import Coded, groups
from closeknit.models.t_closeness import TCloseness

Int32 = NDArray[np.int32]


def joint_secrets(reading: Reading, columns: Sequence[str] | None = None) -> Finding:
    """How well one secret tells another inside a class; all secrets of the release if none are named.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat(), "wage": ck.flat()})
    >>> cells = Columns.of({"sex": ["f"] * 4, "disease": ["flu", "flu", "gout", "gout"], "wage": [1, 1, 2, 3]})
    >>> found = joint_secrets(ck.generalized().read(cells, schema))
    >>> found.number, found.details["known"], found.details["plain"]
    (1.0, 'wage', 4)
    """
    names = tuple(reading.schema.sensitive) if columns is None else tuple(columns)
    _refuse(reading, names)
    knows, measure = f"{IN_TABLE}, and one of their secrets", "largest posterior of one secret beside another"
    class_of, count = _find_classes(reading, names)
    coded = {name: secret_codes(reading.columns[name], name, reading.schema) for name in names}
    codes, domain = join_secrets(list(coded.values()))
    shown = codes >= 0
    rows = int(shown.sum())
    if rows == 0:
        return Finding(
            attack="joint_secrets", knows=knows, column=names, measure=measure, number=None, risk=0, sentence=not_shown(names)
        )
    far = TCloseness(names, 1).levels(Classes.of(class_of, count, {names: (codes, domain)}))
    cells = class_of[shown], count
    parts = {name: (codes[shown], domain.size + 1) for name, (codes, domain) in coded.items()}
    found = {pair: _measure_pair(cells, *(parts[name] for name in pair)) for pair in permutations(names, 2)}
    known, wanted = max(found, key=lambda pair: found[pair])  # the first of equals
    chance, plain, mean = found[known, wanted]
    told = f"it is plain of {format_count(plain, 'row')} ({percent(plain / rows)})" if plain else "it is plain of nobody"
    sentence = (
        f"Whoever finds the class of a person and knows {known} tells {wanted} {certainty(chance)} at worst, with probability "
        f"{percent(mean)} on average; {told}."
    )
    return Finding(
        attack="joint_secrets",
        knows=knows,
        column=names,
        measure=measure,
        number=chance,
        risk=chance,
        sentence=sentence,
        details={
            "known": known,
            "wanted": wanted,
            "mean": mean,
            "plain": plain,
            "plain_share": plain / rows,
            "total_variation": float(far.max()),
            "mean_total_variation": float(far @ np.bincount(class_of[shown], minlength=count) / rows),
        },
    )


def joinable(reading: Reading) -> Iterator[tuple[str, ...]]:
    """The secrets that belong together in what was written, and are as they were: all at once, or those of a column group.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat(), "wage": ck.flat()})
    >>> cells = Columns.of({"bucket": [1], "sex": ["f"], "disease": ["flu"], "wage": [3]})
    >>> [list(joinable(form.read(cells, schema))) for form in (ck.bucketized(), ck.multiset())]
    [[('disease', 'wage')], []]
    """
    secrets = [name for name in reading.schema.sensitive if name not in reading.retained]
    for group in reading.column_groups or (tuple(secrets),):
        together = tuple(name for name in group if name in secrets)
        if len(together) > 1:
            yield together


def _measure_pair(cells: Coded, known: Coded, wanted: Coded) -> tuple[float, int, float]:
    """Of one secret beside another in every class: the largest posterior, rows where it is 1, and the mean over rows."""
    rows = len(cells[0])
    beside, _ = groups([cells, known], rows)
    pairs, _ = groups([cells, known, wanted], rows)
    counts, totals = np.bincount(pairs), np.bincount(beside)
    owner = np.empty(len(counts), dtype=np.int64)
    owner[pairs] = beside
    peaks = np.maximum.reduceat(counts, np.searchsorted(owner, np.arange(len(totals))))
    return float((peaks / totals).max()), int(totals[peaks == totals].sum()), float(peaks.sum() / rows)


def _refuse(reading: Reading, names: tuple[str, ...]) -> None:
    if len(names) < 2:
        raise NotApplicable("there are no two secrets, so none tells another", right="name at least two sensitive columns")
    secret_of(names)
    for name in names:
        refuse_unknown(reading, name)
        if name in reading.retained:
            raise NotApplicable("is perturbed, so it tells nothing for sure of another", column=name, right="leave it out")
    if not any(set(names) <= set(group) for group in reading.column_groups or (names,)):
        what = f"{render_secret(names)}: they stand in different groups of columns, so nothing joins them"
        raise NotApplicable(what, right="name secrets of one group")


def _find_classes(reading: Reading, names: tuple[str, ...]) -> tuple[Int32, int]:
    """The classes in which somebody sees these secrets: what is known beside them, in their bucket."""
    if not reading.column_groups:
        return reading.class_of, len(reading.classes)
    group = next(group for group in reading.column_groups if names[0] in group)
    known = list_known_columns(group, names, reading.schema)
    cells = [without_markers(reading.columns[name], reading.schema.missing) for name in known]
    beside = [(cell.codes + 1, len(cell.values) + 1) for cell in cells]
    return groups([(reading.class_of, len(reading.classes)), *beside], reading.columns.rows)
