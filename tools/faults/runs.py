"""Faults in sessions, in leases and in stores."""

from tools.faults.fault import Fault

FAULTS = (
    Fault(
        "session: a pilot's variances told in the order of arrival",
        "run/history.py",
        "self.spreads[places] = variances",
        "self.spreads[np.sort(places)] = variances",
    ),
    Fault(
        "session: tickets that others hold are given away",
        "run/deciding.py",
        "return ~round.is_told & (round.leases.is_held_by(worker) | ~round.leases.is_held(now, gone))",
        "return ~round.is_told",
    ),
    Fault(
        "session: tickets told already are given away",
        "run/deciding.py",
        "return ~round.is_told & (round.leases.is_held_by(worker) |",
        "return (round.leases.is_held_by(worker) |",
    ),
    Fault(
        "session: a worker does not get its own tickets back",
        "run/deciding.py",
        "np.concatenate([np.flatnonzero(is_own), np.flatnonzero(is_free & ~is_own)])[:limit]",
        "np.flatnonzero(is_free & ~is_own)[:limit]",
    ),
    Fault(
        "session: a second answer replaces the first",
        "run/deciding.py",
        "is_new = np.isnan(known)",
        "is_new = np.isnan(known) | (known != means)",
    ),
    Fault(
        "session: what is known is told again with what is new",
        "run/deciding.py",
        "Told(round.number, arms[is_new], means[is_new], fresh, worker)",
        "Told(round.number, arms, means, variances, worker)",
    ),
    Fault(
        "session: conflicts forgotten beside new answers",
        "run/deciding.py",
        "[*_opening(round), *counted, told, *others]",
        "[*_opening(round), *counted, told]",
    ),
    Fault(
        "session: scores of failures not in the log",
        "run/deciding.py",
        "[*_opening(round), *counted, told, *others]",
        "[*_opening(round), told, *others]",
    ),
    Fault(
        "session: a lease is not renewed when asked for late",
        "run/deciding.py",
        "if is_own[chosen].all() and (round.leases.until(chosen) >= now + lease / 2).all():",
        "if is_own[chosen].all():",
    ),
    Fault(
        "session: goes on with another question",
        "run/session.py",
        "if changes := changes_of_question(self._history.began, problem, strategy, seed):",
        "if changes := []:",
    ),
    Fault(
        "session: goes on with other measurements",
        "run/deciding.py",
        "if changes := changes_of_settings(compared, settings):",
        "if changes := []:",
    ),
    Fault(
        "leases: they never end",
        "run/leases.py",
        "held: BoolArray = self._until > now",
        "held: BoolArray = self._until > -1.0",
    ),
    Fault(
        "leases: a dead driver keeps its tickets",
        "run/leases.py",
        "held &= self._holders != self._numbers[worker]",
        "held &= self._holders != -1",
    ),
    Fault(
        "leases: what others hold is given back",
        "run/leases.py",
        "own = places[holders[places] == self._numbers.get(worker, _NOBODY)]",
        "own = places",
    ),
    Fault(
        "history: what a round asked for is not compared",
        "run/history.py",
        'raise _diverged(f"round {asked.round} asked for other pulls", self.began)',
        "pass",
    ),
    Fault(
        "history: how a run ended is not compared",
        "run/history.py",
        'raise _diverged("the run ended with other arms", self.began)',
        "pass",
    ),
    Fault(
        "history: an answer is counted twice",
        "run/history.py",
        "if places is None or not is_fit or round.is_told[places].any():",
        "if places is None or not is_fit:",
    ),
    Fault(
        "follower: what others appended is not taken in",
        "run/follower.py",
        "            self._take(news)\n            return decide(now)",
        "            return decide(now)",
    ),
    Fault(
        "round: a driver measures what others hold",
        "run/round.py",
        "is_own[wanted] = self.job.session.claim(self.cut.tickets.take(wanted), self.job.worker, LEASE)",
        "is_own[wanted] = True",
    ),
    Fault(
        "company: nothing is given back at the end",
        "run/company.py",
        "            session.release(worker)",
        "            pass",
    ),
    Fault(
        "chain: the body not covered by the checksum",
        "store/chain.py",
        "blake2b(head + body, digest_size=_SIZE)",
        "blake2b(head, digest_size=_SIZE)",
    ),
    Fault(
        "chain: checksums that do not depend on the record before",
        "store/chain.py",
        "head = before + _PLACE",
        "head = START + _PLACE",
    ),
    Fault("chain: gaps not noticed", "store/chain.py", "if found != number:", "if found < number:"),
    Fault(
        "sqlite: writes are not synced",
        "store/sqlite.py",
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = OFF",
    ),
    Fault(
        "sqlite: transactions that begin without a lock",
        "store/sqlite.py",
        'connection.exec_driver_sql("BEGIN IMMEDIATE")',
        'connection.exec_driver_sql("BEGIN")',
    ),
    Fault(
        "store: what came meanwhile is not shown",
        "store/sql.py",
        "news = self._news(connection, run, after) if after < end.number else []",
        "news: list[Record] = []",
    ),
    Fault("postgres: the run is not locked", "store/postgres.py", '_LOCK = " FOR UPDATE"', '_LOCK = ""'),
)
