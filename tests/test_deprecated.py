"""Names of version 0.1.0 still work, and the warning says what to write instead."""

import pytest

import shortlist as sl


def test_unknown_is_a_problem_with_gaussian_rewards() -> None:
    with pytest.warns(DeprecationWarning, match=r"use `Problem\(\.\.\., rewards=shortlist\.Gaussian\(pilot="):
        old = sl.Unknown(2, 0.5, 0.1, 5, pilot=9, goal="minimise")
    new = sl.Problem(2, 0.5, 0.1, n=5, rewards=sl.Gaussian(pilot=9), goal="minimise")
    assert old == new
    assert (
        old.digest == "e2804dfb5947b084891e9fe445acc66f63711c3c56cf440fca827cc1c5ce7a2a"
    )  # as in version 0.1.0
    with pytest.warns(DeprecationWarning, match="is deprecated"):
        assert sl.Unknown(1, 0.5, 0.1, names=["a", "b"]).n == 2


@pytest.mark.parametrize(
    ("noise", "kind", "said"),
    [
        ("gaussian", sl.Gaussian, r"use rewards=shortlist\.Gaussian\(variances\)"),
        ("sub-gaussian", sl.SubGaussian, "use `variances` alone"),
    ],
)
def test_noise_is_a_kind_of_rewards(noise: str, kind: type, said: str) -> None:
    with pytest.warns(DeprecationWarning, match=said) as caught:
        old = sl.Problem(1, 0.5, 0.1, [1.0, 2.0], noise=noise)
    assert caught[0].filename == __file__
    assert old == sl.Problem(1, 0.5, 0.1, rewards=kind([1.0, 2.0]))
    assert old.noise == noise


def test_noise_and_rewards_are_not_given_together() -> None:
    with (
        pytest.warns(DeprecationWarning, match="is deprecated"),
        pytest.raises(sl.InvalidProblem, match="give `rewards` alone"),
    ):
        sl.Problem(1, 0.5, 0.1, [1.0, 2.0], noise="gaussian", rewards=sl.Gaussian())
    with pytest.raises(sl.InvalidProblem, match="'normal'"):
        sl.Problem(1, 0.5, 0.1, [1.0, 2.0], noise="normal")


def test_a_plan_for_a_budget_is_a_plan() -> None:
    problem = sl.Problem(m=3, epsilon=0.1, delta=0.05, variances=[0.25] * 10)
    with pytest.warns(DeprecationWarning, match=r"use `plan\(problem, budget\)`"):
        assert sl.plan_for_budget(problem, 2000).to_dict() == sl.plan(problem, 2000).to_dict()


@pytest.mark.parametrize(
    ("name", "place"), [("ChangedRun", "errors"), ("Ticket", "session"), ("Plan", "planning")]
)
def test_names_that_moved_are_still_found(name: str, place: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"use `shortlist\.{place}\.{name}`") as caught:
        found = getattr(sl, name)
    assert caught[0].filename == __file__
    assert found is getattr(getattr(sl, place), name)


def test_there_are_few_public_names_and_each_exists() -> None:
    assert len(sl.__all__) <= 35
    assert all(hasattr(sl, name) for name in sl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = sl.Nothing


def test_strategies_is_a_module_that_can_be_called() -> None:
    with pytest.warns(DeprecationWarning, match=r"use shortlist\.strategies\.names\(\)") as caught:
        assert sl.strategies("unknown") == sl.strategies.names("unknown")  # type: ignore[operator]
    assert caught[0].filename == __file__
