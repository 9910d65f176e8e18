"""Arms of like variance taken together."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shortlist as sl
from shortlist.bounds.classes import MOST_CLASSES, Classes
from tests.bounds.brute import classes, entropy

some_variances = st.lists(
    st.sampled_from([0.5, 1.0, 3.0, 7.5]) | st.floats(0.01, 100), min_size=1, max_size=12
)


def listed(arms: Classes) -> list[float]:
    """Return the variances one by one, the least noisy first."""
    return np.repeat(arms.variances, arms.counts.astype(int)).tolist()


@given(some_variances)
def test_a_problem_is_counted_by_variance(variances: list[float]) -> None:
    arms = Classes.of(sl.Problem(m=1, epsilon=1.0, delta=0.05, variances=variances))
    assert listed(arms) == sorted(variances)
    assert (np.diff(arms.variances) > 0).all()
    assert arms.n == len(variances)
    assert arms.total == pytest.approx(math.fsum(variances), rel=1e-14)
    assert arms.entropy == pytest.approx(entropy(variances), rel=1e-12, abs=1e-14)
    assert arms.ratio == 1.0


@given(some_variances, st.integers(1, 12))
def test_the_noisiest_are_those_with_the_largest_variances(variances: list[float], n_arms: int) -> None:
    some = classes(variances).noisiest(n_arms)
    assert listed(some) == sorted(variances)[-n_arms:]
    assert some.sums.tolist() == (some.variances * some.counts).tolist()


@given(some_variances, st.integers(1, 12))
def test_the_first_classes_are_the_least_noisy(variances: list[float], n_classes: int) -> None:
    arms = classes(variances)
    some = arms.first(n_classes)
    distinct = sorted(set(variances))[:n_classes]
    assert listed(some) == sorted(v for v in variances if v in distinct)
    assert some.sums.tolist() == arms.sums.tolist()[:n_classes]


def test_noisiest_takes_part_of_a_class_that_no_computer_could_list() -> None:
    arms = Classes.listed(np.array([1.0, 2.0, 4.0]), np.array([2.0**144, 2.0**143, 3.0]))
    some = arms.noisiest(2.0**100)
    assert some.variances.tolist() == [2.0, 4.0]
    assert some.counts.tolist() == [2.0**100 - 3.0, 3.0]


def random_classes(seed: int, n_classes: int, spread: float) -> Classes:
    rng = np.random.default_rng(seed)
    variances = np.unique(np.exp(rng.uniform(0, math.log(spread), n_classes)))
    return Classes.listed(variances, rng.integers(1, 9, len(variances)).astype(float))


def test_few_classes_stay_as_they_are() -> None:
    arms = random_classes(0, MOST_CLASSES, 100.0)
    assert arms.few() is arms


@pytest.mark.parametrize("spread", [1 + 1e-9, 1.001, 3.0, 1e4, 1e200])
@pytest.mark.parametrize(("n_classes", "most"), [(2000, MOST_CLASSES), (9, 4), (500, 20)])
def test_putting_classes_together_keeps_counts_sums_and_bounds(
    n_classes: int, most: int, spread: float
) -> None:
    arms = random_classes(n_classes, n_classes, spread)
    few = arms.few(most)
    assert 1 <= len(few.counts) <= most + 1
    assert few.n == arms.n
    assert few.total == pytest.approx(arms.total, rel=1e-12)
    ends = np.append(few.variances[1:], np.inf)
    for least, end, count, total in zip(few.variances, ends, few.counts, few.sums, strict=True):
        is_in = (arms.variances >= least) & (arms.variances < end)
        assert arms.variances[is_in].min() == least
        assert arms.variances[is_in].max() <= few.ratio * least
        assert arms.counts[is_in].sum() == count
        assert arms.sums[is_in].sum() == pytest.approx(total, rel=1e-12)
    assert 1.0 <= few.ratio <= 2 ** max(math.log2(spread) / most, 2.0**-20) * (1 + 1e-9)


def test_putting_classes_together_twice_multiplies_the_ratios() -> None:
    arms = random_classes(1, 500, 50.0)
    once = arms.few(100)
    twice = once.few(10)
    worst = 0.0
    for least, end in zip(twice.variances, np.append(twice.variances[1:], np.inf), strict=True):
        is_in = (arms.variances >= least) & (arms.variances < end)
        worst = max(worst, float(arms.variances[is_in].max() / least))
    assert worst <= twice.ratio
