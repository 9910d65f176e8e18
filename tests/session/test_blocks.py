"""Runs in blocks: all arms get the same blocks, and the answer does not depend on the workers."""

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray, IntArray
from shortlist.items import Blocks
from shortlist.problem import Problem
from shortlist.store import open_store
from shortlist.store.codec import decoded, encoded

N = 5


def question(**changes: Any) -> Problem:
    given: dict[str, Any] = {"m": 1, "epsilon": 0.4, "delta": 0.05, "n": N, "rewards": sl.Gaussian()}
    return Problem(**(given | {"items": sl.Blocks()} | changes))


def reward(arm: int, block: int) -> float:
    common = np.random.default_rng(block).normal(0, 10)
    return float(common + 0.3 * arm + np.random.default_rng([block, arm]).normal())


def measure(arm: int, blocks: list[int]) -> list[float]:
    return [reward(arm, block) for block in blocks]


def exact(result: sl.Result) -> tuple[Any, ...]:
    return result.indices.tolist(), result.n_pulls - result.n_ahead, result.certified_epsilon, result.stop


@pytest.fixture(scope="module")
def alone() -> sl.Result:
    return sl.select(measure, question(), seed=3)


def test_the_best_arm_is_found(alone: sl.Result) -> None:
    assert alone.selected == ("arm-4",)
    assert alone.is_answer
    assert f"in {alone.arms.pulls.max()} blocks" in alone.effort
    assert alone.lower_bound is None
    assert alone.gap is None


def test_all_arms_get_the_same_blocks_in_the_same_order() -> None:
    seen: dict[int, list[int]] = {}

    def noted(arm: int, blocks: list[int]) -> list[float]:
        seen.setdefault(arm, []).extend(blocks)
        return measure(arm, blocks)

    sl.select(noted, question(), seed=3, turns=1)
    longest = max(seen.values(), key=len)
    assert all(own == longest[: len(own)] for own in seen.values())
    assert longest == Blocks().values_at(question().entropy(3), 0, len(longest))


def test_seeds_of_blocks_are_distinct_and_follow_from_the_entropy_of_the_run() -> None:
    values = Blocks().values_at(0, 0, 20_000)
    assert len(set(values)) == 20_000
    assert min(values) >= 0
    assert max(values) < 2**31
    assert values[500:510] == Blocks().values_at(0, 500, 10)
    assert len(set(values) & set(Blocks().values_at(1, 0, 20_000))) < 10
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03


def test_a_function_of_all_arms_gets_the_same_answer(alone: sl.Result) -> None:
    def table(arms: IntArray, blocks: Any, *_: Any) -> FloatArray:
        return np.array([measure(int(arm), blocks) for arm in arms])

    assert exact(sl.select(sl.vectorised(table), question(), seed=3)) == exact(alone)


@pytest.mark.parametrize("pulls_per_call", [None, 1, 3])
def test_threads_get_the_same_answer(alone: sl.Result, pulls_per_call: int | None) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = sl.select(measure, question(), seed=3, executor=threads, pulls_per_call=pulls_per_call)
    assert exact(found) == exact(alone)


