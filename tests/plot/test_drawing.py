"""Every figure can be drawn, of any number of arms and with any names, and changes nothing elsewhere."""

import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import shortlist as sl
from shortlist.plot.labels import arm_labels, pulls_words
from shortlist.plot.style import Drawn, figure_of, look_of
from tests.plot.made import NAMES, question, result, session

pytestmark = pytest.mark.slow

OF_RESULTS: dict[str, Callable[[sl.Result], Drawn]] = {
    "arms": sl.plot.arms,
    "pulls": sl.plot.pulls,
    "spent": sl.plot.spent,
}
OTHERS: dict[str, Callable[..., Drawn]] = {
    "heterogeneity": lambda **k: sl.plot.heterogeneity_story(8, 2, points=3, strategies=["wnelim"], **k),
    "scaling": lambda **k: sl.plot.scaling("m", [1, 2], n=4, strategies=["wnelim", "lucb"], **k),
    "rounds": lambda **k: sl.plot.rounds(session(5, 2), **k),
    "illustrative": lambda **k: sl.plot.illustrative([2, 3], **k),
    "epsilon": lambda **k: sl.plot.failure_against_epsilon(
        question(3, 1),
        [0.0, 1.0, 2.0],
        ["wnelim"],
        epsilons=[0.5, 1.0],
        replications=5,
        **k,
    ),
}
PAIRS = {"rounds", "illustrative", "epsilon"}


@pytest.fixture(autouse=True)
def _nothing_is_changed() -> Iterator[None]:
    """See to it that drawing leaves matplotlib's settings alone, and pyplot without figures."""
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    pyplot = __import__("sys").modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


def words(path: Path) -> list[str]:
    """Return the words of a figure."""
    texts = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(one.itertext()) for one in texts]


def drawn(what: Drawn, folder: Path) -> list[str]:
    """Write a figure and return its words; a warning is an error."""
    sl.plot.save(what, folder / "figure.svg")
    return words(folder / "figure.svg")


@pytest.mark.parametrize("kind", OF_RESULTS)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 1), (5, 2), (5, 5), (100_000, 3), (100_000, 99_000)])
def test_any_number_of_arms(kind: str, n: int, m: int, tmp_path: Path) -> None:
    for goal, is_final, known in (("maximise", True, True), ("minimise", False, False)):
        found = result(question(n, m, goal=goal, known=known), is_final=is_final)
        texts = drawn(OF_RESULTS[kind](found), tmp_path)
        assert len(texts) < 150
        if found.n_pulls == 0:
            assert "all arms are selected: nothing had to be pulled" in texts
        if kind == "arms":
            better = "larger" if goal == "maximise" else "smaller"
            assert any(f"({better} is better)" in text for text in texts)
            assert any("standard errors" in text for text in texts) == (known and found.n_pulls > 0)


@pytest.mark.parametrize("kind", OF_RESULTS)
def test_results_of_which_little_is_known(kind: str, tmp_path: Path) -> None:
    for n_pulled in (0, 1, 3):
        found = result(question(5, 2), is_final=False, is_pulled=np.arange(5) < n_pulled)
        texts = drawn(OF_RESULTS[kind](found), tmp_path)
        assert ("no pulls have been told yet" in texts) == (n_pulled == 0)
        if kind != "spent":
            assert sum(text.endswith("(no pulls)") for text in texts) == 5 - n_pulled


def test_arms_without_pulls_are_not_called_worse(tmp_path: Path) -> None:
    for n_pulled, said in ((20, "170 without pulls"), (60, "170 worse or without pulls"), (200, "170 worse")):
        some = result(question(200, 5), is_final=False, is_pulled=np.arange(200) < n_pulled)
        assert f"{said}, none selected" in drawn(sl.plot.arms(some), tmp_path)


def test_a_run_that_has_not_ended_is_shown_as_it_is_so_far(tmp_path: Path) -> None:
    for is_final, said in ((True, "this run, by race"), (False, "this run so far, by race")):
        assert said in drawn(sl.plot.spent(result(question(5, 2), is_final=is_final)), tmp_path)


def test_a_simulation_says_how_large_it_was(tmp_path: Path) -> None:
    assert "1 of 3 arms, delta 0.05, 5 runs at each epsilon" in drawn(OTHERS["epsilon"](), tmp_path)


def test_rows_that_sum_up_are_explained(tmp_path: Path) -> None:
    said = "(summary rows: the average and the range)"
    assert said in drawn(sl.plot.pulls(result(question(200, 5))), tmp_path)
    assert said not in drawn(sl.plot.pulls(result(question(5, 2))), tmp_path)


def test_rounds_are_marked_by_whole_numbers(tmp_path: Path) -> None:
    for tell in (3, None):
        figure = figure_of(sl.plot.rounds(session(5, 2, tell=tell)))
        drawn(figure, tmp_path)
        lower = figure.axes[1]
        low, high = lower.get_xlim()
        marks = [tick for tick in lower.get_xticks() if low <= tick <= high]
        assert marks
        assert all(float(tick).is_integer() for tick in marks)


