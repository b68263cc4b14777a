"""SABRE in windows: (omega, t)-closeness of a stream.

Guarantees what `streams.windows` does. Who stands with whom is planned by SABRE on the rows that wait; its classes are then
judged against the whole window, merged where they miss it and cut further where they leave room.

Source: the thesis on SABRE and BUREL, ch. 6 (SABRE_W).

Different from the source: see `streams.windows`; of the search over plans (`slack`) and the exchange of rows (`polish`),
which SABRE does on tables, nothing is done here unless asked: they cut the loss to a third on SAL, in twenty times the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from closeknit.core.exact import Number
from closeknit.core.model import Model
from closeknit.core.schema import Schema
from closeknit.methods.sabre import Sabre
from closeknit.streams.windowed import Windowed


class SabreWindow(Windowed):
    """(omega, t)-closeness, planned.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"wage": ck.numeric()})
    >>> stream = SabreWindow(schema, [ck.TCloseness("wage", 0.3)], omega=8, advance=4, k=2, seed=1)
    >>> rows = [row for i in range(20) for row in stream.push({"age": i * 37 % 90, "wage": i % 4})] + stream.flush()
    >>> len(rows), sorted(rows[0])
    (20, ['age', 'wage', 'window'])
    """

    name: ClassVar[str] = "sabre_window"

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
        method = Sabre(fill=fill, polish=polish, slack=slack, column=column)
        super().__init__(method, schema, models, omega, advance, seed, k, long_run)
