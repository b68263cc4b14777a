"""What each guarantee means for the people in a table, in a sentence for whoever has to decide about a release."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from closeknit.core.certificate import Guarantee
from closeknit.core.combined_secrets import parts, render_secret

Params = Mapping[str, Any]


def meaning(guarantee: Guarantee, class_word: str = "class") -> str:
    """A guarantee in plain words; that of a model from elsewhere is its own line.

    >>> model, text = {"k_anonymity": {"k": 6}}, "k-anonymity, k = 6"
    >>> k = Guarantee(model=model, text=text, column=None, requested=">= 6", met=True, status="recomputable")
    >>> meaning(k)[:78]
    'Whoever knows everything about somebody but the secrets still finds at least 6'
    """
    ((name, params),) = guarantee.model.items()
    if name not in WORDS:
        return guarantee.text
    column = f"‘{render_secret(guarantee.column)}’" if guarantee.column else ""
    return WORDS[name](params, column, class_word, guarantee.status == "attested", len(parts(guarantee.column)) > 1)


def _k(params: Params, column: str, word: str, persons: bool, several: bool) -> str:
    who = "people" if persons else "rows"
    return (
        f"Whoever knows everything about somebody but the secrets still finds at least {params['k']} {who} that look the same, "
        "and cannot tell which one it is."
    )


def _l(params: Params, column: str, word: str, persons: bool, several: bool) -> str:
    number = params["l"]
    kinds = {
        "distinct": f"has at least {number} different values of {column}",
        "entropy": f"mixes the values of {column} as well as {number} equally frequent ones would",
        "recursive": f"has so many values of {column} that its most frequent one has less than {params.get('c')} times the "
        f"rows of all from number {number} on together",
        "frequency": f"gives no value of {column} more than one in {number} of its rows",
    }
    return f"Every {word} {kinds[params.get('kind', 'distinct')]}: who finds somebody's {word} still does not know the value."


def _t(params: Params, column: str, word: str, persons: bool, several: bool) -> str:
    also = " One of them does not give the others away." if several else ""
    return (
        f"In every {word} {column} is spread nearly as in all published rows: at most {params['t']} away, where 0 is the same "
        f"and 1 as far as can be. Who finds somebody's {word} learns little beyond what the table says of everybody.{also}"
    )


def _beta(params: Params, column: str, word: str, persons: bool, several: bool) -> str:
    kind, beta = params.get("kind", "enhanced"), params["beta"]
    more = {
        "basic": "",
        "enhanced": ", and values that are frequent anyway by less",
        "semantic": ", and the same holds for every group of related values",
        "range": f", and the same holds for all values within {params.get('eps')} of each other",
    }
    return (
        f"Finding somebody's {word} makes no value of {column} more likely by more than {_percent(beta)} of what it was "
        f"before{more[kind]}."
    )


def _delta(params: Params, column: str, word: str, persons: bool, several: bool) -> str:
    factor = math.exp(float(params["delta"]))
    return (
        f"Finding somebody's {word} makes no value of {column} more or less likely by a factor of {factor:.3g} or more; no "
        "value can be ruled out."
    )


def _slicing(params: Params, column: str, word: str, persons: bool, several: bool) -> str:
    return f"Whoever looks somebody up by all other cells gives no value of {column} a chance above one in {params['l']}."


def _posterior(params: Params, column: str, word: str, persons: bool, several: bool) -> str:
    return (
        f"Some values of {column} were replaced by chance, and nobody knows which: reading one changes the odds of any belief "
        f"about it by at most the factor {params['gamma']}."
    )


def _percent(share: Any) -> str:
    return f"{100 * float(share):.6g} %"


WORDS: dict[str, Callable[[Params, str, str, bool, bool], str]] = {
    "k_anonymity": _k,
    "l_diversity": _l,
    "t_closeness": _t,
    "beta_likeness": _beta,
    "delta_disclosure": _delta,
    "diverse_slicing": _slicing,
    "posterior_bound": _posterior,
}
