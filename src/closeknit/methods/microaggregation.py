"""Microaggregation: classes of nearest rows from the outside inwards, formed with regard to the sensitive values.

Guarantees. `first="k"`: the row farthest from the mean of all free rows and its k - 1 nearest become a class; while that is
farther than `t` from the release, the next nearest rows are exchanged, one by one, for the member whose leaving helps most.
`first="t"`: k is raised to `ceil(n / (2(n-1)t + 1))`, rows are sorted by their sensitive value and cut into k subsets, and
every class takes the nearest row of each; for sensitive values all different, with k a divisor of n, that alone keeps an
ordered distance within t. Neither is relied upon: classes are measured, and those that do not meet a guarantee are merged
until all hold.

Source: the t-closeness microaggregation paper, algorithms 2 and 3.

Different from the source:
- several sensitive attributes and any ground distance (`first="k"`): an exchange lowers the largest of the distances minus
  their t;
- distances are Euclidean over columns weighted by importance, trees embedded without error (`core/embedding.py`);
- an exchange looks at `looked_at(n)` rows beyond the k nearest, not at all; a sensitive attribute of more than 4,096 values
  is seen there through 4,096 runs of them;
- more than 65,536 rows are first cut into runs along the Hilbert curve, so that the work does not grow with the square of n;
- `first="t"`: the bound fails where a sensitive value occurs twice (four rows with 0, 1, 1, 1 suffice: docs), so it is a
  start only; n need not be a multiple of k; in a tree subsets are cut along its depth-first order, which bounds nothing;
- merging is the shared repair, which prefers unions that hold; the source merges with the nearest centroid;
- `refine=True` also cuts classes further where both halves meet every guarantee. The source does not.

Other guarantees than t-closeness are measured and reached by merging. Nothing is drawn: the seed does not matter. Cost: about
n^2 * columns / k operations, 2^24 trial exchanges or 32 a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from closeknit.core.combined_secrets import Secret
from closeknit.core.embedding import leaf_points
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.geometry import points, scales
from closeknit.core.method import Method, Progress, Vetoes
from closeknit.core.model import Model, least_rows
from closeknit.core.params import choice
from closeknit.core.share_limits import Distance
from closeknit.core.table import Outcome, Partition, Table
from closeknit.kernels.arrays import Int32
from closeknit.kernels.clustering.microaggregation import Space, mix_classes, nearest_classes
from closeknit.kernels.geometry.sorted_buckets import curve, sort_buckets
from closeknit.plans.groups import adjust_k
from closeknit.plans.metric_tree import distances_of, secrets_of
from closeknit.search.refine import refine_partition
from closeknit.search.repair import repair_partition
from closeknit.search.vetoed_cuts import find_vetoed_cuts

TOGETHER = 1 << 16  # rows that are scanned for each other
TRIALS = 1 << 24  # exchanges tried on a table, and at least 32 a row


def count_candidates(n: int) -> int:
    """Rows beyond its k nearest that a class may exchange for, in a table of n.

    >>> count_candidates(1_000), count_candidates(45_222), count_candidates(1_000_000)
    (16777, 370, 32)
    """
    return max(32, TRIALS // max(n, 1))


@dataclass(frozen=True)
class Microaggregation(Method):
    """Nearest rows, k-anonymity first or t-closeness first.

    Args:
        first: "k" for k nearest rows and exchanges, "t" for one row of each subset along a sensitive attribute.
        column: The sensitive attribute to look at; None takes all with a limit on their distance.
        refine: Whether classes are cut further in the end.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.25)]
    >>> ck.anonymize(table, schema, models, Microaggregation()).certificate.ok
    True
    """

    name = "microaggregation"
    needs_bound = "size"
    blind = True

    first: str = "k"
    column: str | None = None
    refine: bool = False

    def __post_init__(self) -> None:
        choice("first", self.first, ("k", "t"))
        choice("refine", self.refine, (True, False))

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Classes, merged where they do not meet a guarantee."""
        k = least_rows(models)
        if k == 0:
            raise BadInput("microaggregation needs k", right="add KAnonymity(k) to the models")
        if len(table) < k:
            raise Unsatisfiable(f"{k}-anonymity", f"the table has {len(table):,} rows", f"ask for k of at most {len(table):,}")
        close = self._list_limits(table, models)
        progress("microaggregation", 0.2)
        class_of, count = _k_first(table, close, k) if self.first == "k" else _t_first(table, close, k)
        partition = repair_partition(table, Partition(class_of, count), models)
        partition = refine_partition(table, partition, models, scales(table)) if self.refine else partition
        runs = _runs(len(table), k)
        return Outcome(partition, notes=(f"rows were cut into {runs} runs along the Hilbert curve",) if runs > 1 else ())

    def find_vetoes(self, table: Table, partition: Partition, models: Sequence[Model]) -> Vetoes | None:
        """With `refine` no cut of a class is allowed; otherwise nothing is ensured."""
        return find_vetoed_cuts(table, partition, models) if self.refine else None

    def _list_limits(self, table: Table, models: Sequence[Model]) -> list[tuple[Secret, Distance]]:
        """The limits that classes are made for: all on a distance, or those of the column that is named."""
        if self.column is not None and self.column not in table.schema.sensitive:
            right = "sensitive columns are: " + (", ".join(table.schema.sensitive) or "none")
            raise BadInput("cannot be looked at, it is not sensitive", column=self.column, right=right)
        return [(column, limit) for column, limit in distances_of(table, models) if self.column in (None, column)]


