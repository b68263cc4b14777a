"""What a stream on Spark keeps in its checkpoint location beside Spark's own files: the secret, and what it was made with.

The file `closeknit` is private (0600) and written once, whole or not at all, through Spark's file systems: the location may be
a folder, HDFS or an object store. From the secret all choices derive, so that a micro-batch that Spark repeats after a failure
gives the same rows again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from closeknit.core.errors import BadInput
from closeknit.spark.session import translate_errors
from closeknit.streams.checkpoint import dump_params, refuse_changed
from closeknit.streams.packing import from_bytes, to_bytes
from closeknit.streams.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTENT_FILE, END_FILE = "closeknit", "closeknit-ended"
ODD = re.compile(r"[\s%?#\[\]{}|\\^<>\"`]")  # Spark's reader of states takes the escaped name for the name
LOGS = ("offsets", "commits")  # of Spark: a micro-batch is planned in the first and finished in the second


@dataclass(eq=False)
class CheckpointLocation:
    """A checkpoint location as Spark sees it."""

    spark: SparkSession
    location: str

    @classmethod
    def at(cls, spark: SparkSession, location: str | PathLike[str]) -> CheckpointLocation:
        """The location as a text."""
        text = fspath(location)
        if ODD.search(text):
            right = "name it with letters, digits, '-', '_' and '.' only"
            raise BadInput("Spark cannot read back a checkpoint with such signs in its name", file=text, right=right)
        return cls(spark, text)

    def secret_of(self, stream: Stream, told: dict[str, Any]) -> bytes:
        """The secret of a stream that begins here or goes on; one that was made with something else is refused."""
        with translate_errors(self.location):
            if self.ended:
                right = "choose another checkpoint location for another stream"
                raise BadInput("the stream of this checkpoint has ended", file=self.location, right=right)
            if not self._exists(CONTENT_FILE):
                self._begin({"stream": stream.name, "requested": dump_params(stream), "secret": stream.secret, **told})
            kept = self.load(stream)
        for name, now in told.items():
            if kept.get(name) != now:
                right = "give what it was begun with, or choose another checkpoint location"
                raise BadInput(f"this checkpoint was made with another {name}", file=self.location, right=right)
        secret: bytes = kept["secret"]
        return secret

    def load(self, stream: Stream) -> dict[str, Any]:
        """What stands here, which must be of this stream."""
        if not self._exists(CONTENT_FILE):
            right = "name the checkpoint location of a stream that stream_on_spark began"
            raise BadInput("there is no stream of closeknit here", file=self.location, right=right)
        with translate_errors(self.location):
            kept: dict[str, Any] = from_bytes(_read(self._system.open(self._path(CONTENT_FILE))))
        refuse_changed(kept["stream"], kept["requested"], stream, self.location)
        return kept

    def end(self) -> None:
        """No query may go on from here."""
        self._refuse_unfinished()
        if not self.ended:
            self._write(END_FILE, b"")

    @property
    def ended(self) -> bool:
        """Whether it was said that no row will come."""
        return self._exists(END_FILE)

    def _refuse_unfinished(self) -> None:
        """What a micro-batch that was planned and not finished has taken or let go is in no state yet.

        This holds also for one without new rows: rows whose time was over may be at the sink, and here they still wait.
        """
        planned, finished = (self._last(log) for log in LOGS)
        if planned != finished:
            right = "start the query once more with trigger(once=True), which finishes it and takes no other rows"
            raise BadInput("the last micro-batch is not finished", file=self.location, right=right)

    def _last(self, log: str) -> int:
        path = self._path(log)
        names = [entry.getPath().getName() for entry in self._system.listStatus(path)] if self._exists(log) else []
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def _begin(self, content: dict[str, Any]) -> None:
        folder = self._jvm.Path(self.location)
        if not self._system.exists(folder):  # Spark writes rows that wait into it
            self._system.mkdirs(folder)
            self._system.setPermission(folder, self._jvm.permission.FsPermission("700"))
        self._write(CONTENT_FILE, to_bytes(content))

    def _write(self, name: str, content: bytes) -> None:
        beside = self._path(f".{name}.new")
        file = self._system.create(beside)
        self._system.setPermission(beside, self._jvm.permission.FsPermission("600"))  # before anything stands in it
        file.write(bytearray(content))
        file.close()
        if not self._system.rename(beside, self._path(name)):
            raise BadInput(f"'{name}' cannot be written", file=self.location, right="check what may be written there")

    def _exists(self, name: str) -> bool:
        return bool(self._system.exists(self._path(name)))

    def _path(self, name: str) -> Any:
        return self._jvm.Path(self.location, name)

    @property
    def _jvm(self) -> Any:
        if not hasattr(self.spark, "_jsc"):
            right = "use a session of the cluster itself (spark-submit, or master=)"
            raise BadInput("streams of closeknit need a session that is no Spark Connect client", right=right)
        jvm: Any = self.spark._jvm
        return jvm.org.apache.hadoop.fs

    @property
    def _system(self) -> Any:
        return self._jvm.Path(self.location).getFileSystem(self.spark._jsc.hadoopConfiguration())


def _read(file: Any) -> bytes:
    content = bytes(file.readAllBytes())
    file.close()
    return content
