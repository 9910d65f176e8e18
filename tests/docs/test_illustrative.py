"""The page on the illustrative example shows what its script prints and draws, and what the arms give.

Run as a program it compares formula and arms for k = 5 too, which has 33,554,432 arms.
"""

import math
import re
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import shortlist as sl
from shortlist.bounds.classes import Classes
from shortlist.bounds.exact import exact_value
from shortlist.bounds.paper_bound import best_product_value, pulls_per_value
from shortlist.bounds.swap import swaps
from shortlist.instances import illustrative_classes
from shortlist.plot.illustrative_numbers import DELTA, KS, Row, lower, meeting, row, screening
from shortlist.strategies import medelim, vmedelim, wnelim
from tests.questions import bound_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "examples" / "illustrative_example.py"
FIGURE = ROOT / "docs" / "illustrative-example.svg"
PAGE = (ROOT / "docs" / "illustrative-example.md").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"
CURVES = {"factor-V-MedElim": 11, "factor-WNElim": 11, "factor-MedElim": 11} | {
    "worst-lower bound": 11,
    "worst-WNElim": 32,
    "worst-V-MedElim": 32,
}
"""The curves of the figure, and how many points each has."""


# --- the page -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("figure") / "figure.svg"
    subprocess.run([sys.executable, SCRIPT, "--figure", path], check=True, capture_output=True)
    return path


