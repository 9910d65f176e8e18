"""The best of a million designs of a flow line, on a GPU: a page of the figures that the example writes.

    python examples/flow_line.py --size 50 --seeds 20 --output size-50.json
    python examples/flow_line.py --size 128 --seeds 20 --output size-128.json
    python -m benchmarks.million_gpu size-50.json size-128.json

The page is benchmarks/results/million-gpu.md.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "million-gpu.md"
HEAD = """# A million arms on a GPU

The fastest of all designs of a flow line of three stations, as in `examples/flow_line.py`: m = 1, delta 0.05,
unknown variances, epsilon in time per job (about 0.1 in throughput). Exact throughputs, from a Markov chain,
say whether an answer is right. Figures are medians over seeds. *Measuring* is the time of the GPU, or of
NumPy; *deciding* is all other time, on one processor. For comparison, the figure published for 1,016,127
designs at the same epsilon and delta: about 400 pulls per design, and 8,900 seconds on some 96 processors.

| device | designs | epsilon | pulls per design | seconds | measuring | deciding | certified | right | loss |
|---|---|---|---|---|---|---|---|---|---|"""


def row(one: dict[str, Any]) -> str:
    """Return a line of the table: the figures of all runs on one device and of one size."""
    runs = one["runs"]

    def spread(what: str) -> str:
        values = [run[what] for run in runs]
        return f"{np.median(values):.3g} (at most {max(values):.3g})"

    losses = [run["loss"] / one["epsilon"] for run in runs]
    figures = (
        one["device"],
        f"{one['designs']:,}",
        f"{one['epsilon']:g}",
        spread("pulls per design"),
        spread("seconds"),
        spread("seconds of measuring"),
        spread("seconds of deciding"),
        f"{sum(run['is certified'] for run in runs)} of {len(runs)}",
        f"{sum(run['is right'] for run in runs)} of {len(runs)}",
        f"at most {max(losses):.2f} epsilon",
    )
    return f"| {' | '.join(figures)} |"


def page(given: list[dict[str, Any]]) -> str:
    """Return the page."""
    lines = [HEAD, *map(row, given), ""]
    for one in given:
        if "largest difference from CPU" in one:
            lines += [
                f"{one['designs']:,} designs: replications on the GPU differed from those by NumPy by "
                f"{one['largest difference from CPU']:.1e} at most, relatively. Compiling the kernel and "
                f"this comparison took {one['seconds to prepare']:.1f} s, which is not counted above.",
                "",
            ]
    return "\n".join(lines)


def main() -> None:
    """Write the page from files of the example."""
    parser = argparse.ArgumentParser(description="Write the page of a million arms on a GPU.")
    parser.add_argument("files", type=Path, nargs="+", help="JSON files of examples/flow_line.py")
    given = parser.parse_args()
    text = page([json.loads(file.read_text(encoding="utf-8")) for file in given.files])
    print(text)
    RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
