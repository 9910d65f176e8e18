"""Which of 50 classifiers read digits best? All read the same 800 images. Every score costs a call.

    python examples/leaderboard.py               some ten seconds, offline
    python examples/leaderboard.py --seed 1      the images in another random order

tools/make_digits.py wrote the scores in digits.csv.gz, from the digits that scikit-learn ships. The file has
a line for each image and a column for each classifier. A score is 1 if the classifier names the right digit,
and 0 if it does not. In this example, `measure` looks the scores up. In a real evaluation, `measure` would
ask a model and grade its answer, and every call would cost money.

The example asks two questions: which classifier is the best, and which are the 5 best, both to within 0.03?
How many of the 40,000 calls do the answers need?
"""

import argparse
import csv
import gzip
from pathlib import Path

import shortlist as sl

SCORES = Path(__file__).with_name("digits.csv.gz")


class Leaderboard:
    """A stand-in for a service that charges for each call."""

    def __init__(self, path: Path = SCORES) -> None:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        self.models = [name for name in rows[0] if name != "item"]
        self.scores = {row["item"]: [float(row[model]) for model in self.models] for row in rows}
        self.calls = 0

    def measure(self, arm: int, items: list[str]) -> list[float]:
        """Return the scores of a classifier on some images."""
        self.calls += len(items)
        return [self.scores[item][arm] for item in items]


def means() -> dict[str, float]:
    """Return the mean score of every classifier over all images."""
    board = Leaderboard()
    columns = zip(*board.scores.values(), strict=True)
    return {model: sum(own) / len(own) for model, own in zip(board.models, columns, strict=True)}


def bar(label: str, calls: int, whole: int) -> str:
    """Return a line of the figure: calls against the whole table."""
    return f"{label:22} |{'#' * max(1, round(40 * calls / whole)):40}| {calls:6,}"


def main() -> None:
    """Ask both questions, and print the answers and their costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="determines the order of the images")
    seed = parser.parse_args().seed
    figure = []
    for m, epsilon in ((1, 0.03), (5, 0.03)):
        board = Leaderboard()
        whole = len(board.models) * len(board.scores)
        problem = sl.Problem(
            m, epsilon, delta=0.05, names=board.models, rewards=sl.Bernoulli(), items=list(board.scores)
        )
        result = sl.select(board.measure, problem, seed=seed)
        print(result)
        if m > 1:
            for arm in result.indices:
                cells = result.arms.pulls[arm]
                print(f"{board.models[arm]:16} {result.arms.means[arm]:.3f} on {cells} images")
        print(f"calls: {board.calls:,} of {whole:,} ({board.calls / whole:.1%})\n")
        figure.append(bar(f"{m} best to within {epsilon}", board.calls, whole))
    print("Calls against the whole table:")
    print("\n".join([*figure, bar("whole table", whole, whole)]))


if __name__ == "__main__":
    main()
