from collections.abc import Generator
from fractions import Fraction

from shortlist import Problem

from .medelim import screen
from .wnelim import naive


def vmedelim(problem: Problem) -> Generator[dict[int, int], dict[int, float], set[int]]:
    variance = problem.variances.tolist()
    least = Fraction(min(variance))
    groups: dict[int, set[int]] = {}
    for i, value in enumerate(variance):
        j = 1
        while not 2 ** (j - 1) <= Fraction(value) / least < 2**j:
            j += 1
        groups.setdefault(j, set()).add(i)
    kept: set[int] = set()
    for j in sorted(groups):
        kept |= yield from screen(groups[j], problem.m, problem.epsilon / 2, problem.delta / 2, variance)
    return (yield from naive(kept, problem.m, problem.epsilon / 2, problem.delta / 2, variance))
