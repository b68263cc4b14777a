"""Adult: what aware dealing saves over dealing as printed, and what closeness costs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import closeknit as ck
import tables
from closeknit.core.model import Model
from sections import Section

KS, TS = (6, 10, 20), (0.1, 0.2, 0.3, 0.5)
HEAD = ["requested", "dealing", "loss A", "loss B", "classes", "mean size", "t by tree", "t equal", "time"]


def run(section: Section, rows: int | None) -> None:
    """k alone with both dealings, then k = 6 with t."""
    with tempfile.TemporaryDirectory() as folder:
        source = tables.adult(Path(folder), rows)
        section.say(source.remark)
        for dealing in ("literal", "aware"):  # loads the compiled loops
            _line(source, [ck.KAnonymity(KS[-1]), ck.TCloseness(source.secret, TS[-1])], dealing)
        section.table(HEAD, [_line(source, [ck.KAnonymity(k)], dealing) for k in KS for dealing in ("literal", "aware")])
        k = ck.KAnonymity(KS[0])
        section.table(HEAD, [_line(source, [k, ck.TCloseness(source.secret, t)], "aware") for t in TS])
        section.say(
            "k alone is dealt as evenly as can be (counts of a value in two classes differ by at most one); a t that is asked "
            "for says how much of that may be given up for nearer neighbours, so it can lower the loss. t is measured on the "
            "written release by the audit, with the tree of the sensitive attribute and with equal distances. Every "
            "line's certificate "
            "holds what was requested. Time: from CSV file to certified release in memory, one run."
        )


def _line(source: tables.Source, models: list[Model], dealing: str) -> list[str]:
    start = time.perf_counter()
    release = ck.anonymize(source.path, source.schema, models, ck.StackAndDeal(dealing=dealing))
    took = time.perf_counter() - start
    checks = [ck.TCloseness(source.secret, 1), ck.TCloseness(source.secret, 1, distance="equal")]
    by_tree, equal = (guarantee.measured for guarantee in ck.audit(release.columns, source.schema, checks).guarantees)
    made = release.certificate
    requested = ", ".join(f"t={model.t}" if isinstance(model, ck.TCloseness) else f"k={model.least_size}" for model in models)
    return [
        requested,
        dealing,
        f"{made.loss.a:.4f}",
        f"{made.loss.b:.4f}",
        f"{made.classes.count:,}",
        f"{made.classes.mean:.1f}",
        f"{by_tree:.4f}",
        f"{equal:.4f}",
        f"{took:.2f} s",
    ]
