"""`make_app`: the server of the page and of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from closeknit import __version__
from closeknit.web import access, pages, rest
from closeknit.web.body_limits import BodyLimits, Turns
from closeknit.web.cases import Cases
from closeknit.web.guard import Guard
from closeknit.web.headers import Headers
from closeknit.web.routing import REFUSED, answer_refusal
from closeknit.web.settings import Settings
from closeknit.web.tasks import Tasks
from closeknit.web.tokens import Logins

EXPIRY = 60.0  # seconds between two looks at what has expired


def make_app(settings: Settings, tokens: dict[str, bytes] | None = None) -> FastAPI:
    """The application; `app.state.logins.code()` gives a one-time code to enter with.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     app = make_app(Settings(home=Path(home)))
    >>> app.title, app.state.settings.body
    ('closeknit', 1073741824)
    """
    # The description of the service stands behind the token too; its usual pages would fetch scripts from other hosts.
    app = FastAPI(
        title="closeknit", version=__version__, openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, lifespan=_life
    )
    app.state.settings, app.state.logins = settings, Logins(settings, tokens)
    app.state.cases = Cases(settings)
    app.state.tasks = Tasks(app.state.cases)
    for kind in REFUSED:
        app.add_exception_handler(kind, answer_refusal)
    for router in (access.router, *rest.ROUTERS, *pages.ROUTERS):
        app.include_router(router)
    app.mount("/static", Static(directory=Path(__file__).with_name("static")), name="static")
    for layer, given in (  # the last one is the outermost
        (BodyLimits, {"settings": settings}),
        (Turns, {"settings": settings}),
        (access.Access, {"settings": settings, "logins": app.state.logins}),
        (Guard, {"settings": settings}),
        (Headers, {"secure": settings.secure}),
    ):
        app.add_middleware(layer, **given)  # type: ignore[arg-type]
    return app


class Static(StaticFiles):
    """What a page looks like is the same for everybody and may be kept, but is asked for anew."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        """The file, or that it has not changed."""
        answer = super().file_response(*given, **named)
        answer.headers["cache-control"] = "no-cache"
        return answer


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    """Work while the server runs, and look now and then for what has expired."""
    tasks: Tasks = app.state.tasks
    tasks.open()
    watch = asyncio.create_task(_expire(tasks))
    try:
        yield
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await run_in_threadpool(tasks.close)


async def _expire(tasks: Tasks) -> None:
    while True:
        await asyncio.sleep(min(EXPIRY, tasks.settings.keep / 2))
        await run_in_threadpool(tasks.expire)
