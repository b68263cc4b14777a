"""`Audit`: the recomputation of a release, guarantee by guarantee, and how it differs from the certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import Certificate, ClassSizes, Guarantee, Joint, ValueEstimates, WorstClass, render_level
from closeknit.core.certifying import references_of
from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import Secret, render_secret
from closeknit.core.domain import Domain
from closeknit.core.errors import keep_printable
from closeknit.core.grids import Summarized, Summary
from closeknit.core.kinds import texts_of
from closeknit.core.limits import MOST_COMBINATIONS
from closeknit.core.loss import LossRecord
from closeknit.core.measurement import Measurement
from closeknit.core.model import Model
from closeknit.core.reading import Reading
from closeknit.core.record import Record
from closeknit.core.schema import Schema
from closeknit.core.strict_json import json_text
from closeknit.core.subsets import Over, check_over
from closeknit.core.tree import STAR
from closeknit.core.vacuity import render_share, vacuous_note

Status = Literal["recomputed", "not met", "vacuous", "not checkable"]
Outcome = Literal["met", "not met", "vacuous", "met as far as it can be checked"]
MET: Outcome = "met"
NOT_MET: Outcome = "not met"
VACUOUS: Outcome = "vacuous"
PARTLY: Outcome = "met as far as it can be checked"


class CheckedGuarantee(Record):
    """One guarantee after recomputation."""

    text: str
    requested: str
    status: Status
    measured: float | None = None
    exact: str | None = None
    why: str | None = None
    attested: bool = False  # the certificate states that the data owner measured it
    alone: float | None = None  # share of rows whose value may stand alone in a class
    noted: bool = False  # the certificate notes that it is vacuous

    def mark_attested(self, attested: Collection[str], notes: Collection[str]) -> CheckedGuarantee:
        """Mark what the certificate attests and cannot be checked, and a guarantee that it notes as vacuous.

        Args:
            attested: texts of attested guarantees.
            notes: those of the certificate.
        """
        is_attested = self.status == "not checkable" and self.text in attested
        return self.model_copy(update={"attested": is_attested, "noted": vacuous_note(self.text) in notes})

    def line(self) -> str:
        """One line for people."""
        return f"{self.status:13}  {self.sentence()}"

    def sentence(self) -> str:
        """The guarantee and what was measured, or why it cannot be."""
        if self.status == "not checkable":
            return f"{self.text}: {self.why}"
        return f"{self.text}: measured {render_level(self.measured)}{render_share(self.alone)}"

    @classmethod
    def of(cls, guarantee: Guarantee) -> CheckedGuarantee:
        """A guarantee as a recipient judged it."""
        if guarantee.status == "not checkable":
            return cls(text=guarantee.text, requested=guarantee.requested, status="not checkable", why=guarantee.why)
        status: Status = "not met" if not guarantee.met else "vacuous" if guarantee.vacuous else "recomputed"
        same = {key: getattr(guarantee, key) for key in ("text", "requested", "measured", "exact", "alone")}
        return cls(**same, status=status)


class CheckedSignature(Record):
    """A signature next to the certificate.

    Args:
        file: its name.
        key: the id of the key that it was verified with; None where it was not verified.
        signer: who signed, in their own words.
        valid: whether it is by this key and covers the release and the certificate as they are.
    """

    file: str
    key: str | None = None
    signer: str | None = None
    valid: bool = False

    def line(self) -> str:
        """One line for people."""
        if self.key is None:
            return f"{self.file} is present and was not verified: give the public key of its signer"
        who = f"signed by '{self.signer}' with" if self.signer else "signed with"
        what = "certificate and release files have not" if self.valid else "something"
        return f"{who} the key {self.key}; {what} changed since"


class Audit(Summarized, Record):
    """The outcome: `ok` only if every guarantee was recomputed and is met, and nothing else is wrong.

    A guarantee that is met and excludes nothing is vacuous: `ok` only if the certificate notes it.
    """

    guarantees: tuple[CheckedGuarantee, ...]
    findings: tuple[str, ...] = ()
    rows: int
    classes: ClassSizes
    notes: tuple[str, ...] = ()
    joint: Joint | None = None
    loss: LossRecord
    signatures: tuple[CheckedSignature, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything could be checked and is met."""
        return self.status == MET

    @property
    def status(self) -> Outcome:
        """The result in one phrase; whatever is wrong counts more than what could not be checked."""
        found = {guarantee.status for guarantee in self.guarantees}
        if self.findings or NOT_MET in found:
            return NOT_MET
        if any(guarantee.status == "vacuous" and not guarantee.noted for guarantee in self.guarantees):
            return VACUOUS
        return PARTLY if "not checkable" in found else MET

    def summary(self) -> Summary:
        """Each guarantee as it was recomputed; findings come first among the notes."""
        rows = [
            [one.text, one.requested, "-" if one.why else render_level(one.measured), one.status] for one in self.guarantees
        ]
        grid = [["guarantee", "requested", "measured", ""], *rows]
        notes = [*self.findings, *self.notes, *(signature.line() for signature in self.signatures)]
        return Summary(f"Audit of {self.rows:,} rows: {self.status}", grid, notes)

    def to_json(self) -> str:
        """The audit as text for machines."""
        return json_text(self.to_record())

    def to_record(self) -> dict[str, Any]:
        """The audit as plain values: its outcome first."""
        return {"ok": self.ok, "status": self.status, **self.model_dump(mode="json")}

    def __str__(self) -> str:
        lines = [guarantee.line() for guarantee in self.guarantees]
        lines += [f"joint          {self.joint.line()}"] if self.joint else []
        lines += [f"wrong          {finding}" for finding in self.findings]
        size = self.classes
        lines.append(f"rows           {self.rows:,} in {size.count:,} classes of {size.smallest:,} to {size.largest:,}")
        lines.append(f"loss           {self.loss.a:.4f} (General Loss Metric A; B: {self.loss.b:.4f})")
        lines += [f"note           {note}" for note in self.notes]
        lines += [f"signature      {signature.line()}" for signature in self.signatures]
        lines.append(self._verdict())
        return "\n".join(map(keep_printable, lines))

    def _verdict(self) -> str:
        """The last line."""
        if self.status == VACUOUS:
            idle = "; ".join(
                guarantee.text for guarantee in self.guarantees if guarantee.status == "vacuous" and not guarantee.noted
            )
            return f"vacuous: every value with enough rows for a class may stand alone in one ({idle})"
        if self.status != PARTLY:
            return "ok" if self.ok else "NOT OK"
        unchecked = [guarantee for guarantee in self.guarantees if guarantee.status == "not checkable"]
        owner = "; ".join(guarantee.text for guarantee in unchecked if guarantee.attested)
        others = "; ".join(guarantee.text for guarantee in unchecked if not guarantee.attested)
        parts = [f"attested, as measured by the data owner: {owner}"] if owner else []
        parts += [f"not checkable and not attested: {others}"] if others else []
        return f"{PARTLY} ({', '.join(parts)})"


