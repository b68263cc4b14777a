"""BUREL in windows: beta-likeness of every class to its window.

Gives the guarantees of `streams.windowed`, with beta-likeness instead of closeness: no sensitive value is more than so much
likelier in a class than in the window. BUREL plans the classes on the pending rows; they are judged against the whole window.

Source: the thesis on SABRE and BUREL, ch. 6, which says that beta-likeness is analogous.

Different from the source: likeness is not a metric, so there is no "beta minus D": classes are tested directly, and a window is
partitioned whenever all pending rows pass as one class. Otherwise as `streams.windowed` and `streams.sabre_window`.
"""

from __future__ import annotations

from typing import ClassVar

from closeknit.methods.burel import Burel
from closeknit.streams.planned_window import PlannedWindow


class BurelWindow(PlannedWindow):
    """Beta-likeness to the window, planned by BUREL.

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
    >>> schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    >>> stream = BurelWindow(schema, [ck.BetaLikeness("ill", 1)], omega=8, advance=4, k=2, seed=1)
    >>> ills = ["flu", "gout", "SARS", "ulcer"]
    >>> rows = [row for i in range(20) for row in stream.push({"age": i * 37 % 90, "ill": ills[i % 4]})] + stream.flush()
    >>> len(rows), sorted(rows[0])
    (20, ['age', 'ill', 'window'])
    """

    name: ClassVar[str] = "burel_window"
    planner = Burel
