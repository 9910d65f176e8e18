"""Figure of the arms: their means and pulls, with the cut between selected arms and the others."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates.guarantee import at_least
from shortlist.report import text_format as markup
from shortlist.report.figure import figure, table
from shortlist.report.model import Report
from shortlist.report.shown_arms import MOST_ROWS, Left, Row, ShownArms, shown_arms
from shortlist.report.svg import Picture, Scale
from shortlist.report.text_format import counted, mean_words
from shortlist.report.verdict import kept_word

_ROW, _CUT, _TOP, _BOTTOM = 26, 22, 26, 26  # pixels: height of a row and of the cut, space above and below
_TITLE = "Means and pulls of the arms"
_BLOCK = 31  # rows drawn together, so that page breaks fall between blocks


@dataclass(frozen=True)
class _Line:
    """A row of the figure: an arm, a group of arms, or None for the cut; with its y position and mark."""

    row: Row | None
    y: float
    kind: str


def arms_figure(report: Report, most_letters: int = 20_000) -> str:
    """Return the arms with their means and pulls: those selected above the cut, the others below.

    Before the first pull only the names are shown; if a run ended without any pull, there is no figure.
    Names that do not fit are given in full in their titles, up to this many characters.
    """
    chosen = shown_arms(report)
    if report.result.n_pulls:
        scales = _means_scale(report, chosen), _pulls_scale(report, chosen)
        drawing = "".join(_block(report, lines, scales, most_letters) for lines in _blocks(report, chosen))
        legend = _legend(report)
    elif report.is_finished:
        return ""
    else:
        drawing, legend = "", "No arm has been pulled yet."
    return figure(_TITLE, drawing, legend, _table(report, chosen))


def _blocks(report: Report, chosen: ShownArms) -> Iterator[list[_Line]]:
    above = "in" if report.is_finished else "open"
    kinds = [_kind(report, row, above) for row in chosen.above] + ["cut"]
    kinds += [_kind(report, row, "out") for row in chosen.below]
    rows: list[Row | None] = [*chosen.above, None, *chosen.below]
    for first in range(0, len(rows), _BLOCK):
        lines, y = [], float(_TOP)
        for row, kind in zip(rows[first : first + _BLOCK], kinds[first : first + _BLOCK], strict=True):
            height = _CUT if row is None else _ROW
            lines.append(_Line(row, y + height / 2, kind))
            y += height
        yield lines


def _kind(report: Report, row: Row, otherwise: str) -> str:
    """Return the status of an arm if it is known before the end; otherwise by its side of the cut."""
    is_known = report.is_partly_certified and not isinstance(row, Left)
    return report.result.arms.statuses[row] if is_known else otherwise  # type: ignore[index]


def _block(report: Report, lines: Sequence[_Line], scales: tuple[Scale, Scale], most_letters: int) -> str:
    names = "".join(_name(report, line.row, most_letters) for line in lines)
    pictures = _means_picture(report, lines, scales[0]) + _pulls_picture(report, lines, scales[1])
    return f'<div class="arms"><ol class="names">{names}</ol>{pictures}</div>'


def _name(report: Report, row: Row | None, most_letters: int) -> str:
    if row is None:
        return '<li class="cut" role="presentation"></li>'
    if isinstance(row, Left):
        return f'<li class="left">{left_words(report, row)}</li>'
    name = markup.shortened(markup.visible(report.result.problem.name(row)), most_letters)
    return f"<li>{markup.name(name, 32, titled=True)}</li>"


def _base(lines: Sequence[_Line], words: tuple[str, str, str], scale: Scale, room: int) -> Picture:
    """Return a picture with a title, a heading and a description, an axis below all rows, and the cut."""
    title, heading, said = words
    bottom = lines[-1].y + (_CUT if lines[-1].row is None else _ROW) / 2
    picture = Picture(bottom + _BOTTOM, title, said)
    picture.text(0, 14, heading, "heading")
    picture.axis(scale, _TOP, bottom, room)
    for line in lines:
        if line.row is None:
            picture.line((0, line.y), (1, line.y), "cut")
    return picture


# --- means ----------------------------------------------------------------------------------------


def _means_picture(report: Report, lines: Sequence[_Line], scale: Scale) -> str:
    means, widths = report.result.arms.means, _half_widths(report)
    heading = "mean" if report.errors is None else "mean ± 2 SE"
    picture = _base(lines, ("Observed means", heading, _means_said(report, lines)), scale, 22)
    for line in lines:
        if line.row is None:
            _ruler(picture, scale, report, line.y)
        elif isinstance(line.row, Left):
            _span(picture, scale, means[line.row.arms], line.y)
        elif math.isnan(means[line.row]):
            picture.text(0.5, line.y + 4, unpulled_words(report), anchor="middle")
        else:
            bounds = report.result.problem.bounds or (-math.inf, math.inf)
            _interval(picture, scale, (means[line.row], widths[line.row]), line, bounds)
    return picture.render()


def _half_widths(report: Report) -> FloatArray:
    if report.errors is None:
        return np.zeros(report.result.problem.n)
    return 2 * np.nan_to_num(report.errors)


def _means_scale(report: Report, chosen: ShownArms) -> Scale:
    """Return a scale that covers all means, and their intervals unless these are much wider."""
    result, epsilon = report.result, report.result.problem.epsilon
    arms = [arm for arm in chosen.arms if result.arms.pulls[arm]]
    if not arms:
        return Scale(0.0, 1.0)
    means, widths = result.arms.means[arms], _half_widths(report)[arms]
    least, most = float(means.min()), float(means.max())
    room = 1.5 * max(most - least, 4 * float(np.median(widths)), epsilon)
    low = max(float((means - widths).min()), least - room)
    high = min(float((means + widths).max()), most + room)
    return Scale(low, high) if high > low else Scale(low - epsilon, high + epsilon)


def _interval(
    picture: Picture, scale: Scale, at: tuple[float, float], line: _Line, bounds: tuple[float, float]
) -> None:
    """Draw a mean and its interval, which does not go beyond the bounds of rewards."""
    mean, width = at
    if width > 0:
        low, high = bounds
        ends = (scale(max(mean - width, low)), line.y), (scale(min(mean + width, high)), line.y)
        picture.line(*ends, f"interval {line.kind}")
    if line.kind == "in":
        picture.circle(scale(mean), line.y, line.kind)
    else:
        picture.square(scale(mean), line.y, line.kind)


def _ruler(picture: Picture, scale: Scale, report: Report, y: float) -> None:
    """Draw a bar of length epsilon on the cut, from the lowest mean above it."""
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


def _means_said(report: Report, lines: Sequence[_Line]) -> str:
    epsilon, means = report.result.problem.epsilon, report.result.arms.means
    arms = [line.row for line in lines if isinstance(line.row, int)]
    said = [f"{counted(len(arms), 'arm')} of {report.result.problem.n:,}, shown individually."]
    above = {*report.order[: report.n_above].tolist()}
    for what, is_above in (("above the cut", True), ("below it", False)):
        some = [arm for arm in arms if (arm in above) is is_above]
        there = means[some][~np.isnan(means[some])]
        if len(there):
            low, high = (mean_words(float(one), epsilon) for one in (there.min(), there.max()))
            said.append(f"Means {what}: {low} to {high}.")
    return " ".join(said)


# --- pulls ----------------------------------------------------------------------------------------


def _pulls_scale(report: Report, chosen: ShownArms) -> Scale:
    pulls = report.result.arms.pulls[chosen.arms]
    pulls = pulls[pulls > 0]
    if not len(pulls):
        return Scale(0.0, 1.0)
    least, most = float(pulls.min()), float(pulls.max())
    return Scale(least / 2, most, is_log=True) if most > 50 * least else Scale(0.0, most)


def _pulls_picture(report: Report, lines: Sequence[_Line], scale: Scale) -> str:
    pulls = report.result.arms.pulls
    arms = [line.row for line in lines if isinstance(line.row, int)]
    said = f"From {pulls[arms].min(initial=2**62):,} to {pulls[arms].max(initial=0):,} pulls per arm."
    heading = "pulls (log)" if scale.is_log else "pulls"
    picture = _base(lines, ("Pulls per arm", heading, said if arms else "No arm."), scale, 14)
    for line in lines:
        if isinstance(line.row, int) and pulls[line.row]:
            kind = "in" if line.kind == "in" else "out"
            picture.bar(scale(scale.low), scale(float(pulls[line.row])), line.y - 6, 12, f"bar {kind}")
    return picture.render()


# --- words ----------------------------------------------------------------------------------------


def unpulled_words(report: Report) -> str:
    """Return the label of arms without pulls."""
    return "never pulled" if report.is_finished else "not pulled yet"


def left_words(report: Report, row: Left) -> str:
    """Return the label of a row that stands for several arms; arms with pulls have a band."""
    if report.result.arms.pulls[row.arms].any():
        return f"{len(row.arms):,} more {'arm' if len(row.arms) == 1 else 'arms'}"
    return f"{len(row.arms):,} {unpulled_words(report)}"


def _legend(report: Report) -> str:
    problem, kept = report.result.problem, kept_word(report)
    cut = f"The dashed line is the cut; its thick part is epsilon long, {problem.epsilon:g}"
    are = "is the arm that is" if problem.m == 1 else f"are the {problem.m:,} arms that are"
    if report.is_finished:
        said = f"<b>●</b> {kept}, <b>□</b> not {kept}. {cut}. Arms above it are {kept}."
    elif report.is_partly_certified:
        said = (
            f"<b>●</b> in, <b>□</b> open (blue) or out (grey), to within epsilon. {cut}. "
            f"Above it {are} certified to within the smallest epsilon so far; this choice "
            f"may still change."
        )
    else:
        said = f"{cut}. The {problem.m:,} leading arms so far are above it, and it may still move."
    if problem.n > MOST_ROWS:
        said += " Grey bands: the range of the means of arms that are not shown individually."
    if problem.has_blocks and not problem.is_bounded:
        said += " Arms are compared in the same blocks, so what all arms of a block share cancels out."
    if report.errors is None:
        return f"{said} Variances are unknown, so there are no intervals."
    if problem.has_pool and problem.target == "pool":
        said += " A mean over all items is exact."
    source = "the stated variances" if problem.knows_variances else "sample variances"
    source = "the observed means" if problem.is_bounded else source
    return (
        f"{said} Intervals are two standard errors (SE) to each side, from {source}. They are for "
        f"orientation and not part of the guarantee; intervals that leave the picture are cut off."
    )


def _standing(report: Report, arm: int) -> str:
    """Return the status of an arm and, for one of the best so far, to within which epsilon that is known."""
    status, certified = report.result.arms.statuses[arm], report.result.certificate
    if certified is None or arm not in certified.indices:
        return status
    return f"{status}, to within {at_least(certified.epsilons[certified.indices == arm][0])}"


def _table(report: Report, chosen: ShownArms) -> str:
    result, widths, kept = report.result, _half_widths(report), kept_word(report)
    epsilon, n_above = result.problem.epsilon, len(chosen.above)
    above, below = (kept, f"not {kept}") if report.is_finished else ("ahead", "behind")
    known = () if result.problem.known is None else result.problem.known.arms
    rows = []
    for place, row in enumerate(chosen.rows):
        side = above if place < n_above else below
        if isinstance(row, Left):
            total = int(result.arms.pulls[row.arms].sum())
            rows.append([left_words(report, row), side if total else "–", "", "", f"{total:,} in total"])
            continue
        mean, is_pulled = float(result.arms.means[row]), result.arms.pulls[row] > 0
        if report.is_partly_certified:
            side = _standing(report, row)
        side = side if is_pulled or row in known or report.is_finished else unpulled_words(report)
        has_width = report.errors is not None and not math.isnan(report.errors[row])
        width = mean_words(float(widths[row]), epsilon) if has_width else "–"
        pulls = "known" if row in known else f"{result.arms.pulls[row]:,}"
        if (in_mean := result.arms.in_mean[row]) < result.arms.pulls[row]:
            pulls += f", {in_mean:,} of them in the mean"
        cells = [mean_words(mean, epsilon), width, pulls]
        rows.append([markup.name(result.problem.name(row)), side, *cells])
    headings = ["arm", "outcome" if report.is_finished else "so far", "mean", "± 2 SE", "pulls"]
    return table(_TITLE, headings, rows)
