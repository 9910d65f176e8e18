"""Declared bounds hold at every door of a run: what they rule out is refused, and none of it is counted."""

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.errors import ChangedRun, InvalidAnswers, InvalidProblem, NotAsked
from shortlist.files.problem_file import read_problem
from shortlist.measure import BoundedSource, Call, Summaries
from shortlist.session.answers import Answers
from shortlist.session.sheet_format import read_sheet
from shortlist.session.tell_sheet import tell_sheet
from shortlist.store import Began, Bounded, MemoryStore
from shortlist.tickets import Ticket, Tickets
from tests.compat.cases import SQLITE

BOUNDED = sl.Problem(1, 0.3, 0.1, [0.25, 0.25], names=["a", "b"], bounds=(0, 1))
BINARY = sl.Problem(1, 0.3, 0.1, [0.25, 0.25], names=["a", "b"], rewards="bernoulli")
SMALL = BOUNDED.changed(goal="minimise", bounds=(-2, 0))


def begun(problem: sl.Problem) -> tuple[sl.Session, MemoryStore]:
    store = MemoryStore()
    return sl.Session(problem, "wnelim", store=store), store


def wrong(problem: sl.Problem, count: int) -> list[tuple[Any, str]]:
    """Answers for `count` pulls of arm a that the bounds rule out, and the value that must be named."""
    low, high = problem.bounds or (0, 0)
    others = [low] * (count - 1)
    found: list[tuple[Any, str]] = [
        ([240.0] * count, "240"),
        ([*others, high + 1e-9], f"{high + 1e-9:.10g}"),  # one of them, and hardly; their mean is within
        (sl.Summary(count, 240.0), "240"),
        (sl.Summary(count, low - 0.01), f"{low - 0.01:.10g}"),
        (sl.Summary(count, (low + high) / 2, (high - low) ** 2), f"{(high - low) ** 2:.10g}"),
    ]
    return [*found, ([0.5] * count, "0.5")] if problem.is_binary else found


