"""Blocks and unknown variances: pulls beside other procedures, errors on traps, and time with many arms.

`python -m benchmarks.blocks` writes benchmarks/results/blocks.md; an hour on two cores. `--runs` sets the
number of runs for pulls, `--tries` that for errors. Figures are kept in the file `--parts` as they come; the
same command again goes on where it was stopped.
"""

import argparse
import json
import multiprocessing
import platform
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import shortlist as sl
from benchmarks import inventory, procedures, throughput, unknown
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates import Certificate
from shortlist.simulation import is_wrong
from shortlist.strategies import strategy_for, t_cut_race
from shortlist.strategies.protocol import Moments

RESULTS = Path(__file__).parent / "results" / "blocks.md"
DELTA = 0.05
TRIES_AT_ONCE = 250
MOST_BLOCKS = 500  # of bi-PASS, which need not end
Jobs: TypeAlias = dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """An instance: means, and standard deviations."""

    title: str
    m: int
    epsilon: float
    means: tuple[float, ...]
    scales: tuple[float, ...]

    def question(self, delta: float = DELTA, **changes: Any) -> sl.Problem:
        """Return the question about this instance."""
        n = len(self.means)
        return sl.Problem(m=self.m, epsilon=self.epsilon, delta=delta, n=n, rewards=sl.Gaussian(), **changes)


def cases() -> Iterator[Case]:
    """Yield the instances of the table of pulls."""
    rng = np.random.default_rng(1)
    for n in (20, 100, 1000):
        for m in (1, 5):
            for spread in (0.0, 1.2):
                scales = tuple(np.exp(rng.uniform(-spread, spread, n)).tolist())
                words = "equal" if spread == 0 else "1 to 11"
                means = tuple([0.55] * m + [0.0] * (n - m))
                yield Case(f"{m} of {n:,} just over epsilon ahead, scales {words}", m, 0.5, means, scales)
        means = tuple((-0.25 * np.arange(n)).tolist())
        yield Case(f"1 of {n:,} in steps of epsilon / 2, scales equal", 1, 0.5, means, (1.0,) * n)


