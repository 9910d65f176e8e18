"""The command line: exit codes, one clear line for every mistake, and JSON for every command."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

import shortlist as sl
from shortlist import cli
from shortlist.files.problem_file import read_problem_file

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DRILLING = "examples/drilling.toml"
COMMANDS = sorted(cli.shortlist.commands)
SMALL = ["--instance", "slippage", "-n", "8", "-m", "2", "--epsilon", "0.5", "--replications", "3"]


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


def call(*arguments: str, **environment: str) -> Outcome:
    """Run the command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "shortlist", *arguments],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "80"} | environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


class InProcess:
    """Run the command line as `python -m shortlist` does, without the wait for a new process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys, self.monkeypatch = capsys, monkeypatch
        monkeypatch.chdir(ROOT)
        monkeypatch.setenv("COLUMNS", "80")

    def __call__(self, *arguments: str) -> Outcome:
        self.monkeypatch.setattr(sys, "argv", ["shortlist", *arguments])
        status: Any = 0
        try:
            cli.main()
        except SystemExit as end:
            status = end.code
        return Outcome(status or 0, *self.capsys.readouterr())


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    return InProcess(capsys, monkeypatch)


# --- run ------------------------------------------------------------------------------------------


def test_run_prints_the_guarantee_and_five_sites() -> None:
    done = call("run", DRILLING, "--name", "b7")
    assert (done.status, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert "5 of 200 arms selected" in text
    assert "With probability at least 95 %, the true mean of each of the 5 selected arms" in text
    assert "0.5 below the 5th best true mean" in text
    assert "the answer is right" in text
    chosen, others = re.split(r"^not selected", done.out, flags=re.MULTILINE)
    assert [len(re.findall("^site ", part, flags=re.MULTILINE)) for part in (chosen, others)] == [5, 5]
    gaps = [float(line.split()[3]) for line in others.splitlines() if line.startswith("site ")]
    assert gaps == sorted(gaps)
    assert gaps[0] > 0
    assert "Equal pulls of all arms would have taken 22,191,200: 388 times as many." in text
    assert done.out.endswith("\nEvery arm, in figures: shortlist report b7 -o b7.html\n")


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_output_fits_the_terminal(columns: str, run: InProcess) -> None:
    run.monkeypatch.setenv("COLUMNS", columns)
    for arguments in (
        ["run", DRILLING],
        ["simulate", *SMALL, "--strategy", "wnelim"],
        ["strategies"],
        ["plan", DRILLING],
        ["plan", DRILLING, "--budget", "20000"],
    ):
        done = run(*arguments)
        assert done.status == 0
        assert max(len(line.rstrip()) for line in done.out.splitlines()) <= int(columns)


def test_run_gives_what_select_gives(run: InProcess) -> None:
    asked = read_problem_file(ROOT / DRILLING)
    assert isinstance(asked.problem, sl.Problem)
    expected = sl.select(
        sl.simulated_measure(asked.problem, asked.means, asked.rewards or ""), asked.problem, "wnelim", seed=7
    )
    done = run("run", DRILLING, "--strategy", "wnelim", "--seed", "7", "--json")
    assert done.status == 0
    assert json.loads(done.out) == expected.to_dict()


def test_run_ends_with_status_3_when_the_budget_ends_first() -> None:
    done = call("run", DRILLING, "--budget", "1000")
    assert done.status == 3
    assert "No guarantee" in done.out
    assert "the remaining budget is too small for the next batch of pulls" in " ".join(done.out.split())
    assert "probability" not in done.out


def test_run_ends_with_status_3_when_nothing_is_proved(run: InProcess) -> None:
    done = run("run", DRILLING, "--strategy", "adapted-medelim-published")
    assert done.status == 3
    assert "it has no guarantee" in done.out


def test_a_budget_of_nothing_still_gives_valid_json(run: InProcess) -> None:
    done = run("run", DRILLING, "--budget", "0", "--json")
    assert done.status == 3
    data = json.loads(done.out)
    assert (data["stop"], data["guarantee"], data["n_pulls"]) == ("budget", None, 0)


def test_run_works_from_any_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shortlist", "run", str(ROOT / DRILLING), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert len(json.loads(done.stdout)["selected"]) == 5


def test_names_with_brackets_are_printed_as_they_are(run: InProcess, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(
        "[problem]\nm = 1\nepsilon = 1.0\ndelta = 0.1\nscales = [0.1, 0.1]\n"
        'names = ["[bold]first[/bold]", "second"]\n[measure]\nkind = "simulated"\nmeans = [9.0, 0.0]\n'
    )
    assert "[bold]first[/bold]" in run("run", str(tmp_path / "odd.toml")).out


# --- plan -----------------------------------------------------------------------------------------


def test_plan_says_what_it_recommends_and_why(run: InProcess) -> None:
    done = run("plan", DRILLING)
    assert done.status == 0
    text = " ".join(done.out.split())
    assert "the 5 best of 200 arms to within 0.5" in text
    first, second, *_ = done.out.splitlines()
    assert first.startswith("examples/drilling.toml: the 5 best")
    assert second.startswith("race: usually about 420,000 pulls (340,000 to 590,000), at most 2,961,894,")
    assert "Why this one: race adapts to the rewards. It needs at most" in text
    assert "Lower bound: " in text
    assert (
        "race divides delta among the events that may mislead it: 0.0225: one of the m best arms looks"
        in text
    )
    assert all(name in text for name in sl.strategies.names())
    assert "lucb, ugape (no maximum number of pulls)" in text


@pytest.mark.parametrize(
    ("word", "kind"),
    [("bernoulli", sl.Bernoulli()), ("bounded", sl.Bounded()), ("gaussian", sl.Gaussian([1.0] * 6))],
)
def test_built_in_instances_are_planned_with_rewards_of_each_kind(
    run: InProcess, word: str, kind: sl.Bounded | sl.Gaussian
) -> None:
    found = json.loads(
        run("plan", "--instance", "equal", "-n", "6", "-m", "2", "--rewards", word, "--json").out
    )
    asked = sl.Problem(2, 0.1, 0.05, n=6, rewards=kind)
    planned = sl.plan(asked)
    assert found == json.loads(json.dumps(planned.to_dict() | {"usual": planned.usual.to_dict()}))
    assert "--rewards has no effect here" in run("plan", DRILLING, "--rewards", word).err


def test_plan_estimates_the_usual_pulls(run: InProcess) -> None:
    coins = ("plan", "--instance", "equal", "-n", "4", "-m", "1", "--rewards", "bernoulli")
    said = run(*coins, "--rate", "0.1").out
    usual = sl.plan(sl.Problem(1, 0.1, 0.05, n=4, rewards=sl.Bernoulli())).usual_at(0.1)
    race = usual.pulls["race"]
    (row,) = (line.split() for line in said.split("usual pulls")[1].splitlines() if line.startswith("race "))
    assert row[:2] == ["race", f"{race.median:,}"]
    low, median, high = (f"{float(f'{pulls:.2g}'):,.0f}" for pulls in (race.low, race.median, race.high))
    words = " ".join(said.split())
    assert f"race: usually about {median} pulls ({low} to {high}) for means near 0.1, at most" in words
    assert "--rate" not in words
    assert "If all arms get equally many pulls, more are usually needed" in words
    plain = " ".join(run(*coins).out.split())
    assert "for means near 0.5, at most" in plain
    assert "rounds. For other means, such as 0.04: --rate 0.04. With probability" in plain
    where = (
        f"12 simulated runs, with 10 % and 90 % quantiles in brackets. Simulated question: {usual.instance}."
    )
    assert where in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
    assert "usual pulls" not in run(*coins, "--no-usual").out
    assert json.loads(run(*coins, "--no-usual", "--json").out)["usual"] is None
    assert "no effect with --no-usual" in run(*coins, "--no-usual", "--rate", "0.1").err
    assert "the same on every instance" in run("plan", "--instance", "equal", "-n", "2", "-m", "2").out
    assert "no estimate, since more than 1,000 arms" in " ".join(
        run("plan", "--instance", "equal", "-n", "1001").out.split()
    )


def test_plan_says_for_which_noise_the_usual_cost_holds_and_what_a_dash_means(
    run: InProcess, tmp_path: Path
) -> None:
    file = tmp_path / "inv.toml"
    file.write_text('[problem]\nm = 1\nepsilon = 0.2\ndelta = 0.05\nn = 4\nnoise = "gaussian-unknown"\n')
    plain, own = (
        " ".join(run("plan", str(file), *options).out.split()) for options in ((), ("--scale", "3"))
    )
    assert (
        "if the standard deviation is 0.4 (2 epsilon), no limit known in advance. Set other values" in plain
    )
    assert "Set other values with --scale. With probability" in plain
    assert "if the standard deviation is 3, no limit known in advance. With probability" in own
    assert "-: not simulated. These strategies are for known variances" in plain
    coins = run("plan", "--instance", "equal", "-n", "4", "-m", "1", "--rewards", "bernoulli").out
    assert "not simulated" not in coins


def test_plan_with_a_budget_says_if_the_strategy_cannot_be_fed(run: InProcess, tmp_path: Path) -> None:
    file = tmp_path / "coins.toml"
    question = '[problem]\nm = 1\nepsilon = 0.1\ndelta = 0.05\nn = 4\nnoise = "bernoulli"\n'
    file.write_text(question)
    said = " ".join(run("plan", str(file), "--budget", "9000", "--no-usual").out.split())
    assert " short-race cannot take results from `shortlist feed`. To use feed, " in said
    assert "begin with --strategy race, which takes at most " in said
    assert "feed" not in run("plan", str(file), "--no-usual").out
    file.write_text(f'{question}[measure]\nkind = "simulated"\nmeans = [0.1, 0.2, 0.3, 0.4]\n')
    assert "feed" not in run("plan", str(file), "--budget", "9000", "--no-usual").out


def test_a_budget_for_a_whole_table_can_be_planned_and_a_smaller_one_says_what_to_do(run: InProcess) -> None:
    whole = run("plan", "examples/best-model.toml", "--budget", "50000", "--no-usual")
    assert whole.status == 0
    assert "shared-items: at most 40,000 scores" in whole.out
    less = run("plan", "examples/best-model.toml", "--budget", "800")
    assert less.status == 3
    assert "`shortlist run` with --budget 800" in less.err


def test_plan_says_if_no_lower_bound_is_proved(run: InProcess, tmp_path: Path) -> None:
    file = tmp_path / "coins.toml"
    file.write_text('[problem]\nm = 1\nepsilon = 0.1\ndelta = 0.05\nn = 4\nnoise = "bernoulli"\n')
    said = run("plan", str(file)).out
    assert "No lower bound is proved for rewards of this kind." in said
    assert "x bound" not in said
    assert json.loads(run("plan", str(file), "--json").out)["lower_bound"] is None


@pytest.mark.parametrize("option", ["--epsilon", "-m"])
def test_settings_of_the_problem_file_are_no_options_of_a_run(run: InProcess, option: str) -> None:
    said = " ".join(run("run", DRILLING, option, "1").err.split())
    assert f"The question is in FILE: set `{option.lstrip('-')}` there." in said
    assert "--json" not in said
    assert "Did you mean '--budget'" in run("run", DRILLING, "--budgte", "1").err


def test_plan_with_a_budget_and_unknown_variances_names_the_command_to_run(
    run: InProcess, tmp_path: Path
) -> None:
    file = tmp_path / "inv.toml"
    file.write_text('[problem]\nm = 1\nepsilon = 0.1\ndelta = 0.05\nn = 4\nnoise = "gaussian-unknown"\n')
    said = " ".join(run("plan", str(file), "--budget", "1000").err.split())
    assert "run with this budget, `shortlist run" in said
    assert "inv.toml --budget 1000`" in said
    assert "`select`" not in said


def test_plan_refuses_an_unknown_kind_of_measurement(run: InProcess, tmp_path: Path) -> None:
    path = tmp_path / "question.toml"
    path.write_text(
        "[problem]\nm = 1\nepsilon = 0.1\ndelta = 0.05\nvariances = [1, 1]\n[measure]\nkind = 'fnction'\n"
    )
    done = run("plan", str(path))
    assert done.status == 2
    assert "kind is 'fnction'; it must be one of: \"simulated\"" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("vary", "found"), [("epsilon", "No smaller epsilon"), ("delta", "No smaller delta"), ("m", "certify m")]
)
def test_plan_answers_the_reverse_question(run: InProcess, tmp_path: Path, vary: str, found: str) -> None:
    file = tmp_path / "few.toml"
    file.write_text(f"[problem]\nm = 2\nepsilon = 0.5\ndelta = 0.05\nscales = {[1.0, 2.0, 0.5] * 4}\n")
    done = run("plan", str(file), "--budget", "5000", "--vary", vary)
    assert done.status == 0
    said = " ".join(done.out.split())
    assert f"Whatever the rewards are, 5,000 pulls certify {vary} " in said
    assert found in said
    assert "A run usually" not in done.out, "the recommended strategy takes all of them"
    data = json.loads(run("plan", str(file), "--budget", "5000", "--vary", vary, "--json").out)
    assert (data["budget"], data["vary"]) == (5000, vary)
    assert data["strategies"][0]["worst_case_pulls"] <= 5000


def test_a_budget_usually_certifies_more_than_in_any_case(run: InProcess) -> None:
    coins = ("plan", "--instance", "equal", "-n", "4", "-m", "1", "--rewards", "bernoulli", "--no-usual")
    said = " ".join(run(*coins, "--budget", "42000").out.split())
    assert said.startswith("Whatever the rewards are, 42,000 pulls certify epsilon 0.0")
    assert "A run usually ends with a smaller one." in said
    assert "A run usually" not in run(*coins, "--budget", "420000", "--vary", "delta").out


def test_a_budget_too_small_to_certify_anything_ends_with_status_3(run: InProcess) -> None:
    done = run("plan", DRILLING, "--budget", "20")
    assert done.status == 3
    assert "each of the 200 arms at least once" in done.err


def test_plan_needs_no_measurement(run: InProcess, tmp_path: Path) -> None:
    (tmp_path / "bare.toml").write_text("[problem]\nm = 1\nepsilon = 1.0\ndelta = 0.1\nscales = [0.1, 0.2]\n")
    assert run("plan", str(tmp_path / "bare.toml")).status == 0
    assert run("run", str(tmp_path / "bare.toml")).status == 2


# --- simulate and strategies ----------------------------------------------------------------------


@pytest.mark.parametrize("instance", ["equal", "linear", "slippage", "random", "illustrative-2"])
def test_every_instance_can_be_simulated(run: InProcess, instance: str) -> None:
    size = [] if instance.startswith("illustrative") else ["-n", "6", "-m", "2"]
    chosen = ["--instance", instance, *size, "--epsilon", "1", "--replications", "2"]
    done = run("simulate", *chosen, "--strategy", "wnelim", "--json")
    assert done.status == 0
    (data,) = json.loads(done.out)
    assert (data["strategy"], data["replications"], len(data["pulls"])) == ("wnelim", 2, 2)


def test_simulate_compares_all_strategies_with_a_cap(run: InProcess) -> None:
    done = run("simulate", *SMALL)
    assert done.status == 0
    first_words = {line.split()[0] for line in done.out.splitlines() if line.strip()}
    assert {"wnelim", "medelim", "medelim-max", "vmedelim", "adapted-medelim"} <= first_words
    assert "lucb" not in first_words


def test_simulate_reads_a_problem_file(run: InProcess) -> None:
    done = run("simulate", DRILLING, "--strategy", "wnelim", "--replications", "2", "--json")
    (data,) = json.loads(done.out)
    assert data["errors"] == 0
    assert data["pulls"][0] > 0
    assert data["guarantee"].startswith("With probability at least 95 %")


def test_simulate_gives_what_the_function_gives(run: InProcess) -> None:
    done = run("simulate", *SMALL, "--strategy", "lucb", "--seed", "3", "--rewards", "two-point", "--json")
    asked = sl.Problem(m=2, epsilon=0.5, delta=0.05, variances=[1.0] * 8)
    means = sl.instances.slippage(asked).means
    expected = sl.simulate(asked, means, "lucb", replications=3, seed=3, rewards="two-point")
    assert json.loads(done.out)[0]["pulls"] == expected.pulls.tolist()


def test_simulate_says_what_ran_out_of_budget(run: InProcess) -> None:
    done = run("simulate", *SMALL, "--strategy", "lucb", "--budget", "20")
    assert done.status == 3
    assert "lucb: 3 of 3 used up the budget" in " ".join(done.out.split())


@pytest.mark.parametrize("option", [["-n", "7"], ["-m", "2"], ["--epsilon", "1"], ["--delta", "0.2"]])
def test_options_that_the_file_settles_are_refused(run: InProcess, option: list[str]) -> None:
    done = run("simulate", "examples/drilling.toml", *option)
    assert done.status == 2
    assert "has no effect" in done.err


def test_a_screen_is_judged_by_its_own_promise_but_is_no_answer(run: InProcess) -> None:
    done = run("run", "examples/drilling.toml", "--strategy", "medelim")
    assert done.status == 3
    assert "This is weaker than the guarantee requested." in done.out
    assert "10 of 200 arms kept (a screen, not yet a selection)" in done.out
    assert "the answer is right" in done.out


def test_a_run_says_in_advance_what_it_may_cost(run: InProcess) -> None:
    done = run("run", "examples/drilling.toml", "--budget", "5")
    assert done.status == 3
    said = "race: at most 2,961,894 pulls, usually far fewer; the budget of 5 may be used up first"
    assert said in done.out
    assert "0 of 200 arms selected" in done.out


def test_strategies_lists_all_of_them(run: InProcess) -> None:
    done = run("strategies")
    assert done.status == 0
    assert all(any(line.startswith(name) for line in done.out.splitlines()) for name in sl.strategies.names())
    assert "[ZT22] Algorithm 2" in done.out


# --- JSON; for commands about kept runs see tests/cli --------------------------------------------

JSON_CALLS = {
    "run": ["run", DRILLING, "--json"],
    "plan": ["plan", DRILLING, "--json"],
    "simulate": ["simulate", *SMALL, "--strategy", "wnelim", "--strategy", "lucb", "--json"],
    "bench": ["bench", "--instance", "equal", "-n", "5", "-m", "1", "--replications", "2", "--json"],
    "strategies": ["strategies", "--json"],
    "doctor": ["doctor", DRILLING, "--json"],
}


@pytest.mark.parametrize("command", JSON_CALLS)
def test_commands_print_json(run: InProcess, command: str) -> None:
    done = run(*JSON_CALLS[command])
    assert done.status == 0
    assert done.err == ""
    assert json.loads(done.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


# --- mistakes -------------------------------------------------------------------------------------

MISTAKES = {
    "no such file": (["run", "nowhere.toml"], "nowhere.toml"),
    "no file but a folder": (["run", "examples"], "examples"),
    "not TOML": (["run", "examples/drilling-sites.csv"], "not valid TOML"),
    "unknown strategy": (["run", DRILLING, "--strategy", "best"], "'best'"),
    "bad seed": (["run", DRILLING, "--seed", "-1"], "seed"),
    "bad seed of a simulation": (["simulate", *SMALL, "--seed", "-1"], "seed"),
    "bad seed of a random instance": (["simulate", "--instance", "random", "--seed", "-1"], "seed"),
    "nothing to simulate": (["simulate"], "--instance"),
    "nothing to plan": (["plan"], "plan --help"),
    "nothing to vary": (["plan", DRILLING, "--vary", "m"], "--budget"),
    "a plan with options that mean nothing": (["plan", DRILLING, "--epsilon", "1"], "--epsilon"),
    "too much to simulate": (["simulate", DRILLING, *SMALL], "not both"),
    "unknown instance": (["simulate", "--instance", "easy"], "'easy'"),
    "illustrative too large": (["simulate", "--instance", "illustrative-6"], "`k` is 6"),
    "illustrative without k": (["simulate", "--instance", "illustrative-"], "illustrative-2"),
    "illustrative with an odd digit": (["simulate", "--instance", "illustrative-²"], "illustrative-2"),
    "no arms": (
        ["simulate", "--instance", "equal", "-n", "0"],
        "`--arms` is 0; it must be a whole number, 1 or more",
    ),
    "no arms at random": (["simulate", "--instance", "random", "-n", "0"], "arm"),
    "fewer than no arms": (["simulate", "--instance", "linear", "-n", "-3"], "`--arms` is -3"),
    "fewer than no arms at random": (["simulate", "--instance", "random", "-n", "-3"], "arm"),
    "more than all arms": (["simulate", "--instance", "equal", "-n", "3"], "`m` is 5"),
    "epsilon": (["simulate", "--instance", "equal", "--epsilon", "nan"], "`epsilon` is nan"),
    "delta": (["simulate", "--instance", "equal", "--delta", "1.5"], "`delta` is 1.5"),
    "no replications": (["simulate", *SMALL, "--replications", "0"], "`replications` is 0"),
    "unknown rewards": (["simulate", *SMALL, "--rewards", "cauchy"], "'cauchy'"),
    "rewards that do not fit": (
        ["simulate", *SMALL, "--epsilon", "2", "--rewards", "bernoulli"],
        "between 0 and 1",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line_and_status_2(run: InProcess, mistake: str) -> None:
    arguments, said = MISTAKES[mistake]
    done = run(*arguments)
    assert done.status == 2
    assert done.out == ""
    assert said in done.err
    assert done.err.startswith("Error: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "nowhere.toml"],
        ["run", "nowhere.toml", "--json"],
        ["simulate", "--instance", "random", "-n", "-3"],
        ["frobnicate"],
        ["run"],
        ["run", DRILLING, "--budget", "many"],
        ["run", DRILLING, "--budget", "-1"],
        ["strategies", "--yaml"],
    ],
    ids=" ".join,
)
def test_a_mistake_never_shows_a_traceback(run: InProcess, arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.status == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err.splitlines()[-1].startswith("Error: ")


MEASURED = """
[problem]
m = 1
epsilon = 0.5
delta = 0.05
names = ["north", "south"]
bounds = [0.0, 1.0]

