"""Valid input, mutated at random: files of every kind, stores and options, given to every command."""

import hashlib
import io
import json
import random
import re
import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import click
import numpy as np

from shortlist import cli
from shortlist.errors import ShortlistError
from tests.cli.calling import PILOT, QUESTION, SIMULATED, Calls

_SECONDS = 60  # for one command, on a busy machine
_NASTY = (
    *("", " ", "0", "-1", "1", "2", "nan", "-inf", "1e999", "1e-320", "1e308", "-0.0", "1_000", "٣", "0x10"),
    *(
        "1" + "0" * 30,
        "1" + "0" * 400,
        "9" * 5000,
        "0x" + "f" * 5000,
        "true",
        "2020-01-01",
        "null",
        "[]",
        "{}",
    ),
    *('"', "'", "\0", "\n", "\r", ",", ";", "\t", "=", "#", "\\", "\u202e", "\ud800", "\ufeff", "é"),
    *("[" * 3000, "a." * 200 + "a", "x" * 10_000, "../..", "/dev/null", "/dev/zero", ".", "~", ":memory:"),
)
_NPY, _NPZ = (np.random.default_rng(0).normal(size=shape) for shape in ((3, 400), 400))
_TABLE = SIMULATED.replace('kind = "simulated"\nmeans = [0.0, 1.0, 2.0]', 'kind = "table"\nfile = "t.{}"')
_ARMS = """
[problem]
m = 1
epsilon = 0.5
delta = 0.1
arms = "arms.csv"

[measure]
kind = "simulated"
means = "mean"
"""
_RUN = ["run", "{file}", "--store", "new.db", "--budget", "100", "--retries", "0"]
_OF_FILES = [
    ["plan", "{file}"],
    ["begin", "{file}", "--store", "new.db"],
    _RUN,
    ["doctor", "{file}", "--pulls", "5"],
    ["simulate", "{file}", "--replications", "1", "--budget", "100", "--strategy", "wnelim"],
]
_OF_RUNS = [
    ["status", "trial"],
    ["status", "sim", "--json"],
    ["list"],
    ["report", "sim"],
    ["report", "sim", "-o", "report.html"],
    ["export", "sim", "--json"],
    ["export", "trial"],
    ["replay", "sim"],
    ["ask", "trial", "--csv", "--worker", "ann"],
    ["plot", "arms", "sim", "--json"],
    ["copy", "shortlist.db", "copy.db"],
    ["prune", "--finished", "--dry-run"],
    ["tell", "trial", "sheet.csv"],
    ["run", "sim.toml", "--budget", "100"],
    ["begin", "pilot.toml", "--name", "other"],
]
_OF_OPTIONS = [
    ["plan", "--instance", "equal", "-n", "6", "-m", "2", "--epsilon", "2.0", "--delta", "0.1"],
    [
        "plan",
        "--instance",
        "random",
        "-n",
        "6",
        "-m",
        "2",
        "--epsilon",
        "2.0",
        "--budget",
        "99",
        "--vary",
        "m",
    ],
    ["simulate", "--instance", "linear", "-n", "6", "-m", "2", "--strategy", "wnelim", "--replications", "1"],
    ["simulate", "sim.toml", "--strategy", "race", "--seed", "3", "--budget", "100", "--rewards", "gaussian"],
    ["ask", "trial", "--worker", "ann", "--max", "2", "--lease", "15min"],
    ["tell", "trial", "sheet.csv", "--format", "csv", "--worker", "ann"],
    ["run", "sim.toml", "--strategy", "race", "--seed", "1", "--name", "new", "--budget", "50"],
    ["run", "sim.toml", "--budget", "50", "--timeout", "9", "--pulls-per-call", "3", "--retries", "1"],
    ["begin", "trial.toml", "--strategy", "auto", "--seed", "1", "--name", "new", "--store", "new.db"],
    ["doctor", "sim.toml", "--arms", "2", "--pulls", "5", "--seed", "1"],
    ["report", "sim", "--output", "report.html", "--store", "shortlist.db"],
    ["export", "sim", "--output", "sim.json", "--store", "shortlist.db"],
    ["plot", "arms", "sim", "--json", "--store", "shortlist.db"],
    ["copy", "shortlist.db", "copy.db", "sim"],
    ["prune", "sim", "--older-than", "30d", "--dry-run"],
    ["run", "sim.toml", "--server", "http://127.0.0.1:1", "--token-file", "token"],
]


