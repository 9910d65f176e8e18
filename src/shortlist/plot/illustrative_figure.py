"""Figure of the paper's illustrative example: the factors, and the effect of the constants."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem
from shortlist.plot.illustrative_numbers import DELTA, KS, Row, meeting, row
from shortlist.plot.per_round import two_axes
from shortlist.plot.style import GREY, figure_of, look_of, new_figure, quiet_style, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {"V-MedElim": "vmedelim", "WNElim": "wnelim", "MedElim": "medelim-max", "lower bound": "lower bound"}
_FACTORS = ("V-MedElim", "WNElim", "MedElim")
_WORST = {"lower bound": (14, 16), "WNElim": (45, 800), "V-MedElim": (14, 5e4)}  # and label positions


def illustrative_data(ks: Sequence[int] = KS) -> list[Row]:
    """Return the numbers of the example for each k, in pulls times epsilon^2, for delta = 0.05."""
    found = sorted({whole_number(k, "k", 2) for k in ks})
    if not found:
        raise InvalidProblem("`ks` is empty; give whole numbers from 2 on, such as range(2, 13).")
    return [row(k) for k in found]


def illustrative(ks: Sequence[int] = KS, *, ax: "Sequence[Axes] | None" = None) -> "Figure":
    """Return a figure of the paper's illustrative example: factors on the left, worst cases on the right.

    The left panel shows the order of what each algorithm needs, per unit of variance and relative to the
    ln(1/delta) that all share. The right panel shows certified worst cases with all constants, far beyond the
    k of any real problem.

    Parameters
    ----------
    ks
        The values of k in the left panel: m = 2^k of n = 2^(k^2) arms.
    ax
        Two axes to draw in; by default those of a new figure.
    """
    near = illustrative_data(ks)
    with quiet_style():
        figure = new_figure(3.4, 7.3) if ax is None else None
        left, right = figure.subplots(1, 2) if figure is not None else two_axes(ax)
        _factors(left, near)
        _worst_cases(right)
    return figure_of(left)


def _factors(axes: "Axes", near: Sequence[Row]) -> None:
    ks = [one.k for one in near]
    for place, name in enumerate(_FACTORS):
        look, heights = look_of(_NAMES[name]), [one.factors[place] for one in near]
        axes.plot(
            ks, heights, color=look.colour, linestyle=look.line, marker=look.marker, gid=f"factor-{name}"
        )
        axes.annotate(
            name, (ks[-1], heights[-1]), (6, 0), textcoords="offset points", va="center", color=look.colour,
            annotation_clip=False,
        )  # fmt: skip
    shared = math.log(1 / DELTA)
    axes.axhline(shared, color=GREY, linestyle=(0, (1, 2)), linewidth=1)
    axes.annotate("ln(1/delta)", (0.62, shared), (0, 3), xycoords=("axes fraction", "data"),
                  textcoords="offset points", color=GREY, fontsize=8, ha="center")  # fmt: skip
    axes.set(xlabel="k, with 2^(k²) arms", ylim=(0, None), title="Factor beside ln(1/delta)")
    whole_ticks(axes.xaxis)


def _worst_cases(axes: "Axes") -> None:
    meet = row(meeting())
    far = [row(k) for k in KS] + [row(k) for j in range(4, 11) for k in (2**j, 2**j + 1, 3 * 2**j // 2)]
    for place, (name, at) in enumerate(_WORST.items()):
        look, heights = look_of(_NAMES[name]), [one.worst[place] for one in far]
        axes.loglog(
            [one.k for one in far], heights, color=look.colour, linestyle=look.line, gid=f"worst-{name}"
        )
        axes.text(*at, name, color=look.colour)
    label, tip = f"k = {meet.k}:\n2^{meet.k**2:,} arms", (meet.k, meet.worst[1])
    axes.annotate(label, tip, (meet.k, 3e5), ha="center", arrowprops={"arrowstyle": "->"})
    axes.axvspan(2, 5, color="0.92", linewidth=0)
    axes.text(2.1, 3e5, "up to k = 5:\nfits into memory", color=GREY)
    axes.set(
        xlabel="k, with 2^(k²) arms",
        xlim=(2, 2500),
        ylim=(1, 2e6),
        title="Certified worst case times epsilon²",
    )
    axes.set_xticks([2, 5, 12, 100, 1000], ["2", "5", "12", "100", "1,000"])
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.minorticks_off()
