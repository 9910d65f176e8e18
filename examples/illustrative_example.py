"""The paper's illustrative example: the factor k that it turns into ln k, as a table and a figure.

Zhou and Tian (AISTATS 2022, Section 5.2) pick m = 2^k of n = 2^(k^2) arms, a few noisy, the others very
quiet. Their V-MedElim is to need of the order of ln(k)^2 / epsilon^2 pulls, where weighted naive elimination
(WNElim) and median elimination (MedElim) need k ln(k) / epsilon^2. Shown are those orders, the factors k and
ln k by themselves, and the worst cases that are guaranteed, with all constants. Only numbers of arms of
equal variance enter, so that 2^144 arms take no longer than 16.
"""

import argparse
import bisect
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from shortlist.bounds.classes import Classes
from shortlist.bounds.null import null_instance, shifted_null_instance
from shortlist.instances import EqualArms, illustrative_classes
from shortlist.strategies import medelim

DELTA = 0.05
KS = range(2, 13)


class Row(NamedTuple):
    """The numbers for one k, in pulls times epsilon^2, before pulls are rounded up to whole ones."""

    k: int
    terms: tuple[float, float, float]  # of Theorem 4.1; their sum is the order of V-MedElim
    orders: tuple[float, float, float]  # of V-MedElim, WNElim and median elimination
    factors: tuple[float, float, float]  # the same per unit of the sum of variances, without ln(1/delta)
    worst: tuple[float, float, float]  # a lower bound, and what WNElim and V-MedElim certify


def row(k: int) -> Row:
    """Return the numbers for one k."""
    *noisy, quiet = illustrative_classes(k)
    arms, kept = [*noisy, quiet], [*noisy, quiet._replace(n_arms=2 * 2**k)]  # all arms; G^r
    total, ln_m, confidence = variance(arms), k * math.log(2), math.log(1 / DELTA)
    terms = (total * confidence, variance([quiet]) * ln_m, variance(noisy) * entropy(kept))
    factors = ((terms[1] + terms[2]) / total, entropy(arms), ln_m)
    ours, naive, median = (total * (confidence + factor) for factor in factors)
    final = 8 * 4 * variance(kept) * (math.log(2 / DELTA) + entropy(kept))  # WNElim: epsilon/2 and delta/2
    worst = (lower(k) if k in KS else math.nan, 8 * naive, screening(quiet, k) + final)
    return Row(k, terms, (ours, naive, median), factors, worst)


def variance(classes: Sequence[EqualArms]) -> float:
    """Return the sum of the variances of all arms, divided last: neither part need fit into a float."""
    return sum(arms.n_arms * arms.variance.numerator / arms.variance.denominator for arms in classes)


def entropy(classes: Sequence[EqualArms]) -> float:
    """Return the entropy of variances s with the sum S, which is ln(S) - sum(s ln(s)) / S."""
    logs = [math.log(arms.variance.numerator) - math.log(arms.variance.denominator) for arms in classes]
    weighted = sum(variance([arms]) * log for arms, log in zip(classes, logs, strict=True))
    return math.log(variance(classes)) - weighted / variance(classes)


def screening(quiet: EqualArms, k: int) -> float:
    """Return what screening costs V-MedElim: only the quiet arms are too many for the final batch."""
    if k in KS:
        levels = medelim.schedule(quiet.n_arms, 2**k, 1 / 2, DELTA / 2)
        return float(quiet.variance) * sum(level.n_arms * level.pulls_per_variance for level in levels)
    # 155 levels or more: an endless series. Level j costs 512 (8/9)^(j-1) (ln(8m/delta) + j ln 2) per unit.
    return 512 * variance([quiet]) * (9 * (math.log(8 / DELTA) + k * math.log(2)) + 81 * math.log(2))


def lower(k: int) -> float:
    """Return the larger of two lower bounds; the others that the library knows are smaller here."""
    rising = illustrative_classes(k)[::-1]
    variances, counts = [float(arms.variance) for arms in rising], [float(arms.n_arms) for arms in rising]
    rivals = Classes.listed(np.array(variances), np.array(counts)).noisiest(2.0 ** (k * k) - 2**k + 1)
    return max(null_instance(rivals, DELTA), shifted_null_instance(rivals, DELTA))


def meeting() -> int:
    """Return the k from which on V-MedElim's worst case is smaller than WNElim's."""
    ks = range(KS.stop, 2000)
    return ks[bisect.bisect_left(ks, True, key=lambda k: row(k).worst[2] < row(k).worst[1])]


