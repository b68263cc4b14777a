"""Signatures: whatever changes after signing is found, envelopes are strict, keys are kept private, others can verify."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from typer.testing import CliRunner

import closeknit as ck
from closeknit.cli.commands import app
from closeknit.core.errors import BadInput
from closeknit.core.strict_json import json_text
from closeknit.release import signature

SCHEMA = ck.Schema(
    quasi={"age": ck.numeric(0, 120), "sex": ck.flat()}, sensitive={"disease": ck.flat(), "stay": ck.numeric(0, 60)}
)
MODELS = [ck.KAnonymity(3), ck.LDiversity("disease", 2)]


def build_release(shift: int = 0) -> ck.Release:
    table = {
        "age": [20 + i for i in range(24)],
        "sex": ["f", "m"] * 12,
        "disease": ["flu", "gout", "acne"] * 8,
        "stay": [(i + shift) % 5 for i in range(24)],
    }
    return ck.anonymize(pa.table(table), SCHEMA, MODELS, ck.Mondrian(), seed=2**90)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("signed")
    for name, shift in (("out", 0), ("other", 1)):
        build_release(shift).save(place / name, report=False)
    ck.new_keys(place / "key")
    ck.new_keys(place / "second")
    for name in ("out", "other"):
        ck.sign(place / name, place / "key", signer="Data Office")
    return place


@pytest.fixture
def signed(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "there")
    return tmp_path / "there"


def findings(place: Path) -> str:
    found = ck.audit(place / "out", key=place / "key.pub")
    assert not found.ok and found.status == "not met"
    return "\n".join(found.findings)


def test_an_untouched_release_names_its_signer(signed: Path) -> None:
    found = ck.audit(signed / "out" / "release.csv", key=signed / "key.pub")
    assert found.ok and found.findings == ()
    (one,) = found.signatures
    assert one.valid and one.signer == "Data Office" and one.key and one.key.startswith("sha256:")
    assert "certificate and release files have not changed since" in str(found)


def test_without_a_key_a_signature_is_only_present(signed: Path) -> None:
    found = ck.audit(signed / "out")
    assert found.ok and not found.signatures[0].valid
    assert "certificate.sig is present and was not verified" in str(found)


def test_a_file_that_is_no_signature_is_found(signed: Path) -> None:
    _, envelope = envelope_of(signed)
    hidden = json.dumps({**envelope, "payload": base64.b64encode(b"age,disease").decode()})
    for text, says in (("age,disease\n21,flu\n", "raw.sig: is not valid JSON"), (hidden, "raw.sig")):
        (signed / "out" / "raw.sig").write_text(text, encoding="utf-8")
        for key in (None, signed / "key.pub"):
            found = ck.audit(signed / "out", key=key)
            assert found.status == "not met" and len(found.findings) == 1 and says in found.findings[0], found.findings
            assert [one.file for one in found.signatures] == ["certificate.sig"]
    mailed = ck.audit(signed / "out" / "release.csv", certificate=signed / "out" / "certificate.json", key=signed / "key.pub")
    assert mailed.ok, "that folder may have other files"


def test_a_signed_file_that_is_missing_is_found(original: Path, tmp_path: Path) -> None:
    table = {"age": list(range(24)), "disease": ["flu", "gout", "acne"] * 8}
    schema = ck.Schema(quasi={"age": ck.numeric(0, 120)}, sensitive={"disease": ck.flat()})
    ck.anonymize(pa.table(table), schema, [ck.LDiversity("disease", 3)], ck.Anatomy(3)).save(tmp_path / "out", report=False)
    ck.sign(tmp_path / "out", original / "key")
    main, certificate, key = tmp_path / "received.csv", tmp_path / "out" / "certificate.json", original / "key.pub"
    (tmp_path / "out" / "release.csv").rename(main)
    assert ck.audit(main, certificate=certificate, key=key).findings == (), "it is audited in another place"
    (tmp_path / "out" / "sensitive.csv").unlink()
    (finding,) = ck.audit(main, certificate=certificate, key=key).findings
    assert finding.endswith(": sensitive.csv was signed and is not there")


def edit(place: Path, change: Callable[[Any], object]) -> None:
    """Change the certificate as a forger would, who writes it as closeknit does."""
    file = place / "out" / "certificate.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json_text(content), encoding="utf-8")


def pad_domain(certificate: Any) -> None:
    certificate["columns"]["sensitive"]["stay"] = {"numeric": {"lo": 0, "hi": 6000}}


CHANGES = {
    "guarantee": (lambda c: c["guarantees"].pop(), "the guarantee 'distinct l-diversity of disease, l = 2' was signed"),
    "weaker": (lambda c: c["guarantees"][0]["model"]["k_anonymity"].update(k=2), "key 'guarantees' of the certificate was"),
    "notes": (lambda c: c.update(notes=[]), "key 'notes' of the certificate was removed after signing"),
    "domain": (pad_domain, "key 'columns' of the certificate was changed after signing"),
    "joint": (lambda c: c.update(joint=None), "key 'joint' of the certificate was removed after signing"),
    "suppressed": (lambda c: c.update(suppressed=0, closeknit="9"), "key 'closeknit' of the certificate was changed"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_certificate_is_found(signed: Path, change: str) -> None:
    edit(signed, CHANGES[change][0])
    found = findings(signed)
    assert CHANGES[change][1] in found and "certificate.json has changed since it was signed" in found


def test_a_padded_domain_is_not_found_without_the_signature(signed: Path) -> None:
    """The reason for signatures: an audit alone cannot know which domain was declared."""
    edit(signed, pad_domain)
    assert ck.audit(signed / "out").ok and not ck.audit(signed / "out", key=signed / "key.pub").ok


def test_a_changed_release_is_found(signed: Path) -> None:
    file = signed / "out" / "release.csv"
    file.write_text(file.read_text(encoding="utf-8").replace("flu", "gout", 1), encoding="utf-8")
    found = findings(signed)
    assert "it signs another release" in found and "release.csv has changed since it was signed" in found


def test_the_signature_of_another_release_is_refused(signed: Path) -> None:
    shutil.copy(signed / "other" / "certificate.sig", signed / "out" / "certificate.sig")
    assert "it signs another release: the content hash that it covers is not that of this one" in findings(signed)


def test_a_signature_must_be_by_the_key(signed: Path) -> None:
    found = ck.audit(signed / "out", key=signed / "second.pub")
    assert found.status == "not met" and len(found.findings) == 1
    assert "certificate.sig: is not signed with the key sha256:" in found.findings[0]
    (signed / "out" / "certificate.sig").unlink()
    assert findings(signed).startswith("there is no signature next to certificate.json")


def test_several_people_sign(signed: Path) -> None:
    ck.sign(signed / "out", signed / "second", signer="Review Board", output=signed / "out" / "board.sig")
    for key, valid in (("key", [False, True]), ("second", [True, False])):
        found = ck.audit(signed / "out", key=signed / f"{key}.pub")
        assert found.ok and [one.valid for one in found.signatures] == valid


def envelope_of(place: Path) -> tuple[Path, Any]:
    file = place / "out" / "certificate.sig"
    return file, json.loads(file.read_text(encoding="utf-8"))


def edit_payload(envelope: Any) -> None:
    payload = base64.b64decode(envelope["payload"]).replace(b"Data Office", b"Other Place")
    envelope["payload"] = base64.b64encode(payload).decode()


ENVELOPES = {
    "payload": (edit_payload, "it was changed after signing"),
    "extra": (lambda e: e.update(comment="hidden"), "has the key 'comment' too much or not at all"),
    "extra in signature": (lambda e: e["signatures"][0].update(cert="x"), "has the key 'cert' too much or not at all"),
    "no payload": (lambda e: e.pop("payload"), "has the key 'payload' too much or not at all"),
    "no signatures": (lambda e: e.update(signatures=[]), "is not a DSSE envelope"),
    "text": (lambda e: e.update(signatures=["x"]), "is not a DSSE envelope"),
    "type": (lambda e: e.update(payloadType="text/plain"), "it must be application/vnd.in-toto+json"),
    "no base64": (lambda e: e["signatures"][0].update(sig="%%%"), "its sig is not Base64"),
    "loose bits": (lambda e: e["signatures"][0].update(sig=e["signatures"][0]["sig"][:-3] + "B=="), "one spelling of Base64"),
    "short": (lambda e: e["signatures"][0].update(sig="QQ=="), "it was changed after signing"),
}


@pytest.mark.parametrize("change", ENVELOPES)
def test_a_changed_envelope_is_refused_in_one_sentence(signed: Path, change: str) -> None:
    file, envelope = envelope_of(signed)
    ENVELOPES[change][0](envelope)
    file.write_text(json.dumps(envelope), encoding="utf-8")
    found = findings(signed)
    assert ENVELOPES[change][1] in found and "\n" not in found


def test_an_envelope_that_cannot_be_read_is_refused(signed: Path) -> None:
    file, _ = envelope_of(signed)
    text = file.read_bytes()
    twice = b'{"payload": "QQ==", "payload": "QQ=="}'
    for bad, says in (
        (text[:500], "not valid JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b"[]", "DSSE envelope"),
        (twice, "occurs twice"),
    ):
        file.write_bytes(bad)
        assert says in findings(signed)
    file.unlink()
    file.mkdir()
    assert "certificate.sig" in findings(signed)
    file.rmdir()
    file.write_bytes(text)
    with pytest.raises(BadInput, match="has more than 400 bytes"):
        signature.Envelope.read(file, most=400)


def test_a_signed_statement_of_another_kind_is_refused(signed: Path) -> None:
    file, envelope = envelope_of(signed)
    key = ed25519.Ed25519PrivateKey.generate()
    payload = b'{"_type": "https://in-toto.io/Statement/v1", "subject": [], "predicateType": "urn:other", "predicate": {}}'
    sig = key.sign(signature.encode_pae(signature.PAYLOAD_TYPE, payload))
    envelope["payload"], envelope["signatures"][0]["sig"] = (base64.b64encode(part).decode() for part in (payload, sig))
    file.write_text(json.dumps(envelope), encoding="utf-8")
    (signed / "key.pub").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    assert "signs something other than a certificate" in findings(signed)


def test_others_can_verify_it_without_closeknit(signed: Path) -> None:
    """Written from the specifications of DSSE and in-toto alone."""
    _, envelope = envelope_of(signed)
    pem = (signed / "key.pub").read_text(encoding="utf-8").splitlines()
    der = base64.b64decode("".join(pem[1:-1]))
    public = ed25519.Ed25519PublicKey.from_public_bytes(der[-32:])
    body, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"]
    message = " ".join(["DSSEv1", str(len(kind)), kind, str(len(body)), ""]).encode() + body
    (entry,) = envelope["signatures"]
    public.verify(base64.b64decode(entry["sig"]), message)
    with pytest.raises(InvalidSignature):
        public.verify(base64.b64decode(entry["sig"]), message + b" ")
    assert entry["keyid"] == "sha256:" + hashlib.sha256(der).hexdigest()
    statement = json.loads(body)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    for file in statement["subject"]:
        data = (signed / "out" / file["name"]).read_bytes()
        assert file["digest"] == {"sha256": hashlib.sha256(data).hexdigest()}
    assert [file["name"] for file in statement["subject"]] == ["certificate.json", "release.csv"]


def run(*words: object, passphrase: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words], env={"CLOSEKNIT_PASSPHRASE": passphrase})


def test_the_commands(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(original / "out", tmp_path / "out")
    (tmp_path / "out" / "certificate.sig").unlink()
    monkeypatch.chdir(tmp_path)
    assert run("keys", "new", "-o", "key", passphrase="long enough").exit_code == 0
    assert Path("key").stat().st_mode & 0o777 == 0o600 and b"ENCRYPTED" in Path("key").read_bytes()
    for words, passphrase, says in (
        (("keys", "new", "-o", "key"), "x", "keys are never replaced"),
        (("keys", "new", "-o", "new"), None, "set CLOSEKNIT_PASSPHRASE, or choose --no-passphrase"),
        (("sign", "out", "--key", "key"), None, "there is no passphrase"),
        (("sign", "out", "--key", "key"), "wrong", "the passphrase is wrong"),
        (("sign", "out", "--key", "nowhere"), "x", "no such file"),
        (("sign", "out", "--key", "key.pub"), "x", "key.pub"),
        (("sign", ".", "--key", "key"), "long enough", "there is no certificate.json in this folder"),
        (("sign", "nowhere", "--key", "key"), "long enough", "no such file or folder"),
        (("sign", "out", "--key", "key", "-o", "a.txt"), "long enough", "ends with .sig"),
        (("sign", "out", "--key", "key", "--as", "a\nb"), "long enough", "not printable"),
        (("audit", "out", "--key", "key"), None, "this is a private key; name the public key"),
        (("audit", "out", "--key", "out/release.csv"), None, "this is not a public key"),
    ):
        found = run(*words, passphrase=passphrase)
        assert found.exit_code == 2 and says in found.stderr and len(found.stderr.splitlines()) == 1, (words, found.output)
    assert not Path("new.pub").exists() and not Path("out/certificate.sig").exists()
    assert run("sign", "out", "--key", "key", "--as", "Ann", passphrase="long enough").exit_code == 0
    assert "a signature exists already" in run("sign", "out", "--key", "key", passphrase="long enough").stderr
    audit = run("audit", "out", "--key", "key.pub")
    assert audit.exit_code == 0 and "signature      signed by 'Ann' with the key sha256:" in audit.stdout
    assert json.loads(run("audit", "out", "--key", "key.pub", "--json").stdout)["signatures"][0]["valid"] is True
    edit(tmp_path, CHANGES["notes"][0])
    assert run("audit", "out", "--key", "key.pub").exit_code == 1
    again = run("sign", "out", "--key", "key", "--force", passphrase="long enough")
    assert again.exit_code == 1 and "does not note" in again.stderr, "a release that differs is not signed"


def test_private_keys_are_kept_private(tmp_path: Path) -> None:
    key = tmp_path / "key"
    ck.new_keys(key)
    key.chmod(0o644)
    build_release().save(tmp_path / "out", report=False)
    with pytest.raises(ck.BadInput, match="others can read this private key; run: chmod 600"):
        ck.sign(tmp_path / "out", key)
    with pytest.raises(ck.BadInput, match=r"this is a public key; name the private one, without \.pub"):
        ck.sign(tmp_path / "out", tmp_path / "key.pub")
    (tmp_path / "release.xlsx").write_bytes(b"")
    with pytest.raises(ck.BadInput, match="only a saved folder can be signed"):
        ck.sign(tmp_path / "release.xlsx", key)
    other = ec.generate_private_key(ec.SECP256R1())
    key.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    key.chmod(0o600)
    with pytest.raises(ck.BadInput, match="not an Ed25519 key"):
        ck.sign(tmp_path / "out", key)
    key.write_bytes(b"x" * 20_000)
    with pytest.raises(ck.BadInput, match="more than 10,000 bytes"):
        ck.sign(tmp_path / "out", key)
    with pytest.raises(ck.BadInput, match="passphrase is empty"):
        ck.new_keys(tmp_path / "new", "")
    with pytest.raises(ck.BadInput, match="give the path of the certificate"):
        release = build_release()
        ck.audit(release.frame, certificate=release.certificate, key=tmp_path / "key.pub")


def test_a_new_release_replaces_the_signature_of_the_old(original: Path, tmp_path: Path) -> None:
    release = build_release()
    release.save(tmp_path / "out", report=False)
    shutil.copy(original / "out" / "certificate.sig", tmp_path / "out")
    release.save(tmp_path / "out", report=False, force=True)
    assert not (tmp_path / "out" / "certificate.sig").exists()
    assert yaml.safe_load((tmp_path / "out.private" / "recipe.yaml").read_text(encoding="utf-8"))["seed"] == 2**90
