"""Problem files: a question in TOML, its measurement, and options of its runs."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.checks import one_of
from shortlist.errors import InvalidProblem
from shortlist.execution.retries import Retries
from shortlist.files.declared_noise import declared_variances, n_arms, refuse_noise, refuse_other_rewards
from shortlist.files.items_section import ITEM_KEYS, items_of, items_section
from shortlist.files.measure_section import (
    REISSUE,
    TIMING,
    Measured,
    check_keys,
    flag,
    has_only_grown,
    known_kind,
    measured,
    section,
)
from shortlist.input_files import MOST_BYTES
from shortlist.items import Blocks
from shortlist.measure import Source, TableSource
from shortlist.measure.csv_columns import Columns, text_of
from shortlist.measure.timing import epsilon_of
from shortlist.problem import Problem
from shortlist.rewards import BOUNDED, KINDS, NOISES, UNKNOWN, Gaussian, bounded_rewards, rewards_of
from shortlist.session.settings import FOLLOWS

T = TypeVar("T")

_REQUIRED = {"m", "epsilon", "delta"}
_LONG_KEY = re.compile(r"(?m)(?:^|[\[{,])[ \t]*(?:[\w-]+[ \t]*\.[ \t]*){32}")
_STATED = ("variances", "scales", "rewards", "at_least", "at_most", "pilot")
_NUMBERS = "Write numbers like 5, 0.25 or 1e-6."
PROBLEM_KEYS = {
    *_REQUIRED,
    *("arms", "names", "n"),
    *("variances", "scales", "bounds", "rewards", "at_least", "at_most"),
    *("noise", "pilot", "guarantee", "goal", "costs"),
    "step",
    "within",
}


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """The content of a problem file.

    Attributes
    ----------
    problem
        The question.
    source
        The source of rewards.
    means, rewards
        The true means and the kind of rewards of simulated arms; None for others.
    variances, correlation
        The true variances of simulated arms that are unknown to the strategy, and their correlation within
        blocks; None for others.
    about
        A description of the measurement, as plain data; a run can be resumed only with the same.
    reproducible, reissue
        Whether the file declares that measuring a ticket again gives the same rewards; and whether tickets
        may go to other workers when leases expire, None if not set.
    retries
        The retry policy; None if not set.
    turns
        The number of turns; None if not set.
    """

    problem: Problem
    source: Source
    means: FloatArray | None = None
    rewards: str | None = None
    variances: FloatArray | None = None
    about: dict[str, Any] = field(default_factory=dict)
    is_shared: bool = False
    states_order: bool = False
    reproducible: bool = False
    reissue: bool | None = None
    retries: Retries | None = None
    turns: int | None = None
    correlation: float | None = None

    def since(self, settings: dict[str, Any] | None) -> "ProblemFile":
        """Return the file as a run with these earlier settings reads it; None for a new run.

        If each row of a table has a reward for every arm, rows are drawn independently for each arm. Version
        0.1.0 read them in turn, and its runs are resumed that way.

        Raises
        ------
        InvalidProblem
            If a new run would read shared rows in turn: arms would depend on each other.
        """
        if not self.is_shared or not isinstance(self.source, TableSource):
            return self
        before = ((settings or {}).get("measure") or {}).get("order", "draw")
        if not self.states_order:
            source, about = replace(self.source, order=before), self.about | {"order": before}
            return replace(self, source=source, about=about)
        if self.source.order not in ("draw", before):
            raise InvalidProblem(
                f'`order` is "{self.source.order}", but each row of the table has a reward for every arm: '
                f"rewards of different arms would depend on each other, and there would be no guarantee. "
                f'Omit `order`, or use `order = "draw"`. If the rewards in a row are not related, write '
                f"the table in the long layout, or as an .npz file."
            )
        return self

    def about_since(self, settings: dict[str, Any] | None) -> dict[str, Any]:
        """Return the description of the measurement for `drive`, given the earlier one of a run.

        A table of recorded rewards may have grown in the meantime. Then the new description replaces the
        earlier one.
        """
        before, now = (settings or {}).get("measure"), {"measure": self.about}
        if not before or not has_only_grown(self.source, before):
            return now
        table = {"table": self.about["table"]}
        return now | ({FOLLOWS: {"measure": before}} if before | table == self.about else {})


def read_problem_file(path: str | Path, *, to_go_on: bool = False) -> ProblemFile:
    """Return the content of a problem file; raise InvalidProblem, naming the file, if it is invalid.

    With `to_go_on`, an earlier version may have started the run: call `ProblemFile.since` when its settings
    are known.
    """
    found = _read(path, _with_rewards)
    return found if to_go_on else _read(path, lambda *_: found.since(None))


def read_problem(path: str | Path) -> Problem:
    """Return only the question of a problem file; [measure] is not needed."""
    return _read(path, lambda text, folder: _asked(text, folder)[0])


def read_reissue(path: Path) -> bool | None:
    """Return whether tickets may go to other workers when leases expire; None if a file does not set it."""
    return _read(path, lambda text, _: _reissue(text))


def is_measured(path: Path) -> bool:
    """Return whether a file says how to measure: whether it has a [measure] section."""
    return _read(path, lambda text, _: "measure" in text)


def question_of(entries: dict[str, Any]) -> Problem:
    """Return the question of the entries of a [problem] section, without reading any file."""
    if "arms" in entries:
        raise InvalidProblem("`arms` names a file, but no files are read here; give the arms themselves.")
    asked = {key: value for key, value in entries.items() if key not in ITEM_KEYS or key == "step"}
    return _asked({"problem": asked}, Path(), items_of(entries))[0]


def _read(path: str | Path, parse: Callable[[dict[str, Any], Path], T]) -> T:
    path = Path(path)
    try:
        return parse(_entries(path), path.parent)
    except InvalidProblem as error:
        message = str(error)
        raise InvalidProblem(message if str(path) in message else f"{path}: {message}") from error.__cause__


def _entries(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; refuse input that is too slow to parse, and numbers out of range."""
    text = text_of(path, MOST_BYTES)
    if _LONG_KEY.search(text):
        raise InvalidProblem(f"{path} is not valid TOML: a key has more than 32 parts.")
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidProblem(f"{path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise InvalidProblem(f"{path} is not valid TOML: its brackets are too deep.") from None
    except ValueError:  # Python parses no number with more than 4300 digits
        raise InvalidProblem(f"{path} has a number with thousands of digits. {_NUMBERS}") from None
    _refuse_large(entries)
    return entries


def _refuse_large(value: Any) -> None:
    """Refuse integers beyond the range of floats; they could not even be printed."""
    if isinstance(value, int) and value.bit_length() > 1024:
        raise InvalidProblem(f"a number has more than 300 digits. {_NUMBERS}")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_large(part)


def _asked(
    text: dict[str, Any], folder: Path, items: dict[str, Any] | None = None
) -> tuple[Problem, Columns]:
    check_keys(text, {"problem", "measure", "items"}, "the file")
    if _kind(text) is not None:
        known_kind(_kind(text))
    asked = section(text, "problem", PROBLEM_KEYS)
    if is_timing := _kind(text) == TIMING:
        asked = _about_times(asked, text)
    elif "within" in asked:
        raise InvalidProblem(f'`within` is for times, with `kind = "{TIMING}"`; write `epsilon`.')
    missing = _REQUIRED - asked.keys()
    if missing:
        lacking = ", ".join(sorted(missing))
        raise InvalidProblem(f"[problem] lacks {lacking}; add a line for each, such as m = 3.")
    columns = Columns.read(folder / str(asked["arms"])) if "arms" in asked else Columns()
    if is_timing:
        n, blocks = n_arms(asked, columns), Blocks(lockstep=True)
        return Problem(**_common(asked, columns), n=n, rewards=Gaussian(), items=blocks), columns
    asked = _with_noise(asked, columns)
    kind = one_of(asked.get("noise", "sub-gaussian"), "noise", NOISES)
    if kind == "sub-gaussian" and _stated(asked, columns) == ["rewards"]:
        refuse_other_rewards(asked)
        kind = "bernoulli"
        asked = {key: value for key, value in asked.items() if key != "rewards"}
    if "items" in text:
        items = items_section(text["items"], folder, _names(asked, columns))
    if kind in BOUNDED:
        return _bounded(asked, columns, kind, items or {}), columns
    has_blocks = isinstance((items or {}).get("items"), Blocks)
    if has_blocks and kind != UNKNOWN:
        raise InvalidProblem(
            f'with blocks, write `noise = "{UNKNOWN}"` in [problem], or say that rewards have bounds: '
            f'`rewards = "bernoulli"`, or `noise = "bounded"` and `bounds`. Variances of the arms are of no '
            f"use, since only differences within blocks count."
        )
    if items and not has_blocks:
        raise InvalidProblem(
            'with [items], scores must have bounds: write `rewards = "bernoulli"` in [problem] if every '
            'score is 0 or 1, or `noise = "bounded"` and `bounds`, such as bounds = [0, 1].'
        )
    if kind == UNKNOWN:
        return _unknown(asked, columns, items or {}, is_simulated=_kind(text) == "simulated"), columns
    if "pilot" in asked:
        raise InvalidProblem(f'`pilot` is allowed only with `noise = "{UNKNOWN}"`; omit it.')
    variances, noise = declared_variances(asked, columns), asked.get("noise", "sub-gaussian")
    if noise == "gaussian" and "bounds" in asked:
        raise InvalidProblem(
            '`noise` is "gaussian", but rewards that lie within `bounds` are not Gaussian; leave out '
            "`noise` or `bounds`."
        )
    known: dict[str, Any] = {"rewards": rewards_of(noise, variances)}
    if "rewards" in asked:
        if noise == "gaussian":
            raise InvalidProblem(
                '`noise` is "gaussian", but `rewards` says that rewards are 0 or 1; leave out `noise` or '
                "`rewards`."
            )
        known = {"variances": variances, "rewards": asked["rewards"]}
    return Problem(**_common(asked, columns), **known, bounds=asked.get("bounds")), columns


def _with_noise(asked: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """Return the entries with `noise` in place of `rewards`, unless that is "bernoulli"."""
    kind = asked.get("rewards")
    if "noise" in asked or kind not in ("bounded", *KINDS):
        return asked
    rest = {key: value for key, value in asked.items() if key != "rewards"}
    knows_variances = {"variances", "scales", "variance", "scale"} & (rest.keys() | columns.entries.keys())
    return rest | {"noise": UNKNOWN if kind == "gaussian" and not knows_variances else kind}


def _about_times(asked: dict[str, Any], text: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a question about times, with `epsilon` in place of `within`."""
    allowed = {"m", "delta", "epsilon", "within", "arms", "names", "n", "costs"}
    if "items" in text or (extra := sorted(asked.keys() - allowed)):
        which = "[items]" if "items" in text else f"`{extra[0]}`"
        raise InvalidProblem(f'with `kind = "{TIMING}"`, the noise and the goal are known; omit {which}.')
    if ("within" in asked) == ("epsilon" in asked):
        raise InvalidProblem(
            "give either `within`, such as within = 0.02, or `epsilon`, a difference of logarithms of times."
        )
    rest = {key: value for key, value in asked.items() if key != "within"}
    epsilon = asked["epsilon"] if "epsilon" in asked else epsilon_of(asked["within"])
    return rest | {"epsilon": epsilon, "goal": "minimise"}


def _common(asked: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """Return the entries that every kind of question has."""
    numbers = {key: asked[key] for key in sorted(_REQUIRED)}
    words = {"guarantee": asked.get("guarantee", "pac"), "goal": asked.get("goal", "maximise")}
    return {**numbers, **words, "names": _names(asked, columns), "costs": _costs(asked, columns)}


def _costs(asked: dict[str, Any], columns: Columns) -> Any:
    if "cost" not in columns.entries:
        return asked.get("costs")
    if "costs" in asked:
        raise InvalidProblem("give the costs once: in the column `cost` or as the list `costs`, not both.")
    return columns.numbers("cost")


def _unknown(
    asked: dict[str, Any], columns: Columns, items: dict[str, Any], *, is_simulated: bool
) -> Problem:
    refuse_noise(asked, columns, is_simulated=is_simulated)
    about: dict[str, Any] = {"n": n_arms(asked, columns), "rewards": Gaussian(pilot=asked.get("pilot"))}
    return Problem(**_common(asked, columns), **items, **about)


def _bounded(asked: dict[str, Any], columns: Columns, noise: str, items: dict[str, Any]) -> Problem:
    """Return a question about rewards of which only bounds are known."""
    if stated := _stated(asked, columns):
        raise InvalidProblem(
            f'`noise` is "{noise}": the race finds out by itself how much rewards vary; omit `{stated[0]}`.'
        )
    bounds = _own_bounds(asked, columns) if noise == "bounded" else asked.get("bounds")
    rewards = bounded_rewards(noise, bounds, asked.get("step"))
    bounds = bounds if rewards.own is None else None
    n = n_arms({"n": len(rewards.own or ())} | asked if rewards.own else asked, columns)
    return Problem(**_common(asked, columns), **items, n=n, rewards=rewards, bounds=bounds)


def _own_bounds(asked: dict[str, Any], columns: Columns) -> Any:
    """Return the bounds of the rewards, or those of each arm in the columns `low` and `high`."""
    given = [name for name in ("low", "high") if name in columns.entries]
    if not given:
        return asked.get("bounds")
    if len(given) < 2 or "bounds" in asked:
        raise InvalidProblem("give the bounds once: in the columns `low` and `high`, or as `bounds`.")
    return np.column_stack([columns.numbers(name) for name in given]).tolist()


def _stated(asked: dict[str, Any], columns: Columns) -> list[str]:
    """Return the entries and columns that say how rewards vary, apart from bounds."""
    listed = [key for key in ("variance", "scale") if key in columns.entries]
    return [key for key in _STATED if key in asked] + listed


def _kind(text: dict[str, Any]) -> object:
    measure = text.get("measure")
    return measure.get("kind") if isinstance(measure, dict) else None


def _names(asked: dict[str, Any], columns: Columns) -> Any:
    if "name" not in columns.entries:
        return asked.get("names")
    if "names" in asked:
        raise InvalidProblem("give the names once: in the column `name` or as the list `names`, not both.")
    return columns.entries["name"]


def _with_rewards(text: dict[str, Any], folder: Path) -> ProblemFile:
    problem, columns = _asked(text, folder)
    found: Measured = measured(section(text, "measure", None), problem, columns, folder.absolute())
    return ProblemFile(
        *(problem, found.source, found.means, found.rewards, found.variances, found.about),
        is_shared=found.is_shared,
        states_order="order" in section(text, "measure", None),
        reproducible=found.reproducible,
        reissue=_reissue(text),
        retries=found.retries,
        turns=found.turns,
        correlation=found.correlation,
    )


def _reissue(text: dict[str, Any]) -> bool | None:
    measure = text.get("measure")
    return flag(measure, REISSUE) if isinstance(measure, dict) and REISSUE in measure else None
