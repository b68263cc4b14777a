"""A DAG that publishes a release and shares it only if an audit finds every guarantee met.

The variables CLOSEKNIT_RECIPE, CLOSEKNIT_OUT and CLOSEKNIT_SHARE name the recipe, the public folder and where to copy it. The
task `audit` fails with the exit status of `closeknit audit`, so `share` does not run.
"""

from __future__ import annotations

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG("closeknit_release", schedule=None, catchup=False, tags=["privacy"]):
    anonymize = BashOperator(
        task_id="anonymize", bash_command='closeknit anonymize "$CLOSEKNIT_RECIPE" -o "$CLOSEKNIT_OUT" --force'
    )
    audit = BashOperator(task_id="audit", bash_command='closeknit audit "$CLOSEKNIT_OUT"')
    share = BashOperator(task_id="share", bash_command='cp -R "$CLOSEKNIT_OUT" "$CLOSEKNIT_SHARE"')  # never *.private
    anonymize >> audit >> share
