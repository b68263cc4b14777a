"""SABRE in windows: (omega, t)-closeness of a stream.

Gives the guarantees of `streams.windowed`. SABRE plans the classes on the pending rows; they are judged against the whole
window, merged where they do not meet it, and cut further where they leave room.

Source: the thesis on SABRE and BUREL, ch. 6 (SABRE_W).

Different from the source: see `streams.windowed`. The search over plans (`slack`) and the exchange of rows (`polish`), which
SABRE does on tables, are off by default: they cut the loss to a third on SAL, in twenty times the time.
"""

from __future__ import annotations

from typing import ClassVar

from closeknit.methods.sabre import Sabre
from closeknit.streams.planned_window import PlannedWindow


class SabreWindow(PlannedWindow):
    """(omega, t)-closeness, planned by SABRE.

    Args:
        schema: roles and kinds of the columns; every quasi domain must be declared.
        models: the guarantees, each judged against the window.
        omega: rows of a window.
        advance: rows by which the window moves; `omega` is a multiple of it.
        seed: makes all choices reproducible; by default they are random.
        k: the fewest persons of a class.
        long_run: the largest distance of a class from the long run; by default it is not limited.
        fill: how the method picks rows: "hilbert", "knn" or "sweep".
        polish: whether rows are exchanged between classes afterwards; slower, with less loss.
        slack: whether several plans are tried; slower, with less loss.
        column: the sensitive column that the method plans for; by default that of the guarantees.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"wage": ck.numeric()})
    >>> stream = SabreWindow(schema, [ck.TCloseness("wage", 0.3)], omega=8, advance=4, k=2, seed=1)
    >>> rows = [row for i in range(20) for row in stream.push({"age": i * 37 % 90, "wage": i % 4})] + stream.flush()
    >>> len(rows), sorted(rows[0])
    (20, ['age', 'wage', 'window'])
    """

    name: ClassVar[str] = "sabre_window"
    planner = Sabre
