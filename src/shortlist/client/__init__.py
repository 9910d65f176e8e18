"""A client for `shortlist serve`: plan, create, measure and watch runs on a server.

::

    from shortlist.client import Client

    with Client("http://127.0.0.1:8765") as client:
        run = client.begin(problem, name="prompts")
        result = shortlist.drive(run.session(), measure)

It needs httpx.
"""

from shortlist.checks import install_command
from shortlist.errors import InvalidProblem

try:
    import httpx as httpx
except ImportError:
    raise InvalidProblem(
        f"the client needs httpx, which is not installed. Use: {install_command('client')}"
    ) from None

from shortlist.client.client import Client
from shortlist.client.remote_run import RemoteRun
from shortlist.client.remote_session import RemoteSession

__all__ = ["Client", "RemoteRun", "RemoteSession"]
