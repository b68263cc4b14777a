"""What attacks need beyond the public files: `closeknit attack` and the public report name those that were not tried.

Whatever the written cells and the certificate allow is tried by everyone who has them (`attacks.on_release`), the public report
included. The others need one of the things below, so their findings are private or depend on what the adversary has:

- exact quasi-identifiers, because cells do not show which member of a class is on which side of a cut;
- the method, which a certificate does not name, or its seed;
- a list of people, or another release.
"""

from __future__ import annotations

from closeknit.core.kinds import Numeric
from closeknit.core.reading import Reading

ORIGINAL = "the original rows"
POPULATION = "a population: a list with the quasi-identifiers of all persons who may be in the table"
NEEDS = {
    "candidate rows": ORIGINAL,
    "matching buckets": ORIGINAL,
    "singling out": f"{ORIGINAL}, to count how many of them a range end describes",
    "delta presence": POPULATION,
    "population linkage": POPULATION,
    "intersection": "another release of the same people, and their quasi-identifiers",
    "row join": "another release of the same people",
    "minimality": "the recipe with its method and seed, to rerun it",
    "exchange": "the recipe with its method, to rerun it",
    "refinement": "the recipe with its method, and its classes",
    "downcoding": "the recipe with its method, and its classes",
}
TO_RECIPIENTS = {  # they have no recipe, and a public file does not mention one
    "minimality": "the method with its random draws, and the original rows",
    "exchange": "the method and the original rows",
    "refinement": "the method, and exact quasi-identifiers with the class of each row",
    "downcoding": "the original rows with the class of each; `range_ends` has what follows from ranges alone",
}
BY_CLASS = ("refinement", "downcoding")  # attacks that need the class of each row
BY_RECIPE = ("minimality", "exchange", *BY_CLASS)  # attacks that rerun the method


def list_applicable(reading: Reading) -> list[str]:
    """List the attacks that apply to a form, whether what they need is at hand or not; those with a recipe last.

    Args:
        reading: The release as its form reads it.

    >>> import closeknit as ck
    >>> from closeknit.forms.release_reading import reading_of
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> list_applicable(reading_of(ck.anonymize(table, schema, [ck.LDiversity("disease", 2)], form="multiset")))[:2]
    ['matching buckets', 'delta presence']
    """
    shared = ["delta presence", "intersection", "row join"]
    if reading.column_groups:
        return ["matching buckets", *shared, *BY_RECIPE]
    ranges = ["singling out"] if any(isinstance(kind, Numeric) for kind in reading.schema.quasi.values()) else []
    return ["candidate rows", "population linkage", *shared, *ranges, *BY_RECIPE]


def list_untried(reading: Reading) -> list[str]:
    """List the attacks that public files do not allow, each with what it needs.

    Args:
        reading: The release as its form reads it.
    """
    return [f"{attack} needs {(NEEDS | TO_RECIPIENTS)[attack]}" for attack in list_applicable(reading)]
