"""Presets on a page: what each one adds to the draft, what it means, and what it does not settle."""

from __future__ import annotations

from typing import Any

from closeknit.api.presets import PRESETS
from closeknit.core.zip_areas import CENSUS_2000

ON_THE_PAGE = {"zip3": f"{CENSUS_2000} for the list of the census of 2000; without it ZIP codes are dropped"}  # no files


def list_presets() -> list[dict[str, Any]]:
    """Return every preset in parts that a template shows.

    >>> [found["name"] for found in list_presets()]
    ['ema_0070', 'health_canada', 'ons', 'hipaa_safe_harbor']
    >>> list_presets()[-1]["options"]["zip3"]
    'census2000 for the list of the census of 2000; without it ZIP codes are dropped'
    """
    keys = ("name", "title", "says", "open", "sources")
    return [
        {key: getattr(found, key) for key in keys}
        | {"adds": found.recipe_text, "options": {key: ON_THE_PAGE.get(key, means) for key, means in found.options.items()}}
        for found in PRESETS.values()
    ]
