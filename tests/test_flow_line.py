"""The flow line of the examples: random numbers, replications and exact throughputs.

The kernel for a GPU is not run here. The example compares it with these replications whenever it uses one.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import million_gpu
from benchmarks.throughput import lines, throughputs
from examples import flow_line

pytestmark = pytest.mark.slow

GAMMA = 0x9E3779B97F4A7C15


def splitmix64(seed: int, n: int) -> list[int]:
    """Return the first numbers of a seed, by the published algorithm, one after the other."""
    found, state = [], seed
    for _ in range(n):
        state = (state + GAMMA) % 2**64
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        found.append(z ^ (z >> 31))
    return found


def test_random_numbers_are_those_of_splitmix64() -> None:
    assert splitmix64(1234567, 3) == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    states = np.uint64(1234567) + np.arange(1, 4097, dtype=np.uint64) * np.uint64(GAMMA)
    assert flow_line.mixed(states).tolist() == splitmix64(1234567, 4096)


def test_no_number_is_used_twice() -> None:
    """A replication has numbers enough, and the next one begins where those of this one end."""
    assert flow_line.STREAM >= flow_line.WARM_UP + flow_line.COUNTED
    assert f"STREAM = {flow_line.STREAM};" in flow_line.KERNELS
    assert math.gcd(GAMMA, 2**64) == 1  # so all 2^64 states of a seed differ


def test_service_times_are_exponential_and_independent() -> None:
    """Limits are about five standard errors; 21 bits shift the mean by 2e-7 only."""
    n = 2**20
    states = np.uint64(5) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(GAMMA)
    times = flow_line.service_times(flow_line.mixed(states), np.float32(1.0)).astype(np.float64)
    assert np.abs(times.mean(axis=1) - 1).max() < 5 / n**0.5
    assert np.abs(times.var(axis=1) - 1).max() < 5 * (8 / n) ** 0.5
    for level in (0.01, 0.1, 0.5, 1.0, 3.0, 8.0):
        share = math.exp(-level)
        assert np.abs((times > level).mean(axis=1) - share).max() < 5 * (share * (1 - share) / n) ** 0.5
    pairs = [(times[0], times[1]), (times[1], times[2]), (times[0], times[2])]
    pairs += [(one[:-1], one[1:]) for one in times]  # of neighbouring jobs
    pairs += [(one[: -flow_line.STREAM], one[flow_line.STREAM :]) for one in times]  # and replications
    assert max(abs(float(np.corrcoef(*pair)[0, 1])) for pair in pairs) < 5 / (n - flow_line.STREAM) ** 0.5


def test_the_mean_of_a_service_time_is_right_to_seven_digits() -> None:
    bits = np.arange(2**21, dtype=np.uint64)
    times = flow_line.service_times(bits, np.float32(1.0))[0].astype(np.float64)
    assert times.mean() == pytest.approx(1 - math.log(2) / 2**22, abs=1e-8)


def test_designs_are_those_of_the_benchmark() -> None:
    every, plain = flow_line.designs(12), lines(12)
    assert every.tolist() == np.hstack([plain.rates, plain.buffers]).tolist()
    exact = throughputs(plain)
    found = [flow_line.throughput(design) for design in every[::17]]
    np.testing.assert_allclose(found, exact[::17], rtol=1e-10)
    assert flow_line.best_throughput(12) == pytest.approx(exact.max(), rel=1e-10)


@pytest.mark.parametrize("size", [50, 128])
def test_the_best_designs_have_the_known_throughput(size: int) -> None:
    best = {50: (17, 17, 16, 21, 29), 128: (43, 43, 42, 54, 74)}[size]
    mirror = best[2::-1] + best[:2:-1]
    for design in (best, mirror):
        assert flow_line.throughput(design) == pytest.approx(flow_line.BEST[size], abs=1e-9)


def test_replications_have_the_exact_mean() -> None:
    every = flow_line.designs(20)
    arms, counts = np.array([0, 1234, 1700, 3248, 1888]), np.array([800, 700, 600, 500, 1000])
    found: Any = flow_line.OnCpu(every)(arms, counts, np.random.default_rng(3))
    exact = np.array([1 / flow_line.throughput(every[arm]) for arm in arms])
    np.testing.assert_array_less(np.abs(found.mean - exact), 4.5 * np.sqrt(found.variance / counts))


def test_replications_do_not_depend_on_how_they_are_chunked(monkeypatch: pytest.MonkeyPatch) -> None:
    every, arms, counts = flow_line.designs(8), np.array([3, 100, 3]), np.array([9, 20, 5])
    whole = flow_line.OnCpu(every).replications(arms, counts, np.uint64(2**64 - 7))
    monkeypatch.setattr(flow_line.OnCpu, "chunk", 8)
    parts = flow_line.OnCpu(every).replications(arms, counts, np.uint64(2**64 - 7))
    assert whole.tolist() == parts.tolist()
    assert len(set(whole.tolist())) == len(whole)


def test_a_summary_is_that_of_the_replications() -> None:
    every, arms, counts = flow_line.designs(8), np.array([3, 100]), np.array([4, 7])
    simulation = flow_line.OnCpu(every)
    found: Any = simulation(arms, counts, np.random.default_rng(1))
    key = np.random.default_rng(1).integers(2**64, dtype=np.uint64)
    parts = np.split(simulation.replications(arms, counts, key).astype(np.float64), [4])
    np.testing.assert_allclose(found.mean, [part.mean() for part in parts])
    np.testing.assert_allclose(found.variance, [part.var(ddof=1) for part in parts])
    assert simulation.seconds > 0


def test_epsilon_is_about_a_tenth_in_throughput() -> None:
    for size, epsilon in ((20, 3.05e-3), (50, 4.08e-4), (128, 5.77e-5)):
        best = flow_line.best_throughput(size)
        assert flow_line.rounded_down(1 / (best - 0.1) - 1 / best) == epsilon


def test_the_figures_of_a_run_make_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    options = ["--size", "5", "--cpu", "--seeds", "2", "--output", str(file)]
    monkeypatch.setattr(sys, "argv", ["flow_line.py", *options])
    flow_line.main()
    assert "2 of 2 certified and right" in capsys.readouterr().out
    figures = json.loads(file.read_text(encoding="utf-8"))
    assert (figures["designs"], len(figures["runs"])) == (24, 2)
    for one in figures["runs"]:
        assert one["seconds"] == pytest.approx(one["seconds of measuring"] + one["seconds of deciding"])
        loss = 1 / flow_line.throughput(one["selected"]) - 1 / flow_line.best_throughput(5)
        assert one["loss"] == pytest.approx(loss, abs=1e-12)
    figures |= {"largest difference from CPU": 1e-6}
    text = million_gpu.page([figures])
    assert f"| 24 | {figures['epsilon']:g} |" in text
    assert "| 2 of 2 | 2 of 2 |" in text
    assert "differed from those by NumPy by 1.0e-06" in text
