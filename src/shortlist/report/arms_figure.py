"""The arms in a figure: their means, with the cut between those selected and the others, and their pulls."""

import math

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.report import markup
from shortlist.report.amounts import mean_words
from shortlist.report.company_text import counted
from shortlist.report.facts import Report
from shortlist.report.figure import figure, table
from shortlist.report.rows import MOST_ROWS, Left, Shown, shown
from shortlist.report.svg import Picture, Scale

_ROW, _TOP, _BOTTOM = 26, 26, 26  # pixels: height of a row, space above the rows and below them
_CUT = 22  # pixels: height of the row that holds the cut


def arms_figure(report: Report) -> str:
    """Return the arms with their means and pulls: those selected above the cut, the others below."""
    chosen = shown(report)
    names = _names(report, chosen)
    means, pulls = _means_picture(report, chosen), _pulls_picture(report, chosen)
    drawing = f'<div class="arms"><ol class="names">{names}</ol>{means}{pulls}</div>'
    return figure("Means and pulls of the arms", drawing, _arms_legend(report), _arms_table(report, chosen))


def _names(report: Report, chosen: Shown) -> str:
    problem = report.result.problem
    items = [
        '<li class="left">' + f"{counted(len(row.arms), 'arm')} more</li>"
        if isinstance(row, Left)
        else f"<li>{markup.name(problem.name(row), 32, titled=True)}</li>"
        for row in chosen.rows
    ]
    items.insert(len(chosen.above), '<li class="cut" role="presentation"></li>')
    return "".join(items)


def _places(chosen: Shown) -> list[float]:
    """Return the middle of each row."""
    n_above = len(chosen.above)
    return [_TOP + _ROW * (k + 0.5) + (_CUT if k >= n_above else 0) for k in range(len(chosen.rows))]


def _base(chosen: Shown, title: str, heading: str, said: str, scale: Scale, room: int) -> Picture:
    """Return a picture with a heading, an axis below all rows, and the cut."""
    bottom = _TOP + _ROW * len(chosen.rows) + _CUT
    picture = Picture(bottom + _BOTTOM, title, said)
    picture.text(0, 14, heading, "heading")
    picture.axis(scale, _TOP, bottom, room)
    cut = _TOP + _ROW * len(chosen.above) + _CUT / 2
    picture.line((0, cut), (1, cut), "cut")
    return picture


def _means_picture(report: Report, chosen: Shown) -> str:
    result, arms = report.result, chosen.arms
    means, widths = result.arms.means, _half_widths(report)
    scale = _means_scale(means[arms], widths[arms], result.problem.epsilon)
    picture = _base(chosen, "Observed means", _heading(report), _means_said(report, chosen), scale, 22)
    _ruler(picture, scale, report, _TOP + _ROW * len(chosen.above) + _CUT / 2)
    kind = "in" if report.is_finished else "open"
    for place, (y, row) in enumerate(zip(_places(chosen), chosen.rows, strict=True)):
        is_above = place < len(chosen.above)
        if isinstance(row, Left):
            _span(picture, scale, means[row.arms], y)
        elif not math.isnan(means[row]):
            _interval(picture, scale, (means[row], widths[row]), y, kind if is_above else "out")
        else:
            picture.text(0.5, y + 4, "never pulled", anchor="middle")
    return picture.render()


def _heading(report: Report) -> str:
    return "mean" if report.errors is None else "mean ± 2 std. errors"


def _half_widths(report: Report) -> FloatArray:
    if report.errors is None:
        return np.zeros(report.result.problem.n)
    return 2 * np.nan_to_num(report.errors)


def _means_scale(means: FloatArray, widths: FloatArray, epsilon: float) -> Scale:
    """Return a scale that holds all means, and intervals as long as they do not dwarf them."""
    is_there = ~np.isnan(means)
    if not is_there.any():
        return Scale(0.0, 1.0)
    means, widths = means[is_there], widths[is_there]
    least, most = float(means.min()), float(means.max())
    room = 1.5 * max(most - least, 4 * float(np.median(widths)), epsilon)
    low = max(float((means - widths).min()), least - room)
    high = min(float((means + widths).max()), most + room)
    return Scale(low, high) if high > low else Scale(low - epsilon, high + epsilon)


def _interval(picture: Picture, scale: Scale, at: tuple[float, float], y: float, kind: str) -> None:
    mean, width = at
    if width > 0:
        picture.line((scale(mean - width), y), (scale(mean + width), y), f"interval {kind}")
    if kind == "in":
        picture.circle(scale(mean), y, kind)
    else:
        picture.square(scale(mean), y, kind)


