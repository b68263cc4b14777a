"""Adult: the loss of ages as ranges with true ends, snapped to a step when written, and coarsened before the method."""

from __future__ import annotations

import tempfile
from pathlib import Path

import closeknit as ck
import tables
from closeknit.attacks.range_ends import singling_out
from closeknit.core.method import Method
from sections import Section

METHODS: dict[str, Method] = {"Knit": ck.Knit(), "Mondrian": ck.Mondrian()}
SEED = 2**127


def run(section: Section, rows: int | None) -> None:
    """Steps of 5 and 10 years under k = 6 and t = 0.35."""
    with tempfile.TemporaryDirectory() as folder:
        source = tables.adult(Path(folder), rows)
        section.say(source.remark)
        kinds = {"ends at true ages": (ck.numeric(), False)}
        for step in (5, 10):
            kinds[f"snap, step {step}"] = (ck.numeric(step=step), True)
            kinds[f"coarsen, step {step}"] = (ck.numeric(step=step, coarsen=True), False)
        lines = []
        for name, method in METHODS.items():
            for text, (kind, snap) in kinds.items():
                schema = source.schema.model_copy(update={"quasi": {**source.schema.quasi, "age": kind}})
                models = [ck.KAnonymity(6), ck.TCloseness(source.secret, 0.35)]
                release = ck.anonymize(source.path, schema, models, method, form=ck.generalized(snap=snap), seed=SEED)
                loss = release.certificate.loss
                try:
                    found = singling_out(release, source.path, schema)
                    single = f"{found.number:.1%} ({found.details['baseline']:.1%})"
                except ck.BadInput:  # no range ends at a true value
                    single = "-"
                lines.append([name, text, f"{loss.a:.4f}", f"{loss.columns['age'][0]:.4f}", single])
    section.say(
        "k = 6, t = 0.35 on occupation by tree. Singled out: descriptions by range ends that fit one row, and by chance."
    )
    section.table(["method", "age", "loss A", "loss of age", "singled out"], lines)
