"""What a question must look like, and what is said to somebody who asks a wrong one."""

import copy
import dataclasses
import math
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from tests.playing import fitting

GOOD: dict[str, Any] = {"m": 2, "epsilon": 0.1, "delta": 0.05, "variances": [1.0, 4.0, 9.0]}


def problem(**changes: Any) -> sl.Problem:
    return sl.Problem(**(GOOD | changes))


def refusal(**changes: Any) -> str:
    """Return the message with which a question is refused."""
    with pytest.raises(sl.InvalidProblem) as caught:
        problem(**changes)
    return str(caught.value)


# --- m --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [0, -1, -(10**30)])
def test_m_below_one_is_refused(m: int) -> None:
    message = refusal(m=m)
    assert f"`m` is {m}" in message
    assert "at least 1" in message
    assert "use 1" in message


@pytest.mark.parametrize("m", [4, 10**30])
def test_m_above_n_is_refused(m: int) -> None:
    message = refusal(m=m)
    assert f"`m` is {m}" in message
    assert "3 arms" in message
    assert "Select at most 3" in message


@pytest.mark.parametrize(
    "m", [2.5, 3.0, "3", True, False, None, 1j, [2], np.float64(2), np.True_, np.array([2])]
)
def test_m_that_is_no_whole_number_is_refused(m: object) -> None:
    message = refusal(m=m)
    assert f"`m` is {m!r}" in message
    assert "whole number" in message
    assert "such as 3" in message


def test_m_may_be_a_numpy_integer_and_becomes_an_int() -> None:
    assert type(problem(m=np.int64(2)).m) is int


def test_m_may_equal_n() -> None:
    assert problem(m=3).m == 3
    assert sl.select(lambda *_: pytest.fail("nothing needs measuring"), problem(m=3)).n_pulls == 0


# --- epsilon and delta ----------------------------------------------------------------------------

NOT_REAL = [
    1j,
    np.complex128(1),
    True,
    np.True_,
    "0.1",
    b"0.1",
    None,
    [0.1],
    np.array([0.1, 0.2]),
    [[1], [1, 2]],
]


@pytest.mark.parametrize("field", ["epsilon", "delta"])
@pytest.mark.parametrize("value", NOT_REAL, ids=repr)
def test_epsilon_and_delta_must_be_real_numbers(field: str, value: object) -> None:
    message = refusal(**{field: value})
    assert f"`{field}` is {value!r}" in message
    assert "real number" in message
    assert ("such as 0.1" if field == "epsilon" else "use 0.05") in message


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -0.0, 0, -0.1])
def test_epsilon_must_be_positive_and_finite(value: float) -> None:
    message = refusal(epsilon=value)
    assert f"`epsilon` is {float(value)!r}" in message
    assert "positive and finite" in message
    assert "such as 0.1" in message


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -0.05, 1.0, 1, 1.2])
def test_delta_must_lie_between_zero_and_one(value: float) -> None:
    message = refusal(delta=value)
    assert f"`delta` is {float(value)!r}" in message
    assert "strictly between 0 and 1" in message
    assert "use 0.05" in message


@pytest.mark.parametrize("field", ["epsilon", "delta"])
def test_a_number_too_large_for_a_float_is_refused(field: str) -> None:
    assert f"`{field}`" in refusal(**{field: 10**400})


def test_epsilon_and_delta_become_floats() -> None:
    given = problem(epsilon=1, delta=np.float32(0.5))
    assert type(given.epsilon) is float
    assert type(given.delta) is float


# --- variances ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -1.0])
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_every_variance_must_be_positive_and_finite(value: float, kind: Any) -> None:
    message = refusal(variances=kind([1.0, value, 4.0]))
    assert f"`variances[1]` is {value!r}" in message
    assert "positive and finite" in message
    assert "upper bound" in message


def test_the_first_wrong_variance_is_shown_and_the_others_are_counted() -> None:
    message = refusal(variances=[1.0, -1.0, math.nan, 0.0])
    assert "`variances[1]` is -1.0" in message
    assert "2 more" in message


