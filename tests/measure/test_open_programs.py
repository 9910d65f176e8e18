"""Persistent programs: a JSON line for each measurement, whatever they print, and however they fail."""

import gc
import json
import os
import pickle
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import shortlist as sl
from shortlist.errors import InvalidProblem, RetryLater
from shortlist.files.problem_file import read_problem_file
from shortlist.measure import Call, CommandSource
from shortlist.measure.command import seed_of
from tests.measure.limits import memory_limited

ITEMS = {f"q{number}": {"text": "x" * number} for number in range(40)}
PROBLEM = sl.Problem(m=1, epsilon=0.1, delta=0.1, names=["a", "b", "c"], rewards=sl.Bounded(), items=ITEMS)
STREAM = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[1.0, 1.0])
CALL = Call(entropy=5, arm=1, count=4, first_pull=3)

PROLOGUE = """
import json, os, sys, time
def say(**answer):
    print(json.dumps(answer), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    one = asked["id"]
"""
"""The start of a loop that answers requests."""


def program(body: str, problem: sl.Problem = PROBLEM, **more: Any) -> CommandSource:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return CommandSource(problem, (sys.executable, "-c", PROLOGUE + lines), persistent=True, **more)


def failure(source: CommandSource, call: Call = CALL) -> str:
    with pytest.raises(sl.MeasurementFailed) as caught:
        source.answers([call])
    assert not isinstance(caught.value, RetryLater)
    return str(caught.value)


def wanted(problem: sl.Problem, call: Call) -> list[str]:
    assert problem.items is not None
    order = problem.items.order_by(call.entropy)[call.first_pull : call.first_pull + call.count]
    return [problem.items.id(place) for place in order.tolist()]


@pytest.fixture(autouse=True)
def _no_program_is_left() -> Iterator[None]:
    """After each test, every program that it started has ended."""
    yield
    gc.collect()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert [one for one in children if "asked = json" in Path(f"/proc/{one}/cmdline").read_text()] == []


def test_a_program_gets_one_line_per_item_and_answers_in_any_order(tmp_path: Path) -> None:
    source = program(
        f"held = globals().setdefault('held', [])\n"
        f"open({str(tmp_path / 'asked')!r}, 'a').write(line)\n"
        f"held.append(one)\n"
        f"while len(held) == 4:\n"
        f"    for back in reversed(held): say(id=back, score=back / 8)\n"
        f"    held.clear()"
    )
    assert source.answers([CALL, CALL]) == [[0.0, 0.125, 0.25, 0.375], [0.5, 0.625, 0.75, 0.875]]
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    ids = wanted(PROBLEM, CALL)
    assert asked[:4] == [
        {"id": number, "arm": 1, "name": "b", "item_id": one, "item": ITEMS[one]}
        for number, one in enumerate(ids)
    ]
    assert [one["id"] for one in asked] == list(range(8))  # no number twice


def test_without_items_a_program_gets_a_seed_per_pull_and_the_columns_of_the_arm() -> None:
    depths = {"depth": ["1", "2"]}
    source = program(
        "say(id=one, score=asked['seed'] % 1000 + int(asked['columns']['depth']))", STREAM, columns=depths
    )
    seeds = [seed_of(Call(5, 1, 1, pull)) for pull in range(3, 7)]
    assert source.answers([CALL]) == [[seed % 1000 + 2 for seed in seeds]]


def test_a_program_is_started_once_per_worker_and_again_after_a_crash(tmp_path: Path) -> None:
    source = program(
        f"known = globals().setdefault('me', open({str(tmp_path)!r} + f'/{{os.getpid()}}', 'w'))\n"
        f"say(id=one, score=0.5)\n"
        f"if asked['arm'] == 2: os._exit(3)"
    )
    with ThreadPoolExecutor(3) as threads:
        calls = [Call(5, 0, 5, 0)] * 60
        assert list(threads.map(lambda call: source.answers([call]), calls)) == [[[0.5] * 5]] * 60
    assert 1 <= len(list(tmp_path.iterdir())) <= 3
    assert "it ended after 1 of 4 answers" in failure(source, Call(5, 2, 4, 0))
    before = len(list(tmp_path.iterdir()))
    assert source.answers([Call(5, 0, 1, 0)] * 9) == [[0.5]] * 9
    assert len(list(tmp_path.iterdir())) <= before + 1


