"""Programs as sources of rewards: how they are called, what they may print, and how they may fail."""

import math
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.measure import Call, CommandSource, Source
from shortlist.measure.command import seed_of
from tests.measure.limits import memory_limited

PROBLEM = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[1.0, 1.0], names=["north", "south side"])
CALL = Call(entropy=5, arm=1, count=3, first_pull=10)


def command(*argv: str, **more: Any) -> CommandSource:
    return CommandSource(PROBLEM, argv, **more)


def printing(text: str, **more: Any) -> CommandSource:
    """A program that prints this, whatever it is asked."""
    return command("sh", "-c", 'printf %s "$1"', "sh", text, "{count}", **more)


def failure(source: Source, call: Call = CALL) -> str:
    with pytest.raises(sl.MeasurementFailed) as caught:
        source.answers([call])
    return str(caught.value)


# --- how a program is called ----------------------------------------------------------------------


def test_placeholders_are_filled() -> None:
    depths = {"depth": ["1", "2"]}
    source = command("echo", "{arm}", "-{name}-", "{count}/{seed}", "{depth}", columns=depths)
    expected = ["echo", "1", "-south side-", f"3/{seed_of(CALL)}", "2"]
    assert source.command_line(CALL) == expected


@pytest.mark.parametrize(
    ("part", "filled"),
    [
        ("{ print $1 }", "{ print $1 }"),
        ("{{print}}", "{print}"),
        ('{"a": {"b": {arm}}}', '{"a": {"b": 1}}'),
        ("{}", "{}"),
        ("${arm}", "$1"),
        ("{{{arm}}}", "{{arm}}"),
        ("{depth (m)}", "2"),
        ("{arm", "{arm"),
    ],
)
def test_other_braces_stay(part: str, filled: str) -> None:
    source = command("echo", part, columns={"depth (m)": ["1", "2"]})
    assert source.command_line(CALL)[1] == filled


def test_no_shell_reads_the_arguments(tmp_path: Path) -> None:
    problem = sl.Problem(1, 0.5, 0.1, [1.0], names=["$(touch danger); `ls` > x"])
    source = CommandSource(
        problem, ("sh", "-c", 'test "$1" = "$2" && echo 1', "sh", "{name}", problem.name(0)), tmp_path
    )
    assert source.answers([Call(0, 0, 1, 0)]) == [[1.0]]
    assert list(tmp_path.iterdir()) == []


def test_a_seed_belongs_to_seed_arm_and_first_pull_alone() -> None:
    assert seed_of(CALL) == seed_of(Call(5, 1, 99, 10))
    others = [Call(6, 1, 3, 10), Call(5, 0, 3, 10), Call(5, 1, 3, 11)]
    assert len({seed_of(call) for call in [CALL, *others]}) == 4
    many = [seed_of(Call(0, 0, 1, pull)) for pull in range(200)]
    assert len(set(many)) == 200
    assert all(0 <= seed < 2**63 for seed in many)
    assert max(many) > 2**62  # all 63 bits are in use


def test_each_valid_placeholder_is_named_once() -> None:
    with pytest.raises(sl.InvalidProblem) as caught:
        command("echo", "{nme}", columns={"name": ["a", "b"], "depth": ["1", "2"]})
    assert str(caught.value).count("{name}") == 1
    assert "{depth}" in str(caught.value)


def test_a_program_in_blocks_that_prints_one_line_is_told_of_the_seed() -> None:
    asked = sl.Problem(m=1, epsilon=0.5, delta=0.1, n=2, rewards=sl.Gaussian(), items=sl.Blocks())
    said = failure(CommandSource(asked, ("echo", "1.5")), Call(0, 0, 5, 0))
    assert "it printed one line, but 5 rewards were requested, one per line" in said
    assert "put {seed} into the command" in said
    assert "{seed}" not in failure(command("echo", "{count}", "2"))


def test_with_count_the_program_is_run_once(tmp_path: Path) -> None:
    source = command("sh", "-c", "echo run >> log; seq {count}", folder=tmp_path)
    assert source.answers([CALL]) == [[1.0, 2.0, 3.0]]
    assert (tmp_path / "log").read_text() == "run\n"


def test_without_count_it_is_run_once_per_pull_each_with_a_seed_of_its_own(tmp_path: Path) -> None:
    source = command("sh", "-c", "echo {seed} >> log; echo 2.5", folder=tmp_path)
    assert source.answers([CALL]) == [[2.5, 2.5, 2.5]]
    seeds = [str(seed_of(Call(5, 1, 1, pull))) for pull in (10, 11, 12)]
    assert (tmp_path / "log").read_text().split() == seeds
    assert len(set(seeds)) == 3


