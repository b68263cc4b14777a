"""`Audit`: what a recomputation of somebody's release found, promise by promise."""

from __future__ import annotations

from typing import Literal

from closeknit.core.certificate import ClassSizes, LossRecord, Promise, Record

Status = Literal["recomputed", "broken", "not checkable"]


class Checked(Record):
    """One promise after recomputation."""

    text: str
    asked: str
    status: Status
    reached: float | None = None
    exact: str | None = None
    why: str | None = None

    def line(self) -> str:
        """One line for people."""
        if self.status == "not checkable":
            return f"not checkable  {self.text}: {self.why}"
        reached = "without limit" if self.reached is None else f"{self.reached:.6g}"
        return f"{self.status:13}  {self.text}: reached {reached}"

    @classmethod
    def of(cls, promise: Promise) -> Checked:
        """A promise that could be recomputed."""
        status: Status = "recomputed" if promise.held else "broken"
        return cls(text=promise.text, asked=promise.asked, status=status, reached=promise.reached, exact=promise.exact)


class Audit(Record):
    """The outcome: `ok` only if every promise was recomputed and holds, and nothing else is wrong."""

    promises: tuple[Checked, ...]
    findings: tuple[str, ...] = ()
    rows: int
    classes: ClassSizes
    loss: LossRecord

    @property
    def ok(self) -> bool:
        """Whether everything could be checked and holds."""
        return not self.findings and all(promise.status == "recomputed" for promise in self.promises)

    def to_json(self) -> str:
        """The audit as text for machines."""
        return self.model_dump_json(indent=2) + "\n"

    def __str__(self) -> str:
        lines = [promise.line() for promise in self.promises]
        lines += [f"wrong          {finding}" for finding in self.findings]
        size = self.classes
        lines.append(f"rows           {self.rows:,} in {size.count:,} classes of {size.smallest:,} to {size.largest:,}")
        lines.append(f"loss           {self.loss.a:.4f} (General Loss Metric A; B: {self.loss.b:.4f})")
        lines.append("ok" if self.ok else "NOT OK")
        return "\n".join(lines)
