"""The pages of streams: the list with the form for a new one, and the live page of each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, UploadFile
from starlette.responses import RedirectResponse, Response

from closeknit.core.errors import BadInput
from closeknit.web.desk.stream_chart import draw_rates
from closeknit.web.live.live_stream import LiveStream
from closeknit.web.live.live_streams import LiveStreams
from closeknit.web.live.stream_worker import BATCHES, SINKS, TABLE
from closeknit.web.pages.page_common import UNFIT
from closeknit.web.pages.start import ago
from closeknit.web.responses import templates
from closeknit.web.rest import read_small_text
from closeknit.web.routing import AllStreams, LimitedRoute, Owner, OwnStream
from closeknit.web.stream_records import StreamState

router = APIRouter(route_class=LimitedRoute, include_in_schema=False)
SINK_TEXTS = {
    BATCHES: "batches that a program fetches by their number",
    "rows.ndjson": "a file of JSON lines to download",
    "rows.csv": "a CSV file to download",
    TABLE: "a table of PostgreSQL, which the recipe names as output",
}


@router.get("/streams")
def list_streams(request: Request, owner: Owner, streams: AllStreams) -> Response:
    """Show all streams of a user, and the form for a new one."""
    return _page(request, owner, streams)


def _page(request: Request, owner: str, streams: LiveStreams, error: str | None = None) -> Response:
    lines = [(StreamState.of(stream), ago(stream.record.made)) for stream in streams.list_owned(owner)]
    sinks = [(sink, SINK_TEXTS[sink]) for sink in SINKS if sink != TABLE or streams.settings.outputs != ()]
    shown = {"lines": lines, "error": error, "sinks": sinks}
    return templates().TemplateResponse(request, "streams.html", shown, UNFIT if error else 200)


@router.post("/streams")
def create_stream(
    request: Request,
    owner: Owner,
    streams: AllStreams,
    recipe: UploadFile,
    name: Annotated[str, Form(max_length=200)] = "",
    sink: Annotated[str, Form(max_length=40)] = BATCHES,
) -> Response:
    """Create a stream and show its page."""
    try:
        if not recipe.filename:
            raise BadInput("no file was chosen", right="choose a recipe with the key stream first")
        stream = streams.create(owner, name, read_small_text(recipe, streams.settings, "recipe"), sink)
    except BadInput as bad:
        return _page(request, owner, streams, str(bad))
    return RedirectResponse(f"/streams/{stream.record.id}", 303)


@router.get("/streams/{id}")
def show_stream(request: Request, stream: OwnStream) -> Response:
    """Show the live page of a stream."""
    return _show(request, stream, "stream.html")


@router.get("/streams/{id}/live")
def show_live_part(request: Request, stream: OwnStream) -> Response:
    """Show the part of the page that changes; the page asks for it every second."""
    return _show(request, stream, "stream_live.html")


def _show(request: Request, stream: LiveStream, template: str) -> Response:
    shown = {"stream": StreamState.of(stream), "chart": draw_rates(stream.status.samples), "address": stream.settings.address}
    return templates().TemplateResponse(request, template, shown)


@router.post("/streams/{id}/close")
def close_stream(stream: OwnStream) -> Response:
    """Flush and end a stream."""
    stream.close()
    return RedirectResponse(f"/streams/{stream.record.id}", 303)


@router.post("/streams/{id}/remove")
def remove_stream(stream: OwnStream, streams: AllStreams) -> Response:
    """Stop a stream and delete its data."""
    streams.remove(stream)
    return RedirectResponse("/streams", 303)
