"""The request models. Types are strict: text and booleans are not converted to numbers.

Values that the library validates are only described here, for the OpenAPI document; the library checks them.
"""

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem
from shortlist.files.problem_file import question_of
from shortlist.items import MOST_ITEMS
from shortlist.problem import Problem
from shortlist.rewards import KINDS, NOISES
from shortlist.session.session import DAY

MOST_LETTERS = 200  # in the name of a run or a worker
_MOST_ARMS = 1_000_000
MOST = 2**53  # maximum number of pulls, and of everything that is counted

_NUMBER = {"type": "number"}
_IDS = {"type": "array", "items": {"type": "string"}, "maxItems": MOST_ITEMS}
_NUMBERS = {"type": "array", "items": _NUMBER, "maxItems": _MOST_ARMS}
_PAIR = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
_BOUNDS = {"anyOf": [_PAIR, {"type": "array", "items": _PAIR, "maxItems": _MOST_ARMS}]}


def _as(schema: dict[str, Any], words: str = "") -> WithJsonSchema:
    """Return the schema of a value that the library validates."""
    return WithJsonSchema(schema | ({"description": words} if words else {}))


def checked_name(text: str) -> str:
    """Return a name, if it is printable."""
    if not text.strip() or not text.isprintable():
        raise InvalidProblem(f"the name {text!r} cannot be used; use printable characters.")
    return text


Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=MOST_LETTERS), AfterValidator(checked_name)]
Seed: TypeAlias = Annotated[
    int, BeforeValidator(lambda value: whole_number(value, "seed", 0)), Field(ge=0, le=2**63 - 1)
]


Numbers: TypeAlias = Annotated[list[Annotated[int, Field(ge=0, le=MOST)]], Field(max_length=_MOST_ARMS)]


