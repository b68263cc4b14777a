"""A signature of a release: an in-toto statement about its certificate and files, in a DSSE envelope.

The statement names the certificate and the files of the release with their SHA-256, and repeats the whole certificate, so that
an audit can name what changed since. The signed bytes are the pre-authentication encoding of the DSSE specification (version
1.0.2), so that other tools can verify them: see docs/signatures.md. The envelope is a file of its own next to the certificate,
which stays as it is.

Different from the specification: an envelope with keys that DSSE does not define, or in the URL-safe or another spelling of
Base64, is refused. What can be written in two ways can carry a hidden bit.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from closeknit.core.certificate import Certificate
from closeknit.core.errors import BadInput
from closeknit.core.limits import MOST_BYTES
from closeknit.core.record import Record
from closeknit.core.strict_json import json_text, parse_json, read_limited
from closeknit.io.files import sha256_of
from closeknit.io.signing_keys import is_signed_with, key_id

PAYLOAD_TYPE = "application/vnd.in-toto+json"
ENVELOPE_KEYS, SIGNATURE_KEYS = {"payload", "payloadType", "signatures"}, {"keyid", "sig"}
MOST_ENVELOPE_BYTES = 2 * MOST_BYTES  # the certificate as Base64, and the names of files


def encode_pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: the pre-authentication encoding of DSSE.

    Args:
        payload_type: the media type of the payload.
        payload: the payload.

    >>> encode_pae("http://example.com/HelloWorld", b"hello world")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


class Subject(Record):
    """A file that is signed.

    Args:
        name: its path from the folder of the certificate.
        digest: its hash, by the name of the algorithm.
    """

    name: str
    digest: dict[str, str]


class Predicate(Record):
    """What is stated about the files.

    Args:
        content_sha256: the content hash of the release.
        certificate: the whole certificate.
        signer: who signs, in their own words.
    """

    content_sha256: str
    certificate: dict[str, Any]
    signer: str | None = None


class Statement(Record):
    """An in-toto statement, version 1.

    Args:
        type: what this is.
        subject: the certificate and the files of the release.
        predicateType: what the predicate is.
        predicate: what is stated about them.
    """

    type: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: tuple[Subject, ...]
    predicateType: Literal["urn:closeknit:certificate:1"] = "urn:closeknit:certificate:1"
    predicate: Predicate

    @classmethod
    def about(cls, certificate: Path, signer: str | None = None) -> Statement:
        """The statement about a certificate and the files that it names.

        Args:
            certificate: the file of the certificate; those of the release are next to it.
            signer: who signs, in their own words.
        """
        text = read_limited(certificate)
        stated = Certificate.from_json(text, certificate)
        places = [certificate, *(certificate.with_name(Path(file.name).name) for file in stated.files)]
        files = [
            file
            for place in places
            for file in (sorted(place.iterdir()) if place.is_dir() else [place])  # Spark writes a folder of part files
        ]
        subject = tuple(
            Subject(name=file.relative_to(certificate.parent).as_posix(), digest={"sha256": sha256_of(file)}) for file in files
        )
        content = parse_json(text, certificate)
        predicate = Predicate(content_sha256=stated.content_sha256, certificate=content, signer=signer)
        return cls(_type="https://in-toto.io/Statement/v1", subject=subject, predicate=predicate)

    def seal(self, private: Any) -> str:
        """The text of a DSSE envelope with this statement, signed.

        Args:
            private: the private key.
        """
        content = self.model_dump(mode="json", by_alias=True)
        payload = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        signature = private.sign(encode_pae(PAYLOAD_TYPE, payload))
        signed = {"keyid": key_id(private.public_key()), "sig": b64encode(signature).decode()}
        return json_text({"payload": b64encode(payload).decode(), "payloadType": PAYLOAD_TYPE, "signatures": [signed]})

    def find_changes(self, certificate: Path, content: str) -> Iterator[str]:
        """What differs from this statement, one sentence each.

        Args:
            certificate: the file of the certificate.
            content: the content hash of the release, as recomputed.
        """
        if self.predicate.content_sha256 != content:
            yield "it signs another release: the content hash that it covers is not that of this one"
        digests = {entry.name: entry.digest.get("sha256") for entry in self.subject}
        main = next((name.split("/")[0] for name in digests if name != certificate.name), None)
        compared = {main} if self.predicate.content_sha256 == content else set()  # it may have been audited in another place
        if certificate.name not in digests:
            yield f"it does not cover {certificate.name}"
        for name, digest in digests.items():
            place = certificate.parent / name
            if ".." in Path(name).parts or Path(name).is_absolute():
                yield f"it names the file {name}, which is in another folder"
            elif not place.is_file():
                if (top := name.split("/")[0]) not in compared or (certificate.parent / top).exists():
                    yield f"{name} was signed and is not there"
            elif sha256_of(place) != digest:
                yield f"{name} has changed since it was signed"
        yield from _certificate_changes(parse_json(read_limited(certificate), certificate), self.predicate.certificate)


def _certificate_changes(now: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[str]:
    """Which keys, guarantees and notes differ; the guarantees and notes that were removed by their text."""
    for key in dict.fromkeys([*then, *now]):
        if now.get(key) != then.get(key):
            how = "was removed" if now.get(key) in (None, []) else "was changed"
            yield f"key '{key}' of the certificate {how} after signing"
    stated = [guarantee.get("text") for guarantee in now.get("guarantees", ())]
    for text in (guarantee.get("text") for guarantee in then.get("guarantees", ())):
        if text not in stated:
            yield f"the guarantee '{text}' was signed and is no longer stated"
    for note in then.get("notes", ()):
        if note not in now.get("notes", ()):
            yield f"the note '{note}' was signed and is no longer stated"


@dataclass(frozen=True)
class Envelope:
    """A DSSE envelope as it was read; nothing in it is verified.

    Args:
        payload: the signed statement.
        signatures: of each signature the key id that it names, which proves nothing, and its bytes.
    """

    payload: bytes
    signatures: tuple[tuple[str, bytes], ...]

    @classmethod
    def read(cls, file: Path, most: int = MOST_ENVELOPE_BYTES) -> Envelope:
        """Read an envelope; whatever is not exactly one is refused.

        Args:
            file: the envelope.
            most: the bytes that it may have.
        """
        if file.exists() and not file.is_file():
            raise BadInput("is not a file", file=file.name, right=_WRITTEN)
        with open(file, "rb") as opened:
            data = opened.read(most + 1)
        if len(data) > most:
            raise BadInput(f"has more than {most:,} bytes", file=file.name, right="no signature is so long")
        try:
            content = parse_json(data.decode(), file.name)
        except UnicodeDecodeError:
            raise BadInput("is not UTF-8 text", file=file.name, right=_WRITTEN) from None
        if not isinstance(content, dict) or not isinstance(listed := content.get("signatures"), list) or not listed:
            raise BadInput("is not a DSSE envelope", file=file.name, right=_WRITTEN)
        _refuse_other_keys(content, ENVELOPE_KEYS, file)
        if content["payloadType"] != PAYLOAD_TYPE:
            raise BadInput(f"its payload is {content['payloadType']!r}", file=file.name, right=f"it must be {PAYLOAD_TYPE}")
        for signature in listed:
            _refuse_other_keys(signature, SIGNATURE_KEYS, file)
        pairs = tuple((str(signature["keyid"]), _decode(signature["sig"], "sig", file)) for signature in listed)
        return cls(_decode(content["payload"], "payload", file), pairs)

    def is_signed_with(self, public: Any) -> bool:
        """Whether one of the signatures was made with this key.

        Args:
            public: the public key.
        """
        message = encode_pae(PAYLOAD_TYPE, self.payload)
        return any(is_signed_with(public, signature, message) for _, signature in self.signatures)

    def statement(self, file: Path) -> Statement:
        """The statement, of which nothing is verified before its signature is.

        Args:
            file: the envelope, for messages.
        """
        try:
            return Statement.model_validate(parse_json(self.payload.decode(), file.name))
        except (ValidationError, UnicodeDecodeError):
            right = "sign the release with 'closeknit sign'"
            raise BadInput("signs something other than a certificate of closeknit", file=file.name, right=right) from None


_WRITTEN = "use the file as 'closeknit sign' wrote it"


def _refuse_other_keys(given: Any, known: set[str], file: Path) -> None:
    if not isinstance(given, dict) or set(given) != known:
        found = sorted(set(given) ^ known)[0] if isinstance(given, dict) else None
        what = "is not a DSSE envelope" if found is None else f"has the key '{found}' too much or not at all"
        raise BadInput(what, file=file.name, right=_WRITTEN)


def _decode(text: Any, key: str, file: Path) -> bytes:
    try:
        data = b64decode(str(text), validate=True)
    except (Base64Error, ValueError):
        raise BadInput(f"its {key} is not Base64", file=file.name, right=_WRITTEN) from None
    if b64encode(data).decode() != text:
        raise BadInput(f"its {key} is not in the one spelling of Base64", file=file.name, right=_WRITTEN)
    return data
