"""A run on a server: all requests about it."""

import json
import math
import uuid
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.client.questions import result_from
from shortlist.client.refusals import error_of
from shortlist.client.transport import Connection, Trouble
from shortlist.errors import Contradiction
from shortlist.escaping import on_one_line
from shortlist.problem import Problem
from shortlist.result import Result
from shortlist.run_urls import path_of
from shortlist.session.answers import Answers
from shortlist.session.session import DAY
from shortlist.session.settings import plain
from shortlist.session.sheet_format import ticket_text
from shortlist.session.worker_names import OVER_HTTP, own_name
from shortlist.store.events import Scored
from shortlist.tickets import Ticket, Tickets

if TYPE_CHECKING:
    from shortlist.client.remote_session import RemoteSession


_SILENCE = 45.0  # seconds; an idle server sends a comment every fifteen


class Said(NamedTuple):
    """One server-sent event: its number, its kind and its text."""

    number: str
    kind: str
    text: str


def news(connection: Connection, path: str) -> Iterator[dict[str, Any]]:
    """Yield the status of a run, now and after every change, until it has ended.

    If the connection breaks, it is reopened; nothing is yielded twice.
    """
    last, tries = None, connection.tries()
    while True:
        try:
            with connection.stream(path, httpx.Timeout(30.0, read=_SILENCE)) as response:
                for said in parsed(response.iter_lines()):
                    tries = connection.tries()
                    data = json.loads(said.text)
                    if said.kind == "trouble":
                        raise error_of(data["kind"], data["message"])
                    if said.kind == "run" and said.number != last:
                        last = said.number
                        yield data
                    if data.get("is_done"):
                        return
            raise httpx.RemoteProtocolError("it closed the connection")
        except (httpx.TransportError, Trouble) as trouble:
            tries.failed(trouble)


def parsed(lines: Iterable[str]) -> Iterator[Said]:
    """Yield the server-sent events in a stream of lines; the last one only if it is complete."""
    fields: dict[str, list[str]] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                number, kind = (fields.get(name, [""])[-1] for name in ("id", "event"))
                yield Said(number, kind, "\n".join(fields["data"]))
            fields = {}
        elif not line.startswith(":"):  # a comment
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))


_MOST_TICKETS = 2000  # in one request
_MOST_FAILURES = 2000
_MOST_LETTERS_OF_SCORES = 1000  # characters of the reason why a pull failed


def parts_of(code: str, given: Answers) -> Iterator[dict[str, Any]]:
    """Yield the answers to tickets in batches, each with its scored failures and repeated tickets."""
    repeated = {ticket_text(code, given.tickets.round, arm) for arm in given.again}
    failures = defaultdict(list)
    for one in given.scored:
        failures[one.ticket.arm].append(failure(code, one))
    answers: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for answer, arm in zip(_answers(code, given), given.tickets.arms.tolist(), strict=True):
        if answers and (len(answers) == _MOST_TICKETS or len(failed) + len(failures[arm]) > _MOST_FAILURES):
            yield _part(answers, failed, repeated)
            answers, failed = [], []
        answers.append(answer)
        failed += failures[arm]
    if answers:
        yield _part(answers, failed, repeated)


def _part(answers: list[dict[str, Any]], failed: list[dict[str, Any]], repeated: set[str]) -> dict[str, Any]:
    again = [answer["ticket"] for answer in answers if answer["ticket"] in repeated]
    return {"answers": answers, "scored": failed} | ({"again": again} if again else {})


def _answers(code: str, given: Answers) -> Iterator[dict[str, Any]]:
    tickets, is_known = given.tickets, given.problem.knows_variances  # then nobody asks for sample variances
    if given.scores is not None:
        for arm, scores in zip(tickets.arms.tolist(), given.scores, strict=True):
            yield {"ticket": ticket_text(code, tickets.round, arm), "rewards": scores.tolist()}
        return
    columns = (tickets.arms, tickets.counts, given.means, given.variances)
    for arm, count, mean, variance in zip(*(column.tolist() for column in columns), strict=True):
        spread = {} if is_known or math.isnan(variance) else {"variance": variance}
        yield {"ticket": ticket_text(code, tickets.round, arm), "count": count, "mean": mean, **spread}


def failure(code: str, one: Scored) -> dict[str, Any]:
    """Return scored pulls as a request payload."""
    return {
        "ticket": ticket_text(code, one.ticket.round, one.ticket.arm),
        "first_pull": one.ticket.first_pull,
        "pulls": one.ticket.count,
        "score": one.score,
        "reason": one.reason[:_MOST_LETTERS_OF_SCORES],
    }


