"""Problem files: what they may say, and what is said about those that cannot be read."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.errors import FinalFailure
from shortlist.files.problem_file import ProblemFile, read_problem, read_problem_file
from shortlist.measure import BoundedSource, Call, CommandSource, TableSource, summary_of
from tests.questions import unknown

PROBLEM = """
[problem]
m = 1
epsilon = 0.5
delta = 0.05
"""
MEASURE = """
[measure]
kind = "simulated"
"""
WITH_ARMS = PROBLEM + 'arms = "sites.csv"\n' + MEASURE
SITES = "name,scale,mean\nnorth,2.0,0.1\nsouth,0.5,0.9\n"


def write(folder: Path, text: str | bytes, sites: str | bytes | None = None) -> Path:
    """Write a problem file, and a CSV file beside it; return the path of the first."""
    for name, content in (("question.toml", text), ("sites.csv", sites)):
        if content is not None:
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / "question.toml"


def read(folder: Path, text: str | bytes, sites: str | bytes | None = None) -> ProblemFile:
    return read_problem_file(write(folder, text, sites))


def test_a_path_may_be_a_string_and_what_is_returned_can_be_measured(tmp_path: Path) -> None:
    text = "[problem]\nm = 1\nepsilon = 0.5\ndelta = 0.1\nvariances = [1, 1]\n"
    path = write(tmp_path, text + '[measure]\nkind = "simulated"\nmeans = [0, 3]\n')
    asked = read_problem_file(str(path))
    assert asked.problem.digest == read_problem_file(path).problem.digest == read_problem(str(path)).digest
    assert sl.select(asked.source, asked.problem).selected == ("arm-1",)
    with pytest.raises(sl.InvalidProblem, match="missing"):
        read_problem_file(str(tmp_path / "missing.toml"))


def true_means(found: ProblemFile) -> FloatArray:
    assert found.means is not None
    return found.means


def known(found: ProblemFile) -> sl.Problem:
    assert found.problem.knows_variances
    return found.problem


def refusal(folder: Path, text: str | bytes, sites: str | bytes | None = None) -> str:
    """Return what is said about a file that is wrong; it must name the file."""
    path = write(folder, text, sites)
    with pytest.raises(sl.InvalidProblem) as caught:
        read_problem_file(path)
    message = str(caught.value)
    assert str(path) in message or str(folder / "sites.csv") in message
    return message


# --- what files may say ---------------------------------------------------------------------------


def test_arms_come_from_a_csv_file(tmp_path: Path) -> None:
    found = read(tmp_path, WITH_ARMS, SITES)
    assert found.problem == sl.Problem(1, 0.5, 0.05, [4.0, 0.25], names=["north", "south"])
    assert true_means(found).tolist() == [0.1, 0.9]
    assert found.rewards == "gaussian"


def test_a_scale_is_the_root_of_a_variance(tmp_path: Path) -> None:
    by_scale = read(tmp_path, WITH_ARMS, "scale,mean\n3.0,0\n0.1,1\n")
    by_variance = read(tmp_path, WITH_ARMS, "variance,mean\n3.0,0\n0.1,1\n")
    assert known(by_scale).variances == pytest.approx([9.0, 0.01])
    assert known(by_variance).variances.tolist() == [3.0, 0.1]


@pytest.mark.parametrize(("key", "expected"), [("variances", [2.0, 3.0]), ("scales", [4.0, 9.0])])
def test_arms_may_be_listed_in_the_file_itself(tmp_path: Path, key: str, expected: list[float]) -> None:
    text = PROBLEM + f'{key} = [2.0, 3]\nnames = ["a", "b"]\n' + MEASURE + "means = [0.5, 1]\n"
    found = read(tmp_path, text)
    assert known(found).variances.tolist() == expected
    assert found.problem.names == ("a", "b")
    assert true_means(found).tolist() == [0.5, 1.0]


def test_names_are_optional(tmp_path: Path) -> None:
    found = read(tmp_path, WITH_ARMS, "scale,mean\n1,0\n1,1\n")
    assert found.problem.names is None


def test_any_column_may_hold_the_means_and_others_are_ignored(tmp_path: Path) -> None:
    text = WITH_ARMS + 'means = "content"\nrewards = "uniform"\n'
    found = read(tmp_path, text, "name,note,scale,content\na,dry,1,0.25\nb,wet,1,0.75\n")
    assert true_means(found).tolist() == [0.25, 0.75]
    assert found.rewards == "uniform"


def test_the_csv_file_is_looked_for_beside_the_problem_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = write(tmp_path, WITH_ARMS, SITES)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert read_problem_file(path).problem.n == 2
    assert read_problem_file(Path("..") / path.name).problem.n == 2


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_spaces_quotes_and_line_ends_do_not_matter(tmp_path: Path, newline: str) -> None:
    sites = newline.join([" name , scale,mean", '"north, upper" , 2.0 , 0.1', " süd,0.5,0.9", ""])
    found = read(tmp_path, WITH_ARMS, sites)
    assert found.problem.names == ("north, upper", "süd")


def test_a_byte_order_mark_before_the_csv_file_is_ignored(tmp_path: Path) -> None:
    found = read(tmp_path, WITH_ARMS, b"\xef\xbb\xbf" + SITES.encode())
    assert found.problem.names == ("north", "south")


def test_a_byte_order_mark_before_the_problem_file_is_ignored(tmp_path: Path) -> None:
    found = read(tmp_path, b"\xef\xbb\xbf" + WITH_ARMS.encode(), SITES)
    assert found.problem.names == ("north", "south")


def test_the_example_is_read() -> None:
    found = read_problem_file(Path(__file__).parents[2] / "examples" / "drilling.toml")
    assert (found.problem.n, found.problem.m) == (200, 5)
    assert np.isfinite(true_means(found)).all()


# --- files that cannot be read --------------------------------------------------------------------


def test_a_missing_problem_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(sl.InvalidProblem, match=r"there is no file .*nowhere\.toml; check the path"):
        read_problem_file(tmp_path / "nowhere.toml")


def test_a_missing_csv_file_is_named(tmp_path: Path) -> None:
    message = refusal(tmp_path, WITH_ARMS)
    assert "there is no file" in message
    assert "sites.csv; check the path" in message


def test_a_folder_is_no_problem_file(tmp_path: Path) -> None:
    with pytest.raises(sl.InvalidProblem, match="cannot be read") as caught:
        read_problem_file(tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[problem]\nm = " + "9" * 5000, "has a number with thousands of digits. Write numbers like"),
        ("[problem]\nm = 0x" + "f" * 5000, "a number has more than 300 digits. Write numbers like"),
        ("[problem]\nm = [[{a = 1" + "0" * 400 + "}]]", "a number has more than 300 digits"),
        ("a = " + "[" * 100_000, "is not valid TOML: its brackets are too deep"),
        ("[" + ".".join("a" * 2000) + "]", "is not valid TOML: a key has more than 32 parts"),
        ("[problem]\nx = { " + " . ".join("a" * 2000) + " = 1 }", "a key has more than 32 parts"),
        ("[problem]\nm = 1\0", "is not valid TOML"),
        (PROBLEM + 'arms = "a\\u0000b"', "has a NUL character in it"),
    ],
    ids=range(8),
)
def test_numbers_and_towers_that_python_cannot_read_are_refused(tmp_path: Path, text: str, said: str) -> None:
    message = refusal(tmp_path, text)
    assert said in message
    assert len(message) < 500


def test_a_large_file_is_no_problem_file(tmp_path: Path) -> None:
    with (tmp_path / "large.toml").open("wb") as file:
        file.truncate(1 << 30)  # a hole that takes no room
    with pytest.raises(sl.InvalidProblem, match=r"large.toml cannot be read: it is larger than 256 MiB"):
        read_problem_file(tmp_path / "large.toml")


def test_broken_toml_is_placed(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[problem]\nm = = 3\n")
    assert "not valid TOML" in message
    assert "line 2" in message


def test_a_problem_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path, "# süd\n".encode("latin-1"))


def test_a_csv_file_in_another_encoding_is_refused_by_name(tmp_path: Path) -> None:
    message = refusal(tmp_path, WITH_ARMS, "name,scale,mean\nsüd,1,0\nnord,1,1\n".encode("latin-1"))
    assert "sites.csv" in message
    assert "UTF-8" in message.upper()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["no section [problem]", "add one"]),
        (MEASURE, ["no section [problem]", "add one"]),
        (PROBLEM + "variances = [1.0, 2.0]\n", ["no section [measure]", "add one", "shortlist begin"]),
        ("problem = 3\n" + MEASURE, ["no section [problem]"]),
        (WITH_ARMS + "[other]\nx = 1\n", ["unknown entry 'other'", "valid entries: items, measure, problem"]),
        (WITH_ARMS.replace("delta", "detla"), ["unknown entry 'detla'", "[problem]", "delta"]),
        (
            WITH_ARMS + "mean = 'x'\n",
            ["unknown entry 'mean'", "[measure]", "kind, means, re"],
        ),
        (WITH_ARMS.replace("m = 1", ""), ["[problem] lacks m", "add a line"]),
        (WITH_ARMS.replace("epsilon = 0.5\ndelta = 0.05", ""), ["[problem] lacks delta, epsilon"]),
        (WITH_ARMS.replace("simulated", "guessed"), ["kind is 'guessed'", 'one of: "simulated", "function"']),
        (WITH_ARMS.replace('"simulated"', "['simulated']"), ["kind is ['simulated']", "must be one of"]),
        (WITH_ARMS.replace('kind = "simulated"', ""), ["kind is None", 'must be one of: "simulated"']),
        (WITH_ARMS + 'rewards = "cauchy"\n', ["'cauchy'", "use one of: gaussian"]),
        (WITH_ARMS + 'means = "depth"\n', ["no column 'depth'", "name, scale, mean"]),
        (WITH_ARMS + "means = [1.0]\n", ["`means`", "2 arms"]),
        (WITH_ARMS.replace("m = 1", "m = 3"), ["`m` is 3", "only 2 arms"]),
        (WITH_ARMS.replace("m = 1", "m = 1.5"), ["`m` is 1.5", "whole number"]),
        (WITH_ARMS.replace("m = 1", "m = true"), ["`m` is True", "whole number"]),
        (WITH_ARMS.replace("0.05", '"5 %"'), ["`delta` is '5 %'", "real number"]),
        (WITH_ARMS.replace("0.05", "nan"), ["`delta` is nan", "between 0 and 1"]),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, list) else "",
)
def test_what_is_wrong_and_what_to_do(tmp_path: Path, text: str, said: list[str]) -> None:
    message = refusal(tmp_path, text, SITES)
    for part in said:
        assert part in message


def test_coins_noisier_than_stated_are_refused(tmp_path: Path) -> None:
    text = WITH_ARMS + 'rewards = "bernoulli"\n'
    message = refusal(tmp_path, text, "name,variance,mean\nfair,0.2,0.5\nunfair,0.25,0.9\n")
    assert "fair has variance 0.2" in message
    assert "0.25" in message


# --- the noise of the arms ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "sites"),
    [
        ("", "name,mean\na,0\nb,1\n"),
        ("variances = [1.0, 1.0]\nscales = [1.0, 1.0]\n", "name,mean\na,0\nb,1\n"),
        ("variances = [1.0, 1.0]\n", SITES),
        ("", "name,scale,variance,mean\na,1,1,0\nb,1,1,1\n"),
    ],
    ids=["never", "twice, listed", "listed and in the CSV file", "twice in the CSV file"],
)
def test_the_noise_must_be_given_exactly_once(tmp_path: Path, listed: str, sites: str) -> None:
    text = PROBLEM + listed + 'arms = "sites.csv"\n' + MEASURE
    message = refusal(tmp_path, text, sites)
    assert "exactly once" in message
    assert "variance" in message
    assert "scale" in message


@pytest.mark.parametrize(
    "scales", ["[1.0, 0.0]", "[1.0, -2.0]", "[1.0, nan]", "[1.0, inf]", "[]", "3.0", '"x"', "[[1.0, 2.0]]"]
)
def test_scales_must_be_positive_numbers(tmp_path: Path, scales: str) -> None:
    text = PROBLEM + f"scales = {scales}\n" + MEASURE + "means = [0.0, 1.0]\n"
    message = refusal(tmp_path, text)
    assert "scale" in message or "variances" in message


@pytest.mark.parametrize("entries", ["[true, 1.0]", "[1.0, true]", '["1.0", "2.0"]', '[1.0, "2.0"]'])
@pytest.mark.parametrize("key", ["scales", "variances"])
def test_lists_hold_nothing_but_numbers(tmp_path: Path, key: str, entries: str) -> None:
    text = PROBLEM + f"{key} = {entries}\n" + MEASURE + "means = [0.0, 1.0]\n"
    refusal(tmp_path, text)


def test_a_scale_whose_square_is_no_number_is_refused(tmp_path: Path) -> None:
    text = PROBLEM + "scales = [1e200, 1.0]\n" + MEASURE + "means = [0.0, 1.0]\n"
    assert "finite" in refusal(tmp_path, text)


@pytest.mark.parametrize("entries", ["[true, 1.0]", '["0.5", "1.0"]'])
def test_listed_means_are_nothing_but_numbers(tmp_path: Path, entries: str) -> None:
    text = PROBLEM + "variances = [1.0, 1.0]\n" + MEASURE + f"means = {entries}\n"
    refusal(tmp_path, text)


# --- the CSV file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sites", ["", "name,scale,mean\n", "\n"])
def test_a_csv_file_without_arms_is_refused(tmp_path: Path, sites: str) -> None:
    message = refusal(tmp_path, WITH_ARMS, sites)
    assert "sites.csv" in message
    assert "header line and one line per arm" in message


@pytest.mark.parametrize("bad", ["only", "b,1", "b,1,2,3"])
def test_a_line_with_too_few_or_too_many_fields_is_placed(tmp_path: Path, bad: str) -> None:
    message = refusal(tmp_path, WITH_ARMS, f"name,scale,mean\na,1,0\n{bad}\nc,1,1\n")
    assert "sites.csv, line 3" in message
    assert "header has 3" in message


def test_line_numbers_are_those_of_an_editor(tmp_path: Path) -> None:
    sites = 'name,scale,mean\n"north,\nupper valley",1,0\nb,1\n'
    assert "line 4" in refusal(tmp_path, WITH_ARMS, sites)


@pytest.mark.parametrize("column", ["scale", "mean"])
@pytest.mark.parametrize("entry", ["", "two", "1.0.0", "1,0"])
def test_an_entry_that_is_no_number_is_shown_and_placed(tmp_path: Path, column: str, entry: str) -> None:
    values = {"scale": "1", "mean": "0"} | {column: f'"{entry}"'}
    message = refusal(tmp_path, WITH_ARMS, f"name,scale,mean\na,1,0\nb,{values['scale']},{values['mean']}\n")
    assert f"'{column}'" in message
    assert repr(entry) in message
    assert "sites.csv" in message
    assert "line 3" in message


@pytest.mark.parametrize("entry", ["nan", "inf", "0", "-1"])
@pytest.mark.parametrize("column", ["scale", "variance"])
def test_noise_that_is_not_positive_and_finite_is_refused(tmp_path: Path, column: str, entry: str) -> None:
    message = refusal(tmp_path, WITH_ARMS, f"name,{column},mean\na,1,0\nb,{entry},1\n")
    assert "positive" in message


def test_a_mean_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    assert "NaN or infinity" in refusal(tmp_path, WITH_ARMS, "name,scale,mean\na,1,0\nb,1,nan\n")


def test_arms_of_one_name_are_refused(tmp_path: Path) -> None:
    assert "are both 'a'" in refusal(tmp_path, WITH_ARMS, "name,scale,mean\na,1,0\na,1,1\n")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, WITH_ARMS, "name,scale,scale,mean\na,1,2,0\nb,1,2,1\n")
    assert "scale" in message


def test_names_given_twice_are_refused(tmp_path: Path) -> None:
    text = PROBLEM + 'arms = "sites.csv"\nnames = ["x", "y"]\n' + MEASURE
    assert "name" in refusal(tmp_path, text, SITES)


def test_a_field_of_absurd_length_is_refused(tmp_path: Path) -> None:
    refusal(tmp_path, WITH_ARMS, "name,scale,mean\n" + "a" * 200_000 + ",1,0\nb,1,1\n")


def test_gaussian_noise_and_other_rewards_contradict_each_other(tmp_path: Path) -> None:
    text = PROBLEM + 'noise = "gaussian"\narms = "sites.csv"\n' + MEASURE
    assert known(read(tmp_path, text, SITES)).noise == "gaussian"
    said = refusal(tmp_path, text + 'rewards = "two-point"\n', SITES)
    assert '`noise` is "gaussian", but `rewards` are "two-point"' in said


# --- what is known of the rewards -----------------------------------------------------------------

SIMULATED = MEASURE + 'rewards = "bernoulli"\n'


def test_bounds_give_every_arm_the_same_variance(tmp_path: Path) -> None:
    text = PROBLEM + "bounds = [-1, 5]\nn = 3\n" + SIMULATED + "means = [0.5, 0.2, 0.1]\n"
    found = read(tmp_path, text)
    assert known(found).variances.tolist() == [9.0] * 3
    assert found.problem.bounds == (-1.0, 5.0)


@pytest.mark.parametrize(
    ("limits", "p"),
    [
        ("at_most = 0.5\n", 0.5),
        ("at_most = 0.1\n", 0.1),
        ("at_least = 0.9\n", 0.9),
        ("at_least = 0.2\n", 0.5),
    ],
)
def test_coins_that_are_known_to_be_unfair_are_less_noisy(tmp_path: Path, limits: str, p: float) -> None:
    mean = 0.95 if "0.9" in limits else 0.05
    text = (
        PROBLEM
        + f'rewards = "bernoulli"\n{limits}names = ["a", "b"]\n'
        + MEASURE
        + f"means = [{mean}, {mean}]\n"
    )
    found = read(tmp_path, text)
    expected = 0.25 if p == 0.5 else (1 - 2 * p) / (2 * np.log((1 - p) / p))
    assert known(found).variances == pytest.approx([expected] * 2)
    assert found.rewards == found.problem.declared_rewards == "bernoulli"
    assert found.problem.bounds == (0.0, 1.0)
    assert not found.problem.is_bounded


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("bounds = [0, 1]\n", "number of arms is not stated"),
        ("bounds = [0, 1]\nn = 2\nnames = ['a']\n", "stated twice, as 1 and as 2"),
        ("bounds = [0, 1]\nn = 0\n", "`n` is 0"),
        ("bounds = [1, 0]\nn = 2\n", "smaller one first"),
        ("bounds = [0, inf]\nn = 2\n", "`bounds` is [0, inf]; both must be finite"),
        ("bounds = [0]\nn = 2\n", "two numbers"),
        ("bounds = 1\nn = 2\n", "two numbers"),
        ("bounds = ['0', '1']\nn = 2\n", "real numbers"),
        ("variances = [1, 1]\nscales = [1, 1]\nbounds = [0, 1]\n", "exactly once"),
        ("bounds = [0, 2]\nrewards = 'bernoulli'\nn = 2\n", "every reward is 0 or 1, but `bounds` is [0, 2]"),
        ("rewards = 'poisson'\nn = 2\n", 'it must be "bernoulli"; "bounded", with `bounds`; "gaussian", '),
        ("rewards = 'Gaussian'\nn = 2\n", 'it must be "bernoulli"'),
        ("rewards = ['gaussian']\nn = 2\n", 'it must be "bernoulli"'),
        ("rewards = 'bounded'\nn = 2\n", "give the `bounds`"),
        ("rewards = 'gaussian'\nnoise = 'gaussian'\nn = 2\n", "`rewards` is 'gaussian'"),
        ("rewards = 'bernoulli'\nat_most = 2\nn = 2\n", "probabilities"),
        ("rewards = 'bernoulli'\nat_most = 0.1\nat_least = 0.2\nn = 2\n", "the smaller one first"),
        ("rewards = 'bernoulli'\nat_most = true\nn = 2\n", "`at_most` is True"),
        ("bounds = [0, 1]\nat_most = 0.1\nn = 2\n", "`at_most` is allowed only if"),
        ("variances = [1.0, 1.0]\nn = 2\n", "`n` is not needed"),
        ("bounds = [0, 1]\nn = 2\nnoise = 'gaussian'\n", "leave out `noise` or `bounds`"),
        ("variances = [1.0, 1.0]\ngoal = 'least'\n", "`goal` is 'least'"),
    ],
)
def test_contradictions_about_rewards_are_refused(tmp_path: Path, lines: str, said: str) -> None:
    assert said in refusal(tmp_path, PROBLEM + lines + MEASURE + "means = [0.0, 1.0]\n")


@pytest.mark.parametrize("rewards", ["gaussian", "uniform", "two-point"])
def test_simulated_rewards_must_keep_within_the_bounds(tmp_path: Path, rewards: str) -> None:
    text = PROBLEM + "bounds = [0, 1]\nn = 2\n" + MEASURE + f'rewards = "{rewards}"\nmeans = [0.5, 0.5]\n'
    assert f'simulated "{rewards}" rewards may lie outside' in refusal(tmp_path, text)


def test_the_goal_may_be_to_minimise(tmp_path: Path) -> None:
    found = read(tmp_path, WITH_ARMS.replace("m = 1", 'm = 1\ngoal = "minimise"'), SITES)
    assert found.problem.goal == "minimise"
    assert sl.select(found.source, found.problem).selected == ("north",)


# --- where rewards come from ----------------------------------------------------------------------

TWO = PROBLEM + 'bounds = [0, 10]\nnames = ["north", "south"]\n'
SCORE = """
import helper

