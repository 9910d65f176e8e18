"""Changes of a run while it goes on: a smaller epsilon, a smaller round, an answer that is withdrawn.

Each function returns the event that makes the change; a larger epsilon needs none. Results that were fed are
corrected in `feeding.py`. How the question of a request differs from that of a stored run is in
`question_changes.py`.
"""

import numpy as np

from shortlist.certificates.guarantee import at_least
from shortlist.errors import NotAsked
from shortlist.session.state import RunState
from shortlist.store import Event, Limited, Narrowed, Withdrawn

NO_NEW_RUN = "no new run is needed"
_MOST_NAMED = 10  # arms


def narrowing(history: RunState, epsilon: float) -> list[Event]:
    """Return the event with which a run goes on with a smaller epsilon; none if it cannot, or has it."""
    if history.rules.anytime is None or epsilon >= history.problem.epsilon:
        return []
    return checked_by_trial(history, [Narrowed(epsilon)])


def words_on_larger(history: RunState, name: str, epsilon: float) -> str:
    """Return what a run certifies for a larger epsilon, for which it needs no change; empty if it may."""
    own, found = history.problem.epsilon, history.certified
    if found.guarantee is None and (history.is_final or history.rules.anytime is None):
        return ""
    arms = found.selected
    if found.epsilon <= epsilon:
        names = ", ".join([*arms[:_MOST_NAMED], *(["..."] if len(arms) > _MOST_NAMED else [])])
        now = f"An epsilon of {at_least(epsilon)} is certified already, for {names}: {found.sentence}"
    else:
        now = (
            f"An epsilon of {epsilon:g} is not certified yet: {found.sentence} Resume the run with epsilon = "
            f"{own:g}, and stop it when {epsilon:g} is certified."
        )
    return (
        f"run {name!r} exists with another epsilon: it was {own:g}, is {epsilon:g}. What is certified also "
        f"holds for a larger epsilon, so {NO_NEW_RUN}. {now} Nothing was changed."
    )


def limiting(history: RunState, budget: float) -> list[Event]:
    """Return the event with which a smaller round takes the place of one that a budget does not pay for.

    None if that is not possible, somebody may have measured a part of it, or scores were measured ahead.
    """
    anytime, round = history.rules.anytime, history.round
    is_begun = round.is_given_out or history.n_partial > 0 or history.n_ahead > 0
    if anytime is None or anytime.within is None or history.is_final or is_begun:
        return []
    left = budget - history.cost_made
    return [Limited(left)] if anytime.within(history.state, left) is not history.state else []


def withdrawal(history: RunState, round: int, arm: int, why: str, by: str) -> list[Event]:
    """Return the event that takes the answer to a ticket back.

    Raises
    ------
    NotAsked
        If there is no such answer, or its round was decided already.
    """
    asked = history.find(round)
    place = asked.places(np.array([arm]))
    name = history.problem.name(arm)
    if round != history.round.number:
        raise NotAsked(
            f"round {round} was decided with the answer for {name}, so it cannot be withdrawn. To "
            "correct it, begin another run with the same file and strategy. Then export this run, "
            "correct the answer in the exported file, and tell that file to the new run. `shortlist docs "
            "by-hand` lists the steps."
        )
    if not asked.is_told[place].all():
        raise NotAsked(f"the ticket of {name} in round {round} has no answer that could be withdrawn.")
    return [Withdrawn(round, arm, float(asked.means[place][0]), why, by)]


def checked_by_trial(history: RunState, events: list[Event]) -> list[Event]:
    """Return events; raise InvalidProblem if a run could not go on after them."""
    history.copy().take(events)
    return events
