"""The `[measure]` section of a problem file: the source of rewards, and the settings that a run must keep."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.checks import whole_number
from shortlist.errors import InvalidProblem
from shortlist.execution.retries import Retries
from shortlist.files.declared_noise import squares
from shortlist.items import Items
from shortlist.measure import (
    CommandSource,
    FunctionSource,
    ImportedFunction,
    ItemsSource,
    MeasureItems,
    RecordedScores,
    Source,
    TableSource,
    simulated_measure,
    vectorised,
)
from shortlist.measure.csv_columns import Columns
from shortlist.measure.result_files import read_scores
from shortlist.measure.result_files.timings import read_timings
from shortlist.measure.simulated import (
    SimulatedBlocks,
    checked_correlation,
    checked_means,
    default_rewards,
)
from shortlist.measure.source import Call
from shortlist.measure.table_file import read_csv, read_npy, read_npz, read_wide
from shortlist.measure.timing import CommandTimer, TimingSource
from shortlist.problem import Problem
from shortlist.rewards import Gaussian
from shortlist.session.state import REPRODUCIBLE

_CHOICE = ("metric", "on_failure")  # about files of results that other tools write
_INSTEAD = {"measure": " To measure by hand, use `shortlist begin`, then `ask` and `tell`."}


def section(text: dict[str, Any], name: str, allowed: Set[str] | None) -> dict[str, Any]:
    """Return a section of the file; with `allowed`, refuse entries of other names."""
    found = text.get(name)
    if not isinstance(found, dict):
        instead = _INSTEAD.get(name, "")
        raise InvalidProblem(
            f"there is no section [{name}]; add one (`shortlist docs problem-files` shows how).{instead}"
        )
    if allowed is not None:
        check_keys(found, allowed, f"[{name}]")
    return found


def check_keys(given: dict[str, Any], allowed: Set[str], where: str) -> None:
    """Refuse unknown entries."""
    for key in given:
        if key not in allowed:
            known = ", ".join(sorted(allowed))
            raise InvalidProblem(f"{where} has the unknown entry {key!r}; valid entries: {known}.")


def word(given: dict[str, Any], key: str, default: str | None = None) -> str:
    """Return an entry that must be text."""
    value = given.get(key, default)
    if value is None:
        raise InvalidProblem(f"[measure] lacks `{key}`; add it (`shortlist docs problem-files` shows how).")
    if not isinstance(value, str) or not value:
        raise InvalidProblem(f'`{key}` is {value!r}; it must be text, in quotes: {key} = "...".')
    return value


def flag(given: dict[str, Any], key: str) -> bool:
    """Return an entry that must be true or false; the default is false."""
    value = given.get(key, False)
    if not isinstance(value, bool):
        raise InvalidProblem(f"`{key}` is {value!r}; it must be true or false.")
    return value


def about_measurement(
    entries: dict[str, Any], source: Source, numbers: dict[str, FloatArray | None]
) -> dict[str, Any]:
    """Return a description of the measurement, with digests of simulated means or recorded rewards.

    Entries have their effective values, whether they are in the file or are defaults.
    """
    said = dict(entries)
    digests = {name: _digest([values]) for name, values in numbers.items() if values is not None}
    if isinstance(source, CommandSource):
        digests |= {f"column {name}": _digest_of_words(words) for name, words in source.columns.items()}
    if digests:
        said["digests"] = digests
    if isinstance(source, RecordedScores):
        said["table"] = {"digest": _digest(source.scores)}
    if isinstance(source, TableSource):
        said["table"] = _identity_of_rows(source, np.diff(source.starts))
    return said


def has_only_grown(source: Source, before: dict[str, Any]) -> bool:
    """Return whether a source is a table that matches an earlier description and has only gained rows.

    Pulls take rows from the top, so new rows at the end change no earlier pull. In random order they would.
    """
    was = before.get("table")
    if not isinstance(source, TableSource) or source.order != "next" or not isinstance(was, dict):
        return False
    sizes = np.diff(source.starts)
    rows = np.broadcast_to(np.asarray(was.get("rows")), sizes.shape) if _fits(was, len(sizes)) else sizes + 1
    return bool((rows <= sizes).all()) and _identity_of_rows(source, rows) == was


def _fits(was: dict[str, Any], n: int) -> bool:
    rows = was.get("rows")
    return isinstance(rows, int) or (isinstance(rows, list) and len(rows) == n)


def _identity_of_rows(source: TableSource, rows: IntArray) -> dict[str, Any]:
    """Return a digest of the first rows of each arm."""
    first = source.starts[:-1]
    parts = (source.values[start : start + size] for start, size in zip(first, rows, strict=True))
    is_even = len(set(rows.tolist())) == 1
    return {"rows": int(rows[0]) if is_even else rows.tolist(), "digest": _digest(parts)}


def _digest(parts: Any) -> str:
    found = blake2b(digest_size=8)
    for part in parts:
        found.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return found.hexdigest()


def _digest_of_words(words: Sequence[str]) -> str:
    return blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


REISSUE, RETRIES, TIMING = "reissue", "retries", "timing"


@dataclass(frozen=True, eq=False)
class Measured:
    """The source of rewards, its description and, for simulated arms, the true means and variances.

    `about` contains the effective value of everything that rewards depend on; a timeout is not part of it.
    `is_shared` means that each row of a table has a reward for every arm. `reproducible` is whether the
    section declares that measuring a ticket again gives the same rewards. `retries` is the retry policy, and
    `turns` the number of turns, if given.
    """

    source: Source
    means: FloatArray | None = None
    rewards: str | None = None
    variances: FloatArray | None = None
    about: dict[str, Any] = field(default_factory=dict)
    correlation: float | None = None
    is_shared: bool = False
    reproducible: bool = False
    retries: Retries | None = None
    turns: int | None = None


@dataclass(frozen=True, eq=False)
class _Given:
    """The entries of the section, and the data that they may refer to."""

    entries: dict[str, Any]
    problem: Problem
    columns: Columns
    folder: Path

    def only(self, *keys: str) -> None:
        """Refuse entries other than these and the common ones."""
        check_keys(self.entries, {"kind", REISSUE, RETRIES, *keys}, "[measure]")


def known_kind(kind: object) -> str:
    """Return the kind of a [measure] section; refuse unknown ones."""
    if not isinstance(kind, str) or kind not in KINDS:
        known = ", ".join(f'"{name}"' for name in KINDS)
        raise InvalidProblem(f"[measure] kind is {kind!r}; it must be one of: {known}.")
    return kind


def measured(entries: dict[str, Any], problem: Problem, columns: Columns, folder: Path) -> Measured:
    """Return the source of rewards that [measure] describes."""
    kind = known_kind(entries.get("kind"))
    read, keys = KINDS[kind]
    given = _Given(entries, problem, columns, folder)
    given.only(*keys)
    found = read(given)
    numbers = {"means": found.means, "variances": found.variances}
    bounds = {} if problem.bounds is None else {"bounds": list(problem.bounds)}
    holds = {"kind": kind, **found.about, **bounds}
    about = about_measurement(holds, found.source, numbers)
    declared = flag(entries, REPRODUCIBLE)
    return replace(found, about=about, reproducible=declared, retries=_retries(entries.get(RETRIES)))


def _retries(given: Any) -> Retries | None:
    """Return the retry policy; None if the section does not set it."""
    if given is None:
        return None
    if not isinstance(given, dict):
        return Retries(whole_number(given, RETRIES, 0))
    check_keys(given, {one.name for one in fields(Retries)}, "`retries`")
    return Retries(**given)


def _simulated(given: _Given) -> Measured:
    if given.problem.has_blocks:
        return _simulated_blocks(given)
    if "correlation" in given.entries:
        raise InvalidProblem("`correlation` is for arms that share blocks: write `blocks = true` in [items].")
    if given.problem.items is not None:
        raise InvalidProblem(
            'with [items], arms are not simulated by their means; use `kind = "table"` and a file of scores.'
        )
    rewards = word(given.entries, "rewards", given.problem.declared_rewards or default_rewards(given.problem))
    truth = _truth(given)
    if truth.noise == "gaussian" and rewards not in {"gaussian", "noiseless"}:
        stated = "gaussian-unknown" if not given.problem.knows_variances else "gaussian"
        raise InvalidProblem(f'`noise` is "{stated}", but `rewards` are "{rewards}"; change one of them.')
    means = checked_means(truth, _listed(given, "means", "mean"), rewards)
    if given.problem.bounds is not None and given.problem.own_bounds is None:
        _check_reach(given.problem.bounds, means, rewards)
    is_unknown = not given.problem.knows_variances
    source = FunctionSource(simulated_measure(truth, means, rewards, tells_spread=is_unknown))
    variances = truth.variances if is_unknown else None
    return Measured(source, means, rewards, variances, {"rewards": rewards})


def _simulated_blocks(given: _Given) -> Measured:
    given.only("means", "variances", "scales", "correlation")
    streams = given.problem.changed(items=None, target="pool")
    truth, rewards = _truth(replace(given, problem=streams)), default_rewards(streams)
    means = np.array(checked_means(truth, _listed(given, "means", "mean"), rewards))
    correlation = checked_correlation(given.entries.get("correlation", 0.0))
    source = ItemsSource(SimulatedBlocks(truth, means, correlation), cast("Items", given.problem.items))
    variances = None if truth.is_bounded else truth.variances
    about = {"rewards": rewards, "correlation": correlation}
    return Measured(source, means, rewards, variances, about, correlation=correlation)


def _truth(given: _Given) -> Problem:
    """Return the question with the true variances, as the simulation needs it."""
    said: list[str] = [key for key in ("variances", "scales") if key in given.entries]
    if given.problem.knows_variances:
        if said:
            raise InvalidProblem(
                f"[measure] gives `{said[0]}`, but [problem] already states the noise of the arms; omit it."
            )
        return given.problem
    said += [key for key in ("variance", "scale") if key in given.columns.entries and not said]
    if len(said) != 1:
        raise InvalidProblem(
            "to simulate arms with unknown variances, give the true variances once, for the simulation "
            "only: in [measure] a list `variances` or `scales`, or a column `variance` or `scale` of the CSV "
            "file."
        )
    (key,) = said
    values = _listed(given, key, key)
    variances = values if key.startswith("variance") else squares(values)
    return given.problem.with_variances(variances, rewards=Gaussian(variances))


def _listed(given: _Given, key: str, column: str) -> Any:
    """Return the numbers in an entry, or in the column that it names."""
    named = given.entries.get(key, column)
    return given.columns.numbers(named) if isinstance(named, str) else named


def _check_reach(bounds: tuple[float, float], means: FloatArray, rewards: str) -> None:
    """Refuse simulated rewards that may violate the declared bounds."""
    low, high = bounds
    reach = {"bernoulli": (0.0, 1.0), "noiseless": (float(means.min()), float(means.max()))}.get(rewards)
    if reach is None or reach[0] < low or reach[1] > high:
        raise InvalidProblem(
            f'[problem] says that rewards lie between {low:g} and {high:g}, but simulated "{rewards}" '
            f'rewards may lie outside. Simulate "bernoulli" rewards, or give `variances` instead of bounds.'
        )


def _function(given: _Given) -> Measured:
    name, is_vectorised = word(given.entries, "function"), flag(given.entries, "vectorised")
    function = ImportedFunction(name, given.folder)
    source: Source = vectorised(function) if is_vectorised else FunctionSource(function)
    if given.problem.items is not None:
        together = vectorised(function).together if is_vectorised else 1
        source = ItemsSource(cast("MeasureItems", function), given.problem.items, together)
    return Measured(source, about={"function": name, "vectorised": is_vectorised}, turns=_turns(given))


def _command(given: _Given) -> Measured:
    entries = given.entries
    if "command" not in entries:
        raise InvalidProblem('[measure] lacks `command`; add it, such as command = ["./measure", "{name}"].')
    env = entries.get("env", {})
    if not isinstance(env, dict):
        raise InvalidProblem(f'`env` is {env!r}; it must be a table, such as env = {{ THREADS = "1" }}.')
    argv = entries["command"]
    source = CommandSource(
        given.problem,
        tuple(argv) if isinstance(argv, list) else argv,
        folder=given.folder / word(entries, "folder", "."),
        columns=given.columns.entries,
        output=word(entries, "output", "lines"),
        timeout=entries.get("timeout"),
        env=env,
        persistent=flag(entries, "persistent"),
    )
    about: dict[str, Any] = {"command": argv, "output": source.output}
    if source.persistent:
        about["persistent"] = True
    return Measured(source, about=about, turns=_turns(given))


def _timing(given: _Given) -> Measured:
    entries, problem = given.entries, given.problem
    env = entries.get("env", {})
    argv, folder = entries.get("command"), given.folder / word(entries, "folder", ".")
    if not isinstance(argv, list) or not isinstance(env, dict):
        raise InvalidProblem('[measure] needs `command`, such as command = ["./sort", "{name}"].')
    made = CommandSource(problem, tuple(argv), folder=folder, columns=given.columns.entries, env=env)
    if made.command_line(Call(0, 0, 1, 0)) != made.command_line(Call(1, 0, 2, 1)):
        raise InvalidProblem(
            "the command of a timing is the same in every block; leave out {seed} and {count}."
        )
    warmup = whole_number(entries.get("warmup", 1), "warmup", 0)
    fails = flag(entries, "ignore_failure")
    lines = [tuple(made.command_line(Call(0, arm, 1, 0))) for arm in range(problem.n)]
    timers = [CommandTimer(line, folder, env, fails) for line in lines]
    names = [problem.name(arm) for arm in range(problem.n)]
    about = {"command": argv, "lines": _digest_of_words([word for line in lines for word in line])}
    return Measured(TimingSource(timers, names, warmup), about=about | {"ignore_failure": fails})


def _turns(given: _Given) -> int | None:
    return whole_number(given.entries["turns"], "turns", 1) if "turns" in given.entries else None


def _scores(given: _Given) -> Measured:
    """Return recorded scores on shared items."""
    given.only("file", *_CHOICE)
    name, problem = word(given.entries, "file"), given.problem
    choice: dict[str, Any] = {key: value for key, value in given.entries.items() if key in _CHOICE}
    table, items = read_scores(given.folder / name, **choice), problem.items
    names = [problem.name(arm) for arm in range(problem.n)]
    ids = None if items is None or items.ids is None else items.ids
    if not table.is_whole:
        raise InvalidProblem(f"{name} has gaps; a table that is measured from must be complete.")
    return Measured(RecordedScores.of(problem, table.rows(names, ids)), about={"file": name, **choice})


def _recorded_blocks(given: _Given) -> Measured:
    """Return a table in which each row is a block, with a reward of every arm; rows are read in turn."""
    given.only("file", "layout", "axis")
    entries, problem, name = given.entries, given.problem, word(given.entries, "file")
    about: dict[str, Any] = {"file": name, "order": "next"}
    suffix = Path(name).suffix.lower()
    if suffix == ".npy" and "layout" not in entries:
        about["axis"] = entries.get("axis", 0)
        rewards = read_npy(given.folder / name, problem, about["axis"])
    elif suffix == ".csv" and word(entries, "layout", "wide") == "wide" and "axis" not in entries:
        rewards = read_wide(given.folder / name, problem, may_be_blank=False)
    else:
        raise InvalidProblem(
            "with blocks, each row of a table must be a block: use a .csv file with a column for each arm, "
            "or a .npy file (`axis` says which axis has the arms)."
        )
    return Measured(TableSource.of(problem, rewards), about=about)


def _table(given: _Given) -> Measured:
    entries, problem = given.entries, given.problem
    if problem.has_blocks:
        return _recorded_blocks(given)
    if problem.items is not None:
        return _scores(given)
    path = given.folder / word(entries, "file")
    suffix = path.suffix.lower()
    is_shared = suffix == ".npy" or (suffix == ".csv" and entries.get("layout") == "wide")
    order = word(entries, "order", "draw" if is_shared else "next")
    about: dict[str, Any] = {"file": word(entries, "file"), "order": order}
    match suffix:
        case ".npy":
            given.only("file", "order", "axis")
            about["axis"] = entries.get("axis", 0)
            rewards = read_npy(path, problem, about["axis"])
        case ".npz":
            given.only("file", "order")
            rewards = read_npz(path, problem)
        case ".csv" if word(entries, "layout", "long") == "wide":
            given.only("file", "order", "layout")
            about["layout"] = "wide"
            rewards = read_csv(path, problem, "wide")
        case ".csv":
            given.only("file", "order", "layout", "arm", "reward")
            names = {key: word(entries, key, key) for key in ("arm", "reward")}
            about |= {"layout": word(entries, "layout", "long"), **names}
            rewards = read_csv(path, problem, about["layout"], **names)
        case ".json":
            given.only("file", "order")
            rewards = read_timings(path, problem)
        case other:
            raise InvalidProblem(f"`file` ends with {other!r}; it must be a .csv, .npy, .npz or .json file.")
    return Measured(TableSource.of(problem, rewards, order), about=about, is_shared=is_shared)


_Reader: TypeAlias = Callable[[_Given], Measured]
KINDS: dict[str, tuple[_Reader, tuple[str, ...]]] = {
    "simulated": (_simulated, ("rewards", "means", "variances", "scales", "correlation")),
    "function": (_function, ("function", "vectorised", "turns", REPRODUCIBLE)),
    "command": (
        _command,
        ("command", "folder", "output", "timeout", "env", "persistent", "turns", REPRODUCIBLE),
    ),
    TIMING: (_timing, ("command", "folder", "env", "warmup", "ignore_failure")),
    "table": (_table, ("file", "order", "layout", "arm", "reward", "axis", *_CHOICE)),
}
"""The reader of each kind of [measure], and its valid entries."""