def measure(arm, count, rng):
    return helper.level(arm) + rng.random(count)

def outside(arm, count, rng):
    return [11.0] * count

def negative(arm, count, rng):
    return [5.0] * (count - 1) + [-1e-9]

def at_the_edge(arm, count, rng):
    import shortlist
    return shortlist.Summary(count, 10.0 + 1e-12)

async def later(arm, count, rng):
    return measure(arm, count, rng)

number = 3
"""


def with_score(folder: Path, function: str) -> Path:
    (folder / "score.py").write_text(SCORE)
    (folder / "helper.py").write_text("def level(arm):\n    return 2.0 * arm\n")
    return write(folder, TWO + f'[measure]\nkind = "function"\nfunction = "{function}"\n')


@pytest.mark.parametrize("reference", ["score.py:measure", "score:measure"])
def test_a_function_is_imported_from_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    own = tmp_path / reference.partition(":")[0].replace(".", "_")  # modules are imported once, by name
    own.mkdir()
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("score", "helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = read_problem_file(with_score(own, reference))
    assert (found.means, found.rewards) == (None, None)
    assert sl.select(found.source, found.problem).selected == ("south",)
    again = pickle.loads(pickle.dumps(found.source))
    call = Call(0, 1, 3, 0)
    assert again.answers([call])[0].tolist() == found.source.answers([call])[0].tolist()
    for name in ("score", "helper"):
        sys.modules.pop(name, None)


def test_other_processes_import_the_function_anew(tmp_path: Path) -> None:
    source = read_problem_file(with_score(tmp_path, "score.py:measure")).source
    code = "import pickle, sys; from shortlist.measure import Call;"
    code += "print(pickle.load(sys.stdin.buffer).answers([Call(0, 1, 3, 0)])[0].mean())"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(source), capture_output=True, check=True
    )
    assert float(done.stdout) == source.answers([Call(0, 1, 3, 0)])[0].mean()


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("score.py:other", "no 'other' in score.py"),
        ("score.py:number", "is 3; it must be a function"),
        ("score.py:later", "is async; a problem file takes plain functions only"),
        ("score.py", 'write "module:function"'),
        (":measure", 'write "module:function"'),
        ("score.py:two words", 'write "module:function"'),
        ("nowhere.py:measure", "there is no file"),
        ("no_such_module_here:measure", "ModuleNotFoundError"),
        ("broken.py:measure", "ZeroDivisionError: division by zero"),
        ("leaving.py:measure", 'under `if __name__ == "__main__":`'),
    ],
)
def test_a_function_that_cannot_be_had_is_refused(tmp_path: Path, reference: str, said: str) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    path = with_score(tmp_path, reference)
    with pytest.raises(sl.InvalidProblem) as caught:
        read_problem_file(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_reward_outside_the_bounds_stops_the_run(tmp_path: Path) -> None:
    found = read_problem_file(with_score(tmp_path, "score.py:outside"))
    with pytest.raises(
        sl.MeasurementFailed, match=r"the reward 11 of (north|south) is refused: rewards were declared"
    ) as caught:
        sl.select(found.source, found.problem)
    assert "between 0 and 10" in str(caught.value)


def test_a_reward_below_the_bounds_does_so_too(tmp_path: Path) -> None:
    found = read_problem_file(with_score(tmp_path, "score.py:negative"))
    with pytest.raises(FinalFailure, match="the reward -1e-09 of north"):
        BoundedSource(found.source, found.problem).answers([Call(0, 0, 5, 0)])


def test_the_mean_of_a_summary_may_be_off_by_rounding(tmp_path: Path) -> None:
    found = read_problem_file(with_score(tmp_path, "score.py:at_the_edge"))
    assert BoundedSource(found.source, found.problem).answers([Call(0, 0, 5, 0)])[0].count == 5


def test_a_program_gets_the_columns_of_its_arm(tmp_path: Path) -> None:
    text = WITH_ARMS.replace(MEASURE, '[measure]\nkind = "command"\ncommand = ["echo", "{depth}"]\n')
    found = read(tmp_path, text, "name,scale,depth,note\nnorth,1,12,x\nsouth,1,7.5,y\n")
    assert isinstance(found.source, CommandSource)
    assert found.source.answers([Call(0, 0, 2, 0), Call(0, 1, 1, 0)]) == [[12.0, 12.0], [7.5]]
    assert set(found.source.columns) == {"depth"}


def test_a_program_runs_in_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "value.txt").write_text("3\n")
    (tmp_path / "data" / "value.txt").write_text("4\n")
    monkeypatch.chdir(tmp_path / "data")
    command = '[measure]\nkind = "command"\ncommand = ["cat", "value.txt"]\n'
    path = write(tmp_path, TWO + command).relative_to(tmp_path)
    for folder, expected in (("", 3.0), ('folder = "data"\n', 4.0)):
        write(tmp_path, TWO + command + folder)
        source = read_problem_file(Path("..") / path).source
        assert source.answers([Call(0, 0, 1, 0)]) == [[expected]]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "lacks `command`"),
        ('command = "echo 1"', "must be a list of strings"),
        ("command = []", "must be a list of strings"),
        ('command = ["echo", 1]', "must be a list of strings"),
        ('command = ["no-such-program-here"]', "no program of that name on PATH"),
        ('command = ["./absent"]', "no such executable file"),
        ('command = ["./question.toml"]', "chmod +x it"),
        ('command = ["echo", "{sed}"]', "the command has {sed}"),
        ('command = ["echo", "1"]\ntimeout = 0', "must be above 0"),
        ('command = ["echo", "1"]\ntimeout = "5s"', "number of seconds"),
        ('command = ["echo", "1"]\noutput = "xml"', "one of: lines, json"),
        ('command = ["echo", "1"]\nfolder = "absent"', "there is no folder"),
        ('command = ["echo", "1"]\nfolder = 3', "must be text"),
        ('command = ["echo", "1"]\nenv = { A = 1 }', "write every value as text"),
        ('command = ["echo", "1"]\nenv = "A=1"', "must be a table"),
        ('command = ["echo", "1"]\nshell = true', "unknown entry 'shell'"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_before_the_run(
    tmp_path: Path, lines: str, said: str
) -> None:
    assert said in refusal(tmp_path, TWO + f'[measure]\nkind = "command"\n{lines}\n')


def test_a_table_is_found_beside_the_file(tmp_path: Path) -> None:
    text = TWO + '[measure]\nkind = "table"\nfile = "sites.csv"\nlayout = "wide"\n'
    found = read(tmp_path, text, "question,north,south\n1,0,2\n2,,4\n")
    assert isinstance(found.source, TableSource)
    assert set(found.source.answers([Call(0, 1, 50, 0)])[0].tolist()) == {2.0, 4.0}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "lacks `file`"),
        ('file = "table.xls"', "must be a .csv, .npy, .npz or .json file"),
        ('file = "absent.csv"', "there is no file"),
        ('file = "absent.npy"', "there is no file"),
        ('file = "sites.csv"\nlayout = "tall"', "one of: long, wide"),
        ('file = "sites.csv"\norder = "shuffled"', "one of: next, random, draw"),
        ('file = "sites.csv"\naxis = 0', "unknown entry 'axis'"),
        ('file = "sites.csv"\nlayout = "wide"\narm = "x"', "unknown entry 'arm'"),
        ('file = "sites.csv"\nreward = "score"', "no column 'score'"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(tmp_path: Path, lines: str, said: str) -> None:
    sites = "arm,reward\nnorth,1\nsouth,2\n"
    assert said in refusal(tmp_path, TWO + f'[measure]\nkind = "table"\n{lines}\n', sites)


# --- unknown variances ----------------------------------------------------------------------------

UNKNOWN = PROBLEM + 'noise = "gaussian-unknown"\n'
NAMED = UNKNOWN + 'names = ["a", "b", "c"]\n'
FUNCTION = '[measure]\nkind = "function"\nfunction = "score.py:measure"\n'


def with_rewards(folder: Path) -> Path:
    text = "def measure(arm, count, rng):\n    return rng.normal(arm, 1 + arm, count)\n"
    (folder / "score.py").write_text(text)
    return folder


def test_variances_may_be_unknown(tmp_path: Path) -> None:
    text = NAMED + 'pilot = 12\ngoal = "minimise"\nguarantee = "indifference"\n' + FUNCTION
    expected = unknown(
        1, 0.5, 0.05, names=["a", "b", "c"], pilot=12, goal="minimise", guarantee="indifference"
    )
    found = read(with_rewards(tmp_path), text)
    assert found.problem == expected
    assert (found.means, found.variances) == (None, None)
    assert read_problem(write(tmp_path, text.split("[measure]")[0])) == expected


def test_gaussian_rewards_have_the_variances_that_are_stated_or_unknown_ones(tmp_path: Path) -> None:
    asked = BARE + 'rewards = "gaussian"\n'
    sites = "name,scale\na,1\nb,2\n"
    for entries, rewards in (
        ("n = 2\n", sl.Gaussian()),
        ("n = 2\npilot = 9\n", sl.Gaussian(pilot=9)),
        ("variances = [1, 4]\n", sl.Gaussian([1, 4])),
        ("scales = [1, 2]\n", sl.Gaussian([1, 4])),
        ('arms = "sites.csv"\n', sl.Gaussian([1, 4])),
    ):
        found = read_problem(write(tmp_path, asked + entries, sites))
        assert found == sl.Problem(1, 0.2, 0.1, n=2, names=found.names, rewards=rewards)


@pytest.mark.parametrize("arms", ["n = 3\n", 'names = ["a", "b", "c"]\n', 'arms = "sites.csv"\n'])
def test_the_number_of_unknown_arms_is_stated_in_any_way(tmp_path: Path, arms: str) -> None:
    write(with_rewards(tmp_path), "", "name,depth\na,1\nb,2\nc,3\n")
    found = read(tmp_path, UNKNOWN + arms + FUNCTION)
    assert (found.problem.n, found.problem.to_dict()["pilot"]) == (3, None)
    assert sl.select(found.source, found.problem).indices.tolist() == [2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NAMED + "variances = [1, 2, 3]\n", "so `variances` is not allowed"),
        (NAMED + "scales = [1, 2, 3]\n", "so `scales` is not allowed"),
        (NAMED + "bounds = [0, 1]\n", "so `bounds` is not allowed"),
        (NAMED + 'rewards = "bernoulli"\n', "so `rewards` is not allowed"),
        (NAMED + "at_most = 0.1\n", "so `at_most` is not allowed"),
        (UNKNOWN + 'arms = "sites.csv"\n', "has a column `scale`. Rename it"),
        (UNKNOWN, "the number of arms is not stated"),
        (NAMED + "pilot = 1\n", "`pilot` is 1; it must be a whole number, 2 or more"),
        (PROBLEM + "scales = [1, 1]\npilot = 30\n", "`pilot` is allowed only with"),
        (PROBLEM + 'noise = "unknown"\n', "it must be one of: sub-gaussian, gaussian, gaussian-unknown"),
        (PROBLEM, 'use `noise = "gaussian-unknown"`'),
    ],
)
def test_what_contradicts_unknown_variances_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(with_rewards(tmp_path), text + FUNCTION, SITES)
    path = write(tmp_path, text)
    with pytest.raises(sl.InvalidProblem, match=re.escape(said)):
        read_problem(path)  # without [measure] as well


@pytest.mark.parametrize(
    ("problem", "measure", "sites"),
    [
        ('names = ["a", "b", "c"]\n', "means = [0, 1, 2]\nvariances = [1, 4, 9]\n", None),
        ("n = 3\n", "means = [0, 1, 2]\nscales = [1, 2, 3]\n", None),
        ('arms = "sites.csv"\n', "", "scale,mean\n1,0\n2,1\n3,2\n"),
        ('arms = "sites.csv"\n', "", "variance,mean\n1,0\n4,1\n9,2\n"),
        ('arms = "sites.csv"\n', 'scales = "noise"\n', "noise,variance,mean\n1,7,0\n2,7,1\n3,7,2\n"),
    ],
)
def test_simulated_arms_may_hide_their_variances(
    tmp_path: Path, problem: str, measure: str, sites: str | None
) -> None:
    found = read(tmp_path, UNKNOWN + problem + MEASURE + measure, sites)
    assert not found.problem.knows_variances
    assert found.variances is not None
    assert (found.variances.tolist(), true_means(found).tolist()) == ([1.0, 4.0, 9.0], [0.0, 1.0, 2.0])
    assert sl.select(found.source, found.problem).indices.tolist() == [2]


def test_simulated_spreads_are_those_of_gaussian_rewards(tmp_path: Path) -> None:
    found = read(tmp_path, UNKNOWN + "n = 2\n" + MEASURE + "means = [0, 5]\nvariances = [1, 9]\n")
    drawn = [
        summary_of(answer, 5, "it")
        for seed in range(4000)
        for answer in found.source.answers([Call(seed, 1, 5, 0)])
    ]
    means, variances = np.array([(one.mean, one.variance) for one in drawn]).T
    assert means.mean() == pytest.approx(5, abs=0.1)
    assert variances.mean() == pytest.approx(9, abs=0.5)
    assert variances.var() == pytest.approx(2 * 9**2 / 4, rel=0.15)  # chi-square with 4 degrees of freedom
    assert np.corrcoef(means, variances)[0, 1] == pytest.approx(0, abs=0.05)
    (one,) = found.source.answers([Call(0, 1, 1, 0)])
    assert summary_of(one, 1, "it").variance is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (UNKNOWN + "n = 2\n" + MEASURE + "means = [0, 1]\n", "give the true variances once"),
        (UNKNOWN + "n = 2\n" + MEASURE + "means = [0, 1]\nscales = [1, 1]\nvariances = [1, 1]\n", "once"),
        (UNKNOWN + "n = 2\n" + MEASURE + "means = [0, 1]\nscales = [1, 1, 1]\n", "has 3 entries but"),
        (UNKNOWN + "n = 2\n" + MEASURE + "means = [0, 1]\nscales = [1, -1]\n", "scale -1.0 is wrong"),
        (
            UNKNOWN + "n = 2\n" + MEASURE + 'means = [0, 1]\nscales = [1, 1]\nrewards = "uniform"\n',
            '`noise` is "gaussian-unknown", but `rewards` are "uniform"',
        ),
        (WITH_ARMS + "scales = [1, 1]\n", "[problem] already states the noise of the arms"),
    ],
)
def test_a_simulation_needs_the_true_variances_once(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text, SITES)


# --- rewards of which only bounds are known --------------------------------------------------------------


BARE = "[problem]\nm = 1\nepsilon = 0.2\ndelta = 0.1\n"
COINS = '[measure]\nkind = "simulated"\nmeans = [0.2, 0.5, 0.9]\n'
COINS_NEAR = COINS.replace("0.9", "0.01")


@pytest.mark.parametrize(
    ("entries", "rewards"),
    [
        ('rewards = "bernoulli"\nn = 3\n', sl.Bernoulli()),
        ('rewards = "bernoulli"\nnoise = "sub-gaussian"\nn = 3\n', sl.Bernoulli()),
        ('rewards = "bernoulli"\nbounds = [0, 1]\nn = 3\n', sl.Bernoulli()),
        ('noise = "bernoulli"\nn = 3\n', sl.Bernoulli()),
        ('noise = "bounded"\nbounds = [0, 1]\nnames = ["a", "b", "c"]\n', sl.Bounded()),
        ('noise = "bounded"\nbounds = [-1, 3]\nn = 3\n', sl.Bounded(-1, 3)),
        ('rewards = "bounded"\nbounds = [-1, 3]\nn = 3\n', sl.Bounded(-1, 3)),
    ],
)
def test_rewards_within_bounds_are_declared_without_variances(
    tmp_path: Path, entries: str, rewards: sl.Bounded
) -> None:
    found = read(tmp_path, BARE + entries + COINS)
    assert found.problem.rewards == rewards
    assert found.rewards == "bernoulli"
    result = sl.select(found.source, found.problem, seed=3)
    assert result.strategy == "race"
    assert result.indices.tolist() == [2]


def test_coins_of_stated_variances_have_these(tmp_path: Path) -> None:
    listed = read(tmp_path, BARE + 'rewards = "bernoulli"\nvariances = [0.25, 0.25, 0.2]\n' + COINS_NEAR)
    assert known(listed).variances.tolist() == [0.25, 0.25, 0.2]
    assert (listed.problem.is_binary, listed.problem.is_bounded) == (True, False)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ('noise = "bounded"\nn = 3\n', "give the `bounds`"),
        ('noise = "bernoulli"\nvariances = [1, 1, 1]\n', "omit `variances`"),
        ('noise = "bernoulli"\nn = 3\nrewards = "bernoulli"\n', "omit `rewards`"),
        ('noise = "bernoulli"\nn = 3\nbounds = [0, 2]\n', "every reward is 0 or 1"),
        ('noise = "bernoulli"\n', "number of arms is not stated"),
    ],
)
def test_rewards_within_bounds_are_declared_once(tmp_path: Path, entries: str, said: str) -> None:
    assert said in refusal(tmp_path, BARE + entries + COINS)
