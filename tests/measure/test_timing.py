"""Times as rewards: what is timed, what is not, and what is refused."""

import gc
import math
from pathlib import Path

import pytest

import shortlist as sl
from shortlist.errors import FinalFailure
from shortlist.measure import Call
from shortlist.measure.timing import LEAST, CommandTimer, FunctionTimer, TimingSource, epsilon_of


class Clock:
    """A clock that is moved by hand, in nanoseconds."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


# --- functions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nanoseconds", "number"),
    [(1_000_000_000, 1), (5_000_000, 1), (4_999_999, 2), (2_000_000, 5), (600, 10_000), (3, 2_000_000)],
)
def test_a_quick_function_is_called_repeatedly(nanoseconds: int, number: int) -> None:
    clock = Clock()

    def function() -> None:
        clock.now += nanoseconds

    timer = FunctionTimer(function, clock)
    assert timer() == pytest.approx(nanoseconds * 1e-9)
    assert timer.number == number
    assert timer.number * nanoseconds * 1e-9 >= LEAST
    before = clock.now
    assert timer() == pytest.approx(nanoseconds * 1e-9)
    assert clock.now - before == number * nanoseconds  # it is calibrated once


def test_garbage_is_not_collected_while_a_function_is_timed() -> None:
    seen: list[bool] = []
    clock = Clock()

    def function() -> None:
        seen.append(gc.isenabled())
        clock.now += 10**9

    assert gc.isenabled()
    FunctionTimer(function, clock)()
    assert seen == [False, False]
    assert gc.isenabled()
    gc.disable()
    try:
        FunctionTimer(function, clock)()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_clock_that_stands_still_gives_the_least_time_that_has_a_logarithm() -> None:
    assert FunctionTimer(lambda: None, Clock(), number=10)() == pytest.approx(1e-10)


# --- programs -----------------------------------------------------------------------------------------------


def test_a_program_is_run_once_for_each_timing(tmp_path: Path) -> None:
    timer = CommandTimer.of("sh -c 'echo run >> runs; echo shown'", folder=tmp_path)
    assert [timer() > 0, timer() > 0] == [True, True]
    assert (tmp_path / "runs").read_text() == "run\nrun\n"


def test_what_a_program_prints_is_discarded_and_it_reads_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    CommandTimer.of(["sh", "-c", "cat; echo out; echo err >&2"])()
    assert capfd.readouterr() == ("", "")


def test_the_time_is_that_from_start_to_end() -> None:
    clock = iter([5_000_000_000, 7_500_000_000])
    assert CommandTimer(("true",), clock=lambda: next(clock))() == 2.5


def test_a_program_that_fails_is_an_error_unless_that_is_ignored() -> None:
    with pytest.raises(FinalFailure, match=r"exit status 3.*sh -c 'exit 3'"):
        CommandTimer.of("sh -c 'exit 3'")()
    with pytest.raises(FinalFailure, match="signal 9"):
        CommandTimer.of(["sh", "-c", "kill -9 $$"])()
    assert CommandTimer.of("sh -c 'exit 3'", ignore_failure=True)() > 0


def test_a_shell_runs_commands_if_asked() -> None:
    assert CommandTimer.of("exit 0 | true", shell=True).argv == ("/bin/sh", "-c", "exit 0 | true")
    assert CommandTimer.of("exit 0 | true", shell=True)() > 0


def test_variables_of_the_environment_are_added() -> None:
    timer = CommandTimer.of(["sh", "-c", 'test "$PLACE" = north -a -n "$PATH"'], env={"PLACE": "north"})
    assert timer() > 0


@pytest.mark.parametrize(
    ("command", "said"),
    [("no-such-program", "no such executable"), ("", "words"), ("'open", "split"), (["a\0b"], "words")],
)
def test_commands_that_cannot_run_are_refused(command: str, said: str) -> None:
    with pytest.raises(sl.InvalidProblem, match=said):
        CommandTimer.of(command)


# --- the source ---------------------------------------------------------------------------------------------


def test_rewards_are_logarithms_of_seconds() -> None:
    source = TimingSource([lambda: 0.5, lambda: math.e], ["a", "b"], warmup=0)
    assert source.answers([Call(0, 1, 1, 0), Call(0, 0, 2, 0)]) == [[1.0], [math.log(0.5)] * 2]


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_warm_up_runs_come_first_and_do_not_count(warmup: int) -> None:
    made: list[str] = []

    def timer(name: str) -> float:
        made.append(name)
        return float(len(made))

    source = TimingSource([lambda: timer("a"), lambda: timer("b")], ["a", "b"], warmup)
    first = source.answers([Call(0, 1, 1, 0)])
    assert made == ["a"] * warmup + ["b"] * warmup + ["b"]
    assert first == [[math.log(2 * warmup + 1)]]
    source.answers([Call(0, 0, 1, 0)])
    assert len(made) == 2 * warmup + 2


def test_a_function_that_raises_is_named() -> None:
    source = TimingSource([lambda: 1.0, lambda: 1 / 0], ["quick", "broken"])
    with pytest.raises(FinalFailure, match=r"warm-up run of broken failed.*ZeroDivisionError"):
        source.warm_up()


def test_within_becomes_a_difference_of_logarithms() -> None:
    assert epsilon_of(0.02) == pytest.approx(math.log(1.02), rel=1e-12)
    for wrong in (0, -0.1, 11, True, "2 %", None, math.nan):
        with pytest.raises(sl.InvalidProblem, match="within"):
            epsilon_of(wrong)


def test_other_workers_are_refused() -> None:
    found = sl.timings.timing_problem(["a", "b"], 0.1)
    source = TimingSource([lambda: 1.0, lambda: 2.0], ["a", "b"])
    with pytest.raises(sl.InvalidProblem, match="one thread"):
        sl.select(source, found, executor=sl.Processes(1))
    with pytest.raises(sl.InvalidProblem, match="one thread"):
        sl.select(source, found, concurrency=2)
