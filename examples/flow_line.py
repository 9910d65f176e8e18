"""Which design of a flow line is the fastest? The best of a million, simulated on a GPU.

    python examples/flow_line.py --size 128 --seeds 20 --output flow-line.json
    python examples/flow_line.py --size 10 --cpu

Jobs pass three stations. The service rates s1 + s2 + s3 = R and the buffers b2 + b3 = R (`--size`) are
integers, all at least 1. b2 and b3 include the place in service. Service times are exponential. There is
always a job waiting for station 1. If a finished job finds no free place at the next station, it blocks its
own station.

A reward is the average time between the departures of jobs 2,001 to 2,050, and is minimised. A Markov chain
gives the exact throughput of a design, so the answer can be checked.

With CuPy, one GPU thread simulates each replication, and only means and sample variances leave the GPU.
Without CuPy, NumPy runs the same simulation on the CPU, from the same random numbers. R = 20 (3,249
designs) then takes some seconds, R = 50 (57,624 designs) a minute, and R = 128 (1,016,127 designs) a
quarter of an hour.
"""

import argparse
import functools
import json
import math
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse.linalg

import shortlist as sl

WARM_UP, COUNTED = 2000, 50
BEST = {20: 5.776121751464, 50: 15.697584822794, 128: 41.658242510479}  # throughputs, from the Markov chain

# --- the designs, and what is known of them exactly ---------------------------------------------------------


def designs(size: int) -> Any:
    """Return all designs with R = B = `size`: one row (s1, s2, s3, b2, b3) each."""
    first, second = np.triu_indices(size - 1, 1)
    rates = np.stack([first + 1, second - first, size - 1 - second], axis=1)
    b2 = np.arange(1, size)
    buffers = np.stack([b2, size - b2], axis=1)
    return np.hstack([np.repeat(rates, len(buffers), axis=0), np.tile(buffers, (len(rates), 1))])


def throughput(design: Any) -> float:
    """Return the exact throughput of a design: the rate of station 3 times the probability that it is busy.

    In state (i, j), i jobs have left the service of station 1 but not of station 2, and j jobs have left
    the service of station 2 but not of station 3. If i = b2 + 1, station 1 is blocked. If j = b3 + 1,
    station 2 is blocked, and has one place fewer.
    """
    s1, s2, s3, b2, b3 = (int(number) for number in design)
    states = [(i, j) for i in range(b2 + 2) for j in range(b3 + 2) if (i, j) != (b2 + 1, b3 + 1)]
    places = {state: place for place, state in enumerate(states)}
    flows = []
    for (i, j), place in places.items():
        if i + (j == b3 + 1) <= b2:
            flows.append((place, places[i + 1, j], s1))
        if i >= 1 and j <= b3:
            flows.append((place, places[i - 1, j + 1], s2))
        if j >= 1:
            flows.append((place, places[i, j - 1], s3))
    origins, targets, rates = np.array(flows).T
    balance = scipy.sparse.coo_array((rates * 1.0, (targets, origins)), shape=(len(states),) * 2).tolil()
    balance.setdiag(-np.bincount(origins, rates, len(states)))
    balance[0] = np.ones(len(states))  # one equation follows from the others; probabilities add up to 1
    right = np.zeros(len(states))
    right[0] = 1.0
    probabilities = scipy.sparse.linalg.spsolve(balance.tocsc(), right)
    return s3 * float(sum(probabilities[place] for (_, j), place in places.items() if j >= 1))


@functools.cache
def best_throughput(size: int) -> float:
    """Return the throughput of the best design."""
    return BEST.get(size) or max(throughput(design) for design in designs(size))


# --- random numbers: SplitMix64, number `i` of a seed computed at once --------------------------------------

GAMMA = 0x9E3779B97F4A7C15
STREAM = 4096  # numbers set aside for each replication, of which it uses one per job


