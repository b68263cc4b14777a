"""Attacks: plain functions that measure the disclosure risk of a release, from the release alone or with private data."""

from closeknit.attacks.background import background
from closeknit.attacks.candidate_rows import candidate_rows
from closeknit.attacks.downcoding import downcoding
from closeknit.attacks.exchange import exchange
from closeknit.attacks.finding import Finding, worst_first
from closeknit.attacks.homogeneity import homogeneity
from closeknit.attacks.insider import insider
from closeknit.attacks.intersection import intersection
from closeknit.attacks.joint_secrets import joint_secrets
from closeknit.attacks.linkage import record_linkage
from closeknit.attacks.local_recoding import local_recoding
from closeknit.attacks.matching_buckets import matching_buckets
from closeknit.attacks.membership import Against, Matches, Membership, membership, membership_of
from closeknit.attacks.minimality import minimality
from closeknit.attacks.on_release import ON_RELEASE, list_skipped, on_release
from closeknit.attacks.population_linkage import population_linkage
from closeknit.attacks.presence import delta_presence
from closeknit.attacks.private_attacks import with_original, with_other, with_population
from closeknit.attacks.range_ends import range_ends, singling_out
from closeknit.attacks.refinement import refinement
from closeknit.attacks.row_join import row_join
from closeknit.attacks.rules import association_rules
from closeknit.attacks.similarity import similarity
from closeknit.attacks.skewness import skewness
from closeknit.attacks.temporal import temporal

__all__ = [
    "ON_RELEASE",
    "Against",
    "Finding",
    "Matches",
    "Membership",
    "association_rules",
    "background",
    "candidate_rows",
    "delta_presence",
    "downcoding",
    "exchange",
    "homogeneity",
    "insider",
    "intersection",
    "joint_secrets",
    "list_skipped",
    "local_recoding",
    "matching_buckets",
    "membership",
    "membership_of",
    "minimality",
    "on_release",
    "population_linkage",
    "range_ends",
    "record_linkage",
    "refinement",
    "row_join",
    "similarity",
    "singling_out",
    "skewness",
    "temporal",
    "with_original",
    "with_other",
    "with_population",
    "worst_first",
]
