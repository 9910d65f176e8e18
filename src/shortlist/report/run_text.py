"""The status of a stored run, for a terminal and as plain data: question, progress, workers."""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shortlist.bounds import lower_bound
from shortlist.escaping import on_one_line
from shortlist.measure import declared
from shortlist.report.result_text import result_text
from shortlist.report.text_format import counted, day, iso, mean_words, moment, n_shown, percent
from shortlist.report.verdict import blocks_words, closer, saved_words, status_words
from shortlist.report.worker_text import holding_words, why_stopped, worker_words
from shortlist.session.lease_rules import holdings
from shortlist.session.log import RunLog
from shortlist.session.run_progress import RunProgress, progress_of_log
from shortlist.session.sheet_format import ticket_text
from shortlist.session.state import RunState
from shortlist.store import Began
from shortlist.strategies import strategy_for

_MOST = 5  # conflicts and scores shown individually
_MOST_NAMED = 10
_MOST_ROWS = 20


def state_of(history: RunState) -> str:
    """Return the state of a run: open, stopped, suspended, certified, screened or unproved."""
    is_suspended = history.suspended is not None
    return _state(history.began, history.is_final, is_suspended, history.is_stopped, history.is_void)


def progress_state(run: RunProgress) -> str:
    """Return the state of a run from its progress, as `state_of` does."""
    return _state(run.began, run.is_final, run.is_suspended, run.is_stopped, run.is_void)


def _state(began: Began, is_final: bool, is_suspended: bool, is_stopped: bool, is_void: bool) -> str:
    if not is_final and is_suspended:
        return "stopped" if is_stopped else "suspended"
    if not is_final:
        return "open"
    promise = strategy_for(began.strategy, began.problem).guarantee(began.problem)
    if promise is None or is_void:
        return "unproved"
    return "certified" if promise.answers(began.problem) else "screened"


def run_dict(log: RunLog) -> dict[str, Any]:
    """Return the main facts of a run as plain data for JSON."""
    return progress_dict(progress_of_log(log))


def progress_dict(run: RunProgress) -> dict[str, Any]:
    """Return the main facts of a run as plain data for JSON."""
    asked = run.began.problem.to_dict()
    return {
        "run": run.run,
        "state": progress_state(run),
        "question": {
            key: asked.get(key)
            for key in ("m", "n", "epsilon", "delta", "noise", "goal", "guarantee", "bounds", "rewards")
        },
        "strategy": run.began.strategy,
        "seed": run.began.seed,
        "code": run.began.code,
        "n_pulls": run.n_pulls,
        "n_partial": run.n_partial,
        "n_rounds": run.n_rounds,
        "began": None if run.began_at is None else iso(run.began_at),
        "changed": None if run.changed_at is None else iso(run.changed_at),
        "ended": None if run.ended_at is None else iso(run.ended_at),
    }


def status_dict(log: RunLog, *, with_result: bool = True) -> dict[str, Any]:
    """Return the status of a run without its answers, as plain data for JSON."""
    history, round = log.history, log.history.round
    held, left = holdings(round, log.now()), history.n_blocks_left
    result = {"result": history.result.to_dict() if history.is_final else None} if with_result else {}
    return (
        run_dict(log)
        | result
        | {
            "question": history.problem.to_dict(),
            "asked_for": history.began.asked_for,
            "version": history.began.version,
            "n_events": log.n_events,
            "worst_case_pulls": history.worst_case_pulls,
            "lower_bound": None if (bound := lower_bound(history.problem)) is None else bound.pulls,
            "round": round.number,
            "n_tickets": len(round.tickets),
            "n_open": round.n_missing,
            "holders": [{"worker": h.worker, "n_tickets": h.n_tickets, "until": iso(h.until)} for h in held],
            "certificate": history.certified.to_dict(),
            "suspended": None if history.suspended is None else why_stopped(history),
            "stopped": None if (asked := history.stopped) is None else {"by": asked.by, "why": asked.why},
            "waiting": None if history.waiting is None else history.waiting.reason,
            "settings": history.settings,
            "reissue": history.began.reissue,
            "n_reissued": history.n_reissued,
            **refused_dict(history),
        }
        | ({"n_blocks": history.n_blocks, "n_blocks_left": left} if history.problem.has_blocks else {})
    )


