"""What runs do, written down through the public names alone: to the last bit, whatever is behind the names.

`python -m tests.transcripts` compares all runs with `recorded.json`; `--write` records them anew.
A difference means that users' runs would differ: explain it in CHANGELOG.md under "Statistical changes".

Rewards are a function of the arm and the number of the pull or the item. So they do not depend on seeds, and
a run reads them in any order and in any portions.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import shortlist as sl
from shortlist.arrays import FloatArray

RECORDED = Path(__file__).with_name("recorded.json")
NOISE = np.random.default_rng(20_26).normal(size=(20, 4096))
NAMES = ["ash", "box", "elm", "fir", "hop", "ivy", "lime", "oak", "pine", "yew"]
_SHOWN = 3  # rounds that are written out; the others are in the digest

Transcript = Callable[[], Any]
TRANSCRIPTS: dict[str, Transcript] = {}


def exact(data: Any) -> Any:
    """Return data for JSON in which every float is written to the last bit."""
    if isinstance(data, dict):
        return {str(key): exact(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [exact(value) for value in data]
    if isinstance(data, np.ndarray | np.generic):
        return exact(data.tolist())
    return data.hex() if isinstance(data, float) else data


def result_of(result: sl.Result) -> Any:
    """Return all that a result says, as JSON."""
    return exact(result.to_dict())


# --- strategies -----------------------------------------------------------------------------------------


def question(n: int = 6, **changes: Any) -> sl.Problem:
    """Return a question about the first arms by name."""
    given: dict[str, Any] = {"m": 1, "epsilon": 0.5, "delta": 0.1, "names": NAMES[:n]}
    return sl.Problem(**(given | changes))


def rewards(problem: sl.Problem, arm: int, first: int, count: int) -> FloatArray:
    """Return rewards of an arm, from the one with this number on."""
    noise = NOISE[arm, np.arange(first, first + count) % NOISE.shape[1]]
    rank = NAMES.index(problem.name(arm))
    if not problem.is_bounded:
        scale = np.sqrt(problem.variances[arm]) if problem.knows_variances else 0.5 + 0.2 * rank
        return np.asarray(0.2 * rank + scale * noise)
    low, high = problem.limits(np.array([arm]))
    share = (noise < 0.3 * rank - 1) if problem.is_binary else np.clip(0.1 * rank + 0.2 * noise + 0.2, 0, 1)
    return np.asarray(low + (high - low) * share)


def scores(problem: sl.Problem, arm: int, items: list[Any]) -> list[float]:
    """Return scores of an arm on items, given by their numbers, or in blocks, given by their seeds."""
    rank = NAMES.index(problem.name(arm))
    own, shared = (NOISE[row, np.array(items) % NOISE.shape[1]] for row in (rank, 19))
    if not problem.is_bounded:
        return [float(one) for one in 0.2 * rank + 0.3 * own + shared]
    share = np.clip(0.06 * rank + 0.3 + 0.1 * own + 0.1 * shared, 0, 1)
    return [float(one) for one in (share > 0.5 if problem.is_binary else share)]


def play(problem: sl.Problem, strategy: str, seed: int = 5) -> Any:
    """Return every round of a run: what was asked, what was told, and what is certified then."""
    session = sl.Session(problem, strategy, seed=seed)
    rounds = []
    while tickets := session.ask():
        asked = [[ticket.name, ticket.count, ticket.first_pull] for ticket in tickets]
        if problem.items is None:
            given = [rewards(problem, one.arm, one.first_pull, one.count) for one in tickets]
            items = None
        else:
            items = [session.items_of(ticket) for ticket in tickets]
            given = [np.array(scores(problem, one.arm, own)) for one, own in zip(tickets, items, strict=True)]
        session.tell(tickets, [one.tolist() for one in given])
        certified = session.certified
        rounds.append(
            {
                "asked": asked,
                "items": items,
                "told": [float(one.mean()) for one in given],
                "epsilon": certified.epsilon,
                "selected": certified.selected,
                "statuses": certified.statuses,
            }
        )
    every = exact(rounds)
    digest = hashlib.sha256(json.dumps(every).encode()).hexdigest()
    return {
        "rounds": len(every),
        "digest": digest,
        "first": every[:_SHOWN],
        "worst case": session.worst_case_pulls,
        "result": result_of(session.result),
    }


KNOWN: dict[str, sl.Problem] = {
    "equal variances": question(variances=[1.0] * 6),
    "unequal variances": question(
        8, m=3, epsilon=0.6, variances=[1, 4, 0.5, 2, 1, 3, 0.25, 1], goal="minimise"
    ),
    "gaussian": question(5, epsilon=0.8, rewards=sl.Gaussian([1.0, 2.0, 1.0, 0.5, 1.0])),
}
INDIFFERENCE = {
    name: problem.changed(guarantee="indifference")
    for name, problem in KNOWN.items()
    if name != "unequal variances"
}
BOUNDED: dict[str, sl.Problem] = {
    "coins": question(epsilon=0.2, rewards=sl.Bernoulli()),
    "graded": question(m=2, epsilon=0.1, rewards=sl.Bounded(-1, 3, step=0.5)).changed(
        rewards=sl.Bounded(-1, 3)
    ),
    "costs and own bounds": question(
        4, epsilon=0.3, rewards=sl.Bounded(0, [1, 2, 1, 3]), costs=[1.0, 0.1, 2.5, 1.0]
    ),
}
UNKNOWN: dict[str, sl.Problem] = {
    "few": question(rewards=sl.Gaussian()),
    "some": question(10, m=3, rewards=sl.Gaussian(), goal="minimise"),
    "costs": question(5, m=2, rewards=sl.Gaussian(), costs=[3.0, 0.1, 1.0, 0.3, 1.0]),
}
ITEMS: dict[str, sl.Problem] = {
    "coins": question(10, epsilon=0.05, rewards=sl.Bernoulli(), items=300),
    "graded, three": question(10, m=3, epsilon=0.0, rewards=sl.Bounded(), items=200),
    "population": question(epsilon=0.1, rewards=sl.Bounded(), items=400, target="population"),
    "a known row": question(
        8, epsilon=0.02, rewards=sl.Bounded(), items=150, costs=[1, 2, 1, 1, 3, 1, 1, 1.5]
    ),
}
ITEMS["a known row"] = ITEMS["a known row"].changed(
    known={"oak": scores(ITEMS["a known row"], 7, [*range(150)])}
)
BLOCKS: dict[str, sl.Problem] = {
    "gaussian": question(rewards=sl.Gaussian(), epsilon=0.1, items=sl.Blocks()),
    "lockstep": question(rewards=sl.Gaussian(), m=2, epsilon=0.1, items=sl.Blocks(lockstep=True)),
    "bounded": question(rewards=sl.Bounded(), epsilon=0.05, items=sl.Blocks()),
}
PLAYS: dict[str, tuple[tuple[str, ...], dict[str, sl.Problem]]] = {
    "known": (
        (
            *("wnelim", "medelim", "medelim-max", "vmedelim", "adapted-medelim", "adapted-medelim-published"),
            *("lucb", "ugape", "single-stage", "gaussian-single-stage", "race", "level-race", "short-race"),
        ),
        KNOWN,
    ),
    "indifference": (("bechhofer", "kn", "biz"), INDIFFERENCE),
    "bounded": (("race", "wnelim", "short-race", "level-race"), BOUNDED),
    "unknown": (("t-cut-race", "paired-race", "rinott", "dudewicz-dalal"), UNKNOWN),
    "unknown, indifference": (
        ("kim-nelson", "rinott"),
        {name: one.changed(guarantee="indifference") for name, one in UNKNOWN.items()},
    ),
    "items": (("shared-items",), ITEMS),
    "blocks": (("paired-race", "shared-items"), BLOCKS),
}
"""Strategies and their questions; a strategy that refuses a question is recorded with its reason."""


def _add_plays() -> None:
    for kind, (names, problems) in PLAYS.items():
        for name in names:
            for title, problem in problems.items():

                def played(problem: sl.Problem = problem, name: str = name) -> Any:
                    try:
                        return play(problem, name)
                    except sl.InvalidProblem as refusal:
                        return {"refused": str(refusal)}

                TRANSCRIPTS[f"{kind}: {name}: {title}"] = played


_add_plays()


def compare(names: list[str] | None = None) -> dict[str, tuple[Any, Any]]:
    """Return what differs from what is recorded: by name, what was and what is."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    found = {}
    for name in TRANSCRIPTS if names is None else names:
        now = json.loads(json.dumps(TRANSCRIPTS[name]()))
        if recorded.get(name) != now:
            found[name] = recorded.get(name), now
    return found