def test_a_stored_run_goes_on(alone: sl.Result, tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    short = sl.select(measure, question(), seed=3, store=store, budget=60)
    assert short.stop is sl.Stop.BUDGET
    assert 0.4 < short.certified_epsilon < np.inf
    assert exact(sl.select(measure, question(), seed=3, store=store)) == exact(alone)
    smaller = sl.select(measure, question(epsilon=0.25), seed=3, store=store)
    assert smaller.is_answer
    assert smaller.n_pulls > alone.n_pulls
    with pytest.raises(sl.errors.ChangedRun, match="blocks was True"):
        sl.select(measure, question(items=None, epsilon=0.25), seed=3, store=store)
    assert isinstance(sl.Session.resume(open_store(store)).problem.items, Blocks)


def test_a_question_about_blocks_survives_its_log() -> None:
    session = sl.Session(question(costs=[1.0, 2, 3, 4, 5]), seed=1)
    began = next(record.event for record in session.records)
    again = decoded(*encoded(began)).problem  # type: ignore[union-attr]
    assert again == session.problem
    assert again.has_blocks
    assert again != question()
    assert question() != question(items=None)


def test_by_hand_each_block_is_answered() -> None:
    session = sl.Session(question(), seed=3)
    tickets = session.ask()
    blocks = [session.items_of(ticket) for ticket in tickets]
    assert all(own == blocks[0] for own in blocks)
    session.tell(tickets, [measure(ticket.arm, own) for ticket, own in zip(tickets, blocks, strict=True)])
    assert session.result.n_rounds == 1
    with pytest.raises(sl.MeasurementFailed, match="each"):
        session.tell(session.ask(), means=[0.0] * len(session.ask()))


def test_rewards_within_bounds_can_come_in_blocks() -> None:
    def success(arm: int, blocks: list[int]) -> list[float]:
        return [float(np.random.default_rng(block).random() < 0.2 + 0.15 * arm) for block in blocks]

    problem = question(rewards=sl.Bernoulli(), epsilon=0.1)
    found = sl.select(success, problem)
    assert found.selected == ("arm-4",)
    assert found.strategy == "shared-items"
    assert found.certified_epsilon <= 0.1
    apart = question(rewards=sl.Bernoulli(), epsilon=0.1)
    run = sl.simulate(apart, [0.2, 0.35, 0.5, 0.65, 0.8], correlation=0.9, replications=5)
    assert run.errors == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewards": sl.Gaussian([1.0] * N), "n": None}, "without variances"),
        ({"rewards": sl.SubGaussian([1.0] * N), "n": None}, "without variances"),
        ({"rewards": sl.Gaussian(pilot=20)}, "no pilot"),
        ({"known": {0: [1.0, 2.0]}}, "blocks have none"),
        ({"epsilon": 0}, "epsilon"),
        ({"guarantee": "indifference"}, "pac"),
    ],
)
def test_what_does_not_go_with_blocks_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(sl.InvalidProblem, match=said):
        question(**changes)


def test_a_plan_says_how_a_run_begins() -> None:
    made = sl.plan(question())
    assert made.best.strategy == "paired-race"
    assert made.best.worst_case_pulls is None
    assert made.lower_bound is None
    assert "8 blocks of all 5 arms, 40 pulls in total" in made.why
    with pytest.raises(sl.errors.NoGuarantee, match=r"cannot be predicted.* call `select` with budget="):
        sl.plan(question(), budget=1000)
    usual = made.usual.pulls["paired-race"]
    assert 40 <= usual.low <= usual.median <= usual.high


def test_simulations_of_blocks_check_what_they_are_given() -> None:
    means = [0.0] * N
    for wrong, said in (
        ({"correlation": 1.5, "variances": [1.0] * N}, "between 0 and 1"),
        ({"covariance": np.eye(3)}, "matrix"),
        ({"covariance": -np.eye(N)}, "negative"),
        ({}, "variances"),
        ({"variances": [1.0] * N, "rewards": "uniform"}, "rewards"),
    ):
        with pytest.raises(sl.InvalidProblem, match=said):
            sl.simulate(question(), means, **wrong)
    with pytest.raises(sl.InvalidProblem, match="Blocks"):
        sl.simulate(question(items=None), means, variances=[1.0] * N, correlation=0.5)
    same = np.full((N, N), 0.5) + 0.5 * np.eye(N)
    assert sl.simulate(question(), [0.0, 0, 0, 0, 1], covariance=same, replications=5).errors == 0


# --- lockstep: blocks pass ------------------------------------------------------------------------------


def in_lockstep(**changes: Any) -> Problem:
    return question(**({"items": sl.Blocks(lockstep=True)} | changes))


def noting(made: list[tuple[int, int]]) -> Any:
    def noted(arm: int, blocks: list[int]) -> list[float]:
        made.extend((block, arm) for block in blocks)
        return measure(arm, blocks)

    return noted


@pytest.mark.parametrize("turns", [None, 1])
def test_in_lockstep_one_block_after_the_other_is_measured(turns: int | None) -> None:
    made: list[tuple[int, int]] = []
    found = sl.select(noting(made), in_lockstep(), seed=4, turns=turns)
    assert found.selected == ("arm-4",)
    blocks = [block for block, _ in made]
    places = {
        block: place for place, block in enumerate(Blocks().values_at(in_lockstep().entropy(4), 0, 1000))
    }
    passed = [places[block] for block in blocks]
    assert passed == sorted(passed)
    assert len(set(made)) == len(made)
    by_block = [[arm for block, arm in made if block == one] for one in dict.fromkeys(blocks)]
    assert all(set(later) <= set(earlier) for earlier, later in itertools.pairwise(by_block))
    orders = {tuple(arms) for arms in by_block if len(arms) == N}
    assert len(orders) > 5  # arms of a block are in random order,
    assert len({arms[0] for arms in orders}) > 3  # so that none is always first


