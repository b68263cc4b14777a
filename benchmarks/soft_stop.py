"""SoftStop on Adult's complete training part: what safety against an adversary who knows the algorithm costs."""

from __future__ import annotations

import time
import warnings

import closeknit as ck
import tables
from arx import training_part
from closeknit.core.method import Method
from closeknit.core.model import Model
from sections import Section

LIMITS = (0.1, 0.15, 0.2, 0.25, 0.35, 0.5)
BETA = 2
SEEDS = 4
METHODS: dict[str, Method] = {
    "Knit": ck.Knit(),
    "Mondrian": ck.Mondrian(),
    "SoftStop, eps = 1/4": ck.SoftStop(eps="1/4"),
    "SoftStop, eps = 1": ck.SoftStop(),
    "SoftStop, eps = 2": ck.SoftStop(eps=2),
    "SoftStop, eps = 1, strict": ck.SoftStop(split="strict"),
    "SoftStop, eps = 1, c = 10, share = 1/2": ck.SoftStop(c=10, share="1/2"),
}


def run(section: Section, rows: int | None) -> None:
    """Loss under each limit, and seconds of the middle one."""
    data = tables.data_folder()
    if data is None:
        section.say("Skipped: the public tables are not available.")
        return
    frame, schema = training_part(data)
    frame = frame.head(rows) if rows is not None else frame
    lines = []
    for name, method in METHODS.items():
        runs = SEEDS if name.startswith("SoftStop") else 1
        losses, began = [], time.perf_counter()
        for t in LIMITS:
            losses.append(_loss(frame, schema, ck.TCloseness("occupation", t), method, runs))
        seconds = (time.perf_counter() - began) / (runs * len(LIMITS))
        losses.append(_loss(frame, schema, ck.BetaLikeness("occupation", BETA), method, runs))
        lines.append([name, *(f"{loss:.3f}" for loss in losses), f"{seconds:.2f}"])
    section.say(
        f"Adult, {len(frame):,} complete rows of the training part, seven quasi-identifiers, occupation with tree distance, "
        f"k = 6, no row suppressed. Loss A; SoftStop: mean of {SEEDS} seeds. Seconds of one call of `anonymize` with a frame, "
        "mean over the limits t."
    )
    section.table(["method", *(f"t = {t}" for t in LIMITS), f"beta = {BETA}", "seconds"], lines)


def _loss(frame: object, schema: ck.Schema, model: Model, method: Method, runs: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a given seed is not attested
        found = [ck.anonymize(frame, schema, [ck.KAnonymity(6), model], method, seed=2**80 + i).loss for i in range(runs)]
    return sum(found) / runs
