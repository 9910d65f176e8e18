"""What requests look like. Types are strict: no text and no boolean stands for a number.

Where the library has a word to say about a value, it says it: such a field is described here for those who
read the OpenAPI document, and checked by the library.
"""

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem
from shortlist.files.problem_file import question_of
from shortlist.problem import Problem
from shortlist.session.session import DAY

MOST_LETTERS = 200  # of the name of a run or a worker
_MOST_ARMS = 1_000_000
MOST = 2**53  # of pulls, and so of whatever is counted

_NUMBER = {"type": "number"}
_NUMBERS = {"type": "array", "items": _NUMBER, "maxItems": _MOST_ARMS}


def _as(schema: dict[str, Any], words: str = "") -> WithJsonSchema:
    """Return how a value is described that is left to the library to check."""
    return WithJsonSchema(schema | ({"description": words} if words else {}))


def checked_name(text: str) -> str:
    """Return a name, if it is one that can be printed."""
    if not text.strip() or not text.isprintable():
        raise InvalidProblem(f"the name {text!r} cannot be used; give one of letters that can be printed.")
    return text


Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=MOST_LETTERS), AfterValidator(checked_name)]
Seed: TypeAlias = Annotated[
    int, BeforeValidator(lambda value: whole_number(value, "seed", 0)), Field(ge=0, le=2**63 - 1)
]


Numbers: TypeAlias = Annotated[list[Annotated[int, Field(ge=0, le=MOST)]], Field(max_length=_MOST_ARMS)]


class Strict(BaseModel):
    """Takes what it knows, in the right type, and nothing else."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Asked(Strict):
    """A question, as the section [problem] of a problem file has it, with the arms themselves."""

    m: Annotated[Any, _as({"type": "integer", "minimum": 1}, "How many arms to select.")]
    epsilon: Annotated[
        Any, _as(_NUMBER | {"exclusiveMinimum": 0}, "How far below the m-th best is good enough.")
    ]
    delta: Annotated[
        Any,
        _as(_NUMBER | {"exclusiveMinimum": 0, "exclusiveMaximum": 1}, "The accepted probability of failure."),
    ]
    variances: Annotated[Any, _as(_NUMBERS, "One variance proxy per arm.")] = None
    scales: Annotated[Any, _as(_NUMBERS, "Or: one standard deviation per arm.")] = None
    bounds: Annotated[
        Any, _as(_NUMBERS | {"minItems": 2, "maxItems": 2}, "Or: between what all rewards lie.")
    ] = None
    rewards: Annotated[Any, _as({"enum": ["bernoulli"]}, "Or: rewards are 0 or 1.")] = None
    at_least: Annotated[Any, _as(_NUMBER)] = None
    at_most: Annotated[Any, _as(_NUMBER)] = None
    n: Annotated[Any, _as({"type": "integer", "minimum": 1, "maximum": _MOST_ARMS}, "How many arms.")] = None
    names: Annotated[Any, _as({"type": "array", "items": {"type": "string"}, "maxItems": _MOST_ARMS})] = None
    noise: Annotated[Any, _as({"enum": ["sub-gaussian", "gaussian", "gaussian-unknown"]})] = None
    pilot: Annotated[
        Any, _as({"type": "integer", "minimum": 2}, "Of unknown variances: pulls per arm to start with.")
    ] = None
    guarantee: Annotated[Any, _as({"enum": ["pac", "indifference"]})] = None
    goal: Annotated[Any, _as({"enum": ["maximise", "minimise"]})] = None

    def question(self) -> Problem:
        """Return the question; raise InvalidProblem, as the library does, if it makes no sense."""
        given = {key: value for key, value in self.model_dump().items() if value is not None}
        if "n" in given and whole_number(given["n"], "n", 1) > _MOST_ARMS:
            raise InvalidProblem(f"`n` is {given['n']}; over HTTP it must be {_MOST_ARMS:,} at most.")
        return question_of(given)


class Begin(Strict):
    """A run to begin. It can only be answered by `tell`: nothing that is sent is ever executed."""

    name: Name
    question: Asked
    strategy: Annotated[str, Field(max_length=MOST_LETTERS)] = "auto"
    seed: Seed = 0
    budget: (
        Annotated[int, Field(ge=0, le=2**63 - 1, description="Of pulls; `auto` chooses by it.")] | None
    ) = None
    reissue: (
        Annotated[bool, Field(description="Whether tickets go to others when leases run out.")] | None
    ) = None
    reproducible: Annotated[
        bool, Field(description="Whether a ticket measured again with its seed gives the same rewards.")
    ] = False


class Ask(Strict):
    """Whose tickets, how many at most, and for how many seconds they are reserved.

    With `round` and `arms` these tickets are reserved and no others, as far as they are free. With
    `first_pulls` and `pulls`, too, they are parts of tickets, as drivers measure them, and those that have
    been answered are left out.
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
    """Pulls that failed every time they were tried, and what each counts as in an answer."""

    ticket: Annotated[str, Field(max_length=MOST_LETTERS)]
    first_pull: Annotated[int, Field(ge=0, le=MOST)]
    pulls: Annotated[int, Field(ge=1, le=MOST)]
    score: float
    reason: Annotated[str, Field(max_length=10_000)]


class Tell(Strict):
    """Answers to tickets: all rewards of each, or their mean; in a pilot with the sample variance."""

    worker: Name
    answers: Annotated[list[Annotated[Any, _as(_ANSWER)]], Field(max_length=_MOST_ARMS)]
    scored: Annotated[list[Failed], Field(max_length=_MOST_ARMS)] = []
    again: Annotated[
        list[Annotated[str, Field(max_length=MOST_LETTERS)]],
        Field(max_length=_MOST_ARMS, description="Tickets whose measurement was tried more than once."),
    ] = []


class Answer(Strict):
    """Answers to parts of tickets of a round, by arm, first pull and number of pulls.

    A ticket is told when all its parts are. The worker gives back the arms `released`.
    """

    worker: Name
    round: Annotated[int, Field(ge=0, le=MOST)]
    arms: Numbers
    first_pulls: Numbers
    pulls: Numbers
    means: Annotated[list[float], Field(max_length=_MOST_ARMS)]
    variances: Annotated[list[Annotated[float, Field(ge=0)] | None], Field(max_length=_MOST_ARMS)]
    scored: Annotated[list[Failed], Field(max_length=_MOST_ARMS)] = []
    again: Annotated[Numbers, Field(description="Arms of which a call was tried more than once.")] = []
    released: Numbers = []


class Renew(Strict):
    """Whose tickets to reserve for how many more seconds."""

    worker: Name
    lease: Annotated[float, Field(gt=0, le=1e10)] = DAY


class Release(Strict):
    """Whose tickets to give back; with `by`, who takes them away from a worker that may be measuring them.

    With `round` and `arms` these tickets, which the worker, named in `by`, began and broke off.
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
    """How rewards are measured, as `shortlist.drive` says it: a run can only go on with the same."""

    settings: Annotated[dict[str, Any], _as(_SETTINGS)]


class Suspend(Strict):
    """Why measuring stopped short; or why it waits, and until when, in seconds since 1970."""

    reason: Annotated[str, Field(min_length=1, max_length=10_000)]
    worker: Name
    until: Annotated[float, Field(ge=0, le=1e11)] | None = None


class Trouble(BaseModel):
    """What went wrong: a status, a word for programs, and a sentence for people."""

    status: int
    kind: str
    message: str


class Refusal(BaseModel):
    """The one shape of all errors."""

    error: Trouble