def tables() -> str:
    """Return the three tables as text."""
    orders, factors, worst = [], [], []
    for k, terms, (v, w, m), (fv, fw, fm), (least, cw, cv) in map(row, [*KS, 30, 100, 300, meeting()]):
        epsilon = f"10^{(math.log10(cw) - k * k * math.log10(2)) / 2:.1f}"
        orders.append((k, f"2^{k * k}", *terms, v, w, m, w / v, m / v))
        factors.append((k, fv, fw, fm, fw / fv, fm / fv, k / math.log(k)))
        worst.append((k, least, cw, cv, cv / cw, epsilon))
    return (
        f"Orders times epsilon^2, that is, without their constants, for delta = {DELTA}\n"
        + columns("k n I II III I+II+III WNElim MedElim WNElim/sum MedElim/sum", orders)
        + "\nFactors: the orders per unit of variance, less the ln(1/delta) that they share\n"
        + columns("k V-MedElim WNElim MedElim WNElim/V-MedElim MedElim/V-MedElim k/ln(k)", factors)
        + "\nCertified worst cases times epsilon^2; at epsilon* WNElim's comes to n pulls\n"
        + columns("k lower-bound WNElim V-MedElim V-MedElim/WNElim epsilon*", worst)
    )


def columns(heads: str, rows: Sequence[Sequence[object]]) -> str:
    """Return rows of words and numbers under their heads."""
    cells = [[f"{x:,.2f}" if isinstance(x, float) else str(x) for x in one] for one in [heads.split(), *rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join("  ".join(map(str.rjust, line, widths)) + "\n" for line in cells).replace("nan", "  -")


def figure(path: Path) -> None:
    """Write the figure: the factors on the left, the certified worst cases on the right."""
    import matplotlib.figure  # noqa: PLC0415

    matplotlib.rcParams.update({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "shortlist"})
    colours = {"V-MedElim": "#0072B2", "WNElim": "#D55E00", "MedElim": "#009E73", "lower bound": "black"}
    near, meet = [row(k) for k in KS], row(meeting())
    far = near + [row(k) for j in range(4, 11) for k in (2**j, 2**j + 1, 3 * 2**j // 2)]
    drawn = matplotlib.figure.Figure(figsize=(7.3, 3.4), layout="constrained")
    left, right = drawn.subplots(1, 2)
    for place, (name, marker) in enumerate({"V-MedElim": "o", "WNElim": "s", "MedElim": "^"}.items()):
        heights = [one.factors[place] for one in near]
        left.plot(KS, heights, color=colours[name], marker=marker, markersize=4, gid=f"factor-{name}")
        left.text(12.4, heights[-1] - 0.15, name, color=colours[name], va="top")
    left.axhline(math.log(1 / DELTA), color="0.5", linestyle=":")
    left.text(12.4, math.log(1 / DELTA) + 0.15, "ln(1/delta)", color="0.4")
    left.set(xlabel="k", xlim=(1.5, 16), ylim=(0, 11), xticks=KS[::2], title="Factor beside ln(1/delta)")
    places = {"lower bound": (14, 16), "WNElim": (45, 800), "V-MedElim": (14, 5e4)}
    for place, (name, at) in enumerate(places.items()):
        heights = [one.worst[place] for one in far]
        right.loglog([one.k for one in far], heights, color=colours[name], gid=f"worst-{name}")
        right.text(*at, name, color=colours[name])
    label, tip = f"k = {meet.k}:\n2^{meet.k**2:,} arms", (meet.k, meet.worst[1])
    right.annotate(label, tip, (meet.k, 3e5), ha="center", arrowprops={"arrowstyle": "->"})
    right.axvspan(2, 5, color="0.92", linewidth=0)
    right.text(2.1, 3e5, "up to k = 5:\nfits into memory", color="0.4")
    right.set(xlabel="k", xlim=(2, 2500), ylim=(1, 2e6), title="Certified worst case times epsilon^2")
    right.set_xticks([2, 5, 12, 100, 1000], ["2", "5", "12", "100", "1,000"])
    right.yaxis.set_major_formatter("{x:,.0f}")
    right.minorticks_off()
    drawn.savefig(path, metadata={"Date": None, "Creator": None}, format="svg")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path, metavar="PATH", help="also write the figure, as SVG")
    arguments = parser.parse_args()
    print(tables(), end="")
    if arguments.figure:
        figure(arguments.figure)
