"""FcmDraw: rows are clustered by their sensitive values into groups of one size; every class draws rows from each of them.

Guarantees. There are at most floor(n/k) classes and their sizes differ by one at most, so each has k rows; its sensitive
values are spread as those of the table are. Classes that still do not meet a guarantee are merged until every union, judged
again, meets all of them.

Source: the paper on multiple sensitive attributes, sec. 4.1, algorithm 1, pseudocodes 1 and 2.

Different from the source:
- every row is placed for any sizes of the groups (as printed, a group gives two rows to a class at most: of groups of 2 and 5
  one row is lost, and an empty group loses the table);
- a union is judged again (as printed every class is checked once, and the union of two may break t);
- trees are in an isometric embedding, each sensitive attribute with variance 1, so that means exist; merging looks at the
  boxes of classes, not at nodes of a tree, between which the source has no distance;
- groups of exactly one size: fuzzy c-means gives "approximately" equal ones; a crisp step follows;
- rows that agree in all sensitive attributes are grouped as one point; which of them goes where is free, and they are dealt
  far apart;
- the source has k groups; `groups=None` also tries 4k, 2k, k/2 and k/4, each adjusted to the number of rows as k is. More help
  a strict t, fewer a loose one: a class then draws several rows of a group, and k holds as before;
- what a group has left over is dealt on from class to class, so that the first class does not get it all;
- seeds come from the seed of the run; k counts persons; and `polish` and the last cut as in `Sabre`.

Fuzzy c-means costs O(combinations of sensitive values * groups^2) a round; `grouping="auto"` takes balanced assignment where
that is more than 2^25 for the number of groups in question. A fill is about O(n log n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.method import Progress
from closeknit.core.model import Model, least_rows
from closeknit.core.params import choice
from closeknit.core.table import Outcome, Table
from closeknit.methods.group_draw import GroupDraw, choose_secrets, numbers_of_groups
from closeknit.plans.fcm import FUZZY_WORK, choose_variant, fcm_groups
from closeknit.plans.groups import Cells
from closeknit.search.candidate_search import Candidates


@dataclass(frozen=True)
class FcmDraw(GroupDraw):
    """For guarantees on several sensitive attributes at once.

    Args:
        grouping: "fuzzy", "balanced", or "auto", which takes balanced where fuzzy c-means costs too much.
        groups: How many groups; None tries several numbers around k.
        fill: How rows are picked: "hilbert", "knn" or "sweep".
        polish: Whether rows of one bucket are exchanged between classes afterwards while the loss falls.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.3), ck.TCloseness("stay", 0.2)]
    >>> ck.anonymize(table, schema, models, FcmDraw()).certificate.ok
    True
    """

    name = "fcm_draw"
    affordable = FUZZY_WORK

    grouping: str = "auto"
    groups: int | None = None
    fill: str = "knn"
    polish: bool = True

    def __post_init__(self) -> None:
        choice("grouping", self.grouping, ("auto", "fuzzy", "balanced"))
        super().__post_init__()

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Group, draw, judge; the notes say which grouping ran for which number of groups."""
        counts = numbers_of_groups(len(table), max(least_rows(models), 1), self.groups)
        cells = Cells.of(table, choose_secrets(table, models))
        variants = {c: choose_variant(cells, c, self.grouping, self.affordable) for c in counts}
        what = f"{self.name}: {len(cells):,} combinations of sensitive values"
        notes = [f"{what}, {c:,} groups by {VARIANTS[variant]}" for c, variant in variants.items()]
        candidates = Candidates(table, models, progress, "filling")

        def group(cells: Cells, c: int) -> NDArray[np.int32]:
            return fcm_groups(cells, c, variants[c])

        return Outcome(self._draw_classes(candidates, cells, counts, group, seed), notes=tuple(notes))


VARIANTS = {"fuzzy": "equi-sized fuzzy c-means", "balanced": "balanced assignment"}
