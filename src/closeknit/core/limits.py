"""Limits of all requests: each is checked where its parameter is read, before anything is allocated.

The command line, Python, recipes, the page, the service and audits share these checks. A server has further limits
(`closeknit.web.settings`), which depend on the machine.
"""

from __future__ import annotations

from fractions import Fraction

from closeknit.core.errors import BadInput

MOST_ROWS = 1_000_000_000  # of a table in memory
MOST_COLUMNS = 10_000
MOST_INTERVALS = 10_000  # bins, quantiles or intervals of one column
MOST_STEPS = 1_000_000_000  # of a numeric column, from its least value to its largest
MOST_LENGTH = 100  # characters of a code that is masked one character per level
MOST_LEVELS = 110  # of a hierarchy: a masked code has as many levels as characters
MOST_NODES = 500_000  # of a hierarchy that is written out
MOST_BYTES = 64 << 20  # of a certificate, a report or a recipe
MOST_GUARANTEES = 1_000  # of one certificate
MOST_NOTES = 10_000  # and files
MOST_COMBINATIONS = 8_000_000  # of several sensitive attributes, or values of all columns, that Spark's driver takes
MOST_PROPOSALS = 1_000_000_000_000  # of a search: about a day
MOST_SECONDS = 86_400  # of a search
MOST_VECTORS = 10_000_000  # of levels that are searched
MOST_RUNS = 1_000  # of a method, for an attack that runs it again
MOST_DRAWS = 5_000_000  # of a sample that an attack draws
MOST_SOLVES = 1_000_000  # of an integer program, for an attack
MOST_EXCLUSIONS = 100  # of values by background knowledge
MOST_COLUMN_SETS = 100_000  # in which minimal sample uniques are looked for
MOST_QUERIES = 1_000_000  # of a workload
MOST_SENDERS = 1_000  # of a stream over HTTP
MOST_GROUP_BYS = 100_000  # of one level of the OLAP lattice


def check_count(what: str, count: int | Fraction, most: int) -> None:
    """Refuse a count above its limit; `what` names the parameter that requests it.

    >>> check_count("width=0.001 makes {} intervals", 100_000, MOST_INTERVALS)
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: width=0.001 makes 100,000 intervals; choose at most 10,000
    """
    if count > most:
        shown = f"{int(count):,}" if count < 10**18 else "more than 10^18"
        raise BadInput(what.format(shown), right=f"choose at most {most:,}")
