"""Figures of the arms of a run: observed means with the cut between in and out, and pulls."""

from typing import TYPE_CHECKING, Any

import numpy as np

from shortlist.plot.labels import arm_labels, pulls_words
from shortlist.plot.per_arm_data import MOST, ArmsData, Others, arms_data
from shortlist.plot.style import BLUE, GREY, PALE, VERMILION, new_axes, quiet_style
from shortlist.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def arms(result: Result, *, ax: "Axes | None" = None, most: int = MOST) -> "Axes":
    """Return axes with the observed mean of each arm and the cut between the m best and the others.

    Lines are two standard errors long on each side, from the stated variances or, for rewards within bounds,
    from the observed means. They are for orientation and not part of the guarantee. The shaded zone reaches
    from the m-th best observed mean to epsilon worse. If there are more than `most` arms, those far from the
    cut are summarised.

    Parameters
    ----------
    result
        The result of `select`, `drive` or a session, ended or not.
    ax
        The axes to draw in; by default those of a new figure.
    most
        The maximum number of arms that are shown individually.
    """
    data = arms_data(result, most)
    with quiet_style():
        axes = new_axes(ax, _height(data))
        if data.good is not None:
            axes.axvspan(*sorted(data.good), color="#EFEFEF", linewidth=0, zorder=0)
        if data.cut is not None:
            axes.axvline(data.cut, color=GREY, linestyle="--", linewidth=1, zorder=1)
        for look in (True, False):
            _intervals(axes, data, look)
        _spans(axes, data)
        _rows(axes, data, result)
        better = "smaller is better" if result.problem.goal == "minimise" else "larger is better"
        source = "observed means" if result.problem.is_bounded else "stated variances"
        whiskers = f"± 2 standard errors by the {source}, for orientation"
        whiskers = "" if np.isnan(data.errors).all() else f"\n{whiskers}"
        axes.set_xlabel(f"observed mean reward ({better}){whiskers}")
        _legend(axes, data, result)
        _say_if_empty(axes, result)
    return axes


def pulls(result: Result, *, ax: "Axes | None" = None, most: int = MOST) -> "Axes":
    """Return axes with the pulls of each arm, in the order of `arms`: the best observed mean first.

    For summarised arms the bar is the average, and the line reaches from the fewest to the most pulls.

    Parameters
    ----------
    result
        The result of `select`, `drive` or a session, ended or not.
    ax
        The axes to draw in; by default those of a new figure.
    most
        The maximum number of arms that are shown individually.
    """
    data = arms_data(result, most)
    with quiet_style():
        axes = new_axes(ax, _height(data))
        places = np.arange(len(data.arms)) + (data.better is not None)
        for is_in, colour, hatch in ((True, BLUE, ""), (False, "white", "////")):
            chosen = data.is_selected == is_in
            axes.barh(
                places[chosen], data.pulls[chosen], 0.66, color=colour, edgecolor=BLUE, hatch=hatch,
                linewidth=0.7, label="selected" if is_in else "not selected",
            )  # fmt: skip
        for row, count in zip(places.tolist(), data.pulls.tolist(), strict=True):
            _beside(axes, count, row, pulls_words(count))
        for place, others in _summed_up(data):
            axes.barh(place, others.average_pulls, 0.66, color=PALE)
            axes.plot(others.pulls, [place, place], color=GREY, linewidth=1)
            _beside(axes, float(others.pulls[1]), place, f"{pulls_words(others.average_pulls)} on average")
        _rows(axes, data, result)
        summed = "\n(summary rows: the average and the range)"
        axes.set(
            xlabel="pulls" + (summed if _summed_up(data) else ""),
            xlim=(0, 1.18 * max(1, int(result.arms.pulls.max()))),
        )
        axes.xaxis.set_major_formatter("{x:,.0f}")
        if data.is_selected.any():
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
        _say_if_empty(axes, result)
    return axes


def _height(data: ArmsData) -> float:
    return 1.45 + 0.17 * (len(data.arms) + len(_summed_up(data)))