def measured(pool: ProcessPoolExecutor, kept: Path, jobs: Jobs) -> dict[str, Any]:
    """Return what each job gives; what is in the file is not computed again."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    found = {name: value for name, value in map(json.loads, lines) if name in jobs}
    waiting = {pool.submit(job): name for name, job in jobs.items() if name not in found}
    for future in as_completed(waiting):
        name = waiting[future]
        found[name] = future.result()
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps([name, found[name]]) + "\n")
    return found


# --- pulls ------------------------------------------------------------------------------------------------

COLUMNS: dict[str, tuple[str, float | None]] = {
    "t-race": ("t-race", None),
    "auto": ("auto", None),
    "paired-race": ("paired-race", None),
    "t-cut-race": ("t-cut-race", None),
    "kim-nelson": ("kim-nelson", None),
    "rinott": ("rinott", None),
    "dudewicz-dalal": ("dudewicz-dalal", None),
    "GSP": ("GSP", None),
    "blocks, correlation 0": ("blocks", 0.0),
    "blocks, .5": ("blocks", 0.5),
    "blocks, .9": ("blocks", 0.9),
    "KN, .5": ("KN", 0.5),
    "KN, .9": ("KN", 0.9),
}
"""How arms are chosen, and how they are correlated within a block; None for independent streams."""


def pulls(case: Case, strategy: str, correlation: float | None, runs: int) -> tuple[float, int] | None:
    """Return the mean number of pulls and the number of wrong answers; None if it is not for the question."""
    variances = np.square(case.scales)
    if strategy in {"KN", "GSP"}:
        return rival(case, strategy, correlation or 0.0, runs) if case.m == 1 else None
    if strategy == "blocks":
        question = case.question(items=sl.Blocks())
        found = sl.simulate(
            question, case.means, variances=variances, correlation=correlation, replications=runs
        )
        return float(found.pulls.mean()), found.errors
    question = case.question(guarantee="indifference" if strategy == "kim-nelson" else "pac")
    if strategy != "auto" and strategy_for(strategy, question).unfit(question):
        return None
    runs = min(runs, 5) if strategy == "kim-nelson" and question.n >= 1000 else runs
    found = sl.simulate(question, case.means, strategy, variances=variances, replications=runs)
    return float(found.pulls.mean()), found.errors


def rival(case: Case, name: str, correlation: float, runs: int) -> tuple[float, int]:
    """Return the same of a procedure that is no part of Shortlist."""
    means, scales = np.array(case.means), np.array(case.scales)
    found = []
    for seed in range(min(runs, 5) if len(means) >= 1000 else runs):
        rng = np.random.default_rng(seed)

        def draw(arms: IntArray, first: int, last: int, rng: np.random.Generator = rng) -> FloatArray:
            common = np.sqrt(correlation) * rng.standard_normal(last - first)
            own = np.sqrt(1 - correlation) * rng.standard_normal((len(arms), last - first))
            drawn: FloatArray = means[arms, None] + scales[arms, None] * (common + own)
            return drawn

        found.append(chosen(name, draw, case.question(guarantee="indifference")))
    n_wrong = sum(bool(means[arm] < means.max() - case.epsilon) for arm, _ in found)
    return float(np.mean([n_pulls for _, n_pulls in found])), n_wrong


def chosen(name: str, draw: procedures.Draw, question: sl.Problem) -> procedures.Found:
    """Return what a procedure finds, with settings that suited it best among a few on these instances."""
    given = draw, question.n, question.epsilon, question.delta
    if name == "KN":
        return procedures.kim_nelson(*given, pilot=10)
    if name == "GSP":
        return procedures.good_selection(*given, pilot=20, batch=10, rounds=5)
    return procedures.survivors(*given, pilot=20, most=MOST_BLOCKS)[0]


def jobs_of_pulls(runs: int) -> Jobs:
    """Return the jobs of the table of pulls."""
    return {
        f"{case.title} | {name}": partial(pulls, case, *column, runs)
        for case in cases()
        for name, column in COLUMNS.items()
    }


def table_of_pulls(found: dict[str, Any]) -> list[str]:
    """Return the table of pulls, relative to `t-race`."""
    names = list(COLUMNS)
    lines = [
        f"| instance | t-race, pulls | {' | '.join(names[1:])} | wrong |",
        "|---|" + "---|" * (len(names) + 1),
    ]
    for case in cases():
        row = {name: found[f"{case.title} | {name}"] for name in names}
        base = row["t-race"][0]
        ratios = ["-" if row[name] is None else f"{row[name][0] / base:.2f}" for name in names[1:]]
        wrong = sum(value[1] for value in row.values() if value is not None)
        lines.append(f"| {case.title} | {base:,.0f} | {' | '.join(ratios)} | {wrong} |")
    return lines


def known_cut(n: int, m: int, epsilon: float, gap: float) -> tuple[float, float]:
    """Return the fewest pulls with which limits reach a cut that is known, one pull at a time, and its place.

    The place is the share of the way from the outsiders to the incumbents raised by epsilon. It is a floor
    for `t-cut-race`, which has to find the cut and pulls in batches.
    """
    question = sl.Problem(m, epsilon, DELTA, n=n, rewards=sl.Gaussian())
    rng, pulls = np.random.default_rng(0), np.arange(1, 801)
    rewards = rng.standard_normal((2000, len(pulls)))
    means = np.cumsum(rewards, axis=1) / pulls
    deviations = np.maximum(np.cumsum(rewards**2, axis=1) - means**2 * pulls, 0.0)
    reaches = np.array([t_cut_race.limits(question, pulls, row) for row in deviations])
    found = []
    for share in np.arange(0.4, 0.9, 0.05).tolist():
        room = np.array([share, 1 - share])[:, None] * (gap + epsilon)
        is_there = means[:, None, :] + reaches <= room
        upper, lower = (is_there.argmax(axis=2) + 1).mean(axis=0)
        found.append((float((n - m) * upper + m * lower), share))
    return min(found)


# --- simulations ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Model:
    """A simulation with known means, larger being better.

    `own(arms, rng)` returns a reward for each arm listed, `shared(arms, seeds)` a table of rewards whose
    columns are blocks: all arms have the same random numbers there.
    """

    title: str
    m: int
    epsilon: float
    means: FloatArray
    own: Callable[[IntArray, np.random.Generator], FloatArray]
    shared: Callable[[IntArray, Any], FloatArray]

    def question(self, **changes: Any) -> sl.Problem:
        """Return the question."""
        n = len(self.means)
        return sl.Problem(self.m, self.epsilon, DELTA, n=n, rewards=sl.Gaussian(), **changes)


def policies(m: int) -> Model:
    """Return 100 of the 1,600 inventory policies."""
    stock, arms = inventory.systems(), np.arange(0, 1600, 16)

    def shared(chosen: IntArray, seeds: Any) -> FloatArray:
        columns = [demanded(stock, arms[chosen], np.random.default_rng(seed)) for seed in seeds]
        return -np.stack(columns, axis=1)

    return Model(
        f"inventory, {m} of 100 to within 0.5 of a cost of 106",
        m,
        0.5,
        -stock.means[arms],
        lambda chosen, rng: inventory.rewards(stock, arms[chosen], rng),
        shared,
    )


def demanded(stock: inventory.Systems, arms: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return the average costs of policies over 30 periods with the same demands for all."""
    reorder, level = stock.reorder[arms], stock.level[arms]
    amount, spent = level.copy(), np.zeros(len(arms))
    for demand in rng.poisson(inventory.DEMAND, inventory.PERIODS):
        is_low = amount < reorder
        spent += np.where(is_low, inventory.ORDER + inventory.UNIT * (level - amount), 0)
        amount = np.where(is_low, level, amount) - demand
        spent += np.where(amount > 0, inventory.HOLDING * amount, -inventory.OWING * amount)
    return spent / inventory.PERIODS


