"""Joint sensitive attributes: each is protected alone, but one of them reveals another.

The adversary knows the quasi-identifiers of a person in the table and one of the person's sensitive values, and wants another
one. The number is the posterior of the likeliest value of the other, over every class, every known value in it and every
ordered pair of attributes. For an adversary who knows none of them the details give the total variation between the
combinations of all attributes in a class and in the whole release.

Source: the paper on multiple sensitive attributes and its open questions; the total variation is the equal distance of
`TCloseness` of several columns. Perturbed attributes, and attributes in different column groups, are left out, since nothing
joins them. `risk` is the largest posterior: the probability of being right about the most exposed person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import permutations

import numpy as np

from closeknit.attacks.beliefs import NotApplicable, refuse_unknown
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_disclosed, not_shown, percent
from closeknit.core.classes import Classes
from closeknit.core.combined_secrets import join_secrets, render_secret, secret_of
from closeknit.core.exact import sum_products
from closeknit.core.reading import Reading, list_known_columns, secret_codes
from closeknit.core.row_sorting import Coded, groups
from closeknit.kernels.arrays import Int32
from closeknit.models.t_closeness import TCloseness


def joint_secrets(reading: Reading, columns: Sequence[str] | None = None) -> Finding:
    """Measure how well one sensitive attribute reveals another inside a class.

    Args:
        reading: The release as its form reads it (`reading_of`).
        columns: At least two sensitive attributes; None takes all of the release.

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
    finding = partial(
        Finding,
        attack="joint_secrets",
        knows=f"{IN_TABLE}, and one of the person's sensitive values",
        column=names,
        measure="largest posterior of one sensitive value given another",
    )
    class_of, count = _find_classes(reading, names)
    coded = {name: secret_codes(reading.columns[name], name, reading.schema) for name in names}
    codes, domain = join_secrets(list(coded.values()))
    shown = codes >= 0
    rows = int(shown.sum())
    if rows == 0:
        return finding(number=None, risk=0, sentence=not_shown(names))
    far = TCloseness(names, 1).levels(Classes.of(class_of, count, {names: (codes, domain)}))
    cells = class_of[shown], count
    parts = {name: (codes[shown], domain.size + 1) for name, (codes, domain) in coded.items()}
    found = {pair: _measure_pair(cells, *(parts[name] for name in pair)) for pair in permutations(names, 2)}
    known, wanted = max(found, key=lambda pair: found[pair])  # the first of equals
    chance, plain, mean = found[known, wanted]
    return finding(
        number=chance,
        risk=chance,
        sentence=f"An adversary who finds a person's class and knows `{known}` learns `{wanted}` {certainty(chance)} in the "
        f"worst case, with probability {percent(mean)} on average; {format_disclosed(plain, rows)}.",
        details={
            "known": known,
            "wanted": wanted,
            "mean": mean,
            "plain": plain,
            "plain_share": plain / rows,
            "total_variation": float(far.max()),
            "mean_total_variation": sum_products(far, np.bincount(class_of[shown], minlength=count)) / rows,
        },
    )


def joinable(reading: Reading) -> Iterator[tuple[str, ...]]:
    """Yield the sensitive attributes whose unperturbed cells belong together: all of them, or those of each column group.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat(), "wage": ck.flat()})
    >>> cells = Columns.of({"bucket": [1], "sex": ["f"], "disease": ["flu"], "wage": [3]})
    >>> [list(joinable(form.read(cells, schema))) for form in (ck.bucketized(), ck.multiset())]
    [[('disease', 'wage')], []]
    """
    secrets = reading.exact_secrets
    for group in reading.column_groups or (tuple(secrets),):
        together = tuple(name for name in group if name in secrets)
        if len(together) > 1:
            yield together


def _measure_pair(cells: Coded, known: Coded, wanted: Coded) -> tuple[float, int, float]:
    """Return the largest posterior of one attribute given another, the rows where it is 1, and the mean over rows."""
    rows = len(cells[0])
    given, _ = groups([cells, known], rows)
    pairs, _ = groups([cells, known, wanted], rows)
    counts, totals = np.bincount(pairs), np.bincount(given)
    owner = np.empty(len(counts), dtype=np.int64)
    owner[pairs] = given
    peaks = np.maximum.reduceat(counts, np.searchsorted(owner, np.arange(len(totals))))
    return float((peaks / totals).max()), int(totals[peaks == totals].sum()), float(peaks.sum() / rows)


def _refuse(reading: Reading, names: tuple[str, ...]) -> None:
    if len(names) < 2:
        what = "there are no two sensitive attributes, so none reveals another"
        raise NotApplicable(what, right="name at least two sensitive columns")
    secret_of(names)
    for name in names:
        refuse_unknown(reading, name)
        if name in reading.retained:
            raise NotApplicable("is perturbed, so it reveals no other attribute with certainty", column=name, right="omit it")
    if not any(set(names) <= set(group) for group in reading.column_groups or (names,)):
        what = f"{render_secret(names)}: they are in different column groups, so nothing joins them"
        raise NotApplicable(what, right="name sensitive attributes of one group")


def _find_classes(reading: Reading, names: tuple[str, ...]) -> tuple[Int32, int]:
    """Return the classes of these attributes: rows with the same known cells in the same bucket."""
    if not reading.column_groups:
        return reading.class_of, len(reading.classes)
    group = next(group for group in reading.column_groups if names[0] in group)
    known = list_known_columns(group, names, reading.schema)
    cells = [reading.cells(name).coded for name in known]
    return groups([(reading.class_of, len(reading.classes)), *cells], reading.columns.rows)
