"""Cells that a tool measures a round at a time: what was measured is kept when something fails."""

import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import shortlist as sl
from shortlist.adapters.cells import Cells, Measured, described
from shortlist.errors import StoreTrouble
from shortlist.store import Answered


class Tool(Cells):
    """Candidates whose last one fails a few times, after the others were evaluated."""

    def __init__(self, n_failures: int, texts: Sequence[str] = ("x", "y", "z")) -> None:
        super().__init__(["a", "b", "c"], {str(k): k for k in range(20)}, texts)
        self.n_failures, self.n_evaluated = n_failures, 0
        self.error: BaseException = ConnectionError("no reply")
        self.after: Callable[[int], object] = lambda _: None

    def evaluate(self, wanted: Mapping[int, Sequence[str]], found: Measured) -> None:
        """Add scores: c is better than the others."""
        for arm, items in wanted.items():
            if arm == 2 and self.n_failures:
                self.n_failures -= 1
                raise self.error
            if found.is_over:
                return
            self.n_evaluated += len(items)
            found.add({(arm, item): float(int(item) % 10 < 3 * arm + 2) for item in items})
            self.after(arm)


def test_what_was_evaluated_before_an_error_is_not_evaluated_again() -> None:
    plain, failing = Tool(0), Tool(3)
    results = [sl.select(one, one.problem(1, 0.1, 0.1)) for one in (plain, failing)]
    assert [result.selected for result in results] == [("c",), ("c",)]
    assert failing.n_evaluated == plain.n_evaluated == results[0].n_pulls


def test_candidates_are_told_apart_by_what_they_are() -> None:
    assert Tool(0).about == Tool(5).about
    other = Tool(0, ["x", "y", "Z"]).about
    assert [name for name in other if other[name] != Tool(0).about[name]] == ["candidate c"]
    assert described({"f": len, 1: [None, 2.5, Tool]}) == {
        "f": "builtins.len",
        "1": [None, 2.5, f"{__name__}.Tool"],
    }


@pytest.mark.parametrize("change", [0, 1])
def test_a_run_goes_on_only_with_the_same_candidates(tmp_path: object, change: int) -> None:
    store = f"{tmp_path}/runs.db"
    first = Tool(0)
    began = sl.select(first, first.problem(1, 0.1, 0.1), store=store, name="r")
    again = Tool(0, ["x", "y", "Z" if change else "z"])
    if change:
        with pytest.raises(sl.errors.ChangedRun, match="candidate c was"):
            sl.select(again, again.problem(1, 0.1, 0.1), store=store, name="r")
    else:
        assert sl.select(again, again.problem(1, 0.1, 0.1), store=store, name="r").n_pulls == began.n_pulls
    assert again.n_evaluated == 0


# --- what a run keeps when it ends in the middle of a round ---------------------------------------------


class Crash(BaseException):
    """The end of the process."""