def test_what_comes_to_stdin_is_not_for_the_program() -> None:
    code = "import shortlist as sl; from shortlist.measure import Call, CommandSource;"
    code += "source = CommandSource(sl.Problem(1, 0.5, 0.1, [1.0]), ('sh', '-c', 'cat; echo 1'), timeout=10);"
    code += "print(source.answers([Call(0, 0, 1, 0)]))"
    done = subprocess.run([sys.executable, "-c", code], input=b"99\n", capture_output=True, check=False)
    assert done.stdout == b"[[1.0]]\n", done.stderr


def test_the_environment_is_extended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORTLIST_OUTER", "40")
    source = command("sh", "-c", "echo $((SHORTLIST_OUTER + INNER))", env={"INNER": "2"})
    assert source.answers([Call(0, 0, 1, 0)]) == [[42.0]]


def test_a_path_is_seen_from_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "measure"
    script.write_text("#!/bin/sh\necho 7\n")
    script.chmod(0o755)
    monkeypatch.chdir("/")
    assert command("./measure", folder=tmp_path).answers([Call(0, 0, 1, 0)]) == [[7.0]]
    script.chmod(0o644)
    with pytest.raises(sl.InvalidProblem, match=r"chmod \+x"):
        command("./measure", folder=tmp_path)


def test_a_program_may_be_named_after_the_arm(tmp_path: Path) -> None:
    for name in PROBLEM.names or ():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {len(name)}\n")
        (tmp_path / name).chmod(0o755)
    source = command("./{name}", folder=tmp_path)
    assert source.answers([Call(0, 0, 1, 0), Call(0, 1, 1, 0)]) == [[5.0], [10.0]]
    (tmp_path / "south side").unlink()
    with pytest.raises(sl.InvalidProblem, match="south side"):
        command("./{name}", folder=tmp_path)


def test_it_survives_pickling() -> None:
    source = command("echo", "{depth}", columns={"depth": ["1", "2"], "unused": ["x", "y"]}, timeout=5)
    again = pickle.loads(pickle.dumps(source))
    assert again.answers([CALL]) == source.answers([CALL]) == [[2.0, 2.0, 2.0]]
    assert set(again.columns) == {"depth"}
    assert again.together == 1


def test_a_whole_run() -> None:
    program = "BEGIN { srand({seed} % 100000); for (i = 0; i < {count}; i++) print {arm} + 2 * rand() - 1 }"
    result = sl.select(command("awk", program), PROBLEM, seed=1)
    assert result.selected == ("south side",)
    again = sl.select(command("awk", program), PROBLEM, seed=1)
    assert result.arms.means.tolist() == again.arms.means.tolist()


# --- what it may print ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["1\n2\n3\n", "1\n2\n3", " 1.0 \r\n\r\n2e0\n\n+3\n"])
def test_one_reward_per_line(text: str) -> None:
    assert printing(text).answers([CALL]) == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[1, 2.0, 3]\n", [1.0, 2.0, 3.0]),
        ('{"mean": 2, "count": 3}', sl.Summary(3, 2.0)),
        ('{"mean": 2, "count": 3, "variance": 1.5}', sl.Summary(3, 2.0, 1.5)),
    ],
)
def test_json(text: str, answer: Any) -> None:
    assert printing(text, output="json").answers([CALL]) == [answer]


@pytest.mark.parametrize("text", ["4", "[4]", '{"mean": 4, "count": 1}'])
def test_json_of_one_reward_at_a_time(text: str) -> None:
    source = command("printf", "%s", text, output="json")
    assert source.answers([Call(0, 0, 2, 0)]) == [[4.0, 4.0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "printed 0 lines, but 3 rewards were requested"),
        ("1\n2\n", "printed 2 lines"),
        ("1\n2\n3\n4\n", "printed 4 lines"),
        ("1 2 3\n", "printed one line"),
        ("1\ntwo\n3\n", "printed 'two', which is not a number"),
        ("1\n1_0\n3\n", "printed '1_0', which is not a number"),
        ("1\nTrue\n3\n", "not a number"),
        ("1\nnan\n3\n", "printed nan; NaN and infinity are not rewards"),
        ("1\n-inf\n3\n", "not rewards"),
        ("1\n1e999\n3\n", "not rewards"),
    ],
)
def test_other_lines_are_failures(text: str, said: str) -> None:
    message = failure(printing(text))
    assert said in message
    assert "status 0" in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("1\n2\n3\n", "not JSON"),
        ("[1, 2]", "list has 2 numbers, but 3 rewards were requested"),
        ("[1, 2, true]", "neither a list of numbers nor a summary"),
        ('[1, 2, "3"]', "neither"),
        ("[1, 2, null]", "neither"),
        ("3", "neither"),
        ("[1, 2, NaN]", "not rewards"),
        ("[1, 2, 1" + "0" * 400 + "]", "not rewards"),
        ('{"mean": 2}', "count 3"),
        ('{"mean": 2, "count": 4}', "count 3"),
        ('{"mean": 2, "count": true}', "count 3"),
        ('{"mean": Infinity, "count": 3}', "not rewards"),
        ('{"mean": 2, "count": 3, "var": 1}', "count, mean, variance"),
        ('{"mean": 2, "count": 3, "variance": -1}', "cannot be negative"),
        ('{"mean": 2, "count": 3, "variance": null}', "must have numbers"),
    ],
)
def test_other_json_is_a_failure(text: str, said: str) -> None:
    assert said in failure(printing(text, output="json"))


