"""The sentences of a report: what came out first, then what supports it."""

from shortlist.report.model import Report
from shortlist.report.text_format import large
from shortlist.report.worker_text import counted

MOST_NAMED = 5  # arms named in the headline

LABELS = {
    "certified": "Certified",
    "screened": "Screened, not selected",
    "unproved": "Not proved",
    "suspended": "Suspended",
    "stopped": "Stopped by its budget",
    "open": "Not finished",
}
"""What each state is called."""


def headline(report: Report) -> str:
    """Return in one phrase what came out; names of the arms may follow after a colon."""
    result = report.result
    n, k, pulls = result.problem.n, len(result.indices), counted(result.n_pulls, "pull")
    of = f"{k:,} of {counted(n, 'arm')}"
    if report.state == "certified" and k == n:
        return f"All {counted(n, 'arm')} selected: nothing had to be measured"
    return {
        "certified": f"{of} selected",
        "screened": f"{of} kept: a screen, not yet a selection",
        "unproved": f"{of} selected, but nothing is proved of them",
        "suspended": f"{pulls} made, and nothing is certified yet",
        "stopped": f"{pulls} made, and nothing is certified",
        "open": f"{pulls} made, and nothing is certified yet",
    }[report.state]


def kept_word(report: Report) -> str:
    """Return what is said of the arms above the cut: selected or, by a screen, kept."""
    return "kept" if report.state == "screened" else "selected"


def names_arms(report: Report) -> bool:
    """Return whether the headline is to be followed by the names of the arms selected."""
    return (
        report.state in {"certified", "unproved"} and 0 < len(report.result.indices) < report.result.problem.n
    )


def certificate(report: Report) -> str:
    """Return what is certified, in a sentence; where nothing is, why, and what will be."""
    result, promise = report.result, report.promise
    if result.guarantee is not None:
        less = "" if result.is_answer else " That is less than was asked for."
        return f"{result.guarantee.sentence}{less}"
    if report.is_finished or promise is None:
        return "Nothing is promised of this selection: no proof covers this strategy. Use another one."
    return (
        f"So far nothing is certified: the guarantee of {result.strategy} holds once it has ended by its own "
        f"rule, and not if it is stopped where the picture looks good. What it will say then: "
        f"{promise.sentence}"
    )


def basis(report: Report) -> str:
    """Return what the certificate rests on: its proof and its assumptions; empty if there is none."""
    if report.promise is None:
        return ""
    return f"Proof: {report.promise.source}. Provided that {report.promise.assumption}."


def assumption(report: Report) -> str:
    """Return under which condition the certificate holds; empty if there is none."""
    return "" if report.promise is None else f"This assumes that {report.promise.assumption}."


def standing(report: Report) -> str:
    """Return how far an unfinished run is; empty for others, and where it is not known."""
    rounds = report.rounds
    if report.is_finished or rounds is None or not rounds.n_open:
        return ""
    n, n_new = int(rounds.arms[-1]), int((report.result.arms.pulls == 0).sum())
    said = f"Round {rounds.n_whole:,} is under way: {rounds.n_open:,} of its {counted(n, 'ticket')} "
    said += "has no answer yet" if rounds.n_open == 1 else "have no answer yet"
    if n_new:
        said += f"; {counted(n_new, 'arm')} {'has' if n_new == 1 else 'have'} not been pulled at all"
    return f"{said}."


def effort(report: Report) -> str:
    """Return what the run took, and how much it could have been, or may become."""
    result, cap = report.result, report.cap
    if cap is None or cap <= result.n_pulls:
        return result.cost
    could = "It could have taken" if report.is_finished else "The strategy takes"
    end = "" if report.is_finished else " before it ends"
    return f"{result.cost} {could} {large(cap)} at most{end}."


def optimality(report: Report) -> str:
    """Return how near to the minimum the run was; empty where that means nothing."""
    result = report.result
    if result.is_answer:
        return result.optimality
    if report.is_finished or not result.lower_bound:
        return ""
    bound = result.lower_bound.words
    return f"No algorithm can promise this with fewer than {bound} expected pulls on every instance."
