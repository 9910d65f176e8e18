"""A result as an HTML fragment for notebooks: verdict, certificate, arms and cost."""

from shortlist.report import text_format as markup
from shortlist.report.arms_figure import arms_figure
from shortlist.report.model import report_of_result
from shortlist.report.page import verdict_html
from shortlist.report.style import style
from shortlist.report.verdict import basis, effort, optimality
from shortlist.result import Result


def result_html(result: Result) -> str:
    """Return a result as HTML with its own scoped style."""
    report = report_of_result(result)
    notes = "".join(
        f"<p class='soft'>{markup.words(said)}</p>"
        for said in (basis(report), effort(report), result.reissued, optimality(report))
        if said
    )
    return (
        f'<div class="shortlist"><style>{style()}</style>'
        f'<div style="padding:1rem">{verdict_html(report, "h3")}{notes}{arms_figure(report)}</div></div>'
    )