def _summed_up(data: ArmsData) -> list[tuple[float, Others]]:
    """Return the rows that summarise several arms, with their positions."""
    n_above = int(data.better is not None)
    both = ((0.0, data.better), (float(n_above + len(data.arms)), data.worse))
    return [(place, others) for place, others in both if others is not None]


def _intervals(axes: "Axes", data: ArmsData, is_in: bool) -> None:
    chosen = (data.is_selected == is_in) & (data.pulls > 0)
    places = np.arange(len(data.arms)) + (data.better is not None)
    colour = BLUE if is_in else VERMILION
    axes.hlines(
        places[chosen],
        (data.means - data.errors)[chosen],
        (data.means + data.errors)[chosen],
        color=colour,
        linewidth=1.4,
    )
    axes.plot(
        data.means[chosen],
        places[chosen],
        "o" if is_in else "D",
        color=colour,
        markerfacecolor=colour if is_in else "white",
        markersize=5 if is_in else 4,
        linestyle="none",
    )


def _spans(axes: "Axes", data: ArmsData) -> None:
    """Write the range of means of summarised arms as text; drawn, it would leave no room for the others."""
    is_pulled = data.pulls > 0
    if not is_pulled.any():
        return
    axes.autoscale_view()
    axes.set_xlim(axes.get_xlim())
    for place, others in _summed_up(data):
        if others.means is not None:
            said = f"means from {others.means[0]:.4g} to {others.means[1]:.4g}"
            axes.text(
                0.01, place, said, transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=GREY
            )


def _rows(axes: "Axes", data: ArmsData, result: Result) -> None:
    """Label the rows, the first one on top."""
    places = np.arange(len(data.arms)) + (data.better is not None)
    labels = arm_labels(result.problem, data.arms)
    named = {
        float(place): label + ("" if n_pulls else " (no pulls)")
        for place, label, n_pulls in zip(places, labels, data.pulls, strict=True)
    }
    for place, others in _summed_up(data):
        selected = {0: "none", others.n_arms: "all"}.get(others.n_selected, f"{others.n_selected:,}")
        named[place] = f"{others.n_arms:,} {_standing(others, is_last=place > 0)}, {selected} selected"
    axes.set_yticks(list(named), list(named.values()))
    axes.set_ylim(max(named) + 0.7, -0.7)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")


def _standing(others: Others, *, is_last: bool) -> str:
    """Return how summarised arms compare with those shown; nothing is known of arms without pulls."""
    if others.pulls[1] == 0:
        return "without pulls"
    return ("worse or without pulls" if others.pulls[0] == 0 else "worse") if is_last else "better"


def _legend(axes: "Axes", data: ArmsData, result: Result) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415

    not_in = "not selected" if len(result.indices) else "none is selected yet"
    m, shown = result.problem.m, [("selected", True), (not_in, False)]
    handles: list[Any] = [
        Line2D([], [], color=BLUE if is_in else VERMILION, marker="o" if is_in else "D", linewidth=1.4,
               markerfacecolor=BLUE if is_in else "white", markersize=5 if is_in else 4, label=label)
        for label, is_in in shown if (data.is_selected == is_in).any()
    ]  # fmt: skip
    if data.cut is not None:
        label = f"cut between {m:,} and {m + 1:,}"
        handles.append(Line2D([], [], color=GREY, linestyle="--", linewidth=1, label=label))
    if data.good is not None:
        handles.append(Patch(color="#EFEFEF", label=f"within {result.problem.epsilon:g} of rank {m:,}"))
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)


def _beside(axes: "Axes", x: float, y: float, text: str) -> None:
    axes.annotate(
        text, (x, y), (3, 0), textcoords="offset points", va="center", fontsize=7, color=GREY,
        annotation_clip=False,
    )  # fmt: skip


def _say_if_empty(axes: "Axes", result: Result) -> None:
    if result.n_pulls == 0:
        said = "all arms are selected: nothing had to be pulled"
        said = said if len(result.indices) == result.problem.n else "no pulls have been told yet"
        axes.text(0.5, 0.5, said, transform=axes.transAxes, ha="center", va="center", color=GREY)
        axes.set_xlim(0, 1)
