"""A release as an asset of Dagster, with its audit as a blocking check: assets that depend on it wait for guarantees met.

The variables CLOSEKNIT_RECIPE, CLOSEKNIT_OUT and CLOSEKNIT_SHARE name the recipe, the public folder and where to copy it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess

from dagster import AssetCheckResult, Definitions, MaterializeResult, asset, asset_check


@asset
def release() -> MaterializeResult:
    """The public files of a release, and next to them its private folder."""
    recipe, out = os.environ["CLOSEKNIT_RECIPE"], os.environ["CLOSEKNIT_OUT"]
    command = ["closeknit", "anonymize", recipe, "-o", out, "--force", "--json"]
    certificate = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return MaterializeResult(metadata={"rows": certificate["rows"], "loss": certificate["loss"]["a"]})


@asset_check(asset=release, blocking=True)
def audit() -> AssetCheckResult:
    """Every guarantee, recomputed from the published cells."""
    done = subprocess.run(["closeknit", "audit", os.environ["CLOSEKNIT_OUT"], "--format", "json"], stdout=subprocess.PIPE)
    found = json.loads(done.stdout) if done.stdout else {"status": "bad input", "guarantees": [], "findings": []}
    measured = {one["text"]: one["status"] for one in found["guarantees"]}
    metadata = {"status": found["status"], "guarantees": measured, "findings": found["findings"]}
    return AssetCheckResult(passed=done.returncode == 0, metadata=metadata)


@asset(deps=[release])
def shared() -> None:
    """A copy of the public folder where recipients find it; never the private one."""
    shutil.copytree(os.environ["CLOSEKNIT_OUT"], os.environ["CLOSEKNIT_SHARE"], dirs_exist_ok=True)


defs = Definitions(assets=[release, shared], asset_checks=[audit])
