"""The sentences of a report: the verdict first, then the evidence."""

from itertools import chain, islice

from shortlist.certificates import Certificate, Guarantee, Scope
from shortlist.certificates.certificate import IN, OPEN, OUT
from shortlist.certificates.guarantee import at_least
from shortlist.planning import row_of
from shortlist.report.model import Report
from shortlist.report.text_format import counted, large, n_shown, percent, plain_name
from shortlist.result import Result
from shortlist.strategies import strategy_for

_WORTH_SAYING = 1.2
MOST_NAMED = 5  # arms of a kind that are named

LABELS = {
    "certified": "Certified",
    "screened": "Screened, not selected",
    "unproved": "Not proved",
    "suspended": "Suspended",
    "stopped": "Stopped early",
    "open": "Not finished",
}
"""The label of each state."""


def headline(report: Report) -> str:
    """Return the outcome in one phrase; names of the arms may follow after a colon."""
    result = report.result
    n, k = result.problem.n, len(result.indices)
    pulls = counted(result.n_pulls, "score" if result.problem.has_pool else "pull")
    of = f"{k:,} of {counted(n, 'arm')}"
    if report.state == "certified" and k == n:
        return f"All {counted(n, 'arm')} selected: no measurement was needed"
    if report.is_partly_certified:
        within = f"to within {at_least(result.certified_epsilon)}"
        if result.certified_epsilon > result.problem.epsilon:
            within += f", not yet {result.problem.epsilon:g}"
        return f"{of} certified {within}"
    return {
        "certified": f"{of} selected",
        "screened": f"{of} kept: a screen, not yet a selection",
        "unproved": f"{of} selected, but without proof",
        "suspended": f"{pulls} made, and nothing is certified yet",
        "stopped": f"{pulls} made, and nothing is certified",
        "open": f"{pulls} made, and nothing is certified yet",
    }[report.state]


def kept_word(report: Report) -> str:
    """Return the word for arms above the cut: selected or, after a screen, kept."""
    return "kept" if report.state == "screened" else "selected"


def names_arms(report: Report) -> bool:
    """Return whether the names of the selected arms follow the headline."""
    is_known = report.state in {"certified", "unproved"} or report.is_partly_certified
    return is_known and 0 < len(report.result.indices) < report.result.problem.n


def certificate(report: Report) -> str:
    """Return a sentence that says what is certified; if nothing is, why, and what will be."""
    result, promise = report.result, report.promise
    if result.guarantee is not None:
        less = "" if result.is_answer else " This is weaker than the guarantee requested."
        return " ".join(filter(None, (f"{result.guarantee.sentence}{less}", closer(result))))
    if report.is_partly_certified and result.certificate is not None:
        return f"{result.certificate.sentence} {status_words(result.certificate)}"
    if result.certificate is not None and result.certificate.is_void:
        return result.certificate.why_nothing
    if report.is_finished or promise is None:
        return "This selection has no guarantee: no proof covers this strategy. Use another one."
    if strategy_for(result.strategy, result.problem).anytime is not None:
        return f"Nothing is certified yet. At the end the guarantee will be: {promise.sentence}"
    return (
        f"Nothing is certified yet. {result.strategy} certifies a result only if it ends by its own "
        "rule, and not if you stop it when the results look good. At the end the guarantee will be: "
        f"{promise.sentence}"
    )


def status_words(certificate: Certificate) -> str:
    """Return which arms are in, open and out, as a sentence that names a few of each."""
    problem, statuses = certificate.problem, certificate.statuses
    best = dict.fromkeys(certificate.indices.tolist())
    parts = []
    for status, word in ((IN, "in (certified)"), (OPEN, "open (undecided)"), (OUT, "out (can be dropped)")):
        others = (arm for arm, one in enumerate(statuses) if one == status and arm not in best)
        own = chain((arm for arm in best if statuses[arm] == status), others)
        n_named = n_shown(statuses.count(status), MOST_NAMED)
        names = ", ".join(plain_name(problem.name(arm)) for arm in islice(own, n_named)) or "none"
        n_more = statuses.count(status) - n_named
        parts.append(f"{word}: {names}" + (f", and {n_more:,} more" if n_more > 0 else ""))
    return f"For epsilon {at_least(problem.epsilon)}: {'; '.join(parts)}."


def blocks_words(n_blocks: int) -> str:
    """Return on how many blocks a certificate within blocks is based, as a sentence."""
    return f"This was seen over {counted(n_blocks, 'block')}; later blocks may differ."


def basis(report: Report) -> str:
    """Return the proof and the assumptions of the certificate; empty if there is none."""
    promise = _current_promise(report)
    return "" if promise is None else f"Proof: {promise.source}, provided that {promise.assumption}."


def assumption(report: Report) -> str:
    """Return the assumption of the certificate; empty if there is none."""
    promise = _current_promise(report)
    return "" if promise is None else f"This assumes that {promise.assumption}."


