"""What is counted while a log is followed, so that nobody has to read it again to show it."""

import weakref
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from shortlist.report.origin import Origin
from shortlist.report.workload import Credits, Work
from shortlist.run.follower import Follower
from shortlist.server.story import told_words
from shortlist.store import Answered, Record, Told

_MOST_RECENT = 40  # events that are kept to be shown
_A_ROUND = 20  # tickets that take as much memory as a round without any


class Tally:
    """Who did how much of a run, and what happened last; counts from when it is made for a log.

    Attributes
    ----------
    recent
        The last events, in words.
    size
        How much memory the run takes, as a number of tickets.
    """

    def __init__(self, log: Follower) -> None:
        self._log = log
        self._credits = Credits()
        self._n_rounds = 0  # that `size` covers
        self.recent: deque[dict[str, Any]] = deque(maxlen=_MOST_RECENT)
        self.size = 0
        log.on_records = partial(_passed_on, weakref.ref(self))  # not for ever: large runs must be let go of

    def _count(self, records: Sequence[Record]) -> None:
        if records[0].number == 1:  # the log is read from its start, perhaps again
            self._credits = Credits()
            self.recent.clear()
            self._n_rounds = self.size = 0
        history = self._log.history
        self.recent.extend(told_words(record, history) for record in records[-_MOST_RECENT:])
        new = history.rounds[self._n_rounds :]
        self.size += sum(len(round.tickets) + _A_ROUND for round in new)
        self.size += 0 if self._n_rounds else history.problem.n
        self._n_rounds += len(new)
        for record in records:
            if isinstance(event := record.event, Told):
                self._credits.count(event.worker, event.arms, history.find(event.round))
            elif isinstance(event, Answered):
                self._credits.count_part(event, history.find(event.round))

    @property
    def workers(self) -> tuple[Work, ...]:
        """Who made how many of the pulls that count, the busiest first."""
        return self._credits.shares(self._log.history)

    @property
    def origin(self) -> Origin:
        """Where the run comes from."""
        log, began = self._log, self._log.history.began
        return Origin(
            *(log.run, began.code, began.asked_for, began.version, log.history.settings),
            *(log.began_at or 0.0, log.changed_at or 0.0, log.ended_at, log.n_events),
        )


def _passed_on(to: "weakref.ref[Tally]", records: Sequence[Record]) -> None:
    if (tally := to()) is not None:
        tally._count(records)
