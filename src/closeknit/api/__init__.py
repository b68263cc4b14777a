"""The functions of the toolkit: `anonymize` a table, `compare` methods, compute the `frontier` of privacy and loss, `choose_k`,
`audit` and `attack` a release, measure its `risk`, `suggest` roles and kinds of columns, `replay` a table as a stream."""

from closeknit.api.anonymizing import anonymize, run, suggest
from closeknit.api.applying import apply
from closeknit.api.attacking import AttackReport, attack
from closeknit.api.auditing import audit
from closeknit.api.bounding import bound_loss
from closeknit.api.choosing_k import choose_k
from closeknit.api.comparing import compare, compare_recipe, save_comparison
from closeknit.api.dossiers import dossier
from closeknit.api.harbor_audit import safe_harbor
from closeknit.api.presets import preset
from closeknit.api.repeating import build_repeat
from closeknit.api.replaying import replay
from closeknit.api.risking import risk, suda
from closeknit.api.signing import new_keys, sign
from closeknit.api.streaming import certificate_on_spark, flush_on_spark, stream_on_spark
from closeknit.api.tradeoff import frontier, frontier_recipe, save_frontier

__all__ = [
    "AttackReport",
    "anonymize",
    "apply",
    "attack",
    "audit",
    "bound_loss",
    "build_repeat",
    "certificate_on_spark",
    "choose_k",
    "compare",
    "compare_recipe",
    "dossier",
    "flush_on_spark",
    "frontier",
    "frontier_recipe",
    "new_keys",
    "preset",
    "replay",
    "risk",
    "run",
    "safe_harbor",
    "save_comparison",
    "save_frontier",
    "sign",
    "stream_on_spark",
    "suda",
    "suggest",
]
