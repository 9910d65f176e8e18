"""What reports cost: seconds to read a run and to write its page, and how large it is (`make bench`).

Figures go to benchmarks/results/report.md.
"""

import argparse
import platform
import tempfile
import time
from pathlib import Path

import numpy as np

import shortlist as sl
from shortlist.report.model import report_of_run
from shortlist.report.page import page
from shortlist.session.log import RunLog
from shortlist.store import open_store

RESULTS = Path(__file__).parent / "results" / "report.md"
SIZES = (10, 1_000, 100_000, 1_000_000)
LOT = 10_000  # answers told at once


def measured(path: Path, n: int) -> None:
    """Keep a run over n arms, of very different noise, in a file."""
    rng = np.random.default_rng(n)
    question = sl.Problem(m=5, epsilon=1.0, delta=0.05, variances=rng.uniform(0.2, 4.0, n))
    means, spread = rng.normal(size=n), np.sqrt(question.variances)
    session = sl.Session(question, "short-race", store=path)
    while len(asked := session.asked):
        for first in range(0, len(asked), LOT):
            some = asked.take(slice(first, first + LOT))
            noise = rng.standard_normal(len(some)) * spread[some.arms] / np.sqrt(some.counts)
            session.tell(some, means=means[some.arms] + noise, worker=f"worker-{first % 3}")


def timed(path: Path) -> tuple[float, float, float]:
    """Return seconds to read a run, seconds to report on it, and the size of the page in kilobytes."""
    store = open_store(path, read_only=True)
    start = time.perf_counter()
    log = RunLog(store, "main")
    log.catch_up()
    read = time.perf_counter()
    html = page(report_of_run("main", log.history, store.read("main")))
    end = time.perf_counter()
    store.close()
    return read - start, end - read, len(html.encode()) / 1e3


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description="Measure what reports cost.")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    lines = [
        "# Reports",
        "",
        f"Python {platform.python_version()}, {platform.machine()}. Seconds are for comparison only. Targets "
        "for 100,000 arms: below 10 seconds in all, and a page below 2 MB.",
        "",
        "| arms | seconds to read the run | seconds to write the page | kilobytes |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for n in SIZES:
            path = Path(folder, f"{n}.db")
            measured(path, n)
            read, written, size = timed(path)
            lines.append(f"| {n:,} | {read:.2f} | {written:.2f} | {size:.0f} |")
            print(lines[-1], flush=True)
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
