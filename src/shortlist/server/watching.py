"""Watching of runs: a run is polled once for all its watchers, and only while there are any."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeAlias

from shortlist.errors import ShortlistError

_BETWEEN = 1.0  # seconds between two polls of a run
_LOOK = 1.0  # seconds between two checks whether a watcher is still logged in
_SILENCE = 15.0  # seconds between keep-alive comments

Seen: TypeAlias = tuple[str, int]
"""The last seen state of a run: its code, and its number of events."""

Look: TypeAlias = Callable[[Seen], Awaitable[dict[str, Any] | None]]
"""``look(seen)`` returns the status of a run, or None if it has no new events."""


class Watch:
    """One run and its watchers.

    Attributes
    ----------
    n_watchers
        The number of watchers.
    is_over
        Whether polling failed, so that no more events will come.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        self._news = asyncio.Event()
        self._said = b""
        self.n_watchers = 0
        self._task: asyncio.Task[None] | None = None
        self.is_over = False

    async def stream(
        self, closing: asyncio.Event, may_watch: Callable[[], bool] = lambda: True
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events for one watcher: the current status, and again after every change.

        A slow reader gets only the latest status. The stream ends when `may_watch` is no longer true.
        """
        self.n_watchers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        seen, at = b"", time.monotonic()
        try:
            while not closing.is_set() and may_watch():
                if self._said != seen:
                    seen, at = self._said, time.monotonic()
                    yield seen
                elif self.is_over:
                    return
                elif not await _within(self._news, _LOOK, closing) and time.monotonic() >= at + _SILENCE:
                    at = time.monotonic()
                    yield b": still here\n\n"
        finally:
            self.n_watchers -= 1
            if not self.n_watchers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _follow(self) -> None:
        """Poll the run until it is removed or cannot be read."""
        seen: Seen = ("", -1)
        try:
            while True:
                found = await self._look(seen)
                if found is not None:
                    seen = found["code"], found["n_events"]
                    self._say("run", found, seen[1])
                await asyncio.sleep(_BETWEEN)
        except ShortlistError as error:
            self._end(type(error).__name__, str(error))
        except Exception:
            self._end("InternalError", "internal server error.")
            raise

    def _end(self, kind: str, message: str) -> None:
        self.is_over = True
        self._say("trouble", {"kind": kind, "message": message}, -1)

    def _say(self, kind: str, data: dict[str, Any], number: int) -> None:
        text = json.dumps(data, allow_nan=False)
        self._said = f"id: {number}\nevent: {kind}\ndata: {text}\n\n".encode()
        before, self._news = self._news, asyncio.Event()  # later watchers wait for the next event
        before.set()


async def _within(news: asyncio.Event, seconds: float, closing: asyncio.Event) -> bool:
    """Wait for an event, with a timeout; return whether there was one, or the server is about to stop."""
    waits = {asyncio.create_task(news.wait()), asyncio.create_task(closing.wait())}
    try:
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for task in waits:
            task.cancel()