def _current_promise(report: Report) -> Guarantee | None:
    """Return what is guaranteed so far or, if nothing is, at the end."""
    certified = report.result.certificate
    if report.is_partly_certified and certified is not None:
        return certified.guarantee
    return report.promise


def standing(report: Report) -> str:
    """Return the progress of an unfinished run; empty for others, or if unknown."""
    rounds = report.rounds
    if report.is_finished or rounds is None or not rounds.n_open:
        return ""
    if report.result.n_fed == report.result.n_pulls > 0:
        return ""  # its tickets are only where the next results are best sought
    problem, n = report.result.problem, int(rounds.arms[-1])
    n_known = 0 if problem.known is None else len(problem.known.arms)
    n_new = int((report.result.arms.pulls == 0).sum()) - n_known
    is_going_on = report.state == "open" and not report.suspended
    said = f"Round {rounds.numbers[-1]:,} is {'in progress' if is_going_on else 'not complete'}: "
    said += f"{rounds.n_open:,} of its {counted(n, 'ticket')} "
    said += "has no answer yet" if rounds.n_open == 1 else "have no answer yet"
    if rounds.n_partial:
        what = counted(rounds.n_partial, "score" if problem.has_pool else "pull")
        of, are = "it" if rounds.n_open == 1 else "them", "is" if rounds.n_partial == 1 else "are"
        beside = "" if problem.items is not None else ", and not counted above"
        said += f"; {what} of {of} {are} recorded{beside}"
    if n_new:
        said += f"; {counted(n_new, 'arm')} {'has' if n_new == 1 else 'have'} not been pulled at all"
    return f"{said}."


def effort(report: Report) -> str:
    """Return the cost of the run, and its maximum."""
    result, cap = report.result, report.cap
    most = ""
    if not (result.problem.has_pool or cap is None or cap <= result.n_pulls):
        could = "It could have taken" if report.is_finished else "The strategy takes"
        end = "" if report.is_finished else " before it ends"
        most = f"{could} up to {large(cap)}{end}."
    return " ".join(filter(None, (result.effort, most, spared(result, is_finished=report.is_finished))))


def saved_words(result: Result, *, is_finished: bool) -> str:
    """Return how many scores on shared items are saved, as a phrase; empty if none is."""
    if not result.n_saved:
        return ""
    share = percent(result.n_saved / result.problem.n_cells)
    saved = f"{counted(result.n_saved, 'score')} saved ({share} of the table)"
    return saved if is_finished else f"{saved} so far: those of arms that are not open"


def spared(result: Result, *, is_finished: bool = True) -> str:
    """Return what the strategy spared, as a sentence; empty if unknown, or nothing.

    With shared items that is a part of the table; otherwise what equal pulls of all arms would have taken,
    which depends on stated variances: there is no such figure for rewards within bounds.
    """
    problem = result.problem
    if saved := saved_words(result, is_finished=is_finished):
        return f"{saved[:1].upper()}{saved[1:]}."
    if not result.is_answer or problem.items is not None or not problem.knows_variances or problem.is_bounded:
        return ""
    equally = row_of("uniform", problem)
    if problem.costs is not None or not equally.is_certified or not result.n_pulls:
        return ""
    pulls = equally.worst_case_pulls or 0
    if (times := pulls / result.n_pulls) < _WORTH_SAYING:
        return ""
    said = f"{times:,.0f}" if times >= 10 else f"{times:.1f}"
    return f"Equal pulls of all arms would have taken {large(pulls)}: {said} times as many."


def closer(result: Result) -> str:
    """Return what is certified beyond what was asked for, if results were fed; otherwise empty."""
    if not (result.n_fed and result.is_answer and result.certified_epsilon < result.problem.epsilon):
        return ""
    promise = None if result.certificate is None else result.certificate.guarantee
    if result.certified_epsilon == 0 and promise is not None and promise.scope is Scope.TOP_M:
        mean = "larger" if result.problem.goal == "maximise" else "smaller"
        than = "" if result.problem.m == 1 else " than a selected one"
        return f"The result is better than asked: no other arm has a {mean} true mean{than}."
    found, asked = result.certified_epsilon, result.problem.epsilon
    return f"The result is better than asked: it holds with epsilon {at_least(found)} (asked: {asked:g})."


def healthy_words(report: Report) -> str:
    """Return what was looked for, if there are no warnings."""
    said, problem = (
        "No warnings: there are no conflicts between answers, and no scored failures",
        report.result.problem,
    )
    if report.rounds is None or not problem.knows_variances:
        return f"{said}."
    expected = "those of independent rewards do" if problem.is_bounded else "the stated variances imply"
    return f"{said}. As far as this can be tested, means vary as {expected}."


def optimality(report: Report) -> str:
    """Return how close the run was to the lower bound; empty if that does not apply."""
    result = report.result
    if result.is_answer:
        return result.optimality
    if report.is_finished or not result.lower_bound:
        return ""
    return f"Lower bound: {result.lower_bound.meaning}."
