"""Recorded timings: the files that hyperfine and pytest-benchmark write.

Written for hyperfine 1.12 to 1.19 (`--export-json`) and pytest-benchmark 3.4 to 5.3 (`--benchmark-json`, or
`--benchmark-save` with `--benchmark-save-data`). Both list all timings of each program, in seconds.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.errors import InvalidProblem
from shortlist.measure.csv_columns import listed, text_of
from shortlist.problem import Problem


def read_timings(path: Path, problem: Problem) -> list[FloatArray]:
    """Return the timings of each arm of a problem, in seconds, from a file of hyperfine or pytest-benchmark.

    The arms of hyperfine are its commands, or the names that `--command-name` gave them. Those of
    pytest-benchmark are names of tests, such as ``test_sort[10]``, or full names with the file.
    """
    found = timings_in(path)
    names = [problem.name(arm) for arm in range(problem.n)]
    if missing := [name for name in names if name not in found]:
        raise InvalidProblem(f"{path} has no timings of {missing[0]!r}; it has those of {listed(found)}.")
    return [found[name] for name in names]


def timings_in(path: Path) -> dict[str, FloatArray]:
    """Return the timings in a file by name, in seconds."""
    try:
        found = json.loads(text_of(path))
    except (ValueError, RecursionError) as error:
        raise InvalidProblem(f"{path} is not JSON ({error}); was it written completely?") from None
    if isinstance(found, dict) and isinstance(found.get("benchmarks"), list):
        named = list(_of_pytest_benchmark(found["benchmarks"], path))
    elif isinstance(found, dict) and isinstance(found.get("results"), list):
        named = list(_of_hyperfine(found["results"], path))
    else:
        raise InvalidProblem(
            f"{path} has neither the `results` of hyperfine nor the `benchmarks` of pytest-benchmark. Write "
            f"it with --export-json or with --benchmark-json."
        )
    if not named:
        raise InvalidProblem(f"{path} has no timings.")
    counts = Counter(name for name, _ in named)
    if (most := counts.most_common(1)[0])[1] > 1:
        raise InvalidProblem(f"{path} has {most[1]} lists of timings of {most[0]!r}; give each its own name.")
    return dict(named)


def _of_hyperfine(results: list[Any], path: Path) -> Iterator[tuple[str, FloatArray]]:
    for place, result in enumerate(results):
        where = f"{path}, result {place}"
        command = _entry(result, "command", where)
        codes = result.get("exit_codes") or []
        if not isinstance(codes, list) or any(code != 0 for code in codes):
            raise InvalidProblem(
                f"{where}: {command!r} failed in some runs. The time of a failed run is not the time of "
                "the job. Fix the command, and measure again without --ignore-failure."
            )
        yield str(command), _seconds(_entry(result, "times", where), where)


def _of_pytest_benchmark(benchmarks: list[Any], path: Path) -> Iterator[tuple[str, FloatArray]]:
    for place, benchmark in enumerate(benchmarks):
        where = f"{path}, benchmark {place}"
        name, full = (_entry(benchmark, key, where) for key in ("name", "fullname"))
        stats = _entry(benchmark, "stats", where)
        if not isinstance(stats, dict) or "data" not in stats:
            raise InvalidProblem(
                f"{where}: {name!r} has statistics, but not the timings themselves. Write the file with "
                f"--benchmark-json, or add --benchmark-save-data."
            )
        is_twice = sum(isinstance(one, dict) and one.get("name") == name for one in benchmarks) > 1
        yield str(full if is_twice else name), _seconds(stats["data"], where)


def _entry(found: Any, key: str, where: str) -> Any:
    if not isinstance(found, dict) or key not in found:
        raise InvalidProblem(f"{where} has no {key!r}; the file may come from another version of the tool.")
    return found[key]


def _seconds(found: Any, where: str) -> FloatArray:
    is_number = [isinstance(one, int | float) and not isinstance(one, bool) for one in _list(found)]
    try:
        times = np.array(found, dtype=float) if is_number and all(is_number) else np.empty(0)
    except OverflowError:  # JSON allows integers of any size
        times = np.empty(0)
    if not len(times) or not np.isfinite(times).all() or (times < 0).any():
        raise InvalidProblem(f"{where}: its timings must be a list of numbers of seconds, 0 or more.")
    return times


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []
