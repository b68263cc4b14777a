"""The five sources, in the order of the page."""

from __future__ import annotations

from experiments import (
    dissertation,
    several_secrets,
    slicing,
    stack_and_deal,
    thesis_castle,
    thesis_castle_worth,
    thesis_close,
    thesis_faces,
    thesis_like,
    thesis_windows,
    thesis_worth,
)
from experiments.figures import Experiment, Source

CHAPTERS = (thesis_close, thesis_worth, thesis_faces, thesis_like, thesis_castle, thesis_castle_worth, thesis_windows)
THESIS: dict[str, Experiment] = dict(
    sorted(
        (item for module in CHAPTERS for item in module.EXPERIMENTS.items()),
        key=lambda item: [int(part) for part in item[0].split(".")],
    )
)

SOURCES = {
    "dissertation": Source(
        "The dissertation on methods to achieve t-closeness",
        "Vikas Thammanna Gowda, 2023: [Stack & Deal](stack_and_deal.md) for one sensitive attribute and for two. It prints its "
        "figures as "
        "clouds of points without numbers, so its findings are quoted.",
        dissertation.EXPERIMENTS,
    ),
    "stack_and_deal": Source(
        "The Stack & Deal paper",
        "Vikas Thammanna Gowda, 2021: [Stack & Deal](stack_and_deal.md), over k.",
        stack_and_deal.EXPERIMENTS,
    ),
    "several_secrets": Source("The paper on multiple sensitive attributes", several_secrets.ABOUT, several_secrets.EXPERIMENTS),
    "slicing": Source("The paper on slicing", slicing.ABOUT, slicing.EXPERIMENTS),
    "thesis": Source(
        "The thesis on SABRE and BUREL",
        "Jianneng Cao: SABRE (chapter 3) and BUREL (chapter 4) on SAL, CASTLE (chapter 5) on Adult, windows (chapter 6).",
        THESIS,
    ),
}
