"""Which of some functions and programs is the fastest: what is timed when, what is said, and what is noted.

Times are simulated; the only real ones are those of the last test, which says nothing about speed.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.doctor.timing_notes import contradictions, level_notes, outliers
from shortlist.measure.result_files.timings import timings_in
from shortlist.measure.timing import TimingSource
from shortlist.timings import TimingRun, Timings, _percent_up, duration, timing_problem

pytestmark = pytest.mark.slow

RATIOS = [1.03, 1.0, 1.5, 1.04]


class Machine:
    """Simulated programs; a function of the number of timings so far disturbs them all."""

    def __init__(self, ratios: Sequence[float] = RATIOS, noise: float = 0.04, seed: int = 0) -> None:
        self.ratios, self.noise, self.rng = ratios, noise, np.random.default_rng(seed)
        self.timed: list[int] = []
        self.level: Callable[[int], float] = lambda _: 1.0

    def timer(self, arm: int) -> Callable[[], float]:
        def time() -> float:
            self.timed.append(arm)
            noise = math.exp(self.rng.normal(0, self.noise))
            return 0.1 * self.ratios[arm] * self.level(len(self.timed)) * noise

        return time

    def run(self, within: float = 0.02, warmup: int = 0, **question: Any) -> TimingRun:
        names = [f"p{arm}" for arm in range(len(self.ratios))]
        timers = [self.timer(arm) for arm in range(len(names))]
        return TimingRun(timing_problem(names, within, **question), TimingSource(timers, names, warmup))


def timed(machine: Machine, within: float = 0.02, seed: int = 0, **how: Any) -> Timings:
    limits = {key: how.pop(key) for key in ("budget", "deadline") if key in how}
    run = machine.run(within, **how)
    with run.session(seed=seed) as session:
        return run.driven(session, **limits)


def test_the_fastest_is_found_and_the_slowest_is_not_timed_any_more() -> None:
    machine = Machine()
    found = timed(machine)
    assert found.fastest == ("p1",)
    assert found.is_certified
    assert found.within <= 0.02
    counts = Counter(machine.timed)
    assert counts[2] < counts[1]
    assert [row.name for row in found.rows] == ["p1", "p0", "p3", "p2"]
    assert [row.n_runs for row in found.rows] == [counts[arm] for arm in (1, 0, 3, 2)]


def test_all_arms_are_timed_in_every_block_in_random_order() -> None:
    machine = Machine([1.0, 1.0, 1.0], seed=4)
    found = timed(machine, within=1e-4, budget=90)
    blocks = [machine.timed[first : first + 3] for first in range(0, 90, 3)]
    assert all(sorted(block) == [0, 1, 2] for block in blocks)
    assert len({tuple(block) for block in blocks}) == 6
    assert found.log_times.shape == (3, 30)
    other = Machine([1.0, 1.0, 1.0], seed=4)
    timed(other, within=1e-4, budget=90, seed=1)
    assert other.timed != machine.timed


def test_times_are_those_of_their_arms_and_blocks() -> None:
    machine = Machine([1.0, 1.3], noise=0.0)
    machine.level = lambda n: 1 + (n - 1) // 2
    found = timed(machine, budget=20)
    np.testing.assert_allclose(np.exp(found.log_times[0]), 0.1 * np.arange(1, found.log_times.shape[1] + 1))
    np.testing.assert_allclose(found.differences(1), math.log(1.3))


def test_a_machine_that_slows_down_does_no_harm() -> None:
    n_wrong = 0
    for seed in range(30):
        machine = Machine([1.03, 1.0, 1.03], noise=0.02, seed=seed)
        machine.level = lambda n: 1.1 if n > 20 else 1.0
        n_wrong += timed(machine, seed=seed).fastest != ("p1",)
    assert n_wrong <= 4  # delta is .05; more than 4 of 30 would have a chance of .02


def test_warm_up_runs_are_not_counted() -> None:
    machine = Machine()
    machine.level = lambda n: 100.0 if n <= 8 else 1.0
    found = timed(machine, warmup=2)
    assert machine.timed[:8] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len(machine.timed) == found.result.n_pulls + 8
    assert np.nanmax(found.log_times) < 0
    assert "after 2 warm-up runs of each" in str(found)


def test_several_fastest_are_found() -> None:
    found = timed(Machine(), m=2, within=0.03)
    assert set(found.fastest) <= {"p0", "p1", "p3"}
    assert "each of " in found.sentence or "are the fastest" in found.sentence
    assert "2nd fastest" in found.sentence or "are the fastest" in found.sentence


# --- what is said -------------------------------------------------------------------------------------------


def test_the_promise_is_about_percent() -> None:
    found = timed(Machine([1.0, 1.0, 1.001], seed=3), within=0.05)
    percent = math.ceil(1e4 * found.within - 1e-6) / 100
    said = f"{found.fastest[0]} is at most {percent:g} % slower than the fastest."
    assert found.sentence == f"With probability at least 95 %, {said}"
    assert 0 < percent <= 5
    assert found.within == pytest.approx(math.expm1(found.result.certified_epsilon))
    assert [_percent_up(share) for share in (0.02, 0.012301, 0.01)] == ["2 %", "1.24 %", "1 %"]
    clear = timed(Machine([1.0, 2.0]), delta=0.1)
    assert clear.sentence == "With probability at least 90 %, p0 is the fastest."
    assert clear.within == 0


def test_a_run_that_is_cut_short_says_what_is_certified() -> None:
    found = timed(Machine([1.0, 1.0]), within=0.0001, budget=40)
    assert not found.is_certified
    assert 0.0001 < found.within < 0.1
    text = str(found)
    assert "% slower than the fastest." in text
    assert "Asked: 0.01 %, but the budget was used up." in text
    nothing = timed(Machine(), budget=8)
    assert nothing.sentence == "Nothing is certified yet."
    assert nothing.fastest == ()
    assert "8 timings in 2 blocks" in str(nothing)
    assert math.isinf(nothing.within)
    assert timed(Machine(), budget=0).to_dict()["within"] is None
    assert "-" in str(timed(Machine(), budget=0))


def test_ratios_have_intervals_by_student_within_blocks() -> None:
    found = timed(Machine([1.0, 1.2, 1.1], noise=0.05, seed=2))
    fastest, *others = found.rows
    assert (fastest.ratio, fastest.interval) == (1.0, None)
    for row in others:
        arm = int(row.name[1:])
        own = found.log_times[arm] - found.log_times[0]
        own = own[~np.isnan(own)]
        from scipy.stats import t

        low, high = t.interval(0.95, len(own) - 1, own.mean(), own.std(ddof=1) / math.sqrt(len(own)))
        assert row.interval == pytest.approx((math.exp(low), math.exp(high)))
        assert row.ratio == pytest.approx(math.exp(own.mean()))
        assert row.median == pytest.approx(np.exp(np.median(found.log_times[arm][: row.n_runs])))
    assert "descriptive" in str(found)


def test_the_result_is_json_that_readers_of_hyperfine_take(tmp_path: Path) -> None:
    found = timed(Machine())
    (tmp_path / "found.json").write_text(json.dumps(found.to_dict(), allow_nan=False))
    data = json.loads((tmp_path / "found.json").read_text())
    assert data["fastest"] == ["p1"]
    assert data["asked_within"] == pytest.approx(0.02)
    assert data["run"]["strategy"] == "paired-race"
    assert data["results"][1]["ratio"] == 1
    times = timings_in(tmp_path / "found.json")
    assert list(times) == ["p0", "p1", "p2", "p3"]
    np.testing.assert_allclose(times["p2"], np.exp(found.log_times[2][~np.isnan(found.log_times[2])]))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1.5, "1.500 s"),
        (0.01234, "12.34 ms"),
        (123.456e-6, "123.5 us"),
        (7e-10, "0.700 ns"),
        (3600, "3,600 s"),
    ],
)
def test_durations_have_four_digits(seconds: float, said: str) -> None:
    assert duration(seconds) == said


# --- stored runs --------------------------------------------------------------------------------------------


def test_a_stored_run_goes_on(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    whole = Machine(noise=0.1)
    alone = timed(whole)
    run = (machine := Machine(noise=0.1)).run()
    with run.session(store=store) as session:
        short = run.driven(session, budget=41)
    assert short.result.stop is sl.Stop.BUDGET
    with run.session(store=store) as session:
        found = run.driven(session)
    assert machine.timed == whole.timed
    np.testing.assert_array_equal(found.log_times, alone.log_times)
    with run.session(store=store) as session:
        assert str(run.driven(session)) == str(found)
    assert machine.timed == whole.timed


def test_a_stored_run_goes_on_only_with_the_same_commands(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    sl.time({"a": "true", "b": ["true"]}, budget=4, store=store)
    with pytest.raises(sl.errors.ChangedRun, match="false"):
        sl.time({"a": "true", "b": "false"}, budget=4, store=store, ignore_failure=True)


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arms", "how", "said"),
    [
        ({"a": "true"}, {}, "two or more"),
        ("true", {}, "dictionary"),
        (["true", "true"], {}, "twice"),
        ({"a": 1, "b": "true"}, {}, "cannot be timed"),
        ({"a": "true", "b": "true"}, {"within": 0}, "within"),
        ({"a": "true", "b": "true"}, {"warmup": -1}, "warmup"),
        ({"a": "true", "b": "true"}, {"m": 3}, "m"),
        ({"a": "true", "b": "true"}, {"m": 2}, "all would be selected"),
    ],
)
def test_what_cannot_be_timed_is_refused(arms: Any, how: dict[str, Any], said: str) -> None:
    with pytest.raises(sl.InvalidProblem, match=said):
        sl.time(arms, **how)


def test_a_program_that_fails_ends_the_run() -> None:
    with pytest.raises(sl.MeasurementFailed, match=r"warm-up run of b failed.*exit status 1"):
        sl.time({"a": "true", "b": "false"})
    with pytest.raises(sl.MeasurementFailed, match=r"measuring b.*exit status 1"):
        sl.time({"a": "true", "b": "false"}, warmup=0)


# --- checks of the assumptions ------------------------------------------------------------------------------


def kinds(notes: Sequence[str]) -> list[str]:
    """Return which checks have something to say."""
    words = {"outliers": "outliers", "changes": "trend", "correlated": "lag", "grows": "growth"}
    return [kind for note in notes for word, kind in words.items() if word in note]


def assumption_notes(pairs: dict[str, FloatArray], reference: str) -> list[str]:
    return [one.words for one in contradictions(pairs, reference)]


def gaussian(rng: np.random.Generator, n: int, k: int) -> dict[str, FloatArray]:
    times = 0.02 * rng.standard_normal((n + 1, k))
    return {f"p{arm}": times[arm] - times[0] for arm in range(1, n + 1)}


@pytest.mark.parametrize(("n", "k"), [(1, 8), (1, 25), (4, 12), (4, 60)])
def test_checks_are_rarely_false_alarms(n: int, k: int) -> None:
    """Each check at 1 %: more than 14 of 500 has a chance below .0003; with seeds it never happens."""
    rng, seen = np.random.default_rng([n, k]), Counter[str]()
    for _ in range(500):
        seen.update(kinds(assumption_notes(gaussian(rng, n, k), "p0")))
        seen.update(["level"] * len(level_notes(rng.standard_normal(k))))
    assert max(seen.values(), default=0) <= 14
    assert sum(seen.values()) >= 5  # they do look


def test_checks_are_rarely_false_alarms_at_the_end_of_a_run() -> None:
    """A run stops when the answer is clear, which depends on the times."""
    seen = Counter[str]()
    for seed in range(150):
        seen.update(kinds(timed(Machine([1.0, 1.02, 1.1], noise=0.03, seed=seed), seed=seed).notes))
    assert max(seen.values(), default=0) <= 7  # .0003 at 1 %


def disturbed(kind: str, rng: np.random.Generator, k: int = 80) -> FloatArray:
    values = 0.02 * rng.standard_normal(k)
    if kind == "outliers":
        values[[3, 40]] += 0.3
    elif kind == "trend":
        values += np.linspace(0, 0.05, k)
    elif kind == "lag":
        for place in range(1, k):
            values[place] += 0.7 * values[place - 1]
    else:
        values *= 1.04 ** np.arange(k)
    return values


@pytest.mark.parametrize("kind", ["outliers", "trend", "lag", "growth"])
def test_checks_find_what_they_look_for(kind: str) -> None:
    rng = np.random.default_rng(7)
    n_found = 0
    for _ in range(20):
        pairs = gaussian(rng, 2, 80) | {"odd": disturbed(kind, rng)}
        notes = assumption_notes(pairs, "p0")
        n_found += kind in kinds(notes)
        own = [note for note in notes if kinds([note]) == [kind]]
        assert all("odd and p0" in note for note in own)
        assert all("The guarantee" in note for note in own)
    assert n_found >= 18


def test_outliers_that_hide_each_other_are_found() -> None:
    values = 0.02 * np.random.default_rng(1).standard_normal(40)
    values[[5, 6, 30]] += 0.5
    assert sorted(outliers(values).tolist()) == [5, 6, 30]
    assert "3 ratios lie" in assumption_notes({"b": values}, "a")[0]


def test_few_or_equal_ratios_are_not_checked() -> None:
    assert assumption_notes({"b": np.arange(7.0)}, "a") == []
    assert assumption_notes({"b": np.ones(50)}, "a") == []
    assert level_notes(np.ones(50)) == []
    assert assumption_notes({}, "a") == []


def test_a_level_that_drifts_is_noted_as_harmless() -> None:
    machine = Machine([1.0, 1.0], seed=5)
    machine.level = lambda n: 1 + 0.005 * n
    (note,) = timed(machine, within=1e-4, budget=120).notes
    assert "slower during the run. This cancels out" in note
    assert "faster" in level_notes(-np.linspace(0, 1, 30))[0]


@pytest.mark.parametrize(
    ("kind", "name", "is_grave"),
    [
        ("outliers", "outliers", False),
        ("trend", "trend", True),
        ("lag", "correlation", True),
        ("growth", "noise", False),
    ],
)
def test_what_contradicts_the_assumptions_weakens_what_is_said(kind: str, name: str, is_grave: bool) -> None:
    """Of an answered run only the times are replaced."""
    whole = timed(Machine([1.0, 1.02], seed=6))
    assert whole.is_certified
    assert whole.sentence.startswith("With probability at least 95 %, ")
    assert whole.to_dict()["contradictions"] == []
    odd = disturbed(kind, np.random.default_rng(7))
    found = Timings(whole.result, np.stack([np.zeros(80), odd]))
    kinds_found = [one.kind for one in found.contradictions]
    assert name in kinds_found
    start = (
        "The notes contradict the assumptions. If the assumptions held, with probability at least 95 %, p0 is"
    )
    assert found.sentence.startswith(start)
    assert found.sentence in str(found)
    assert found.is_certified != is_grave
    assert ("So the answer is not certified. To time again, start a new run." in str(found)) == is_grave
    data = found.to_dict()
    assert (data["contradictions"], data["is_certified"]) == (kinds_found, not is_grave)
    assert data["sentence"] == found.sentence
    assert not any(word in str(found) for word in ("used up", "interrupted"))


def test_percentages_of_notes_have_no_exponent() -> None:
    assert "became about 110 % slower" in level_notes(np.linspace(0, math.log(2.1), 30))[0]
    assert "became about 2.1 % slower" in level_notes(np.linspace(0, math.log(1.021), 30))[0]
    values = np.linspace(0, math.log(14), 30)
    assert "by about +1,300 %" in contradictions({"b": values}, "a")[0].words


def test_medians_in_another_order_than_ratios_are_explained() -> None:
    """An arm that was dropped in the quick blocks has the best median, and the worst ratio."""
    result = timed(Machine([1.0, 1.02, 1.1])).result
    times = np.zeros((3, 35)) + np.linspace(0, 0.5, 35) + [[0.0], [0.02], [0.1]]
    times[2, 9:] = np.nan
    found = Timings(result, times)
    assert [row.name for row in found.rows] == ["p0", "p1", "p2"]
    assert found.rows[2].median < found.rows[0].median
    said = "Ratios compare times within the same blocks; medians cover different numbers of blocks"
    assert str(found).splitlines()[4].startswith(said)
    times[2, 9:] = times[0, 9:] + 0.1
    assert "Ratios compare" not in str(Timings(result, times))


# --- for real -----------------------------------------------------------------------------------------------


def test_real_functions_and_programs_are_timed() -> None:
    found = sl.time({"function": lambda: sum(range(100)), "program": "true"}, budget=30)
    assert found.result.stop in {sl.Stop.CERTIFIED, sl.Stop.BUDGET}
    assert set(found.fastest) < {"function", "program"}
    assert all(row.n_runs >= 8 and row.median > 0 for row in found.rows)


def test_a_percentage_is_not_taken_for_a_share() -> None:
    with pytest.raises(sl.InvalidProblem, match=r"means 500% slower; for 5 % give 0\.05"):
        timed(Machine(), within=5)