def mixed(states: Any) -> Any:
    """Return the random 64-bit numbers that belong to states of the generator."""
    states = (states ^ (states >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    states = (states ^ (states >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return states ^ (states >> np.uint64(31))


def service_times(numbers: Any, means: Any) -> Any:
    """Return the service times of a job at three stations, each from 21 bits of a number.

    The finite number of bits makes the mean too small by a factor of 1 - 2e-7. This error is far below every
    epsilon of interest.
    """
    bits = np.stack([numbers, numbers >> np.uint64(21), numbers >> np.uint64(42)]) & np.uint64(0x1FFFFF)
    return means * -np.log((bits.astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-21))


# --- replications on a CPU ----------------------------------------------------------------------------------


class OnCpu:
    """Simulations by NumPy, some thousands of replications at a time."""

    chunk = 4096  # a power of two

    def __init__(self, every: Any) -> None:
        self.every = every
        self.seconds = 0.0

    def __call__(self, arms: Any, counts: Any, rng: np.random.Generator) -> sl.Summary:
        """Return means and sample variances of fresh replications."""
        start = time.perf_counter()
        found = self.replications(arms, counts, rng.integers(2**64, dtype=np.uint64)).astype(np.float64)
        starts = np.cumsum(counts) - counts
        means = np.add.reduceat(found, starts) / counts
        squares = np.add.reduceat((found - np.repeat(means, counts)) ** 2, starts)
        self.seconds += time.perf_counter() - start
        return sl.Summary(counts, means, squares / (counts - 1))

    def replications(self, arms: Any, counts: Any, key: np.uint64) -> Any:
        """Return the reward of every replication; rewards of the same arm are adjacent."""
        each = self.every[np.repeat(arms, counts)]
        first = range(0, len(each), self.chunk)
        return np.concatenate([self._chunk(each[at : at + self.chunk], at, key) for at in first])

    def _chunk(self, each: Any, number: int, key: np.uint64) -> Any:
        """Return the rewards of some replications; `number` is the number of the first.

        For stations 2 and 3, a ring buffer holds the times at which the last 2^k jobs left. The width is a
        power of two as well, so going back b jobs takes a subtraction and a mask.
        """
        n, width = len(each), 1 << (len(each) - 1).bit_length()
        each = np.resize(each, (width, 5))
        ring = width << int(each[:, 3:].max()).bit_length()
        means = (np.float32(1) / each[:, :3].astype(np.float32)).T
        back_2, back_3 = np.arange(width) - width * each[:, 3:].T
        left_2, left_3 = np.zeros((2, ring), dtype=np.float32)
        e1, e2, e3, start = np.zeros((4, width), dtype=np.float32)
        numbers = np.arange(number, number + width, dtype=np.uint64)
        states = key + numbers * np.uint64(STREAM * GAMMA % 2**64)
        for job in range(WARM_UP + COUNTED):
            if job == WARM_UP:
                start = e3
            states += np.uint64(GAMMA)
            times, here = service_times(mixed(states), means), job * width
            e1 = np.maximum(e1 + times[0], left_2.take((back_2 + here) & (ring - 1)))
            e2 = np.maximum(np.maximum(e2, e1) + times[1], left_3.take((back_3 + here) & (ring - 1)))
            e3 = np.maximum(e3, e2) + times[2]
            at = slice(here % ring, here % ring + width)
            left_2[at], left_3[at] = e2, e3
        return ((e3 - start) / np.float32(COUNTED))[:n]


# --- replications on a GPU ----------------------------------------------------------------------------------

KERNELS = r"""
typedef unsigned long long word;
const word GAMMA = 0x9E3779B97F4A7C15ull, STREAM = 4096;

__device__ word mixed(word state) {
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ull;
    state = (state ^ (state >> 27)) * 0x94D049BB133111EBull;
    return state ^ (state >> 31);
}

__device__ float service_time(word bits, float mean) {
    return mean * -logf(((float)(unsigned)(bits & 0x1FFFFF) + 0.5f) * 4.76837158203125e-07f);
}

// One thread is one replication. `ends` says how many replications there are up to each arm listed.
// Each thread remembers when the last b2 jobs left station 2, and the last b3 jobs station 3.
extern "C" __global__ void replicate(const int* every, const int* arms, const long long* ends, int n_arms,
                                     word key, float* found) {
    extern __shared__ float left[];
    const long long number = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= ends[n_arms - 1]) return;
    int low = 0, high = n_arms - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (number < ends[middle]) high = middle; else low = middle + 1;
    }
    const int* design = every + 5 * (long long)arms[low];
    const float mean_1 = 1.0f / design[0], mean_2 = 1.0f / design[1], mean_3 = 1.0f / design[2];
    const int b2 = design[3], b3 = design[4], step = blockDim.x;
    float* left_2 = left + threadIdx.x;
    float* left_3 = left_2 + b2 * step;
    for (int place = 0; place < b2 + b3; place++) left_2[place * step] = 0.0f;
    float e1 = 0.0f, e2 = 0.0f, e3 = 0.0f, start = 0.0f;
    word state = key + (word)number * (STREAM * GAMMA);
    for (int job = 0, at_2 = 0, at_3 = 0; job < WARM_UP + COUNTED; job++) {
        if (job == WARM_UP) start = e3;
        state += GAMMA;
        const word bits = mixed(state);
        e1 = fmaxf(e1 + service_time(bits, mean_1), left_2[at_2]);
        e2 = fmaxf(fmaxf(e2, e1) + service_time(bits >> 21, mean_2), left_3[at_3]);
        e3 = fmaxf(e3, e2) + service_time(bits >> 42, mean_3);
        left_2[at_2] = e2;
        left_3[at_3] = e3;
        at_2 = at_2 + step == b2 * step ? 0 : at_2 + step;
        at_3 = at_3 + step == b3 * step ? 0 : at_3 + step;
    }
    found[number] = (e3 - start) / COUNTED;
}

// 32 threads sum up the replications of one arm: first their mean, then squares of deviations from it.
extern "C" __global__ void sum_up(const float* found, const long long* ends, int n_arms, double* means,
                                  double* variances) {
    const long long arm = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (arm >= n_arms) return;
    const int lane = threadIdx.x % 32;
    const long long first = arm ? ends[arm - 1] : 0, count = ends[arm] - first;
    double sum = 0.0, squares = 0.0;
    for (long long place = lane; place < count; place += 32) sum += found[first + place];
    for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, apart);
    const double mean = sum / count;
    for (long long place = lane; place < count; place += 32) {
        const double deviation = found[first + place] - mean;
        squares += deviation * deviation;
    }
    for (int apart = 16; apart; apart /= 2) squares += __shfl_xor_sync(0xFFFFFFFFu, squares, apart);
    if (lane == 0) { means[arm] = mean; variances[arm] = squares / (count - 1); }
}
"""


class OnGpu:
    """Simulations by CuPy, all replications of a round at once."""

    def __init__(self, every: Any) -> None:
        import cupy  # noqa: PLC0415

        self.cupy, self.size = cupy, int(every[0, 3:].sum())
        self.every = cupy.asarray(every, dtype=cupy.int32)
        constants = (f"-DWARM_UP={WARM_UP}", f"-DCOUNTED={COUNTED}")
        module = cupy.RawModule(code=KERNELS, options=constants)
        self.replicate, self.sum_up = module.get_function("replicate"), module.get_function("sum_up")
        self.seconds = 0.0

    def __call__(self, arms: Any, counts: Any, rng: np.random.Generator) -> sl.Summary:
        """Return means and sample variances of fresh replications, as arrays on the GPU."""
        cupy = self.cupy
        begun, done = cupy.cuda.Event(), cupy.cuda.Event()
        begun.record()
        found, ends = self.replications(arms, counts, rng.integers(2**64, dtype=np.uint64))
        means, variances = cupy.empty((2, len(arms)))
        self.sum_up((-(-len(arms) // 8),), (256,), (found, ends, np.int32(len(arms)), means, variances))
        done.record()
        done.synchronize()
        self.seconds += cupy.cuda.get_elapsed_time(begun, done) / 1000
        return sl.Summary(counts, means, variances)

    def replications(self, arms: Any, counts: Any, key: np.uint64) -> Any:
        """Return the reward of every replication, arm by arm, and the position where each arm ends."""
        cupy, threads = self.cupy, 64 if self.size <= 192 else 32  # 48 KB of shared memory are enough
        ends = cupy.asarray(np.cumsum(counts, dtype=np.int64))
        total = int(counts.sum())
        found = cupy.empty(total, dtype=cupy.float32)
        given = (self.every, cupy.asarray(arms, dtype=cupy.int32), ends, np.int32(len(arms)), key, found)
        blocks = (-(-total // threads),)
        self.replicate(blocks, (threads,), given, shared_mem=4 * threads * self.size)
        return found, ends


def largest_difference(every: Any, on_gpu: OnGpu) -> float:
    """Return the largest relative difference between GPU and CPU rewards of some designs."""
    arms = np.unique(np.linspace(0, len(every) - 1, 50).astype(int))
    counts, key = 1 + np.arange(len(arms)) % 7, np.uint64(20261118)
    here = OnCpu(every).replications(arms, counts, key)
    there = on_gpu.replications(arms, counts, key)[0].get()
    return float(np.abs(there / here - 1).max())


# --- the runs -----------------------------------------------------------------------------------------------


def run(every: Any, problem: sl.Problem, simulation: Any, seed: int) -> tuple[sl.Result, dict[str, Any]]:
    """Return the result of one run, and its figures."""
    begun, measured = time.perf_counter(), simulation.seconds
    result = sl.select(sl.vectorised(simulation, block=None), problem, seed=seed)
    wall, measured = time.perf_counter() - begun, simulation.seconds - measured
    (chosen,) = result.indices.tolist()
    loss = 1 / throughput(every[chosen]) - 1 / best_throughput(int(every[0, 3:].sum()))
    return result, {
        "seed": seed,
        "pulls per design": result.n_pulls / problem.n,
        "rounds": result.n_rounds,
        "seconds": wall,
        "seconds of measuring": measured,
        "seconds of deciding": wall - measured,
        "is certified": result.guarantee is not None,
        "selected": every[chosen].tolist(),
        "mean": float(result.arms.means[chosen]),
        "loss": loss,
        "is right": bool(loss <= problem.epsilon),
    }


def simulation_of(every: Any, *, on_cpu: bool) -> tuple[OnCpu | OnGpu, str]:
    """Return a simulation, on the GPU if there is one, and the name of its device."""
    if not on_cpu:
        try:
            simulation = OnGpu(every)
            name = simulation.cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        except Exception as error:  # no CuPy, no GPU, or no compiler
            print(f"No GPU is used ({type(error).__name__}: {str(error).splitlines()[0]}).")
        else:
            return simulation, f"{name}, CuPy {simulation.cupy.__version__}"
    return OnCpu(every), f"CPU, NumPy {np.__version__}"


def rounded_down(number: float) -> float:
    """Return a number rounded down to three digits."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 2)
    return float(f"{math.floor(number / unit) * unit:.2e}")


def main() -> None:
    """Find the best design with several seeds; print the figures, and write them to a file."""
    parser = argparse.ArgumentParser(description="Find the best design of a flow line.")
    parser.add_argument("--size", type=int, default=20, help="R and B; the best is known for 20, 50 and 128")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epsilon", type=float, help="in time per job; by default about 0.1 in throughput")
    parser.add_argument("--cpu", action="store_true", help="use NumPy even if there is a GPU")
    parser.add_argument("--output", type=Path, help="a JSON file for the figures")
    given = parser.parse_args()
    every, best = designs(given.size), best_throughput(given.size)
    epsilon = given.epsilon or rounded_down(1 / (best - 0.1) - 1 / best)
    about: dict[str, Any] = {"size": given.size, "designs": len(every), "epsilon": epsilon, "delta": 0.05}
    begun = time.perf_counter()
    simulation, about["device"] = simulation_of(every, on_cpu=given.cpu)
    if isinstance(simulation, OnGpu):
        about["largest difference from CPU"] = largest_difference(every, simulation)
    about["seconds to prepare"] = time.perf_counter() - begun
    print(f"{len(every):,} designs, epsilon {epsilon:g}; {about['device']}", flush=True)
    problem = sl.Problem(
        m=1, epsilon=epsilon, delta=0.05, n=len(every), rewards=sl.Gaussian(), goal="minimise"
    )
    runs = []
    for seed in range(given.seeds):
        result, one = run(every, problem, simulation, seed)
        runs.append(one)
        print_run(one, epsilon)
        if given.output is not None:
            given.output.write_text(json.dumps(about | {"runs": runs}, indent=1) + "\n", encoding="utf-8")
    print(*(textwrap.fill(line, 80) for line in str(result).splitlines()), sep="\n")
    print(
        f"{sum(one['is certified'] and one['is right'] for one in runs)} of {len(runs)} certified and right"
    )


def print_run(one: dict[str, Any], epsilon: float) -> None:
    """Print the figures of a run."""
    name = f"({','.join(map(str, one['selected']))})"
    print(
        f"{name}  time per job {one['mean']:.5f}, seed {one['seed']}\n"
        f"  {'' if one['is certified'] else 'not '}certified; true loss {one['loss'] / epsilon:.2f} epsilon\n"
        f"  {one['pulls per design']:.1f} pulls per design in {one['rounds']} rounds\n"
        f"  {one['seconds']:.2f} s: measuring {one['seconds of measuring']:.2f} s, "
        f"deciding {one['seconds of deciding']:.2f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