def test_many_long_lines_do_not_block_the_pipes() -> None:
    items = {str(number): "x" * 2000 for number in range(500)}
    problem = sl.Problem(m=1, epsilon=0.1, delta=0.1, n=2, rewards=sl.Bounded(), items=items)
    source = program("say(id=one, score=0.25, note='y' * 2000); print('z' * 2000, file=sys.stderr)", problem)
    assert source.answers([Call(1, 0, 500, 0)]) == [[0.25] * 500]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("print('loading the model', flush=True)", "it printed 'loading the model', but an answer is a JSON"),
        ("print(0.5, flush=True)", "it printed '0.5', but an answer is a JSON line like"),
        ("say(id=one + 100, score=1)", "no open request has that `id`"),
        ("say(score=1)", "no open request has that `id`"),
        ("say(id=one, score=1); say(id=one, score=0)", "no open request has that `id`"),
        ("say(id=True, score=1)", "no open request has that `id`"),
        ("say(id=one, score=True)", "`score` must be a number"),
        ("say(id=one, score='1')", "`score` must be a number"),
        ("say(id=one)", "`score` must be a number"),
        ("say(id=one, score=float('nan'))", "NaN and infinity are not rewards"),
        ("say(id=one, error='no such model')", "it reported an error: no such model"),
        ("say(id=one, retry_after='soon')", "`retry_after` must be a number of seconds"),
        ("sys.exit('bad key')", "it ended after 0 of 4 answers"),
    ],
)
def test_wrong_answers_are_failures(body: str, said: str) -> None:
    found = failure(program(body))
    assert said in found
    assert found.startswith(f"measuring b on items {', '.join(wanted(PROBLEM, CALL))} failed: ")
    if "bad key" in body:
        assert found.endswith("The end of its stderr:\n  bad key")


def test_an_answer_that_comes_too_late_is_not_taken_for_another() -> None:
    """A second line for one request is printed after the call: it must not answer the next one."""
    source = program("say(id=one, score=0.0)\ntime.sleep(0.2)\nsay(id=one, score=1.0)")
    one = Call(5, 0, 1, 0)
    assert source.answers([one]) == [[0.0]]
    assert "no open request has that `id`" in failure(source, one)


def test_a_program_may_ask_to_be_tried_later() -> None:
    source = program("say(id=one, retry_after=2.5, error='busy') if one == 1 else say(id=one, score=1)")
    with pytest.raises(RetryLater, match="busy") as caught:
        source.answers([CALL])
    assert caught.value.seconds == 2.5
    assert source.answers([CALL]) == [[1.0] * 4]  # the same program, with other numbers
    with pytest.raises(RetryLater):
        program("sys.exit(75)").answers([CALL])


def test_a_program_that_is_late_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    source = program(
        f"import subprocess; child = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(file)!r}, 'w').write(str(child.pid))\n"
        f"time.sleep(60)",
        timeout=1.5,
    )
    began = time.monotonic()
    assert "it had not answered after 1.5 seconds (`timeout`) and was stopped" in failure(source)
    assert time.monotonic() - began < 20
    for _ in range(100):
        state = Path(f"/proc/{file.read_text()}/stat")
        if not state.exists() or ") Z " in state.read_text():
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child is still running")


def test_a_program_that_does_not_read_is_stopped_too() -> None:
    items = {str(number): "x" * 2000 for number in range(500)}
    problem = sl.Problem(m=1, epsilon=0.1, delta=0.1, n=2, rewards=sl.Bounded(), items=items)
    source = CommandSource(problem, ("sleep", "60"), persistent=True, timeout=0.5)
    assert "`timeout`" in failure(source, Call(1, 0, 500, 0))


def test_open_programs_stay_in_their_process() -> None:
    source = program("say(id=one, score=0.5)")
    assert source.answers([CALL]) == [[0.5] * 4]
    other = pickle.loads(pickle.dumps(source))
    assert other.answers([CALL]) == [[0.5] * 4]


@pytest.mark.parametrize(
    ("argv", "more", "said"),
    [
        (("echo", "{name}"), {}, "has {name}, but it is started once for all arms"),
        (("echo",), {"output": "json"}, "a persistent program answers by JSON lines; omit `output`"),
        (("echo",), {"persistent": 1}, "`persistent` is 1; it must be true or false"),
        (("no-such-program",), {}, "no program of that name on PATH"),
    ],
)
def test_what_makes_no_sense_is_refused(argv: tuple[str, ...], more: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidProblem, match=said):
        CommandSource(PROBLEM, argv, **{"persistent": True} | more)


def test_doubled_braces_are_single_ones_for_the_program() -> None:
    code = PROLOGUE + "    say(id=one, score=len(sys.argv[1]))"
    source = CommandSource(PROBLEM, (sys.executable, "-c", code, "{{name}}"), persistent=True)
    assert source.answers([CALL]) == [[6.0] * 4]


