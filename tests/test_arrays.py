"""The selection rule and its helpers against slow and obvious references."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from shortlist.arrays import (
    BLOCK,
    FloatArray,
    IntArray,
    all_but,
    as_slice,
    at,
    at_largest,
    blocks,
    flat_index,
    has_repeats,
    is_increasing,
    kth_largest,
    largest,
    order_of,
    places_in,
    sorting,
)

BIG = (1 << 16) + 1  # the first size at which single lanes are searched by a sample

lanes = array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=24)
seeds = st.integers(0, 2**32)


def distinct(shape: tuple[int, ...], seed: int) -> FloatArray:
    return np.random.default_rng(seed).standard_normal(shape)


def tied(shape: tuple[int, ...], seed: int) -> FloatArray:
    return np.random.default_rng(seed).choice([-1.0, -0.0, 0.0, 2.0], shape)


matrices = st.builds(distinct, lanes, seeds) | st.builds(tied, lanes, seeds)
small_arrays = arrays(np.float64, st.integers(1, 12), elements=st.floats(-1e300, 1e300) | st.just(-0.0))


def reference_largest(values: FloatArray, k: int) -> IntArray:
    """Return the first k of a stable sort by falling value, in rising order of index, lane by lane."""
    order = np.argsort(-values, axis=-1, kind="stable")
    return np.sort(order[..., :k], axis=-1)


def big_arrays() -> dict[str, FloatArray]:
    rng = np.random.default_rng(7)
    return {
        "distinct": rng.standard_normal(BIG),
        "larger, distinct": rng.standard_normal(4 * BIG),
        "heavy ties": rng.integers(0, 5, BIG).astype(float),
        "two values": (rng.random(BIG) < 0.3).astype(float),
        "rounded": np.round(rng.standard_normal(2 * BIG), 1),
        "all equal": np.full(BIG, 3.0),
        "all but one equal": np.append(np.full(BIG, 3.0), 4.0),
        "rising": np.arange(BIG, dtype=float),
        "falling": -np.arange(BIG, dtype=float),
        "rising in steps": np.arange(2 * BIG) // 1000 * 1.0,
        "heavy tail": rng.standard_cauchy(BIG),
        "with infinities": np.where(rng.random(BIG) < 0.1, np.inf, rng.standard_normal(BIG)),
        "one block apart": np.concatenate([np.zeros(BIG), np.ones(100)]),
        "periodic": np.tile([5.0, 0.0, 0.0, 0.0], BIG // 4 + 1),
        "periodic, rare": np.tile(np.r_[np.ones(7), 0.0], BIG // 8 + 1),
    }


def ks(n: int) -> list[int]:
    return [1, 2, 8, 9, 100, n // 8, n // 4, n // 4 + 10, n // 2, n - n // 4, n - 100, n - 1, n]


@given(matrices | small_arrays, st.data())
@settings(max_examples=400)
def test_largest_is_a_stable_sort_cut_off(values: FloatArray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, values.shape[-1]))
    assert largest(values, k).tolist() == reference_largest(values, k).tolist()


@given(st.builds(tied, lanes, seeds), st.data())
@settings(max_examples=200)
def test_ties_go_to_the_lower_index(values: FloatArray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, values.shape[-1]))
    assert largest(values, k).tolist() == reference_largest(values, k).tolist()


@given(matrices | small_arrays, st.data())
@settings(max_examples=200)
def test_kth_largest_is_the_kth_of_a_sort(values: FloatArray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, values.shape[-1]))
    expected = -np.sort(-values, axis=-1)[..., k - 1 : k]
    found = kth_largest(values, k)
    assert found.shape == (*values.shape[:-1], 1)
    assert (found == expected).all()


@pytest.mark.parametrize("n", [1, 2, 9, 10, 40])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3)])
def test_every_k_from_one_to_n(n: int, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(n).integers(0, 6, (*shape, n)).astype(float)
    for k in range(1, n + 1):
        found = largest(values, k)
        assert found.shape == (*shape, k)
        assert found.tolist() == reference_largest(values, k).tolist()


@pytest.mark.parametrize("case", big_arrays())
def test_big_arrays_give_the_same_answer_as_a_sort(case: str) -> None:
    values = big_arrays()[case]
    falling = -np.sort(-values)
    order = np.argsort(-values, kind="stable")
    for k in ks(len(values)):
        assert kth_largest(values, k).tolist() == [falling[k - 1]], f"k = {k}"
        assert (largest(values, k) == np.sort(order[:k])).all(), f"k = {k}"


def test_a_big_array_in_one_lane_of_a_matrix() -> None:
    values = np.random.default_rng(1).integers(0, 50, BIG).astype(float)
    for k in (1, 5, 1000, BIG // 2):
        assert kth_largest(values[None], k).tolist() == [kth_largest(values, k).tolist()]
        assert (largest(values[None], k) == largest(values, k)).all()


def test_big_lanes_side_by_side() -> None:
    values = np.random.default_rng(1).integers(0, 50, (2, BIG)).astype(float)
    for k in (3, 1000, BIG // 2):
        assert largest(values, k).tolist() == reference_largest(values, k).tolist()


@given(st.integers(BIG, BIG + 5000), st.integers(1, 40), st.integers(0, 2**32), st.floats(0, 1))
@settings(max_examples=30)
def test_big_arrays_with_few_values(n: int, n_values: int, seed: int, fraction: float) -> None:
    values = np.random.default_rng(seed).integers(0, n_values, n).astype(float)
    k = 1 + int(fraction * (n - 1))
    assert kth_largest(values, k).tolist() == [-np.sort(-values)[k - 1]]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("values", [[1.0, -1e308, -1e308, -1e308], [math.inf, 2.0, math.inf, 1.0]])
def test_largest_never_names_an_entry_twice(values: list[float], k: int) -> None:
    assert largest(np.array(values), k).tolist() == reference_largest(np.array(values), k).tolist()


def test_the_values_are_left_alone() -> None:
    for n in (6, 40, BIG):
        values = np.random.default_rng(0).standard_normal(n)
        before = values.copy()
        largest(values, 3)
        largest(values, n // 2)
        kth_largest(values, 3)
        assert (values == before).all()


@given(st.integers(-50, 50), st.integers(1, 60))
def test_consecutive_indices_are_a_slice(first: int, length: int) -> None:
    indices = np.arange(first, first + length)
    assert as_slice(indices) == slice(first, first + length)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8))
def test_only_consecutive_indices_are_a_slice(indices: list[int]) -> None:
    found = as_slice(np.array(indices))
    if indices == list(range(indices[0], indices[0] + len(indices))):
        assert found is not None
        assert np.arange(100)[found].tolist() == indices
    else:
        assert found is None


@pytest.mark.parametrize(
    "shape", [(0,), (1,), (BLOCK - 1,), (BLOCK,), (BLOCK + 1,), (7, 5000), (3, 4, 5000), (2 * BLOCK, 3)]
)
def test_blocks_cover_the_last_axis_in_order(shape: tuple[int, ...]) -> None:
    covered = [i for block in blocks(shape) for i in range(shape[-1])[block]]
    assert covered == list(range(shape[-1]))


@pytest.mark.parametrize("shape", [(10 * BLOCK,), (7, 50_000), (3, 4, 50_000)])
def test_blocks_hold_about_a_block_in_all_lanes(shape: tuple[int, ...]) -> None:
    n_lanes = math.prod(shape[:-1])
    sizes = [n_lanes * len(range(shape[-1])[block]) for block in blocks(shape)]
    assert max(sizes) <= BLOCK
    assert sizes[0] > BLOCK / 2


@given(matrices, st.integers(1, 6), seeds)
def test_at_takes_from_each_lane_what_was_asked_of_it(values: FloatArray, n_indices: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, values.shape[-1], (*values.shape[:-1], n_indices))
    expected = np.take_along_axis(values, indices, axis=-1)
    assert at(values, indices).tolist() == expected.tolist()
    assert values.reshape(-1)[flat_index(values.shape, indices)].tolist() == expected.tolist()


@given(matrices.filter(lambda values: values.ndim > 1), seeds)
def test_flat_index_of_one_index_per_lane(values: FloatArray, seed: int) -> None:
    indices = np.random.default_rng(seed).integers(0, values.shape[-1], values.shape[:-1])
    expected = np.take_along_axis(values, indices[..., None], axis=-1)[..., 0]
    assert values.reshape(-1)[flat_index(values.shape, indices)].tolist() == expected.tolist()


@pytest.mark.parametrize("kind", ["normal", "ties", "equal"])
@pytest.mark.parametrize("k", [1, 7, 30_000, 69_999, 70_000])
def test_items_at_the_largest_values_are_those_that_largest_names(kind: str, k: int) -> None:
    rng = np.random.default_rng(1)
    values = {
        "normal": rng.standard_normal(70_000),
        "ties": rng.integers(0, 5, 70_000).astype(float),
        "equal": np.zeros(70_000),
    }[kind]
    items = rng.permutation(10**6)[:70_000]
    for shape in ((70_000,), (1, 70_000), (7, 10_000)):
        taken = min(k, shape[-1])
        found = at_largest(items.reshape(shape), values.reshape(shape), taken)
        expected = at(items.reshape(shape), largest(values.reshape(shape), taken))
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("n_values", [3, 400, 10**9])
def test_equal_values_are_ordered_by_their_indices(n_values: int) -> None:
    values = np.random.default_rng(0).integers(0, n_values, 500).astype(float)
    assert order_of(values).tolist() == sorted(range(500), key=lambda place: (values[place], place))


@given(st.integers(1, 30), seeds)
def test_all_but_the_chosen(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(n)[: rng.integers(0, n + 1)]
    assert all_but(n, chosen).tolist() == [number for number in range(n) if number not in chosen]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [60, BIG])
def test_places_in_edges_are_those_of_a_search(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.choice([0.3, 1.0, 3.0]) ** rng.uniform(-6, 6, 90))
    edges[rng.integers(0, 90, 30)] = edges[40]
    edges[:seed], edges[90 - seed :] = -np.inf, np.inf
    edges = np.sort(edges)
    values = rng.uniform(-1, 1.2 * edges[80 - seed], n)
    values[:20], values[20:40] = edges[30:50], np.nextafter(edges[30:50], np.inf)  # on edges, and just above
    values[40:60] = 2 * edges[edges < np.inf][-1]  # above all finite ones
    np.testing.assert_array_equal(places_in(edges, values), np.searchsorted(edges, values))


def test_places_in_few_edges() -> None:
    values = np.linspace(-2, 2, BIG)
    for edges in (np.array([0.5]), np.array([0.5, 0.5]), np.full(3, np.inf), np.array([-np.inf, 1.0])):
        np.testing.assert_array_equal(places_in(edges, values), np.searchsorted(edges, values))


@given(numbers=arrays(np.int64, st.integers(0, 9), elements=st.integers(-3, 30)))
def test_sorting(numbers: IntArray) -> None:
    for some in (numbers, numbers % 9, np.random.default_rng(0).permutation(9)):
        assert sorting(some).tolist() == sorted(range(len(some)), key=some.tolist().__getitem__)


@given(numbers=arrays(np.int64, st.integers(0, 9), elements=st.integers(-3, 3)))
def test_repeats(numbers: IntArray) -> None:
    pairs = [*zip(numbers.tolist(), numbers.tolist()[1:], strict=False)]
    assert is_increasing(numbers) == all(one < two for one, two in pairs)
    assert has_repeats(numbers) == (len(set(numbers.tolist())) < len(numbers))
