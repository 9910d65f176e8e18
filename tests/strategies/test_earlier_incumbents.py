"""What was certified for arms that looked best earlier is not lost when others look best."""

import numpy as np
import pytest

import shortlist as sl

pytestmark = pytest.mark.slow

GAUSSIAN = sl.Gaussian()
CASES = [
    pytest.param(
        sl.Problem(1, 0.3, 0.05, n=5, rewards=GAUSSIAN, items=sl.Blocks()), "paired-race", 1, id="blocks"
    ),
    pytest.param(sl.Problem(1, 0.3, 0.05, n=5, rewards=GAUSSIAN), "paired-race", 1, id="streams"),
    pytest.param(sl.Problem(2, 0.3, 0.05, n=8, rewards=GAUSSIAN), "t-cut-race", 2, id="limits"),
]


@pytest.mark.parametrize(("problem", "name", "seed"), CASES)
def test_what_is_certified_does_not_get_worse_before_the_end(
    problem: sl.Problem, name: str, seed: int
) -> None:
    means, seen = np.linspace(0.0, 0.3, problem.n), [np.inf]

    def measured(arm: int, count: int, rng: np.random.Generator) -> list[float]:
        return list(rng.normal(means[arm], 1.0, count))

    def in_blocks(arm: int, blocks: list[int]) -> list[float]:
        return [np.random.default_rng([block, arm]).normal(means[arm], 1.0) for block in blocks]

    def watch(session: sl.Session) -> None:
        if not session.is_done:
            certificate = session.certified
            assert certificate.epsilon <= seen[-1]
            seen.append(certificate.epsilon)

    measure = measured if problem.items is None else in_blocks
    for run in range(seed, seed + 12):
        seen[:] = [np.inf]
        result = sl.select(measure, problem, name, seed=run, progress=watch)
        assert result.is_answer
        assert len({*seen}) > 2
