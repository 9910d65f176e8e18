"""Answers as they are sent to a server: in parts, none of them too large for one request."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from shortlist.arrays import FloatArray
from shortlist.run.sheets import ticket_text
from shortlist.store.events import Scored
from shortlist.tickets import Tickets

_MOST_TICKETS = 2000  # in one request
_MOST_FAILURES = 2000
_MOST_LETTERS = 1000  # of why a pull failed


def parts_of(
    code: str,
    tickets: Tickets,
    means: FloatArray,
    variances: FloatArray | None,
    scored: Sequence[Scored],
    again: Sequence[int] = (),
) -> Iterator[dict[str, Any]]:
    """Yield the answers to tickets in parts, each with the failures scored and the tickets repeated in it."""
    repeated = {ticket_text(code, tickets.round, arm) for arm in again}
    failures = defaultdict(list)
    for one in scored:
        failures[one.ticket.arm].append(failure(code, one))
    answers: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for answer, arm in zip(_answers(code, tickets, means, variances), tickets.arms.tolist(), strict=True):
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


def _answers(
    code: str, tickets: Tickets, means: FloatArray, variances: FloatArray | None
) -> Iterator[dict[str, Any]]:
    spreads = [math.nan] * len(tickets) if variances is None else variances.tolist()
    rows = zip(tickets.arms.tolist(), tickets.counts.tolist(), means.tolist(), spreads, strict=True)
    for arm, count, mean, variance in rows:
        spread = {} if math.isnan(variance) else {"variance": variance}
        yield {"ticket": ticket_text(code, tickets.round, arm), "count": count, "mean": mean, **spread}


def failure(code: str, one: Scored) -> dict[str, Any]:
    """Return pulls that were scored, as they are sent."""
    return {
        "ticket": ticket_text(code, one.ticket.round, one.ticket.arm),
        "first_pull": one.ticket.first_pull,
        "pulls": one.ticket.count,
        "score": one.score,
        "reason": one.reason[:_MOST_LETTERS],
    }
