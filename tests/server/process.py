"""`shortlist serve` as a process that can be killed, and started again at the same address."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
_START = 60.0  # seconds; other tests run meanwhile


class ServerProcess:
    """A server of a store, at a port of its own."""

    def __init__(self, store: Path, *options: str) -> None:
        self.store, self._options, self.port = store, options, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = ["--store", str(self.store), "--port", str(self.port), *self._options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shortlist", "serve", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        end = time.monotonic() + _START
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
        """End it; with SIGKILL, without a word."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=30)
            self.process = None


def free_port() -> int:
    """Return a port at which nobody listens."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def environment() -> dict[str, str]:
    """Return the environment of processes that tests start."""
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "80"}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | one | {"PYTHONPATH": path}
