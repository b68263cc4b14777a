"""The process on an executor that Python workers are copies of: what they all need is loaded here once, not in each of them.

Spark starts it by its name, `spark.python.daemon.module`; without it workers start some seconds later, and each of their
tasks takes more than a tenth of a second more, and that is all.
"""

from __future__ import annotations

import gc
from zipimport import zipimporter


def prepare() -> None:
    """Loads what workers will ask for, and spares them what Spark lets them do again with each task.

    That is a collection of garbage among all that was loaded, and reading the contents of its own archive of Python files, once
    for each package in it that something was looked for in: it does not change while it is in use.
    """
    import closeknit.spark.pipeline
    import closeknit.spark.stream_operator  # noqa: F401
    from closeknit.io.batches import texts_block

    texts_block({"cell": ["a"]})  # Arrow loads what it knows of other libraries with its first list
    zipimporter.invalidate_caches = _nothing  # type: ignore[method-assign, assignment]
    gc.collect()
    gc.freeze()


def _nothing(finder: zipimporter) -> None:
    """No contents are read again."""


if __name__ == "__main__":
    from pyspark.daemon import manager

    prepare()
    manager()
