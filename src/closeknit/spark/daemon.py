"""The process on an executor from which Python workers are forked: it imports once what all of them need.

Spark starts it by the name in `spark.python.daemon.module`. Without it workers start some seconds later, and each task takes a
tenth of a second longer; nothing else changes.
"""

from __future__ import annotations

import gc
from zipimport import zipimporter


def prepare() -> None:
    """Import what workers need, and avoid what Spark makes them repeat with each task.

    That is a garbage collection over all imported objects, and reading the contents of Spark's archive of Python files for each
    package that was looked up in it; the archive does not change while it is in use.
    """
    import closeknit.spark.pipeline
    import closeknit.spark.stream_operator  # noqa: F401
    from closeknit.io.batches import texts_block

    texts_block({"cell": ["a"]})  # Arrow imports other libraries with its first list
    zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from pyspark.daemon import manager

    prepare()
    manager()
