"""The process on an executor that Python workers are copies of: what they all need is loaded here once, not in each of them.

Spark starts it by its name, `spark.python.daemon.module`; without it workers start some seconds later, and that is all.
"""

from __future__ import annotations

if __name__ == "__main__":
    from pyspark.daemon import manager

    import closeknit.engines.spark  # noqa: F401

    manager()