def test_few_arms_can_be_seen_beside_very_many(tmp_path: Path) -> None:
    for n, scale in ((5, "linear"), (2000, "log")):
        ended = sl.Session(sl.Problem(1, 0.5, 0.05, [1.0] * n), "race")
        while tickets := ended.ask():
            ended.tell(tickets, means=np.r_[9.0, 8.9, np.zeros(n - 2)][tickets.arms])
        upper = figure_of(sl.plot.rounds(ended)).axes[0]
        assert upper.get_yscale() == scale
        assert (upper.get_ylim()[0] > 0) == (scale == "log")


def test_equal_means_have_a_figure(tmp_path: Path) -> None:
    made = sl.Session(sl.Problem(2, 0.5, 0.05, np.full(4, 1e-90)), "wnelim")
    made.tell(made.ask(), means=np.full(4, 1e9))
    for draw in OF_RESULTS.values():
        drawn(draw(made.result), tmp_path)


@pytest.mark.parametrize(
    ("n", "m", "tell"), [(1, 1, None), (2, 1, None), (5, 5, None), (100_000, 2, None), (5, 2, 0), (5, 2, 3)]
)
def test_rounds_of_any_session(n: int, m: int, tell: int | None, tmp_path: Path) -> None:
    texts = drawn(sl.plot.rounds(session(n, m, tell=tell)), tmp_path)
    assert ("no pulls have been told yet" in texts) == (n == m or tell == 0)
    assert any("in progress" in text for text in texts) == (tell == 3)


def test_where_nothing_has_to_be_pulled_figures_say_so(tmp_path: Path) -> None:
    none = "nothing has to be pulled"
    assert none in drawn(sl.plot.scaling("n", [5], m=5), tmp_path)
    assert none in drawn(sl.plot.heterogeneity_story(2, 2, points=2), tmp_path)
    assert none in drawn(
        sl.plot.failure_against_epsilon(question(2, 2), [0.0, 1.0], replications=2), tmp_path
    )
    assert none not in drawn(sl.plot.scaling("n", [5, 6], m=5, strategies=["wnelim"]), tmp_path)


def test_unknown_variances_can_be_simulated(tmp_path: Path) -> None:
    asked = question(2, 1, known=False)
    texts = drawn(
        sl.plot.failure_against_epsilon(asked, [0.0, 1.0], ["t-race"], variances=[1.0, 1.0], replications=2),
        tmp_path,
    )
    assert "t-race" in texts
    assert "lower bound" not in texts


def test_powers_of_ten_are_plain_text(tmp_path: Path) -> None:
    texts = drawn(sl.plot.scaling("n", [2, 10**6], m=1, strategies=["wnelim"]), tmp_path)
    assert {"10", "1,000", "10⁴", "10⁹"} <= set(texts)


def test_strategies_without_a_worst_case_have_no_line(tmp_path: Path) -> None:
    texts = drawn(OTHERS["scaling"](), tmp_path)
    assert "wnelim" in texts
    assert "lucb" not in texts


@pytest.mark.parametrize("kind", ["arms", "pulls"])
def test_names_are_shown_as_they_are_or_made_harmless(kind: str, tmp_path: Path) -> None:
    problem = question(len(NAMES), 3, names=NAMES)
    texts = drawn(OF_RESULTS[kind](result(problem)), tmp_path)
    for name in ("$5", "שלום עולם", "مرحبا", r"\frac{1}{2} a\$b ^{}_%&#~"):
        assert name in texts
    assert "$a_b$ <script>a…rt(1)</script>" in texts
    assert "script" not in {one.tag for one in ElementTree.parse(tmp_path / "figure.svg").iter()}
    assert "😀 \ufffd\ufffd\ufffd (arm 6)" in texts
    assert {"evil (arm 7)", "evil (arm 8)"} <= set(texts), "names that look alike are told apart"
    assert {f"{'x' * 15}…{'x' * 13}1 (arm {arm})" for arm in (2, 3)} <= set(texts)
    assert not any(ord(letter) < 32 for text in texts for letter in text)
    sl.plot.save(
        OF_RESULTS[kind](result(problem)), tmp_path / ("figure.png" if kind == "arms" else "figure.pdf")
    )


def test_labels_of_plain_names_are_the_names() -> None:
    assert arm_labels(question(3, 1), [2, 0]) == ["arm-2", "arm-0"]
    assert arm_labels(question(2, 1, names=("a" * 30, "b" * 31)), [0, 1]) == [
        "a" * 30,
        "b" * 15 + "…" + "b" * 14,
    ]


@pytest.mark.parametrize(
    ("pulls", "said"),
    [
        (0, "0"),
        (7, "7"),
        (0.95, "0.95"),
        (6.614, "6.61"),
        (1234.5, "1,234"),
        (9_999_999, "9,999,999"),
        (12_345_678, "12.3 million"),
        (4.5e9, "4.5 billion"),
        (3e13, "3e+13"),
    ],
)
def test_pulls_are_written_as_people_do(pulls: float, said: str) -> None:
    assert pulls_words(pulls) == said


