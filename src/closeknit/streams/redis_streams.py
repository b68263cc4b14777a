"""Redis Streams, in and out: `redis://host:port/db/stream`.

In, one consumer of a group: entries are acknowledged once a checkpoint holds what they caused; until then Redis keeps them for
this consumer, and they are read again after a restart. Out, a row of batch 17 has the id 17-1, 17-2, ...: Redis takes no id
twice, so a batch that comes again is found there, compared and not written. Neither ids nor rows tell a position or a person.
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
from closeknit.streams.sinks import describe_mark
from closeknit.streams.sources import Block, Mark

LONGEST_WAIT = 0.5  # seconds: so long may a signal wait
COUNT = 1000  # entries that are read at once
MANY = 1000  # entries that are acknowledged at once
OTHERS = 10**12  # an id that Redis makes is a time in milliseconds; so many batches there never are
BEGINNING = "0-0"
NEW_FOLDER = "or begin with another --checkpoint folder"


def source(url: str) -> RedisSource:
    """For an address, as every connector has it."""
    return RedisSource(RedisAddress.of(url, "in"))


def sink(url: str) -> RedisSink:
    """For an address, as every connector has it."""
    return RedisSink(RedisAddress.of(url, "out"))


class Id(NamedTuple):
    """An entry's: in the output the number of a batch and of a row in it.

    >>> Id.of("17-2") < Id.of("17-10") < Id.of("18")
    True
    """

    first: int
    second: int

    @classmethod
    def of(cls, text: str) -> Id:
        """From its text."""
        first, _, second = text.partition("-")
        return cls(int(first), int(second or 0))


class RedisSource:
    """The entries of a stream that Redis gives to one consumer of a group, in their order.

    >>> RedisSource(RedisAddress.of("redis://localhost:1/0/people?group=g&consumer=c", "in"))
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: redis://localhost:1/0/people: no Redis answers there (...); start one, or correct ...
    """

    def __init__(self, place: RedisAddress) -> None:
        self.place, options = place, place.options
        self._group, self._consumer = options["group"], options["consumer"]
        self._count, self._field, self._end = int(options.get("count", COUNT)), options.get("field"), options.get("end")
        self._server = Server(place)
        self._at = self._kept = BEGINNING  # the last entry that was given, and the last that a checkpoint holds
        self._given: list[str] = []  # since then
        self._entries = 0  # how many were ever given
        self._begun = self._again = self._ended = False  # `_again`: entries that were given before come once more

    def read(self, wait: float | None) -> Block | None:
        """As `Source` says. A signal may wait half a second."""
        if self._ended:
            return None
        if not self._begun:
            self._begin()
        entries = self._next(LONGEST_WAIT if wait is None else min(wait, LONGEST_WAIT))
        if self._again and not entries:
            self._again = False
            entries = self._next(0.0)
        block = Block()
        for id, cells in entries:
            self._at, self._entries = id, self._entries + 1
            self._given.append(id)
            if self._end is not None and self._end.encode() in cells[::2]:
                self._ended = True  # what stands behind it is not of this stream
                break
            try:
                block.rows.append(ArrivedRow(self._row(cells), self._entries, self._entries))
            except BadLine as bad:
                text = b" ".join(cells)[:SHOWN].decode("utf-8", "replace")
                block.refused.append(RejectedLine(self._entries, f"entry {id}: {bad}", text))
        return block

    def mark(self) -> Mark:
        """As `Source` says: the id of the last entry."""
        return {
            "path": str(self.place),
            "group": self._group,
            "consumer": self._consumer,
            "id": self._at,
            "since": self._kept,
            "entries": self._entries,
        }

    def commit(self) -> None:
        """As `Source` says: Redis need not keep these entries for us any longer."""
        for first in range(0, len(self._given), MANY):
            self._server.ask("XACK", self.place.key, self._group, *self._given[first : first + MANY])
        self._kept, self._given = self._at, []

    def seek(self, mark: Mark) -> None:
        """As `Source` says: Redis has kept for this consumer whatever came behind the mark."""
        here = self.mark()
        for name in ("path", "group", "consumer"):
            if mark.get(name) != here[name]:
                what = f"the checkpoint reads from {mark.get(name) or 'a pipe'}, not from {here[name]}"
                raise BadInput(what, file=self.place, right=f"name the {name} that it was made with, {NEW_FOLDER}")
        if mark["id"] == BEGINNING:
            return
        delivered = {group["name"]: group["last-delivered-id"] for group in self._server.groups()}
        if Id.of(delivered.get(self._group, BEGINNING)) < Id.of(mark["id"]):
            what = (
                f"the group '{self._group}' has not come to {mark['id']}, where the checkpoint is: this is not the same input"
            )
            raise BadInput(what, file=self.place, right=f"put it back as it was, {NEW_FOLDER}")
        self._acknowledge(mark["since"], mark["id"])  # a kill may have come between checkpoint and acknowledgement
        self._at = self._kept = mark["id"]
        self._entries, self._begun, self._again = mark["entries"], True, True

    def close(self) -> None:
        """As `Source` says."""
        self._server.close()

    def _begin(self) -> None:
        """A new group starts with the first entry of the stream; entries that the consumer had not finished come first."""
        try:
            self._server.ask("XGROUP", "CREATE", self.place.key, self._group, "0", "MKSTREAM")
        except BadInput as bad:
            if "BUSYGROUP" not in str(bad):
                raise
        self._begun = self._again = True

    def _next(self, wait: float) -> list[tuple[str, list[bytes]]]:
        block = [] if self._again else ["BLOCK", max(int(wait * 1000), 1)]  # BLOCK 0 is for ever
        place = [self.place.key, self._at if self._again else ">"]
        words = ["GROUP", self._group, self._consumer, "COUNT", self._count, *block, "STREAMS", *place]
        found = self._server.ask("XREADGROUP", *words)
        return [(id.decode(), self._whole(id, cells)) for id, cells in found[0][1]] if found else []

    def _whole(self, id: bytes, cells: list[bytes] | None) -> list[bytes]:
        if cells is None:
            what = f"entry {id.decode()} was removed from the stream before it was acknowledged"
            right = f"remove acknowledged entries only; to go on without it: XACK {self.place.key} {self._group} {id.decode()}"
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
                raise BadLine("a field stands there twice")
            return {name: cell.decode() or None for name, cell in row.items()}
        except UnicodeDecodeError:
            raise BadLine("it is not UTF-8 text") from None

    def _acknowledge(self, after: str, last: str) -> None:
        """What of these entries is still pending."""
        key, group = self.place.key, self._group
        while Id.of(after) < Id.of(last):
            found = self._server.ask("XPENDING", key, group, f"({after}", last, MANY, self._consumer)
            if not found:
                return
            ids = [entry[0].decode() for entry in found]
            self._server.ask("XACK", key, group, *ids)
            after = ids[-1]


class RedisSink:
    """Rows as entries of a stream, a batch at once or not at all, each exactly once.

    >>> RedisSink(RedisAddress.of("redis://localhost:1/0/out", "out"))
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: redis://localhost:1/0/out: no Redis answers there (...); start one, or correct ...
    """

    def __init__(self, place: RedisAddress) -> None:
        self.place, self._field, self._server = place, place.options.get("field"), Server(place)
        self._number = 0  # of the last batch that was written
        self._ours: Id | None = None  # the last entry, once this process has written one: none comes again after that
        self._last(self._server.client)  # what is no stream is refused before any work

    @property
    def begun(self) -> bool:
        """Whether something stands there, or has stood."""
        return self._last(self._server.client) > Id(0, 0)

    def write(self, number: int, batch: Columns) -> None:
        """As `Sink` says: the number is in the ids."""
        rows = {Id(number, i): cells for i, cells in enumerate(self._cells(batch), start=1)}
        with translate_errors(self.place), self._server.client.pipeline(transaction=True) as adding:
            adding.watch(self.place.key)
            last = self._last(adding)
            if last >= Id(number, 0) or self._ours not in (None, last):
                self._compare(number, rows, last)
            else:
                adding.multi()
                for id, cells in rows.items():
                    adding.execute_command("XADD", self.place.key, f"{id.first}-{id.second}", *cells)
                adding.execute()
                self._ours = max(rows)
        self._number = number

    def mark(self) -> Mark:
        """As `Sink` says: what Redis has taken is as safe as its settings make it."""
        return {"path": str(self.place), "batch": self._number, "field": self._field}

    def seek(self, mark: Mark) -> None:
        """As `Sink` says: nothing is taken back, batches that come again are found there."""
        if (mark.get("path"), mark.get("field")) != (str(self.place), self._field):
            right = f"name the output that it was made with, {NEW_FOLDER}"
            raise BadInput(f"the checkpoint writes to {describe_mark(mark)}", file=self.place, right=right)
        there = self._last(self._server.client).first
        if there < mark["batch"]:
            what = f"the stream has come to batch {there:,}, and the checkpoint has written {mark['batch']:,}"
            raise BadInput(what, file=self.place, right=f"put it back as it was, {NEW_FOLDER}")
        self._number = mark["batch"]

    def empty(self) -> None:
        """As `Sink` says; a stream that holds nothing yet stays, with the groups of its readers."""
        if self.begun:
            self._server.ask("DEL", self.place.key)

    def close(self) -> None:
        """As `Sink` says."""
        self._server.close()

    def _last(self, client: Any) -> Id:
        """The greatest id that ever was, also if its entry is gone."""
        with translate_errors(self.place):
            if not client.execute_command("EXISTS", self.place.key):
                return Id(0, 0)
            return Id.of(as_record(client.execute_command("XINFO", "STREAM", self.place.key))["last-generated-id"])

    def _compare(self, number: int, rows: dict[Id, list[str]], last: Id) -> None:
        """Refuse a batch that stands there as another one; what readers have removed cannot differ."""
        found = self._server.ask("XRANGE", self.place.key, number, number)
        there = {Id.of(id.decode()): [cell.decode("utf-8", "replace") for cell in cells] for id, cells in found}
        torn = last.first == number and last.second != len(rows)
        foreign = self._ours not in (None, last) or last.first >= OTHERS
        if torn or foreign or any(rows.get(id) != cells for id, cells in there.items()):
            what = f"entries of somebody else stand where batch {number:,} should"
            raise BadInput(what, file=self.place, right="let nothing else write there, and choose another stream")

    def _cells(self, batch: Columns) -> Iterator[list[str]]:
        """The words of each entry: names and texts, or one field with the row as JSON."""
        if self._field is not None:
            return ([self._field, line] for line in lines_of(batch))
        texts = [[*cell_texts(column), ""] for column in batch.values()]  # no value is code -1
        codes = [column.codes.tolist() for column in batch.values()]
        return (
            [word for name, text, code in zip(batch, texts, row, strict=True) for word in (name, text[code])]
            for row in zip(*codes, strict=True)
        )
