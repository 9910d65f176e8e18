"""Cells that a tool measures a round at a time: what was measured is kept when something fails."""

from collections.abc import Mapping, Sequence

import pytest

import shortlist as sl
from shortlist.adapters.cells import Cells, Measured, described


class Tool(Cells):
    """Candidates whose last one fails a few times, after the others were evaluated."""

    def __init__(self, n_failures: int, texts: Sequence[str] = ("x", "y", "z")) -> None:
        super().__init__(["a", "b", "c"], {str(k): k for k in range(20)}, texts)
        self.n_failures, self.n_evaluated = n_failures, 0

    def evaluate(self, wanted: Mapping[int, Sequence[str]], found: Measured) -> None:
        """Add scores: c is better than the others."""
        for arm, items in wanted.items():
            if arm == 2 and self.n_failures:
                self.n_failures -= 1
                raise ConnectionError("no reply")
            self.n_evaluated += len(items)
            found.scores.update({(arm, item): float(int(item) % 10 < 3 * arm + 2) for item in items})


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
