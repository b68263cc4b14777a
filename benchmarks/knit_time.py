"""What more of Knit's budget is worth: loss over processor time on lines of Adult, as a table and as a picture of the docs."""

from __future__ import annotations

from pathlib import Path

import closeknit as ck
import knit_lines
import pictures
import tables
from knit import Made, Problem, lines, through
from sections import Section

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "knit_time.png"
CYCLES = 5  # the longest budget: 682 sweeps
COLUMNS = 3
# Processor seconds of ARX 3.9.x at the settings of `knit_lines.QUOTED`, quoted and not measured here.
ARX_SECONDS = {
    "a t=0.15": 13.7,
    "a t=0.2": 10.7,
    "a t=0.3": 9.0,
    "a beta=1.5": 10.3,
    "a l=4": 4.6,
    "a k": 4.0,
    "b t=0.2": 7.7,
    "b k": 3.9,
    "d t=0.1": 55.0,
    "d t=0.2": 25.0,
}
Point = tuple[float, float]  # seconds, loss


def run(section: Section, rows: int | None) -> None:
    """Every budget is a run of its own: a larger one goes through the same cycles and then on."""
    public = rows is None and tables.data_folder() is not None
    names = (*knit_lines.QUOTED, *knit_lines.OURS, *knit_lines.TREE)
    requested = [knit_lines.problem(name) for name in names] if public else [lines(rows)["t=0.1"]]
    found = {one.name: curve(one, CYCLES if public else 1) for one in requested}
    usual, quick = (ck.Knit().sweeps(len(requested[0].frame), quick) for quick in (False, True))
    section.say(
        "Tables and guarantees as in the section `knit_lines`. Each cell: loss A (seconds of processor time of all threads, "
        "from the frame to the certified release), after the start and after each cycle. A budget of so many sweeps is "
        f"enough for it; the default has {usual}, and {quick} where size and diversity alone decide."
    )
    sweeps = sorted({count for points in found.values() for count in points})
    head = ["line", *(f"{count} sweeps" for count in sweeps)]
    section.table(head, [[name, *(_cell(points.get(count)) for count in sweeps)] for name, points in found.items()])
    if public:
        mondrian = {one.name: measure(ck.Mondrian(), one) for one in requested}
        bounds = {one.name: knit_lines.prove_bound(one.name) for one in requested}
        section.say(
            "The longest budget compared with ARX's quoted loss and with the lower bound; and the first budget that loses no "
            "more than ARX, in processor seconds, and as a share of ARX's quoted seconds, which are those of another machine."
        )
        head = ["line", "longest", "of ARX", "longest / bound", "no more than ARX after", "of ARX's time"]
        section.table(head, [[name, *_compare(name, points, bounds[name])] for name, points in found.items()])
        draw(found, mondrian, bounds, PICTURE)
        section.say("docs/pictures/knit_time.png shows the same, with Mondrian, the quoted ARX and the lower bound.")


def curve(requested: Problem, cycles: int) -> dict[int, Point]:
    """Seconds and loss by the sweeps of each budget; 0 is the start alone."""
    n = len(requested.frame)
    small = Problem(requested.name, requested.frame.head(1_000), requested.schema, requested.models)
    for method in (ck.Knit(proposals=10**6), ck.Mondrian()):
        Made.by(method, small)  # loads the compiled loops
    return {through(n, count).sweeps(n): measure(through(n, count), requested) for count in range(cycles + 1)}


def measure(method: ck.Knit | ck.Mondrian, requested: Problem) -> Point:
    """Processor seconds, to two digits, and loss of one release."""
    made = Made.by(method, requested)
    return float(f"{made.seconds:.2g}"), made.release.loss


def _cell(point: Point | None) -> str:
    return f"{point[1]:.4f} ({point[0]:.1f} s)" if point else ""


def _compare(name: str, points: dict[int, Point], bound: float) -> list[str]:
    longest = points[max(points)][1]
    texts = [f"{longest:.4f}", "", f"{longest / bound:.2f}", "", ""]
    for seconds, loss in _quote(name.replace(", age tree", "")).items():
        texts[1] = f"{longest / loss:.2f}"
        if reached := [point[0] for point in points.values() if point[1] <= loss]:
            texts[3:] = [f"{min(reached):.2f} s", f"{min(reached) / seconds:.3f}"]
    return texts


def _quote(name: str) -> dict[float, float]:
    """ARX's loss by its seconds, where they are quoted."""
    return {ARX_SECONDS[name]: knit_lines.QUOTED[name][0]} if name in ARX_SECONDS else {}


def draw(found: dict[str, dict[int, Point]], mondrian: dict[str, Point], bounds: dict[str, float], path: Path) -> None:
    """A panel for each line: Knit's curve, Mondrian's point, the lower bound, and ARX's point where it is quoted."""
    panels = [
        pictures.Panel(
            "processor time, seconds",
            "loss A",
            {"Knit, start and longer and longer budgets": dict(points.values()), "Mondrian": dict([mondrian[name]])},
            reported={
                "ARX, quoted": _quote(name.replace(", age tree", "")),
                "lower bound": dict.fromkeys((min(points.values())[0], max(points.values())[0]), bounds[name]),
            },
            title=name,
            log_x=True,
        )
        for name, points in found.items()
    ]
    pictures.draw(path, "Loss over processor time on lines of Adult", panels, COLUMNS)
