"""Generated tables: drawn from a seed, without real persons, and free to share."""

from closeknit.datasets.baskets import baskets, with_baskets
from closeknit.datasets.hospital import hospital, hospital_recipe, hospital_schema
from closeknit.datasets.powerlaw import power_law, power_law_schema

__all__ = ["baskets", "hospital", "hospital_recipe", "hospital_schema", "power_law", "power_law_schema", "with_baskets"]