_MOST_LETTERS = 10_000  # of a reason


class RemoteRun:
    """A run on a server, as `Client.begin` and `Client.run` return it.

    Attributes
    ----------
    name, problem, strategy, seed
        Its name, question, strategy and seed.
    code
        The prefix of this run's tickets, which distinguishes them from those of other runs.
    entropy
        What all random numbers of the run derive from; see `Problem.entropy`.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        problem: Problem,
        strategy: str,
        seed: int,
        code: str,
        entropy: int,
    ) -> None:
        self._connection = connection
        self.name, self.problem, self.strategy, self.seed, self.code = name, problem, strategy, seed, code
        self.entropy = entropy

    def __repr__(self) -> str:
        return f"RemoteRun({self.url!r}, {self.problem!r}, {self.strategy!r}, seed={self.seed})"

    @property
    def url(self) -> str:
        """The address of its page."""
        return self._connection.url + path_of(self.name)

    def session(self) -> "RemoteSession":
        """Return a session for `shortlist.drive`, to measure for this run."""
        from shortlist.client.remote_session import RemoteSession  # noqa: PLC0415  # it needs this module

        return RemoteSession(self)

    def items_of(self, ticket: Ticket) -> list[Any]:
        """Return the items of a ticket, as far as a server knows them: their ids; of blocks the seeds."""
        items = self.problem.items
        return [] if items is None else items.values_at(self.entropy, ticket.first_pull, ticket.count)

    # --- asking and telling ---------------------------------------------------------------------------

    def ask(self, limit: int | None = None, *, worker: str | None = None, lease: float = DAY) -> Tickets:
        """Return tickets, leased to a worker; see `Session.ask`.

        There may be none while others hold them; `status` distinguishes that from the end of the run.
        """
        wish = {"worker": worker or _this_process(), "lease": lease, "limit": limit}
        data = self._post("ask", wish)
        rows, first_pulls = data["tickets"], _whole(data["first_pulls"])
        arms, counts = (_whole([row[key] for row in rows]) for key in ("arm", "pulls"))
        return Tickets(self.problem, data["round"], arms, counts, first_pulls)

    def claim(self, tickets: Tickets, worker: str, lease: float) -> BoolArray:
        """Lease available tickets, or parts of them, to a worker; return which it holds."""
        wish = {"worker": worker, "lease": lease, **_columns(tickets)}
        data = self._post("ask", wish)
        own = {*zip((row["arm"] for row in data["tickets"]), data["first_pulls"], strict=True)}
        pairs = zip(tickets.arms.tolist(), tickets.first_pulls.tolist(), strict=True)
        return np.array([pair in own for pair in pairs], dtype=bool)

    def answer(self, answers: Answers, *, released: IntArray | None = None) -> dict[str, Any]:
        """Send the answers to parts of tickets; see `Session.answer`. Returns the progress of the run."""
        told = {
            **_columns(answers.tickets),
            "means": answers.means.tolist(),
            "variances": [None if np.isnan(one) else one for one in answers.variances.tolist()],
            "scored": [failure(self.code, one) for one in answers.scored],
            "scores": None if answers.scores is None else [one.tolist() for one in answers.scores],
            "again": [*answers.again],
            "released": [] if released is None else released.tolist(),
        }
        data: dict[str, Any] = self._post("answer", {"worker": answers.worker or _this_process(), **told})
        return data

    def tell(
        self,
        tickets: Ticket | Sequence[Ticket],
        rewards: Any = None,
        *,
        means: float | Sequence[float] | FloatArray | None = None,
        worker: str = "",
        scored: Sequence[Scored] = (),
        again: Sequence[int] = (),
    ) -> dict[str, Any]:
        """Send the answers to one ticket or to several; see `Session.tell`.

        Many answers are sent in batches, each all or nothing. Returns the numbers of answers that were
        `taken`, `known` or `conflicting`, the `round` of the run, and whether it `is_done`.
        """
        answers = Answers.of(self.problem, tickets, rewards, means, scored=scored, again=again)
        who, came = worker or _this_process(), {"taken": 0, "known": 0, "conflicting": 0}
        for part in parts_of(self.code, answers):
            data = self._post("tell", {"worker": who, **part})
            self._warn(data["conflicts"])
            came = data | {key: came[key] + data[key] for key in ("taken", "known", "conflicting")}
        return came

    def renew(self, worker: str | None = None, lease: float = DAY, **how: Any) -> None:
        """Extend the leases of a worker."""
        self._post("renew", {"worker": worker or _this_process(), "lease": lease}, **how)

    def release(
        self, worker: str | None = None, *, by: str = "", begun: Tickets | None = None, **how: Any
    ) -> None:
        """Release tickets that a worker holds and will not answer now; see `Session.release`."""
        wish: dict[str, Any] = {"worker": worker or _this_process()} | ({"by": by} if by else {})
        if begun is not None:
            wish |= {"round": begun.round, "arms": begun.arms.tolist()}
        self._post("release", wish, **how)

    def arrange(self, settings: dict[str, Any]) -> None:
        """Record the measurement settings; raise ChangedRun if they differ from earlier ones."""
        self._post("arrange", {"settings": plain(settings)})

    def suspend(
        self,
        reason: str,
        worker: str | None = None,
        *,
        until: float | None = None,
        if_idle: bool = False,
    ) -> None:
        """Record why the driver stopped early; or why it waits, and until when; see `Session.suspend`."""
        wish: dict[str, Any] = {"reason": reason[:_MOST_LETTERS], "worker": worker or _this_process()}
        wish |= {} if until is None else {"until": until}
        self._post("suspend", wish | ({"if_idle": True} if if_idle else {}))

    def stop(self, why: str = "", *, by: str | None = None) -> None:
        """Ask all drivers of the run to stop; see `Session.stop`."""
        self._post("stop", {"why": why} | ({"by": by} if by else {}))

    def withdraw(self, ticket: str, why: str, *, by: str | None = None) -> None:
        """Take the answer to a ticket back, before its round is decided; see `Session.withdraw`."""
        self._post("withdraw", {"ticket": ticket, "why": why} | ({"by": by} if by else {}))

    def feed(
        self, rows: Sequence[dict[str, Any]], *, block: str = "", worker: str | None = None
    ) -> dict[str, Any]:
        """Add results that were measured elsewhere; see `Session.feed`.

        A row has an ``arm``, by name or number, the number of ``pulls``, their ``mean`` or the number of
        ``successes``, a ``label`` and, if not all rows are of the same ``block``, that. Returns what is
        certified, as plain data.
        """
        label = f"feed-{uuid.uuid4()}"  # so that nothing counts twice if the connection breaks
        labelled = [{"label": label} | plain(row) for row in rows]
        wish = {"rows": labelled, "block": block, "worker": worker or _this_process()}
        found: dict[str, Any] = self._post("feed", wish)
        return found

    # --- reading --------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Return the status of the run: all that its page shows, as plain data."""
        data: dict[str, Any] = self._connection.get(path_of(self.name) + ".json")
        return data

    def round(self, worker: str | None = None, known: int | None = None) -> dict[str, Any]:
        """Return the current round: its tickets, unless they are known, and which a worker may measure."""
        given = {"worker": worker, "known": known}
        params = {key: value for key, value in given.items() if value is not None}
        data: dict[str, Any] = self._connection.get(path_of(self.name, "round.json"), params=params)
        return data

    def result(self) -> Result:
        """Return the result so far, as a local `Session` would."""
        return result_from(self.problem, self._connection.get(path_of(self.name, "result.json")))

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the status of the run, now and after every change, until it has ended."""
        return news(self._connection, path_of(self.name, "events"))

    def export(self) -> str:
        """Return all answers as CSV, which `shortlist tell` accepts."""
        return self._connection.text(path_of(self.name, "export.csv"))

    def report(self) -> str:
        """Return the report on the run as HTML."""
        return self._connection.text(path_of(self.name, "report.html"))

    def _post(self, what: str, wish: dict[str, Any], **how: Any) -> Any:
        return self._connection.post(path_of(self.name, what), wish, **how)

    def _warn(self, conflicts: list[dict[str, Any]]) -> None:
        for one in conflicts:
            arm = int(one["ticket"].rpartition("-a")[2])
            warnings.warn(
                f"{on_one_line(self.problem.name(arm))} (ticket {one['ticket']}) already has the mean "
                f"{one['kept']:g}, and the new answer is {one['refused']:g}; the first answer is kept.",
                Contradiction,
                stacklevel=3,
            )


def _columns(tickets: Tickets) -> dict[str, Any]:
    columns = {"arms": tickets.arms, "first_pulls": tickets.first_pulls, "pulls": tickets.counts}
    return {"round": tickets.round, **{name: column.tolist() for name, column in columns.items()}}


def _this_process() -> str:
    return own_name(prefix=OVER_HTTP)


def _whole(numbers: list[int]) -> IntArray:
    return np.array(numbers, dtype=np.int64)
