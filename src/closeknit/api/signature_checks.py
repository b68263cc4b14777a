"""What an audit finds about the signatures next to a certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from closeknit.core.audit import CheckedSignature
from closeknit.core.errors import BadInput
from closeknit.io.faults import explain_os_error
from closeknit.io.signing_keys import key_id, read_public_key
from closeknit.release.signature import Envelope, Statement

MOST_SIGNATURES = 20  # next to one certificate


def check_signatures(
    certificate: object, content: str, key: str | PathLike[str] | None, in_folder: bool
) -> tuple[list[CheckedSignature], list[str]]:
    """The signatures next to a certificate, and what is wrong with them.

    Without a key they are only listed. With a key, one of them must be by this key, and cover the release as it is. In a folder
    that is the release's alone, a file that ends with `.sig` and is no signature is a fault, with a key and without.

    Args:
        certificate: the certificate, or the path of its file.
        content: the content hash of the release, as recomputed.
        key: the public key.
        in_folder: whether the folder of the certificate is the release's alone.
    """
    if not isinstance(certificate, str | PathLike):
        if key is not None:
            raise BadInput("a signature is a file next to the certificate", right="give the path of the certificate")
        return [], []
    place = Path(certificate)
    public = None if key is None else read_public_key(key)
    files = sorted(place.parent.glob("*.sig"))
    if len(files) > MOST_SIGNATURES and (in_folder or public is not None):
        return [], [f"there are {len(files):,} signatures next to {place.name}, more than {MOST_SIGNATURES}"]
    envelopes, foreign = _read_envelopes(files[:MOST_SIGNATURES])
    if public is None:
        return [CheckedSignature(file=file.name) for file in envelopes], foreign if in_folder else []
    if not files:
        return [], [f"there is no signature next to {place.name}, so nothing is signed with the key {key_id(public)}"]
    found, faults = _verify(envelopes, public, place, content)
    # One valid signature by the key is enough: those of other keys are then only listed.
    valid = any(one.valid for one in found.values())
    listed = [found.get(file, CheckedSignature(file=file.name)) for file in envelopes if valid or file in found]
    stale = [text for file, texts in faults.items() if not valid or file in found for text in texts]
    return listed, [*(foreign if in_folder or not valid else []), *stale]


def _read_envelopes(files: Sequence[Path]) -> tuple[dict[Path, tuple[Envelope, Statement]], list[str]]:
    """The envelopes with their statements, of which nothing is verified, and what is wrong with the files that are none."""
    envelopes, foreign = {}, []
    for file in files:
        try:
            envelope = Envelope.read(file)
            envelopes[file] = envelope, envelope.statement(file)
        except OSError as error:
            foreign.append(str(explain_os_error(error, file.name)))
        except BadInput as bad:
            foreign.append(str(bad))
    return envelopes, foreign


def _verify(
    envelopes: Mapping[Path, tuple[Envelope, Statement]], public: Any, place: Path, content: str
) -> tuple[dict[Path, CheckedSignature], dict[Path, list[str]]]:
    """The signatures by the key, and by file what is wrong."""
    identity = key_id(public)
    found, faults = {}, {}
    for file, (envelope, statement) in envelopes.items():
        if not envelope.is_signed_with(public):
            faults[file] = [str(BadInput(_other_key(envelope, identity), file=file.name))]
            continue
        changes = [f"{file.name}, signed with the key {identity}: {text}" for text in statement.find_changes(place, content)]
        found[file] = CheckedSignature(file=file.name, key=identity, signer=statement.predicate.signer, valid=not changes)
        faults[file] = changes
    return found, faults


def _other_key(envelope: Envelope, identity: str) -> str:
    named = " or ".join(name for name, _ in envelope.signatures if name) or "none"
    if identity in named:
        return f"names the key {identity}, and its signature is not by this key: it was changed after signing"
    return f"is not signed with the key {identity}; the key that it names is {named[:500]}"
