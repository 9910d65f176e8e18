"""The client of a server, and access to its runs."""

from collections.abc import Callable
from typing import Any

from shortlist.checks import whole_number
from shortlist.client.questions import check_digest, question_dict, question_from
from shortlist.client.remote_run import RemoteRun
from shortlist.client.transport import Connection
from shortlist.problem import Problem, checked
from shortlist.run_urls import path_of
from shortlist.session.question_changes import as_begun

_PLANNING = 300.0  # seconds: a plan for many arms takes long


class Client:
    """A client of a server that `shortlist serve` started.

    Requests are retried if the server does not answer or is overloaded, so the server may be restarted while
    clients are working. If the server refuses a request, the client raises the error that the library would
    raise, with the same message.

    Parameters
    ----------
    url
        Its address, such as ``http://127.0.0.1:8765``.
    token
        The token that the server printed at its start, or from its token file; None if it needs none.
    timeout
        How long to wait for a response, in seconds.
    patience
        For how long to retry if the server does not answer, in seconds. The default is two minutes, and
        three seconds if it has never answered, since the address may be wrong.
    on_wait
        Called with a message when the server has not answered for a second, and requests will be retried.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8765")
    >>> client.url
    'http://127.0.0.1:8765'
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        patience: float | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        self._connection = Connection(url, token, timeout, patience, on_wait)

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._connection.url

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; runs are not affected."""
        self._connection.close()

    def plan(self, problem: Problem) -> dict[str, Any]:
        """Return the plan for a question, as plain data; see `shortlist.plan`."""
        asked = question_dict(checked(problem))
        data: dict[str, Any] = self._connection.post("/plan", asked, timeout=_PLANNING, patience=0.0)
        return data

    def begin(
        self,
        problem: Problem,
        name: str = "main",
        strategy: str = "auto",
        *,
        seed: int = 0,
        budget: int | None = None,
        reissue: bool | None = None,
        reproducible: bool = False,
    ) -> RemoteRun:
        """Return the run of a question, and create it if it does not exist; see `Session`.

        Raises
        ------
        ChangedRun
            If the run of that name has another question, strategy or seed.
        """
        problem = checked(problem)
        wish = {
            "name": name,
            "question": question_dict(problem),
            "strategy": strategy,
            "seed": whole_number(seed, "seed", 0),
            "budget": None if budget is None else whole_number(budget, "budget", 0),
        }
        given = {"reissue": reissue, "reproducible": reproducible or None}
        wish |= {key: value for key, value in given.items() if value is not None}
        begun = self._connection.post("/runs", wish)
        problem = as_begun(problem, begun["problem"]["digest"])
        check_digest(problem, begun["problem"])
        about = (begun["strategy"], begun["seed"], begun["code"], int(begun["entropy"], 16))
        return RemoteRun(self._connection, name, problem, *about)

    def run(self, name: str) -> RemoteRun:
        """Return an existing run; raise NoSuchRun if there is none of that name."""
        problem = question_from(self._connection.get(path_of(name, "question.json")))
        now = self._connection.get(path_of(name, "round.json"))
        about = (now["strategy"], now["seed"], now["code"], int(now["entropy"], 16))
        return RemoteRun(self._connection, name, problem, *about)

    def runs(self) -> list[dict[str, Any]]:
        """Return a summary of each run, the latest first."""
        found: list[dict[str, Any]] = self._connection.get("/index.json")["runs"]
        return found
