"""Real servers for a real browser: processes that can be killed and started again, and what they serve."""

import contextlib
import signal
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import shortlist as sl
from shortlist.store import open_store
from tests.questions import unknown
from tests.report.samples import HOSTILE, problem, tell_as_before
from tests.server.process import ServerProcess


class Serving(ServerProcess):
    """A server that runs, and what programs do with it."""

    def __init__(self, store: Path, *options: str) -> None:
        super().__init__(store, *options)
        self.start()

    def kill(self) -> None:
        """Let it die without a word."""
        self.stop(signal.SIGKILL)

    def close(self) -> None:
        """End it."""
        self.stop()

    def post(self, path: str, **body: Any) -> Any:
        """Send something as a program would; return what is answered."""
        answer = httpx.post(f"{self.url}{path}", json=body, timeout=30)
        assert answer.is_success, answer.text
        return answer.json()

    def facts(self, path: str) -> Any:
        """Return plain data."""
        return httpx.get(f"{self.url}{path}", timeout=30).json()

    def begin(self, name: str, n: int = 6, m: int = 2, strategy: str = "short-race", **parts: Any) -> None:
        """Begin a run about some arms with rewards in [0, 1]."""
        question = {"m": m, "epsilon": 0.2, "delta": 0.1, "variances": [0.25] * n} | parts
        self.post("/runs", name=name, question=question, strategy=strategy)

    def measure(self, run: str, means: dict[str, float], n: int | None = None, worker: str = "rig") -> Any:
        """Take tickets, and answer them by the means of their arms."""
        asked = self.post(f"/runs/{run}/ask", worker=worker, limit=n)
        answers = [{"ticket": one["ticket"], "mean": means[one["name"]]} for one in asked["tickets"]]
        return self.post(f"/runs/{run}/tell", worker=worker, answers=answers)

    def finish(self, run: str, means: dict[str, float], worker: str = "rig") -> None:
        """Measure until the run has ended."""
        while not self.measure(run, means, worker=worker)["is_done"]:
            pass


def means_of(n: int) -> dict[str, float]:
    """Return means that are easily told apart, by names that arms have if they are given none."""
    return {f"arm-{k}": 0.9 - 0.8 * k / n for k in range(n)}


def fill(path: Path) -> None:
    """Put a run of every kind into a store."""
    store = open_store(str(path))

    def begun(name: str, question: Any, strategy: str = "level-race") -> sl.Session:
        return sl.Session(question, strategy, seed=3, store=store, name=name)

    def measured(session: sl.Session, means: Any, rounds: int = 10**6, workers: int = 2) -> sl.Session:
        rng = np.random.default_rng(1)
        while len(asked := session.asked) and asked.round < rounds:
            noise = rng.standard_normal(len(asked)) / np.sqrt(4 * asked.counts)
            values = np.asarray(means)[asked.arms] + noise
            for worker in range(workers):
                if len(some := asked.take(slice(worker, None, workers))):
                    session.tell(some, means=values[worker::workers], worker=f"rig-{worker + 1}")
        return session

    names = [f"prompt {letter}" for letter in "ABCDEFGHIJ"]
    means = [0.42, 0.55, 0.71, 0.38, 0.64, 0.50, 0.80, 0.47, 0.33, 0.58]
    measured(begun("certified", problem(names=names)), means, workers=3)
    begun("fresh", problem(names=names))
    session = measured(begun("being measured", problem(names=names)), means, rounds=4)
    session.ask(3, worker="Ann in the lab")
    session.ask(2, worker="run@bench:4711:abcdef")
    session = measured(begun("suspended/α", problem(names=names)), means, rounds=3)
    session.suspend("prompt C failed four times. The last time `./measure.sh` said:\n" + "trace " * 60)
    measured(begun("large", problem(1000, 20, epsilon=0.3), "short-race"), np.linspace(1, 0, 1000), rounds=6)
    session = begun("<i>hostile</i> & 'quoted'", problem(len(HOSTILE), 4, HOSTILE))
    asked = session.asked
    for place in range(len(asked)):
        tell_as_before(session, place, 0.9 - 0.05 * place, HOSTILE[place])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.tell(asked[0], means=0.1, worker="second thoughts")
    measured(session, np.linspace(0.9, 0.1, len(HOSTILE)), rounds=3)
    question = unknown(m=1, epsilon=1.0, delta=0.05, names=["old", "new", "newer"])
    begun("unknown variances", question, "auto")
    rng = np.random.default_rng(2)
    table = (rng.random((10, 200)) < np.array(means)[:, None]).astype(float)
    items = sl.Problem(2, 0.05, 0.1, names=names, rewards=sl.Bernoulli(), items=200, costs=[1.5] * 10)
    run = begun("shared items", items, "auto")
    while run.result.n_saved < 200:
        asked = run.asked
        run.tell(asked, [table[one.arm, run.items_of(one)].tolist() for one in asked], worker="grader")
    blocks = sl.Problem(1, 0.3, 0.05, names=names, rewards=sl.Gaussian(), items=sl.Blocks())
    run = begun("in blocks", blocks, "auto")
    rewards = 5 * rng.standard_normal(500) + 5 * np.array(means)[:, None] + rng.standard_normal((10, 500)) / 2
    for _ in range(4):
        run.tell(run.asked, [rewards[one.arm, one.first_pull :][: one.count] for one in run.asked])
    run.ask(2, worker="Ann in the lab")
    measured(begun("damaged", problem(names=names)), means, rounds=2)
    store.close()
    damage(path, "damaged")


def damage(path: Path, run: str) -> None:
    """Change a record of a run behind its back."""
    with contextlib.closing(sqlite3.connect(path)) as store, store:
        (number,) = store.execute("SELECT id FROM shortlist_runs WHERE name = ?", (run,)).fetchone()
        store.execute(
            "UPDATE shortlist_events SET body = CAST('{}' AS BLOB) WHERE run = ? AND number = 3", (number,)
        )