[measure]
"""


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ('kind = "function"\nfunction = "score.py:measure"\n', "the sensor is offline"),
        ('kind = "command"\ncommand = ["sh", "-c", "echo offline >&2; exit 7"]\n', "exit status 7"),
    ],
    ids=["function", "command"],
)
def test_a_failed_measurement_is_status_4(run: InProcess, tmp_path: Path, measured: str, said: str) -> None:
    (tmp_path / "score.py").write_text("def measure(*_):\n    raise OSError('the sensor is offline')\n")
    (tmp_path / "question.toml").write_text(MEASURED + measured)
    done = run("run", str(tmp_path / "question.toml"), "--json", "--turns", "1")
    assert done.status == 4
    assert done.out == ""
    assert done.err.startswith("Error: measuring north")
    assert said in done.err


def test_run_measures_by_a_program(run: InProcess, tmp_path: Path) -> None:
    program = (
        "BEGIN { srand({seed} % 100000); for (i = 0; i < {count}; i++) print (rand() < 0.2 + 0.6 * {arm}) }"
    )
    (tmp_path / "question.toml").write_text(MEASURED + f'kind = "command"\ncommand = ["awk", "{program}"]\n')
    done = run("run", str(tmp_path / "question.toml"))
    assert done.status == 0
    assert "south" in done.out
    assert "true mean" not in done.out.split("With probability")[0]  # nobody knows it


def test_only_simulated_arms_can_be_simulated(run: InProcess, tmp_path: Path) -> None:
    (tmp_path / "question.toml").write_text(MEASURED + 'kind = "command"\ncommand = ["true"]\n')
    done = run("simulate", str(tmp_path / "question.toml"))
    assert done.status == 2
    assert "true means are unknown" in done.err
    assert 'kind = "simulated"' in done.err


def test_an_interrupted_run_is_status_130(run: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shortlist.execution.drive", interrupted)
    done = run("run", DRILLING, "--json")
    assert done.status == 130
    assert "Interrupted" in done.err
    assert "Traceback" not in done.err


# --- help -----------------------------------------------------------------------------------------


def help_of(*command: str) -> str:
    done = CliRunner().invoke(cli.shortlist, [*command, "--help"], terminal_width=100)
    assert done.exit_code == 0
    return done.output


def test_help_lists_the_commands_and_where_to_start() -> None:
    text = help_of()
    assert all(f"\n  {command} " in text for command in COMMANDS)
    assert "\n    shortlist examples drilling " in text
    assert "\n    shortlist run drilling.toml " in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_its_options(command: str) -> None:
    text = help_of(command)
    assert len(text.partition("Options:")[0].split()) > 12, "an example or an explanation"
    for option in cli.shortlist.commands[command].params:
        assert isinstance(option, click.Argument) or getattr(option, "help", None), option.name


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_help_shows_no_layout_marks(command: list[str]) -> None:
    text = help_of(*command)
    assert "\\b" not in text
    assert "\b" not in text


def test_the_examples_of_simulate_are_lines_of_their_own() -> None:
    lines = [line.strip() for line in help_of("simulate").splitlines()]
    examples = [line for line in lines if line.startswith("shortlist simulate ")]
    assert len(examples) == 3


def test_short_help_is_the_same() -> None:
    assert (
        CliRunner().invoke(cli.shortlist, ["-h"]).output
        == CliRunner().invoke(cli.shortlist, ["--help"]).output
    )


def test_help_loads_nothing_heavy() -> None:
    code = f"""
