"""Mondrian: the table is cut in two along one quasi-identifier, and each side again, while both sides meet every guarantee.

Guarantees. Nothing of its own: it starts with one class of everything, which has to meet every guarantee, and takes no cut
that a model vetoes, so every class meets what is requested, be it monotone or not. With t-closeness this is tMondrian, with
beta-likeness LMondrian, with delta-disclosure DMondrian.

Sources: the Mondrian paper, sec. 3 and 4; the thesis on SABRE and BUREL, sec. 3.5 and 4.4.2, where other guarantees veto cuts.
`Mondrian(split="relaxed", cut="median", dims="widest")` is theirs.

Different from the source:
- `dims="try-all"` (default) tries the cuts of all columns in the order of what both sides lose together; `"widest"` goes
  column by column, the one that loses most first. The first cut that no model vetoes is taken;
- `cut="best"` (default) offers up to eleven cuts of a column: between values next to each eighth of the rows, the largest
  child of the node over the class against the others, and (relaxed) through ties at each quarter; `"median"` the middle;
- `split="strict"` keeps rows of equal value together: the middle is offered on both sides of its tie, and in trees first one
  child against the others, which loses less than a cut in depth-first order;
- `split="relaxed"` (default) may divide rows of equal value, and deals them out evenly in the order of all their cells: were
  the first ones to go left, rows equal in every quasi-identifier would be separated by their sensitive values;
- missing values are a child of their own, in columns of numbers too;
- columns that lose nothing in a class, or have no importance, are not cut.

Cost: O(d n log n) for d columns and n rows, with `best` or `try-all` O(d^2 n log n), and one look at half the rows of a class
for each cut that is vetoed. Histograms of a side are counted from its rows, those of the other side by subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from closeknit.core.geometry import scales
from closeknit.core.method import Method, Progress, Vetoes
from closeknit.core.model import Model
from closeknit.core.params import choice
from closeknit.core.table import Outcome, Partition, Table
from closeknit.search.refine import Cuts, refine_partition, root_holds
from closeknit.search.vetoed_cuts import find_vetoed_cuts


@dataclass(frozen=True)
class Mondrian(Method):
    """Cuts for any guarantees.

    Args:
        split: "relaxed" may divide rows of equal value, "strict" does not.
        cut: "best" offers up to eleven cuts of a column, "median" the middle.
        dims: "try-all" tries the cuts of all columns, "widest" goes column by column.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(4), ck.TCloseness("disease", 0.25)], Mondrian())
    >>> release.certificate.ok, release.certificate.classes.smallest >= 4
    (True, True)
    """

    name = "mondrian"
    blind = True

    split: str = "relaxed"
    cut: str = "best"
    dims: str = "try-all"

    def __post_init__(self) -> None:
        choice("split", self.split, ("relaxed", "strict"))
        choice("cut", self.cut, ("median", "best"))
        choice("dims", self.dims, ("widest", "try-all"))

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Cut level by level; what cannot be cut any more is a class."""
        whole = Partition.whole(len(table))
        if not root_holds(table, models):
            return Outcome(whole)
        return Outcome(refine_partition(table, whole, models, scales(table), self._cuts, progress))

    def find_vetoes(self, table: Table, partition: Partition, models: Sequence[Model]) -> Vetoes:
        """No cut of a class that it offers is allowed."""
        return find_vetoed_cuts(table, partition, models, self._cuts)

    @property
    def _cuts(self) -> Cuts:
        return Cuts(self.split == "relaxed", self.cut == "best", self.dims == "try-all")
