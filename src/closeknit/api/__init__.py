"""The verbs: `anonymize` a table, `compare` methods on it, `audit` a release made by anyone, `suggest` what the columns are,
`replay` a table as a stream."""

from closeknit.api.anonymizing import anonymize, run, suggest
from closeknit.api.auditing import audit
from closeknit.api.comparing import compare, compare_recipe, save_comparison
from closeknit.api.replaying import replay

__all__ = ["anonymize", "audit", "compare", "compare_recipe", "replay", "run", "save_comparison", "suggest"]