import sys
from shortlist.cli import main

heavy = {{"scipy", "dask", "distributed", "rich", "matplotlib"}}
heavy |= {{"sqlalchemy", "sqlite3", "psycopg", "httpx", "fastapi", "uvicorn"}}
for command in {[[], *([name] for name in COMMANDS)]!r}:
    sys.argv = ["shortlist", *command, "--help"]
    try:
        main()
    except SystemExit:
        pass
    if loaded := sorted(heavy & set(sys.modules)):
        sys.exit(f"{{command}} loads {{loaded}}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage:") == 1 + len(COMMANDS)


def test_the_version_is_that_of_the_package() -> None:
    assert sl.__version__ in call("--version").out


def test_a_reader_who_leaves_early_sees_no_traceback() -> None:
    command = [sys.executable, "-m", "shortlist", "strategies"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_strategy_that_cannot_be_counted_leaves_the_others_to_be_compared(run: InProcess) -> None:
    chosen = ["--instance", "slippage", "-n", "40", "-m", "3", "--epsilon", "3e-6", "--replications", "2"]
    done = run("simulate", *chosen)
    assert done.status == 0
    assert "wnelim" in done.out
    assert "Skipping vmedelim" in done.err
    assert run("simulate", *chosen, "--strategy", "vmedelim").status == 2


def test_strategies_that_refuse_a_problem_are_left_out_unless_all_do(run: InProcess) -> None:
    chosen = ("--instance", "slippage", "-n", "10", "-m", "3", "--epsilon", "1", "--replications", "2")
    done = run("simulate", *chosen, "--strategy", "kn", "--strategy", "race")
    assert done.status == 0
    assert "Skipping kn: it selects one arm only, and m is 3." in done.err
    assert "race" in done.out
    alone = run("simulate", *chosen, "--strategy", "kn")
    assert alone.status == 2
    assert "it selects one arm only" in alone.err
    assert run("simulate", *chosen, "--strategy", "race", "--strategy", "nobody").status == 2


# --- unknown variances ----------------------------------------------------------------------------

HIDDEN = (
    '[problem]\nm = 1\nepsilon = 0.5\ndelta = 0.05\nnoise = "gaussian-unknown"\npilot = 20\nn = 4\n'
    '[measure]\nkind = "simulated"\nmeans = [0.0, 1.0, 2.0, 3.0]\nscales = [1.0, 2.0, 3.0, 1.0]\n'
)


@pytest.fixture
def hidden(tmp_path: Path) -> str:
    (tmp_path / "hidden.toml").write_text(HIDDEN)
    return str(tmp_path / "hidden.toml")


def test_plan_says_what_is_known_before_the_pilot(run: InProcess, hidden: str) -> None:
    done = run("plan", hidden)
    text = " ".join(done.out.split())
    assert done.status == 0
    assert "t-race: starts with a pilot of 20 pulls of each of 4 arms, 80 in total." in text
    assert "bound" not in text.replace("upper bounds", "")  # none is known
    assert json.loads(run("plan", hidden, "--json").out)["problem"]["noise"] == "gaussian-unknown"
    assert "depends on the variances" in run("plan", hidden, "--budget", "100").err


def test_run_begins_with_a_pilot(run: InProcess, hidden: str) -> None:
    done = run("run", hidden)
    assert done.status == 0
    assert "t-race: starts with a pilot of 20 pulls per arm, 80 in total\n" in done.out
    assert "arm-3" in done.out
    assert "the answer is right" in done.out
    short = run("run", hidden, "--budget", "79", "--name", "other")
    assert short.status == 3
    assert "80 in total; the budget of 79 may be used up first" in short.out


def test_strategies_for_unknown_variances_are_simulated(run: InProcess, hidden: str) -> None:
    done = run("simulate", hidden, "--replications", "5", "--json")
    outcomes = {one["strategy"]: one for one in json.loads(done.out)}
    pilots = ["t-race", "dudewicz-dalal", "rinott", "kim-nelson"]
    assert list(outcomes) == ["paired-race", "t-cut-race", *pilots]
    assert all(one["errors"] == 0 for one in outcomes.values())
    assert all(min(outcomes[name]["pulls"]) >= 80 for name in pilots)
    named = run("simulate", hidden, "--replications", "5", "--strategy", "race", "--json")
    assert [one["strategy"] for one in json.loads(named.out)] == ["race"]


def test_doctor_announces_the_pilot(run: InProcess, hidden: str) -> None:
    done = run("doctor", hidden)
    assert done.status == 0
    assert "starts with a pilot of 20 pulls per arm, 80 in total" in " ".join(done.out.split())


def test_strategies_for_unknown_variances_are_listed(run: InProcess) -> None:
    lines = run("strategies").out.splitlines()
    assert all(any(line.startswith(name) for line in lines) for name in sl.strategies.names("unknown"))
