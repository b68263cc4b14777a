"""PcaDraw and Fragmentation on SAL with a second, generated sensitive attribute, from CSV file to saved folder, against "
"the floor."""

from __future__ import annotations

import tempfile
from pathlib import Path

import clock
import closeknit as ck
import tables
from floor import Floor
from sal import Request, head, whole_way
from sections import Section
from several import with_second

K, T, SECOND = 6, 0.2, "illness"


def requests(secret: str) -> list[Request]:
    """Both methods as they stand, and with the quicker fill and no polish."""
    models = [ck.KAnonymity(K), ck.TCloseness(secret, T), ck.TCloseness(SECOND, T)]
    return [
        Request("PcaDraw, hilbert, no polish", models, ck.PcaDraw(fill="hilbert", polish=False), ""),
        Request("PcaDraw", models, ck.PcaDraw(), ""),
        Request("Fragmentation, no slack, no polish", models, ck.Fragmentation(slack=False, polish=False), ""),
        Request("Fragmentation", models, ck.Fragmentation(), ""),
    ]


def run(section: Section, rows: int | None) -> None:
    """Each once: these are long. Memory in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source = with_second(tables.sal(place, rows), place / "sal2.csv", SECOND)
        section.say(f"{source.remark} k = {K}, t = {T} for both sensitive attributes, both ordered.")
        warm = head(source, place / "warm.csv")
        lines, floor = [], None
        for request in requests(source.secret):
            request.release(source, warm)
            releases: list[ck.Release] = []
            seconds = [clock.timed(lambda r=request, kept=releases: kept.append(whole_way(r, source, place)))]
            floor = floor or _floor(source, releases[0], place)
            used = clock.fresh({"job": "release", "recipe": request.recipe(source)})
            lines.append(_line(request, releases[0].certificate, seconds, floor, used))
        assert floor is not None
        lines.insert(
            0, ["floor: polars reads the CSV and writes the release's cells", clock.spread(floor.plain), "1", *[""] * 6]
        )
        measured = ["loss A", "classes", "mean size", "measured", "peak memory", "of it imports"]
        section.table(["from CSV file to saved folder, warm", "time", "× floor", *measured], lines)


def _floor(source: tables.Source, release: ck.Release, place: Path) -> Floor:
    release.to_csv(place / "release.csv")
    Floor.under(source.path, place / "release.csv").turn()  # warm
    floor = Floor.under(source.path, place / "release.csv")
    floor.turn()
    return floor


def _line(request: Request, made: ck.Certificate, seconds: list[float], floor: Floor, used: dict[str, float]) -> list[object]:
    measured = " ".join(f"{guarantee.measured:.4f}" for guarantee in made.guarantees[1:])
    sizes = [f"{made.classes.count:,}", f"{made.classes.mean:.1f}"]
    memory = [f"{used['peak']:,.0f} MB", f"{used['imports']:,.0f} MB"]
    return [request.name, clock.spread(seconds), floor.ratios(seconds)[0], f"{made.loss.a:.4f}", *sizes, measured, *memory]