def refused_dict(history: RunState) -> dict[str, Any]:
    """Return conflicts, withdrawals, scored failures and repeated answers of a run as data for JSON."""
    code = history.began.code
    return {
        "conflicts": [
            {
                "ticket": ticket_text(code, one.round, one.arm),
                "kept": one.kept,
                "refused": one.refused,
                "worker": one.worker,
            }
            for one in history.conflicts
        ],
        "withdrawn": [
            {
                "ticket": ticket_text(code, one.round, one.arm),
                "mean": one.mean,
                "why": one.why,
                "by": one.by,
            }
            for one in history.withdrawn
        ],
        "scored": [
            {
                "ticket": ticket_text(code, one.ticket.round, one.ticket.arm),
                "first_pull": one.ticket.first_pull,
                "pulls": one.ticket.count,
                "score": one.score,
                "reason": one.reason,
            }
            for one in history.scored
        ],
        "repeats": [
            {"ticket": ticket_text(code, one.round, one.arm), "worker": one.worker, "is_same": one.is_same}
            for one in history.repeats
        ],
    }


def status_text(log: RunLog, asked: str) -> RenderableType:
    """Return the status of a run for a terminal; `asked` is its question as text."""
    history = log.history
    parts: list[RenderableType] = [Text(f"{log.run}: {asked}", style="bold"), Text(_origin(log))]
    if history.problem.bounds is not None:
        parts.append(
            Text(f"Rewards were declared to {declared(history.problem)}; all other rewards are refused.")
        )
    if history.is_final:
        if (drift := history.drift).may_harm:
            parts.append(Text(drift.words, style="yellow"))
        ended = "" if log.ended_at is None else f" on {day(log.ended_at)}"
        parts.append(Text(f"Ended{ended}."))
    else:
        is_by_ticket = history.n_made or history.round.is_logged or not history.n_fed
        rounds = _round(history, log.now()) if is_by_ticket else []
        parts += [Text(words) for words in (_pulls(history), *rounds)]
        parts += fed_text(history) if history.n_fed else [_so_far(history)]
    if (why := why_stopped(history)) and not history.is_final:
        word = "Suspended" if state_of(history) == "suspended" else "Stopped"
        parts.append(Text(f"{word}: {why}", style="yellow"))
    if history.waiting is not None and not history.is_final:
        end = moment(history.waiting.until or 0.0)
        parts.append(Text(f"Waiting until {end}: {history.waiting.reason}", style="yellow"))
    parts += [Text(words, style="yellow") for words in _refused(history)]
    if not history.is_final and history.n_reissued:
        parts.append(Text(history.result.reissued, style="yellow"))
    if history.is_final:
        parts += [Text(), result_text(history.result)]
    return Group(*parts)


def _origin(log: RunLog) -> str:
    began = log.history.began
    chosen = f" (chosen by {began.asked_for})" if began.asked_for != began.strategy else ""
    times = f"started on {day(log.began_at or 0.0)}, last change {moment(log.changed_at or 0.0)}"
    return f"{began.strategy}{chosen}, seed {began.seed}; {times}; ticket prefix {began.code}"


def scores_words(history: RunState) -> str:
    """Return how much of the table of scores on shared items is measured, what it cost, and what is saved.

    For blocks, return how many there were, and about how many more are needed.
    """
    if history.problem.has_blocks:
        return _blocks_words(history)
    problem, cells = history.problem, max(history.problem.n_cells, 1)
    said = f"{history.n_pulls:,} of {problem.n_cells:,} scores measured ({percent(history.n_pulls / cells)})"
    said += "" if problem.costs is None else f" at a cost of {history.cost_made:,.6g}"
    saved = saved_words(history.result, is_finished=history.is_final)
    return f"{said}; {saved}" if saved else said


