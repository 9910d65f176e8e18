"""Measurement settings, and bounds that are declared later: what they may be, and when they may change."""

import json
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import whole_number
from shortlist.errors import ChangedRun, FinalFailure, InvalidProblem
from shortlist.measure import Summaries, check_summaries, declared, is_reward
from shortlist.problem import MOST_PULLS, Problem
from shortlist.session.question_changes import changes_of_settings
from shortlist.session.state import REPRODUCIBLE, RunState
from shortlist.store import Arranged, Bounded, Event
from shortlist.tickets import Tickets

SCORE, NO_SCORE = "on_failure", "suspend"
"""The settings key of the score of failures, and its value if a failure suspends the run."""
_MEASURE = "measure"
_SIZE, _TOGETHER, _TURNS = "pulls_per_call", "together", "turns"
_MOST_LETTERS, _LETTERS_PER_ARM = (
    100_000,
    30,
)  # characters of settings; a table of rewards has a row count for each arm
FOLLOWS = "follows"
"""The settings key that says which earlier settings the new ones may replace."""
NOTED = "file"
"""The settings key with the original name of the problem file; for information only."""


def checked_settings(settings: dict[str, Any], n_arms: int) -> dict[str, Any]:
    """Return validated measurement settings, as they will be when read back from a log.

    `drive` sets the number of pulls per call, the number of calls per block, and the score of failures.
    Other keys describe the measurement, and the user chooses them. `reproducible` may be given alone.

    Raises
    ------
    InvalidProblem
        If one of these is missing or invalid, or the settings are too long to be stored.
    """
    found = plain(settings)
    size, most = len(json.dumps(found)), _MOST_LETTERS + _LETTERS_PER_ARM * n_arms
    if size > most:
        raise InvalidProblem(f"the settings have {size:,} characters; the maximum is {most:,}.")
    if found.keys() == {REPRODUCIBLE}:
        return found
    missing = [key for key in (_SIZE, _TOGETHER, SCORE) if key not in found]
    if missing:
        raise InvalidProblem(f"the settings lack `{missing[0]}`; see `drive` for its meaning.")
    together, pulls, score = found[_TOGETHER], found[_SIZE], found[SCORE]
    whole_number(together, _TOGETHER, 1, MOST_PULLS)
    whole_number(found.get(_TURNS, 1), _TURNS, 1, MOST_PULLS)
    if pulls is not None:
        whole_number(pulls, _SIZE, 1, MOST_PULLS)
    if score != NO_SCORE and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise InvalidProblem(
            f"`{SCORE}` is {score!r:.60}; it must be '{NO_SCORE}', or a number to count as the reward of "
            f"each pull that failed."
        )
    if score != NO_SCORE and pulls != 1:
        raise InvalidProblem(
            f"`{_SIZE}` is {pulls}, but with a number as `{SCORE}` it must be 1: pulls that fail together "
            f"are not independent."
        )
    for key, kind, words in ((_MEASURE, dict, "a table"), (NOTED, str, "text"), (FOLLOWS, dict, "a table")):
        if not isinstance(found.get(key, kind()), kind):
            raise InvalidProblem(f"`{key}` of the settings is {found[key]!r:.60}; it must be {words}.")
    if not found.get(FOLLOWS, {}).keys() <= found.keys() - {_SIZE, _TOGETHER, _TURNS}:
        raise InvalidProblem(
            f"`{FOLLOWS}` must be a table whose keys are settings, and not `{_SIZE}`, `{_TOGETHER}` or "
            f"`{_TURNS}`: the split of tickets stays the same."
        )
    return found


def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as they will be when read back from a log."""
    try:
        found: dict[str, Any] = json.loads(json.dumps(settings, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidProblem(
            f"`about` must be plain data for JSON: numbers, strings, lists and dicts of these. {error}."
        ) from None
    if not isinstance(found.get(REPRODUCIBLE, True), bool):
        raise InvalidProblem(f"`{REPRODUCIBLE}` is {found[REPRODUCIBLE]!r}; it must be true or false.")
    return {key: value for key, value in found.items() if key != REPRODUCIBLE or value}


def arrangement(run: str, history: RunState, settings: dict[str, Any]) -> list[Event]:
    """Return the event with the new measurement settings; raise ChangedRun if they differ from the old ones.

    The score of failures, and with it the size of calls, may change until the first reward is in the log: no
    proof covers a score that was chosen after seeing rewards. Settings that extend earlier ones replace them:
    see `FOLLOWS`. The problem file may have another name. `reproducible` may be declared at any time, also
    alone, and then stays declared.
    """
    before, given = history.settings, {key: value for key, value in settings.items() if key != FOLLOWS}
    is_declaration = given.keys() == {REPRODUCIBLE}
    if not is_declaration:
        _check_score(run, history, given.get(SCORE, NO_SCORE))
    if before is None or is_declaration or before.keys() == {REPRODUCIBLE}:
        now = (before or {}) | given
        return [Arranged(now)] if now != before else []
    may_change = history.n_made == 0 and before.get(SCORE) != given.get(SCORE)
    compared = before | {part: given.get(part) for part in (SCORE, _SIZE) if may_change}
    for later in (NOTED, REPRODUCIBLE):
        compared |= {later: given[later]} if later in given and later not in before else {}
        given |= {later: compared[later]} if later in compared else {}
    compared |= {key: given[key] for key, old in settings.get(FOLLOWS, {}).items() if before.get(key) == old}
    if changes := changes_of_settings(compared, given):
        raise ChangedRun(
            f"run {run!r} was measured with other settings: {'; '.join(changes)}. Resume with the same "
            f"settings, or start another run. Nothing was changed."
        )
    return [Arranged(compared)] if compared != before else []


def _check_score(run: str, history: RunState, score: Any) -> None:
    """Refuse a score of failures that violates the declared bounds, or comes after the first reward."""
    if score != NO_SCORE and not is_reward(history.problem, score):
        raise InvalidProblem(
            f"`on_failure` is {score:g}, but rewards were declared to {declared(history.problem)}. A failed "
            f"pull counts as a reward: choose a score that satisfies this."
        )
    before = (history.settings or {}).get(SCORE, NO_SCORE)
    if history.n_made and score != before:
        raise ChangedRun(
            f"`on_failure` of run {run!r} is {before}, and the run has rewards already. The score of "
            f"failures is fixed before the first reward, so it cannot become {score}. Resume with the "
            "same score, or start another run. Nothing was changed."
        )


def declaration(run: str, history: RunState, problem: Problem) -> list[Event]:
    """Return the event that declares bounds of a run; raise ChangedRun if its answers violate them."""
    if problem.bounds is None or history.problem.bounds is not None:
        return []
    try:
        for round in history.rounds:
            told = np.flatnonzero(round.is_told)
            _check_means(problem, round.tickets.take(told), round.means[told])
        _check_means(problem, history.answered, history.answered_means)
        for (_, arm), row in history.fed.items():
            one = Summaries(np.array([row.count]), np.array([row.mean]), np.array([np.nan]))
            check_summaries(problem, np.array([arm]), one)
    except FinalFailure as error:
        raise ChangedRun(
            f"run {run!r} has an answer that was recorded before the bounds, and violates them: "
            f"{error} Nothing was changed."
        ) from None
    return [Bounded(problem.bounds, problem.declared_rewards)]


def _check_means(problem: Problem, tickets: Tickets, means: FloatArray) -> None:
    """Raise FinalFailure if the bounds of a problem rule out some means."""
    check_summaries(problem, tickets.arms, Summaries(tickets.counts, means, np.full(len(tickets), np.nan)))
