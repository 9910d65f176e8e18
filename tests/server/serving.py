"""A server to try: `shortlist serve` as a process of its own, or its application alone."""

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

QUESTION: dict[str, Any] = {"m": 1, "epsilon": 0.5, "delta": 0.1, "variances": [1.0, 1.0, 1.0]}
MANY: dict[str, Any] = {"m": 3, "epsilon": 0.3, "delta": 0.05, "variances": [1.0] * 40}
START = 60.0  # seconds; other tests run meanwhile


def client_at(url: str, most: int = 10) -> httpx.Client:
    """Return a client, which several threads may use."""
    limits = httpx.Limits(max_connections=most, max_keepalive_connections=most)
    return httpx.Client(base_url=url, timeout=START, limits=limits, verify=False, trust_env=False)


class Served:
    """A server that runs, and a client of it."""

    def __init__(self, store: Path | str, *options: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "shortlist", "serve", "--store", str(store), "--port", str(port)]
        self.process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        self.store = store
        self.said = self._line()
        found = re.search(r"http://[^ ]+:(\d+)", self.said)
        assert found, self.said
        self.port = int(found[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = client_at(self.url)
        self._wait()

    def _line(self) -> str:
        assert self.process.stdout is not None
        ready, *_ = select.select([self.process.stdout], [], [], START)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.process.kill()
            raise AssertionError(f"no server: {self.process.communicate()[1]}")
        return line

    def _wait(self) -> None:
        end = time.monotonic() + START
        while True:
            with contextlib.suppress(httpx.TransportError):
                self.client.get("/login")
                return
            assert self.process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)

    @property
    def memory(self) -> int:
        """How many bytes it takes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found
        return int(found[1]) * 1024

    @property
    def n_connections(self) -> int:
        """How many sockets it has open."""
        n = 0
        for file in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                n += os.readlink(file).startswith("socket:")
        return n

    def connect(self, receive_buffer: int | None = None) -> socket.socket:
        """Return a connection on which anything can be sent."""
        found = socket.socket()
        if receive_buffer is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        found.settimeout(20.0)
        found.connect(("127.0.0.1", self.port))
        return found

    def request(self, method: str, path: str, *lines: str) -> bytes:
        """Return the head of a request."""
        head = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *lines, "", ""]
        return "\r\n".join(head).encode()

    def begin(
        self, name: str = "trial", question: dict[str, Any] | None = None, strategy: str = "auto"
    ) -> dict[str, Any]:
        """Begin a run."""
        wish = {"name": name, "question": question or QUESTION, "strategy": strategy}
        reply = self.client.post("/runs", json=wish)
        assert reply.status_code in {200, 201}, reply.text
        found: dict[str, Any] = reply.json()
        return found

    def kill(self) -> None:
        """End it at once, as a failure of power would."""
        self.process.kill()
        self.process.communicate()
        self.client.close()

    def stop(self, sent: int = signal.SIGTERM, within: float = 20.0) -> tuple[str, str]:
        """Ask it to end; return what else it has said, and what it has complained of."""
        self.process.send_signal(sent)
        try:
            return self.process.communicate(timeout=within)
        finally:
            self.process.kill()
            self.client.close()


@contextlib.contextmanager
def served(store: Path | str, *options: str) -> Iterator[Served]:
    """Yield a server of a store, and end it."""
    found = Served(store, *options)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.stop()


def answered(sock: socket.socket) -> bytes:
    """Return all that comes on a connection until it is closed."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := sock.recv(65536):
            parts.append(part)
    return b"".join(parts)


def trouble_of(reply: httpx.Response, *statuses: int) -> dict[str, Any]:
    """Return what an answer says went wrong, after making sure that it has the one shape of errors."""
    assert reply.status_code in statuses, (reply.status_code, reply.text[:500])
    assert reply.headers["content-type"] == "application/json"
    said = reply.json()
    assert list(said) == ["error"]
    error: dict[str, Any] = said["error"]
    assert list(error) == ["status", "kind", "message"]
    assert error["status"] == reply.status_code
    assert isinstance(error["message"], str)
    assert 5 < len(error["message"]) < 2100
    assert "Traceback" not in reply.text
    return error