@pytest.mark.parametrize(
    ("variances", "said"),
    [
        ([1j, 2.0, 3.0], "complex numbers"),
        (np.array([1.0, 2.0, 3.0], dtype=np.complex128), "complex numbers"),
        (np.array([True, True, True]), "booleans"),
        (["1.0", "2.0", "3.0"], "strings"),
        ([1.0, 2.0, "3.0"], "strings"),
        (np.array([b"1", b"2", b"3"]), "bytes"),
        ([1.0, None, 3.0], "objects"),
        ([], "empty"),
        (np.empty(0), "empty"),
        (4.0, "dimensions"),
        ("1.0", "dimensions"),
        ([[1.0, 2.0, 3.0]], "2 dimensions (shape (1, 3))"),
        (np.ones((3, 2)), "2 dimensions (shape (3, 2))"),
        ([[1.0], [2.0, 3.0]], "ragged"),
        (np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]), "masked"),
    ],
    ids=repr,
)
def test_variances_of_a_wrong_kind_are_refused(variances: object, said: str) -> None:
    message = refusal(variances=variances)
    assert "`variances`" in message
    assert said in message
    assert "one positive number per arm" in message


@pytest.mark.parametrize("wrong", ["3.0", None, "x"])
def test_the_entry_that_is_no_number_is_shown(wrong: object) -> None:
    assert repr(wrong) in refusal(variances=[1.0, 2.0, wrong])


@pytest.mark.parametrize("variances", [[True, True, True], [1.0, True, 3.0], (2.0, 1.0, np.True_)])
def test_a_boolean_hidden_among_the_variances_is_refused(variances: list[object]) -> None:
    message = refusal(variances=variances)
    place = next(i for i, value in enumerate(variances) if isinstance(value, bool | np.bool_))
    assert f"`variances[{place}]` is {variances[place]!r}" in message
    assert "real number" in message


@pytest.mark.parametrize("variances", [[1, 4, 9], np.array([1, 4, 9], dtype=np.uint8), range(1, 4)])
def test_whole_numbers_are_variances(variances: Any) -> None:
    assert problem(variances=variances).variances.dtype == np.float64


def test_a_masked_array_without_masked_entries_is_accepted() -> None:
    assert problem(variances=np.ma.array([1.0, 4.0, 9.0])) == problem()


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "   ", "\t\n", 7, None, b"b"])
def test_a_name_must_be_a_string_with_something_in_it(name: object) -> None:
    message = refusal(names=["a", name, "c"])
    assert f"`names[1]` is {name!r}" in message
    assert "non-empty string" in message


def test_names_must_differ() -> None:
    message = refusal(names=["a", "b", "a"])
    assert "`names[2]`" in message
    assert "`names[0]`" in message
    assert "'a'" in message
    assert "must differ" in message


@pytest.mark.parametrize("names", [[], ["a", "b"], ["a", "b", "c", "d"]])
def test_there_must_be_one_name_per_arm(names: list[str]) -> None:
    message = refusal(names=names)
    assert f"{len(names)} `names`" in message
    assert "3 `variances`" in message
    assert "one name per arm" in message


@pytest.mark.parametrize("names", ["abc", b"abc", 3])
def test_names_must_be_a_list(names: object) -> None:
    message = refusal(names=names)
    assert "`names`" in message
    assert repr(names) in message
    assert "list with one name per arm" in message


def test_names_default_to_numbers() -> None:
    assert [problem().name(arm) for arm in range(3)] == ["arm-0", "arm-1", "arm-2"]


def test_names_are_kept_in_order() -> None:
    given = problem(names=np.array(["x", "y", "z"]))
    assert given.names == ("x", "y", "z")
    assert {type(given.name(arm)) for arm in range(3)} == {str}


def test_a_name_that_no_encoding_knows_is_refused_or_works_throughout() -> None:
    odd = "site \udcff"  # what os.listdir makes of a file name that is not valid UTF-8
    try:
        given = problem(names=["a", "b", odd])
    except sl.InvalidProblem as error:
        assert "names[2]" in str(error)  # noqa: PT017
    else:
        assert given.digest != problem(names=["a", "b", "c"]).digest


# --- questions that cannot be answered in any number of pulls that can be counted -----------------


def test_an_epsilon_that_needs_uncountable_pulls_is_refused() -> None:
    message = refusal(epsilon=1e-12)
    assert "epsilon = 1e-12" in message
    assert "2**53" in message
    assert "larger `epsilon`" in message
    assert "units" in message


def test_variances_whose_sum_overflows_are_refused() -> None:
    assert "another unit" in refusal(variances=[1e308, 1e308, 1e308])


