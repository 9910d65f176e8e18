"""The page on figures shows what is drawn, and says what the numbers are."""

import math
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tools.figures import EPSILONS, FIGURES, FOLDER, drilling

import shortlist as sl
from shortlist.plot.heterogeneity import geometric
from tests.plot.test_drawing import words
from tests.questions import bound_of, known

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
PAGE = " ".join((ROOT / "docs" / "figures.md").read_text(encoding="utf-8").split())
G = "{http://www.w3.org/2000/svg}g"


def heights(figure: str, curve: str) -> list[float]:
    """Return the heights of the points of a curve in a figure as it is committed."""
    (group,) = (one for one in ElementTree.parse(FOLDER / f"{figure}.svg").iter(G) if one.get("id") == curve)
    line = group.find(f"{G[:-1]}path")
    assert line is not None
    return [float(number) for number in re.findall(r"[-\d.]+", line.get("d", ""))][1::2]


def test_every_figure_is_there_and_on_the_page() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(figures/([^)]+)\.svg\)", PAGE)
    assert sorted(shown) == sorted(FIGURES)
    drawn = [f"{name}.svg" for name in FIGURES]
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted([*drawn, "report.png"])
    assert "](docs/figures/report.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make docs-figures" in PAGE
    assert re.search(r"^docs-figures: .*\n.*tools\.figures$", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", ["arms", "pulls", "rounds", "spent"])
def test_figures_of_the_run_are_those_of_the_page(name: str, tmp_path: Path) -> None:
    sl.plot.save(FIGURES[name](), tmp_path / "figure.svg")
    assert words(tmp_path / "figure.svg") == words(FOLDER / f"{name}.svg"), "call make docs-figures"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.svg")), ids=lambda path: path.stem)
def test_figures_tell_no_date_and_no_program(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "<dc:date>" not in text
    assert "matplotlib.org" not in text


def on_one_line(drawn: list[float], pulls: list[float]) -> None:
    """Heights in a picture with a logarithmic axis are a linear function of the logarithms."""
    logs = np.log(pulls)
    assert np.ptp(drawn - np.polyval(np.polyfit(logs, drawn, 1), logs)) < 0.02


@cache
def story() -> sl.plot.Curves:
    return sl.plot.heterogeneity_data(points=2)


def test_the_story_is_drawn_as_it_is() -> None:
    shown, numbers = [], []
    for name, pulls in {**story().pulls, "lower bound": story().lower_bound}.items():
        drawn = heights("heterogeneity", f"curve-{name}")
        assert len(drawn) == 25
        shown += [drawn[0], drawn[-1]]
        numbers += pulls.tolist()
    on_one_line(shown, numbers)


def test_what_the_page_says_of_unequal_variances() -> None:
    left_over_right = {name: pulls[0] / pulls[1] for name, pulls in story().pulls.items()}
    assert round(left_over_right["medelim-max"]) == 128
    assert round(1 / left_over_right["vmedelim"]) == 94
    assert left_over_right["wnelim"] == pytest.approx(0.5, abs=0.02)
    assert story().lower_bound[0] / story().lower_bound[1] == pytest.approx(0.47, abs=0.005)
    ratios = story().pulls["vmedelim"] / story().pulls["wnelim"]
    assert ratios == pytest.approx([4.6, 223], abs=0.5)
    assert sl.entropy(geometric(256, 2 ** (-1 / 16))) == pytest.approx(4.14, abs=0.005)
    for ratio, is_screened in ((0.954, False), (0.961, True)):
        variances = geometric(256, ratio)
        problem = sl.Problem(8, 0.1, 0.05, variances * 256 / variances.sum())
        assert bool(len(sl.heterogeneity(problem).more)) == is_screened
    assert story().pulls["race"][0] / story().pulls["wnelim"][0] == pytest.approx(1.55, abs=0.005)
    variances = geometric(256, 0.5)
    assert sl.plan(sl.Problem(8, 0.1, 0.05, variances * 256 / variances.sum())).best.strategy != "race"
    for number in ("128 times", "1/94", "0.47", "4.4 to 4.6", "223 times", "1.55 times", "4.14"):
        assert number in PAGE


def test_v_medelim_is_nowhere_the_smaller_one() -> None:
    drawn = {
        name: heights("heterogeneity", f"curve-{name}") for name in ("vmedelim", "wnelim", "lower bound")
    }
    for ours, naive, least in zip(*drawn.values(), strict=True):
        assert ours < naive < least, "in a picture, small numbers stand low"


@pytest.mark.parametrize(
    ("name", "over", "as_multiple"), [("n", "n", True), ("m", "m", False), ("delta", "delta", False)]
)
def test_growth_is_drawn_as_it_is_and_as_the_page_says(name: str, over: str, as_multiple: bool) -> None:
    ends: dict[str, list[float]] = {"n": [107, 100_000], "m": [1, 500], "delta": [1e-6, 0.1]}
    data = sl.plot.scaling_data(
        over, ends[over], strategies=["race", "wnelim", "single-stage", "vmedelim", "medelim-max"]
    )
    first = {"n": 3, "m": 0, "delta": 0}[over]
    curves = data.multiples if as_multiple else {**data.pulls, "lower bound": data.lower_bound}
    drawn = [heights(f"scaling-{name}", f"curve-{curve}") for curve in curves]
    on_one_line(
        [y for one in drawn for y in (one[first], one[-1])], [x for pulls in curves.values() for x in pulls]
    )
    times, pulls = data.multiples, data.pulls
    if over == "n":
        said = {"wnelim": (11.4, 19.4), "race": (11.4, 15.7), "single-stage": (8.2, 11.4)}
        assert all(times[one] == pytest.approx(both, abs=0.06) for one, both in said.items())
        assert (times["medelim-max"][1], times["vmedelim"][1]) == pytest.approx((1600, 6700), abs=50)
    elif over == "m":
        assert pulls["wnelim"][0] == pulls["wnelim"][1]
        assert pulls["single-stage"] / 1e6 == pytest.approx([4.1, 6.7], abs=0.05)
    else:
        found = [pulls["race"], pulls["wnelim"], data.lower_bound]
        assert [one[0] / one[1] for one in found] == pytest.approx([1.9, 2.2, 6.0], abs=0.05)


def test_the_lower_bound_rises_beyond_a_tenth_of_all_arms() -> None:
    bounds = [bound_of(sl.Problem(m, 0.1, 0.05, np.ones(1000))) for m in (100, 177, 298)]
    assert bounds[0] > bounds[1] < bounds[2]
    assert bounds[2].name == "swaps"


def test_what_the_page_says_of_failures() -> None:
    """The figure took 400 runs for each point; pulls of one batch are the same in any run."""
    problem = known(2, 0.1, 0.1, np.linspace(0.5, 2.0, 10), noise="gaussian")
    means = sl.instances.slippage(problem, gap=0.5).means
    assert sl.simulate(problem, means, "wnelim", replications=1).pulls[0] == 45_287
    near = problem.changed(epsilon=0.49)
    outcome = sl.simulate(near, means, "bechhofer", replications=400)
    assert outcome.errors == 37
    drawn = {
        name: heights("epsilon", f"curve-{name}") for name in ("bechhofer", "wnelim", "lower bound", "race")
    }
    assert len(drawn["race"]) == len(EPSILONS) == 8
    few = [
        float(sl.simulate(problem.changed(epsilon=e), means, "wnelim", replications=1).pulls[0])
        for e in (0.1, 1.0)
    ]
    top, bottom = drawn["wnelim"][0], drawn["wnelim"][-1]
    decade = (bottom - top) / math.log10(few[0] / few[1])
    race = few[0] * 10 ** ((top - drawn["race"][0]) / decade)
    assert race == pytest.approx(1742, rel=0.01)


def test_what_the_page_says_of_the_run() -> None:
    result = drilling().result
    data, spent, rounds = (
        sl.plot.arms_data(result),
        sl.plot.spent_data(result),
        sl.plot.rounds_data(drilling()),
    )
    assert (data.names[1], data.pulls[1], result.n_pulls) == ("site 078", 33_465, 57_200)
    assert data.worse is not None
    assert (data.worse.n_arms, round(data.worse.average_pulls)) == (170, 105)
    assert (len(rounds.rounds), *rounds.n_arms[:2], rounds.n_arms[-1]) == (24, 200, 17, 2)
    assert [round((pulls or 0) / 1e6, 1) for pulls in (spent.cap, spent.wnelim, spent.vmedelim)] == [
        3.0,
        3.0,
        104.0,
    ]
    assert round(spent.lower_bound or 0) == 301_209
