"""Fixed levels: every column is written at the level that its kind declares, the same for all rows; classes are what results.

The kinds do the work: `numeric(top=90)`, `prefix(keep=3)`, `date(level="year")` recode a column before any method sees it. This
method adds nothing to them: rows whose recoded quasi-identifiers are equal are a class. It is how rules such as HIPAA Safe
Harbor are followed, which fix levels and ask for no class size.

Guarantees. None of its own, and a request without guarantees is accepted: the certificate then states k = 1, which excludes
nothing, so that a recipient reads the smallest class. Guarantees that are requested are met as by any method: classes that miss
one are merged with near ones, and their cells become coarser than the declared levels.

Different from full-domain recoding as in Incognito: nothing is searched, and nothing depends on the data.

Cost: one sort of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from closeknit.core.method import Method, Progress
from closeknit.core.model import Model
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.core.table import Outcome, Partition, Table
from closeknit.models import KAnonymity


@dataclass(frozen=True)
class FixedLevels(Method):
    """The declared levels, and no search.

    >>> import closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(50), ck.datasets.hospital_schema(), [], FixedLevels())
    >>> [guarantee.text for guarantee in release.certificate.guarantees], release.loss
    (['k-anonymity, k = 1'], 0.0)
    """

    name = "fixed_levels"
    blind = True
    competes = False  # it searches nothing: the kinds decide

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Classes of rows with equal recoded cells; `anonymize` merges those that miss a guarantee."""
        keys = [(table.quasi[:, j], domain.size + 1) for j, domain in enumerate(table.quasi_domains)]
        return Outcome(Partition(*groups(keys, len(table))))

    def least_guarantees(self, schema: Schema) -> Sequence[Model]:
        """k = 1: the size of the smallest class is measured and stated, and nothing is excluded."""
        return (KAnonymity(1),)