def test_a_strategy_refuses_what_it_could_not_count() -> None:
    long = problem(epsilon=1e-6, variances=[1.0] * 1000)  # 1e15 < 2**53 pulls before any constant
    store = sl.open_store(":memory:")
    with pytest.raises(sl.InvalidProblem) as caught:
        sl.Session(long, "vmedelim", store=store)
    assert store.runs() == [], "it would be a run that nobody can open"
    assert "2**53" in str(caught.value)
    assert "larger `epsilon`" in str(caught.value)


@pytest.mark.parametrize("strategy", sl.strategies.names())
@pytest.mark.parametrize("unit", [2.0**-150, 2.0**150])
def test_the_same_question_in_other_units_needs_the_same_pulls(strategy: str, unit: float) -> None:
    variances = np.array([1.0, 1.0, 4.0, 1.5, 2.5, 1.0])  # only variance / epsilon^2 matters
    usual = fitting(strategy, problem(epsilon=0.125, variances=variances))
    other = usual.changed(epsilon=0.125 * unit, variances=variances * unit * unit)
    counts = sl.Session(usual, strategy).ask().counts
    assert sl.Session(other, strategy).ask().counts.tolist() == counts.tolist()


@pytest.mark.parametrize("strategy", sl.strategies.names())
def test_noise_far_below_epsilon_needs_one_pull_of_each_arm(strategy: str) -> None:
    quiet = problem(epsilon=1e90, m=1)
    assert sl.Session(quiet, strategy).ask().counts.tolist() == [1, 1, 1]


# --- a problem as a value -------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["m", "epsilon", "delta", "variances", "names", "n"])
def test_a_problem_cannot_be_changed(field: str) -> None:
    with pytest.raises(AttributeError):
        setattr(problem(), field, 1)


def test_the_callers_variances_are_copied() -> None:
    mine = np.array([1.0, 4.0, 9.0])
    given = problem(variances=mine)
    mine[0] = 100.0
    assert given.variances.tolist() == [1.0, 4.0, 9.0]
    assert mine.flags.writeable


def test_the_variances_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        problem().variances[0] = 5.0