class TooSlow(BaseException):
    """A command took longer than any command may."""


class Fuzzer:
    """Mutated input, case by case. `failures` says what went wrong, and with which input."""

    def __init__(self, call: Calls, seed: int) -> None:
        self.folder, self.random = call.folder, random.Random(seed)
        self.n_cases, self.failures = 0, list[str]()
        for name, text in {"trial": QUESTION, "sim": SIMULATED, "pilot": PILOT, "arms": _ARMS}.items():
            call.write(f"{name}.toml", text)
        call.write("arms.csv", 'name,scale,mean\nnorth,1.0,0.5\nsouth,2.0,1.5\n"east, far",1.0,0.0\n')
        call.write("wide.csv", "arm-0,arm-1,arm-2\n" + "1.5,2.5,0.5\n" * 50)
        call.write("long.csv", "arm,reward\n" + "arm-0,1.5\narm-1,2.5\narm-2,0.5\n" * 50)
        for form in ("npy", "npz", "csv"):
            call.write(f"{form}.toml", _TABLE.format(form))
        call.write("token", "x" * 20)
        (call.folder / "token").chmod(0o600)
        for command in (["begin", "trial.toml"], ["run", "sim.toml"]):
            assert call(*command).status == 0
        asked = call("ask", "trial", "--json", "--worker", "ann").data["tickets"]
        rows = [{"ticket": one["ticket"], "mean": 0.25, "name": one["name"]} for one in asked]
        call.write("sheet.json", json.dumps(rows))
        lines = [f'{one["ticket"]},0.25,"{one["name"]}"' for one in rows]
        call.write("sheet.csv", "\n".join(["ticket,mean,name", *lines, ""]))
        self.store = (call.folder / "shortlist.db").read_bytes()
        self.files = {path.name: path.read_bytes() for path in call.folder.iterdir() if path.suffix != ".db"}
        self.files |= {
            "t.npy": _saved(np.save, _NPY),
            "t.npz": _saved(np.savez, **_arms()),
            "t.csv": self.files["long.csv"],
        }

    def try_one(self) -> None:
        """Mutate something, and see that one command refuses or takes it as it should."""
        self.n_cases += 1
        self._set_up()
        make = self.random.choice(
            [self._file, self._file, self._table, self._sheet, self._stored, self._option]
        )
        command = make()
        before = self._digests()
        said = _said(command)
        changed = [name for name, digest in self._digests().items() if before.get(name) != digest]
        if said or changed:
            self.failures.append(f"case {self.n_cases}: {[word[:80] for word in command]}: {said}{changed}")

    def _set_up(self) -> None:
        for path in self.folder.iterdir():
            if path.is_file():
                path.unlink()
        for name, content in self.files.items():
            (self.folder / name).write_bytes(content)
        (self.folder / "token").chmod(0o600)
        (self.folder / "shortlist.db").write_bytes(self.store)

    def _digests(self) -> dict[str, str]:
        paths = [self.folder / name for name in self.files]
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}

    # --- what is mutated ------------------------------------------------------------------------------

    def _file(self) -> list[str]:
        name = self.random.choice(["trial.toml", "sim.toml", "pilot.toml", "arms.toml"])
        self._mutate("arms.csv" if name == "arms.toml" and self.random.random() < 0.5 else name)
        return _filled(self.random.choice(_OF_FILES), name)

    def _table(self) -> list[str]:
        form = self.random.choice(["npy", "npz", "csv"])
        if form == "csv" and self.random.random() < 0.5:
            wide = self.files["csv.toml"] + b'layout = "wide"\n'
            (self.folder / "csv.toml").write_bytes(wide)
            (self.folder / "t.csv").write_bytes(self.files["wide.csv"])
        self._mutate(f"{form}.toml" if self.random.random() < 0.2 else f"t.{form}")
        return _filled(_RUN, f"{form}.toml")

    def _sheet(self) -> list[str]:
        name = self.random.choice(["sheet.csv", "sheet.json"])
        self._mutate(name)
        return ["tell", "trial", name]

    def _stored(self) -> list[str]:
        self._mutate("shortlist.db")
        return list(self.random.choice(_OF_RUNS))

    def _option(self) -> list[str]:
        command = list(self.random.choice(_OF_OPTIONS))
        place = self.random.randrange(1, len(command))
        nasty = (
            self.random.choice(_NASTY).replace("\0", "").replace("\ud800", "\udcff")
        )  # as an argument has it
        command[place] = self.random.choice([nasty, command[place] + nasty])
        return command

    # --- how ------------------------------------------------------------------------------------------

    def _mutate(self, name: str) -> None:
        path = self.folder / name
        data = path.read_bytes()
        for _ in range(self.random.choice([1, 1, 1, 2, 5])):
            data = self.random.choice([_flipped, _cut, _cut_out, _doubled, _inserted, _replaced, _recoded])(
                self.random, data
            )
        path.write_bytes(data)