def _ruler(picture: Picture, scale: Scale, report: Report, y: float) -> None:
    """Draw how long epsilon is, on the cut, down from the worst mean above it."""
    problem, means = report.result.problem, report.result.arms.means
    last = float(means[report.order[report.n_above - 1]])
    if not math.isnan(last):
        worse = last - problem.epsilon if problem.goal == "maximise" else last + problem.epsilon
        picture.line((scale(last), y), (scale(worse), y), "ruler")


def _span(picture: Picture, scale: Scale, means: FloatArray, y: float) -> None:
    """Draw the range of means of arms that are not shown one by one."""
    there = means[~np.isnan(means)]
    if len(there):
        picture.bar(scale(float(there.min())), scale(float(there.max())), y - 5, 10, "band")


def _means_said(report: Report, chosen: Shown) -> str:
    problem, epsilon = report.result.problem, report.result.problem.epsilon
    means = report.result.arms.means
    above = [row for row in chosen.above if isinstance(row, int)]
    below = [row for row in chosen.below if isinstance(row, int)]
    said = [f"{len(chosen.arms)} of {counted(problem.n, 'arm')} are shown one by one."]
    for arms, what in ((above, "above the cut"), (below, "below it")):
        if len(there := means[arms][~np.isnan(means[arms])]):
            low, high = (mean_words(float(one), epsilon) for one in (there.min(), there.max()))
            said.append(f"Means {what}: {low} to {high}.")
    return " ".join(said)


def _pulls_picture(report: Report, chosen: Shown) -> str:
    pulls = report.result.arms.pulls
    some = pulls[chosen.arms]
    most, least = int(some.max(initial=0)), int(some[some > 0].min(initial=2**62))
    is_log = most > 50 * least
    scale = Scale(least / 2, most, is_log=True) if is_log else Scale(0, max(most, 1))
    said = f"From {min(least, most):,} to {most:,} pulls per arm."
    heading = "pulls (log)" if is_log else "pulls"
    picture = _base(chosen, "Pulls per arm", heading, said, scale, 12)
    for place, (y, row) in enumerate(zip(_places(chosen), chosen.rows, strict=True)):
        if isinstance(row, int) and pulls[row]:
            kind = "in" if report.is_finished and place < len(chosen.above) else "out"
            picture.bar(scale(scale.low), scale(float(pulls[row])), y - 6, 12, f"bar {kind}")
    return picture.render()


def _arms_legend(report: Report) -> str:
    result = report.result
    in_doubt = "The dashed line is the cut: "
    if report.is_finished:
        said = "<b>●</b> selected, <b>□</b> not selected. " + in_doubt + "selected arms stand above it"
    else:
        said = (
            f"{in_doubt}the {result.problem.m:,} arms that are ahead so far stand above it, and it may move"
        )
    said += f"; its thick part is epsilon long, {result.problem.epsilon:g}."
    if result.problem.n > MOST_ROWS:
        said += " Grey bands: the range of the means of arms that are not shown one by one."
    if report.errors is None:
        return f"{said} Variances are unknown, so there are no intervals."
    source = (
        "the stated variances" if result.problem.to_dict()["noise"] != "gaussian-unknown" else "the pilot"
    )
    return (
        f"{said} Intervals are two standard errors to each side, from {source}. They are for orientation, "
        f"and no part of the guarantee; what leaves the picture is cut off."
    )


def _arms_table(report: Report, chosen: Shown) -> str:
    result, widths = report.result, _half_widths(report)
    epsilon, n_above = result.problem.epsilon, len(chosen.above)
    above, below = ("selected", "not selected") if report.is_finished else ("ahead", "behind")
    rows = []
    for place, row in enumerate(chosen.rows):
        side = above if place < n_above else below
        if isinstance(row, Left):
            total = int(result.arms.pulls[row.arms].sum())
            rows.append([f"{counted(len(row.arms), 'arm')} more", side, "", "", f"{total:,} in all"])
            continue
        mean = float(result.arms.means[row])
        width = "–" if report.errors is None else mean_words(float(widths[row]), epsilon)
        cells = [mean_words(mean, epsilon), width, f"{result.arms.pulls[row]:,}"]
        rows.append([markup.name(result.problem.name(row)), side, *cells])
    return table(["arm", "", "mean", "± 2 std. errors", "pulls"], rows)