def flow_line(size: int, epsilon: float) -> Model:
    """Return all designs of the flow line with so many units of service and of buffers."""
    designs = throughput.lines(size)
    means = -1 / throughput.throughputs(designs)
    return Model(
        f"flow line, 1 of {len(means):,} to within {epsilon:g} of a time of {-means.max():.3f}",
        1,
        epsilon,
        means,
        lambda chosen, rng: throughput.rewards(designs, chosen, rng),
        lambda chosen, seeds: throughput.rewards_in_blocks(designs, chosen, seeds),
    )


MODELS: dict[str, Callable[[], Model]] = {
    "inventory": partial(policies, 1),
    "inventory, 5": partial(policies, 5),
    "flow line": partial(flow_line, 10, 0.006),
    "large flow line": partial(flow_line, 20, 0.003),
}
WAYS = (
    "t-race", "auto", "blocks, own numbers", "blocks, common numbers",
    "KN, own numbers", "KN, common numbers", "GSP", "bi-PASS",
)  # fmt: skip


LARGE_WAYS = ("auto", "blocks, common numbers", "KN, common numbers")  # others take hours
RUNS_OF = {"inventory": 4, "inventory, 5": 4, "flow line": 2, "large flow line": 1}  # at most


@lru_cache
def model_of(name: str) -> Model:
    """Return a model; its exact means take a while."""
    return MODELS[name]()