@dataclass(frozen=True)
class Recomputation:
    """What a recipient measures in a release, and what the audit compares with its certificate."""

    certificate: Certificate  # as recomputed from the written cells
    references: Mapping[Secret, tuple[Domain, NDArray[np.int64]]]  # of every guaranteed attribute its leaves and their rows
    rows_of: Callable[[Secret | None, WorstClass, Over], int]  # how many rows have the cells of a class, or of a group

    @classmethod
    def of(cls, reading: Reading, models: Sequence[Model], joint: Model | None, suppressed: int) -> Recomputation:
        """Measure what was read.

        Args:
            reading: the written cells and their classes.
            models: the guarantees to check.
            joint: the model that measures all sensitive attributes as one, where there are several.
            suppressed: rows that were not published, as the certificate states.
        """
        measured = Measurement.of(reading, models, suppressed=suppressed, joint=joint)
        return cls(
            measured.certify(reading.schema, {}),
            references_of(reading, models),
            lambda secret, worst, over: int(reading.of(secret).find_rows(worst.cells, check_over(over)).sum()),
        )


def differences(seen: Recomputation, claimed: Certificate, attested: Collection[str] = ()) -> Iterator[str]:
    """Every number of a certificate that a recomputation does not give again, one sentence each.

    Args:
        seen: what was recomputed.
        claimed: the certificate.
        attested: what cannot be recomputed: "loss", and "classes" with everything about them.
    """
    for guarantee in claimed.guarantees:
        if guarantee.status == "attested" and not guarantee.met:
            yield f"{guarantee.text}: its certificate states that it is not met"
    for then in (guarantee for guarantee in claimed.guarantees if guarantee.status == "recomputable"):
        for now in seen.certificate.guarantees:
            if now.model == then.model and claimed.rolling:
                yield from _find_better_claim(now, then)
            elif now.model == then.model:
                yield from _guarantee_differences(now, then)
                yield from _vacuity_differences(now, then, claimed.notes)
        if claimed.rolling:
            continue
        if then.worst is None:
            yield f"{then.text}: its certificate names no worst class"
        elif seen.rows_of(then.column, then.worst, _over_of(then)) != then.worst.rows:
            yield f"{then.text}: its certificate names a worst class of {then.worst.rows:,} rows that is not in the release"
    yield from _estimate_differences(seen.certificate.estimates, claimed)
    if "classes" not in attested and not claimed.rolling:
        yield from _joint_differences(seen, claimed.joint)
        yield from _number_differences("classes", seen.certificate.classes.model_dump(), claimed.classes.model_dump())
    if "loss" not in attested:
        yield from _number_differences("loss", _flat(seen.certificate.loss), _flat(claimed.loss))


def _over_of(guarantee: Guarantee) -> Over:
    """The columns that a guarantee is about, as its form states them."""
    return next((params.get("over") for params in guarantee.model.values()), None)


