"""`make_app`: the application with the pages and the REST service."""

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
from closeknit.web import access, pages, rest, rest_streams
from closeknit.web.body_limits import BodyLimits, Turns
from closeknit.web.cases import Cases
from closeknit.web.guard import Guard
from closeknit.web.headers import Headers
from closeknit.web.live.live_streams import LiveStreams
from closeknit.web.routing import REFUSED, answer_refusal
from closeknit.web.settings import Settings
from closeknit.web.tasks import Tasks
from closeknit.web.tokens import Logins

EXPIRY = 60.0  # seconds between two searches for expired cases


def make_app(settings: Settings, tokens: dict[str, bytes] | None = None) -> FastAPI:
    """Build the application; `app.state.logins.code()` returns a single-use code for the login link.

    Args:
        settings: Folder, address and limits of the server.
        tokens: Digest of the token of each user; without them only single-use codes let users in.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     app = make_app(Settings(home=Path(home)))
    >>> app.title, app.state.settings.body
    ('closeknit', 1073741824)
    """
    # The API description needs a token too; FastAPI's documentation pages would load scripts from other hosts.
    app = FastAPI(
        title="closeknit", version=__version__, openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, lifespan=_life
    )
    app.state.settings, app.state.logins = settings, Logins(settings, tokens)
    app.state.cases = Cases(settings)
    app.state.tasks = Tasks(app.state.cases)
    app.state.streams = LiveStreams(settings)
    for kind in REFUSED:
        app.add_exception_handler(kind, answer_refusal)
    for router in (access.router, *rest.ROUTERS, *rest_streams.ROUTERS, *pages.ROUTERS):
        app.include_router(router)
    app.mount("/static", Static(directory=Path(__file__).with_name("static")), name="static")
    for layer, options in (  # the last one is the outermost
        (BodyLimits, {"settings": settings}),
        (Turns, {"settings": settings}),
        (access.Access, {"settings": settings, "logins": app.state.logins}),
        (Guard, {"settings": settings}),
        (Headers, {"secure": settings.secure}),
    ):
        app.add_middleware(layer, **options)  # type: ignore[arg-type]
    return app


class Static(StaticFiles):
    """Static files, which are the same for all users: browsers may cache them, but must revalidate."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        """Return the file, or that it has not changed."""
        answer = super().file_response(*args, **options)
        answer.headers["cache-control"] = "no-cache"
        return answer


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    """Run tasks and streams while the server runs, and remove expired ones."""
    tasks: Tasks = app.state.tasks
    streams: LiveStreams = app.state.streams
    tasks.open()
    streams.open()
    watch = asyncio.create_task(_expire(tasks, streams))
    try:
        yield
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await run_in_threadpool(streams.close)
        await run_in_threadpool(tasks.close)


async def _expire(tasks: Tasks, streams: LiveStreams) -> None:
    while True:
        await asyncio.sleep(min(EXPIRY, tasks.settings.keep / 2))
        await run_in_threadpool(tasks.expire)
        await run_in_threadpool(streams.expire)
