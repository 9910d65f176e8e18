"""What answers look like, for those who read the OpenAPI document; each route names its own.

They are plain data that commands print as well, without pydantic, and may say more than is listed here. Tests
check every answer against its shape.
"""

from typing import Annotated, Any, TypeAlias

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

Count: TypeAlias = Annotated[int, Field(ge=0)]
Moment: TypeAlias = Annotated[str, Field(description="A time, as ISO 8601 has it.")]


class Reply(BaseModel):
    """An answer; it may say more than is listed."""

    model_config = ConfigDict(extra="allow")


class Begun(Reply):
    """A run that has begun, or was there already."""

    run: str
    path: Annotated[str, Field(description="Where its page is.")]
    code: Annotated[str, Field(description="The letters with which its tickets begin.")]
    strategy: str
    seed: Count
    n_pulls: Count
    worst_case_pulls: Count | None
    round: Count
    n_tickets: Count
    is_done: bool
    problem: dict[str, Any]


class Ticket(Reply):
    """Pulls of one arm that are to be made."""

    ticket: str
    arm: Count
    name: str
    pulls: Annotated[int, Field(ge=1)]
    seed: Count


class Holder(Reply):
    """Who has how many tickets, until when."""

    worker: str
    n_tickets: Count
    until: Moment


class Given(Reply):
    """The tickets that a worker has; where there are none, for whom it has to wait."""

    run: str
    worker: str
    round: Count
    until: Moment | None
    needs_variances: bool
    tickets: list[Ticket]
    waiting_for: list[Holder]
    is_done: bool


class Refused(Reply):
    """An answer that differs from an earlier one, which stands."""

    ticket: str
    kept: float
    refused: float


class Taken(Reply):
    """What came of answers, in numbers of tickets, and how far the run is now."""

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
    """Something was done to a run."""

    run: str
    is_done: bool


class Kept(Done):
    """Answers to parts of tickets were taken."""

    round: Count
    n_pulls: Count
    n_made: Count


class Glance(Reply):
    """What the list of runs says of one; of a damaged one only the first five."""

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

    runs: list[Glance]


class Status(Glance):
    """How far a run is: all that its page shows."""

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
    """The tickets of the round under way; `free` are places in the lists beside it."""

    run: str
    round: Count
    code: str
    seed: Count
    free: list[Count]
    n_open: Count
    answered: Annotated[
        dict[str, Any] | None,
        Field(description="Parts of open tickets that are answered, for a worker."),
    ]
    n_pulls: Count
    n_made: Annotated[int, Field(ge=0, description="Pulls, with those of parts of open tickets.")]
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
    """What a run has come to."""

    is_done: bool
    n_pulls: Count
    selected: list[str]
    worst_case_pulls: Count | None


class Plan(Reply):
    """What every strategy promises for a question."""

    words: str


class Export(Reply):
    """A run with all its answers."""

    run: str
    code: str
    question: dict[str, Any]
    answers: list[dict[str, Any]]
    result: dict[str, Any]


def returns(model: type[Reply]) -> dict[int | str, dict[str, Any]]:
    """Return how the OpenAPI document describes a route that answers in this shape."""
    return {200: {"model": model}}


def returns_text(kind: str, words: str) -> dict[int | str, dict[str, Any]]:
    """Return how the OpenAPI document describes a route that answers with text."""
    return {200: {"description": words, "content": {kind: {"schema": {"type": "string"}}}}}


class Api(FastAPI):
    """An application whose errors have one form, also where all is well in another: so says its document."""

    def openapi(self) -> dict[str, Any]:
        """Return the document."""
        document = super().openapi()
        for operations in document["paths"].values():
            for operation in operations.values():
                for status, reply in operation["responses"].items():
                    if not status.startswith("2"):
                        (schema,) = reply["content"].values()
                        reply["content"] = {"application/json": schema}
        return document
