"""Record linkage: an adversary who knows a person's quasi-identifiers looks for that person's row.

The adversary knows the quasi-identifiers of a person in the table. Where cells are generalized, any row of the class may be the
right one: 1 / (its rows, or persons where the reading knows them). Rows of other classes whose cells contain those of the class
cover its members too; an adversary who does not know the class has to choose among these as well. Where columns are grouped
(bucketized, sliced, multiset, permuted), cells are exact and the row of quasi-identifiers is found as written: the adversary
still has to guess which cell of the sensitive attribute belongs to it, one of those in its bucket next to the same known cells.
The details count the rows whose quasi cells occur once in the whole release: these reveal who is in the table.

Source: the dissertation on methods to achieve t-closeness, ch. 2 (record linkage, k-anonymity).
Relations between nodes that a release does not declare are unknown here; such cells contain only themselves, which can only
increase the numbers. `risk` is the largest probability of choosing the right row.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.finding import Detail, Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_count, percent, place
from closeknit.core.columns import Column
from closeknit.core.combined_secrets import Secret, render_secret
from closeknit.core.domain import FAR, read_ranges
from closeknit.core.errors import BadInput
from closeknit.core.kinds import Kind, texts_of
from closeknit.core.reading import Reading
from closeknit.core.tree import STAR
from closeknit.kernels.arrays import Reals

LOOKS = 1000  # classes that are compared with all others


def record_linkage(reading: Reading, column: Secret | None = None) -> Finding:
    """Measure how well the row of a person can be found.

    Args:
        reading: The release as its form reads it (`reading_of`).
        column: Sensitive attribute whose cell is looked for, in a form of column groups; None elsewhere.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"wage": ck.flat()})
    >>> print(record_linkage(ck.generalized().read(Columns.of({"sex": ["f", "f", "m"], "wage": [3, 4, 4]}), schema)))
    1.000  record linkage: In the worst case the right row is found with certainty, among 1 in its class; with probability
    66.7 % on average.
    """
    seen = reading.of(column)
    sizes = seen.classes.persons
    finding = partial(
        Finding,
        attack="record_linkage",
        knows=IN_TABLE,
        column=column if reading.column_groups else None,
        measure="largest 1 / size of the class",
    )
    if sizes.sum() == 0:
        return finding(number=None, risk=0, sentence="The release has no rows, so there is no row to find.")
    worst = int(np.argmin(sizes))
    chance, mean = 1 / int(sizes[worst]), len(sizes) / int(sizes.sum())
    details: dict[str, Detail] = {"mean": mean, "size": int(sizes[worst]), "class": place(seen, worst)}
    among = f"{certainty(chance)}, among {int(sizes[worst]):,} in its class; with probability {percent(mean)} on average."
    if not reading.column_groups:
        covering = _covering(reading, sizes)
        more = f" For a person whose class is unknown: {certainty(1 / covering)} at most." if covering > sizes[worst] else ""
        sentence = f"In the worst case the right row is found {among}{more}"
        details["covering"] = 1 / covering
    else:
        once, together = _count_unique(reading)
        wanted = "row of its bucket" if column is None else f"cell of `{render_secret(column)}`"
        sentence = (
            f"Quasi-identifiers are published exactly: the values of {together} are unique for {format_count(once, 'row')}. "
            f"In the worst case the right {wanted} is found {among}"
        )
        details |= {"seen_once": once, "seen_once_share": once / reading.columns.rows}
    return finding(number=chance, risk=chance, sentence=sentence, details=details)


def _count_unique(reading: Reading) -> tuple[int, str]:
    """Return the rows whose quasi cells occur once, and the columns, for the column group with the most such rows."""
    found = []
    for group in reading.column_groups:
        names = [name for name in group if name in reading.schema.quasi]
        alike, count = reading.group_rows(names)
        once = int((np.bincount(alike, minlength=count) == 1).sum()) if names else 0
        found.append((once, ", ".join(names) or "no column"))
    return max(found, key=lambda one: one[0])


def _covering(reading: Reading, sizes: NDArray[np.int64], looks: int = LOOKS) -> int:
    """Return a lower bound of the rows, or persons, whose cells contain those of any class.

    Classes are examined from the smallest on, until none can have fewer than the fewest so far, and at most `looks`. Rows
    that are `*` in every column contain all others.
    """
    first = np.unique(reading.class_of, return_index=True)[1]
    ranges = [
        _ranges(reading.columns[name].take(first), kind, reading.schema.missing) for name, kind in reading.schema.quasi.items()
    ]
    stars = np.logical_and.reduce([np.isneginf(lo) for lo, _ in ranges]) if ranges else np.ones(len(sizes), dtype=bool)
    least = np.where(stars, 0, sizes) + sizes[stars].sum()
    fewest = int(sizes.sum())
    for looked, index in enumerate(np.argsort(least, kind="stable").tolist()):
        if least[index] >= fewest:
            break
        if looked == looks:
            return int(least[index])  # no class that is left can have fewer
        contains = np.ones(len(sizes), dtype=bool)
        for lo, hi in ranges:
            contains &= (lo <= lo[index]) & (hi >= hi[index])
        fewest = min(fewest, int(sizes[contains].sum()))
    return fewest


def _ranges(column: Column, kind: Kind, markers: tuple[str, ...]) -> tuple[Reals, Reals]:
    """Return both ends of the cell of each row; a missing cell lies beyond all others and inside `*` alone."""
    texts = ["" if text in markers else text for text in texts_of(column.values)] + [""]
    if kind.name == "numeric":
        lo, hi = (np.clip(ends, -FAR, FAR) for ends in read_ranges(texts))  # `90+` holds no missing cell
    else:
        nodes = _nodes(kind)
        own = float(len(nodes)) + np.arange(len(texts))  # beyond all nodes: an undeclared cell contains only itself
        ends = np.array([nodes.get(text, (place, place)) for text, place in zip(texts, own.tolist(), strict=True)])
        lo, hi = ends[:, 0], ends[:, 1]
    star, missing = (np.array([text == cell for text in texts]) for cell in (STAR, ""))
    lo, hi = np.where(star, -np.inf, np.where(missing, np.inf, lo)), np.where(star | missing, np.inf, hi)
    return lo[column.codes], hi[column.codes]


def _nodes(kind: Kind) -> dict[str, tuple[float, float]]:
    """Return the leaf codes under each declared node."""
    try:
        tree = kind.declared_domain.tree
    except BadInput:
        return {}
    if tree is None:
        return {}
    return {label: (float(lo), float(hi)) for label, lo, hi in zip(tree.labels, tree.lo, tree.hi, strict=True)}
