"""The ASGI application: its routes, and the state that they share."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from shortlist.server.errors import add_handlers
from shortlist.server.middleware import guarded
from shortlist.server.requests import Refusal
from shortlist.server.responses import Api
from shortlist.server.run_cache import RunCache
from shortlist.server.settings import Settings
from shortlist.server.watching import Watch
from shortlist.store import Store

T = TypeVar("T")

_WRITERS, _READERS = 32, 4  # threads; writers wait for each other, and share one write to the disk


@dataclass(eq=False)
class AppContext:
    """The state that the parts of the application share.

    Attributes
    ----------
    cache
        The open runs.
    settings
        The server's settings.
    closing
        Set when the server is about to stop: then streams end.
    watches
        The runs that are being watched.
    n_streams, n_thoughts
        The number of streams, and of plans that are being computed or queued.
    """

    cache: RunCache
    settings: Settings
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    watches: dict[str, Watch] = field(default_factory=dict)
    n_streams: int = 0
    n_thoughts: int = 0
    _writers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_WRITERS, thread_name_prefix="write")
    )
    _readers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_READERS, thread_name_prefix="read")
    )

    _thinker: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="run_planner")
    )

    async def write(self, do: Callable[[], T]) -> T:
        """Run a function that appends to a log, in a thread of the writers' pool."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, do)

    async def run_planner(self, do: Callable[[], T]) -> T:
        """Run a slow computation, one at a time; readers do not wait for it.

        Raises
        ------
        HTTPException
            If too many are queued already.
        """
        if self.n_thoughts >= self.settings.limits.plans:
            raise HTTPException(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many plans are being computed; try again later."
            )
        self.n_thoughts += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thinker, do)
        finally:
            self.n_thoughts -= 1

    async def read(self, do: Callable[[], T]) -> T:
        """Run a function that only reads, in a thread; writers do not wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, do)

    def close(self) -> None:
        """Stop the threads and close the store."""
        self._writers.shutdown(cancel_futures=True)
        self._readers.shutdown(cancel_futures=True)
        self._thinker.shutdown(cancel_futures=True)
        self.cache.store.close()


def create_app(store: Store, settings: Settings | None = None) -> ASGIApp:
    """Return the application that serves the runs of a store, with its middleware."""
    return guarded(create_api(store, settings), settings or Settings())


def create_api(store: Store, settings: Settings | None = None) -> FastAPI:
    """Return the application without middleware."""
    from shortlist.server import pages, routes_read, routes_write  # noqa: PLC0415  # they use AppContext

    settings = settings or Settings()
    context = AppContext(RunCache(store, is_read_only=settings.is_read_only), settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        context.close()

    refusals: dict[int | str, dict[str, Any]] = {
        status: {"model": Refusal} for status in (400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 429, 503)
    }
    app = Api(
        title="Shortlist",
        version="1",  # version of the API; the version of the program is not disclosed
        description="Runs that pick the m best of n noisy arms: watch them, and send answers.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=refusals,
        redirect_slashes=False,
    )
    app.state.context = context
    add_handlers(app)
    for part in (routes_write, routes_read, pages):
        app.include_router(part.routes(context))
    return app
