"""A declared reference: the published distribution that classes are compared with, in place of that of all rows.

It is part of the guarantee, so a certificate contains it, and everyone can recompute each class without any other row. A value
that the reference does not have, and a missing one, fits no class: the guarantee is not met wherever one is published. Shares
are whole numbers over one denominator, so every verdict is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.combined_secrets import Secret
from closeknit.core.domain import NUMBER_TEXT, Domain
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import Number, fraction
from closeknit.core.folding import first_alike
from closeknit.core.kinds import flat, numeric

Reference = tuple[tuple[str, Number], ...]
Bools = NDArray[np.bool_]
LARGEST = 10**9  # of the common denominator: 64 bits have room for it times the rows of a class


def check_reference(model: Any) -> None:
    """Put the declared reference of a guarantee in order, and let the guarantee compare with it alone.

    Args:
        model: a guarantee with the fields `column` and `reference`.

    >>> from closeknit.models import TCloseness
    >>> TCloseness("ill", 0.2, reference={"flu": 3, "gout": 1}).reference
    (('flu', 3), ('gout', 1))
    >>> TCloseness("ill", 0.2, reference={"flu": 0.5, "Flu": 0.5})
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: the reference has 'flu' and 'Flu', which look alike; declare one of them
    """
    given = model.reference
    if given is None:
        return
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, list | tuple) or not pairs or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
        raise BadInput(f"reference={given!r} is no distribution", right="write {value: share, ...}")
    if isinstance(model.column, tuple):
        raise BadInput("a reference is declared for several columns as one", right="request each column alone")
    names = [str(value) for value, _ in pairs]
    if (alike := first_alike(names)) is not None:
        i = int(np.flatnonzero(alike != np.arange(len(names)))[0])
        raise BadInput(f"the reference has {names[alike[i]]!r} and {names[i]!r}, which look alike", right="declare one of them")
    for value, share in pairs:
        if fraction(f"the reference's share of {value}", share) <= 0:
            what = f"the reference has the share {share} for {value}"
            raise BadInput(what, right="declare a share above 0, or leave the value out")
    object.__setattr__(model, "reference", tuple((str(value), share) for value, share in pairs))
    weigh_values(model.reference)
    object.__setattr__(model, "compares", False)  # with the rows of a table or a window
    object.__setattr__(model, "bounds", "")  # methods plan for the distribution of the table


@cache
def weigh_values(reference: Reference) -> dict[str, int]:
    """The weight of every declared value, as whole numbers.

    Args:
        reference: values and shares.

    >>> weigh_values((("flu", 0.5), ("gout", "1/3")))
    {'flu': 3, 'gout': 2}
    """
    shares = {value: fraction("share", share) for value, share in reference}
    whole = lcm(*(share.denominator for share in shares.values()))
    weights = {value: int(share * whole) for value, share in shares.items()}
    if sum(weights.values()) > LARGEST:
        raise BadInput("the shares of the reference have too many digits", right="round them, or declare counts")
    return weights


def describe_reference(reference: Reference | None) -> str:
    """What the text of a guarantee adds: the declared values with their shares.

    Args:
        reference: values and shares; None if none are declared.

    >>> describe_reference((("flu", 3), ("gout", 1)))
    ', to the declared distribution flu 3, gout 1'
    """
    return "" if reference is None else f", to the declared distribution {', '.join(f'{value} {p}' for value, p in reference)}"


def compare_declared(classes: Classes, column: Secret, reference: Reference | None) -> tuple[Histogram, Bools]:
    """The histogram of a column with the declared reference, and which classes have a value that it does not have.

    Args:
        classes: the classes.
        column: the sensitive attribute.
        reference: the declared values and shares; None: the histogram remains as it is.

    >>> domain, codes = flat().bind(np.array(["flu", "SARS"], dtype=object))
    >>> one = Classes.of(np.zeros(2, dtype=np.int32), 1, {"ill": (codes, domain)})
    >>> declared, strange = compare_declared(one, "ill", (("flu", 0.5), ("gout", 0.5)))
    >>> declared.reference.tolist(), strange.tolist()
    ([1, 1, 0], [True])
    """
    seen, strange = classes.histograms[column], np.zeros(len(classes), dtype=bool)
    if reference is None:
        return seen, strange
    weights = weigh_values(reference)
    domain, code_of = _declare_domain(seen.domain, reference)
    width = domain.size + 1
    counts = np.zeros(width, dtype=np.int64)
    for value, weight in weights.items():
        counts[code_of[_read_key(seen.domain, value)]] = weight
    known = [code_of.get(key, domain.size) for key in _list_keys(seen.domain)]
    codes = np.array([code if counts[code] else domain.size for code in known] + [domain.size], dtype=np.int64)
    cells, where = np.unique(seen.owner * width + codes[seen.values], return_inverse=True)
    starts = np.searchsorted(cells, np.arange(len(seen.starts)) * width).astype(np.int64)
    rows = np.bincount(where, weights=seen.counts, minlength=len(cells)).astype(np.int64)
    found = Histogram(starts, (cells % width).astype(np.int32), rows, counts, domain)
    strange[found.owner[found.values == domain.size]] = True
    return found, strange


def _declare_domain(domain: Domain, reference: Reference) -> tuple[Domain, dict[Any, int]]:
    """The leaves with the declared ones, and the code of each."""
    if _is_bound(domain):
        code_of = {text: code for code, text in enumerate(domain.texts)}
        for value, _ in reference:
            if value not in code_of:
                right = (
                    suggest_name(value, domain.texts) if domain.texts else "declare the leaves: a Hierarchy, or numeric bins"
                )
                raise BadInput(f"the reference has {value!r}, which is no leaf of the column", right=right)
        return domain, dict(code_of)
    declared, code_of = _bind_numbers(reference) if domain.numbers is not None else _bind_texts(reference)
    return replace(declared, default_distance=domain.default_distance), code_of


def _is_bound(domain: Domain) -> bool:
    """Whether the leaves do not depend on the rows: those of a tree of several levels, or bins."""
    return domain.ends is not None or (domain.tree is not None and bool(domain.tree.height[0] > 1))


def _list_keys(domain: Domain) -> list[Any]:
    by_text = _is_bound(domain) or domain.numbers is None
    return list(domain.texts) if by_text else domain.numbers.tolist()  # type: ignore[union-attr]


def _read_key(domain: Domain, value: str) -> Any:
    return value if _is_bound(domain) or domain.numbers is None else float(value)


@cache
def _bind_numbers(reference: Reference) -> tuple[Domain, dict[Any, int]]:
    for value, _ in reference:
        if not NUMBER_TEXT.fullmatch(value):
            raise BadInput(f"the reference has {value!r}, which is no number", right="declare the numbers of the column")
    domain, _ = numeric().bind(np.array([float(value) for value, _ in reference]))
    assert domain.numbers is not None
    if domain.size < len(reference):
        raise BadInput("the reference has a number twice", right="declare each once")
    return replace(domain, declared=True), {number: code for code, number in enumerate(domain.numbers.tolist())}


@cache
def _bind_texts(reference: Reference) -> tuple[Domain, dict[Any, int]]:
    domain, _ = flat().bind(np.array([value for value, _ in reference], dtype=object))
    return domain, {text: code for code, text in enumerate(domain.texts)}
