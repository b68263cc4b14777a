"""BUREL in windows: beta-likeness of every class to its window.

Guarantees what `streams.windows` does, with beta-likeness in the place of closeness: no secret is more than so much likelier
in a class than in the window. Planned by BUREL on the rows that wait; its classes are then judged against the whole window.

Source: the thesis on SABRE and BUREL, ch. 6, which says that beta-likeness goes likewise.

Different from the source: likeness is no metric, so there is no "beta minus D": classes are tested directly, and a window is
parted whenever all that waits passes as one class. The rest as in `streams.windows` and `streams.sabre_window`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from closeknit.core.exact import Number
from closeknit.core.model import Model
from closeknit.core.schema import Schema
from closeknit.methods.burel import Burel
from closeknit.streams.windowed import Windowed


class BurelWindow(Windowed):
    """Beta-likeness to the window, planned.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    >>> stream = BurelWindow(schema, [ck.BetaLikeness("ill", 1)], omega=8, advance=4, k=2, seed=1)
    >>> ills = ["flu", "gout", "SARS", "ulcer"]
    >>> rows = [row for i in range(20) for row in stream.push({"age": i * 37 % 90, "ill": ills[i % 4]})] + stream.flush()
    >>> len(rows), sorted(rows[0])
    (20, ['age', 'ill', 'window'])
    """

    name: ClassVar[str] = "burel_window"

    def __init__(
        self,
        schema: Schema,
        models: Sequence[Model],
        omega: int = 20_000,
        advance: int = 5_000,
        seed: int | None = None,
        k: int | None = None,
        long_run: Number | None = None,
        fill: str = "hilbert",
        polish: bool = False,
        slack: bool = False,
        column: str | None = None,
    ) -> None:
        method = Burel(fill=fill, polish=polish, slack=slack, column=column)
        super().__init__(method, schema, models, omega, advance, seed, k, long_run)
