"""Maximise or minimise: the same strategies, and everything that is shown in the user's own units."""

import pickle
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.bounds.characteristic import characteristic_bracket
from shortlist.report.result_text import result_text
from shortlist.simulation import is_bad
from tests.playing import fitting
from tests.questions import known, unknown

VARIANCES = [0.5, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0, 3.0]
MEANS = np.array([3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.5, 6.0])


def problem(**changes: Any) -> sl.Problem:
    return sl.Problem(m=3, epsilon=1.5, delta=0.1, variances=VARIANCES, goal="minimise").changed(**changes)


def rewards(arm: int, count: int, rng: np.random.Generator) -> Any:
    return MEANS[arm] + rng.normal(0.0, VARIANCES[arm] ** 0.5, count)


def negated(arm: int, count: int, rng: np.random.Generator) -> Any:
    return -rewards(arm, count, rng)


@pytest.mark.parametrize("name", sl.strategies.names())
def test_minimising_x_is_maximising_minus_x_bit_for_bit(name: str) -> None:
    asked = fitting(name, problem())
    mirrored = asked.changed(goal="maximise")
    assert asked.goal == "minimise"
    small, large = sl.Session(asked, name, seed=3), sl.Session(mirrored, name, seed=3)
    one, other = sl.drive(small, rewards, budget=100_000), sl.drive(large, negated, budget=100_000)
    assert one.indices.tolist() == other.indices.tolist()
    assert one.arms.pulls.tolist() == other.arms.pulls.tolist()
    assert (one.stop, one.n_pulls, one.n_rounds) == (other.stop, other.n_pulls, other.n_rounds)
    assert one.arms.means.tobytes() == (-other.arms.means).tobytes()
    assert answers(small, 1.0) == answers(large, -1.0) != []


def answers(session: sl.Session, sign: float) -> list[tuple[int, int, str]]:
    """Return all answers, exactly; how many come in one event depends on how long they take."""
    return sorted(
        (event.round, arm, (sign * mean).hex())
        for event in session.events
        for arm, mean in zip(event.arms.tolist(), event.means.tolist(), strict=True)
    )


def test_replay_of_a_minimising_run_is_the_run() -> None:
    session = sl.Session(problem(), seed=1)
    result = sl.drive(session, rewards)
    again = sl.Session.replay(problem(), session.strategy, session.events, seed=1).result
    assert again.indices.tolist() == result.indices.tolist()


def test_the_smallest_observed_mean_comes_first() -> None:
    result = sl.select(rewards, problem(epsilon=0.5), seed=2)
    assert set(result.indices.tolist()) <= {1, 3, 6, 0}
    observed = result.arms.means[result.indices]
    assert observed.tolist() == sorted(observed)
    assert observed[0] > 0  # in the user's own units


@pytest.mark.parametrize("m", [1, 3])
def test_the_guarantee_speaks_of_the_smallest(m: int) -> None:
    which = "smallest" if m == 1 else "3rd smallest"
    sentence = sl.select(rewards, problem(m=m)).require_guarantee().sentence
    assert f" is at most 1.5 above the {which} true mean." in sentence
    zone = problem(m=m, rewards=sl.Gaussian, guarantee="indifference")
    said = sl.select(rewards, zone, "bechhofer").require_guarantee().sentence
    wanted = "the arm with the smallest mean is" if m == 1 else "the 3 arms with the smallest means are"
    leading = (
        "its true mean lies below that of every" if m == 1 else "their true means lie below those of all"
    )
    assert f"{wanted} selected, provided that {leading} other arm" in said
    screen = sl.select(rewards, problem(m=m), "medelim").require_guarantee().sentence
    assert "the k-th smallest true mean of the arms kept is at most 1.5 above the k-th smallest" in screen


@pytest.mark.parametrize("name", ["biz", "kn"])
def test_one_smallest_arm_with_an_indifference_zone(name: str) -> None:
    asked = known(1, 2.0, 0.1, [1.0] * 4, noise="gaussian", guarantee="indifference", goal="minimise")
    result = sl.select(lambda arm, count, rng: rng.normal(3.0 * arm, 1.0, count), asked, name)
    assert result.selected == ("arm-0",)
    assert "smallest" in result.require_guarantee().sentence


