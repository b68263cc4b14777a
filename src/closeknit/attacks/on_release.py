"""Every attack that needs the release alone, on each of its sensitive attributes, worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from closeknit.attacks.background import background
from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.finding import Finding, worst_first
from closeknit.attacks.homogeneity import homogeneity
from closeknit.attacks.insider import insider
from closeknit.attacks.joint_secrets import joinable, joint_secrets
from closeknit.attacks.linkage import record_linkage
from closeknit.attacks.range_ends import range_ends
from closeknit.attacks.rules import association_rules
from closeknit.attacks.similarity import similarity
from closeknit.attacks.skewness import skewness
from closeknit.core.reading import Reading
from closeknit.forms.release_reading import Published, reading_of

Attack = Callable[..., Finding]
OF_ONE_ATTRIBUTE: tuple[Attack, ...] = (homogeneity, skewness, similarity, background, insider)
_ALL: tuple[Attack, ...] = (record_linkage, range_ends, *OF_ONE_ATTRIBUTE, joint_secrets, association_rules)
ON_RELEASE: dict[str, Attack] = {attack.__name__: attack for attack in _ALL}


def on_release(published: Published | Reading, baskets: Sequence[str] = ()) -> list[Finding]:
    """Run every attack that needs the release alone.

    Attacks that do not apply to a column or form are left out; `list_skipped` names them.

    Args:
        published: A release, or what its form read.
        baskets: Sensitive attributes whose cells hold several items (`flu;gout`).

    Returns:
        The findings, the largest risk first.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> found = on_release(ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.StackAndDeal()))
    >>> len(found), found[0].risk, found[0].attack
    (18, 1.0, 'joint_secrets')
    """
    return try_release(published, baskets)[0]


def try_release(published: Published | Reading, baskets: Sequence[str] = ()) -> tuple[list[Finding], list[str]]:
    """Return what `on_release` and `list_skipped` return, in one pass.

    Args:
        published: A release, or what its form read.
        baskets: Sensitive attributes whose cells hold several items.
    """
    tried = list(_run_attacks(reading_of(published), baskets))
    return worst_first(each for each in tried if isinstance(each, Finding)), [each for each in tried if isinstance(each, str)]


def list_skipped(published: Published | Reading, baskets: Sequence[str] = ()) -> list[str]:
    """List the attacks that do not apply to this release, each with its reason.

    Args:
        published: A release, or what its form read.
        baskets: Sensitive attributes whose cells hold several items.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"wage": ck.flat()})
    >>> list_skipped(ck.generalized().read(Columns.of({"sex": ["f"], "wage": ["low"]}), schema))[-1]
    'joint secrets: no two sensitive attributes belong together, so none reveals another'
    """
    return try_release(published, baskets)[1]


def _run_attacks(reading: Reading, baskets: Sequence[str]) -> Iterator[Finding | str]:
    """Yield one finding, or the reason why there is none, for each attack and its target."""
    secrets = list(reading.schema.sensitive)
    # all cells of a row belong together, or each sensitive attribute is linked separately
    for column in secrets if reading.column_groups and secrets else [None]:
        yield record_linkage(reading, column)
    yield _run_attack(range_ends, reading)
    for attack in OF_ONE_ATTRIBUTE:
        for secret in secrets:
            yield _run_attack(attack, reading, secret)
    together = list(joinable(reading))
    for names in together:
        yield joint_secrets(reading, names)
    if not together:
        yield "joint secrets: no two sensitive attributes belong together, so none reveals another"
    for basket in baskets:
        yield _run_attack(association_rules, reading, basket)


def _run_attack(attack: Attack, reading: Reading, *column: str) -> Finding | str:
    try:
        return attack(reading, *column)
    except NotApplicable as reason:
        return f"{' of '.join([attack.__name__.replace('_', ' '), *column])}: {reason.what}"
