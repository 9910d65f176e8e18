"""What is counted while a log is followed, so that nobody has to read it again to show it."""

from collections import deque
from collections.abc import Sequence

from shortlist.report.origin import Origin
from shortlist.report.workload import Credits, Work
from shortlist.run.follower import Follower
from shortlist.store import Answered, Record, Told

_MOST_RECENT = 40  # events that are kept to be shown


class Tally:
    """Who did how much of a run, and what happened last; counts from when it is made for a log."""

    def __init__(self, log: Follower) -> None:
        self._log = log
        self._credits = Credits()
        self.recent: deque[Record] = deque(maxlen=_MOST_RECENT)
        log.on_records = self._count

    def _count(self, records: Sequence[Record]) -> None:
        if records[0].number == 1:  # the log is read from its start, perhaps again
            self._credits = Credits()
            self.recent.clear()
        self.recent.extend(records)
        for record in records:
            if isinstance(event := record.event, Told):
                self._credits.count(event.worker, event.arms, self._log.history.find(event.round))
            elif isinstance(event, Answered):
                self._credits.count_part(event, self._log.history.find(event.round))

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
