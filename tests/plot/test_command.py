"""`shortlist plot`: figures from the command line."""

import json
from contextlib import closing
from pathlib import Path

import pytest

import shortlist as sl
from shortlist.cli.plot import OF_RUNS, TAKES
from tests.cli.calling import BY_AWK, QUESTION, SIMULATED, Calls

pytestmark = pytest.mark.slow

QUICK = {
    "heterogeneity": ["-n", "8", "-m", "2", "--strategy", "wnelim"],
    "illustrative": [],
    "epsilon": ["-n", "3", "-m", "1", "--strategy", "wnelim", "--replications", "3"],
    "scaling": ["--over", "m", "-n", "6", "--strategy", "wnelim", "--multiple"],
}


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The command line, where a run `done` has ended and `trial` has no pulls."""
    calls = Calls(tmp_path, capsys, monkeypatch)
    for name, text in (("done", SIMULATED), ("trial", QUESTION)):
        calls.write(f"{name}.toml", text)
    assert calls("run", "done.toml").status == 0
    assert calls("begin", "trial.toml").status == 0
    return calls


def test_every_kind_is_tried() -> None:
    assert set(TAKES) == {*OF_RUNS, *QUICK}


@pytest.mark.parametrize("kind", OF_RUNS)
def test_figures_of_runs(call: Calls, kind: str) -> None:
    before = (call.folder / "shortlist.db").read_bytes()
    done = call("plot", kind, "done", "-o", "figure.svg")
    assert (done.status, done.words, done.err) == (0, "Written to figure.svg.", "")
    assert (call.folder / "figure.svg").stat().st_size > 1000
    done = call("plot", kind, "done", "--json")
    assert (done.status, done.err) == (0, "")
    with closing(sl.open_store("shortlist.db", read_only=True)) as store:
        session = sl.Session.resume(store, "done")
        result, own = session.result, session.worst_case_pulls
        data = {
            "rounds": sl.plot.rounds_data(session).to_dict(),
            "spent": sl.plot.spent_data(result, own).to_dict(),
        }.get(kind, sl.plot.arms_data(result).to_dict())
    assert done.data == json.loads(json.dumps(data))
    assert (call.folder / "shortlist.db").read_bytes() == before


def test_a_run_under_way_can_be_drawn(call: Calls) -> None:
    (first, *_) = call.sheet()
    assert call.tell([first | {"mean": "0.5"}]).status == 0
    for kind in OF_RUNS:
        assert call("plot", kind, "trial", "-o", "figure.png").status == 0
    assert call("plot", "rounds", "trial", "--json").data["is_whole"] is False


@pytest.mark.parametrize("kind", QUICK)
def test_figures_without_a_run(call: Calls, kind: str) -> None:
    quick = [] if kind == "illustrative" else ["--quick"]
    done = call("plot", kind, *QUICK[kind], *quick, "-o", "figure.svg", "--json")
    assert (done.status, done.err) == (0, "")
    assert (call.folder / "figure.svg").stat().st_size > 1000
    data = done.data
    if kind == "scaling":
        assert (data["over"], data["values"]) == ("m", [1.0, 2.0, 3.0])
        assert list(data["worst_case_pulls"]) == ["wnelim"]
    elif kind == "heterogeneity":
        assert len(data["values"]) == 7
    elif kind == "epsilon":
        assert data["strategies"]["wnelim"]["runs"] == [3] * 5
        assert data["epsilons"][2] == 0.5
    else:
        assert data[0]["k"] == 2


def test_epsilon_takes_a_file_with_simulated_arms(call: Calls) -> None:
    done = call("plot", "epsilon", "done.toml", "--quick", "--replications", "2", "--json")
    assert done.status == 0
    assert done.data["epsilons"] == [0.125, 0.25, 0.5, 1.0, 2.0]
    assert list(done.data["strategies"]) == ["auto"]
    call.write("measured.toml", QUESTION + BY_AWK)
    measured = call("plot", "epsilon", "measured.toml", "--json")
    assert measured.status == 2
    assert "true means are unknown" in measured.err


MISTAKES = {
    "an ending that is unknown": (
        ["arms", "done", "-o", "figure.jpg"],
        "ends in '.jpg'; use one of .svg, .pdf",
    ),
    "no ending": (["arms", "done", "-o", "figure"], "has no ending; use one of"),
    "no file": (["arms", "done"], "no output file was given. Name one with -o, such as -o figure.svg"),
    "no folder": (["arms", "done", "-o", "no/figure.svg"], "the folder no does not exist"),
    "no run": (["arms", "-o", "figure.svg"], "no run was given. Use `shortlist plot arms RUN`"),
    "another run": (["arms", "other", "-o", "figure.svg"], "there is no run 'other'"),
    "a problem file": (["arms", "done.toml", "-o", "figure.svg"], "done.toml is a problem file"),
    "no pulls": (
        ["arms", "trial", "-o", "figure.svg"],
        "'trial' has nothing to draw: it has no results yet",
    ),
    "another kind": (["pie", "done", "-o", "figure.svg"], "'pie' is not one of"),
    "a run where none is meant": (["scaling", "done", "-o", "figure.svg"], "'done' has no effect here"),
    "an option of another kind": (
        ["arms", "done", "-m", "3", "-o", "figure.svg"],
        "-m has no effect on the figure",
    ),
    "a store for none": (["scaling", "--store", "x.db", "-o", "figure.svg"], "--store has no effect"),
    "what varies": (["scaling", "-n", "9", "-o", "figure.svg"], "--arms has no effect on the figure scaling"),
    "what the file says": (
        ["epsilon", "done.toml", "--delta", "0.1", "-o", "f.svg"],
        "--delta has no effect",
    ),
    "quick for nothing": (["illustrative", "--quick", "-o", "figure.svg"], "--quick has no effect"),
    "another strategy": (
        ["scaling", "--strategy", "best", "-o", "figure.svg"],
        "there is no strategy 'best'",
    ),
    "auto among others": (["scaling", "--strategy", "auto", "-o", "figure.svg"], "name the strategies"),
    "no replications": (["epsilon", "--replications", "0", "-o", "figure.svg"], "`replications` is 0"),
    "no arms": (["epsilon", "-n", "0", "-o", "figure.svg"], "`--arms` is 0"),
    "too few arms": (["heterogeneity", "-n", "1", "-o", "figure.svg"], "`n` is 1"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained_and_nothing_is_written(call: Calls, mistake: str) -> None:
    before = sorted(path.name for path in call.folder.iterdir() if path.stem != "shortlist")
    arguments, said = MISTAKES[mistake]
    done = call("plot", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in " ".join(done.err.split())
    assert sorted(path.name for path in call.folder.iterdir() if path.stem != "shortlist") == before


def test_a_run_that_needed_no_pulls_has_nothing_to_draw(call: Calls) -> None:
    call.write("all.toml", QUESTION.replace("m = 1", "m = 3"))
    call("begin", "all.toml")
    done = call("plot", "pulls", "all", "-o", "figure.svg")
    assert done.status == 2
    assert "all arms are selected without any pull" in done.err


def test_a_missing_matplotlib_is_explained_before_anything_is_done(
    call: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    done = call("plot", "arms", "done", "-o", "figure.svg")
    assert done.status == 2
    assert "pip install 'matplotlib>=" in done.err
    assert call("plot", "arms", "done", "--json").status == 0


def test_a_file_that_cannot_be_written_is_trouble(call: Calls) -> None:
    (call.folder / "figure.svg").mkdir()
    done = call("plot", "arms", "done", "-o", "figure.svg")
    assert done.status == 4
    assert "could not be written" in done.err