def simulated(model: str, way: str, seed: int) -> tuple[int, bool] | None:
    """Return the pulls of a run, and whether its answer is right; None if it is not for the question."""
    found = model_of(model)
    if way in {"t-race", "auto"}:
        case = unknown.Case("", found.question(), found.own, found.means, ())
        result = unknown.run(case, way, seed)
        return result.n_pulls, _is_right(found, result.indices)
    if way.startswith("blocks"):
        result = sl.select(
            sl.vectorised(_in_blocks(found, common="common" in way)),
            found.question(items=sl.Blocks()),
            seed=seed,
        )
        return result.n_pulls, _is_right(found, result.indices)
    if found.m > 1:
        return None
    rng = np.random.default_rng(seed)

    def draw(arms: IntArray, first: int, last: int) -> FloatArray:
        if "common" in way:
            return found.shared(arms, [10**6 * seed + block for block in range(first, last)])
        return found.own(np.repeat(arms, last - first), rng).reshape(len(arms), -1)

    arm, n_pulls = chosen(way.partition(",")[0], draw, found.question(guarantee="indifference"))
    return n_pulls, _is_right(found, np.array([arm]))


def _in_blocks(model: Model, *, common: bool) -> Callable[..., FloatArray]:
    """Return the measurement of arms in blocks."""

    def own(arms: Any, blocks: Any) -> FloatArray:
        columns = [model.own(np.asarray(arms), np.random.default_rng([*arms, block])) for block in blocks]
        return np.stack(columns, axis=1)

    return (lambda arms, blocks: model.shared(np.asarray(arms), blocks)) if common else own


def _is_right(model: Model, indices: IntArray) -> bool:
    return not is_wrong(model.question(), model.means, indices[None])[0]


def jobs_of_models(runs: int) -> Jobs:
    """Return the jobs of the table of simulations."""
    return {
        f"{model} | {way} | {seed}": partial(simulated, model, way, seed)
        for model in MODELS
        for way in (LARGE_WAYS if model == "large flow line" else WAYS)
        for seed in range(min(runs, RUNS_OF.get(model, runs)))
    }


def table_of_models(found: dict[str, Any]) -> list[str]:
    """Return the table of simulations."""
    lines = [f"| simulation | {' | '.join(WAYS)} |", "|---|" + "---|" * len(WAYS)]
    for name in MODELS:
        cells = []
        for way in WAYS:
            values = [value for key, value in found.items() if key.startswith(f"{name} | {way} | ")]
            if not values or None in values:
                cells.append("-")
                continue
            n_right = sum(is_right for _, is_right in values)
            note = "" if n_right == len(values) else f" (right in {n_right} of {len(values)})"
            cells.append(f"{np.mean([n for n, _ in values]):,.0f}{note}")
        lines.append(f"| {model_of(name).title} | {' | '.join(cells)} |")
    return lines


# --- errors -----------------------------------------------------------------------------------------------


def is_false(certificate: Certificate, means: FloatArray) -> bool:
    """Return whether something that is certified is not true."""
    if certificate.guarantee is None:
        return False
    problem = certificate.problem
    limit = np.sort(means)[-problem.m]
    is_good = means >= limit - problem.epsilon - 1e-9
    statuses = np.array(certificate.statuses)
    return bool(
        (means[certificate.indices] < limit - certificate.epsilons - 1e-9).any()
        or (~is_good & (statuses == "in")).any()
        or (is_good & (statuses != "out")).sum() < problem.m
    )