# --- how it may fail ------------------------------------------------------------------------------


def test_a_failure_names_arm_command_status_and_last_words(tmp_path: Path) -> None:
    script = "for i in $(seq 20); do echo line $i >&2; done; echo 1; exit 3"
    message = failure(command("sh", "-c", script, "sh", "{count} pulls", folder=tmp_path))
    assert "measuring south side (3 pulls) failed" in message
    assert "exit status 3" in message
    assert "'3 pulls'" in message  # the command line, quoted so that it can be tried by hand
    assert str(tmp_path) in message
    assert message.endswith("line 19\n  line 20")
    assert "line 12\n" not in message


def test_a_program_that_is_killed_says_by_what() -> None:
    assert "was killed by SIGKILL" in failure(command("sh", "-c", "kill -9 $$"))


def test_rewards_of_a_program_that_failed_do_not_count() -> None:
    assert "exit status 1" in failure(command("sh", "-c", "seq {count}; exit 1"))


def test_a_program_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    script = "echo waiting >&2; (sleep 60 & echo $! > child; wait); echo 1"
    begun = time.monotonic()
    message = failure(command("sh", "-c", script, folder=tmp_path, timeout=0.5))
    assert time.monotonic() - begun < 5
    assert "still running after 0.5 seconds" in message
    assert "waiting" in message
    child = int((tmp_path / "child").read_text())
    for _ in range(50):
        if not is_alive(child):
            break
        time.sleep(0.05)
    assert not is_alive(child)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_bytes_that_are_no_text_are_shown_all_the_same() -> None:
    assert "not a number" in failure(command("printf", r"\377\n"), Call(0, 0, 1, 0))
    assert "exit status 2" in failure(command("sh", "-c", r"printf '\377' >&2; exit 2"))


def test_a_program_that_vanishes_is_a_failed_measurement(tmp_path: Path) -> None:
    script = tmp_path / "measure"
    script.write_text("#!/bin/sh\necho 7\n")
    script.chmod(0o755)
    source = command("./measure", folder=tmp_path)
    script.unlink()
    assert "cannot be started" in failure(source)


def test_an_interruption_ends_the_program(tmp_path: Path) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            command("sh", "-c", "echo $$ > child; sleep 60", folder=tmp_path).answers([CALL])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not is_alive(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf, True, "5"])
def test_a_timeout_is_a_positive_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match="`timeout`"):
        command("echo", "1", timeout=timeout)


def test_much_output_on_both_channels_does_not_block() -> None:
    script = "i=0; while [ $i -lt 20000 ]; do echo $i; echo some noise >&2; i=$((i+1)); done"
    (rewards,) = command("sh", "-c", script, "{count}", timeout=30).answers([Call(0, 0, 20000, 0)])
    assert np.array(rewards).sum() == 20000 * 19999 / 2


FLOODS = {"no line ends": "cat /dev/zero", "blank lines": "yes ''", "numbers": "yes 1"}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_program_that_does_not_stop_printing_is_stopped(flood: str, tmp_path: Path) -> None:
    script = f"echo $$ > child; {flood}"
    with memory_limited(1 << 30):
        message = failure(command("sh", "-c", script, "{count}", folder=tmp_path, timeout=10))
    assert "printed more than 1,097,728 bytes, which is the maximum for this call. The command" in message
    assert not is_alive(int((tmp_path / "child").read_text()))


def test_a_flood_on_stderr_takes_no_memory_and_its_end_is_shown() -> None:
    script = "head -c 300000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 3"
    with memory_limited(1 << 28):
        message = failure(command("sh", "-c", script, timeout=20))
    assert message.endswith("xxx\n  the end") or message.endswith("xxxthe end")
    assert len(message) < 100_000


def test_an_answer_of_many_pulls_may_be_long() -> None:
    (rewards,) = command("seq", "{count}").answers([Call(0, 0, 300_000, 0)])
    assert len(rewards) == 300_000


def test_the_programs_own_group_is_not_ours() -> None:
    source = command("sh", "-c", "cut -d ' ' -f 5 /proc/$$/stat")
    assert source.answers([Call(0, 0, 1, 0)])[0][0] != os.getpgrp()
