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

from closeknit.core.errors import BadInput, CloseknitError
from closeknit.web.cases import Case, CaseNotFound, Cases, Gone, LimitExceeded, NotReady
from closeknit.web.responses import refusal
from closeknit.web.settings import Settings
from closeknit.web.tasks import Tasks

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
STATUS = {CaseNotFound: 404, Gone: 410, LimitExceeded: 429, BadInput: 400, NotReady: 409}
LONGEST_FIELD = 128 * 1024  # bytes of a field beside files, whose form may be large: all fields are held in memory
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


class LimitedRoute(APIRoute):
    """A route whose form is read with the server's own limits: `APIRouter(route_class=LimitedRoute)`."""

    def get_route_handler(self) -> Handler:
        """Read the form first; what reads it later is given the same."""
        usual = super().get_route_handler()

        async def handler(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind in FORMS:
                limits: Settings = request.app.state.settings
                longest = min(limits.text, LONGEST_FIELD) if kind == FORMS[0] else limits.text
                await request.form(max_files=limits.files, max_fields=limits.fields, max_part_size=longest)
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


async def _read_form(request: Request) -> dict[str, str]:
    return {key: str(value) for key, value in (await request.form()).items()}


Owner = Annotated[str, Depends(_owner)]
OwnCase = Annotated[Case, Depends(_case)]  # of a path with {id}
FormFields = Annotated[
    dict[str, str], Depends(_read_form)
]  # a form of any fields, so that its route need not run in the loop of all
AllCases = Annotated[Cases, Depends(_cases)]
AllTasks = Annotated[Tasks, Depends(_tasks)]


async def answer_refusal(request: Request, error: Exception) -> Response:
    """Every error that is somebody's mistake as its status and one sentence."""
    if isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        return refusal(request.scope, error.status_code, str(error.detail), headers)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = " ".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        return refusal(request.scope, 422, f"{where}: {first['msg']}")
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 409)
    home = str(request.app.state.settings.home)  # a full disk, or a case that is being removed, is told with its file
    return refusal(request.scope, status, str(error).replace(f"{home}/", ""))


REFUSED: tuple[type[Exception], ...] = (HTTPException, RequestValidationError, CloseknitError)