def test_equal_questions_are_equal() -> None:
    one, other = problem(), problem(variances=np.array([1, 4, 9]), m=np.int64(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one.digest == other.digest
    assert len({one, other}) == 1


CHANGES: list[dict[str, Any]] = [
    {"m": 1},
    {"epsilon": math.nextafter(0.1, 1)},
    {"delta": math.nextafter(0.05, 1)},
    {"variances": [1.0, 4.0, math.nextafter(9.0, 10)]},
    {"variances": [4.0, 1.0, 9.0]},
    {"variances": [1.0, 4.0, 9.0, 9.0]},
    {"names": ["a", "b", "c"]},
    {"names": ["a", "b", "d"]},
    {"names": ["b", "a", "c"]},
    {"names": ["ab", "c", "d"]},
    {"names": ["a", "bc", "d"]},
]


def test_questions_that_differ_in_any_field_are_different() -> None:
    all_different = [problem(), *(problem(**change) for change in CHANGES)]
    assert len({one.digest for one in all_different}) == len(all_different)
    assert len(set(all_different)) == len(all_different)


def test_a_problem_equals_nothing_else() -> None:
    assert problem() != GOOD
    assert problem() != problem().digest


@pytest.mark.parametrize("given", [{}, {"variances": None}, {"rewards": "bernoulli"}, {"rewards": 1.0}])
def test_what_is_known_of_the_rewards_must_be_said(given: dict[str, Any]) -> None:
    with pytest.raises(sl.InvalidProblem, match="`rewards`"):
        sl.Problem(1, 0.5, 0.1, n=2, **given)


@pytest.mark.parametrize("kind", ["gaussian", "bounded", "poisson"])
def test_words_for_rewards_are_answered_with_what_to_write(kind: Any) -> None:
    with pytest.raises(
        sl.InvalidProblem, match=r"Bernoulli\(\), shortlist\.Bounded\(.*shortlist\.Gaussian\(\)"
    ):
        sl.Problem(1, 0.5, 0.1, n=2, rewards=kind)


def test_too_large_an_m_asks_for_arms_not_for_variances() -> None:
    with pytest.raises(sl.InvalidProblem, match=r"there are only 4 arms\. Select at most 4, or add arms\.$"):
        sl.Problem(30, 0.5, 0.1, names=["a", "b", "c", "d"], rewards=sl.Bernoulli())


def test_variances_are_given_once() -> None:
    with pytest.raises(sl.InvalidProblem, match="give the variances once"):
        sl.Problem(1, 0.5, 0.1, [1.0, 1.0], rewards=sl.SubGaussian([1.0, 1.0]))
    with pytest.raises(sl.InvalidProblem, match="`pilot` is only for unknown variances"):
        sl.Gaussian([1.0, 1.0], pilot=5)
    with pytest.raises(sl.InvalidProblem, match="2 entries but there are 3 arms"):
        sl.Problem(1, 0.5, 0.1, [1.0, 1.0], n=3)


def test_variances_stand_for_sub_gaussian_rewards() -> None:
    assert sl.Problem(1, 0.5, 0.1, [1.0, 2.0]) == sl.Problem(1, 0.5, 0.1, rewards=sl.SubGaussian([1.0, 2.0]))
    assert sl.Problem(1, 0.5, 0.1, [1.0, 2.0]) != sl.Problem(1, 0.5, 0.1, rewards=sl.Gaussian([1.0, 2.0]))


@pytest.mark.parametrize(
    "given", [{"variances": [1.0, 2.0], "rewards": "bernoulli"}, {"rewards": sl.Gaussian([1.0, 2.0])}]
)
def test_a_changed_problem_keeps_the_kind_of_its_rewards(given: dict[str, Any]) -> None:
    asked = sl.Problem(1, 0.5, 0.1, **given)
    for other in (asked.changed(m=2), dataclasses.replace(asked, m=2), asked.changed(variances=[3.0, 4.0])):
        assert type(other.rewards) is type(asked.rewards)
        assert (other.is_binary, other.bounds, other.noise) == (asked.is_binary, asked.bounds, asked.noise)
    assert asked.changed(variances=[3.0, 4.0]).variances.tolist() == [3.0, 4.0]
    plain = asked.changed(rewards=sl.SubGaussian, bounds=None)
    assert plain == sl.Problem(1, 0.5, 0.1, [1.0, 2.0])


def test_unknown_variances_are_no_numbers() -> None:
    asked = sl.Problem(1, 0.5, 0.1, n=2, rewards=sl.Gaussian())
    assert not asked.knows_variances
    with pytest.raises(sl.InvalidProblem, match="variances of this problem are unknown"):
        _ = asked.variances


def test_the_digest_is_the_same_in_another_process() -> None:
    question = "sl.Problem(2, 0.1, 0.05, [1.0, 4.0, 9.0], names=['x', 'y', 'z'])"
    code = f"import shortlist as sl; print({question}.digest)"
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert run.stdout.decode().strip() == problem(names=["x", "y", "z"]).digest


@pytest.mark.parametrize("names", [None, ["x", "y", "z"]])
@pytest.mark.parametrize("duplicate", [lambda p: pickle.loads(pickle.dumps(p)), copy.deepcopy, copy.copy])
def test_a_copy_is_equal_and_as_well_protected(names: list[str] | None, duplicate: Any) -> None:
    given = problem(names=names)
    copied = duplicate(given)
    assert copied == given
    assert copied.names == given.names
    assert copied.variances.tolist() == given.variances.tolist()
    assert not copied.variances.flags.writeable


def test_replace_gives_a_checked_new_problem() -> None:
    given = problem(names=["x", "y", "z"])
    changed = dataclasses.replace(given, m=1)
    assert (changed.m, changed.names, changed.epsilon) == (1, given.names, given.epsilon)
    assert changed != given
    with pytest.raises(sl.InvalidProblem, match="delta"):
        dataclasses.replace(given, delta=2.0)


def test_repr_is_short_for_many_arms() -> None:
    assert len(repr(problem(variances=np.ones(10_000)))) < 100


def test_an_invalid_problem_is_also_a_value_error() -> None:
    with pytest.raises(ValueError, match="`m`"):
        problem(m=0)


# --- the limits of a float ------------------------------------------------------------------------


@pytest.mark.parametrize("edge", [1e-100, 1e100])
def test_epsilon_and_variances_reach_to_the_limits_and_no_further(edge: float) -> None:
    beyond = edge / (1 + 1e-15) if edge < 1 else edge * (1 + 1e-15)
    assert "1e-100 and 1e100" in refusal(epsilon=beyond)
    assert "1e-100 and 1e100" in refusal(variances=[beyond, 1.0, 1.0], epsilon=1e60)
    assert sl.Problem(1, 1e60, 0.05, [edge, 1.0]).variances[0] == edge
    assert sl.Problem(1, 1e100, 0.05, [edge, 1.0]).epsilon == 1e100


@pytest.mark.parametrize("budget", [-1, 1.5, "x", True])
def test_a_budget_is_a_whole_number(budget: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match="`budget`"):
        sl.select(lambda _arm, count, _rng: [0.0] * count, problem(), budget=budget)
    with pytest.raises(sl.InvalidProblem, match="`budget`"):
        sl.simulate(problem(), [0.0, 0.0, 0.0], budget=budget)


@pytest.mark.parametrize("limit", [-1, 1.5, "x", True])
def test_a_limit_on_tickets_is_a_whole_number(limit: Any) -> None:
    with pytest.raises(sl.InvalidProblem, match="`limit`"):
        sl.Session(problem(), "wnelim").ask(limit)


def test_a_delta_too_small_for_a_float_is_refused() -> None:
    assert "1e-50 or more" in refusal(delta=1e-51)
    for strategy in sl.strategies.names():
        rare = sl.Problem(1, 1.0, 1e-50, [1e-9, 1.0, 100.0])
        assert sl.simulate(rare, [0.0, 0.0, 50.0], strategy, replications=2, budget=10**7).unfinished == 0


def test_simulated_arms_keep_their_means() -> None:
    means = np.array([0.0, 1.0, 2.0])
    measure = sl.simulated_measure(problem(), means, "noiseless")
    means[0] = 99.0
    assert measure(0, 5, np.random.default_rng(0)).mean == 0.0


def test_a_strategy_is_named_by_a_string() -> None:
    with pytest.raises(sl.InvalidProblem, match="no strategy"):
        sl.Session(problem(), ["wnelim"])  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", ["medelim", "medelim-max", "adapted-medelim", "vmedelim"])
def test_pulls_are_counted_over_all_levels(strategy: str) -> None:
    """Each level may be countable and their sum not: the strategy must not start."""
    most = None
    for epsilon in np.geomspace(1e-4, 1e-7, 60):
        asked = sl.Problem(1, float(epsilon), 0.05, [1.0] * 64)
        try:
            most = sl.Session(asked, strategy).worst_case_pulls
        except sl.InvalidProblem as error:
            assert "2**53" in str(error)  # noqa: PT017
            break
    assert most is not None
    assert most <= 2**53
    assert most > 2**53 / 1.3  # refused only where it must be


# --- rewards of which only bounds are known --------------------------------------------------------------


def test_rewards_within_bounds_need_no_variances() -> None:
    coins = sl.Problem(1, 0.1, 0.05, names=["a", "b", "c"], rewards=sl.Bernoulli())
    assert (coins.n, coins.bounds, coins.is_binary, coins.is_bounded) == (3, (0.0, 1.0), True, True)
    assert coins.variances.tolist() == [0.25] * 3
    scores = sl.Problem(1, 0.1, 0.05, n=2, rewards=sl.Bounded(-1, 3))
    assert (scores.bounds, scores.width, scores.is_binary) == ((-1.0, 3.0), 4.0, False)
    assert scores.variances.tolist() == [4.0, 4.0]
    assert repr(scores) == "Problem(m=1, epsilon=0.1, delta=0.05, n=2, rewards=Bounded(low=-1.0, high=3.0))"
    assert (coins.noise, scores.noise) == ("bernoulli", "bounded")


def test_kinds_of_rewards_within_bounds_are_different_questions() -> None:
    numbers: dict[str, Any] = {"m": 1, "epsilon": 0.1, "delta": 0.05}
    questions = [
        sl.Problem(**numbers, n=2, rewards=sl.Bernoulli()),
        sl.Problem(**numbers, n=2, rewards=sl.Bounded()),
        sl.Problem(**numbers, n=2, rewards=sl.Bounded(0, 2)),
        sl.Problem(**numbers, variances=[0.25, 0.25], bounds=(0, 1)),
        sl.Problem(**numbers, variances=[0.25, 0.25], rewards="bernoulli"),
    ]
    assert len({one.digest for one in questions}) == len(questions)
    for one in questions:
        assert pickle.loads(pickle.dumps(one)) == one
        assert one.changed(epsilon=0.1) == one
        assert one.changed(epsilon=0.2).changed(epsilon=0.1) == one


def test_rewards_within_bounds_can_become_others_and_back() -> None:
    coins = sl.Problem(1, 0.1, 0.05, n=3, rewards=sl.Bernoulli())
    known = coins.changed(rewards=sl.SubGaussian)
    assert (known.variances.tolist(), known.bounds, known.is_bounded) == ([0.25] * 3, (0.0, 1.0), False)
    assert coins.changed(variances=[0.1, 0.2, 0.1]).variances.tolist() == [0.1, 0.2, 0.1]
    assert known.changed(rewards=sl.Bounded(2, 5), n=3).bounds == (2.0, 5.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rewards": sl.Bernoulli()}, "`n` is None"),
        ({"rewards": sl.Bernoulli(), "variances": [1.0, 1.0]}, "not both"),
        ({"rewards": sl.Bernoulli(), "n": 2, "bounds": (0, 2)}, "every reward is 0 or 1, but `bounds`"),
        ({"rewards": sl.Bounded(0, 3), "n": 2, "bounds": (0, 2)}, "rewards lie between 0 and 3, but"),
        ({"rewards": sl.Bounded, "n": 2}, "`rewards` is"),
    ],
)
def test_rewards_within_bounds_are_declared_once(given: dict[str, Any], said: str) -> None:
    with pytest.raises(sl.InvalidProblem, match=said):
        sl.Problem(1, 0.1, 0.05, **given)


@pytest.mark.parametrize("bounds", [(1, 1), (2, 1), (float("nan"), 1), (0, float("inf")), ("a", 1)])
def test_bounds_of_rewards_are_two_numbers_in_order(bounds: tuple[Any, Any]) -> None:
    with pytest.raises(sl.InvalidProblem):
        sl.Bounded(*bounds)


@pytest.mark.parametrize("goal", ["maximise", "minimise"])
def test_shares_are_1_where_a_mean_is_as_good_as_it_can_be(goal: str) -> None:
    problem = sl.Problem(1, 0.1, 0.05, n=2, rewards=sl.Bounded(-1, 3), goal=goal)
    means = np.array([-1.0, 0.0, 3.0])
    shares = problem.shares(problem.merits(means)).tolist()
    assert shares == ([0.0, 0.25, 1.0] if goal == "maximise" else [1.0, 0.75, 0.0])


def test_the_guarantee_says_that_rewards_are_0_or_1() -> None:
    coins = sl.Problem(1, 0.3, 0.2, n=2, rewards=sl.Bernoulli())
    assert sl.plan(coins).best.strategy == "race"
    result = sl.select(lambda arm, count, rng: (rng.random(count) < 0.2 + 0.6 * arm) * 1.0, coins)
    assert result.selected == ("arm-1",)
    assert "and rewards are 0 or 1" in str(result.guarantee)
    assert "section 35" in str(result.guarantee)


NOT_BOUNDED_BELOW = {
    "0 or 1": sl.Problem(1, 0.3, 0.2, n=2, rewards=sl.Bernoulli()),
    "within bounds": sl.Problem(1, 0.3, 0.2, n=2, rewards=sl.Bounded(0, 2)),
    "variances and bounds": sl.Problem(1, 0.3, 0.2, [0.25, 0.25], bounds=(0, 1)),
    "variances, 0 or 1": sl.Problem(1, 0.3, 0.2, [0.25, 0.25], rewards="bernoulli"),
    "unknown variances": sl.Problem(1, 0.3, 0.2, n=2, rewards=sl.Gaussian()),
}


@pytest.mark.parametrize("kind", NOT_BOUNDED_BELOW)
def test_no_lower_bound_is_claimed_where_none_is_proved(kind: str) -> None:
    asked = NOT_BOUNDED_BELOW[kind]
    assert sl.lower_bound(asked) is None
    planned = sl.plan(asked)
    assert (planned.lower_bound, planned.gap) == (None, None)
    assert [planned.gap_of(row) for row in planned.rows] == [None] * len(planned.rows)
    assert "any algorithm" not in planned.why.lower()
    assert planned.to_dict()["lower_bound"] is planned.to_dict()["gap"] is None
    result = sl.Session(asked).result
    assert (result.lower_bound, result.gap, result.optimality) == (None, None, "")
    assert result.to_dict()["lower_bound"] is result.to_dict()["gap"] is None


@pytest.mark.parametrize("kind", NOT_BOUNDED_BELOW)
def test_selecting_all_arms_needs_0_pulls_whatever_the_rewards(kind: str) -> None:
    everything = NOT_BOUNDED_BELOW[kind].changed(m=2)
    assert sl.lower_bound(everything) == 0.0
    assert sl.plan(everything).gap == sl.Session(everything).result.gap == 1.0
