"""Results of adapters in their own words."""

import numpy as np
import pytest

import shortlist as sl
from shortlist.adapters.summary import promise, summary

SCORES = np.array([[(7 * item + 11 * arm) % 10 < 2 + 2 * arm for item in range(60)] for arm in range(4)])


def result(m: int = 1, epsilon: float = 0.1, **options: object) -> sl.Result:
    asked = {key: options.pop(key) for key in ("goal", "target") if key in options}
    names = ["first", "second", "third", "fourth"]
    problem = sl.Problem(m, epsilon, 0.05, names=names, rewards=sl.Bernoulli(), items=60, **asked)  # type: ignore[arg-type]
    return sl.select(lambda arm, items: SCORES[arm, items].astype(float).tolist(), problem, **options)  # type: ignore[arg-type]


def test_a_table_of_candidates() -> None:
    found = result()
    lines = summary(found, item="split").splitlines()
    assert lines[0] == "Selected 1 of 4 candidates: fourth"
    assert lines[2] == "candidate  mean score  splits"
    assert [line.split()[0] for line in lines[3:7]] == ["fourth", "third", "second", "first"]
    assert lines[3].split()[1:] == [f"{found.arms.means[3]:.4f}", str(found.arms.pulls[3])]
    assert lines[7] == found.effort


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "the selected candidate has a mean score over all 60 splits that is at most 0.1 below"),
        ({"epsilon": 0.0}, "has a mean score over all 60 splits that is the largest."),
        (
            {"m": 2, "epsilon": 0.0},
            "each of the 2 selected has a mean score over all 60 splits that is one of",
        ),
        ({"m": 2}, " below the 2nd largest."),
        ({"goal": "minimise"}, " above the smallest."),
        ({"target": "population", "epsilon": 0.6}, "over all such splits"),
        (
            {"budget": 2},
            "the remaining budget is too small for the next batch of pulls. Nothing is certified.",
        ),
    ],
)
def test_what_is_promised(asked: dict[str, object], words: str) -> None:
    assert words in promise(result(**asked), item="split")  # type: ignore[arg-type]
