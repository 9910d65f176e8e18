"""A server in a process of its own, and workers that keep what they measure for a short time only.

As a program, ``python -m tests.server.at_work SECONDS ...`` is `shortlist ...` with leases of so many
seconds.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from shortlist.client import Client

ROOT = Path(__file__).parents[2]


class Server:
    """`shortlist serve` at a free port, with a store of its own; it can be killed and started again."""

    def __init__(self, folder: Path, *options: str, token: str | None = None) -> None:
        self.store, self._options, self._token = folder / "served.db", options, token
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = ["--store", str(self.store), "--port", str(self.port), *self._options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shortlist", "serve", *options],
            stdout=subprocess.DEVNULL,
            env=environment(),
        )
        end = time.monotonic() + 60
        while time.monotonic() < end:
            assert self.process.poll() is None, "the server did not start"
            try:
                httpx.get(f"{self.url}/login")
            except httpx.TransportError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the server did not answer")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End the server."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=30)
            self.process = None

    def client(self, token: str | None = None, patience: float = 30.0) -> Client:
        return Client(self.url, token or self._token, patience=patience)


@contextmanager
def serving(folder: Path, *options: str, token: str | None = None) -> Iterator[Server]:
    """Yield a server that runs."""
    server = Server(folder, *options, token=token)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def environment() -> dict[str, str]:
    """Return the environment of processes that tests start."""
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "80"}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | one | {"PYTHONPATH": path}


def main() -> None:
    """Call the command line with other leases."""
    from shortlist import cli
    from shortlist.run import company, round

    company.LEASE = round.LEASE = float(sys.argv.pop(1))  # type: ignore[attr-defined]
    cli.main()


if __name__ == "__main__":
    main()
