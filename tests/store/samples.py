"""Events to store, and whether one came back as it was."""

import dataclasses
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import shortlist as sl
from shortlist.store import (
    Arranged,
    Asked,
    Began,
    Bounded,
    Conflict,
    Ended,
    Event,
    Fed,
    Leased,
    Limited,
    Narrowed,
    Released,
    Scored,
    Stopped,
    Suspended,
    Told,
    Withdrawn,
)
from shortlist.tickets import Ticket
from tests.questions import known, unknown

AWKWARD = [-0.0, 5e-324, -2.2e-308, 0.1, 1 / 3, 1.7976931348623157e308, -1.5]
KNOWN = known(
    m=2,
    epsilon=0.1,
    delta=0.05,
    variances=[1 / 3, 4.0, 1e-9],
    names=["alt", "Ünïcödé \u2713 \U0001f600", "a 'quoted', \"name\"\n"],
    noise="gaussian",
    guarantee="indifference",
    goal="minimise",
)
UNKNOWN = unknown(m=1, epsilon=0.3, delta=1e-9, names=["x", "ÿ"], pilot=7, goal="minimise")
TICKET = Ticket(round=3, arm=1, name="ÿ", count=2**40, first_pull=17)


def arms(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int64)


ONE_OF_EACH: dict[str, Event] = {
    "began, known": Began(KNOWN, "race", 2**100, "auto", "ab3x", "0.1.0"),
    "began, unnamed": Began(sl.Problem(m=1, epsilon=1, delta=0.1, variances=[1, 2]), "kn", 0, "kn", "c", "9"),
    "began, bounded": Began(sl.Problem(1, 1, 0.1, [1, 2], bounds=(-1 / 3, 5e9)), "kn", 0, "kn", "c", "9"),
    "began, coins": Began(sl.Problem(1, 1, 0.1, [1, 2], rewards="bernoulli"), "kn", 0, "kn", "c", "9"),
    "bounded": Bounded((-1 / 3, 5e9)),
    "bounded, coins": Bounded((0.0, 1.0), "bernoulli"),
    "began, unknown": Began(UNKNOWN, "t-race", 7, "t-race", "q", "0.1.0"),
    "arranged": Arranged(
        {"executor": "processes", "together": 8, "scale": 1 / 3, "list": [1, None, {"ä": True}]}
    ),
    "asked": Asked(4, arms(5, 1, 2), arms(10, 2**40, 1), needs_variances=True),
    "leased, one": Leased(2**31, arms(2**32 - 1), "wörker", 1.7e9 + 1 / 3),
    "leased, many": Leased(3, arms(1, 2, 3), "w", 1e9),
    "leased, far": Leased(2**32, arms(0), "w", 1e9),
    "released, one": Released(3, arms(77), ""),
    "released, many": Released(3, arms(9, 3), "w"),
    "told, one": Told(0, arms(0), np.array([-0.0])),
    "told, far": Told(0, arms(2**32), np.array([5e-324]), None, "lone \udc80 surrogate"),
    "told, one of a pilot": Told(1, arms(8), np.array([1 / 3]), np.array([5e-324]), "w"),
    "told, many": Told(2, arms(3, 1, 4), np.array([0.1, -0.0, 1e300]), None, "x" * 300),
    "told, pilot": Told(0, arms(0, 1), np.array([0.1, 0.2]), np.array([0.0, 1e-320])),
    "told, none": Told(0, arms(), np.array([])),
    "conflict": Conflict(3, 4, 0.1, -0.0, "w"),
    "scored": Scored(TICKET, -0.0, "it failed:\n\0 and \udcff"),
    "suspended": Suspended("no 'more' food", "w\u2028"),
    "stopped": Stopped("ann@lab", "good enough"),
    "narrowed": Narrowed(1 / 3),
    "limited": Limited(1 / 3),
    "fed": Fed(arms(2, 0), arms(2**40, 1), np.array([0.1, -0.0]), None, ("mon", "mön"), "week 1", "ann"),
    "fed, in two blocks": Fed(
        arms(2, 0), arms(5, 1), np.array([0.1, 0.0]), None, ("mon", "tue"), blocks=("mon", "wörk")
    ),
    "fed, without labels": Fed(arms(1), arms(5), np.array([1 / 3]), np.array([0.2])),
    "withdrawn": Withdrawn(3, 1, -0.0, "wrong 'scale'", "ann"),
    "ended": Ended(arms(1, 2, 5)),
    "ended, all": Ended(np.arange(10)),
}


def same(one: Any, other: Any) -> bool:
    """Whether two events, or parts of them, are the same to the last bit."""
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    if type(one) is not type(other):
        return False
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    return repr(one) == repr(other)


def told(worker: str, number: int) -> Told:
    """Return an event that says who wrote it, and as which of its own."""
    return Told(number, arms(number), np.array([number / 7]), None, worker)


_whole = st.one_of(
    arrays.arrays(np.int64, st.integers(0, 40), elements=st.integers(-(2**63), 2**63 - 1)),
    arrays.arrays(np.int64, st.integers(0, 40), elements=st.integers(0, 300)),
    st.builds(
        lambda low, step, n: low + step * np.arange(n), *(st.integers(0, 2**30),) * 2, st.integers(1, 50)
    ),
    st.builds(np.sort, arrays.arrays(np.int64, st.integers(1, 40), elements=st.integers(0, 2**40))),
)
_floats = arrays.arrays(np.float64, st.integers(0, 40), elements=st.floats(allow_nan=False))
_text = st.text(st.characters(exclude_categories=()), max_size=20)
_round = st.integers(0, 2**40)

ANY_EVENT: st.SearchStrategy[Event] = st.one_of(
    st.builds(Asked, _round, _whole, _whole, st.booleans()),
    st.builds(Leased, _round, _whole, _text, st.floats(0, 1e12)),
    st.builds(Released, _round, _whole, _text),
    st.builds(Told, _round, _whole, _floats, st.none() | _floats, _text),
    st.builds(
        lambda k, arm, mean, variance, worker: Told(k, arms(arm), np.array([mean]), variance, worker),
        _round,
        st.integers(0, 2**33),
        st.floats(allow_nan=False),
        st.none() | st.floats(0, 1e300).map(lambda value: np.array([value])),
        _text,
    ),
    st.builds(Ended, _whole),
    st.builds(Suspended, _text, _text),
    st.builds(Conflict, _round, _round, *(st.floats(allow_nan=False, allow_infinity=False),) * 2, _text),
)
