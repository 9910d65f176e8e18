"""The paper's illustrative example: a factor k that becomes ln k, as tables and a figure.

Zhou and Tian (AISTATS 2022, Section 5.2) select m = 2^k of n = 2^(k^2) arms. A few arms are noisy, and the
others are very quiet. Their V-MedElim should need of the order of ln(k)^2 / epsilon^2 pulls. Weighted naive
elimination (WNElim) and median elimination (MedElim) need k ln(k) / epsilon^2. This script shows these
orders, the factors k and ln k by themselves, and the guaranteed worst cases with all constants. It needs
only the number of arms of each variance, so 2^144 arms take no longer than 16 arms.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from shortlist import plot
from shortlist.plot.illustrative_numbers import DELTA, KS, meeting, row


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
    """Return a table: rows of words and numbers under column heads."""
    cells = [[f"{x:,.2f}" if isinstance(x, float) else str(x) for x in one] for one in [heads.split(), *rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join("  ".join(map(str.rjust, line, widths)) + "\n" for line in cells).replace("nan", "  -")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path, metavar="PATH", help="also write the figure, as SVG")
    arguments = parser.parse_args()
    print(tables(), end="")
    if arguments.figure:
        plot.save(plot.illustrative(), arguments.figure)
