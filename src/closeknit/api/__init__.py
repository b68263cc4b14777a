"""The functions of the toolkit: `anonymize` a table, `compare` methods, compute the `frontier` of privacy and loss, `choose_k`,
`audit` and `attack` a release, measure its `risk`, `suggest` roles and kinds of columns, `replay` a table as a stream."""

from closeknit.api.anonymizing import anonymize as anonymize
from closeknit.api.anonymizing import run as run
from closeknit.api.anonymizing import suggest as suggest
from closeknit.api.applying import apply as apply
from closeknit.api.attacking import AttackReport as AttackReport
from closeknit.api.attacking import attack as attack
from closeknit.api.auditing import audit as audit
from closeknit.api.bounding import bound_loss as bound_loss
from closeknit.api.choosing_k import choose_k as choose_k
from closeknit.api.comparing import compare as compare
from closeknit.api.comparing import compare_recipe as compare_recipe
from closeknit.api.comparing import save_comparison as save_comparison
from closeknit.api.dossiers import dossier as dossier
from closeknit.api.harbor_audit import safe_harbor as safe_harbor
from closeknit.api.presets import preset as preset
from closeknit.api.repeating import build_repeat as build_repeat
from closeknit.api.replaying import replay as replay
from closeknit.api.risking import risk as risk
from closeknit.api.risking import suda as suda
from closeknit.api.signing import new_keys as new_keys
from closeknit.api.signing import sign as sign
from closeknit.api.streaming import certificate_on_spark as certificate_on_spark
from closeknit.api.streaming import flush_on_spark as flush_on_spark
from closeknit.api.streaming import stream_on_spark as stream_on_spark
from closeknit.api.tradeoff import frontier as frontier
from closeknit.api.tradeoff import frontier_recipe as frontier_recipe
from closeknit.api.tradeoff import save_frontier as save_frontier
