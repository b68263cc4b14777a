"""Checks of an engine: few rows give the same release as one machine, so what is checked there also holds here."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

from closeknit.api import anonymize
from closeknit.checks.failures import require
from closeknit.checks.methods import SEED
from closeknit.checks.tables import Case
from closeknit.core.errors import BadInput, CloseknitError
from closeknit.io.files import write_parquet


def same_as_on_one_machine(engine: str, method: Any, case: Case) -> None:
    """The engine returns the same certificate, content hash included, or a refusal of the same kind."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        file = Path(folder, "table.parquet")
        write_parquet(case.columns, file)
        there = _try_release(file, method, case, engine)
        counts = method.scale == "count"
        unserved = case.schema.person is not None if counts else case.suppress > 0
        if unserved or method.scale == "local" or method.usual_form != "generalized":
            named = isinstance(there, BadInput) and "on Spark" in str(there)
            require(named, f"{engine} does not support this and should refuse it: {there}")
            return
        here = _try_release(file, method, case, None)
    if isinstance(here, CloseknitError):
        require(type(there) is type(here), f"one machine refuses it ({here}), but {engine} returns: {there}")
        return
    require(not isinstance(there, CloseknitError), f"one machine returns a release, but {engine} refuses it: {there}")
    for name, value in here.certificate.model_dump().items():
        other = there.certificate.model_dump()[name]
        require(other == value, f"{name} of the certificate is {value}, but {engine} gives {other}")


def _try_release(file: Path, method: Any, case: Case, engine: str | None) -> Any:
    """Return the release, or the error that refused it."""
    try:
        return anonymize(
            file, case.schema, list(case.models), method, suppress=case.suppress, seed=SEED, engine=engine, allow_vacuous=True
        )
    except CloseknitError as refused:
        return refused
