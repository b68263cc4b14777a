"""Progress while kernels are compiled, which happens once per installation, so that the first call does not look frozen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from closeknit.core.method import Progress

COMPILING = "compiling (once), {} of {}"


@contextmanager
def with_compiling(report: Progress) -> Iterator[Progress]:
    """Yield a callback that passes progress on to `report`; while kernels are compiled, `report` gets that instead.

    >>> with with_compiling(lambda what, share: print(what, share)) as progress:
    ...     progress("dealing", 0.5)
    dealing 0.5
    """
    from closeknit.kernels.compiling import watch_compiling

    at, compiling = ("starting", 0.0), False

    def phase(what: str, share: float) -> None:
        nonlocal at
        at = (what, share)
        if not compiling:
            report(what, share)

    def report_compiling(begun: int, known: int) -> None:
        nonlocal compiling
        compiling = begun > 0
        report(COMPILING.format(begun, known) if compiling else at[0], at[1])

    with watch_compiling(report_compiling):
        yield phase
