"""Faults of results fed from elsewhere, of a smaller epsilon, of stopping, and of answers taken back."""

from tools.faults.fault import Fault

FAULTS = (
    Fault(
        "feeding: a row that is sent again counts again",
        "session/feeding.py",
        "    if not is_new.any():\n        return []\n",
        "",
    ),
    Fault(
        "feeding: a corrected row counts beside the old one",
        "session/state.py",
        "                deltas.append((arm, -before.count, -before.count * before.mean))\n",
        "",
    ),
    Fault(
        "feeding: results count before the round that somebody measures is complete",
        "session/state.py",
        "        if not self.round.is_logged:\n            self._change_state(self._with_late(self.state))\n",
        "        self._change_state(self._with_late(self.state))\n",
    ),
    Fault(
        "feeding: results that wait for a round are forgotten",
        "session/state.py",
        "self._with_late(self.rules.tell(self.state, Moments(merits, round.spreads)))",
        "self.rules.tell(self.state, Moments(merits, round.spreads))",
    ),
    Fault(
        "feeding: small means are taken for good ones where they are not",
        "session/state.py",
        "self._late.append((arms, counts, self.problem.merits(sums)))",
        "self._late.append((arms, counts, sums))",
    ),
    Fault(
        "feeding: seeds depend on what was fed",
        "session/state.py",
        "number, first_pulls = len(self.rounds), self._pulls[batch.arms]",
        "number, first_pulls = len(self.rounds), (self._pulls + self._fed_pulls)[batch.arms]",
    ),
    Fault(
        "feeding: its assumptions are not named",
        "session/state.py",
        "return [MEASURED_ELSEWHERE] * bool(self.n_fed)",
        "return [MEASURED_ELSEWHERE] * 0",
    ),
    Fault(
        "feeding: tickets of a round that was replaced are accepted",
        "session/answers.py",
        "    if round.is_replaced:\n",
        "    if False:\n",
    ),
    Fault(
        "feeding: every strategy accepts results",
        "session/feeding.py",
        "    if history.rules.anytime is None:\n",
        "    if False:\n",
    ),
    Fault(
        "feeding: two rows of an arm may have the same label",
        "session/feeding.py",
        "            if label and (label, arm) in seen:\n",
        "            if False:\n",
    ),
    Fault(
        "race: arms with less than a first batch are credited with one",
        "strategies/race.py",
        "    if (state.pulls < first).any():",
        "    if (state.pulls == 0).any():",
    ),
    Fault(
        "race: a smaller epsilon changes the tilts",
        "strategies/race.py",
        "course(before.course.problem.changed(epsilon=epsilon), before.course.scale)",
        "course(before.course.problem.changed(epsilon=epsilon))",
    ),
    Fault(
        "race: the tables of a smaller epsilon are for other tilts",
        "strategies/race_course.py",
        "problem.delta, (problem.epsilon / scale) ** 2)",
        "problem.delta)",
    ),
    Fault(
        "withdrawal: an answer of a decided round is taken back",
        "session/feeding.py",
        "    if round != history.round.number:\n",
        "    if False:\n",
    ),
    Fault(
        "withdrawal: its pulls still count",
        "session/state.py",
        "        self.n_pulls -= int(round.tickets.counts[place].sum())\n",
        "",
    ),
    Fault(
        "withdrawal: parts of the ticket stay",
        "session/call_plan.py",
        "        self.means[numbers] = self.variances[numbers] = np.nan\n        self.n_pulls[places]",
        "        self.n_pulls[places]",
    ),
    Fault(
        "withdrawal: the assumption is not named",
        "session/state.py",
        "[NOT_BY_VALUE] * bool(self.withdrawn)",
        "[NOT_BY_VALUE] * 0",
    ),
    Fault(
        "slips: nothing is far",
        "session/slips.py",
        "_FAR = 6.0",
        "_FAR = 6e9",
    ),
    Fault(
        "slips: everything is far",
        "session/slips.py",
        "_FAR = 6.0",
        "_FAR = 0.01",
    ),
    Fault(
        "stopping: drivers that start later stop, too",
        "execution/drive.py",
        "interrupt.is_ordered = lambda: session.n_stops > n_stops",
        "interrupt.is_ordered = lambda: session.n_stops > 0",
    ),
    Fault(
        "stopping: drivers do not look at orders",
        "execution/drive.py",
        "interrupt.is_ordered = lambda: session.n_stops > n_stops",
        "interrupt.is_ordered = lambda: False",
    ),
    Fault(
        "stopping: a deadline is ignored",
        "execution/interrupts.py",
        "time.monotonic() >= self.due",
        "False",
    ),
    Fault(
        "totals: more successes than rewards",
        "totals.py",
        "    if (hits > counts).any():\n",
        "    if False:\n",
    ),
    Fault(
        "totals: 0/1 rewards may have any mean",
        "totals.py",
        "        if problem.is_binary:\n            _check_coins(sizes, values)\n        elif",
        "        if",
    ),
    Fault(
        "totals: bounds are not checked",
        "totals.py",
        "        check_summaries(problem, found.arms, "
        "Summaries(found.counts, found.means, found.variances))\n",
        "",
    ),
    Fault(
        "totals: the assumptions are not named",
        "totals.py",
        "problem.merits(values)).provided(MEASURED_ELSEWHERE)",
        "problem.merits(values))",
    ),
)
