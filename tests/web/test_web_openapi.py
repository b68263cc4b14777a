"""The service does what its description says, whatever is sent to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2 as httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from conftest import examples
from web_runs import ANN, answering, job_files

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str, str]]:
    """The description of a server at which work waits for ever: its answers are looked at, not its releases."""
    with answering(tmp_path_factory.mktemp("home"), at_once=0, cases=20, waiting=10) as (address, app):
        app.state.streams._stop.set()  # no process either
        files = {"recipe": ("r", b"schema: {quasi: {age: {numeric: {lo: 0, hi: 9}}}}\nmodels: []\nstream: {k: 2, delta: 4}")}
        stream = httpx.post(f"{address}/api/streams", headers=ANN, files=files).json()["id"]
        id = httpx.post(f"{address}/api/jobs", headers=ANN, files=job_files()).json()["id"]
        yield schemathesis.openapi.from_url(f"{address}/api/openapi.json", headers=ANN), id, stream


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("theirs", [False, True], ids=["any id", "a job"])
def test_answers_are_as_described(described: Any, mode: GenerationMode, theirs: bool) -> None:
    schema, id, stream = described
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 14
    seen: set[tuple[str, str]] = set()
    for operation in operations:
        if theirs and ("{id}" not in operation.path or operation.method.upper() == "DELETE"):
            continue

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=examples(3), suppress_health_check=list(HealthCheck), database=None)
        def said(case: Any) -> None:
            if theirs:
                case.path_parameters = {"id": stream if "/streams/" in case.operation.path else id}
            answer = case.call(headers=ANN)
            seen.add((case.operation.method, case.operation.path))
            case.validate_response(answer, checks=CHECKS)
            assert "Traceback" not in answer.text

        with suppress(Unsatisfiable):  # what takes nothing cannot be given anything wrong
            said()
    assert len(seen) >= 11
