"""What a stream on Spark adds to Spark's own files in the checkpoint location: the secret and the parameters.

The file `closeknit` is private (0600) and written once, whole or not at all, through Spark's file systems: the location may be
a folder, HDFS or an object store. All choices derive from the secret, so that a micro-batch that Spark repeats after a failure
has the same rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from closeknit.core.errors import BadInput
from closeknit.spark.session import translate_errors
from closeknit.streams.checkpoint import dump_params, refuse_changed, seal, unseal
from closeknit.streams.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTENT_FILE, END_FILE = "closeknit", "closeknit-ended"
ODD = re.compile(r"[\s%?#\[\]{}|\\^<>\"`]")  # Spark's state reader mistakes the escaped name for the name
LOGS = ("offsets", "commits")  # of Spark: it plans a micro-batch in the first and finishes it in the second


@dataclass(eq=False)
class CheckpointLocation:
    """A checkpoint location as Spark sees it.

    Args:
        spark: the session.
        location: a path or an address.
    """

    spark: SparkSession
    location: str

    @classmethod
    def at(cls, spark: SparkSession, location: str | PathLike[str]) -> CheckpointLocation:
        """A location whose name Spark can read back."""
        text = fspath(location)
        if ODD.search(text):
            right = "name it with letters, digits, '-', '_' and '.' only"
            raise BadInput("Spark cannot read back a checkpoint with such characters in its name", file=text, right=right)
        return cls(spark, text)

    def secret_of(self, stream: Stream, options: dict[str, Any]) -> bytes:
        """The secret of a stream that begins or resumes here; one with other parameters is refused."""
        with translate_errors(self.location):
            if self.ended:
                right = "choose another checkpoint location for another stream"
                raise BadInput("the stream of this checkpoint has ended", file=self.location, right=right)
            if not self._exists(CONTENT_FILE):
                self._begin({"stream": stream.name, "requested": dump_params(stream), "secret": stream.secret, **options})
            content = self.load(stream)
        for name, now in options.items():
            if content.get(name) != now:
                right = "give the one of the checkpoint, or choose another checkpoint location"
                raise BadInput(f"this checkpoint has another {name}", file=self.location, right=right)
        secret: bytes = content["secret"]
        return secret

    def load(self, stream: Stream) -> dict[str, Any]:
        """The content of the file, which must belong to this stream."""
        if not self._exists(CONTENT_FILE):
            right = "name the checkpoint location of a stream that stream_on_spark began"
            raise BadInput("this location has no stream of closeknit", file=self.location, right=right)
        with translate_errors(self.location):
            file = self._system.open(self._path(CONTENT_FILE))
            data = bytes(file.readAllBytes())
            file.close()
        content = unseal(data, self.location)
        refuse_changed(content["stream"], content["requested"], stream, self.location)
        return content

    def end(self) -> None:
        """Let no query resume from here."""
        self._refuse_unfinished()
        if not self.ended:
            self._write(END_FILE, b"")

    @property
    def begun(self) -> bool:
        """Whether a stream has begun here."""
        with translate_errors(self.location):
            return self._exists(CONTENT_FILE)

    @property
    def finished(self) -> bool:
        """Whether a micro-batch is finished, so that there is a state."""
        return self._last(LOGS[1]) >= 0

    def holds_files(self, folder: str) -> bool:
        """Whether another folder, such as that of the output, has any file."""
        with translate_errors(folder):
            path = self._jvm.Path(folder)
            system = path.getFileSystem(self.spark._jsc.hadoopConfiguration())
            return bool(system.exists(path)) and len(system.listStatus(path)) > 0

    @property
    def ended(self) -> bool:
        """Whether the stream was flushed."""
        return self._exists(END_FILE)

    def _refuse_unfinished(self) -> None:
        """Refuse a location whose last micro-batch was planned and not finished: no state includes its rows yet.

        This also applies to one without new rows: rows whose time is over may be at the sink, and are pending in the state.
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
        if not self._system.exists(folder):  # Spark writes pending rows into it
            self._system.mkdirs(folder)
            self._system.setPermission(folder, self._jvm.permission.FsPermission("700"))
        self._write(CONTENT_FILE, seal(content))

    def _write(self, name: str, content: bytes) -> None:
        new = self._path(f".{name}.new")
        file = self._system.create(new)
        self._system.setPermission(new, self._jvm.permission.FsPermission("600"))  # before it has any content
        file.write(bytearray(content))
        file.close()
        if not self._system.rename(new, self._path(name)):
            raise BadInput(f"'{name}' cannot be written", file=self.location, right="check the permissions of the location")

    def _exists(self, name: str) -> bool:
        return bool(self._system.exists(self._path(name)))

    def _path(self, name: str) -> Any:
        return self._jvm.Path(self.location, name)

    @property
    def _jvm(self) -> Any:
        if not hasattr(self.spark, "_jsc"):
            right = "use a session of the cluster itself (spark-submit, or master=)"
            raise BadInput("streams of closeknit cannot use a Spark Connect client", right=right)
        jvm: Any = self.spark._jvm
        return jvm.org.apache.hadoop.fs

    @property
    def _system(self) -> Any:
        return self._jvm.Path(self.location).getFileSystem(self.spark._jsc.hadoopConfiguration())
