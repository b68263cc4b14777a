"""An audit for pipelines: SARIF 2.1.0 for code scanning, JUnit XML for build servers.

Sources: OASIS, Static Analysis Results Interchange Format (SARIF) 2.1.0 (2020); the JUnit XML that build servers read.

Both have one entry for each guarantee that is not met, vacuous or not checkable, and for each finding. JUnit lists the
guarantees that are met as well, as passed tests; SARIF does not, because readers show every result as an alert.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from closeknit.core.audit import Audit, CheckedGuarantee
from closeknit.core.errors import keep_printable
from closeknit.core.strict_json import json_text

RULES = {  # of SARIF, with their level
    "guarantee-not-met": ("error", "A guarantee is not met by the cells of the release."),
    "release-differs": ("error", "The release or its form differs from what its certificate states."),
    "guarantee-vacuous": ("warning", "A guarantee is met and excludes nothing on this release."),
    "guarantee-not-checkable": ("warning", "A guarantee cannot be recomputed from the release."),
}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def json_of_audits(audits: Mapping[str, Audit]) -> str:
    """One audit as `Audit.to_json`; several as a list under `audits`, each with its file.

    Args:
        audits: by the file of the release.
    """
    if len(audits) == 1:
        return next(iter(audits.values())).to_json()
    return json_text({"audits": [{"file": place, **audit.to_record()} for place, audit in audits.items()]})


def sarif_of_audits(audits: Mapping[str, Audit], version: str) -> str:
    """The audits as one run in SARIF 2.1.0.

    Args:
        audits: by the file of the release.
        version: that of closeknit.
    """
    rules = [
        {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
        for rule, (level, text) in RULES.items()
    ]
    results = [_result(place, rule, text) for place, audit in audits.items() for rule, text in _list_faults(audit)]
    run = {
        "tool": {"driver": {"name": "closeknit", "version": version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"audits": {place: audit.to_record() for place, audit in audits.items()}},
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _list_faults(audit: Audit) -> Iterator[tuple[str, str]]:
    """The rule and the sentence of everything that keeps an audit from being ok."""
    for guarantee in audit.guarantees:
        if (rule := _rule(guarantee)) is not None:
            yield rule, guarantee.sentence()
    for finding in audit.findings:
        yield "release-differs", finding


def _rule(guarantee: CheckedGuarantee) -> str | None:
    if guarantee.status == "recomputed" or (guarantee.status == "vacuous" and guarantee.noted):
        return None
    return f"guarantee-{guarantee.status.replace(' ', '-')}"


def _result(place: str, rule: str, text: str) -> dict[str, Any]:
    uri = place if "://" in place else Path(place).as_uri() if Path(place).is_absolute() else quote(Path(place).as_posix())
    where = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}
    return {
        "ruleId": rule,
        "ruleIndex": list(RULES).index(rule),
        "level": RULES[rule][0],
        "message": {"text": text},
        "locations": [where],
        "partialFingerprints": {"closeknit/v1": f"{rule}: {text.partition(':')[0]}"},
    }


def junit_of_audits(audits: Mapping[str, Audit]) -> str:
    """The audits as JUnit XML: one suite for each release, one test for each guarantee, one for each finding.

    A guarantee that is not checkable is skipped. A test with the name `release` passes if nothing else is wrong.

    Args:
        audits: by the file of the release.
    """
    root = ElementTree.Element("testsuites", name="closeknit audit")
    for place, audit in audits.items():
        suite = ElementTree.SubElement(root, "testsuite", name=_printable(place))
        for guarantee in audit.guarantees:
            _add_test(suite, place, guarantee.text, _rule(guarantee), guarantee.sentence())
        for finding in audit.findings:
            _add_test(suite, place, "release", "release-differs", finding)
        if not audit.findings:
            _add_test(suite, place, "release", None, "")
        counts = {"tests": "testcase", "failures": "testcase/failure", "skipped": "testcase/skipped"}
        for name, path in counts.items():
            suite.set(name, str(len(suite.findall(path))))
        suite.set("errors", "0")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_test(suite: ElementTree.Element, place: str, name: str, rule: str | None, text: str) -> None:
    test = ElementTree.SubElement(suite, "testcase", classname=_printable(place), name=_printable(name))
    if rule == "guarantee-not-checkable":
        ElementTree.SubElement(test, "skipped", message=_printable(text))
    elif rule is not None:
        ElementTree.SubElement(test, "failure", message=_printable(text), type=rule)


def _printable(text: str) -> str:
    """XML has no place for control characters, not even escaped."""
    return keep_printable(text)
