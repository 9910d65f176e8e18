"""Which models to ship? Six models with four prompts each, from a table of recorded answers.

    python examples/evaluation.py                   a few seconds
    python examples/evaluation.py --folder here     keep the problem file and the table

A full evaluation has been recorded: 24 arms answered 12,000 questions, with 1 for a right answer and 0 for a
wrong one. How many of these answers would have been enough? Every pull of an arm draws a question at random.
Shortlist stops once it is certain of three arms that are within 3 points of the third best.

All arms answer the same questions, but the proof needs independent arms. So no draw is used for several
arms: questions are drawn separately for each arm, with replacement. The guarantee is about the share of
right answers to the questions of this table.

The answers are simulated by item response theory: a question has a difficulty and a sharpness, and an arm has
an ability. A logistic curve turns these numbers into the probability of a right answer.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MODELS = {"tiny": -0.9, "small": -0.3, "medium": 0.2, "large": 0.7, "huge": 1.1, "huge-tuned": 1.35}
PROMPTS = {"bare": -0.3, "examples": 0.05, "step by step": 0.25, "both": 0.3}
QUESTIONS = 12_000
ABILITIES = {f"{model}, {prompt}": a + b for model, a in MODELS.items() for prompt, b in PROMPTS.items()}
QUESTION = """\
[problem]
m = 3
epsilon = {epsilon}
delta = 0.05
rewards = "bernoulli"
names = [{names}]

[measure]
kind = "table"
file = "answers.npy"      # a row for each arm, a column for each question
order = "draw"            # every pull draws a question, separately for each arm
"""


def chances(sharpness: NDArray[np.float64], difficulty: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability that each arm (rows) answers each question (columns) correctly."""
    abilities = np.array(list(ABILITIES.values()))[:, None]
    return (1 + np.tanh(sharpness * (abilities - difficulty) / 2)) / 2  # the logistic curve


def recorded(questions: int) -> NDArray[np.int8]:
    """Return the recorded answers, a row for each arm."""
    rng = np.random.default_rng(7)
    sharpness, difficulty = rng.lognormal(0.2, 0.4, questions), rng.normal(0.0, 1.0, questions)
    return (rng.random((len(ABILITIES), questions)) < chances(sharpness, difficulty)).astype(np.int8)


def accuracies(questions: int = QUESTIONS) -> dict[str, float]:
    """Return the true share of right answers of every arm over the whole table."""
    return dict(zip(ABILITIES, recorded(questions).mean(axis=1).tolist(), strict=True))


def ask(folder: Path, epsilon: float) -> int:
    """Write the problem file, show the command, run it, and return its exit status."""
    names = ", ".join(f'"{name}"' for name in ABILITIES)
    path = folder / f"evaluation-{epsilon:g}.toml"
    path.write_text(QUESTION.format(epsilon=epsilon, names=names), encoding="utf-8")
    command = ["shortlist", "run", str(path), "--store", str(folder / "shortlist.db")]
    print(f"$ {shlex.join(command)}", flush=True)
    return subprocess.run([sys.executable, "-m", *command], check=False).returncode


def main() -> None:
    """Record the evaluation, then ask which arms are best."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where to write; by default a temporary folder")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="how many questions were asked")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "answers.npy", recorded(given.questions))
        status = ask(folder, 0.03)
        best = sorted(accuracies(given.questions).items(), key=lambda arm: -arm[1])[:5]
        print("The truth, over all questions:")
        print("".join(f"{name:24} {share:14.4f}\n" for name, share in best))
    sys.exit(status)


if __name__ == "__main__":
    main()