def test_in_lockstep_the_answers_to_a_block_are_recorded_together() -> None:
    made: list[tuple[int, int]] = []
    n_made: list[int] = []
    sl.select(noting(made), in_lockstep(), seed=3, progress=lambda session: n_made.append(session.n_made))
    blocks = [block for block, _ in made]
    ends = [place + 1 for place in range(len(blocks)) if blocks[place : place + 2] != [blocks[place]] * 2]
    assert n_made == ends


def test_in_lockstep_a_budget_buys_whole_blocks() -> None:
    made: list[tuple[int, int]] = []
    found = sl.select(noting(made), in_lockstep(epsilon=0.05), seed=4, budget=10 * N + 3)
    assert found.stop is sl.Stop.BUDGET
    last, before = ({arm for block, arm in made if block == one} for one in (made[-1][0], made[-5][0]))
    assert made[-1][0] != made[-5][0]
    assert last == before
    assert len(made) <= 10 * N + 3
    made.clear()
    sl.select(noting(made), in_lockstep(epsilon=0.05), seed=4, budget=5 * N + 1)  # within the first round
    assert sorted(arm for _, arm in made) == sorted([*range(N)] * 5)


def test_in_lockstep_threads_get_the_same_answer_and_measure_nothing_ahead() -> None:
    alone = sl.select(measure, in_lockstep(), seed=3)
    with ThreadPoolExecutor(3) as threads:
        found = sl.select(measure, in_lockstep(), seed=3, executor=threads)
    assert exact(found) == exact(alone)
    assert found.n_pulls == alone.n_pulls


def test_a_stored_run_in_lockstep_goes_on(tmp_path: Path) -> None:
    store, alone = str(tmp_path / "runs.db"), sl.select(measure, in_lockstep(), seed=3)
    sl.select(measure, in_lockstep(), seed=3, store=store, budget=11 * N)
    assert exact(sl.select(measure, in_lockstep(), seed=3, store=store)) == exact(alone)
    with pytest.raises(sl.errors.ChangedRun, match="lockstep was True"):
        sl.select(measure, question(), seed=3, store=store)
    again = sl.Session.resume(open_store(store)).problem
    assert again == in_lockstep()
    assert repr(again.items) == "Blocks(lockstep=True)"
    assert pickle.loads(pickle.dumps(again)).is_lockstep


def test_what_does_not_go_with_lockstep_is_refused() -> None:
    with pytest.raises(sl.InvalidProblem, match="Gaussian"):
        in_lockstep(rewards=sl.Bernoulli())
    with pytest.raises(sl.InvalidProblem, match="True or False"):
        sl.Blocks(lockstep=2)  # type: ignore[arg-type]


def test_in_lockstep_a_block_with_a_failure_is_measured_again_as_a_whole() -> None:
    """Conditions pass: an arm that failed must not be measured later than the other arms of its block."""
    clock, made, rng = 0, [], np.random.default_rng(0)

    def drifting(arm: int, blocks: list[int]) -> list[float]:
        nonlocal clock
        clock += 1
        made.append((blocks[0], arm))
        if arm == 0 and made.count((blocks[0], 0)) == 1:
            raise OSError("busy")
        return [0.3 * clock - (arm == 0) + rng.normal(0, 0.3)]

    problem = question(n=2, epsilon=0.5, items=sl.Blocks(lockstep=True))
    found = sl.select(drifting, problem, retries=sl.Retries(first=0.0))
    assert found.selected == ("arm-1",)
    kept = {(block, arm): place for place, (block, arm) in enumerate(made)}  # the last call of each
    for block in {block for block, _ in made}:
        assert abs(kept[block, 0] - kept[block, 1]) == 1


def test_rewards_that_would_overflow_are_refused() -> None:
    session = sl.Session(question(n=2), seed=3)
    tickets = session.ask()
    huge = [1e200, -1e200] + [0.0] * (tickets[0].count - 2)
    with pytest.raises(sl.MeasurementFailed, match="too large"):
        session.tell(tickets, [huge, [0.0] * tickets[1].count])
    streams = sl.Session(question(n=2, items=None), "paired-race")
    with pytest.raises(sl.MeasurementFailed, match="too large"):
        streams.tell(streams.ask(), [sl.Summary(8, 0.0, 1e307), sl.Summary(8, 5.0, 1.0)])
