"""SABRE: buckets of near sensitive values, class sizes that take a share of every bucket, then rows with near
quasi-identifiers.

Guarantees. Phase 1 cuts the attribute's domain into buckets such that any class that takes its fair share of every bucket is
within `U <= t` of the release, whichever rows it takes. Phase 2 halves the bucket sizes again and again, as long as both
halves keep `t` in the worst case and `k`. Phase 3 fills each class; no fill can break what the sizes guarantee.

Source: the thesis on SABRE and BUREL, ch. 3.

Different from the source:
- buckets are split while `U > t`, and never one of a single value (as printed, t = 0 never ends and rows can vanish);
- `bound="exact"` (default) uses the exact worst case for buckets and sizes; `"printed"` the looser printed bounds;
- k is a condition of the size tree (the source claims it and shows no step);
- `slack=True` (default) also plans for nominal thresholds up to 20t, and with buckets finer than the threshold needs; and for
  0, which is one class of all rows and leaves everything to the cuts in the end (Mondrian). Every outcome is measured,
  repaired by merging where a class does not meet a guarantee, and the one that has the least loss is taken; the printed SABRE
  spends all of t on the buckets and leaves nothing for the sizes;
- seeds are in a bucket that has a seat for them, and axes are scaled to [0, 1] (`fills/`);
- `polish=True` (default) then exchanges rows of one bucket between classes while the loss falls;
- in the end classes are always cut further where the actual rows of both halves meet every guarantee.

Several sensitive attributes (sec. 3.6): the plan is made for `column` or the first sensitive attribute with a t-closeness;
the other guarantees are measured and repaired by merging, which convexity allows. Cost: planning takes milliseconds; a fill
is O(n log n).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from closeknit.core.classes import Histogram
from closeknit.core.model import Model
from closeknit.core.params import choice
from closeknit.methods.plan_search import GAMMAS, PlannedMethod, largest, limits_of
from closeknit.plans import Plan, sabre_plan

# Times t. The source of the idea stops at 3; rows of near quasi-identifiers are rarely the worst of their bucket.
NOMINAL = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(5), Fraction(10), Fraction(20))


@dataclass(frozen=True)
class Sabre(PlannedMethod):
    """Planned for t-closeness of one sensitive attribute.

    Args:
        fill: How rows are picked: "hilbert", "knn" or "sweep".
        polish: Whether rows of one bucket are exchanged between classes afterwards while the loss falls.
        bound: "exact", or "printed" for the looser bounds of the source.
        slack: Whether looser thresholds and finer buckets are tried as well.
        column: The sensitive attribute to plan for; None takes the first with a guarantee that the plan serves.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> ck.anonymize(table, schema, [ck.KAnonymity(4), ck.TCloseness("disease", 0.25)], Sabre()).certificate.ok
    True
    """

    name = "sabre"
    needs_bound = "distance"

    fill: str = "hilbert"
    polish: bool = True
    bound: str = "exact"
    slack: bool = True
    column: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("bound", self.bound, ("exact", "printed"))

    def plans(self, secret: Histogram, model: Model, k: int) -> Iterator[Plan]:
        """The plan for t; with slack also, for each nominal threshold, the one with most classes over all gammas."""
        limit = limits_of(model, secret).distance
        assert limit is not None
        yield sabre_plan(secret, secret.domain, limit.ground, limit.most, k, self.bound)
        for factor in reversed(NOMINAL) if self.slack else ():
            yield largest(
                sabre_plan(secret, secret.domain, limit.ground, factor * limit.most, k, self.bound, gamma=gamma, balanced=True)
                for gamma in GAMMAS
            )
