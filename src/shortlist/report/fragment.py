"""A result for notebooks: the verdict, the certificate, the arms and the cost, as a piece of HTML."""

from shortlist.report import text_format as markup
from shortlist.report.arms_figure import arms_figure
from shortlist.report.model import report_of_result
from shortlist.report.page import verdict_html
from shortlist.report.style import style
from shortlist.report.verdict import basis, effort, optimality
from shortlist.result import Result


def result_html(result: Result) -> str:
    """Return a result as HTML that brings its own style, and disturbs no other."""
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
