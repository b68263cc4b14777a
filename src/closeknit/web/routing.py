"""What routes share: limits on forms, the owner of a request, and the owner's case named in a path."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from closeknit.core.errors import BadInput, CloseknitError, suggest_name
from closeknit.web.cases import Case, CaseNotFound, Cases, Gone, LimitExceeded, NotReady
from closeknit.web.live.inbox import OutOfOrder, QueueFull, TooLong
from closeknit.web.live.live_stream import LiveStream, StreamNotFound
from closeknit.web.live.live_streams import LiveStreams
from closeknit.web.responses import refusal
from closeknit.web.settings import Settings
from closeknit.web.tasks import Tasks

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
STATUS = {
    CaseNotFound: 404,
    StreamNotFound: 404,
    Gone: 410,
    LimitExceeded: 429,
    QueueFull: 429,
    TooLong: 413,
    BadInput: 400,
    NotReady: 409,
    OutOfOrder: 409,
}
LONGEST_FIELD = 128 * 1024  # bytes of a field in a form with files, which may be large: fields are held in memory
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
UNKNOWN_KEY = "unknown_key"  # type of a pydantic error whose message is our own sentence
MISSING = "the field '{name}' is missing; add it"


def media_type(request: Request) -> str:
    """Return the type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


class LimitedRoute(APIRoute):
    """A route whose form is read with the server's own limits: `APIRouter(route_class=LimitedRoute)`."""

    def get_route_handler(self) -> Handler:
        """Read the form first; FastAPI then uses the parsed one. The service refuses unknown fields."""
        usual = super().get_route_handler()
        fields = [field.alias for field in self.dependant.body_params]

        async def handler(request: Request) -> Response:
            kind = media_type(request)
            if kind in FORMS:
                limits: Settings = request.app.state.settings
                longest = min(limits.text, LONGEST_FIELD) if kind == FORMS[0] else limits.text
                form = await request.form(max_files=limits.files, max_fields=limits.fields, max_part_size=longest)
                if self.include_in_schema and (unknown := [name for name in form if name not in fields]):
                    return refusal(request.scope, 422, unknown_key(unknown[0], fields))
            return await usual(request)

        return handler


async def _owner(request: Request) -> str:
    return str(request.state.owner)


async def _cases(request: Request) -> Cases:
    return request.app.state.cases  # type: ignore[no-any-return]


async def _tasks(request: Request) -> Tasks:
    return request.app.state.tasks  # type: ignore[no-any-return]


async def _case(request: Request, id: Annotated[str, PathParameter(max_length=64)]) -> Case:
    return (await _cases(request)).of(await _owner(request), id)


async def _streams(request: Request) -> LiveStreams:
    return request.app.state.streams  # type: ignore[no-any-return]


async def _stream(request: Request, id: Annotated[str, PathParameter(max_length=64)]) -> LiveStream:
    return (await _streams(request)).of(await _owner(request), id)


async def _read_form(request: Request) -> dict[str, str]:
    return {key: str(value) for key, value in (await request.form()).items()}


Owner = Annotated[str, Depends(_owner)]
OwnCase = Annotated[Case, Depends(_case)]  # of a path with {id}
AllStreams = Annotated[LiveStreams, Depends(_streams)]
OwnStream = Annotated[LiveStream, Depends(_stream)]  # of a path with {id}
FormFields = Annotated[dict[str, str], Depends(_read_form)]  # any fields; the route may run in a thread
AllCases = Annotated[Cases, Depends(_cases)]
AllTasks = Annotated[Tasks, Depends(_tasks)]


def unknown_key(name: str, known: Iterable[str]) -> str:
    """Return the sentence that refuses an unknown key of a request.

    >>> unknown_key("metods", ["methods"])
    "there is no key 'metods'; did you mean 'methods'?"
    """
    return str(BadInput(f"there is no key '{name}'", right=suggest_name(name, known)))


async def answer_refusal(request: Request, error: Exception) -> Response:
    """Answer a user's mistake with its status and one sentence."""
    if isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        return refusal(request.scope, error.status_code, str(error.detail), headers)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = " ".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        own = {UNKNOWN_KEY: first["msg"], "missing": MISSING.format(name=where)}
        return refusal(request.scope, 422, own.get(first["type"], f"{where}: {first['msg']}"))
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 409)
    home = str(request.app.state.settings.home)  # errors of a full disk or a removed case name the file
    later = {"retry-after": str(error.seconds)} if isinstance(error, QueueFull) else None
    return refusal(request.scope, status, str(error).replace(f"{home}/", ""), later)


REFUSED: tuple[type[Exception], ...] = (HTTPException, RequestValidationError, CloseknitError)
