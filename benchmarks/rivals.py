"""Other tools on the same table: pycanon measures our release, anjana makes one of its own.

They live in an environment of their own (`make rivals`), because they pin old libraries, and are asked as a subprocess.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clock
import closeknit as ck
import tables
from sections import Section

K, T = 6, 0.5
TIMED = ("k", "t", "beta")


def python() -> Path | None:
    """The interpreter of the rivals' environment: $CLOSEKNIT_RIVALS, or the one that `make rivals` prepared."""
    default = Path(__file__).resolve().parents[1] / ".venv-rivals" / "bin" / "python"
    found = Path(os.environ.get("CLOSEKNIT_RIVALS", default))
    return found if found.is_file() else None


def run(section: Section, rows: int | None) -> None:
    """Measuring against pycanon, making against anjana."""
    interpreter = python()
    if interpreter is None:
        section.say("Not measured: the rivals' environment is absent. `make rivals` prepares it.")
        return
    with tempfile.TemporaryDirectory() as folder:
        source = tables.adult(Path(folder), rows, age_tree=True)
        section.say(source.remark + " Age has a hierarchy like all other columns, because anjana does not generalize numbers.")
        _measuring(section, source, interpreter, Path(folder))
        _making(section, source, interpreter, Path(folder))
    section.say(
        "ARX and sdcMicro cannot be installed from the registries that this project uses, so nothing was measured with them."
    )


def _measuring(section: Section, source: tables.Source, interpreter: Path, place: Path) -> None:
    """The same release, k, t with equal distances and basic beta: pycanon against an audit of the file."""
    release = ck.anonymize(source.path, source.schema, [ck.KAnonymity(K)])
    file = place / "release.csv"
    release.to_csv(file)
    models = {
        "k": ck.KAnonymity(1),
        "t": ck.TCloseness(source.secret, 1, distance="equal"),
        "beta": ck.BetaLikeness(source.secret, 10**6, kind="basic"),
    }
    question = {"path": str(file), "quasi": list(source.schema.quasi), "secret": source.secret, "measures": TIMED}
    (theirs,) = clock.child(interpreter, "ask_pycanon.py", [question])
    lines = []
    for name, model in models.items():
        ck.audit(file, source.schema, [model])
        seconds = clock.in_turns({name: lambda m=model: ck.audit(file, source.schema, [m])})[name]
        ours = ck.audit(file, source.schema, [model]).guarantees[0].measured
        lines.append(
            [name, f"{theirs['answer'][name]:.6f}", f"{ours:.6f}", f"{theirs['seconds'][name]:.3g} s", clock.spread(seconds)]
        )
    section.say(
        f"Measuring the release of Stack & Deal with k = {K} ({release.certificate.classes.count:,} classes) with pycanon "
        f"{theirs['version']}. Its time is that of the measure alone, the frame being loaded; the audit's includes reading "
        "the file and the loss."
    )
    section.table(["measure", "pycanon", "audit", "pycanon's time", "audit's time"], lines)


@dataclass(frozen=True)
class Made:
    """A release by any tool: its time, and the audited k and t."""

    by: str
    requested: str
    seconds: float
    audit: Any
    suppressed: int

    def line(self) -> list[str]:
        rows = self.audit.rows
        loss = (self.audit.loss.a * rows + self.suppressed) / max(rows + self.suppressed, 1)
        k, t = (guarantee.measured for guarantee in self.audit.guarantees)
        return [self.requested, self.by, f"{self.seconds:.3g} s", f"{loss:.4f}", f"{self.suppressed:,}", f"{k:.0f}", f"{t:.4f}"]


def _making(section: Section, source: tables.Source, interpreter: Path, place: Path) -> None:
    """The same guarantees asked of anjana and of Stack & Deal."""
    lines = []
    for t in (None, T):
        lines += [_anjana(source, interpreter, place, t, suppress).line() for suppress in (0, 5)]
        lines.append(_closeknit(source, t).line())
    section.say(
        "Making a release. anjana recodes whole columns and may suppress rows, which count as loss 1; t with equal distances. "
        "Loss, k and t are measured by the audit. anjana's time is that of its function alone, ours includes reading the file."
    )
    section.table(["requested", "by", "time", "loss A", "suppressed", "k measured", "t measured"], lines)


def _checks(secret: str) -> list[Any]:
    return [ck.KAnonymity(1), ck.TCloseness(secret, 1, distance="equal")]


def _anjana(source: tables.Source, interpreter: Path, place: Path, t: float | None, suppress: int) -> Made:
    out = place / "anjana.csv"
    question = {
        "path": str(source.path),
        "out": str(out),
        "k": K,
        "t": t,
        "suppress": suppress,
        "secret": source.secret,
        "levels": {name: levels(kind) for name, kind in source.schema.quasi.items()},
    }
    answer = clock.child(interpreter, "ask_anjana.py", question)
    audit = ck.audit(out, source.schema, _checks(source.secret))
    by = f"anjana {answer['version']}, may suppress {suppress} %"
    return Made(by, _render_request(t), answer["seconds"], audit, answer["of"] - answer["rows"])


def _closeknit(source: tables.Source, t: float | None) -> Made:
    requested = [ck.KAnonymity(K)] + ([] if t is None else [ck.TCloseness(source.secret, t, distance="equal")])
    kept: list[ck.Release] = []
    ck.anonymize(source.path, source.schema, requested)
    seconds = clock.timed(lambda: kept.append(ck.anonymize(source.path, source.schema, requested)))
    audit = ck.audit(kept[0].columns, source.schema, _checks(source.secret))
    return Made("Stack & Deal, aware", _render_request(t), seconds, audit, kept[0].certificate.suppressed)


def _render_request(t: float | None) -> str:
    return f"k={K}" if t is None else f"k={K}, t={t}"


def levels(kind: ck.Hierarchy) -> list[list[str]]:
    """The labels of all leaves, then of what stands over each of them, level by level up to the root."""
    tree = kind.tree
    ways = []
    for leaf in tree.leaf_node[:-1]:
        way = [int(leaf)]
        while way[-1] > 0:
            way.append(int(tree.parent[way[-1]]))
        ways.append([tree.labels[node] for node in way])
    height = max(map(len, ways))
    full = [way[:1] * (height - len(way)) + way for way in ways]
    return [[way[level] for way in full] for level in range(height)]
