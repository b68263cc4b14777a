"""Record linkage: whoever knows the quasi-identifiers of a person looks for that person's row.

The attacker knows the quasi-identifiers of somebody who is in the table. Where cells are generalized, any row of the own class
may be the right one: 1 / (its rows, or persons where the reading knows them). Rows of other classes whose cells contain those
of the class cover everybody in it too; who does not know the class has to choose among these as well. Where columns stand in
groups (bucketized, sliced, multiset, permuted), cells are exact and the row of quasi-identifiers is found as it stands: what
is left to guess is which cell of the secret belongs to it, one of those seen in its bucket, beside the same known cells. The
details say how many rows have quasi cells that occur once in the whole release: there it is seen who is in it.

Source: the dissertation on methods to achieve t-closeness, ch. 2 (record linkage, k-anonymity).
Relations between nodes that a release does not declare are not known here; such cells contain only themselves, which can only
make the numbers larger. `risk` is the largest probability to choose the right row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_count, percent, place
from closeknit.core.columns import Column
from closeknit.core.combined_secrets import Secret, render_secret
from closeknit.core.domain import read_ranges
from closeknit.core.errors import BadInput
from closeknit.core.kinds import Kind, texts_of
from closeknit.core.reading import Reading, without_markers
from closeknit.core.row_sorting import groups
from closeknit.core.tree import STAR

Reals = NDArray[np.float64]
LOOKS = 1000  # classes that are compared with all others


def record_linkage(reading: Reading, column: Secret | None = None) -> Finding:
    """How well the row of a person can be told; `column` names the secret whose cell is looked for in a form of groups.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"wage": ck.flat()})
    >>> print(record_linkage(ck.generalized().read(Columns.of({"sex": ["f", "f", "m"], "wage": [3, 4, 4]}), schema)))
    1.000  record linkage: At worst the right row is chosen for sure, out of 1 in its class; with probability 66.7 % on average.
    """
    seen = reading.of(column)
    sizes = seen.classes.persons
    measure = "largest 1 / size of the own class"
    if sizes.sum() == 0:
        return Finding(
            attack="record_linkage",
            knows=IN_TABLE,
            column=column,
            measure=measure,
            number=None,
            risk=0,
            sentence="The release has no rows, so there is none to find.",
        )
    worst = int(np.argmin(sizes))
    chance, mean = 1 / int(sizes[worst]), len(sizes) / int(sizes.sum())
    of = f"out of {int(sizes[worst]):,} in its class; with probability {percent(mean)} on average."
    if not reading.column_groups:
        covering = _covering(reading, sizes)
        more = f" Of a person whose class is not known: {certainty(1 / covering)} at most." if covering > sizes[worst] else ""
        sentence, details = f"At worst the right row is chosen {certainty(chance)}, {of}{more}", {"covering": 1 / covering}
    else:
        once, together = _count_unique(reading)
        wanted = "row of its bucket" if column is None else f"cell of {render_secret(column)}"
        sentence = (
            f"Quasi-identifiers stand in clear: of {format_count(once, 'row')} those of {together} occur once in the release. "
            f"At worst the right {wanted} is chosen {certainty(chance)}, {of}"
        )
        details = {"seen_once": once, "seen_once_share": once / reading.columns.rows}
    return Finding(
        attack="record_linkage",
        knows=IN_TABLE,
        column=column if reading.column_groups else None,
        measure=measure,
        number=chance,
        risk=chance,
        sentence=sentence,
        details={"mean": mean, "size": int(sizes[worst]), "class": place(seen, worst), **details},
    )


def _count_unique(reading: Reading) -> tuple[int, str]:
    """In the group of columns where most are: rows whose quasi cells occur once, and these columns."""
    found = []
    for group in reading.column_groups:
        names = [name for name in group if name in reading.schema.quasi]
        cells = [without_markers(reading.columns[name], reading.schema.missing) for name in names]
        alike, count = groups([(cell.codes + 1, len(cell.values) + 1) for cell in cells], reading.columns.rows)
        once = int((np.bincount(alike, minlength=count) == 1).sum()) if names else 0
        found.append((once, ", ".join(names) or "no column"))
    return max(found, key=lambda one: one[0])


def _covering(reading: Reading, sizes: NDArray[np.int64]) -> int:
    """The fewest rows, or persons, whose cells contain those of one class, over all classes; at least as many as told.

    Classes are looked at from the smallest on, until none can have fewer than the fewest so far, and at most `LOOKS`. Rows
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
        if looked == LOOKS:
            return int(least[index])  # no class that is left can have fewer
        contains = np.ones(len(sizes), dtype=bool)
        for lo, hi in ranges:
            contains &= (lo <= lo[index]) & (hi >= hi[index])
        fewest = min(fewest, int(sizes[contains].sum()))
    return fewest


def _ranges(column: Column, kind: Kind, markers: tuple[str, ...]) -> tuple[Reals, Reals]:
    """Both ends of the cell of each row; a missing cell lies beyond all others and inside `*` alone."""
    texts = ["" if text in markers else text for text in texts_of(column.values)] + [""]
    if kind.name == "numeric":
        lo, hi = read_ranges(texts)
    else:
        nodes = _nodes(kind)
        own = float(len(nodes)) + np.arange(len(texts))  # beyond all nodes: a cell of which nothing more is known
        ends = np.array([nodes.get(text, (place, place)) for text, place in zip(texts, own.tolist(), strict=True)])
        lo, hi = ends[:, 0], ends[:, 1]
    star, missing = (np.array([text == cell for text in texts]) for cell in (STAR, ""))
    lo, hi = np.where(star, -np.inf, np.where(missing, np.inf, lo)), np.where(star | missing, np.inf, hi)
    return lo[column.codes], hi[column.codes]


def _nodes(kind: Kind) -> dict[str, tuple[float, float]]:
    """Leaf codes under each node that is declared."""
    try:
        tree = kind.bind(np.array([], dtype=object))[0].tree
    except BadInput:
        return {}
    if tree is None:
        return {}
    return {label: (float(lo), float(hi)) for label, lo, hi in zip(tree.labels, tree.lo, tree.hi, strict=True)}
