"""What routes share: limits on forms, the owner of a request, and the case of a path, which must be his."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from closeknit.apps.web.answers import refusal
from closeknit.apps.web.cases import Case, Cases, Gone, NotYet, NotYours, TooMuch
from closeknit.apps.web.settings import Settings
from closeknit.apps.web.tasks import Tasks
from closeknit.core.errors import BadInput, CloseknitError

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
STATUS = {NotYours: 404, Gone: 410, TooMuch: 429, BadInput: 400, NotYet: 409}
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


class LimitedRoute(APIRoute):
    """A route whose form is read with the server's own limits: `APIRouter(route_class=LimitedRoute)`."""

    def get_route_handler(self) -> Handler:
        """Read the form first; what reads it later is given the same."""
        usual = super().get_route_handler()

        async def handler(request: Request) -> Response:
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() in FORMS:
                limits: Settings = request.app.state.settings
                await request.form(max_files=limits.files, max_fields=limits.fields, max_part_size=limits.text)
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


Owner = Annotated[str, Depends(_owner)]
Mine = Annotated[Case, Depends(_case)]  # of a path with {id}
AllCases = Annotated[Cases, Depends(_cases)]
AllTasks = Annotated[Tasks, Depends(_tasks)]


async def refused(request: Request, error: Exception) -> Response:
    """Every error that is somebody's mistake as its status and one sentence."""
    if isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        return refusal(request.scope, error.status_code, str(error.detail), headers)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = " ".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        return refusal(request.scope, 422, f"{where}: {first['msg']}")
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 409)
    return refusal(request.scope, status, str(error))


REFUSED: tuple[type[Exception], ...] = (HTTPException, RequestValidationError, CloseknitError)
