"""A server in a process of its own, and workers that keep what they measure for a short time only.

As a program, ``python -m tests.server.at_work SECONDS ...`` is `shortlist ...` with leases of so many
seconds.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shortlist.client import Client
from tests.server.process import ServerProcess


class Server(ServerProcess):
    """A server with a store of its own, and clients of it."""

    def __init__(self, folder: Path, *options: str, token: str | None = None) -> None:
        super().__init__(folder / "served.db", *options)
        self._token = token

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


def main() -> None:
    """Call the command line with other leases."""
    from shortlist import cli
    from shortlist.execution import lease_keeping as company
    from shortlist.execution import scheduler as round

    company.LEASE = round.LEASE = float(sys.argv.pop(1))  # type: ignore[attr-defined]
    cli.main()


if __name__ == "__main__":
    main()
