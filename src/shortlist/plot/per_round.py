"""Figure of the progress of a run: the arms pulled in each round, and the pulls made so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shortlist.arrays import IntArray
from shortlist.errors import InvalidProblem
from shortlist.plot.style import (
    BLUE,
    GREY,
    VERMILION,
    figure_of,
    new_figure,
    powers_of_ten,
    quiet_style,
    whole_ticks,
)
from shortlist.session.session import Session
from shortlist.session.state import RunState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 40  # up to this many rounds are marked individually
_UNEQUAL = 50  # ratio of arms between rounds above which the scale is logarithmic


@dataclass(frozen=True, eq=False)
class RoundsData:
    """The arms and pulls of each round of a run; of the current round, those answered so far.

    Attributes
    ----------
    rounds
        The round numbers, from 0.
    n_arms, pulls
        The number of arms pulled in each round, and the number of pulls.
    is_whole
        Whether the last round is complete.
    """

    rounds: IntArray
    n_arms: IntArray
    pulls: IntArray
    is_whole: bool

    @property
    def total(self) -> IntArray:
        """The pulls made by the end of each round."""
        return np.cumsum(self.pulls, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data for JSON."""
        return {
            "rounds": self.rounds.tolist(),
            "n_arms": self.n_arms.tolist(),
            "pulls": self.pulls.tolist(),
            "total_pulls": self.total.tolist(),
            "is_whole": self.is_whole,
        }


def rounds_data(session: Session | RunState) -> RoundsData:
    """Return the arms and pulls of each round of a session or of a replayed log."""
    history = session.history if isinstance(session, Session) else session
    if not isinstance(history, RunState):
        raise InvalidProblem(f"`session` is {session!r}; it must be a shortlist.Session.")
    *before, last = history.rounds
    whole = [one for one in before if not one.is_replaced]
    is_told = last.is_told
    arms = [len(one.tickets) for one in whole]
    pulls = [int(one.tickets.counts.sum()) for one in whole]
    if is_told.any():
        arms.append(int(is_told.sum()))
        pulls.append(int(last.tickets.counts[is_told].sum()))
    return RoundsData(
        rounds=np.arange(len(arms)),
        n_arms=np.array(arms, dtype=np.int64),
        pulls=np.array(pulls, dtype=np.int64),
        is_whole=not is_told.any(),
    )


def rounds(session: Session | RunState, *, ax: "Sequence[Axes] | None" = None) -> "Figure":
    """Return a figure of the arms pulled in each round, above the pulls made by the end of each.

    Parameters
    ----------
    session
        A session, ended or not.
    ax
        Two axes to draw in; by default those of a new figure.
    """
    data = rounds_data(session)
    with quiet_style():
        figure = new_figure(4.2) if ax is None else None
        upper, lower = figure.subplots(2, 1, sharex=True) if figure is not None else two_axes(ax)
        if len(data.rounds):
            edges = np.arange(len(data.rounds) + 1) - 0.5
            upper.stairs(data.n_arms, edges, fill=True, color=BLUE, alpha=0.25)
            upper.stairs(data.n_arms, edges, color=BLUE, linewidth=1.3)
            marker = "o" if len(data.rounds) <= _FEW else ""
            lower.plot(data.rounds, data.total, color=VERMILION, marker=marker, drawstyle="steps-post")
        else:
            lower.text(
                0.5, 0.5, "no pulls have been told yet", transform=lower.transAxes, ha="center", color=GREY
            )
        for axes, label in ((upper, "arms pulled\nin the round"), (lower, "pulls made\nby its end")):
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter("{x:,.0f}")
            whole_ticks(axes.yaxis)
        if len(data.rounds) and data.n_arms.max() > _UNEQUAL * data.n_arms.min():
            _logarithmic(upper)
        whole_ticks(lower.xaxis)
        lower.set_xlim(-0.5 - 0.02 * len(data.rounds), 1.02 * max(len(data.rounds), 1) - 0.5)
        lower.set_xlabel(
            "round, counted from 0" + ("" if data.is_whole else " (the last one is in progress)")
        )
    return figure_of(upper)


def _logarithmic(axes: "Axes") -> None:
    """Use a logarithmic scale, on which a single arm is half a decade high."""
    most = axes.get_ylim()[1]
    axes.set(yscale="log", ylim=(0.3, 1.2 * most), ylabel="arms pulled\nin the round (log)")
    powers_of_ten(axes, "y")


def two_axes(ax: "Sequence[Axes] | None") -> "Sequence[Axes]":
    """Return the two axes of a figure with two panels."""
    if ax is None or isinstance(ax, str) or not hasattr(ax, "__len__") or len(ax) != 2:
        raise InvalidProblem(
            f"`ax` is {ax!r}; this figure needs two axes, as `figure.subplots(2)` gives them."
        )
    return ax
