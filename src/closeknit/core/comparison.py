"""`Comparison`: the results of several methods on one table under the same guarantees; a refusal is a row too, with its reason.

Private: it is measured on the original table and contains the seed.
"""

from __future__ import annotations

from typing import Any, ClassVar

from closeknit.core.certificate import Certificate, ClassSizes, Count, Document, Guarantee, LossRecord, Record
from closeknit.core.grids import NOTHING, Summary, print_grid, render_measured, render_number

GAIN_LEGEND = (
    "gain: how much more often than from the class alone (50 %) an adversary who knows the method is right about who of two "
    "members has which value; 95 % interval of the mean over pairs. With seed: for an adversary who also has the seed. "
    "* marks methods that no other beats in loss and in the upper end of the gain"
)


class Measure(Record):
    """A level that is measured on a release, requested or not."""

    name: str  # "t of disease"
    parameter: str  # "t"
    text: str  # the guarantee in words
    higher_is_safer: bool


class MeasuredLevel(Record):
    """The measured level of one guarantee, if it has one, and its text."""

    guarantee: str
    level: float | None
    text: str

    @classmethod
    def of(cls, guarantee: Guarantee) -> MeasuredLevel:
        """As the certificate states it."""
        if guarantee.status == "attested":
            return cls(guarantee=guarantee.text, level=None, text="attested")
        return cls(guarantee=guarantee.text, level=guarantee.measured, text=render_measured(guarantee.measured))


class AlgorithmGain(Record):
    """What knowing the method adds to the class alone: how much more often an adversary is right about two members of a class.

    Args:
        gain: without the seed: probability to name who has which of two values, minus 1/2; None if all pairs stay open.
        low: lower end of its confidence interval, where open pairs count as 0.
        high: upper end, where open pairs count as 1/2.
        pairs: drawn pairs.
        open: pairs whose class did not come again with other seeds.
        seed_known: the same gain with the seed.
        seed_known_low: lower end of its interval.
        seed_known_high: upper end of its interval.
        seed_known_pairs: drawn pairs.
        runs: runs of the method.
        neighbours: rows of the table around each drawn person; None: the whole table.
        confidence: of both intervals, about the mean over all pairs that can be drawn.
        proved: the largest gain without the seed that the method's own guarantee allows; None without one.
    """

    gain: float | None
    low: float
    high: float
    pairs: Count
    open: Count
    seed_known: float
    seed_known_low: float
    seed_known_high: float
    seed_known_pairs: Count
    runs: Count
    neighbours: Count | None = None
    confidence: float
    proved: float | None = None

    @property
    def level(self) -> float:
        """What methods are compared by: the largest gain without the seed that neither the interval nor a proof excludes."""
        return self.high if self.proved is None else min(self.high, self.proved)


class ReleaseNumbers(Record):
    """Numbers of a release that comparisons list; None where there is no release."""

    loss: LossRecord | None = None
    classes: ClassSizes | None = None
    suppressed: Count | None = None

    def losses(self) -> dict[str, float | None]:
        """Both variants of the loss."""
        return {"loss": self.loss.a, "loss_b": self.loss.b} if self.loss else {"loss": None, "loss_b": None}

    def sizes(self) -> dict[str, float | None]:
        """Count and sizes of the equivalence classes, and the number of suppressed rows."""
        keys = {"classes": "count", "smallest": "smallest", "mean": "mean", "largest": "largest"}
        sizes = self.classes.model_dump() if self.classes else {}
        return {**{name: sizes.get(key) for name, key in keys.items()}, "suppressed": self.suppressed}


class MethodResult(ReleaseNumbers):
    """One method: its measured levels, loss and cost, or the reason why there is no release."""

    method: dict[str, dict[str, Any]]  # as a recipe writes it
    ok: bool
    measured: tuple[MeasuredLevel, ...] = ()
    joint: float | None = None  # total variation of the joint distribution, if there are several sensitive attributes
    seconds: float
    megabytes: float | None  # None if the system does not report it
    reason: str | None = None
    known_algorithm: AlgorithmGain | None = None  # if it was requested, and a pair of persons could be drawn
    front: bool | None = None  # of loss and gain: no other method has less of one and no more of the other

    @classmethod
    def of(
        cls, method: dict[str, dict[str, Any]], certificate: Certificate, seconds: float, megabytes: float | None
    ) -> MethodResult:
        """The row of one release."""
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
        """The method with the parameters that are not its defaults."""
        return method_text(self.method)


def method_text(method: dict[str, dict[str, Any]]) -> str:
    """A method as a recipe writes it, in one word.

    >>> method_text({"sabre": {"fill": "knn"}})
    'sabre(fill=knn)'
    """
    ((name, params),) = method.items()
    given = ", ".join(f"{key}={value}" for key, value in params.items())
    return f"{name}({given})" if given else name