def test_sentences_for_maximising_stay_as_they_were() -> None:
    asked = problem(goal="maximise")
    assert "below the 3rd best true mean." in sl.select(rewards, asked).require_guarantee().sentence
    zone = asked.changed(rewards=sl.Gaussian, guarantee="indifference")
    said = sl.select(rewards, zone, "bechhofer").require_guarantee().sentence
    assert (
        "the 3 best arms are selected, provided that their true means exceed those of all other arms" in said
    )


def test_only_minimise_leaves_a_mark_on_the_digest() -> None:
    plain = sl.Problem(m=3, epsilon=1.5, delta=0.1, variances=VARIANCES)
    assert problem(goal="maximise") == plain
    assert problem() != plain
    assert problem().to_dict()["goal"] == "minimise"
    assert plain.to_dict()["goal"] == "maximise"


def test_the_goal_survives_change_and_pickling() -> None:
    assert problem().changed(m=2).goal == "minimise"
    assert pickle.loads(pickle.dumps(problem())) == problem()
    assert "minimise" in repr(problem())
    assert "minimise" not in repr(problem(goal="maximise"))


@pytest.mark.parametrize("goal", ["minimize", "MINIMISE", "", None, 1])
def test_other_goals_are_refused(goal: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match=r"`goal` is .*maximise, minimise"):
        problem(goal=goal)


def test_bad_arms_are_those_far_above() -> None:
    assert np.flatnonzero(~is_bad(problem(epsilon=0.5), MEANS)).tolist() == [0, 1, 3, 6]


@pytest.mark.slow
def test_simulate_minimises() -> None:
    noiseless = {"replications": 2, "rewards": "noiseless"}
    found = sl.simulate(problem(), MEANS, "race", **noiseless)  # type: ignore[arg-type]
    other = sl.simulate(problem(goal="maximise"), -MEANS, "race", **noiseless)  # type: ignore[arg-type]
    assert found.pulls.tolist() == other.pulls.tolist()
    assert found.selected.tolist() == other.selected.tolist()
    assert set(found.selected[0].tolist()) <= {0, 1, 3, 6}
    assert found.errors == 0
    noisy = sl.simulate(problem(), MEANS, replications=50, seed=4)
    assert noisy.errors <= 5
    assert sl.simulate(problem(epsilon=0.5), MEANS, replications=50, seed=4).errors <= 5


@pytest.mark.parametrize("build", [sl.instances.slippage, sl.instances.linear])
def test_instances_have_the_same_good_arms_either_way(build: Any) -> None:
    small, large = build(problem()), build(problem(goal="maximise"))
    assert small.means.tolist() == (-large.means).tolist()
    assert is_bad(small.problem, small.means).tolist() == is_bad(large.problem, large.means).tolist()


def test_the_characteristic_bound_is_the_same_either_way() -> None:
    small = characteristic_bracket(problem(), MEANS)
    assert small == characteristic_bracket(problem(goal="maximise"), -MEANS)
    assert small != characteristic_bracket(problem(goal="maximise"), MEANS)


def test_the_report_knows_whether_the_answer_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    Console(width=100).print(result_text(sl.select(rewards, problem()), MEANS))
    assert "the answer is right" in capsys.readouterr().out


@pytest.mark.parametrize("strategy", ["t-race", "rinott", "dudewicz-dalal", "kim-nelson", "race", "wnelim"])
def test_with_unknown_variances_minimising_is_maximising_the_opposite(strategy: str) -> None:
    guarantee = "indifference" if strategy == "kim-nelson" else "pac"
    least = unknown(1, 1.5, 0.1, n=4, pilot=12, guarantee=guarantee, goal="minimise")

    def measure(arm: int, count: int, rng: np.random.Generator) -> FloatArray:
        return rng.normal(arm, 0.5 + arm, count)

    down = sl.select(measure, least, strategy, seed=4)
    up = sl.select(lambda *call: -measure(*call), least.changed(goal="maximise"), strategy, seed=4)
    assert down.indices.tolist() == up.indices.tolist() == [0]
    assert down.n_pulls == up.n_pulls
    assert (down.arms.means == -up.arms.means).all()
    assert "smallest" in str(down)
    assert "smallest" not in str(up)