def find_finer_secrets(columns: Columns, schema: Schema) -> Iterator[str]:
    """Sensitive values that are more precise than the leaf they are judged on: a day of a month, a number of a bin."""
    for name, kind in schema.sensitive.items():
        values = columns[name].values
        shown = np.array([text != STAR and text not in schema.missing for text in texts_of(values)], dtype=bool)
        domain, leaves = kind.bind(values[shown])
        coded = domain.coarse or domain.top is not None or domain.bottom is not None
        if domain.tree is None and domain.ends is None and not coded:
            continue  # a number is its own leaf, however it is spelled
        for text, leaf in zip(texts_of(values[shown]), leaves.tolist(), strict=True):
            if text != domain.texts[leaf]:
                yield f"column '{name}': '{text}' is more precise than '{domain.texts[leaf]}', on which it was judged"
                break


def _find_better_claim(now: Guarantee, then: Guarantee) -> Iterator[str]:
    """Of a stream the worst batch is stated. Batches with the same cells are one class, which may be better, never worse."""
    stated, found = then.measured, now.measured
    if stated is None or found is None or _equal(stated, found):
        return
    if (stated > found) == then.requested.startswith(">"):
        yield f"{then.text}: recomputed {_render_outcome(now)}; its certificate states better, {_render_outcome(then)}"


def _guarantee_differences(now: Guarantee, then: Guarantee) -> Iterator[str]:
    same = all(getattr(now, key) == getattr(then, key) for key in ("text", "column", "requested", "met", "exact"))
    if not same or not _equal(now.measured, then.measured):
        stated = f"{_render_outcome(then)} of '{then.text}', requested {then.requested}"
        yield f"{now.text}: recomputed {_render_outcome(now)}, requested {now.requested}; its certificate states {stated}"


def _vacuity_differences(now: Guarantee, then: Guarantee, notes: Collection[str]) -> Iterator[str]:
    if then.alone is None:
        return  # early certificates do not state it
    if not _equal(now.alone, then.alone) or now.vacuous != then.vacuous:
        found, stated = (f"{_render_number(one.alone)}{' (vacuous)' if one.vacuous else ''}" for one in (now, then))
        yield f"{now.text}: values of a share of {found} of the rows may stand alone, its certificate states {stated}"
    if now.vacuous and (note := vacuous_note(now.text)) not in notes:
        yield f"the certificate does not note: {note}"


def _joint_differences(seen: Recomputation, then: Joint | None) -> Iterator[str]:
    now = seen.certificate.joint
    if then is None:
        if now is not None and seen.certificate.rows <= MOST_COMBINATIONS:  # Spark does not measure more
            yield f"the certificate does not have the joint distance of {render_secret(now.columns)}; recomputed {now.line()}"
        return
    same = now is not None and (now.columns, now.exact) == (then.columns, then.exact)
    if now is None or not same or not _equal(now.measured, then.measured) or not _equal(now.least, then.least):
        found = "nothing" if now is None else f"{now.line()} (exactly {now.exact})"
        yield f"joint distance: recomputed {found}; its certificate states {then.line()} (exactly {then.exact})"
    if now is None or seen.rows_of(now.columns, then.worst, None) != then.worst.rows:
        yield f"joint distance: its certificate names a worst class of {then.worst.rows:,} rows that is not in the release"


def _estimate_differences(found: Mapping[str, ValueEstimates], claimed: Certificate) -> Iterator[str]:
    for name in dict.fromkeys([*found, *claimed.estimates]):
        here, there = found.get(name, {}), claimed.estimates.get(name, {})
        for value in dict.fromkeys([*here, *there]):
            now, then = here.get(value), there.get(value)
            if now is None or then is None or not all(map(_equal, now, then)):
                shown = [f"{part[0]:.6g} ± {part[1]:.6g} ({part[2]:.6g})" if part else "nothing" for part in (now, then)]
                yield f"estimate of {name}, '{value}': recomputed {shown[0]}, its certificate states {shown[1]}"


def _render_outcome(guarantee: Guarantee) -> str:
    exact = f" (exactly {guarantee.exact})" if guarantee.exact else ""
    return f"{'met' if guarantee.met else 'not met'} at {render_level(guarantee.measured)}{exact}"


def _number_differences(what: str, now: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys([*now, *then]):
        if not _equal(now.get(key), then.get(key)):
            found, claimed = _render_number(now.get(key)), _render_number(then.get(key))
            yield f"{what}, {key}: recomputed {found}, its certificate states {claimed}"


def _flat(loss: LossRecord) -> dict[str, float]:
    """Both variants, in total and per column, by name."""
    pairs = {"A": 0, "B": 1}
    columns = {f"variant {v} of {name}": pair[i] for name, pair in loss.columns.items() for v, i in pairs.items()}
    return {"variant A": loss.a, "variant B": loss.b, **columns}


def _equal(one: float | None, other: float | None) -> bool:
    return one == other if one is None or other is None else math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _render_number(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.12g}"