@pytest.mark.parametrize("problem", [BOUNDED, BINARY, SMALL], ids=["bounds", "0 or 1", "minimise"])
def test_tell_refuses_what_bounds_rule_out(problem: sl.Problem) -> None:
    session, store = begun(problem)
    (first, second), n_events = session.ask(), len(list(store.read("main")))
    for answer, value in wrong(problem, first.count):
        good = [problem.bounds[0]] * second.count if problem.bounds else []
        for tickets, answers in ((first, answer), ([second, first], [good, answer])):
            with pytest.raises(sl.MeasurementFailed) as caught:
                session.tell(tickets, answers)
            said = str(caught.value)
            assert value in said
            assert " of a is " in said
            assert "between" in said or "be 0 or 1" in said
            assert "start a run with" in said
    for means in (240.0, -2.1):
        with pytest.raises(sl.MeasurementFailed, match=f"{means:g} of {first.count} rewards of a is refused"):
            session.tell(first, means=means)
    assert session.n_pulls == 0
    assert len(list(store.read("main"))) == n_events
    low, high = problem.bounds or (0, 0)
    session.tell(first, means=high + 1e-10 * (high - low))  # the mean of such rewards may be off by rounding
    session.tell(second, [low, high] * (second.count // 2) + [low] * (second.count % 2))
    assert session.n_pulls == first.count + second.count


def test_one_pull_of_a_coin_is_0_or_1() -> None:
    session = sl.Session(BINARY.changed(epsilon=2.0, delta=0.9), "wnelim")
    ticket = session.ask()[0]
    assert ticket.count == 1
    for told in ({"means": 0.5}, {"rewards": [0.5]}, {"rewards": sl.Summary(1, 1.0000000001)}):
        with pytest.raises(
            sl.MeasurementFailed, match=r"of a is refused: rewards were declared to be 0 or 1"
        ):
            session.tell(ticket, **told)
    session.tell(ticket, means=1.0)
    assert session.n_pulls == 1


COINS = sl.Problem(m=1, epsilon=0.3, delta=0.1, names=["a", "b"], rewards=sl.Bernoulli())
DOORS: dict[str, Callable[[int, float], Any]] = {
    "feed": lambda count, mean: sl.Session(COINS).feed("a", count, means=mean),
    "certify": lambda count, mean: sl.certify(COINS, [count, 0], [mean, 0.0]),
    "tell": lambda count, mean: _told(count, means=mean),
    "summary": lambda count, mean: _told(count, sl.Summary(count, mean)),
    "vectorised": lambda count, mean: BoundedSource(
        sl.vectorised(lambda *_: np.array([mean], dtype=np.float32)), COINS
    ).answers([Call(0, 0, count, 0)]),
}


def _told(count: int, rewards: Any = None, means: Any = None) -> Answers:
    return Answers.of(COINS, Ticket(0, 0, "a", count, 0), rewards, means)


@pytest.mark.parametrize("door", DOORS)
def test_a_mean_of_0_and_1_is_of_a_whole_number_of_successes_at_every_door(door: str) -> None:
    with pytest.raises(sl.MeasurementFailed, match=r"2 rewards of 0 or 1 of a cannot have the mean 0\.37"):
        DOORS[door](2, 0.377)
    for count in (3, 7, 1000, 499_979, 2**20 + 1, 2**31):  # single precision, and as many rewards as you like
        for successes in (1, count // 3, count - 2):
            DOORS[door](count, float(np.float32(successes / count)))
    DOORS[door](81_000, 0.043173)  # 3,497 successes, with six decimals


def test_a_mean_of_successes_counts_as_it_is_given() -> None:
    for mean in (1 / 3, float(np.float32(1 / 3)), np.nextafter(1 / 3, 1)):
        assert _told(3, means=mean).means.tolist() == [mean]


SHEETS: dict[str, Callable[[str, int], str]] = {
    "mean": lambda ticket, _: f"ticket,mean\n{ticket},240\n",
    "rewards": lambda ticket, count: "ticket,reward\n" + f"{ticket},0\n" * (count - 1) + f"{ticket},1.5\n",
    "variance": lambda ticket, _: f"ticket,mean,variance\n{ticket},0.5,9\n",
    "json": lambda ticket, _: f'[{{"ticket": "{ticket}", "mean": -240}}]',
}


@pytest.mark.parametrize("kind", SHEETS)
def test_a_sheet_told_days_later_is_checked_without_the_problem_file(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "trial.toml"
    file.write_text("[problem]\nm = 1\nepsilon = 0.3\ndelta = 0.1\nn = 2\nbounds = [0, 1]\n")
    store = MemoryStore()
    asked = sl.Session(read_problem(file), "wnelim", store=store)
    ticket, count = f"{asked.code}-r0-a0", asked.asked[0].count
    file.unlink()
    session = sl.Session.resume(store, "main")
    with pytest.raises(
        InvalidAnswers, match=r"^(line 2|entry 1): .*arm-0.*between 0 and 1.*Nothing was added"
    ):
        tell_sheet(session, store, read_sheet(SHEETS[kind](ticket, count).encode()))
    assert session.n_pulls == 0


def test_a_function_is_checked_whatever_it_returns() -> None:
    def rows(arms: Any, counts: Any, _rng: Any) -> Any:
        return np.tile([1.5, -0.5], (len(arms), counts[0] // 2))  # their mean is 0.5

    for measure in (
        lambda _arm, count, _rng: [0.5] * (count - 1) + [1.5],
        lambda _arm, count, _rng: (count, 240.0),
        sl.vectorised(lambda arms, _counts, _rng: np.full(len(arms), 240.0)),
        sl.vectorised(lambda _arms, counts, _rng: [[0.5] * (count - 1) + [1.5] for count in counts]),
        sl.vectorised(rows),
    ):
        with pytest.raises(sl.MeasurementFailed, match="declared to lie between 0 and 1"):
            sl.select(measure, BOUNDED.changed(epsilon=0.5), "wnelim")


def test_a_coin_that_lands_on_its_edge_is_refused_among_many() -> None:
    source = sl.vectorised(lambda arms, counts, _rng: np.full((len(arms), counts[0]), 0.5))
    with pytest.raises(sl.MeasurementFailed, match=r"the reward 0\.5 of a is refused"):
        BoundedSource(source, BINARY).answers([Call(0, 0, 4, 0), Call(0, 1, 4, 0)])
    half = Summaries(np.array([4]), np.array([0.5]), np.array([np.nan]))
    assert BoundedSource(_Fixed(half), BINARY).answers([Call(0, 0, 4, 0)]) is half


class _Fixed:
    """A source with one answer."""

    together = 1

    def __init__(self, answer: Summaries) -> None:
        self.answer = answer

    def answers(self, _calls: Any) -> Summaries:
        return self.answer


@pytest.mark.parametrize("score", [2.0, -0.1])
def test_the_score_of_a_failure_lies_within_the_bounds(score: float) -> None:
    with pytest.raises(sl.InvalidProblem, match=r"`on_failure` is .* declared to lie between 0 and 1"):
        sl.select(lambda _arm, count, rng: rng.random(count), BOUNDED, on_failure=score)
    with pytest.raises(sl.InvalidProblem, match="declared to be 0 or 1"):
        sl.select(lambda _arm, count, rng: rng.random(count), BINARY, on_failure=0.5)


def test_a_score_that_comes_after_a_told_reward_is_refused() -> None:
    session, store = begun(BOUNDED)
    session.tell(session.ask()[0], means=0.5)
    with pytest.raises(ChangedRun, match="fixed before the first reward"):
        sl.drive(session, lambda _arm, count, rng: rng.random(count), on_failure=0.0)
    one_by_one = {"pulls_per_call": 1, "together": 1}
    session.arrange(one_by_one | {"on_failure": "suspend"})
    other, _ = begun(BOUNDED)
    other.arrange(one_by_one | {"on_failure": 0.5})
    other.arrange(one_by_one | {"on_failure": 0.25})  # nothing has been measured so far
    with pytest.raises(sl.InvalidProblem, match="declared to lie between 0 and 1"):
        other.arrange(one_by_one | {"on_failure": -1.0})
    assert other.settings == one_by_one | {"on_failure": 0.25}
    assert len(list(store.read("main"))) == len(session.records)


# --- part of the question -------------------------------------------------------------------------


def test_bounds_are_part_of_the_question() -> None:
    all_different = [BOUNDED, BINARY, BOUNDED.changed(bounds=None), BOUNDED.changed(bounds=(0, 2))]
    assert len({one.digest for one in all_different}) == 4
    assert BINARY.bounds == (0.0, 1.0)
    assert BINARY.to_dict()["bounds"] == [0.0, 1.0]
    for one in all_different:
        assert pickle.loads(pickle.dumps(one)) == one.changed() == one
    _, store = begun(BOUNDED)
    for other in (BOUNDED.changed(bounds=(0, 2)), BOUNDED.changed(bounds=None), BINARY):
        with pytest.raises(
            ChangedRun, match=r"bounds was \[0\.0, 1\.0\]|rewards was not given, is bernoulli"
        ):
            sl.Session(other, "wnelim", store=store)
    assert sl.Session(BOUNDED, "wnelim", store=store).problem == BOUNDED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bounds": (1, 0)}, "the smaller one first"),
        ({"bounds": (0, 0)}, "the smaller one first"),
        ({"bounds": (0, float("nan"))}, "both must be finite"),
        ({"bounds": (0, True)}, "must be a real number"),
        ({"bounds": 1}, "two numbers"),
        ({"bounds": (0, 2), "rewards": "bernoulli"}, "every reward is 0 or 1, but `bounds` is"),
        ({"rewards": "coins"}, "`rewards` is 'coins'"),
        ({"variances": None, "bounds": (0, 1), "rewards": sl.Gaussian([1.0] * 2)}, "within `bounds` are not"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(sl.InvalidProblem, match=said):
        sl.Problem(1, 0.3, 0.1, **({"variances": [0.25, 0.25]} | given))


# --- runs begun before bounds were stored -------------------------------------------------------------


def test_a_run_that_lacks_its_bounds_takes_them_and_is_checked_from_then_on() -> None:
    session, store = begun(BOUNDED.changed(bounds=None))
    first, second = session.ask()
    session.tell(first, means=0.5)
    again = sl.Session(BOUNDED, "wnelim", store=store)
    assert again.problem == BOUNDED
    for one in (again, session, sl.Session.resume(store, "main")):  # also who had it open all the time
        one.refresh()
        with pytest.raises(sl.MeasurementFailed, match="the mean 240 of"):
            one.tell(second, means=240.0)
    events = [record.event for record in store.read("main")]
    assert [event for event in events if isinstance(event, Bounded)] == [Bounded((0.0, 1.0))]
    sl.Session(BOUNDED, "wnelim", store=store)
    assert len(list(store.read("main"))) == len(events)  # they are stored once
    again.tell(second, means=0.25)
    assert again.is_done


def test_bounds_that_answers_have_broken_already_are_refused() -> None:
    session, store = begun(BOUNDED.changed(bounds=None))
    session.tell(session.ask()[1], means=240.0)
    n_events = len(list(store.read("main")))
    with pytest.raises(ChangedRun, match=r"recorded before the bounds.*the mean 240 of \d+ rewards of b"):
        sl.Session(BOUNDED, "wnelim", store=store)
    assert len(list(store.read("main"))) == n_events


def test_a_run_of_version_0_1_0_takes_the_bounds_of_its_file(tmp_path: Path) -> None:
    store = str(shutil.copy(SQLITE, tmp_path / "runs.db"))
    problem = read_problem(SQLITE.parent / "files" / "bernoulli.toml")
    with sl.Session.resume(store, "bernoulli") as session:
        assert session.problem.bounds is None
    with sl.Session(problem, "race", seed=3, store=store, name="bernoulli") as session:
        assert session.problem.is_binary
        assert not session.problem.is_bounded, "the file meant the variance 1/4"
    with sl.Session.resume(store, "bernoulli") as session:
        ticket = session.ask()[0]
        with pytest.raises(sl.MeasurementFailed, match="declared to be 0 or 1"):
            session.tell(ticket, means=240.0)


def test_a_run_about_0_or_1_keeps_the_variances_that_it_began_with() -> None:
    _, store = begun(BINARY)
    now = BINARY.changed(rewards=sl.Bernoulli(), n=2)
    assert sl.Session(now, "wnelim", store=store).problem == BINARY
    assert sl.Session(now, "wnelim", store=store, name="new").problem == now
    _, other = begun(sl.Problem(1, 0.3, 0.1, [0.25, 0.2], names=["a", "b"], rewards="bernoulli"))
    for changed, before in ((now.changed(epsilon=0.2), store), (now, other)):
        with pytest.raises(ChangedRun):
            sl.Session(changed, "wnelim", store=before)
    with pytest.raises(ChangedRun, match="noise was bernoulli, is sub-gaussian"):
        sl.Session(BINARY, "wnelim", store=store, name="new")


def test_a_log_without_bounds_has_no_trace_of_them() -> None:
    for problem in (BOUNDED, BOUNDED.changed(bounds=None)):
        _, store = begun(problem)
        (record,) = store.read("main")
        assert isinstance(record.event, Began)
        assert record.event.problem.bounds == problem.bounds


@pytest.mark.parametrize("in_parts", [False, True])
def test_answers_are_held_against_bounds_declared_while_they_were_on_their_way(in_parts: bool) -> None:
    session, store = begun(BOUNDED.changed(bounds=None))
    tickets = session.ask()
    sl.Session(BOUNDED, "wnelim", store=store)
    given = Summaries(tickets.counts, np.array([0.5, 7.0]), np.full(2, np.nan))
    answers = Answers.of_calls(session.problem, tickets, given)
    with pytest.raises(sl.MeasurementFailed, match="the mean 7 of"):
        (session.answer if in_parts else session.record)(answers)
    assert session.n_pulls == 0
    session.tell(tickets, means=[0.5, 0.75])
    assert session.result.selected == ("b",)


def test_an_answer_to_an_arm_that_does_not_exist_is_refused() -> None:
    session, _ = begun(BOUNDED)
    arms = np.array([2])
    calls = Tickets(session.problem, 0, arms, arms, 0 * arms)
    with pytest.raises(NotAsked, match="only 2 arms"):
        session.answer(Answers.of_calls(session.problem, calls, Summaries(arms, np.array([7.0]), arms / 1)))


@pytest.mark.parametrize("problem", [BOUNDED, BINARY, SMALL], ids=["bounds", "0 or 1", "minimise"])
def test_answers_to_calls_are_checked_before_anything_is_recorded(problem: sl.Problem) -> None:
    session, store = begun(problem)
    tickets, n_events = session.ask(), len(list(store.read("main")))
    low, high = problem.bounds or (0, 0)
    for wrong_mean in (low - 0.01, high + 0.01):
        given = Summaries(tickets.counts, np.array([low, wrong_mean]), np.full(2, np.nan))
        with pytest.raises(sl.MeasurementFailed, match=r"the mean .* of b is"):
            Answers.of_calls(session.problem, tickets, given)
    assert len(list(store.read("main"))) == n_events


def test_scores_of_calls_on_shared_items_are_checked_one_by_one() -> None:
    problem = sl.Problem(1, 0.1, 0.1, names=["a", "b"], rewards=sl.Bounded(0, 5, 1), items=20)
    tickets = sl.Session(problem).ask()
    good = [np.ones(count) for count in tickets.counts.tolist()]

    def told(*scores: Any) -> Answers:
        given = Summaries(tickets.counts, np.array([one.mean() for one in scores]), np.full(2, np.nan))
        given = Summaries(given.counts, given.means, given.variances, scores=[*scores])
        return Answers.of_calls(problem, tickets, given)

    assert told(*good).scores is not None
    for value in (5.5, -1.0, 2.5):  # above, below, and between two steps; the mean is within the bounds
        wrong_one = good[1].copy()
        wrong_one[3] = value
        with pytest.raises(sl.MeasurementFailed, match="of b"):
            told(good[0], wrong_one)
    with pytest.raises(sl.MeasurementFailed, match="exactly one score"):
        told(good[0], good[1][1:])
    with pytest.raises(sl.MeasurementFailed, match="not their mean"):
        Answers.of_calls(problem, tickets, Summaries(tickets.counts, np.ones(2), np.full(2, np.nan)))


@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Bounded(0, 1)])
@pytest.mark.parametrize("items", [None, 40])
def test_an_epsilon_for_which_every_answer_is_right_is_refused(
    rewards: sl.Bounded, items: int | None, tmp_path: Path
) -> None:
    problem = sl.Problem(1, 5.0, 0.1, n=2, rewards=rewards, items=items)
    store = tmp_path / "runs.db"
    with pytest.raises(InvalidProblem, match=r"`epsilon` is 5, but rewards lie between 0 and 1.*below 1"):
        sl.Session(problem, store=store)
    sl.Session(problem.changed(epsilon=1.0), store=store).close()


def test_a_run_that_was_begun_with_such_an_epsilon_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = sl.Problem(1, 5.0, 0.1, n=2, rewards=sl.Bounded(0, 1), items=40)
    with monkeypatch.context() as earlier:
        earlier.setattr("shortlist.session.session._refuse_trivial", lambda _: None)
        sl.Session(problem, store=tmp_path / "runs.db").close()
    for session in (sl.Session.resume(tmp_path / "runs.db"), sl.Session(problem, store=tmp_path / "runs.db")):
        assert session.problem.epsilon == 5
        session.close()