def adversary(n: int, m: int, correlation: float, strategy: str, delta: float, seed: int) -> bool:
    """Return whether anything false is certified at any moment of a run; then the adversary stops."""
    rng = np.random.default_rng([seed, n, m])
    means = np.array([0.51] * m + [0.0] * (n - m))
    scales = np.exp(rng.uniform(-1, 1, n)) if strategy else np.ones(n)
    blocks: dict[str, Any] = {} if strategy else {"items": sl.Blocks()}
    problem = sl.Problem(m=m, epsilon=0.5, delta=delta, n=n, rewards=sl.Gaussian(), **blocks)
    rules = strategy_for(strategy or "paired-race", problem)
    assert rules.anytime is not None
    state, seen, table = rules.init(problem, ()), np.zeros(n, dtype=np.int64), np.empty((n, 0))
    signs = np.where(np.arange(n) % 2, np.sign(correlation) or 1.0, 1.0)
    for _ in range(200):
        if rules.verdict(state).is_final:
            return False
        batch = rules.ask(state)
        width = int((seen[batch.arms] + batch.counts).max())
        while table.shape[1] < width:
            more = max(64, width - table.shape[1])
            common = np.sqrt(abs(correlation)) * signs[:, None] * rng.standard_normal(more)
            own = np.sqrt(1 - abs(correlation)) * rng.standard_normal((n, more))
            table = np.concatenate([table, means[:, None] + scales[:, None] * (common + own)], axis=1)
        parts = [table[arm, seen[arm] :][:count] for arm, count in zip(batch.arms, batch.counts, strict=True)]
        seen[batch.arms] += batch.counts
        told = Moments(
            np.array([own.mean() for own in parts]),
            np.array([own.var(ddof=1) if len(own) > 1 else 0.0 for own in parts]),
            np.concatenate(parts),
        )
        state = rules.tell(state, told)
        if is_false(rules.anytime.certificate(state), means):
            return True
    return False


TRAPS: list[tuple[int, int, float, str]] = [
    (2, 1, 0.0, "paired-race"), (5, 2, 0.0, "paired-race"), (15, 1, 0.0, "paired-race"),
    (2, 1, -0.9, ""), (2, 1, 0.0, ""), (2, 1, 0.9, ""), (5, 2, -0.9, ""), (5, 2, 0.5, ""),
    (10, 1, 0.0, ""), (50, 3, 0.9, ""),
    (2, 1, 0.0, "t-cut-race"), (5, 2, 0.0, "t-cut-race"), (5, 2, -0.9, "t-cut-race"),
    (15, 1, 0.0, "t-cut-race"), (50, 1, 0.0, "t-cut-race"),
]  # fmt: skip
"""Arms, m, correlation, and the strategy for streams; for blocks, none."""


def n_false(trap: tuple[int, int, float, str], delta: float, seeds: range) -> int:
    """Return in how many runs anything false is certified."""
    return sum(adversary(*trap, delta, seed) for seed in seeds)


def jobs_of_errors(tries: int) -> Jobs:
    """Return the jobs of the table of errors, some runs each."""
    return {
        f"{trap} | {delta} | {first} to {first + TRIES_AT_ONCE}": partial(
            n_false, trap, delta, range(first, min(first + TRIES_AT_ONCE, tries))
        )
        for trap in TRAPS
        for delta in (0.2, 0.45)
        for first in range(0, tries, TRIES_AT_ONCE)
    }


def table_of_errors(found: dict[str, Any], tries: int) -> list[str]:
    """Return the table of runs in which anything false was certified at any moment."""
    lines = [
        "| arms, m | correlation | strategy | delta .2: false | delta .45: false |",
        "|---|---|---|---|---|",
    ]
    for trap in TRAPS:
        n, m, correlation, strategy = trap
        shares = [
            sum(value for key, value in found.items() if key.startswith(f"{trap} | {delta} | ")) / tries
            for delta in (0.2, 0.45)
        ]
        name = f"{strategy}, streams" if strategy else "paired-race, blocks"
        lines.append(f"| {n}, {m} | {correlation:g} | {name} | {shares[0]:.3f} | {shares[1]:.3f} |")
    return lines


