"""`sign`: a detached signature of a saved release; and what an audit makes of the signatures next to a certificate."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from closeknit.api.auditing import audit
from closeknit.core.audit import NOT_MET
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.io.folders import write_whole
from closeknit.io.signing_keys import create_keys, read_private_key
from closeknit.release.release_paths import CERTIFICATE, SIGNATURE, certificate_file, release_file
from closeknit.release.signature import Statement

MOST_SIGNER = 200  # characters of a name


def new_keys(path: str | PathLike[str], passphrase: str | None = None) -> str:
    """Write a new private key to `path` (mode 0600) and its public key to `path.pub`; return the key id.

    Args:
        path: the file of the private key; an existing one is never replaced.
        passphrase: encrypts the private key; None leaves it readable for whoever has the file.

    >>> import tempfile, closeknit as ck
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ck.new_keys(f"{folder}/key", "correct horse battery staple")[:7]
    'sha256:'
    """
    return create_keys(path, passphrase)


def sign(
    folder: str | PathLike[str],
    key: str | PathLike[str],
    *,
    passphrase: str | None = None,
    signer: str | None = None,
    output: str | PathLike[str] | None = None,
    force: bool = False,
) -> Path:
    """Sign a saved release: a detached file next to its certificate, which covers the certificate and every release file.

    The release is audited first; one that differs from its certificate is not signed.

    Args:
        folder: the public folder of the release, or its file.
        key: the private key.
        passphrase: of the key, where it has one.
        signer: who signs, as a recipient shall read it.
        output: the signature, a name that ends with `.sig`; default: `certificate.sig` next to the certificate.
        force: whether to replace an earlier signature.

    Returns:
        The file of the signature.

    >>> import tempfile, closeknit as ck
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/out", report=False)
    ...     _ = ck.new_keys(f"{folder}/key")
    ...     _ = ck.sign(f"{folder}/out", f"{folder}/key", signer="Data Office")
    ...     print(ck.audit(f"{folder}/out", key=f"{folder}/key.pub").signatures[0].line())
    signed by 'Data Office' with the key sha256:...; certificate and release files have not changed since
    """
    file = _find_release(folder)
    certificate = certificate_file(file)
    place = certificate.with_name(SIGNATURE) if output is None else Path(output)
    if place.suffix != ".sig":
        raise BadInput(f"the name of a signature ends with .sig, not '{place.name}'", right=f"choose {SIGNATURE}")
    if place.exists() and not force:
        right = "choose another name with -o, or use --force to replace it"
        raise BadInput("a signature exists already", file=place, right=right)
    if signer is not None and not (signer.isprintable() and signer.strip() and len(signer) <= MOST_SIGNER):
        raise BadInput("the name of the signer is not printable text", right=f"give at most {MOST_SIGNER} characters")
    private = read_private_key(key, passphrase)
    found = audit(file)
    if found.status == NOT_MET:
        why = found.findings[0] if found.findings else next(one.line() for one in found.guarantees if one.status == NOT_MET)
        raise Unsatisfiable(f"a signature of {Path(folder)}", why, "sign a release that its audit accepts")
    write_whole(place, Statement.about(certificate, signer).seal(private).encode())
    return place


def _find_release(folder: str | PathLike[str]) -> Any:
    if Path(folder).is_dir() and not (Path(folder) / CERTIFICATE).exists() and not (Path(folder).parent / CERTIFICATE).exists():
        raise BadInput(f"there is no {CERTIFICATE} in this folder", file=folder, right="name the folder of a saved release")
    if Path(folder).is_file() and not (Path(folder).parent / CERTIFICATE).exists():
        what = f"only a saved folder can be signed, and there is no {CERTIFICATE} next to this file"
        raise BadInput(what, file=folder, right="save the release to a folder and name that")
    return release_file(folder)
