"""BUREL: values of similar frequency share buckets, and every class takes so few of each that none becomes too likely.

Guarantees. DPpartition joins values, ascending by frequency, into the fewest buckets whose whole frequency stays below the cap
`f(p)` of their rarest value (`f(p) = p(1 + min(beta, -ln p))` for enhanced beta-likeness, `p(1 + beta)` for basic). biSplit
halves the bucket sizes as long as both halves keep each bucket's share below that cap, and `k`. Any fill then keeps the
guarantee.

Source: the thesis on SABRE and BUREL, ch. 4.

Different from the source:
- values may join a bucket at equality (`<=`; with the printed `<` its own Example 4.1 needs 6 buckets instead of 3);
- k is a condition of biSplit;
- `slack=True` (default) also plans for larger nominal betas, and with buckets finer than beta needs; and for 0, which is one
  class of all rows and leaves everything to the cuts in the end (Mondrian); every outcome is measured and repaired, and the
  one that has the least loss is taken;
- `polish=True` (default) exchanges rows of one bucket between classes while the loss falls;
- in the end classes are always cut further where the actual rows of both halves meet every guarantee.

Semantic and range beta-likeness (sec. 4.3.4) are planned as enhanced ones; classes that break the extension are merged with the
neighbour whose joint loss grows least, both sides counted. Cost: planning takes milliseconds; a fill is O(n log n).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from closeknit.core.classes import Histogram
from closeknit.core.model import Model
from closeknit.methods.plan_search import GAMMAS, PlannedMethod, largest, limits_of
from closeknit.plans import Plan, burel_plan

NOMINAL = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(5))  # times beta


@dataclass(frozen=True)
class Burel(PlannedMethod):
    """Planned for beta-likeness of one sensitive attribute.

    Args:
        fill: How rows are picked: "hilbert", "knn" or "sweep".
        polish: Whether rows of one bucket are exchanged between classes afterwards while the loss falls.
        slack: Whether looser thresholds and finer buckets are tried as well.
        column: The sensitive attribute to plan for; None takes the first with a guarantee that the plan serves.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> ck.anonymize(table, schema, [ck.BetaLikeness("disease", 2)], Burel()).certificate.ok
    True
    """

    name = "burel"
    needs_bound = "growth"

    fill: str = "hilbert"
    polish: bool = True
    slack: bool = True
    column: str | None = None

    def plans(self, secret: Histogram, model: Model, k: int) -> Iterator[Plan]:
        """The plan for beta; with slack also, for each nominal beta, the one with most classes over all gammas."""
        growth = limits_of(model, secret).growth
        assert growth is not None
        beta, kind = growth.most, "enhanced" if growth.bounded else "basic"
        yield burel_plan(secret, secret.domain, beta, k, kind)
        for factor in reversed(NOMINAL) if self.slack else ():
            yield largest(burel_plan(secret, secret.domain, factor * beta, k, kind, gamma=gamma) for gamma in GAMMAS)
