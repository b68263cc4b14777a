"""What an attacker gets out of a release: plain functions on what was published, measured at home beside the original rows."""

from closeknit.attacks.membership import Against, Matches, Membership, membership, membership_of

__all__ = ["Against", "Matches", "Membership", "membership", "membership_of"]