def test_scores_are_recorded_before_the_round_ends(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    tool = Tool(1)
    tool.error = Crash()
    with pytest.raises(Crash):
        sl.select(tool, tool.problem(1, 0.1, 0.1), store=store)
    assert tool.n_evaluated > 0
    assert sl.Session.resume(store).n_made == tool.n_evaluated
    again, plain = Tool(0), Tool(0)
    result = sl.select(again, again.problem(1, 0.1, 0.1), store=store)
    assert result.selected == sl.select(plain, plain.problem(1, 0.1, 0.1)).selected
    assert tool.n_evaluated + again.n_evaluated == result.n_pulls == plain.n_evaluated


@pytest.mark.parametrize("size", [1, 3])
def test_a_call_is_recorded_when_all_its_scores_are_known(tmp_path: Path, size: int) -> None:
    class OneByOne(Tool):
        def evaluate(self, wanted: Mapping[int, Sequence[str]], found: Measured) -> None:
            for arm, items in wanted.items():
                for item in items:
                    if self.n_evaluated == 7:
                        raise Crash
                    super().evaluate({arm: [item]}, found)

    tool = OneByOne(0)
    with pytest.raises(Crash):
        sl.select(tool, tool.problem(1, 0.1, 0.1), store=tmp_path / "runs.db", pulls_per_call=size)
    session = sl.Session.resume(tmp_path / "runs.db")
    assert any(isinstance(record.event, Answered) for record in session.records)
    assert session.n_made == 7 if size == 1 else 7 - size < session.n_made <= 7


def test_ctrl_c_ends_a_round_before_the_next_candidate(tmp_path: Path) -> None:
    tool = Tool(0)
    tool.after = lambda arm: signal.raise_signal(signal.SIGINT) if arm == 0 else None
    with pytest.raises(KeyboardInterrupt):
        sl.select(tool, tool.problem(1, 0.1, 0.1), store=tmp_path / "runs.db")
    n_first = tool.n_evaluated
    assert sl.Session.resume(tmp_path / "runs.db").n_made == n_first
    tool.after = lambda _: None
    result = sl.select(tool, tool.problem(1, 0.1, 0.1), store=tmp_path / "runs.db")
    assert tool.n_evaluated == result.n_pulls
    assert 2 * n_first < result.n_pulls


def test_a_budget_may_end_within_a_round() -> None:
    tool = Tool(0)
    n_first = sl.Session(tool.problem(1, 0.1, 0.1)).ask()[0].count
    result = sl.select(tool, tool.problem(1, 0.1, 0.1), budget=2 * n_first + 1)
    assert tool.n_evaluated == 2 * n_first
    assert not result.is_answer


def test_a_store_that_fails_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreTrouble("the disk is full.")

    tool = Tool(0)
    monkeypatch.setattr(sl.Session, "answer", full)
    with pytest.raises(StoreTrouble, match="the disk is full"):
        sl.select(tool, tool.problem(1, 0.1, 0.1), store=tmp_path / "runs.db")
    assert tool.n_evaluated == sl.Session(tool.problem(1, 0.1, 0.1)).ask()[0].count  # of the first candidate


def test_a_score_out_of_bounds_ends_the_run_and_the_others_count(tmp_path: Path) -> None:
    class Wrong(Tool):
        def evaluate(self, wanted: Mapping[int, Sequence[str]], found: Measured) -> None:
            super().evaluate({arm: items for arm, items in wanted.items() if arm < 2}, found)
            found.add({(2, wanted[2][0]): 7.0})

    tool = Wrong(0)
    with pytest.raises(sl.errors.MeasurementFailed, match=r"the score 7 of c on item \d+ is refused"):
        sl.select(tool, tool.problem(1, 0.1, 0.1), store=tmp_path / "runs.db")
    assert sl.Session.resume(tmp_path / "runs.db").n_made == tool.n_evaluated > 0


def test_in_another_thread_nothing_is_evaluated_twice() -> None:
    tool, plain = Tool(2), Tool(0)
    with ThreadPoolExecutor(1) as executor:
        result = sl.select(tool, tool.problem(1, 0.1, 0.1), executor=executor)
    assert result.selected == sl.select(plain, plain.problem(1, 0.1, 0.1)).selected
    assert tool.n_evaluated == result.n_pulls


def test_the_item_of_a_score_out_of_bounds_is_named() -> None:
    asked: list[Sequence[int]] = []

    def measure(_arm: int, items: Sequence[int]) -> list[float]:
        asked.append(items)
        return [*[0.0] * (len(items) - 1), 7.0]

    problem = sl.Problem(m=1, epsilon=0.1, delta=0.1, n=3, rewards=sl.Bernoulli(), items=50)
    with pytest.raises(sl.errors.MeasurementFailed) as caught:
        sl.select(measure, problem, pulls_per_call=5, turns=1)
    assert len(asked[0]) > 1
    assert f"on item {asked[0][-1]} is refused" in str(caught.value)