class Comparison(Document):
    """One row per method: those that meet the guarantees by loss, then those without a release.

    Args:
        rows: rows of the table.
        guarantees: the requested guarantees in words.
        measures: one per guarantee; empty in comparisons of earlier versions.
        seed: seed of the runs.
        methods: the result of each method.
        against: "known-algorithm" if the gain of an adversary who knows the method is measured.

    >>> row = MethodResult(method={"burel": {}}, ok=False, seconds=0.5, megabytes=None, reason="burel needs a likeness")
    >>> print(Comparison(closeknit="0.1.0", rows=9, guarantees=("k-anonymity, k = 2",), seed=7, methods=(row,)))
    (1) k-anonymity, k = 2
    <BLANKLINE>
    method  loss  (1)  classes  sizes  suppressed  seconds  MB
    burel   -     -    -        -      -           0.50     -
    <BLANKLINE>
    burel has no release: burel needs a likeness
    """

    what: ClassVar[str] = "the comparison"
    where: ClassVar[str] = "use a comparison.json as 'closeknit compare' writes it"

    rows: Count
    guarantees: tuple[str, ...]
    measures: tuple[Measure, ...] = ()
    seed: int
    methods: tuple[MethodResult, ...]
    against: str | None = None

    @property
    def ok(self) -> bool:
        """Whether at least one method meets the guarantees."""
        return self.best is not None

    @property
    def best(self) -> MethodResult | None:
        """The row of least loss; None if no method meets the guarantees."""
        return next((row for row in self.methods if row.ok), None)

    def records(self) -> list[dict[str, object]]:
        """One flat record per method, with the same names in each: the lines of a CSV file."""
        return [self._flat(row) for row in self.methods]

    def _flat(self, row: MethodResult) -> dict[str, object]:
        levels = [measured.level for measured in row.measured] or [None] * len(self.guarantees)
        return {
            "method": row.name,
            "ok": row.ok,
            **row.losses(),
            **{f"measured: {guarantee}": level for guarantee, level in zip(self.guarantees, levels, strict=True)},
            **row.sizes(),
            "joint": row.joint,
            "seconds": row.seconds,
            "megabytes": row.megabytes,
            "reason": row.reason,
            **(_flat_gain(row) if self.against else {}),
        }

    def grid(self) -> list[list[str]]:
        """The printed table, shorter than `records`: a heading and one row per method, guarantees by their numbers."""
        joint = ["joint"] if any(row.joint is not None for row in self.methods) else []
        numbers = [f"({i})" for i in range(1, len(self.guarantees) + 1)]
        gain = ["gain", "with seed"] if self.against else []
        return [
            ["method", "loss", *gain, *numbers, "classes", "sizes", "suppressed", *joint, "seconds", "MB"],
            *(self._cells(row, bool(joint)) for row in self.methods),
        ]

    def _cells(self, row: MethodResult, joint: bool) -> list[str]:
        size, loss = row.classes, row.loss
        return [
            row.name,
            render_number(loss.a if loss else None, ".4f"),
            *(_gain_cells(row) if self.against else []),
            *([measured.text for measured in row.measured] or [NOTHING] * len(self.guarantees)),
            *([f"{size.count:,}", f"{size.smallest:,}-{size.largest:,}"] if size else [NOTHING] * 2),
            render_number(row.suppressed, ","),
            *([render_number(row.joint)] if joint else []),
            f"{row.seconds:,.2f}",
            render_number(row.megabytes, ",.1f"),
        ]

    def legend(self) -> list[str]:
        """The guarantee behind each number in the heading."""
        lines = [f"({i}) {guarantee}" for i, guarantee in enumerate(self.guarantees, 1)]
        return lines + ([GAIN_LEGEND] if self.against else [])

    def refusals(self) -> list[str]:
        """Why a method has no release, one sentence each."""
        return [f"{row.name} has no release: {row.reason}" for row in self.methods if row.reason is not None]

    def summary(self) -> Summary:
        """One row per method, the least loss first."""
        title = f"Comparison of {len(self.methods)} methods on {self.rows:,} rows, least loss first"
        return Summary(title, self.grid(), [*self.legend(), *self.refusals()])

    def __str__(self) -> str:
        return print_grid(self.legend(), self.grid(), self.refusals())


def _gain_cells(row: MethodResult) -> list[str]:
    found = row.known_algorithm
    if found is None:
        return [NOTHING] * 2
    mark = " *" if row.front else ""
    ends = f"{min(found.low, found.level):.2f}-{found.level:.2f}{' proved' if found.level < found.high else ''}"
    return [f"{ends}{mark}", f"{found.seed_known_low:.2f}-{found.seed_known_high:.2f}"]


def _flat_gain(row: MethodResult) -> dict[str, object]:
    names = [name for name in AlgorithmGain.model_fields if name != "confidence"]
    found = row.known_algorithm
    return {f"known algorithm: {name}": None if found is None else getattr(found, name) for name in names} | {
        "front": row.front
    }
