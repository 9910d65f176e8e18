"""A server, and the runs that it keeps."""

from collections.abc import Callable
from typing import Any

from shortlist.checks import whole_number
from shortlist.client.questions import check_digest, question_dict, question_from
from shortlist.client.remote_run import RemoteRun
from shortlist.client.transport import Connection
from shortlist.problem import Problem, checked
from shortlist.run_urls import path_of

_PLANNING = 300.0  # seconds: a plan for many arms takes its time


class Client:
    """A server that `shortlist serve` started.

    A server that does not answer, or has too much to do, is asked again; so it may be restarted while others
    work with it. What it refuses is raised here as the error that the library would raise, in the same words.

    Parameters
    ----------
    url
        Its address, such as ``http://127.0.0.1:8765``.
    token
        What it printed when it started, or what its file of tokens has; None where it needs none.
    timeout
        How many seconds to wait for an answer.
    patience
        For how many seconds to ask again a server that does not answer. By default two minutes, and three
        seconds where it never has: then the address may be wrong.
    on_wait
        Called with a sentence when the server has not answered for a second, and is going to be asked again.

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
        """Where the server is."""
        return self._connection.url

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; runs are not affected."""
        self._connection.close()

    def plan(self, problem: Problem) -> dict[str, Any]:
        """Return, as plain data, what every strategy promises for a question; see `shortlist.plan`."""
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
        """Return a run of a question, which is begun if it is not there yet; see `Session`.

        Raises
        ------
        ChangedRun
            If the run of that name began with another question, strategy or seed.
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
        check_digest(problem, begun["problem"])
        about = (begun["strategy"], begun["seed"], begun["code"])
        return RemoteRun(self._connection, name, problem, *about)

    def run(self, name: str) -> RemoteRun:
        """Return a run that the server has; raise NoSuchRun if there is none of that name."""
        problem = question_from(self._connection.get(path_of(name, "question.json")))
        now = self._connection.get(path_of(name, "round.json"))
        return RemoteRun(self._connection, name, problem, now["strategy"], now["seed"], now["code"])

    def runs(self) -> list[dict[str, Any]]:
        """Return what there is to say of each run, the latest first."""
        found: list[dict[str, Any]] = self._connection.get("/index.json")["runs"]
        return found