def large(n: int, n_blocks: int) -> str:
    """Return a sentence on the time and memory of deciding among very many arms."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal(n_blocks) * 3 + rng.standard_normal((n, n_blocks))
    table += np.linspace(0.0, -3.0, n)[:, None]
    problem = sl.Problem(m=5, epsilon=0.35, delta=DELTA, n=n, rewards=sl.Gaussian(), items=sl.Blocks())
    rules = strategy_for("paired-race", problem)
    state, seen, spent, rounds = rules.init(problem, ()), np.zeros(n, dtype=np.int64), 0.0, 0
    while not rules.verdict(state).is_final:
        batch = rules.ask(state)
        if int((seen[batch.arms] + batch.counts).max()) > n_blocks:
            break
        parts = [table[arm, seen[arm] :][:count] for arm, count in zip(batch.arms, batch.counts, strict=True)]
        seen[batch.arms] += batch.counts
        told = Moments(np.array([own.mean() for own in parts]), scores=np.concatenate(parts))
        start = time.process_time()
        state = rules.tell(state, told)
        spent, rounds = spent + time.process_time() - start, rounds + 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    how = "ended" if rules.verdict(state).is_final else "was broken off"
    return (
        f"{n:,} arms, the 5 best to within 0.35 standard deviations: the run {how} after {rounds} decisions, "
        f"{int(seen.max()):,} blocks and {seen.sum():,} pulls; deciding took {spent:.1f} s of CPU in all, "
        f"and the process {memory:.1f} GiB, the table of rewards included."
    )


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--tries", type=int, default=2000)
    parser.add_argument("--parts", type=Path, default=Path("blocks-parts.jsonl"))
    given = parser.parse_args()
    jobs = jobs_of_pulls(given.runs) | jobs_of_errors(given.tries) | jobs_of_models(given.runs)
    jobs |= {"large": partial(large, 10_000, 600), "known cut": partial(known_cut, 20, 5, 0.5, 0.55)}
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("forkserver")) as pool:
        found = measured(pool, given.parts, jobs)
    floor, place = found["known cut"]
    base = found["5 of 20 just over epsilon ahead, scales equal | t-race"][0]
    lines = [
        "# Blocks and unknown variances",
        "",
        f"Python {platform.python_version()}, numpy {np.__version__}. Gaussian rewards, delta 0.05, "
        f"{given.runs} runs each (5 of `kim-nelson`, KN and GSP with 1,000 arms); pulls relative to those of "
        "`t-race` for independent streams. *Blocks* is `paired-race`, for arms with the stated correlation. "
        "`kim-nelson`, KN, `rinott` and GSP select one arm only. `kim-nelson` and KN promise the best arm "
        "only if no other lies within epsilon. *Wrong*: answers that were not within epsilon, of all runs of "
        "the row.",
        "",
        "KN (Kim and Nelson 2001, with the variances of differences), GSP (Ni, Ciocan, Henderson and Hunter "
        "2017) and bi-PASS (Pei, Nelson and Hunter 2022) are written anew in benchmarks/procedures.py, for "
        "one processor: KN with a pilot of 10, GSP with one of 20 and 5 rounds of 10 pulls of an arm on "
        "average, the settings that suited them best among a few.",
        "",
        *table_of_pulls(found),
        "",
        "Why `t-cut-race` takes more than 0.6 of the pulls of `t-race` with 5 of 20 arms of equal scales: "
        f"its limits would take {floor:,.0f} pulls if the best cut (at {place:.2f} of the way) were known in "
        f"advance and arms were pulled one at a time, or {floor / base:.2f} of those of `t-race`.",
        "",
        "## Simulations",
        "",
        "Pulls; every arm has random numbers of its own, or all have common ones. The inventory: "
        f"{RUNS_OF['inventory']} runs each; the small flow line: {RUNS_OF['flow line']}; the large one: "
        f"{RUNS_OF['large flow line']}, and not in all ways. Answers were right, that is within epsilon, "
        "unless it is said. bi-PASS has no epsilon: it goes on until one arm is left or there are "
        f"{MOST_BLOCKS:,} pulls of each, and it promises that few good arms are lost, not that the last is "
        "good.",
        "",
        *table_of_models(found),
        "",
        "## Errors",
        "",
        f"The m best are ahead by hardly more than epsilon. An adversary looks after every batch, and "
        f"stops as soon as anything false is certified: the epsilon of an arm, or a status. The share of "
        f"{given.tries:,} runs in which that happened; it must not exceed delta. Streams have scales "
        f"between 0.4 and 2.7.",
        "",
        *table_of_errors(found, given.tries),
        "",
        "## Very many arms",
        "",
        found["large"],
    ]
    print("\n".join(lines))
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
