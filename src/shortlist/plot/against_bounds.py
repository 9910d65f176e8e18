"""Figure of the pulls of a run compared with worst cases and the lower bound."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shortlist.planning import row_of
from shortlist.plot.labels import pulls_words
from shortlist.plot.style import BLACK, BLUE, GREY, PALE, look_of, new_axes, powers_of_ten, quiet_style
from shortlist.result import Result, Stop

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAPER = {"wnelim": "worst case of WNElim", "vmedelim": "worst case of V-MedElim"}


@dataclass(frozen=True)
class SpentData:
    """Numbers of pulls to compare; unknown ones are omitted.

    Attributes
    ----------
    n_pulls
        The pulls of the run.
    cap
        The largest number of pulls of this strategy.
    wnelim, vmedelim
        The worst cases of the paper's two algorithms.
    lower_bound
        The number that no algorithm can promise to stay below on every instance; None if none is proved.
    """

    n_pulls: int
    cap: int | None
    wnelim: int | None
    vmedelim: int | None
    lower_bound: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data for JSON."""
        return dict(vars(self))


def spent_data(result: Result, cap: int | None = None) -> SpentData:
    """Return the pulls of a run and bounds; `cap` is its maximum, if known better than from the problem."""
    problem = result.problem
    if not problem.knows_variances:
        return SpentData(result.n_pulls, cap, None, None, None)
    most = {name: row_of(name, problem).worst_case_pulls for name in {result.strategy, *_PAPER}}
    return SpentData(
        n_pulls=result.n_pulls,
        cap=most[result.strategy] if cap is None else cap,
        wnelim=most["wnelim"],
        vmedelim=most["vmedelim"],
        lower_bound=float(result.lower_bound or 0) or None,
    )


def spent(result: Result, *, ax: "Axes | None" = None, cap: int | None = None) -> "Axes":
    """Return axes that compare the pulls of a run with its cap, WNElim, V-MedElim and the lower bound.

    The lower bound is for the worst means: on an easier instance an adaptive strategy may stay below it. With
    unknown variances there is no lower bound, and no worst case before the pilot. For rewards within bounds
    there is no lower bound either.

    Parameters
    ----------
    result
        The result of `select`, `drive` or a session, ended or not.
    ax
        The axes to draw in; by default those of a new figure.
    cap
        The maximum number of pulls, if it is known better than from the problem, such as after a pilot.
    """
    data = spent_data(result, cap)
    so_far = " so far" if result.stop in {Stop.OPEN, Stop.BUDGET} else ""
    rows = [
        (pulls, *rest)
        for pulls, *rest in (
            (data.lower_bound, "lower bound, worst means", BLACK, "|"),
            (data.n_pulls, f"this run{so_far}, by {result.strategy}", BLUE, "o"),
            (
                data.cap if result.strategy not in _PAPER else None,
                f"worst case of {result.strategy}",
                BLUE,
                "D",
            ),
            *((vars(data)[name], label, *look_of(name)[::2]) for name, label in _PAPER.items()),
        )
        if pulls
    ]
    with quiet_style():
        axes = new_axes(ax, 0.85 + 0.3 * max(2, len(rows)))
        for place, (pulls, _, colour, marker) in enumerate(rows):
            axes.hlines(place, 1e-9, pulls, color=PALE, linewidth=0.8, linestyle=":")
            axes.plot(
                pulls, place, marker, color=colour, markersize=11 if marker == "|" else 6, markeredgewidth=1.6
            )
            axes.annotate(
                pulls_words(pulls),
                (pulls, place),
                (8, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.set_yticks(range(len(rows)), [row[1] for row in rows])
        axes.set_ylim(max(2, len(rows)) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        _logarithmic(axes, [row[0] for row in rows])
        axes.set_xlabel("pulls (logarithmic)")
        if data.n_pulls == 0:
            said = "all arms are selected: nothing had to be pulled"
            said = said if len(result.indices) == result.problem.n else "no pulls have been told yet"
            axes.text(0.5, 0.97, said, transform=axes.transAxes, ha="center", va="top", color=GREY)
    return axes


def _logarithmic(axes: "Axes", pulls: list[float]) -> None:
    if not pulls:
        axes.set_xticks([])
        return
    low, high = math.log10(min(pulls)), math.log10(max(pulls))
    room = max(high - low, 1.0)
    axes.set_xlim(10 ** (low - 0.12 * room), 10 ** (high + 0.3 * room))
    powers_of_ten(axes, "x")