class Strict(BaseModel):
    """Base of the request models: strict types, and no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Asked(Strict):
    """A question, as in the section [problem] of a problem file, but with the arms included."""

    m: Annotated[Any, _as({"type": "integer", "minimum": 1}, "Number of arms to select.")]
    epsilon: Annotated[
        Any, _as(_NUMBER | {"minimum": 0}, "How far below the m-th best arm a selected arm may be.")
    ]
    delta: Annotated[
        Any,
        _as(_NUMBER | {"exclusiveMinimum": 0, "exclusiveMaximum": 1}, "The accepted failure probability."),
    ]
    variances: Annotated[Any, _as(_NUMBERS, "One variance proxy per arm.")] = None
    costs: Annotated[Any, _as(_NUMBERS, "The cost of a pull of each arm; 1 unless given.")] = None
    scales: Annotated[Any, _as(_NUMBERS, "In place of `variances`: one standard deviation per arm.")] = None
    bounds: Annotated[
        Any, _as(_BOUNDS, "Two numbers between which all rewards lie, or two numbers for each arm.")
    ] = None
    rewards: Annotated[
        Any, _as({"enum": ["bernoulli", "bounded", *KINDS]}, "In place of `noise`: the kind of rewards.")
    ] = None
    at_least: Annotated[Any, _as(_NUMBER)] = None
    at_most: Annotated[Any, _as(_NUMBER)] = None
    n: Annotated[Any, _as({"type": "integer", "minimum": 1, "maximum": _MOST_ARMS}, "Number of arms.")] = None
    names: Annotated[Any, _as({"type": "array", "items": {"type": "string"}, "maxItems": _MOST_ARMS})] = None
    noise: Annotated[Any, _as({"enum": [*NOISES]})] = None
    pilot: Annotated[
        Any, _as({"type": "integer", "minimum": 2}, "For unknown variances: pulls per arm in the pilot.")
    ] = None
    guarantee: Annotated[Any, _as({"enum": ["pac", "indifference"]})] = None
    goal: Annotated[Any, _as({"enum": ["maximise", "minimise"]})] = None
    step: Annotated[
        Any,
        _as(
            _NUMBER,
            "For rewards that lie within bounds: every reward is the lower bound plus a multiple of this "
            "number.",
        ),
    ] = None
    blocks: Annotated[Any, _as({"type": "boolean"}, "Whether arms are compared within blocks.")] = None
    lockstep: Annotated[
        Any,
        _as(
            {"type": "boolean"},
            "With blocks: whether the conditions of a block pass, so that it cannot be measured later.",
        ),
    ] = None
    n_items: Annotated[Any, _as({"type": "integer", "minimum": 1}, "Number of items shared by all arms.")] = (
        None
    )
    item_ids: Annotated[Any, _as(_IDS, "The ids of the items; by default their numbers, from 0.")] = None
    item_digest: Annotated[
        Any, _as({"type": "string"}, "A digest of the contents of the items, if known.")
    ] = None
    known: Annotated[Any, _as({"type": "object"}, "By arm: complete rows of scores that exist already.")] = (
        None
    )
    target: Annotated[Any, _as({"enum": ["pool", "population"]})] = None

    def question(self) -> Problem:
        """Return the question; raise InvalidProblem, as the library does, if it is invalid."""
        given = {key: value for key, value in self.model_dump().items() if value is not None}
        if "n" in given and whole_number(given["n"], "n", 1) > _MOST_ARMS:
            raise InvalidProblem(f"`n` is {given['n']}; over HTTP it must be at most {_MOST_ARMS:,}.")
        return question_of(given)


class Begin(Strict):
    """A run to create. It can only be answered by `tell`: the server never executes anything it is sent."""

    name: Name
    question: Asked
    strategy: Annotated[str, Field(max_length=MOST_LETTERS)] = "auto"
    seed: Seed = 0
    budget: (
        Annotated[
            int,
            Field(
                ge=0,
                le=2**63 - 1,
                description="Maximum number of pulls; `auto` chooses a strategy that stays within it.",
            ),
        ]
        | None
    ) = None
    reissue: (
        Annotated[bool, Field(description="Whether a ticket goes to another worker when its lease expires.")]
        | None
    ) = None
    reproducible: Annotated[
        bool, Field(description="Whether measuring a ticket again with its seed gives the same rewards.")
    ] = False


class Ask(Strict):
    """A request for tickets: the worker, the maximum number, and the duration of the lease in seconds.

    With `round` and `arms` only these tickets are leased, as far as they are available. With `first_pulls`
    and `pulls` as well, they are parts of tickets, as drivers measure them, without those already answered.
    """

    worker: Name
    limit: Annotated[int, Field(ge=0, le=MOST)] | None = None
    lease: Annotated[float, Field(gt=0, le=1e10)] = DAY
    round: Annotated[int, Field(ge=0, le=MOST)] | None = None
    arms: Numbers | None = None
    first_pulls: Numbers | None = None
    pulls: Numbers | None = None


_ANSWER = {
    "type": "object",
    "required": ["ticket"],
    "properties": {
        "ticket": {"type": "string"},
        "rewards": _NUMBERS,
        "mean": _NUMBER,
        "variance": _NUMBER,
        "count": {"type": "integer", "minimum": 1},
    },
}


class Failed(Strict):
    """Pulls that failed at every attempt, and the value that each counts as in an answer."""

    ticket: Annotated[str, Field(max_length=MOST_LETTERS)]
    first_pull: Annotated[int, Field(ge=0, le=MOST)]
    pulls: Annotated[int, Field(ge=1, le=MOST)]
    score: float
    reason: Annotated[str, Field(max_length=10_000)]


class Tell(Strict):
    """Answers to tickets: all rewards of each, or their mean; in a pilot with the sample variance.

    If `careful`, answers that are far from all others are refused as probable data-entry errors, and so are
    those that differ from recorded ones which can still be withdrawn. If they show that a recorded answer is
    far from all others, they are refused, unless its ticket is among those `confirmed`.
    """

    worker: Name
    careful: bool = False
    confirmed: Annotated[
        list[Annotated[str, Field(max_length=MOST_LETTERS)]],
        Field(
            max_length=_MOST_ARMS,
            description="Tickets whose recorded answers are right, although they are far from all others.",
        ),
    ] = []
    answers: Annotated[list[Annotated[Any, _as(_ANSWER)]], Field(max_length=_MOST_ARMS)]
    scored: Annotated[list[Failed], Field(max_length=_MOST_ARMS)] = []
    again: Annotated[
        list[Annotated[str, Field(max_length=MOST_LETTERS)]],
        Field(max_length=_MOST_ARMS, description="Tickets whose measurement was tried more than once."),
    ] = []


class Answer(Strict):
    """Answers to parts of tickets of a round, by arm, first pull and number of pulls.

    A ticket is answered when all its parts are. The worker releases the arms `released`.
    """

    worker: Name
    round: Annotated[int, Field(ge=0, le=MOST)]
    arms: Numbers
    first_pulls: Numbers
    pulls: Numbers
    means: Annotated[list[float], Field(max_length=_MOST_ARMS)]
    variances: Annotated[list[Annotated[float, Field(ge=0)] | None], Field(max_length=_MOST_ARMS)]
    scores: (
        Annotated[
            list[Annotated[list[float], Field(max_length=MOST_ITEMS)]],
            Field(max_length=_MOST_ARMS, description="With shared items: the score of each item."),
        ]
        | None
    ) = None
    scored: Annotated[list[Failed], Field(max_length=_MOST_ARMS)] = []
    again: Annotated[Numbers, Field(description="Arms with a call that was tried more than once.")] = []
    released: Numbers = []


class Renew(Strict):
    """The worker whose leases to extend, and for how many seconds."""

    worker: Name
    lease: Annotated[float, Field(gt=0, le=1e10)] = DAY


class Release(Strict):
    """The worker whose tickets to release; `by` names another person who releases them.

    With `round` and `arms` these tickets, which the worker, named in `by`, started and aborted.
    """

    worker: Name
    by: Name | None = None
    round: Annotated[int, Field(ge=0, le=MOST)] | None = None
    arms: Numbers | None = None


_SETTINGS = {
    "type": "object",
    "required": ["pulls_per_call", "together", "on_failure"],
    "properties": {
        "pulls_per_call": {"type": ["integer", "null"], "minimum": 1},
        "together": {"type": "integer", "minimum": 1},
        "on_failure": {"anyOf": [{"const": "suspend"}, _NUMBER]},
        "measure": {"type": "object"},
        "file": {"type": "string"},
    },
}


class Arrange(Strict):
    """The measurement settings of `shortlist.drive`: a run can only be resumed with the same."""

    settings: Annotated[dict[str, Any], _as(_SETTINGS)]


class Suspend(Strict):
    """Why a driver stopped early; or why it waits, and until when (Unix time).

    With `if_idle` it is recorded only if no worker holds tickets.
    """

    reason: Annotated[str, Field(min_length=1, max_length=10_000)]
    worker: Name
    until: Annotated[float, Field(ge=0, le=1e11)] | None = None
    if_idle: bool = False


class StopWish(Strict):
    """Who asks all drivers of a run to stop, and why."""

    by: Name | None = None
    why: Annotated[str, Field(max_length=200)] = ""


class Withdraw(Strict):
    """The ticket whose answer is withdrawn, why, and by whom."""

    ticket: Annotated[str, Field(min_length=1, max_length=100)]
    why: Annotated[str, Field(min_length=1, max_length=200)]
    by: Name | None = None


class FedRowWish(Strict):
    """Results of one arm: its name or number, how many rewards, and their mean or how many were 1."""

    arm: Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=0, le=MOST)]
    pulls: Annotated[int, Field(ge=0, le=MOST)]
    mean: float | None = None
    successes: Annotated[int, Field(ge=0, le=MOST)] | None = None
    label: Annotated[str, Field(max_length=200)] = ""
    block: Annotated[str, Field(max_length=200)] = ""


class Feed(Strict):
    """Results that were measured elsewhere: `rows`, or a `sheet`, the text of a CSV file.

    A row replaces an earlier one of its arm with the same label; `label` is for sheets without labels. Rows
    of a sheet that are far from the earlier ones of their arms, or have the numbers of another label, are
    refused as data-entry errors, unless `insist`; if `careful`, so are all rows like these, and rows that
    would replace earlier ones with other numbers. To correct a sheet, send it with its label; with `insist`
    and another one it counts twice. `block` is for rows without one of their own.
    """

    rows: Annotated[list[FedRowWish], Field(max_length=10_000)] = []
    sheet: Annotated[str, Field(max_length=10_000_000)] = ""
    label: Annotated[str, Field(max_length=200)] = ""
    insist: bool = False
    careful: bool = False
    block: Annotated[str, Field(max_length=200)] = ""
    worker: Name | None = None


class Trouble(BaseModel):
    """An error: a status, a kind for programs, and a message."""

    status: int
    kind: str
    message: str


class Refusal(BaseModel):
    """The format of all error responses."""

    error: Trouble
