"""Generated tables: made by a seed, about nobody, and free to share."""

from closeknit.datasets.hospital import hospital, hospital_recipe, hospital_schema

__all__ = ["hospital", "hospital_recipe", "hospital_schema"]
