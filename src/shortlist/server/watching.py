"""News of runs for those who watch: a run is looked at once for all of them, and only while there are any."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeAlias

from shortlist.errors import ShortlistError

_BETWEEN = 1.0  # seconds between two looks at a run
_SILENCE = 15.0  # seconds after which a word is sent, so that both ends know that the other is there

Seen: TypeAlias = tuple[str, int]
"""As what a run was last seen: its code, and how many events it had."""

Look: TypeAlias = Callable[[Seen], Awaitable[dict[str, Any] | None]]
"""``look(seen)`` returns what there is to say of a run, or None if no event has come since."""


class Watch:
    """One run, and those who watch it.

    Attributes
    ----------
    n_watchers
        How many these are.
    is_over
        Whether there was trouble, and nothing will come after it.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        self._news = asyncio.Event()
        self._said = b""
        self.n_watchers = 0
        self._task: asyncio.Task[None] | None = None
        self.is_over = False

    async def stream(self, closing: asyncio.Event) -> AsyncGenerator[bytes, None]:
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
                elif self.is_over:
                    return
                elif not await _within(self._news, _SILENCE, closing):
                    yield b": still here\n\n"
        finally:
            self.n_watchers -= 1
            if not self.n_watchers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _follow(self) -> None:
        """Look at the run again and again, until it is gone or cannot be read."""
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
            self._end("InternalError", "something went wrong in the server.")
            raise

    def _end(self, kind: str, message: str) -> None:
        self.is_over = True
        self._say("trouble", {"kind": kind, "message": message}, -1)

    def _say(self, kind: str, data: dict[str, Any], number: int) -> None:
        text = json.dumps(data, allow_nan=False)
        self._said = f"id: {number}\nevent: {kind}\ndata: {text}\n\n".encode()
        before, self._news = self._news, asyncio.Event()  # whoever comes after waits for the next news
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
