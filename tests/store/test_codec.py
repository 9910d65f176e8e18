"""Events come back from bytes as they were; damaged or unknown bytes are refused."""

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import shortlist as sl
from shortlist.errors import CorruptLog
from shortlist.store import Asked, Began, Event, Leased, Told
from shortlist.store.chain import Link, intact, row
from shortlist.store.codec import decoded, encoded
from shortlist.store.packing import packed, unpacked
from tests.store.samples import ANY_EVENT, AWKWARD, ONE_OF_EACH, arms, same

MANY = 10**6


@pytest.mark.parametrize("event", ONE_OF_EACH.values(), ids=ONE_OF_EACH.keys())
def test_every_kind_of_event_comes_back_as_it_was(event: Event) -> None:
    assert same(decoded(*encoded(event)), event)


@given(event=ANY_EVENT)
def test_any_event_comes_back_as_it_was(event: Event) -> None:
    assert same(decoded(*encoded(event)), event)


def test_floats_keep_every_bit() -> None:
    means = np.array([*AWKWARD, np.nextafter(1, 2)])
    back = decoded(*encoded(Told(0, np.arange(len(means)), means)))
    assert isinstance(back, Told)
    assert back.means.tobytes() == means.tobytes()


def test_numbers_of_other_types_are_kept_as_plain_ones() -> None:
    means: Any = np.array([0.5, 1], dtype=np.float32)
    number: Any = np.int64(3)
    some: Any = np.array([1, 2], dtype=np.int32)
    event = Told(number, some, means, None, "w")
    assert same(decoded(*encoded(event)), Told(3, arms(1, 2), np.array([0.5, 1.0]), None, "w"))


def test_an_array_of_two_dimensions_is_refused() -> None:
    with pytest.raises(ValueError, match="2 dimensions"):
        packed(np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("values", "most"),
    [
        (np.arange(5, MANY), 40),
        (np.full(MANY, 7), 40),
        (np.arange(0, 3 * MANY, 3), 40),
        (np.random.default_rng(1).integers(0, 200, MANY), 1.1 * MANY),
        (np.sort(np.random.default_rng(1).choice(10 * MANY, MANY, replace=False)), 0.8 * MANY),
        (np.random.default_rng(1).permutation(MANY), 4.1 * MANY),
        (np.random.default_rng(1).random(MANY), 8.1 * MANY),
        (np.random.default_rng(1).binomial(10, 0.5, MANY) / 10, 1.5 * MANY),
    ],
    ids=["from 5 on", "all equal", "every third", "small", "some", "shuffled", "floats", "few floats"],
)
def test_arrays_take_little_room(values: Any, most: float) -> None:
    data = packed(values)
    assert len(data) <= most
    back, end = unpacked(data, 0)
    assert end == len(data)
    assert same(back, values)


@pytest.mark.parametrize("most", [2**8, 2**16, 2**32, 2**62])
def test_the_largest_number_of_a_width_fits_and_the_next_takes_another(most: int) -> None:
    for numbers in ([5, 0, most - 1], [0, 1, most], [most - 1, most, 3], [most - 1, most + 5, 2 * most + 3]):
        values = np.array(numbers, dtype=np.uint64).astype(np.int64)
        assert same(unpacked(packed(values), 0)[0], values)


def test_a_million_arms_are_quick_and_small() -> None:
    rng = np.random.default_rng(1)
    question = sl.Problem(m=3, epsilon=0.1, delta=0.1, variances=rng.random(MANY) + 0.1)
    for event in (
        Told(3, rng.permutation(MANY), rng.random(MANY)),
        Asked(3, np.arange(MANY), rng.integers(1, 1000, MANY)),
        Began(question, "race", 1, "auto", "ab", "0.1"),
    ):
        start = time.process_time()
        kind, body = encoded(event)
        back = decoded(kind, body)
        assert time.process_time() - start < 1.5  # 0.05 to 0.2 on an idle machine
        assert len(body) < 12e6
        assert kind == "began" or same(back, event)


@pytest.mark.parametrize(
    "event", [Told(3, arms(4), np.array([0.5]), None, "w-1"), Leased(3, arms(4), "w", 1e9)]
)
def test_one_ticket_is_quick_to_read(event: Event) -> None:
    kind, body = encoded(event)
    assert len(body) < 32
    start = time.process_time()
    for _ in range(10_000):
        decoded(kind, body)
    assert (time.process_time() - start) / 10_000 < 15e-6  # 2 to 3 microseconds on an idle machine


def test_an_unknown_kind_says_to_upgrade() -> None:
    with pytest.raises(CorruptLog, match=r"kind 'dreamt'.*upgrade Shortlist"):
        decoded("dreamt", encoded(ONE_OF_EACH["asked"])[1])


@pytest.mark.parametrize("kind", ["told", "began", "asked", "scored"])
def test_an_unknown_form_says_to_upgrade(kind: str) -> None:
    with pytest.raises(CorruptLog, match=r"form \[77\].*upgrade Shortlist"):
        decoded(kind, b"\x4d1234567890123456789012345678901234567890")


@pytest.mark.parametrize("event", ONE_OF_EACH.values(), ids=ONE_OF_EACH.keys())
def test_whatever_is_cut_short_is_refused_or_read_as_something_else(event: Event) -> None:
    kind, body = encoded(event)
    for length in range(len(body)):
        try:
            back = decoded(kind, body[:length])
        except CorruptLog:
            continue
        assert not same(back, event)


def test_a_question_that_would_be_refused_is_not_read() -> None:
    kind, body = encoded(ONE_OF_EACH["began, known"])
    with pytest.raises(CorruptLog, match="refused"):
        decoded(kind, body.replace(b'"delta":0.05', b'"delta":5.05'))


def test_fields_that_are_not_known_are_refused() -> None:
    kind, body = encoded(ONE_OF_EACH["suspended"])
    with pytest.raises(CorruptLog, match=r"cannot be read.*upgrade Shortlist"):
        decoded(kind, body.replace(b'"reason"', b'"season"'))


@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Bounded(), sl.Bounded(-2.5, 1e6)])
def test_questions_about_rewards_within_bounds_come_back_as_they_were(rewards: sl.Bounded) -> None:
    asked = sl.Problem(2, 0.125, 0.05, names=["a", "b", "c"], rewards=rewards, goal="minimise")
    event = Began(asked, "race", 3, "auto", "kqzfmb", "0.2.0")
    kind, body = encoded(event)
    again = decoded(kind, body)
    assert isinstance(again, Began)
    assert again.problem == asked
    assert again.problem.rewards == rewards


def test_a_gap_in_a_log_is_named() -> None:
    """Not only that a checksum does not match, which would speak of damage."""
    events = list(ONE_OF_EACH.values())
    first = row(Link(), 1.0, events[0])
    second = row(Link(1, first[4]), 2.0, events[1])
    third = row(Link(2, second[4]), 3.0, events[2])
    assert list(intact([first, second, third], "r", Link())) == [first, second, third]
    with pytest.raises(CorruptLog, match="Record 2 of run 'r' is missing: record 3 is in its place"):
        list(intact([first, third], "r", Link()))
