"""`Comparison`: what each method made of one table under the same guarantees; a refusal is a row too, with its sentence.

It was measured beside the original table and carries the seed: it stays at home.
"""

from __future__ import annotations

from typing import Any, ClassVar

from closeknit.core.certificate import Certificate, ClassSizes, Count, Document, Guarantee, LossRecord, Record
from closeknit.core.grids import Summary, align_grid

NOTHING = "-"


class Measure(Record):
    """Something that a release reaches, asked for or not."""

    name: str  # "t of disease"
    parameter: str  # "t"
    text: str  # the guarantee in words
    higher_is_safer: bool


class MeasuredLevel(Record):
    """What one guarantee came to: the level where there is one, and how to say it."""

    guarantee: str
    level: float | None
    text: str

    @classmethod
    def of(cls, guarantee: Guarantee) -> MeasuredLevel:
        """As the certificate says it."""
        if guarantee.status == "attested":
            return cls(guarantee=guarantee.text, level=None, text="attested")
        text = "no limit" if guarantee.measured is None else f"{guarantee.measured:.4g}"
        return cls(guarantee=guarantee.text, level=guarantee.measured, text=text)


class MethodResult(Record):
    """One method: what it reached and what that cost, or the reason why it made no release."""

    method: dict[str, dict[str, Any]]  # as a recipe writes it
    ok: bool
    measured: tuple[MeasuredLevel, ...] = ()
    loss: LossRecord | None = None
    classes: ClassSizes | None = None
    suppressed: Count | None = None
    joint: float | None = None  # total variation of all secrets as one, where there are several
    seconds: float
    megabytes: float | None  # None where the system does not tell
    reason: str | None = None

    @classmethod
    def of(
        cls, method: dict[str, dict[str, Any]], certificate: Certificate, seconds: float, megabytes: float | None
    ) -> MethodResult:
        """The row of a release."""
        return cls(
            method=method,
            ok=certificate.ok,
            measured=tuple(map(MeasuredLevel.of, certificate.guarantees)),
            loss=certificate.loss,
            classes=certificate.classes,
            suppressed=certificate.suppressed,
            joint=certificate.joint.measured if certificate.joint else None,
            seconds=seconds,
            megabytes=megabytes,
        )

    @property
    def name(self) -> str:
        """The method with the parameters that are not its defaults.

        >>> MethodResult(method={"sabre": {"fill": "knn"}}, ok=False, seconds=0, megabytes=None).name
        'sabre(fill=knn)'
        """
        ((name, params),) = self.method.items()
        given = ", ".join(f"{key}={value}" for key, value in params.items())
        return f"{name}({given})" if given else name


class Comparison(Document):
    """One row for each method: those that keep the guarantees by loss, then those that made no release.

    >>> row = MethodResult(method={"burel": {}}, ok=False, seconds=0.5, megabytes=None, reason="burel needs a likeness")
    >>> print(Comparison(closeknit="0.1.0", rows=9, guarantees=("k-anonymity, k = 2",), seed=7, methods=(row,)))
    (1) k-anonymity, k = 2
    <BLANKLINE>
    method  loss  (1)  classes  sizes  suppressed  seconds  MB
    burel   -     -    -        -      -         0.50     -
    <BLANKLINE>
    burel made no release: burel needs a likeness
    """

    what: ClassVar[str] = "the comparison"
    where: ClassVar[str] = "use a comparison.json as 'closeknit compare' writes it"

    rows: Count  # of the table
    guarantees: tuple[str, ...]
    measures: tuple[Measure, ...] = ()  # one for each guarantee; none in comparisons made before there were pictures
    seed: int
    methods: tuple[MethodResult, ...]

    @property
    def ok(self) -> bool:
        """Whether at least one method keeps the guarantees."""
        return self.best is not None

    @property
    def best(self) -> MethodResult | None:
        """The row of least loss; None where no method keeps the guarantees."""
        return next((row for row in self.methods if row.ok), None)

    def records(self) -> list[dict[str, object]]:
        """Each row flat, its names the same in every row: a line of a CSV file."""
        return [self._flat(row) for row in self.methods]

    def _flat(self, row: MethodResult) -> dict[str, object]:
        size, loss = row.classes, row.loss
        levels = [measured.level for measured in row.measured] or [None] * len(self.guarantees)
        return {
            "method": row.name,
            "ok": row.ok,
            "loss": loss and loss.a,
            "loss_b": loss and loss.b,
            **{f"reached: {guarantee}": level for guarantee, level in zip(self.guarantees, levels, strict=True)},
            "classes": size and size.count,
            "smallest": size and size.smallest,
            "mean": size and size.mean,
            "largest": size and size.largest,
            "suppressed": row.suppressed,
            "joint": row.joint,
            "seconds": row.seconds,
            "megabytes": row.megabytes,
            "reason": row.reason,
        }

    def grid(self) -> list[list[str]]:
        """The table for people, shorter than `records`: a heading and a row for each method, guarantees by their numbers."""
        joint = ["joint"] if any(row.joint is not None for row in self.methods) else []
        numbers = [f"({i})" for i in range(1, len(self.guarantees) + 1)]
        return [
            ["method", "loss", *numbers, "classes", "sizes", "suppressed", *joint, "seconds", "MB"],
            *(self._cells(row, bool(joint)) for row in self.methods),
        ]

    def _cells(self, row: MethodResult, joint: bool) -> list[str]:
        size, loss = row.classes, row.loss
        return [
            row.name,
            f"{loss.a:.4f}" if loss else NOTHING,
            *([measured.text for measured in row.measured] or [NOTHING] * len(self.guarantees)),
            *([f"{size.count:,}", f"{size.smallest:,}-{size.largest:,}"] if size else [NOTHING] * 2),
            NOTHING if row.suppressed is None else f"{row.suppressed:,}",
            *([NOTHING if row.joint is None else f"{row.joint:.4g}"] if joint else []),
            f"{row.seconds:,.2f}",
            NOTHING if row.megabytes is None else f"{row.megabytes:,.1f}",
        ]

    def legend(self) -> list[str]:
        """What the numbers over the columns stand for."""
        return [f"({i}) {guarantee}" for i, guarantee in enumerate(self.guarantees, 1)]

    def refusals(self) -> list[str]:
        """Why a method made no release, one sentence each."""
        return [f"{row.name} made no release: {row.reason}" for row in self.methods if row.reason is not None]

    def summary(self) -> Summary:
        """A row for each method, the least loss first."""
        title = f"Comparison of {len(self.methods)} methods on {self.rows:,} rows, least loss first"
        return Summary(title, self.grid(), [*self.legend(), *self.refusals()])

    def __str__(self) -> str:
        refusals = self.refusals()
        return "\n".join([*self.legend(), "", *align_grid(self.grid()), *([""] if refusals else []), *refusals])