def _blocks_words(history: RunState) -> str:
    said = f"{counted(history.n_pulls, 'pull')} made in {counted(history.n_blocks, 'block')}"
    said += "" if history.problem.costs is None else f" at a cost of {history.cost_made:,.6g}"
    left = history.n_blocks_left
    return said if left is None else f"{said}; about {counted(left, 'more block')} needed"


def _pulls(history: RunState) -> str:
    if history.problem.items is not None:
        return f"{scores_words(history)}."
    cap = history.worst_case_pulls
    said = f"{counted(history.n_made, 'pull')} made"
    if history.n_partial:
        said += f" ({history.n_partial:,} of them in tickets that are not complete)"
    said += f", {history.n_fed:,} fed" if history.n_fed else ""
    if cap is not None:
        said += f", of at most {cap:,}"
    if (bound := lower_bound(history.problem)) is not None:
        said += f"; lower bound {bound.words}"
    return f"{said}."


def _so_far(history: RunState) -> Text:
    """Return what is certified before the end."""
    found = history.certified
    if found.guarantee is None:
        return Text(found.sentence)
    return Text(
        f"Best certified so far: {_some(found.selected)}. {found.sentence} {status_words(found)}",
        style="green",
    )


def fed_text(history: RunState) -> list[RenderableType]:
    """Return what is certified after results were fed: totals, what to drop, where to go on."""
    return [_totals_table(history), *(Text(line) for line in fed_lines(history))]


def fed_lines(history: RunState) -> list[str]:
    """Return what is certified after results were fed: what to drop, where to go on, what is assumed."""
    found, round = history.certified, history.round
    if history.is_late:
        waiting = (
            f"These results do not count yet, because tickets of round {round.number} had already been "
            f"leased. They count when that round is complete: {round.n_missing:,} of "
            f"{counted(len(round.tickets), 'ticket')} are still open. If nobody will measure these "
            "tickets, release them with `shortlist release`."
        )
        return [waiting, found.sentence]
    drift = history.drift
    warned = [drift.words] if drift.may_harm else []
    notes = [*found.notes, *([drift.words] if drift and not warned else [])]
    if found.guarantee is None:
        return [*warned, found.sentence, *_next_words(history), *notes]
    dropped = [history.problem.name(arm) for arm, status in enumerate(found.statuses) if status == "out"]
    said, ended = found.sentence, history.result
    if ended.guarantee is not None:
        said = " ".join(filter(None, (ended.guarantee.sentence, closer(ended))))
    if history.is_by_block:
        said += f" {blocks_words(len({row.block for row in history.fed.values()}))}"
    lines = [*warned, f"Best certified so far: {_some(found.selected)}.", said]
    if dropped:
        later = (
            "" if history.is_final else " A dropped arm may be open again later; it then needs pulls again."
        )
        said = (
            f"Can be dropped (at least one correct selection contains none of them): {_some(dropped)}.{later}"
        )
        lines.append(said)
    return [*lines, *_next_words(history), *notes, f"This assumes that {found.guarantee.assumption}."]


def _totals_table(history: RunState) -> Table:
    """Return the totals of the arms, the best first."""
    problem, arms = history.problem, history.result.arms
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("arm", overflow="fold")
    for heading in compress(("status", "pulls", "successes", "mean"), (True, True, problem.is_binary, True)):
        table.add_column(heading, justify="left" if heading == "status" else "right", no_wrap=True)
    merits = np.nan_to_num(problem.merits(arms.means), nan=-np.inf)
    n_rows = n_shown(problem.n, _MOST_ROWS)
    for arm in np.argsort(-merits, kind="stable")[:n_rows].tolist():
        pulls, mean = int(arms.pulls[arm]), float(arms.means[arm])
        hits = [f"{round(pulls * mean):,}" if pulls else ""] if problem.is_binary else []
        shown = mean_words(mean, problem.epsilon) if pulls else "-"
        table.add_row(Text(on_one_line(problem.name(arm))), arms.statuses[arm], f"{pulls:,}", *hits, shown)
    if problem.n > n_rows:
        table.add_row(Text(f"and {problem.n - n_rows:,} more", style="dim"))
    return table


