"""What is counted while a log is followed, so that nobody has to read it again to show it."""

from collections import deque
from collections.abc import Sequence

from shortlist.report.origin import Origin
from shortlist.report.workload import Work, count_answers, shares
from shortlist.run.follower import Follower
from shortlist.store import Record, Told

_MOST_RECENT = 40  # events that are kept to be shown


class Tally:
    """Who did how much of a run, and what happened last; counts from when it is made for a log."""

    def __init__(self, log: Follower) -> None:
        self._log = log
        self._answers: dict[str, list[int]] = {}  # by worker: tickets and pulls
        self.recent: deque[Record] = deque(maxlen=_MOST_RECENT)
        log.on_records = self._count

    def _count(self, records: Sequence[Record]) -> None:
        if records[0].number == 1:  # the log is read from its start, perhaps again
            self._answers.clear()
            self.recent.clear()
        self.recent.extend(records)
        for record in records:
            if isinstance(record.event, Told):
                told = record.event
                done = self._answers.setdefault(told.worker, [0, 0])
                count_answers(done, self._log.history.find(told.round), told.arms)

    @property
    def workers(self) -> tuple[Work, ...]:
        """Who made how many of the pulls that count, the busiest first."""
        return shares(self._log.history, self._answers)

    @property
    def origin(self) -> Origin:
        """Where the run comes from."""
        log, began = self._log, self._log.history.began
        return Origin(
            *(log.run, began.code, began.asked_for, began.version, log.history.settings),
            *(log.began_at or 0.0, log.changed_at or 0.0, log.ended_at, log.n_events),
        )
