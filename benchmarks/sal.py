"""SAL from CSV file to saved folder, against the floor: time, memory, imports, and where the time goes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import clock
import closeknit as ck
import steps
import tables
from closeknit.api.recipe import Request as CheckedRequest
from closeknit.api.recipe import build_from_form
from closeknit.core.measurement import Measurement
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.forms import REGISTRY as FORMS
from closeknit.io.canonical import content_hash
from floor import Floor
from sections import Section

K, T = 6, 0.2
SEED = 2**127 + 5  # long, so that nothing is said about it; the dealing does not depend on it
WARM_ROWS = 20_000  # enough to load every compiled loop


@dataclass(frozen=True)
class Request:
    """What is asked of a table, and the aim in multiples of the floor."""

    name: str
    models: list[Model]
    method: Method
    aim: str

    def release(self, source: tables.Source, path: Path | None = None) -> ck.Release:
        return ck.anonymize(path or source.path, source.schema, self.models, self.method, seed=SEED)

    def recipe(self, source: tables.Source) -> dict:
        form = build_from_form("form", self.method.usual_form, FORMS)
        checked = CheckedRequest(source.schema, self.models, self.method, form, 0.0, SEED, False, False)
        return checked.recipe({"path": str(source.path)})


def requests(secret: str) -> list[Request]:
    k, t = ck.KAnonymity(K), ck.TCloseness(secret, T)
    return [
        Request(f"literal, k={K}", [k], ck.StackAndDeal(dealing="literal"), "5"),
        Request(f"aware, k={K}", [k], ck.StackAndDeal(), "20"),
        Request(f"aware, k={K}, t={T}", [k, t], ck.StackAndDeal(), "20"),
    ]


def run(section: Section, rows: int | None) -> None:
    """The whole benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source = tables.sal(place, rows)
        section.say(source.remark)
        requested = requests(source.secret)
        warm = head(source, place / "warm.csv")
        for request in requested:
            request.release(source, warm)
        releases = {request.name: request.release(source) for request in requested[:2]}
        releases[requested[0].name].to_csv(place / "release.csv")
        floor = Floor.under(source.path, place / "release.csv")
        floor.turn()  # warm
        floor = Floor.under(source.path, place / "release.csv")
        times = _times(source, requested, releases, floor, place)
        _report_times(section, times, requested, floor)
        _report_results(section, requested, releases)
        _report_fresh(section, source, requested)
        for request in requested[:2]:
            steps.report(section, request.name, lambda r=request: whole_way(r, source, place))


def head(source: tables.Source, path: Path) -> Path:
    with open(source.path, encoding="utf-8") as file, open(path, "w", encoding="utf-8") as head:
        head.writelines(line for _, line in zip(range(WARM_ROWS + 1), file, strict=False))
    return path


def whole_way(request: Request, source: tables.Source, place: Path) -> ck.Release:
    """From the CSV file to the saved folder; saving over the last one would time its deletion too."""
    release = request.release(source)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        release.save(Path(folder, "out"), report=False)
    return release


def _times(
    source: tables.Source, requested: list[Request], releases: dict[str, ck.Release], floor: Floor, place: Path
) -> clock.Times:
    """Everything in turns: floor, certificate, audit and releases."""
    jobs: dict[str, Callable[[], object]] = {"floor": floor.turn}
    for request in requested[:2]:
        release = releases[request.name]
        folder = place / f"out{len(jobs)}"
        release.save(folder, report=False)
        models = [*request.models, ck.TCloseness(source.secret, 1)]
        jobs[f"certificate, of {request.name}"] = lambda r=release, m=request.models: certificate(r, m)
        jobs[f"certificate with t, of {request.name}"] = lambda r=release, m=models: certificate(r, m)
        jobs[f"audit, of {request.name}"] = lambda f=folder: ck.audit(f / "release.csv", certificate=f / "certificate.json")
        jobs[request.name] = lambda r=request: whole_way(r, source, place)
    dear = requested[2]
    jobs[dear.name] = lambda: releases.__setitem__(dear.name, whole_way(dear, source, place))
    return clock.in_turns(jobs)


def certificate(release: ck.Release, models: list[Model]) -> ck.Certificate:
    """The certificate alone: classes regrouped from the written cells, guarantees and loss measured, the content hashed."""
    made = release.certificate
    reading = ck.generalized().read(release.columns, ck.Schema.from_forms(made.columns))
    measured = Measurement.of(reading, models, suppressed=made.suppressed)
    return measured.certify(reading.schema, made.form, made.notes, content_hash(release.columns))


def _report_times(section: Section, times: clock.Times, requested: list[Request], floor: Floor) -> None:
    aims = {request.name: request.aim for request in requested}
    lines = floor.lines(5)
    for name, seconds in times.items():
        if name != "floor":
            aim = aims.get(name, "2" if name.startswith("certificate") else "")
            lines.append([name, clock.spread(seconds), *floor.ratios(seconds), aim])
    section.table(["from CSV file to saved folder, warm", "time", "× floor", "× floor with sort", "aim"], lines)
    section.say(
        "Certificate: classes regrouped from the written cells, guarantees, loss and content hash, without reading a file; "
        "audit: the same from the saved files, with the SHA-256 of the file. Saving includes syncing to disk, the floor "
        "does not. The aims are multiples of the first floor."
    )


def _report_results(section: Section, requested: list[Request], releases: dict[str, ck.Release]) -> None:
    lines = []
    for request in requested:
        made = releases[request.name].certificate
        measured = next((f"{p.measured:.4f}" for p in made.guarantees if "t_closeness" in p.model), "")
        lines.append([request.name, f"{made.loss.a:.4f}", f"{made.loss.b:.4f}", f"{made.classes.count:,}", measured])
    section.table(["release", "loss A", "loss B", "classes", "t measured"], lines)


def _report_fresh(section: Section, source: tables.Source, requested: list[Request]) -> None:
    """Measure what needs a process of its own."""
    imports = [clock.fresh({"job": "imports"}) for _ in range(clock.ROUNDS + 1)][1:]
    took = {key: clock.spread([one[key] for one in imports]) for key in ("package", "anonymize")}
    section.say(
        f"Imports in a fresh interpreter: `import closeknit` {took['package']}, until `anonymize` is there {took['anonymize']}."
    )
    lines = []
    for request in requested:
        used = clock.fresh({"job": "release", "recipe": request.recipe(source)})
        lines.append([request.name, f"{used['peak']:,.0f} MB", f"{used['imports']:,.0f} MB", "1,500 MB"])
    section.table(["memory of a fresh process", "peak", "of it imports", "aim"], lines)
