"""PcaDraw: rows are sorted by the first principal component of their sensitive values; every class draws from each run of them.

Guarantees. As `FcmDraw`: classes of at least k rows, and those that do not meet a guarantee are merged until all hold.

Source: the paper on multiple sensitive attributes, sec. 4.2, algorithm 2.

Different from the source, in addition to what `FcmDraw` lists (no row lost, unions judged again, several numbers of groups):
- `embedding="tree"` (default): trees in their isometric embedding, and each sensitive attribute scaled to variance 1
  (`scaled`). With `"one-hot"` and `scaled=False` columns are as printed: a number from 1 to 16 next to zeros and ones decides
  alone;
- the smallest run gives the number of classes (as printed the first one does, which for k = 2 and an odd n is the larger);
- signs and ties are settled by rule: the largest loading is positive, tied eigenvalues take the direction nearest to an axis,
  equal scores follow the second component.

Cost: O(combinations of sensitive values * axes^2) and a sort; a fill is about O(n log n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from closeknit.core.method import Progress
from closeknit.core.model import Model, least_rows
from closeknit.core.params import choice
from closeknit.core.table import Outcome, Table
from closeknit.methods.group_draw import GroupDraw, choose_secrets, numbers_of_groups
from closeknit.plans.groups import Cells, pca_groups
from closeknit.search.candidate_search import Candidates


@dataclass(frozen=True)
class PcaDraw(GroupDraw):
    """For guarantees on several sensitive attributes at once, also of large tables.

    Args:
        groups: How many groups; None tries several numbers around k.
        fill: How rows are picked: "hilbert", "knn" or "sweep".
        polish: Whether rows of one bucket are exchanged between classes afterwards while the loss falls.
        embedding: "tree", or "one-hot" as in the source.
        scaled: Whether each sensitive attribute is scaled to variance 1.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.3), ck.TCloseness("stay", 0.2)]
    >>> ck.anonymize(table, schema, models, PcaDraw()).certificate.ok
    True
    """

    name = "pca_draw"

    groups: int | None = None
    fill: str = "knn"
    polish: bool = True
    embedding: str = "tree"
    scaled: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("embedding", self.embedding, ("tree", "one-hot"))
        choice("scaled", self.scaled, (True, False))

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Sort and cut, draw, judge."""
        counts = numbers_of_groups(len(table), max(least_rows(models), 1), self.groups)
        cells = Cells.of(table, choose_secrets(table, models), self.embedding, self.scaled)
        tried = " or ".join(f"{c:,}" for c in counts)
        note = f"{self.name}: {len(cells):,} combinations of sensitive values, {tried} groups by the first principal component"
        candidates = Candidates(table, models, progress, "filling")
        return Outcome(self._draw_classes(candidates, cells, counts, pca_groups, seed), notes=(note,))
