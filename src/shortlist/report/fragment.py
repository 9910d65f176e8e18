"""Plans, sessions, results and certificates as HTML fragments for notebooks."""

import math

from shortlist.certificates import Certificate
from shortlist.certificates.certificate import IN
from shortlist.certificates.guarantee import at_least
from shortlist.planning import Plan, gap_words
from shortlist.report import text_format as markup
from shortlist.report.arms_figure import arms_figure
from shortlist.report.figure import table
from shortlist.report.model import report_of_result
from shortlist.report.page import style, verdict_html
from shortlist.report.result_text import dash_words, plan_answer, usual_words
from shortlist.report.text_format import counted, large
from shortlist.report.verdict import basis, effort, optimality, status_words
from shortlist.result import Result
from shortlist.session import Session

_MOST_ROWS = 20


def result_html(result: Result, kicker: str = "") -> str:
    """Return a result as HTML with its own scoped style."""
    report = report_of_result(result)
    notes = _soft(basis(report), effort(report), result.reissued, optimality(report))
    return _fragment(f"{kicker}{verdict_html(report, 'h3')}{notes}{arms_figure(report)}")


def session_html(session: Session) -> str:
    """Return a session as HTML: its question, what it asks for, and the result so far."""
    asks = f"round {session.asked.round} asks for {counted(len(session.asked), 'ticket')}"
    asks = "it has ended" if session.is_done else asks
    said = f"Session for {session.problem.words}, by {session.strategy}; {asks}."
    return result_html(session.result, f'<p class="kicker">{markup.words(said)}</p>')


def certificate_html(certificate: Certificate) -> str:
    """Return a certificate as HTML: what is certified, and for which arms."""
    is_answer = certificate.is_answer and certificate.guarantee is not None
    state = "certified" if is_answer else "open"
    short = f"! Certified, but not yet to within {certificate.problem.epsilon:g}"
    short = short if certificate.guarantee is not None else "! Nothing certified yet"
    label = "✓ Certified" if is_answer else short
    said = f'<p class="state {state}">{markup.words(label)}</p>'
    said += f'<p class="lead">{markup.words(certificate.sentence)}</p>'
    if certificate.guarantee is None:
        return _fragment(said + _soft(*certificate.notes))
    promise = certificate.guarantee
    proof = f"Proof: {promise.source}, provided that {promise.assumption}."
    said += _soft(status_words(certificate), proof, *certificate.notes)
    shown = list(zip(certificate.indices.tolist(), certificate.epsilons.tolist(), strict=True))[:_MOST_ROWS]
    rows = [
        [
            markup.name(certificate.problem.name(arm), titled=True),
            "yes" if certificate.statuses[arm] == IN else "open",
            "–" if math.isinf(epsilon) else at_least(epsilon, 4),
        ]
        for arm, epsilon in shown
    ]
    if (more := len(certificate.indices) - len(shown)) > 0:
        rows.append([f"{more:,} more", "", ""])
    return _fragment(said + table("Selected arms", ["selected", "settled", "certified to within"], rows))


def plan_html(plan: Plan) -> str:
    """Return a plan as HTML: the recommended strategy with its cost, and a table of all strategies."""
    usual, promise = plan.usual, plan.best.guarantee
    said = f'<p class="kicker">{markup.words(f"Plan for {plan.problem.words}")}</p>'
    said += f"<h3>{markup.words(plan_answer(plan, usual))}</h3>"
    said += "" if promise is None else f'<p class="lead">{markup.words(promise.sentence)}</p>'
    rows = []
    for row in plan.rows:
        if row.is_certified:
            found, gap = usual.pulls.get(row.strategy), plan.gap_of(row)
            cells = (
                None if found is None else large(found.median),
                None if row.worst_case_pulls is None else large(row.worst_case_pulls),
                None if gap is None else gap_words(gap),
                None if row.rounds is None else f"{row.rounds:,}",
            )
            rows.append([markup.words(row.strategy), *(cell or "–" for cell in cells)])
    headings = ["strategy", "usual pulls", "most pulls", "times the bound", "most rounds"]
    return _fragment(
        said
        + table("Strategies and their pulls", headings, rows)
        + _soft(dash_words(plan, usual, "–"), plan.why, usual_words(usual))
    )


def _soft(*sentences: str) -> str:
    return "".join(f'<p class="soft">{markup.words(said)}</p>' for said in sentences if said)


def _fragment(body: str) -> str:
    return f'<div class="shortlist"><style>{style()}</style><div style="padding:1rem">{body}</div></div>'
