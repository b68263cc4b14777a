"""Streams over HTTP: create one from a recipe, send rows, fetch what is published."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request, Response, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse

from closeknit.web.cases import NotReady
from closeknit.web.live.batch_log import acknowledge, fetch_batches, number_of
from closeknit.web.live.live_stream import LiveStream
from closeknit.web.live.row_bodies import KINDS, read_rows
from closeknit.web.live.stream_watch import CERTIFICATE
from closeknit.web.live.stream_worker import BATCHES
from closeknit.web.rest import FILE, REFUSALS, UPLOAD, download, read_small_text
from closeknit.web.rest_records import Problem
from closeknit.web.routing import AllStreams, LimitedRoute, Owner, OwnStream, media_type
from closeknit.web.stream_records import Batches, RowsReceipt, Senders, StreamState

NO_STREAM: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "No such stream of this user"}}
NOT_HERE: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "A number that was never published, or is deleted"},
    409: {"model": Problem, "description": "Nothing there yet, or this stream has another sink"},
    **NO_STREAM,
}
ROWS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "A row that cannot be read; none was accepted"},
    408: UPLOAD[408],
    409: {"model": Problem, "description": "The numbers do not continue those of the sender, or the stream is closed"},
    413: {"model": Problem, "description": "More than a request or the queue can hold"},
    415: {"model": Problem, "description": "Neither NDJSON nor JSON nor CSV"},
    429: {"model": Problem, "description": "The queue is full: send the same rows again after `Retry-After` seconds"},
    **NO_STREAM,
}
EXAMPLES = {
    KINDS[0]: {"schema": {"type": "string"}},
    KINDS[1]: {"schema": {"type": "array", "items": {"type": "object"}}},
    KINDS[2]: {"schema": {"type": "string"}},
}
MOST = 2**53 - 1  # the largest whole number that all JSON readers can read
Number = Annotated[int, Query(ge=0, le=MOST)]

router = APIRouter(prefix="/api", route_class=LimitedRoute, responses=REFUSALS, tags=["streams"])
rows_router = APIRouter(prefix="/api", responses=REFUSALS, tags=["streams"])  # its bodies are no forms
ROUTERS = (router, rows_router)


@router.post("/streams", status_code=201, responses={**UPLOAD})
def create_stream(
    response: Response,
    owner: Owner,
    streams: AllStreams,
    recipe: UploadFile,
    name: Annotated[str, Form(max_length=200, description="for display")] = "",
    sink: Annotated[str, Form(max_length=40, description="batches, rows.ndjson, rows.csv or table")] = BATCHES,
) -> StreamState:
    """Create a stream from a recipe with the key `stream`. It runs until it is closed."""
    stream = streams.create(owner, name, read_small_text(recipe, streams.settings, "recipe"), sink)
    response.headers["location"] = f"/api/streams/{stream.record.id}"
    return StreamState.of(stream)


@router.get("/streams")
def list_streams(owner: Owner, streams: AllStreams) -> list[StreamState]:
    """List the streams of this user, newest first."""
    return [StreamState.of(stream) for stream in streams.list_owned(owner)]


@router.get("/streams/{id}", responses=NO_STREAM)
def show_stream(stream: OwnStream) -> StreamState:
    """Show rates, delays, loss, guarantees and alarms. Do not share them."""
    return StreamState.of(stream)


@router.delete("/streams/{id}", status_code=204, responses=NO_STREAM)
def delete_stream(stream: OwnStream, streams: AllStreams) -> None:
    """Stop a stream and delete its data, published or not. Waiting rows are lost: close it first to publish them."""
    streams.remove(stream)


@router.post("/streams/{id}/close", status_code=202, responses=NO_STREAM)
def close_stream(stream: OwnStream) -> StreamState:
    """Accept no more rows, and flush: what can be published is, the rest is suppressed."""
    stream.close()
    return StreamState.of(stream)


async def _read_body(request: Request) -> tuple[bytes, str]:
    kind = media_type(request)
    if kind not in KINDS:
        raise HTTPException(415, f"the rows have the media type '{kind}'; send one of: {', '.join(KINDS)}")
    return await request.body(), kind


@rows_router.post(
    "/streams/{id}/rows",
    status_code=202,
    responses=ROWS,
    openapi_extra={"requestBody": {"required": True, "content": EXAMPLES}},
)
def send_rows(
    stream: OwnStream,
    body: Annotated[tuple[bytes, str], Depends(_read_body)],
    first: Annotated[int, Query(ge=0, le=MOST, description="number of the first row, from 0 on")],
    sender: Annotated[str, Query(max_length=100, description="each sender numbers its own rows")] = "",
) -> RowsReceipt:
    """Send rows; all are accepted or none. If no answer arrives, send the same request again: no row is doubled."""
    requested = stream.recipe.stream
    assert requested is not None
    columns = [name for name in (requested.position, requested.time) if name is not None]
    receipt = stream.accept(sender, first, read_rows(*body, stream.recipe.schema, columns))
    return RowsReceipt(accepted=receipt.accepted, repeated=receipt.repeated, next=receipt.next)


@router.get("/streams/{id}/senders", responses=NO_STREAM)
def show_senders(stream: OwnStream) -> Senders:
    """Return from which number on each sender continues, for one that was interrupted."""
    return Senders(next={name: sent.next for name, sent in list(stream.inbox.senders.items())})


@router.get("/streams/{id}/batches", responses=NOT_HERE, response_model=Batches)
def show_batches(stream: OwnStream, streams: AllStreams, after: Number = 0) -> Response:
    """Return the batches that follow a number, up to a megabyte, or one that is larger."""
    ended = stream.ended  # before the batches are read
    lines = fetch_batches(stream.published, after, streams.settings.text)
    last = number_of(lines[-1]) if lines else after
    end = json.dumps(ended and not lines).encode()  # if there are some, another request shows whether more follow
    body = b'{"batches":[' + b",".join(lines) + b'],"last":' + str(last).encode() + b',"ended":' + end + b"}"
    return Response(body, media_type="application/json")


@router.delete("/streams/{id}/batches", status_code=204, responses=NOT_HERE)
def acknowledge_batches(stream: OwnStream, through: Annotated[int, Query(ge=0, le=MOST)]) -> None:
    """Acknowledge that you have all batches through a number: they are deleted, which makes room for new ones."""
    acknowledge(stream.published, through)


@router.get("/streams/{id}/rows", **FILE | {"responses": FILE["responses"] | NOT_HERE})
def fetch_rows(stream: OwnStream) -> FileResponse:
    """Download the file of published rows, if the stream appends to one."""
    return download(stream.rows_file)


@router.get("/streams/{id}/certificate", responses=NOT_HERE)
def show_stream_certificate(stream: OwnStream) -> dict[str, Any]:
    """Return the certificate of all rows published up to the last checkpoint."""
    return dict(json.loads(find_certificate(stream)))


def find_certificate(stream: LiveStream) -> str:
    """Return the text of the certificate; refused if there is none yet."""
    try:
        return (stream.folder / CERTIFICATE).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotReady("there is no certificate yet; it is written with the first checkpoint") from None
