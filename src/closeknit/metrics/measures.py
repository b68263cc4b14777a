"""All metrics of a release alone in one record, for reports and other tools."""

from __future__ import annotations

from closeknit.core.certificate import Joint, Record
from closeknit.core.reading import Reading
from closeknit.forms.release_reading import Published, reading_of
from closeknit.metrics.distances import ClassDistances, class_distances
from closeknit.metrics.privacy_levels import PrivacyLevels, measure_levels
from closeknit.metrics.sizes import Diversity, Sizes, class_sizes, classification_metric, diversity, loss_by_column


class Measures(Record):
    """Utility and privacy of a release, from its cells and its certificate; `model_dump_json` returns it as JSON.

    `distances` and `diversity` leave out perturbed attributes: a written value is not that of its row.

    Args:
        rows: Number of published rows.
        suppressed: Number of suppressed rows; None without a certificate.
        loss: Total loss, a suppressed row counted as 1; None without a certificate.
        loss_by_column: Loss of each quasi-identifier.
        sizes: Sizes of the classes.
        levels: Levels of every family of guarantees.
        distances: Distances of the classes to the release, for each sensitive attribute.
        diversity: Distinct values in the classes, for each sensitive attribute.
        outside_majority: `classification_metric` of every sensitive and plain column.
        joint: Distance of all sensitive attributes as one; None without a certificate.
    """

    rows: int
    suppressed: int | None
    loss: float | None
    loss_by_column: dict[str, float]
    sizes: Sizes
    levels: PrivacyLevels
    distances: dict[str, ClassDistances]
    diversity: dict[str, Diversity]
    outside_majority: dict[str, float]
    joint: Joint | None

    def __str__(self) -> str:
        lines = [f"classes {self.sizes}", *str(self.levels).splitlines()]
        lines += [f"apart   {found}" for found in self.distances.values()]
        lines += [f"values  {found}" for found in self.diversity.values()]
        lines += [
            f"guess   {share:.1%} of the rows are outside their class's majority in {name}"
            for name, share in self.outside_majority.items()
        ]
        lines += [f"joint   {self.joint.line()}"] if self.joint else []
        columns = ", ".join(f"{name} {loss:.4f}" for name, loss in self.loss_by_column.items())
        return "\n".join([*lines, f"loss    {columns}"])


def measures(published: Published | Reading) -> Measures:
    """Compute every metric that needs the release alone.

    Args:
        published: A release, or what its form read.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> found = measures(ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.Mondrian()))
    >>> found.sizes.summary.smallest, found.levels.k.measured, sorted(found.distances), found.suppressed
    (5, 5.0, ['charge', 'disease', 'stay'], 0)
    """
    reading = reading_of(published)
    certificate = None if isinstance(published, Reading) else published.certificate
    shown = reading.exact_secrets
    return Measures(
        rows=reading.columns.rows,
        suppressed=certificate.suppressed if certificate else None,
        loss=certificate.loss.a if certificate else None,
        loss_by_column=loss_by_column(reading),
        sizes=class_sizes(reading),
        levels=measure_levels(reading),
        distances={name: class_distances(reading, name) for name in shown},
        diversity={name: diversity(reading, name) for name in shown},
        outside_majority={
            name: classification_metric(reading, name) for name in (*shown, *reading.schema.plain) if name in reading.columns
        },
        joint=certificate.joint if certificate else None,
    )
