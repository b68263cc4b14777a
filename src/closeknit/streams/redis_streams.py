"""Redis Streams, in and out: `redis://host:port/db/stream`.

Input: one consumer of a group. Entries are acknowledged once a checkpoint includes them; until then Redis keeps them for this
consumer, and they are read again after a restart. Output: the rows of batch 17 have the ids 17-1, 17-2, ... Redis accepts no id
twice, so a repeated batch is found, compared and not written. Neither ids nor rows reveal a position or a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.canonical import cell_texts
from closeknit.io.ndjson import BadLine, lines_of, row_of
from closeknit.streams.lines import SHOWN, ArrivedRow, RejectedLine
from closeknit.streams.redis_server import RedisAddress, Server, as_record, translate_errors
from closeknit.streams.sinks import NEW_FOLDER, describe_mark
from closeknit.streams.sources import Block, Mark, refuse_other_input

LONGEST_WAIT = 0.5  # seconds that a signal may wait
COUNT = 1000  # entries read at once
MANY = 1000  # entries acknowledged at once
OTHERS = 10**12  # ids that Redis generates are times in milliseconds; no stream has so many batches
BEGINNING = "0-0"


def source(url: str) -> RedisSource:
    """The source at an address; every connector has this function."""
    return RedisSource(RedisAddress.of(url, "in"))


def sink(url: str) -> RedisSink:
    """The sink at an address; every connector has this function."""
    return RedisSink(RedisAddress.of(url, "out"))


class Id(NamedTuple):
    """The id of an entry; in the output, the number of a batch and of a row in it.

    >>> Id.of("17-2") < Id.of("17-10") < Id.of("18")
    True
    """

    first: int
    second: int

    @classmethod
    def of(cls, text: str) -> Id:
        """Read an id."""
        first, _, second = text.partition("-")
        return cls(int(first), int(second or 0))


class RedisSource:
    """The entries of a stream for one consumer of a group, in order.

    Args:
        place: the address of the stream, with its group and consumer.

    >>> RedisSource(RedisAddress.of("redis://localhost:1/0/people?group=g&consumer=c", "in"))
    Traceback (most recent call last):
    closeknit.streams.sinks.SinkDown: redis://localhost:1/0/people: no Redis answers there (...); start one, or correct ...
    """

    def __init__(self, place: RedisAddress) -> None:
        self.place, options = place, place.options
        self._group, self._consumer = options["group"], options["consumer"]
        self._count, self._field, self._end = int(options.get("count", COUNT)), options.get("field"), options.get("end")
        self._server = Server(place)
        self._at = self._saved = BEGINNING  # the last entry read, and the last one in a checkpoint
        self._unacknowledged: list[str] = []
        self._entries = 0  # number of entries read
        self._begun = self._replaying = self._ended = False  # `_replaying`: reading entries that were delivered before

    def read(self, wait: float | None) -> Block | None:
        """As `Source`. A signal may wait half a second."""
        if self._ended:
            return None
        if not self._begun:
            self._begin()
        entries = self._next(LONGEST_WAIT if wait is None else min(wait, LONGEST_WAIT))
        if self._replaying and not entries:
            self._replaying = False
            entries = self._next(0.0)
        block = Block()
        for id, cells in entries:
            self._at, self._entries = id, self._entries + 1
            self._unacknowledged.append(id)
            if self._end is not None and self._end.encode() in cells[::2]:
                self._ended = True  # later entries are not part of this stream
                break
            try:
                block.rows.append(ArrivedRow(self._row(cells), self._entries, self._entries))
            except BadLine as bad:
                text = b" ".join(cells)[:SHOWN].decode("utf-8", "replace")
                block.refused.append(RejectedLine(self._entries, f"entry {id}: {bad}", text))
        return block

    def mark(self) -> Mark:
        """As `Source`: the id of the last entry."""
        return {
            "path": str(self.place),
            "group": self._group,
            "consumer": self._consumer,
            "id": self._at,
            "since": self._saved,
            "entries": self._entries,
        }

    def commit(self) -> None:
        """As `Source`: Redis need no longer keep these entries for this consumer."""
        for first in range(0, len(self._unacknowledged), MANY):
            self._server.ask("XACK", self.place.key, self._group, *self._unacknowledged[first : first + MANY])
        self._saved, self._unacknowledged = self._at, []

    def seek(self, mark: Mark) -> None:
        """As `Source`: Redis has kept the entries after the mark for this consumer."""
        refuse_other_input(mark, self.mark(), ("path", "group", "consumer"))
        if mark["id"] == BEGINNING:
            return
        delivered = {group["name"]: group["last-delivered-id"] for group in self._server.groups()}
        if Id.of(delivered.get(self._group, BEGINNING)) < Id.of(mark["id"]):
            what = f"the group '{self._group}' has not reached {mark['id']}, the place of the checkpoint: this is another input"
            raise BadInput(what, file=self.place, right=f"restore the stream, {NEW_FOLDER}")
        self._acknowledge(mark["since"], mark["id"])  # the process may have been killed before it acknowledged them
        self._at = self._saved = mark["id"]
        self._entries, self._begun, self._replaying = mark["entries"], True, True

    def close(self) -> None:
        """As `Source`."""
        self._server.close()

    def _begin(self) -> None:
        """A new group starts with the first entry of the stream; unacknowledged entries of the consumer are read first."""
        try:
            self._server.ask("XGROUP", "CREATE", self.place.key, self._group, "0", "MKSTREAM")
        except BadInput as bad:
            if "BUSYGROUP" not in str(bad):
                raise
        self._begun = self._replaying = True

    def _next(self, wait: float) -> list[tuple[str, list[bytes]]]:
        block = [] if self._replaying else ["BLOCK", max(int(wait * 1000), 1)]  # BLOCK 0 has no limit
        place = [self.place.key, self._at if self._replaying else ">"]
        words = ["GROUP", self._group, self._consumer, "COUNT", self._count, *block, "STREAMS", *place]
        found = self._server.ask("XREADGROUP", *words)
        return [(id.decode(), self._whole(id, cells)) for id, cells in found[0][1]] if found else []

    def _whole(self, id: bytes, cells: list[bytes] | None) -> list[bytes]:
        if cells is None:
            what = f"entry {id.decode()} was removed from the stream before it was acknowledged"
            right = f"remove acknowledged entries only; to resume without it: XACK {self.place.key} {self._group} {id.decode()}"
            raise BadInput(what, file=self.place, right=right)
        return cells

    def _row(self, cells: list[bytes]) -> dict[str, Any]:
        try:
            pairs = [(name.decode(), cell) for name, cell in zip(cells[::2], cells[1::2], strict=True)]
            row = dict(pairs)
            if self._field is not None:
                if self._field not in row:
                    raise BadLine(f"it has no field '{self._field}'")
                return row_of(row[self._field])
            if len(row) < len(pairs):
                raise BadLine("a field occurs twice")
            return {name: cell.decode() or None for name, cell in row.items()}
        except UnicodeDecodeError:
            raise BadLine("it is not UTF-8 text") from None

    def _acknowledge(self, after: str, last: str) -> None:
        """Acknowledge those of these entries that are still pending."""
        key, group = self.place.key, self._group
        while Id.of(after) < Id.of(last):
            found = self._server.ask("XPENDING", key, group, f"({after}", last, MANY, self._consumer)
            if not found:
                return
            ids = [entry[0].decode() for entry in found]
            self._server.ask("XACK", key, group, *ids)
            after = ids[-1]


class RedisSink:
    """Rows as entries of a stream, each exactly once; a batch is written whole or not at all.

    Args:
        place: the address of the stream.

    >>> RedisSink(RedisAddress.of("redis://localhost:1/0/out", "out"))
    Traceback (most recent call last):
    closeknit.streams.sinks.SinkDown: redis://localhost:1/0/out: no Redis answers there (...); start one, or correct ...
    """

    def __init__(self, place: RedisAddress) -> None:
        self.place, self._field, self._server = place, place.options.get("field"), Server(place)
        self._number = 0  # of the last batch written
        self._ours: Id | None = None  # the last entry that this process wrote: after it no batch repeats
        self._doubtful: Id | None = None  # the last entry of a batch whose answer was lost
        self._last(self._server.client)  # refuses a key that is not a stream before any work

    @property
    def begun(self) -> bool:
        """Whether the stream has, or ever had, an entry."""
        return self._last(self._server.client) > Id(0, 0)

    def write(self, number: int, batch: Columns) -> None:
        """As `Sink`: the number is part of the ids."""
        rows = {Id(number, i): cells for i, cells in enumerate(self._cells(batch), start=1)}
        with translate_errors(self.place), self._server.client.pipeline(transaction=True) as adding:
            adding.watch(self.place.key)
            last = self._last(adding)
            if last == self._doubtful:
                self._ours = last
            if last >= Id(number, 0) or self._ours not in (None, last):
                self._compare(number, rows, last)
            else:
                adding.multi()
                for id, cells in rows.items():
                    adding.execute_command("XADD", self.place.key, f"{id.first}-{id.second}", *cells)
                self._doubtful = max(rows)
                adding.execute()
                self._ours = max(rows)
        self._number = number

    def mark(self) -> Mark:
        """As `Sink`: entries are as safe as the settings of Redis make them."""
        return {"path": str(self.place), "batch": self._number, "field": self._field}

    def seek(self, mark: Mark) -> None:
        """As `Sink`: nothing is removed, repeated batches are found."""
        if (mark.get("path"), mark.get("field")) != (str(self.place), self._field):
            right = f"name the output of the checkpoint, {NEW_FOLDER}"
            raise BadInput(f"the checkpoint writes to {describe_mark(mark)}", file=self.place, right=right)
        there = self._last(self._server.client).first
        if there < mark["batch"]:
            what = f"the stream ends with batch {there:,}, and the checkpoint has written {mark['batch']:,}"
            raise BadInput(what, file=self.place, right=f"restore the stream, {NEW_FOLDER}")
        self._number = mark["batch"]

    def empty(self) -> None:
        """As `Sink`; an empty stream stays, with the groups of its readers."""
        if self.begun:
            self._server.ask("DEL", self.place.key)

    def close(self) -> None:
        """As `Sink`."""
        self._server.close()

    def _last(self, client: Any) -> Id:
        """The greatest id so far, even if its entry was removed."""
        with translate_errors(self.place):
            if not client.execute_command("EXISTS", self.place.key):
                return Id(0, 0)
            return Id.of(as_record(client.execute_command("XINFO", "STREAM", self.place.key))["last-generated-id"])

    def _compare(self, number: int, rows: dict[Id, list[str]], last: Id) -> None:
        """Refuse a batch that differs from the one in the stream; removed entries cannot differ."""
        found = self._server.ask("XRANGE", self.place.key, number, number)
        there = {Id.of(id.decode()): [cell.decode("utf-8", "replace") for cell in cells] for id, cells in found}
        torn = last.first == number and last.second != len(rows)
        foreign = self._ours not in (None, last) or last.first >= OTHERS
        if torn or foreign or any(rows.get(id) != cells for id, cells in there.items()):
            what = f"the stream has entries of another writer in place of batch {number:,}"
            raise BadInput(what, file=self.place, right="choose another stream, and let no other process write to it")

    def _cells(self, batch: Columns) -> Iterator[list[str]]:
        """The fields of each entry: names and texts, or one field with the row as JSON."""
        if self._field is not None:
            return ([self._field, line] for line in lines_of(batch))
        texts = [[*cell_texts(column), ""] for column in batch.values()]  # code -1 is a missing cell
        codes = [column.codes.tolist() for column in batch.values()]
        return (
            [word for name, text, code in zip(batch, texts, row, strict=True) for word in (name, text[code])]
            for row in zip(*codes, strict=True)
        )
