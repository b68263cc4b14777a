"""What an audit finds about the signatures next to a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from closeknit.core.audit import CheckedSignature
from closeknit.core.errors import BadInput
from closeknit.io.faults import explain_os_error
from closeknit.io.signing_keys import key_id, read_public_key
from closeknit.release.signature import Envelope

MOST_SIGNATURES = 20  # next to one certificate


def check_signatures(
    certificate: object, content: str, key: str | PathLike[str] | None
) -> tuple[list[CheckedSignature], list[str]]:
    """The signatures next to a certificate, and what is wrong with them if a key is given.

    Without a key they are only listed. With a key, one of them must be by this key, and cover the release as it is.

    Args:
        certificate: the certificate, or the path of its file.
        content: the content hash of the release, as recomputed.
        key: the public key.
    """
    if not isinstance(certificate, str | PathLike):
        if key is not None:
            raise BadInput("a signature is a file next to the certificate", right="give the path of the certificate")
        return [], []
    place = Path(certificate)
    files = sorted(place.parent.glob("*.sig"))
    if key is None:
        return [CheckedSignature(file=file.name) for file in files], []
    public = read_public_key(key)
    identity = key_id(public)
    if not files:
        return [], [f"there is no signature next to {place.name}, so nothing is signed with the key {identity}"]
    if len(files) > MOST_SIGNATURES:
        return [], [f"there are {len(files):,} signatures next to {place.name}, more than {MOST_SIGNATURES}"]
    found: list[CheckedSignature] = []
    faults: list[str] = []
    for file in files:
        try:
            envelope = Envelope.read(file)
            if not envelope.is_signed_with(public):
                raise BadInput(_other_key(envelope, identity), file=file.name)
            statement = envelope.statement(file)
        except OSError as error:
            faults.append(str(explain_os_error(error, file.name)))
            continue
        except BadInput as bad:
            faults.append(str(bad))
            continue
        changes = [f"{file.name}, signed with the key {identity}: {text}" for text in statement.find_changes(place, content)]
        found.append(CheckedSignature(file=file.name, key=identity, signer=statement.predicate.signer, valid=not changes))
        faults += changes
    return _judge(found, faults, files)


def _judge(
    found: Sequence[CheckedSignature], faults: Sequence[str], files: Sequence[Path]
) -> tuple[list[CheckedSignature], list[str]]:
    """One valid signature by the key is enough: those of other keys are then only listed."""
    if not any(one.valid for one in found):
        return list(found), list(faults)
    by_key = {one.file: one for one in found}
    stale = [fault for fault in faults if any(fault.startswith(f"{one.file}, ") and not one.valid for one in found)]
    return [by_key.get(file.name, CheckedSignature(file=file.name)) for file in files], stale


def _other_key(envelope: Envelope, identity: str) -> str:
    named = " or ".join(name for name, _ in envelope.signatures if name) or "none"
    if identity in named:
        return f"names the key {identity}, and its signature is not by this key: it was changed after signing"
    return f"is not signed with the key {identity}; the key that it names is {named[:500]}"
