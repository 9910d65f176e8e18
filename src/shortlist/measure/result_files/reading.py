"""What the readers of all tools share: the choice of a metric, failed samples, and the table of cells."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shortlist.checks import encodable, shortened
from shortlist.errors import InvalidProblem
from shortlist.measure.csv_columns import bytes_of, listed
from shortlist.measure.score_table import ScoreTable

_HEAD = 4096  # bytes that tell what a file is


class Cell(NamedTuple):
    """A score, and the file that it is from."""

    arm: str
    item: str
    score: float
    path: Path


@dataclass(frozen=True)
class Reading:
    """What a user decided about files of results.

    Attributes
    ----------
    metric
        The name of the score that counts; None if there should be only one.
    on_failure
        The score of samples that could not be evaluated; None to refuse them.
    """

    metric: str | None = None
    on_failure: float | None = None

    def __post_init__(self) -> None:
        if self.metric is not None and not isinstance(self.metric, str):
            raise InvalidProblem(f"`metric` is {shortened(self.metric)}; it must be the name of a score.")
        worth = self.on_failure
        if worth is None:
            return
        if isinstance(worth, bool) or not isinstance(worth, int | float) or not math.isfinite(worth):
            raise InvalidProblem(f"`on_failure` is {shortened(worth)}; it must be a number, such as 0.")

    def chosen(self, metrics: Sequence[str], path: Path, what: str = "metric") -> str:
        """Return the metric that counts, of those that a file has."""
        if self.metric is None and len(metrics) == 1:
            return metrics[0]
        if self.metric in metrics:
            return str(self.metric)
        if self.metric is None:
            raise InvalidProblem(
                f"{path} has several scores for each sample: {listed(metrics)}. Choose one as `metric` "
                f"(--metric on the command line)."
            )
        raise InvalidProblem(f"{path} has no {what} {self.metric!r}; it has {listed(metrics)}.")

    def failed(self, path: Path, item: str, why: str) -> float:
        """Return the score of a sample that could not be evaluated, or refuse its file."""
        if self.on_failure is None:
            raise InvalidProblem(
                f"{path}: sample {item} failed ({first_line(why)}). Samples do not fail at random, so it "
                "cannot be left out. Evaluate it again. Or choose one score for the failures of all "
                "arms, and give it as `on_failure` (--on-failure on the command line)."
            )
        return float(self.on_failure)


def first_line(text: str) -> str:
    """Return the beginning of an error message of a tool."""
    line = text.strip().partition("\n")[0].strip()
    return line[:160] + "..." * (len(line) > 160) if line else "no reason is given"


def head_of(path: Path) -> str:
    """Return the beginning of a file; nothing if it cannot be read, of which its reader will complain."""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def json_of(path: Path) -> Any:
    """Return the content of a JSON file."""
    try:
        return json.loads(bytes_of(path))
    except (ValueError, RecursionError) as error:
        raise InvalidProblem(
            f"{path} is not complete JSON ({error}). It was damaged, or is still being written."
        ) from None


def json_lines_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the content of each line of a file of JSON lines."""
    for number, line in enumerate(bytes_of(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            if not isinstance(found, dict):
                raise ValueError("it must be an object")
        except (ValueError, RecursionError) as error:
            raise InvalidProblem(
                f"{path}, line {number} is not complete JSON ({error}). The file was damaged, or is still "
                f"being written."
            ) from None
        yield number, found


def table_of(cells: Iterable[Cell]) -> ScoreTable:
    """Return cells as a table; two scores of one arm on one item are refused."""
    found: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        encodable(cell.arm, f"{cell.path}: the name of an arm")
        encodable(cell.item, f"{cell.path}: the name of an item")
        before = found.setdefault(cell[:2], cell)
        if before is not cell:
            same = before.path == cell.path
            files = f"{cell.path} has" if same else f"{before.path} and {cell.path} have"
            raise InvalidProblem(
                f"{files} two scores of {cell.arm} on item {cell.item}. Keep one, or give the arms different "
                f"names."
            )
    arms = {name: place for place, name in enumerate(dict.fromkeys(arm for arm, _ in found))}
    items = {name: place for place, name in enumerate(dict.fromkeys(item for _, item in found))}
    scores = np.full((len(arms), len(items)), np.nan)
    for cell in found.values():
        scores[arms[cell.arm], items[cell.item]] = cell.score
    return ScoreTable(tuple(arms), tuple(items), scores)


def names_that_differ(described: Sequence[dict[str, str]], plain: Sequence[str]) -> list[str]:
    """Return a name for each of some descriptions, made of as few of their entries as tell them apart.

    Entries are considered in their order, those of `plain` first. Their values are names by themselves;
    others are written as `key=value`.
    """
    keys = dict.fromkeys([*plain, *(key for one in described for key in one)])
    names: list[tuple[str, ...]] = [()] * len(described)
    for key in keys:
        words = [one.get(key, "") for one in described]
        longer = [
            name + ((word if key in plain else f"{key}={word}",) if word else ())
            for name, word in zip(names, words, strict=True)
        ]
        if len(set(longer)) > len(set(names)):
            names = longer
    usual = [next((one[key] for key in plain if one.get(key)), "arm") for one in described]
    return [", ".join(name) or one for name, one in zip(names, usual, strict=True)]