# --- where it is drawn ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*OF_RESULTS, *OTHERS])
def test_axes_that_are_given_are_drawn_in(kind: str) -> None:
    figure = Figure()
    if kind in OF_RESULTS:
        axes = figure.subplots()
        assert getattr(sl.plot, kind)(result(question(5, 2)), ax=axes) is axes
    elif kind in PAIRS:
        both = figure.subplots(2)
        assert OTHERS[kind](ax=both) is figure
        assert all(one.has_data() for one in both)
        with pytest.raises(sl.InvalidProblem, match="two axes"):
            OTHERS[kind](ax=both[0])
    else:
        axes = figure.subplots()
        assert OTHERS[kind](ax=axes) is axes
    assert figure_of(figure) is figure


def test_settings_of_the_user_do_not_show(tmp_path: Path) -> None:
    plain = drawn(sl.plot.arms(result(question(5, 2))), tmp_path), (tmp_path / "figure.svg").read_bytes()
    with mpl.rc_context(
        {"axes.facecolor": "red", "lines.linewidth": 9, "text.usetex": True, "font.size": 30}
    ):
        other = drawn(sl.plot.arms(result(question(5, 2))), tmp_path), (tmp_path / "figure.svg").read_bytes()
        assert mpl.rcParams["text.usetex"]
    assert other == plain


def test_settings_are_restored_after_an_error() -> None:
    def stop() -> None:
        with sl.plot.quiet_style():
            assert mpl.rcParams["svg.fonttype"] == "none"
            raise sl.InvalidProblem("stop")

    with pytest.raises(sl.InvalidProblem):
        stop()


def test_threads_do_not_mix_up_settings(tmp_path: Path) -> None:
    """Two that change settings in turn would restore those of the other."""
    found, trouble = result(question(5, 2)), []

    def work(number: int) -> None:
        try:
            for _ in range(2):
                sl.plot.save(sl.plot.arms(found), tmp_path / f"{number}.svg")
        except Exception as error:
            trouble.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not trouble
    assert len({(tmp_path / f"{number}.svg").read_bytes() for number in range(3)}) == 1


def test_figures_are_not_kept() -> None:
    def count() -> int:
        gc.collect()
        return sum(isinstance(one, Figure) for one in gc.get_objects())

    before = count()
    for _ in range(3):
        sl.plot.arms(result(question(5, 2)))
    assert count() <= before


def test_every_strategy_looks_different() -> None:
    """Also in grey: no two share line and marker."""
    looks = [look_of(name) for name in ("lower bound", *sl.strategies.names())]
    main = looks[:1] + [
        look_of(name) for name in ("race", "wnelim", "vmedelim", "medelim-max", "adapted-medelim")
    ]
    main += [look_of(name) for name in ("single-stage", "level-race", "short-race", "racing", "lucb-mixture")]
    main += [look_of(name) for name in ("uniform", "bechhofer")]
    assert len({one.marker for one in main}) == len(main)
    assert len({str(one.line) for one in main}) >= 8


# --- files ----------------------------------------------------------------------------------------

BEGINS = {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG"}


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png", ".SVG"])
def test_files_are_the_same_every_time(suffix: str, tmp_path: Path) -> None:
    made = []
    for number in range(2):
        path = tmp_path / f"{number}{suffix}"
        sl.plot.save(sl.plot.arms(result(question(5, 2))), path)
        made.append(path.read_bytes())
    assert made[0] == made[1]
    assert made[0].startswith(BEGINS[suffix.lower()])
    assert len(made[0]) > 1000
    assert not any(
        word in made[0] for word in (b"CreationDate", b"<dc:date>", b"matplotlib.org", b"Software")
    )


@pytest.mark.parametrize("kind", OTHERS)
def test_other_figures_are_drawn_and_the_same_every_time(kind: str, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        sl.plot.save(OTHERS[kind](), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert any("arms" in text or "pulls" in text for text in words(tmp_path / "a.svg"))


@pytest.mark.parametrize("name", ["figure.jpg", "figure", "figure.svg.gz", ".svg"])
def test_other_endings_are_refused_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(sl.InvalidProblem, match=r"use one of \.svg, \.pdf and \.png"):
        sl.plot.save(sl.plot.arms(result(question(2, 1))), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_only_figures_are_saved(tmp_path: Path) -> None:
    for wrong in (None, "figure", [1]):
        with pytest.raises(sl.InvalidProblem, match="must be what a function"):
            sl.plot.save(wrong, tmp_path / "x.svg")  # type: ignore[arg-type]


def test_a_missing_matplotlib_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    data: Any = sl.plot.arms_data(result(question(2, 1)))
    assert len(data.arms) == 2, "numbers need no matplotlib"
    with pytest.raises(sl.InvalidProblem, match=r"pip install 'matplotlib>=[\d.]+'$"):
        sl.plot.arms(result(question(2, 1)))


def test_warnings_are_errors_here() -> None:
    with pytest.raises(UserWarning):
        warnings.warn("a glyph is missing", stacklevel=1)