def test_a_problem_file_runs_a_persistent_program_with_several_workers(tmp_path: Path) -> None:
    (tmp_path / "grade.py").write_text(
        "import json, os, sys\n"
        "open(f'started-{os.getpid()}', 'w')\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    right = len(asked['item']['text']) % 10 < 3 * asked['arm'] + 2\n"
        "    print(json.dumps({'id': asked['id'], 'score': int(right)}), flush=True)\n"
    )
    (tmp_path / "questions.jsonl").write_text(
        "".join(json.dumps({"id": name, **item}) + "\n" for name, item in ITEMS.items())
    )
    (tmp_path / "q.toml").write_text(
        '[problem]\nm = 1\nepsilon = 0.1\ndelta = 0.1\nrewards = "bernoulli"\nnames = ["a", "b", "c"]\n'
        '[items]\nfile = "questions.jsonl"\nid = "id"\n'
        f'[measure]\nkind = "command"\ncommand = ["{sys.executable}", "grade.py"]\npersistent = true\n'
    )
    found = read_problem_file(tmp_path / "q.toml")
    with ThreadPoolExecutor(2) as threads:
        result = sl.select(found.source, found.problem, executor=threads, pulls_per_call=3)
    assert result.selected == ("c",)
    assert 1 <= len(list(tmp_path.glob("started-*"))) <= 2

    def grade(arm: int, items: list[Any]) -> list[int]:
        return [int(len(item["text"]) % 10 < 3 * arm + 2) for item in items]

    assert sl.select(grade, found.problem).n_pulls == result.n_pulls - result.n_ahead


@pytest.mark.parametrize("more", [{}, {"timeout": 1.0}])
def test_whoever_holds_the_output_of_a_dead_program_does_not_hold_the_run(
    more: dict[str, Any],
) -> None:
    """Also one in a session of its own, which is not stopped with the program."""
    body = "import subprocess; subprocess.Popen(['sleep', '20'], start_new_session=True)\n"
    source = program(body + ("time.sleep(60)" if more else "os._exit(3)"), **more)
    began = time.monotonic()
    assert ("`timeout`" if more else "it ended after 0 of 4 answers") in failure(source)
    assert time.monotonic() - began < 12


def test_programs_that_end_while_nothing_is_asked_fail_no_call() -> None:
    source = program("say(id=one, score=0.5)\nif one == 3: sys.exit(75)")
    for _ in range(3):
        assert source.answers([CALL]) == [[0.5] * 4]
        time.sleep(0.3)


def test_programs_are_ended_together_with_all_that_they_started(tmp_path: Path) -> None:
    """Three that do not end when their input does take the time of one."""
    source = program(
        f"import subprocess; child = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(tmp_path)!r} + f'/{{child.pid}}', 'w')\n"
        f"say(id=one, score=0.5)\ntime.sleep(0.3)\n"
        f"import threading; threading.Thread(target=time.sleep, args=(60,)).start()"
    )
    one = Call(5, 0, 1, 0)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(source.answers, [[one]] * 3))
    began = time.monotonic()
    del source
    gc.collect()
    assert time.monotonic() - began < 11
    for child in tmp_path.iterdir():
        state = Path(f"/proc/{child.name}/stat")
        assert not state.exists() or ") Z " in state.read_text()


def test_a_program_that_printed_anything_else_is_not_asked_again(tmp_path: Path) -> None:
    """Nobody knows what it will say next."""
    source = program(
        f"known = globals().setdefault('me', open({str(tmp_path)!r} + f'/{{os.getpid()}}', 'w'))\n"
        f"print('rubbish', flush=True) if len(os.listdir({str(tmp_path)!r})) == 1 else say(id=one, score=1)"
    )
    assert "rubbish" in failure(source)
    assert source.answers([CALL, CALL]) == [[1.0] * 4] * 2
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("letters", ["' '", "chr(10)", "'x'"])
def test_an_open_program_that_does_not_stop_printing_is_stopped(letters: str) -> None:
    source = program(f"while True: os.write(1, ({letters} * 65536).encode())", timeout=10)
    with memory_limited(1 << 30):
        message = failure(source)
    assert "it printed too much for this call: a line may have 1,048,576 bytes, and all 1,114,112" in message
    assert sys.executable in message


def test_an_open_program_may_print_much_over_a_long_time() -> None:
    source = program('say(id=one, score=0.5, why="x" * 500_000)')
    for first in range(6):
        assert source.answers([Call(5, 1, 1, first)]) == [[0.5]]