def _said(command: list[str]) -> str:
    """Return what is wrong with how a command ended; nothing if it did as it should."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with _limited(), warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
            warnings.simplefilter("ignore")
            cli.shortlist(command, standalone_mode=False)
    except SystemExit as end:
        return "" if end.code in {0, 3, 4} else f"exit status {end.code}"
    except (ShortlistError, click.ClickException) as error:
        words = str(error) if isinstance(error, ShortlistError) else error.format_message()
        return "" if words.strip() and "Traceback" not in words else f"says {words[:200]!r}"
    except BaseException as error:
        if isinstance(error, OSError) and error.filename and {"-o", "--output"} & {*command}:
            return ""  # `main` says that this file could not be written
        return "".join(traceback.format_exception(error)[-6:])
    return ""


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _filled(command: list[str], file: str) -> list[str]:
    return [word.format(file=file) for word in command]


def _arms() -> dict[str, Any]:
    return {f"arm-{arm}": _NPZ for arm in range(3)}


def _saved(save: Any, *values: Any, **named: Any) -> bytes:
    file = io.BytesIO()
    save(file, *values, **named)
    return file.getvalue()


def _flipped(chance: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(chance.choice([1, 3, 30])):
        if found:
            found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def _cut(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _cut_out(chance: random.Random, data: bytes) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + data[start + chance.choice([1, 4, 50]) :]


def _doubled(chance: random.Random, data: bytes) -> bytes:
    start = chance.randrange(len(data) + 1)
    part = data[start : start + chance.choice([1, 10, 100])]
    return data[:start] + part * chance.choice([2, 2, 50]) + data[start + len(part) :]


def _inserted(chance: random.Random, data: bytes) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + chance.choice(_NASTY).encode("utf-8", "surrogatepass") + data[start:]


def _replaced(chance: random.Random, data: bytes) -> bytes:
    words = list(re.finditer(rb"[\w.+-]+", data))
    if not words:
        return data
    word = chance.choice(words)
    return data[: word.start()] + chance.choice(_NASTY).encode("utf-8", "surrogatepass") + data[word.end() :]


def _recoded(chance: random.Random, data: bytes) -> bytes:
    text = data.decode("latin-1")
    return text.encode(chance.choice(["utf-16", "utf-8-sig", "utf-32", "utf-16-be"]))