def test_the_page_shows_what_the_script_prints() -> None:
    (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    start = time.perf_counter()
    run = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == shown, "put what `make docs-example` prints into docs/illustrative-example.md"
    assert time.perf_counter() - start < 10  # about one second; a busy machine may take longer


def test_the_script_explains_itself_and_is_short() -> None:
    run = subprocess.run([sys.executable, SCRIPT, "--help"], capture_output=True, text=True, check=True)
    assert "--figure PATH" in run.stdout
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 150


def test_the_links_of_the_page_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert FIGURE.name in links
    assert f"../examples/{SCRIPT.name}" in links
    assert all((ROOT / "docs" / link.partition("#")[0]).is_file() for link in links)


def test_the_target_that_the_page_names_exists() -> None:
    assert "`make docs-example`" in PAGE
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(
        rf"^docs-example: .*\n.*{SCRIPT.name} --figure docs/{FIGURE.name}$", makefile, re.MULTILINE
    )


def curve(path: Path, name: str) -> list[float]:
    """Return the coordinates of a curve in the figure."""
    (group,) = (one for one in ElementTree.parse(path).iter(f"{SVG}g") if one.get("id") == name)
    line = group.find(f"{SVG}path")
    assert line is not None
    return [float(number) for number in re.findall(r"[-\d.]+", line.get("d", ""))]


def words(path: Path) -> list[str]:
    return ["".join(one.itertext()) for one in ElementTree.parse(path).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", CURVES)
def test_the_figure_has_the_curves_that_the_script_draws(name: str, drawn: Path) -> None:
    shown = curve(FIGURE, name)
    assert len(shown) == 2 * CURVES[name]
    assert shown == pytest.approx(curve(drawn, name), abs=0.1)


def test_the_figure_has_the_words_that_the_script_writes(drawn: Path) -> None:
    assert words(FIGURE) == words(drawn)
    assert {"V-MedElim", "WNElim", "MedElim", "lower bound", "ln(1/delta)"} <= set(words(FIGURE))


def test_the_figure_tells_no_date_and_no_program() -> None:
    text = FIGURE.read_text(encoding="utf-8")
    assert "date" not in text
    assert "matplotlib.org" not in text


def test_curves_in_the_figure_are_the_numbers() -> None:
    """Heights in the picture are a linear function of the factors, and of the logarithms of worst cases."""
    factors = [row(k).factors[place] for place in range(3) for k in KS]
    names = ["factor-V-MedElim", "factor-WNElim", "factor-MedElim"]
    heights = np.concatenate([curve(FIGURE, name)[1::2] for name in names])
    assert np.ptp(heights - np.polyval(np.polyfit(factors, heights, 1), factors)) < 0.01
    worst = [math.log(row(k).worst[place]) for place in range(3) for k in KS]
    names = ["worst-lower bound", "worst-WNElim", "worst-V-MedElim"]
    heights = np.concatenate([curve(FIGURE, name)[1:22:2] for name in names])
    assert np.ptp(heights - np.polyval(np.polyfit(worst, heights, 1), worst)) < 0.01


# --- the numbers ----------------------------------------------------------------------------------


def row_from_arms(k: int) -> Row:
    """Return the numbers of one k from the arms one by one, before rounding as far as that is possible."""
    epsilon = 2.0**-18  # so small that rounding pulls up changes V-MedElim's worst case by 2e-8 at most
    problem = sl.instances.illustrative(k, epsilon=epsilon, delta=DELTA).problem
    found, total = sl.complexity(problem), float(problem.variances.sum())
    entropy, ln_m = sl.entropy(problem.variances), math.log(problem.m)
    terms = np.array([found.confidence, found.homogeneous, found.heterogeneous]) * epsilon**2
    orders = (terms.sum(), total * (entropy - math.log(DELTA)), total * (ln_m - math.log(DELTA)))
    pulls = (
        bound_of(problem).pulls,
        wnelim.closed_form_pulls(problem),
        vmedelim.worst_case_pulls(problem),
    )
    return Row(
        k=k,
        terms=(terms[0], terms[1], terms[2]),
        orders=orders,
        factors=(terms[1:].sum() / total, entropy, ln_m),
        worst=(pulls[0] * epsilon**2, pulls[1] * epsilon**2, pulls[2] * epsilon**2),
    )


def differences(k: int) -> list[float]:
    """Return by what fraction the numbers from the arms exceed those by formula."""
    formula, arms = row(k), row_from_arms(k)
    return [
        a / b - 1
        for one, two in zip(arms[1:], formula[1:], strict=True)
        for a, b in zip(one, two, strict=True)
    ]


@pytest.mark.parametrize("k", [2, 3, 4])
def test_formula_and_arms_agree(k: int) -> None:
    *exact, rounded = differences(k)
    assert exact == pytest.approx([0.0] * len(exact), abs=1e-11)
    assert 0 <= rounded < 1e-10


def test_the_classes_are_the_arms_of_the_example() -> None:
    for k in (2, 3, 4):
        variances = sl.instances.illustrative(k).problem.variances
        found, counts = np.unique(variances, return_counts=True)
        classes = illustrative_classes(k)[::-1]
        assert [float(arms.variance) for arms in classes] == found.tolist()
        assert [arms.n_arms for arms in classes] == counts.tolist()


@pytest.mark.parametrize("k", [2, 3, 8, 9, 12, 40])
def test_the_classes_are_exact_for_any_k(k: int) -> None:
    *noisy, quiet = illustrative_classes(k)
    levels = next(power for power in range(k) if 2**power >= k)
    assert sum(arms.n_arms for arms in (*noisy, quiet)) == 2 ** (k * k)
    assert [(arms.variance * 2**i, arms.n_arms) for i, arms in enumerate(noisy)] == [
        (1, 2**i) for i in range(levels)
    ]
    assert quiet.variance * 2 ** (k * k) * k == levels


@pytest.mark.parametrize("k", [1, 2.0, "3", True, None])
def test_the_classes_refuse_other_k(k: object) -> None:
    with pytest.raises(sl.InvalidProblem, match="`k` is"):
        illustrative_classes(k)  # type: ignore[arg-type]


def classes_of(k: int) -> Classes:
    rising = illustrative_classes(k)[::-1]
    counts = np.array([float(arms.n_arms) for arms in rising])
    return Classes.listed(np.array([float(arms.variance) for arms in rising]), counts)


@pytest.mark.parametrize("k", KS)
def test_the_other_lower_bounds_are_smaller(k: int) -> None:
    arms, unit = classes_of(k), pulls_per_value(DELTA)
    noisier = arms.noisiest(2 ** (k * k) - 1)
    assert 0 < swaps(arms, 2**k, DELTA) < lower(k)
    assert 0 < unit * best_product_value(noisier, 2**k, DELTA) < lower(k)
    solved = exact_value(noisier, 2**k, DELTA)
    assert solved is not None
    assert solved.value * unit < lower(k)


@pytest.mark.parametrize("k", KS)
def test_no_bound_exceeds_what_is_certified(k: int) -> None:
    bound, naive, ours = row(k).worst
    assert bound < naive < ours


@pytest.mark.parametrize("k", [13, 20, 30])
def test_many_levels_cost_what_the_endless_series_does(k: int) -> None:
    quiet = illustrative_classes(k)[-1]
    levels = medelim.schedule(quiet.n_arms, 2**k, 0.5, DELTA / 2)
    assert len(levels) >= 155
    exact = float(quiet.variance) * sum(level.n_arms * level.pulls_per_variance for level in levels)
    assert screening(quiet, k) == pytest.approx(exact, rel=1e-6)


def test_the_worst_cases_meet_once() -> None:
    meet = meeting()
    steps = [2**j + more for j in range(4, 11) for more in (0, 1)]  # where the example changes most
    for k in {13, *range(20, 2000, 40), *steps, meet - 1, meet}:
        _, naive, ours = row(k).worst
        assert (ours < naive) == (k >= meet)


# --- what the page says about them ----------------------------------------------------------------


def gain(k: int) -> float:
    """Return WNElim's factor over V-MedElim's."""
    ours, naive, _ = row(k).factors
    return naive / ours


def test_what_the_page_says_about_the_order() -> None:
    ks = (*KS[1:], *range(13, 650, 20), *(2**j + more for j in range(4, 10) for more in (0, 1)))
    assert all(0.66 < gain(k) / (k / math.log(k)) < 0.89 for k in ks)
    assert gain(12) == pytest.approx(3.5, abs=0.05)
    assert gain(632) / (632 / math.log(632)) == pytest.approx(0.74, abs=0.005)
    assert row(2).orders[1] / row(2).orders[0] == pytest.approx(1.1, abs=0.05)
    assert row(12).orders[1] / row(12).orders[0] == pytest.approx(2.2, abs=0.05)
    assert [after for before, after in pairwise(KS) if gain(after) < gain(before)] == [5, 9]
    printed = 3 * math.log(2) / 2  # Ent(G^l) at k = 12 as the paper has it, without ln(l)
    assert [printed, math.log(4)] == pytest.approx([1.04, 1.39], abs=0.005)
    seeming = (144 * math.log(2) + 12 * printed) / 13 / ((4 * math.log(2) + 4 * printed) / (4 + 4 / 12))
    assert seeming == pytest.approx(5.4, abs=0.05)


def test_what_the_page_says_about_constants() -> None:
    ratios = {k: row(k).worst[2] / row(k).worst[1] for k in KS}
    assert [round(ratios[k]) for k in (2, 5, 12)] == [36, 147, 68]
    assert max(ratios, key=lambda k: ratios[k]) == 5
    assert f"`k = {meeting()}`, with `2^{meeting() ** 2:,}` arms" in PAGE
    problem = sl.instances.illustrative(4).problem
    needed = math.floor(bound_of(problem))
    said = (round(wnelim.closed_form_pulls(problem)), wnelim.WNELIM.worst_case_pulls(problem), needed)
    assert [f"{pulls:,}" in PAGE for pulls in said] == [True] * 3


if __name__ == "__main__":
    for size in (2, 3, 4, 5):
        print(size, *(f"{difference:.1e}" for difference in differences(size)))
