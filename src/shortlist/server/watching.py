"""News of runs for those who watch: a run is looked at once for all of them, and only while there are any."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

from shortlist.errors import ShortlistError

_BETWEEN = 1.0  # seconds between two looks at a run
_SILENCE = 15.0  # seconds after which a word is sent, so that both ends know that the other is there

Look: TypeAlias = Callable[[int], Awaitable[dict[str, Any] | None]]
"""``look(n_events)`` returns what there is to say of a run, or None if no event has come since."""


class Watch:
    """One run, and those who watch it; `n_watchers` says how many these are."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._news = asyncio.Event()
        self._said = b""
        self.n_watchers = 0
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    async def stream(self, closing: asyncio.Event) -> AsyncIterator[bytes]:
        """Yield what is sent to one who watches: the run as it is, and again whenever it has changed.

        Whoever reads slowly is sent the latest only, not all that has been.
        """
        self.n_watchers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        seen = b""
        try:
            while not closing.is_set():
                if self._said != seen:
                    seen = self._said
                    yield seen
                elif self._is_over:
                    return
                elif not await _within(self._news, _SILENCE, closing):
                    yield b": still here\n\n"
        finally:
            self.n_watchers -= 1
            if not self.n_watchers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _follow(self) -> None:
        n_events = -1
        while True:
            try:
                found = await self._look(n_events)
            except ShortlistError as error:
                self._say("trouble", {"kind": type(error).__name__, "message": str(error)}, n_events)
                self._is_over = True
                self._wake()
                return
            if found is not None:
                n_events = found["n_events"]
                self._say("run", found, n_events)
                self._wake()
            await asyncio.sleep(_BETWEEN)

    def _say(self, kind: str, data: dict[str, Any], number: int) -> None:
        text = json.dumps(data, allow_nan=False)
        self._said = f"id: {number}\nevent: {kind}\ndata: {text}\n\n".encode()

    def _wake(self) -> None:
        """Wake all who wait; whoever comes after waits for the next news."""
        before, self._news = self._news, asyncio.Event()
        before.set()


async def _within(news: asyncio.Event, seconds: float, closing: asyncio.Event) -> bool:
    """Wait for news for so long at most; return whether there were any, or the server is about to close."""
    waits = {asyncio.create_task(news.wait()), asyncio.create_task(closing.wait())}
    try:
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for task in waits:
            task.cancel()
