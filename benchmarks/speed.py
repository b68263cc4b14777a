"""SABRE and BUREL on SAL from CSV file to saved folder, against the floor: time and memory; the knn fill on a sample."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import clock
import closeknit as ck
import tables
from floor import Floor
from sal import Request, head, whole_way
from sections import Section
from trials import part

K, T, BETA, SAMPLE = 6, 0.35, 4, 100_000


def requests(secret: str) -> list[Request]:
    """Both methods without slack and polish, and as they stand by default."""
    k, t, beta = ck.KAnonymity(K), ck.TCloseness(secret, T), ck.BetaLikeness(secret, BETA)
    return [
        Request(f"SABRE, t={T}, plain", [k, t], ck.Sabre(polish=False, slack=False), "5"),
        Request(f"BUREL, beta={BETA}, plain", [k, beta], ck.Burel(polish=False, slack=False), "5"),
        Request(f"SABRE, t={T}", [k, t], ck.Sabre(), "15"),
        Request(f"BUREL, beta={BETA}", [k, beta], ck.Burel(), "15"),
    ]


def run(section: Section, rows: int | None) -> None:
    """Times in turns with the floor, memory in processes of their own, then knn."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source = tables.sal(place, rows)
        section.say(f"{source.remark} k = {K}, the hilbert fill; plain: without slack and polish.")
        requested = requests(source.secret)
        compare_with_floor(section, source, requested, place)
        _knn(section, source, place)


def compare_with_floor(section: Section, source: tables.Source, requested: list[Request], place: Path) -> dict[str, ck.Release]:
    """Times in turns with the floor, and memory in processes of their own; the releases by their requests' names."""
    warm = head(source, place / "warm.csv")
    releases = {}
    for request in requested:
        request.release(source, warm)
        releases[request.name] = request.release(source)
    releases[requested[0].name].to_csv(place / "release.csv")
    Floor.under(source.path, place / "release.csv").turn()  # warm
    floor = Floor.under(source.path, place / "release.csv")
    jobs: dict[str, Callable[[], object]] = {"floor": floor.turn}
    jobs |= {request.name: lambda r=request: whole_way(r, source, place) for request in requested}
    report(section, source, requested, releases, clock.in_turns(jobs), floor)
    return releases


def report(
    section: Section,
    source: tables.Source,
    requested: list[Request],
    releases: dict[str, ck.Release],
    times: clock.Times,
    floor: Floor,
) -> None:
    lines = floor.lines(10)
    for request in requested:
        made, took = releases[request.name].certificate, times[request.name]
        used = clock.fresh({"job": "release", "recipe": request.recipe(source)})
        lines.append(
            [
                request.name,
                clock.spread(took),
                *floor.ratios(took),
                request.aim,
                f"{made.loss.a:.4f}",
                f"{made.classes.count:,}",
                f"{made.guarantees[-1].measured:.4f}",
                f"{used['peak']:,.0f} MB",
                f"{used['imports']:,.0f} MB",
            ]
        )
    measured = ["loss A", "classes", "measured", "peak memory", "of it imports"]
    section.table(["from CSV file to saved folder, warm", "time", "× floor", "× floor with sort", "aim", *measured], lines)


def _knn(section: Section, source: tables.Source, place: Path) -> None:
    """Exact nearest neighbours are no aim for the whole table."""
    sample = part(source, place / "sample.csv", SAMPLE)
    lines = []
    for model in (ck.TCloseness(source.secret, T), ck.BetaLikeness(source.secret, BETA)):
        maker = ck.Sabre if isinstance(model, ck.TCloseness) else ck.Burel
        for said, options in (("plain", {"polish": False, "slack": False}), ("default", {})):
            request = Request("", [ck.KAnonymity(K), model], maker(fill="knn", **options), "")
            seconds = clock.in_turns({"": lambda r=request: whole_way(r, sample, place)})[""]
            loss = request.release(sample).loss
            lines.append([f"{maker.name}, {said}", clock.spread(seconds), "60 s", f"{loss:.4f}"])
    section.table([f"knn, {sample.rows:,} rows, to saved folder", "time", "aim", "loss A"], lines)
