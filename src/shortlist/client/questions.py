"""Conversion of questions and results between client and server: bit for bit the same at both ends."""

from dataclasses import replace
from typing import Any

import numpy as np

from shortlist.certificates import Certificate, Guarantee
from shortlist.errors import StoreTrouble
from shortlist.files.items_section import ITEM_KEYS, items_entries
from shortlist.files.problem_file import question_of
from shortlist.problem import Problem
from shortlist.result import Arms, Result, Stop
from shortlist.rewards import BOUNDED
from shortlist.strategies import strategy_for

_BOTH = ("m", "epsilon", "delta", "guarantee", "goal")


def question_dict(problem: Problem) -> dict[str, Any]:
    """Return a question as a request payload, with all its arms."""
    asked = {part: getattr(problem, part) for part in _BOTH}
    asked["names"] = None if problem.names is None else list(problem.names)
    if problem.is_bounded:
        asked |= {"n": problem.n, "noise": problem.noise}
        asked["bounds"] = problem.own_bounds or problem.bounds
    elif problem.knows_variances:
        asked |= {"variances": problem.variances.tolist(), "noise": problem.noise}
        asked |= {"rewards": "bernoulli"} if problem.is_binary else {"bounds": problem.bounds}
    else:
        asked |= {"n": problem.n, "pilot": problem.pilot, "noise": "gaussian-unknown"}
    asked["costs"] = None if problem.costs is None else problem.costs.tolist()
    asked |= items_entries(problem)
    return {key: value for key, value in asked.items() if value is not None}


def question_from(data: dict[str, Any]) -> Problem:
    """Return the question in a response."""
    parts = [*_BOTH, "names", "noise", "costs", *ITEM_KEYS]
    if data["noise"] in BOUNDED:
        parts += ["n", "bounds"]
    else:
        parts += ["variances"] if "variances" in data else ["n", "pilot"]
        parts += ["rewards"] if data.get("rewards") else ["bounds"]
    found = question_of({part: data[part] for part in parts if data.get(part) is not None})
    check_digest(found, data)
    return found


def check_digest(problem: Problem, data: dict[str, Any]) -> None:
    """Raise an error unless client and server have the same question."""
    if data["digest"] != problem.digest:
        raise StoreTrouble(
            "the server reads the question differently: it has another version of Shortlist. "
            "Use the same version on both sides."
        )


def result_from(problem: Problem, data: dict[str, Any]) -> Result:
    """Return the result in a response; its guarantee is computed here, what it assumes is as sent."""
    stop, own = Stop[data["stop"].upper()], strategy_for(data["strategy"], problem).guarantee(problem)
    pulls = [arm["pulls"] for arm in data["arms"]]
    means = [np.nan if arm["mean"] is None else arm["mean"] for arm in data["arms"]]
    statuses = tuple(arm.get("status") or "open" for arm in data["arms"])
    left_out = np.array([arm["pulls"] - arm.get("in_mean", arm["pulls"]) for arm in data["arms"]])
    promise = own if stop is Stop.CERTIFIED else None
    return Result(
        problem=problem,
        strategy=data["strategy"],
        seed=data["seed"],
        indices=np.array(data["indices"], dtype=np.int64),
        stop=stop,
        guarantee=promise and _assuming(promise, data["guarantee"]),
        n_pulls=data["n_pulls"],
        n_rounds=data["n_rounds"],
        arms=Arms(
            np.array(pulls, dtype=np.int64), np.array(means), statuses, left_out if left_out.any() else None
        ),
        n_fed=data.get("n_fed", 0),
        n_scored=data["n_scored"],
        n_reissued=data.get("n_reissued", 0),
        n_ahead=data.get("n_ahead", 0),
        certificate=_certificate(problem, data.get("certificate"), statuses, own),
    )


def _assuming(own: Guarantee, data: dict[str, Any]) -> Guarantee:
    """Return a guarantee with what is assumed as it was sent: the ids, and the words as one clause."""
    return replace(own, assumptions=tuple(data.get("assumptions", ())), words=(data["assumption"],))


def _certificate(
    problem: Problem, data: dict[str, Any] | None, statuses: tuple[str, ...], own: Guarantee | None
) -> Certificate | None:
    """Return the certificate in a response; its guarantee is that of the strategy, for another epsilon."""
    if data is None:
        return None
    indices, epsilon = np.array(data["indices"], dtype=np.int64), data["epsilon"]
    if own is None or not len(indices):
        is_void = data.get("is_void", False)
        return Certificate.of_nothing(problem, data["sentence"], tuple(data["notes"]), is_void=is_void)
    own = _assuming(own, data)
    if epsilon is None:
        return Certificate.at_end(problem, indices, own)
    promise = replace(own, epsilon=epsilon)
    notes = tuple(data["notes"])
    return Certificate(problem, indices, epsilon, np.array(data["epsilons"]), statuses, promise, notes=notes)
