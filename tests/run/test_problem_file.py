"""Problem files: what they may say, and what is said about those that cannot be read."""

from pathlib import Path

import numpy as np
import pytest

import shortlist as sl
from shortlist.run.problem_file import ProblemFile, read_problem_file

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
    assert found.means.tolist() == [0.1, 0.9]
    assert found.rewards == "gaussian"


def test_a_scale_is_the_root_of_a_variance(tmp_path: Path) -> None:
    by_scale = read(tmp_path, WITH_ARMS, "scale,mean\n3.0,0\n0.1,1\n")
    by_variance = read(tmp_path, WITH_ARMS, "variance,mean\n3.0,0\n0.1,1\n")
    assert by_scale.problem.variances == pytest.approx([9.0, 0.01])
    assert by_variance.problem.variances.tolist() == [3.0, 0.1]


@pytest.mark.parametrize(("key", "expected"), [("variances", [2.0, 3.0]), ("scales", [4.0, 9.0])])
def test_arms_may_be_listed_in_the_file_itself(tmp_path: Path, key: str, expected: list[float]) -> None:
    text = PROBLEM + f'{key} = [2.0, 3]\nnames = ["a", "b"]\n' + MEASURE + "means = [0.5, 1]\n"
    found = read(tmp_path, text)
    assert found.problem.variances.tolist() == expected
    assert found.problem.names == ("a", "b")
    assert found.means.tolist() == [0.5, 1.0]


def test_names_are_optional(tmp_path: Path) -> None:
    found = read(tmp_path, WITH_ARMS, "scale,mean\n1,0\n1,1\n")
    assert found.problem.names is None


def test_any_column_may_hold_the_means_and_others_are_ignored(tmp_path: Path) -> None:
    text = WITH_ARMS + 'means = "content"\nrewards = "uniform"\n'
    found = read(tmp_path, text, "name,note,scale,content\na,dry,1,0.25\nb,wet,1,0.75\n")
    assert found.means.tolist() == [0.25, 0.75]
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
    assert np.isfinite(found.means).all()


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
        (PROBLEM + "variances = [1.0, 2.0]\n", ["no section [measure]", "add one"]),
        ("problem = 3\n" + MEASURE, ["no section [problem]"]),
        (WITH_ARMS + "[other]\nx = 1\n", ["unknown entry 'other'", "known are: measure, problem"]),
        (WITH_ARMS.replace("delta", "detla"), ["unknown entry 'detla'", "[problem]", "delta"]),
        (WITH_ARMS + "mean = 'x'\n", ["unknown entry 'mean'", "[measure]", "kind, means, rewards"]),
        (WITH_ARMS.replace("m = 1", ""), ["[problem] lacks m", "add a line"]),
        (WITH_ARMS.replace("epsilon = 0.5\ndelta = 0.05", ""), ["[problem] lacks delta, epsilon"]),
        (WITH_ARMS.replace("simulated", "command"), ["kind is 'command'", 'must be "simulated"']),
        (WITH_ARMS.replace('kind = "simulated"', ""), ["kind is None", 'must be "simulated"']),
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
    assert read(tmp_path, text, SITES).problem.noise == "gaussian"
    said = refusal(tmp_path, text + 'rewards = "two-point"\n', SITES)
    assert '`noise` is "gaussian", but `rewards` are "two-point"' in said