def _k_first(table: Table, close: Sequence[tuple[Secret, Distance]], k: int) -> tuple[Int32, int]:
    """Algorithm 2: k nearest rows, then exchanges."""
    space, secrets = _space(table), secrets_of(table, close)
    class_of, count = np.full(len(table), -1, dtype=np.int32), 0
    limit = count_candidates(len(table)) if close else 0
    for rows in _shards(table, np.zeros(len(table), dtype=np.int32), k):
        count = nearest_classes(space, secrets, rows, k, limit, class_of, count)
    return class_of, count


def _t_first(table: Table, close: Sequence[tuple[Secret, Distance]], k: int) -> tuple[Int32, int]:
    """Algorithm 3: one row of each of k subsets along one sensitive attribute, an ordered one if there is any, the strictest
    of these.
    """
    n = len(table)
    column, limit = min(close, key=lambda pair: (pair[1].ground != "ordered", pair[1].most), default=(None, None))
    k = adjust_k(n, max(k, 1 if limit is None else compute_class_size(n, limit.most)))
    subset_of = np.zeros(n, dtype=np.int32)
    if column is None:  # nothing to be near to: subsets along the curve would keep near rows apart
        return _k_first(table, (), k)
    extra, middle = n % k, (k - 1) // 2
    sizes = np.full(k, n // k) + extra * (np.arange(k) == middle)
    subset_of[np.argsort(table.secret(column)[0], kind="stable")] = np.repeat(np.arange(k), sizes)
    space, class_of, count = _space(table), np.full(n, -1, dtype=np.int32), 0
    for rows in _shards(table, subset_of, k):
        count = mix_classes(space, subset_of, rows, k, class_of, count)
    return class_of, count


def compute_class_size(n: int, t: Fraction) -> int:
    """Rows of a class that takes one of each subset, such that sensitive values all different are within t: ceil(n / (2(n-1)t
    + 1)).

    >>> compute_class_size(1000, Fraction(1, 10)), compute_class_size(1000, Fraction(0))
    (5, 1000)
    """
    return max(1, ceil(n / (2 * (n - 1) * t + 1)))


def _space(table: Table) -> Space:
    """Rows by their leaves, of which only present ones are kept, and their points."""
    weights = np.array(table.schema.weights(), dtype=np.float64)
    leaf = np.empty(table.quasi.shape, dtype=np.int32)
    blocks, column = [np.empty((0, 1))], [0]
    for j, domain in enumerate(table.quasi_domains):
        present, codes = np.unique(table.quasi[:, j], return_inverse=True)
        leaf[:, j] = codes + column[-1]
        block = np.sqrt(weights[j]) * leaf_points(domain)[present]
        blocks.append(block[:, np.ptp(block, axis=0) > 0])
        column.append(column[-1] + len(present))
    axes = np.array([block.shape[1] for block in blocks[1:]], dtype=np.int64)
    lengths = np.repeat(axes, np.diff(column))
    flat = np.concatenate([block.ravel() for block in blocks])
    return Space(leaf, np.array(column, dtype=np.int64), np.cumsum(lengths) - lengths, axes, flat)


def _runs(n: int, k: int) -> int:
    return min(-(-n // TOGETHER), n // (2 * k) or 1)


def _shards(table: Table, subset_of: Int32, k: int) -> list[Int32]:
    """Rows in runs along the Hilbert curve, each with its share of every subset; one run where the table is small."""
    runs = _runs(len(table), k)
    if runs == 1:
        return [np.arange(len(table), dtype=np.int32)]
    shelf = sort_buckets(curve(points(table)), subset_of, int(subset_of.max()) + 1)
    size = np.diff(shelf.start)
    rank = np.arange(len(table)) - np.repeat(shelf.start[:-1], size)
    run = rank * runs // np.repeat(size, size)
    return [np.sort(shelf.rows[run == r]) for r in range(runs)]
