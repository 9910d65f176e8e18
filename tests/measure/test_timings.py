"""Files of recorded timings: what is read, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

import shortlist as sl
from shortlist.errors import InvalidProblem
from shortlist.files.problem_file import read_problem_file
from shortlist.measure.result_files.timings import read_timings, timings_in

PROBLEM = sl.Problem(m=1, epsilon=0.1, delta=0.1, names=["b", "a"], rewards=sl.Gaussian(), goal="minimise")


def hyperfine(**times: Any) -> dict[str, Any]:
    return {"results": [{"command": name, "times": one, "exit_codes": [0]} for name, one in times.items()]}


def benchmark(**data: Any) -> dict[str, Any]:
    found = [
        {"name": name, "fullname": f"test.py::{name}", "stats": {"data": one}} for name, one in data.items()
    ]
    return {"benchmarks": found, "version": "5.3.1"}


def written(folder: Path, content: Any) -> Path:
    file = folder / "timings.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


@pytest.mark.parametrize("form", [hyperfine, benchmark])
def test_timings_go_to_their_arms(tmp_path: Path, form: Any) -> None:
    file = written(tmp_path, form(a=[1, 2.5], b=[3.0], c=[4.0]))
    assert [times.tolist() for times in read_timings(file, PROBLEM)] == [[3.0], [1.0, 2.5]]
    with pytest.raises(InvalidProblem, match="has no timings of 'd'; it has those of a, b, c"):
        read_timings(file, PROBLEM.changed(names=["a", "d"]))


def test_tests_of_one_name_have_their_full_names(tmp_path: Path) -> None:
    content = benchmark(a=[1.0], b=[2.0])
    content["benchmarks"].append({"name": "a", "fullname": "other.py::a", "stats": {"data": [3.0]}})
    assert {name: list(times) for name, times in timings_in(written(tmp_path, content)).items()} == {
        "test.py::a": [1.0],
        "b": [2.0],
        "other.py::a": [3.0],
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"results": [', "is not JSON .*; was it written completely"),
        ("[" * 100_000, "is not JSON"),
        ([1], "neither the `results` of hyperfine nor the `benchmarks` of pytest-benchmark"),
        ({"results": []}, "has no timings"),
        (
            {"results": [{"times": [1.0]}]},
            "result 0 has no 'command'; the file may come from another version",
        ),
        ({"results": [{"command": "a"}]}, "result 0 has no 'times'"),
        ({"results": ["a"]}, "result 0 has no 'command'"),
        (hyperfine(a=[]), "its timings must be a list of numbers"),
        (hyperfine(a=[1.0, None]), "its timings must be a list of numbers"),
        (hyperfine(a=[1.0, True]), "its timings must be a list of numbers"),
        (hyperfine(a=[1.0, float("nan")]), "its timings must be a list of numbers"),
        (hyperfine(a=[1.0, -1.0]), "its timings must be a list of numbers"),
        (hyperfine(a="fast"), "its timings must be a list of numbers"),
        ({"results": [{"command": "a", "times": [1.0], "exit_codes": [0, 1]}]}, "'a' failed in some runs"),
        ({"results": hyperfine(a=[1.0])["results"] * 2}, "has 2 lists of timings of 'a'"),
        (
            {"benchmarks": [{"name": "a", "fullname": "a", "stats": {"mean": 1.0}}]},
            "add --benchmark-save-dat",
        ),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(InvalidProblem, match=said):
        timings_in(written(tmp_path, content))


def test_a_problem_file_reads_timings(tmp_path: Path) -> None:
    written(tmp_path, hyperfine(a=[1.0, 2.0, 4.0] * 30, b=[0.5, 0.25, 0.3] * 30))
    (tmp_path / "q.toml").write_text(
        '[problem]\nm = 1\nepsilon = 0.5\ndelta = 0.1\ngoal = "minimise"\nnoise = "gaussian-unknown"\n'
        'names = ["a", "b"]\n[measure]\nkind = "table"\nfile = "timings.json"\norder = "random"\n'
    )
    found = read_problem_file(tmp_path / "q.toml")
    assert sl.select(found.source, found.problem).selected == ("b",)