def _next_words(history: RunState) -> list[str]:
    """Return where the next rewards are best sought."""
    asked = history.round.tickets
    if not len(asked):
        return ["The answer is certified: no more results are needed."]
    shares = asked.counts / asked.counts.sum()
    n_named = n_shown(len(asked), _MOST)
    order = np.argsort(-shares, kind="stable")[:n_named]
    names = [on_one_line(history.problem.name(arm)) for arm in asked.arms[order].tolist()]
    some = ", ".join(
        f"{name} {100 * share:.0f} %" for name, share in zip(names, shares[order].tolist(), strict=True)
    )
    more = f", and {len(asked) - n_named:,} more" if len(asked) > n_named else ""
    pulls = counted(int(asked.counts.sum()), "pull")
    return [f"The next round asks for {pulls}. Divide them as follows: {some}{more}. More rounds may follow."]


def fed_dict(history: RunState) -> dict[str, Any]:
    """Return what is certified after results were fed, as plain data for JSON."""
    asked, found = history.round.tickets, history.certified
    names = [history.problem.name(arm) for arm in range(history.problem.n)]
    return {
        "certificate": found.to_dict(),
        "arms": dict(zip(names, found.statuses, strict=True)),
        "next": {
            names[arm]: count for arm, count in zip(asked.arms.tolist(), asked.counts.tolist(), strict=True)
        },
        "n_fed": history.n_fed,
        "drift": history.drift.words,
        "is_done": history.is_final,
    }


def _some(names: Sequence[str]) -> str:
    shown = [*map(on_one_line, names[: n_shown(len(names), _MOST_NAMED)])]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "")


def _round(history: RunState, now: float) -> list[str]:
    """Return the open tickets of the current round, and who holds them."""
    round, n = history.round, len(history.round.tickets)
    held = holdings(round, now)
    n_held = sum(holding.n_tickets for holding in held)
    pilot = ", the pilot" if round.tickets.is_pilot else ""
    said = f"Round {round.number}{pilot}: {round.n_missing:,} of {counted(n, 'ticket')} open"
    if n_held:
        said += f", {n_held:,} of them leased"
    return [f"{said}.", *(f"  {holding_words(holding)}" for holding in held)]


def _refused(history: RunState) -> list[str]:
    """Return the first few conflicts, scores and repeated answers."""
    code, found = history.began.code, []
    for one in history.conflicts[:_MOST]:
        ticket = ticket_text(code, one.round, one.arm)
        by = worker_words(one.worker)
        found.append(f"Conflict: {ticket} keeps mean {one.kept:g}; {by} sent {one.refused:g} later.")
    if len(history.conflicts) > _MOST:
        found.append(f"and {counted(len(history.conflicts) - _MOST, 'conflict')} more")
    for taken in history.withdrawn[-_MOST:]:
        ticket, name = ticket_text(code, taken.round, taken.arm), on_one_line(history.problem.name(taken.arm))
        found.append(
            f"Withdrawn: the mean {taken.mean:g} of {ticket} ({name}), by {worker_words(taken.by)}"
            f"{', because: ' * bool(taken.why)}{taken.why}"
        )
    if len(history.withdrawn) > _MOST:
        found.append(f"and {counted(len(history.withdrawn) - _MOST, 'earlier withdrawal')}")
    for score in history.scored[:_MOST]:
        ticket = ticket_text(code, score.ticket.round, score.ticket.arm)
        found.append(f"Scored: a pull of {ticket} failed and counts as {score.score:g}: {score.reason}")
    if len(history.scored) > _MOST:
        found.append(f"and {len(history.scored) - _MOST:,} more scored failures")
    if repeats := [one for one in history.repeats if one.is_same]:
        tickets = ", ".join(ticket_text(code, one.round, one.arm) for one in repeats[:_MOST])
        more = f" and {len(repeats) - _MOST:,} more" if len(repeats) > _MOST else ""
        found.append(
            f"Repeated: the log contains the same answer twice for {tickets}{more}; each counts once."
        )
    return found
