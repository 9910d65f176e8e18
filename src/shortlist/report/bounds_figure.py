"""Figure of the pulls made, the lower bound, and the worst cases of other strategies."""

from shortlist.planning import gap_words
from shortlist.report import text_format as markup
from shortlist.report.figure import figure, table
from shortlist.report.model import Report
from shortlist.report.svg import Picture, Scale
from shortlist.report.text_format import large

_ROW, _TOP, _BOTTOM = 40, 26, 26  # pixels: height of a row, space above the rows and below them

_STRATEGY_NAMES = {"wnelim": "WNElim", "vmedelim": "V-MedElim"}


def bounds_figure(report: Report) -> str:
    """Return a figure of the pulls made, the lower bound, and the worst cases of other strategies."""
    entries = _bound_entries(report)
    if len(entries) < 2:
        return ""
    numbers = [value for _, value, _ in entries]
    scale = Scale(min(numbers) / 1.5, max(numbers) * 1.5, is_log=True)
    height = _TOP + _ROW * len(entries)
    said = "; ".join(f"{label}: {large(value)}" for label, value, _ in entries)
    picture = Picture(height + _BOTTOM, "Pulls against bounds, on a logarithmic scale", said)
    picture.text(0, 14, "pulls (log scale)", "heading")
    picture.axis(scale, _TOP, height, 24)
    for place, (_, value, kind) in enumerate(entries):
        y = _TOP + _ROW * (place + 0.5)
        picture.line((scale(scale.low), y), (scale(value), y), f"stem {kind}")
        if kind == "made":
            picture.circle(scale(value), y, "in", 6)
        else:
            picture.square(scale(value), y, kind, 9)
    names = "".join(
        f"<li><span>{markup.words(label)}</span><b>{large(value)}</b></li>" for label, value, _ in entries
    )
    drawing = f'<div class="bounds"><ol class="names">{names}</ol>{picture.render()}</div>'
    rows = [[markup.words(label), large(value), _multiple(report, value)] for label, value, _ in entries]
    title = "Pulls made, and bounds"
    listed = table(title, ["what", "pulls", "× lower bound"], rows)
    return figure(title, drawing, _bounds_legend(report), listed)


def _bound_entries(report: Report) -> list[tuple[str, float, str]]:
    """Return label, number and kind of each known bound in ascending order; the pulls made come first."""
    result = report.result
    made = "this run" if report.is_finished else "this run so far"
    bound = float(result.lower_bound or 0)
    entries = [("lower bound", bound, "floor"), (made, float(result.n_pulls), "made")]
    if report.cap is not None:
        entries.append(("this run at most", float(report.cap), "cap"))
    for name, pulls in report.rivals.items():
        if pulls is not None and name != result.strategy:
            entries.append((f"{_STRATEGY_NAMES[name]} at most", float(pulls), "out"))
    return [entry for entry in entries if entry[1] > 0]


def _multiple(report: Report, value: float) -> str:
    bound = report.result.lower_bound
    return gap_words(bound.gap(value)) if bound else "–"


def _bounds_legend(report: Report) -> str:
    result = report.result
    said = []
    if result.lower_bound:
        said.append(
            "The lower bound is proved: whatever the algorithm, there are means for which it needs that many "
            "pulls on average. On easier ones a run may stay below it."
        )
    else:
        said.append("No lower bound is proved for rewards of this kind.")
    if result.is_answer and result.lower_bound:
        gap = gap_words(result.lower_bound.gap(result.n_pulls))
        said.append(f"The optimality gap of this run is {gap}.")
    beyond = [_STRATEGY_NAMES[name] for name, pulls in report.rivals.items() if pulls is None]
    if beyond:
        said.append(f"The worst case of {' and '.join(beyond)} is too large to compute.")
    return markup.words(" ".join(said))
