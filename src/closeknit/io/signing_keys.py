"""Keys for signatures: Ed25519 through the package `cryptography`, in PEM files. No network, and no other algorithm.

The private key is a PKCS 8 file with mode 0600, encrypted with a passphrase; the public key is a file next to it. A key id is
the SHA-256 of the public key in DER, so that `openssl pkey -pubin -in key.pub -outform DER | sha256sum` prints it again.
"""

from __future__ import annotations

import os
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from closeknit.core.errors import BadInput
from closeknit.io.faults import name_os_errors
from closeknit.io.folders import write_whole

MOST_KEY_BYTES = 10_000  # a key of this kind has some hundred
PUBLIC_SUFFIX = ".pub"


def create_keys(path: str | PathLike[str], passphrase: str | None = None) -> str:
    """Write a new private key to `path` and its public key to `path.pub`, and return the key id.

    Existing files are never replaced: a lost key cannot be restored.

    Args:
        path: the file of the private key.
        passphrase: encrypts the private key; None leaves it readable for whoever has the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     identity = create_keys(Path(folder, "key"), "correct horse")
    ...     identity == key_id(read_public_key(Path(folder, "key.pub"))), oct(Path(folder, "key").stat().st_mode & 0o777)
    (True, '0o600')
    """
    ed25519, serialization = _import_cryptography()
    private, public = Path(path), Path(f"{path}{PUBLIC_SUFFIX}")
    for place in (private, public):
        if os.path.lexists(place):
            raise BadInput("it exists already, and keys are never replaced", file=place, right="choose another name")
    if passphrase == "":
        raise BadInput("the passphrase is empty", right="choose one with at least one character")
    key = ed25519.Ed25519PrivateKey.generate()
    encryption = (
        serialization.NoEncryption() if passphrase is None else serialization.BestAvailableEncryption(passphrase.encode())
    )
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    shown = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    write_whole(public, shown)
    try:
        write_whole(private, text, 0o600)
    except BaseException:
        public.unlink(missing_ok=True)
        raise
    return key_id(key.public_key())


def is_encrypted(path: str | PathLike[str]) -> bool:
    """Whether a private key needs a passphrase.

    Args:
        path: the file of the private key.
    """
    return b"BEGIN ENCRYPTED PRIVATE KEY" in _read_key(path)


def read_private_key(path: str | PathLike[str], passphrase: str | None = None) -> Any:
    """Read a private key; one that other users of the machine can read is refused.

    Args:
        path: the file of the private key.
        passphrase: its passphrase, where it has one.
    """
    ed25519, serialization = _import_cryptography()
    text = _read_key(path)
    if b"BEGIN PUBLIC KEY" in text:
        raise BadInput("this is a public key", file=path, right=f"name the private one, without {PUBLIC_SUFFIX}")
    if Path(path).stat().st_mode & 0o077:
        raise BadInput("others can read this private key", file=path, right=f"run: chmod 600 {path}")
    if is_encrypted(path) and passphrase is None:
        right = "set CLOSEKNIT_PASSPHRASE, or give passphrase= in Python"
        raise BadInput("the key needs its passphrase", file=path, right=right)
    try:
        key = serialization.load_pem_private_key(text, passphrase.encode() if passphrase and is_encrypted(path) else None)
    except (ValueError, TypeError):
        what = "the passphrase is wrong, or the file is damaged" if is_encrypted(path) else "this is not a private key"
        right = "check both" if is_encrypted(path) else "name the file that 'closeknit keys new' wrote, without .pub"
        raise BadInput(what, file=path, right=right) from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise BadInput("this is not an Ed25519 key", file=path, right="create one with 'closeknit keys new'")
    return key


def read_public_key(path: str | PathLike[str]) -> Any:
    """Read a public key.

    Args:
        path: its file.
    """
    ed25519, serialization = _import_cryptography()
    text = _read_key(path)
    try:
        key = serialization.load_pem_public_key(text)
    except (ValueError, TypeError):
        private = b"PRIVATE KEY" in text
        what = "this is a private key" if private else "this is not a public key"
        raise BadInput(what, file=path, right=f"name the public key, which ends with {PUBLIC_SUFFIX}") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise BadInput("this is not an Ed25519 key", file=path, right="create one with 'closeknit keys new'")
    return key


def key_id(public: Any) -> str:
    """The SHA-256 of a public key in DER.

    Args:
        public: the key.
    """
    _, serialization = _import_cryptography()
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{sha256(der).hexdigest()}"


def is_signed_with(public: Any, signature: bytes, message: bytes) -> bool:
    """Whether a signature of these bytes was made with the private key of a public one.

    Args:
        public: the public key.
        signature: the signature.
        message: the signed bytes.
    """
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _read_key(path: str | PathLike[str]) -> bytes:
    with name_os_errors(path), open(path, "rb") as file:
        text = file.read(MOST_KEY_BYTES + 1)
    if len(text) > MOST_KEY_BYTES:
        raise BadInput(f"this is not a key: it has more than {MOST_KEY_BYTES:,} bytes", file=path, right="name a key file")
    return text


def _import_cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        right = "install it with: pip install 'closeknit[sign]'"
        raise BadInput("signatures need the package cryptography", right=right) from None
    return ed25519, serialization
