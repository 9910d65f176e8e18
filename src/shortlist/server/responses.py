"""The response models, for the OpenAPI document; each route names its own.

Responses are plain data, which commands also print, and are not built with pydantic. They may have more
fields than are listed here. Tests check every response against its model.
"""

from typing import Annotated, Any, TypeAlias

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

Count: TypeAlias = Annotated[int, Field(ge=0)]
Entropy: TypeAlias = Annotated[
    str, Field(description="What all random numbers of the run derive from, in hexadecimal.")
]
Moment: TypeAlias = Annotated[str, Field(description="A time in ISO 8601 format.")]


class Reply(BaseModel):
    """A response; it may have further fields."""

    model_config = ConfigDict(extra="allow")


class Begun(Reply):
    """A run that was created, or existed already."""

    run: str
    path: Annotated[str, Field(description="The path of its page.")]
    code: Annotated[str, Field(description="The prefix of its tickets.")]
    strategy: str
    seed: Count
    entropy: Entropy
    n_pulls: Count
    worst_case_pulls: Count | None
    round: Count
    n_tickets: Count
    is_done: bool
    problem: dict[str, Any]


class Ticket(Reply):
    """A request for pulls of one arm."""

    ticket: str
    arm: Count
    name: str
    pulls: Annotated[int, Field(ge=1)]
    seed: Count
    items: Annotated[list[str] | None, Field(description="The ids of items, or the numbers of blocks.")] = (
        None
    )
    seeds: Annotated[
        list[Count] | None, Field(description="With blocks: the seed of each, the same for all arms.")
    ] = None


class Holder(Reply):
    """A worker, its number of tickets, and when its lease expires."""

    worker: str
    n_tickets: Count
    until: Moment


class Given(Reply):
    """The tickets of a worker; if there are none, the workers to wait for."""

    run: str
    worker: str
    round: Count
    until: Moment | None
    needs_variances: bool
    tickets: list[Ticket]
    waiting_for: list[Holder]
    is_done: bool


class Refused(Reply):
    """An answer that differs from an earlier one, which is kept."""

    ticket: str
    kept: float
    refused: float


class Taken(Reply):
    """What happened to the answers, as numbers of tickets, and the progress of the run."""

    run: str
    taken: Count
    known: Count
    conflicting: Count
    left_open: Count
    conflicts: list[Refused]
    round: Count
    n_open: Count
    n_tickets: Count
    is_done: bool


class Done(Reply):
    """A change to a run was made."""

    run: str
    is_done: bool


class FedReply(Done):
    """What was added, what is certified, the status of each arm, and where to go on."""

    rows: dict[str, int]
    certificate: dict[str, Any]
    arms: dict[str, str]
    next: dict[str, int]
    n_fed: Count
    drift: str
    skipped: str


class Kept(Done):
    """Answers to parts of tickets were recorded."""

    round: Count
    n_pulls: Count
    n_made: Count


class RunSummary(Reply):
    """The entry of a run in the list; a damaged run has only the first five fields."""

    run: str
    path: str
    state: str
    label: str
    is_done: bool
    code: str | None = None
    strategy: str | None = None
    n_pulls: Count | None = None
    worst_case_pulls: Count | None = None
    changed: Moment | None = None


class Listed(Reply):
    """Runs, the latest first."""

    runs: list[RunSummary]


class Status(RunSummary):
    """The status of a run: everything that its page shows."""

    problem: dict[str, Any]
    seed: Count
    n_events: Count
    round: Count
    n_tickets: Count
    n_open: Count
    holders: list[Holder]
    headline: str
    n_selected: Count
    selected: list[str]


class Round(Reply):
    """The tickets of the current round; `free` contains positions in the other lists."""

    run: str
    round: Count
    code: str
    seed: Count
    entropy: Entropy
    free: list[Count]
    n_open: Count
    answered: Annotated[
        dict[str, Any] | None,
        Field(description="For a worker: parts of open tickets that are answered already."),
    ]
    n_pulls: Count
    n_made: Annotated[int, Field(ge=0, description="The number of pulls, including parts of open tickets.")]
    is_done: bool
    settings: dict[str, Any] | None
    needs_variances: bool | None = None
    arms: list[Count] | None = None
    pulls: list[Count] | None = None
    first_pulls: list[Count] | None = None


class Question(Reply):
    """A question, whole."""

    m: Annotated[int, Field(ge=1)]
    n: Annotated[int, Field(ge=1)]
    epsilon: Annotated[float, Field(gt=0)]
    delta: Annotated[float, Field(gt=0, lt=1)]
    goal: str
    names: list[str] | None
    words: str


class Outcome(Reply):
    """The result of a run so far."""

    is_done: bool
    n_pulls: Count
    selected: list[str]
    worst_case_pulls: Count | None


class Plan(Reply):
    """The guarantee and worst case of every strategy for a question."""

    words: str


class Export(Reply):
    """A run with all its answers."""

    run: str
    code: str
    question: dict[str, Any]
    answers: list[dict[str, Any]]
    result: dict[str, Any]


def returns(model: type[Reply]) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of a route with this response."""
    return {200: {"model": model}}


def returns_text(kind: str, words: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of a route that responds with text."""
    return {200: {"description": words, "content": {kind: {"schema": {"type": "string"}}}}}


class Api(FastAPI):
    """An application that documents the common error format for all routes."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        document = super().openapi()
        for operations in document["paths"].values():
            for operation in operations.values():
                for status, reply in operation["responses"].items():
                    if not status.startswith("2"):
                        (schema,) = reply["content"].values()
                        reply["content"] = {"application/json": schema}
        return document
