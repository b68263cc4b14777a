"""Plans: buckets of sensitive values and the rows that each class takes of them, such that *any* fill meets the guarantee."""

from __future__ import annotations

import numpy as np

from closeknit.core.classes import Histogram
from closeknit.core.domain import Domain
from closeknit.core.errors import Unsatisfiable
from closeknit.core.exact import Number
from closeknit.core.params import number, whole
from closeknit.kernels.arrays import Int64
from closeknit.models.t_closeness import default_distance
from closeknit.plans.burel_buckets import LikenessTest, dp_partition
from closeknit.plans.halving import halve
from closeknit.plans.plan import Plan, bucket_sizes
from closeknit.plans.sabre_buckets import bucketize
from closeknit.plans.sabre_sizes import ClosenessTest


def sabre_plan(
    secret: Histogram | Int64,
    domain: Domain,
    distance: str | None,
    t: Number,
    k: int = 1,
    bound: str = "exact",
    *,
    gamma: Number = 1,
    balanced: bool = False,
) -> Plan:
    """Buckets and sizes for t-closeness. `gamma`: buckets are made for `gamma * t`, which leaves room for uneven sizes.

    >>> from closeknit.core.kinds import numeric
    >>> domain, _ = numeric().bind(np.array([1, 2, 3, 4]))
    >>> plan = sabre_plan(np.array([2, 3, 3, 2, 0]), domain, "ordered", "1/4")
    >>> plan.bucket_of.tolist(), plan.allotments.tolist()
    ([0, 0, 1, 1, -1], [[1, 1], [1, 1], [1, 1], [1, 1], [1, 1]])
    """
    counts = _counts(secret, k)
    distance = distance or default_distance(domain)
    limit = number("t", t, least=0)
    buckets = bucketize(counts, domain, distance, limit * number("gamma", gamma, least=0, most=1), bound)
    if not buckets:
        return Plan.of(buckets, counts, np.zeros((0, 0), dtype=np.int64))
    test = ClosenessTest(counts, domain, distance, buckets, limit, bound)
    return Plan.of(buckets, counts, halve(test.sizes, k, test.allows, "ceil", balanced))


def burel_plan(
    secret: Histogram | Int64, domain: Domain, beta: Number, k: int = 1, kind: str = "enhanced", *, gamma: Number = 1
) -> Plan:
    """Buckets and sizes for enhanced or basic beta-likeness. `gamma`: buckets are made for `gamma * beta`.

    >>> from closeknit.core.kinds import flat
    >>> domain, _ = flat().bind(np.array(list("abcdef"), dtype=object))
    >>> burel_plan(np.array([2, 3, 3, 3, 4, 4, 0]), domain, 2).allotments.tolist()
    [[1, 1, 2], [1, 2, 2], [3, 3, 4]]
    """
    counts = _counts(secret, k)
    limit = number("beta", beta, above=0)
    buckets = dp_partition(counts, limit * number("gamma", gamma, least=0, most=1), kind)
    if not buckets:
        return Plan.of(buckets, counts, np.zeros((0, 0), dtype=np.int64))
    test = LikenessTest(counts, buckets, limit, kind)
    return Plan.of(buckets, counts, halve(bucket_sizes(buckets, counts), k, test.allows, "floor"))


def _counts(secret: Histogram | Int64, k: int) -> Int64:
    counts = np.asarray(secret.reference if isinstance(secret, Histogram) else secret, dtype=np.int64)
    n = int(counts.sum())
    if 0 < n < whole("k", k, least=1):
        raise Unsatisfiable(f"{k}-anonymity", f"the table has {n:,} rows", f"ask for k of at most {n:,}")
    return counts
