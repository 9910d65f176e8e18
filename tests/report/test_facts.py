"""What a report says of a run is what its log says."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.report.model import Report, report_of_result
from shortlist.report.page import page
from shortlist.report.report_text import report_lines
from shortlist.report.run_warnings import _thin, findings_of
from shortlist.report.shown_arms import MOST_ROWS, Left, shown_arms
from shortlist.report.verdict import standing
from tests.report import samples
from tests.report.samples import append, fresh, problem, report_of, told


@pytest.mark.parametrize("kind", sorted(samples.ALL))
def test_sums_agree(kind: str) -> None:
    report = samples.ALL[kind]()
    result = report.result
    assert sorted(report.order.tolist()) == list(range(result.problem.n))
    assert report.rounds is not None
    assert report.rounds.n_whole == result.n_rounds
    assert int(report.rounds.pulls.sum()) == result.n_pulls
    assert (report.rounds.n_open == 0) == report.is_finished
    assert sum(work.n_pulls for work in report.workers) == result.n_pulls
    if report.workers:
        assert math.fsum(work.share for work in report.workers) == pytest.approx(1)
    rows = shown_arms(report)
    left = np.concatenate([row.arms for row in rows.rows if isinstance(row, Left)] or [np.array([], int)])
    assert sorted([*rows.arms, *left.tolist()]) == list(range(result.problem.n))
    assert len(rows.rows) <= MOST_ROWS
    n_above = sum(1 if isinstance(row, int) else len(row.arms) for row in rows.above)
    assert n_above == report.n_above


@pytest.mark.parametrize("kind", ["small", "interrupted", "minimising", "hostile"])
def test_the_best_arms_stand_at_the_top(kind: str) -> None:
    report = samples.ALL[kind]()
    means = report.result.arms.means[report.order]
    sign = 1 if kind == "minimising" else -1
    for part in (means[: report.n_above], means[report.n_above :]):
        assert (np.diff(sign * part) >= 0).all()
    if report.is_finished:
        assert report.order[: report.n_above].tolist() == report.result.indices.tolist()


STATES = {
    "small": "certified",
    "large": "certified",
    "interrupted": "open",
    "failed": "suspended",
    "hostile": "certified",
    "nothing_to_do": "certified",
    "begun": "open",
    "unproved": "unproved",
    "screened": "screened",
    "unknown": "certified",
    "minimising": "certified",
}


@pytest.mark.parametrize("kind", sorted(samples.ALL))
def test_every_kind_of_run_has_its_state(kind: str) -> None:
    assert samples.ALL[kind]().state == STATES[kind]


def test_workers_have_their_own_pulls() -> None:
    session = fresh(problem(4, 1), "wnelim")
    asked = session.asked
    session.tell(asked[:3], means=[0.1, 0.2, 0.3], worker="ann")
    session.tell(asked[3], means=0.9, worker="bob")
    ann, bob = report_of(session).workers
    assert (ann.worker, ann.n_answers, ann.n_pulls) == ("ann", 3, int(asked.counts[:3].sum()))
    assert (bob.worker, bob.n_answers, bob.share) == ("bob", 1, 0.25)


def test_intervals_come_from_variances_and_pulls() -> None:
    report = samples.small()
    assert report.errors is not None
    assert report.errors == pytest.approx(np.sqrt(0.25 / report.result.arms.pulls))
    begun = samples.begun().errors
    assert begun is not None
    assert np.isnan(begun).all()


def test_intervals_of_unknown_variances_come_from_the_pilot() -> None:
    report = samples.unknown()
    assert report.errors is not None
    scales = report.errors * np.sqrt(report.result.arms.pulls)
    assert (np.abs(scales / [1, 2, 3, 4] - 1) < 0.5).all()
    assert report_of_result(report.result).errors is None


def test_bounds_are_those_of_the_plan() -> None:
    report, plan = samples.small(), sl.plan(samples.small().result.problem)
    assert report.cap == plan["race"].worst_case_pulls
    assert dict(report.rivals) == {name: plan[name].worst_case_pulls for name in ("wnelim", "vmedelim")}
    assert report.result.lower_bound == plan.lower_bound
    assert samples.unknown().rivals == {}
    huge = sl.Problem(m=1, epsilon=1e-6, delta=0.05, variances=[1.0, 1.0, 1.0])
    assert report_of(fresh(huge, "wnelim")).rivals["vmedelim"] is None


def test_a_result_alone_has_a_report() -> None:
    whole = samples.small()
    alone = report_of_result(whole.result)
    assert (alone.state, alone.cap, alone.rivals) == (whole.state, whole.cap, whole.rivals)
    assert (alone.rounds, alone.origin, alone.workers) == (None, None, ())


def test_a_budget_that_ended_is_said() -> None:
    result = sl.select(lambda _, count, rng: rng.random(count), problem(), budget=100)
    assert report_of_result(result).state == "stopped"
    session = fresh(problem())
    assert report_of(session, stop=sl.Stop.BUDGET).state == "stopped"


# --- findings -------------------------------------------------------------------------------------


def variation(scale: float, drift: float = 0.0) -> list[str]:
    """Return what is found if noise is so many times as large as stated, and means drift."""
    session, rng = fresh(problem(30, 5), "level-race"), np.random.default_rng(3)
    while len(asked := session.asked):
        noise = 0.5 * scale * rng.standard_normal(len(asked)) / np.sqrt(asked.counts)
        session.tell(asked, means=asked.arms / 30 + noise + drift * asked.round)
    return [one.words for one in report_of(session).findings]


def test_means_that_vary_as_stated_are_no_finding() -> None:
    assert variation(1.0) == []


def test_noise_beyond_the_stated_is_found() -> None:
    (words,) = variation(2.0)
    assert words.startswith("From batch to batch, the means of an arm vary ")
    assert "times as much as the stated variances allow. Either the stated variances are too small" in words
    (words,) = variation(1.0, drift=0.5)
    assert "rewards drift" in words


def test_noise_far_below_the_stated_is_a_hint() -> None:
    (words,) = variation(0.2)
    assert words.endswith("If smaller variances are valid, state them to save pulls.")


def coins(drift: float = 0.0) -> Report:
    """Return the report on a run about rare successes, whose rates may drift."""
    asked = sl.Problem(1, 0.05, 0.1, n=6, rewards=sl.Bernoulli())
    session, rng = fresh(asked), np.random.default_rng(3)
    while len(tickets := session.asked):
        rates = 0.02 + 0.02 * tickets.arms + drift * (tickets.round % 2)
        session.tell(tickets, means=rng.binomial(tickets.counts, rates) / tickets.counts)
    return report_of(session)


def test_rare_successes_vary_as_their_means_imply_and_not_as_the_largest_variance() -> None:
    assert coins().findings == ()
    (words,) = (one.words for one in coins(drift=0.3).findings)
    assert "as those of independent rewards can. Rewards drift, or depend on each other" in words


def test_standard_errors_of_rewards_within_bounds_follow_from_the_means() -> None:
    found = coins()
    assert found.errors is not None
    means, pulls = found.result.arms.means, found.result.arms.pulls
    rates = (means * pulls + 1) / (pulls + 2)
    assert found.errors == pytest.approx(np.sqrt(rates * (1 - rates) / pulls))
    assert "from the observed means" in page(found)
    assert "vary as those of independent rewards" in page(found)
    assert "stated variances" not in page(found)
    data = sl.plot.arms_data(found.result)
    assert sorted(data.errors) == pytest.approx(sorted(2 * found.errors))


def test_rewards_that_repeat_are_found() -> None:
    (words,) = variation(0.0)
    assert words.startswith("Every arm gave exactly the same mean in every round.")


def test_chance_alone_is_hardly_ever_a_finding() -> None:
    rng = np.random.default_rng(4)
    for _ in range(10):
        session = fresh(problem(12, 3), "race")
        while len(asked := session.asked):
            noise = 0.5 * rng.standard_normal(len(asked)) / np.sqrt(asked.counts)
            session.tell(asked, means=asked.arms / 12 + noise)
        assert not [one for one in report_of(session).findings if one.is_warning]


def test_a_single_pull_is_named_in_the_singular() -> None:
    result = samples.small().result
    assert (
        " 1 of them was measured ahead and not needed. 1 of them failed and was scored."
        in replace(result, n_ahead=1, n_scored=1).effort
    )
    assert " 2 of them were measured ahead" in replace(result, n_ahead=2).effort


def test_scores_of_a_result_alone_are_found() -> None:
    (finding,) = findings_of(replace(samples.small().result, n_scored=3))
    assert finding.is_warning
    assert finding.words == (
        "3 pulls of 1,536 (0.2 %) failed and were scored. The guarantee counts the score of a failed pull as "
        "its reward. The stated variances must hold with these rewards included."
    )


@pytest.mark.parametrize(
    ("rewards", "end"),
    [
        (sl.Bernoulli(), "The guarantee counts the score of a failed pull as its reward."),
        (sl.Gaussian(), "Rewards must be Gaussian with these rewards included."),
    ],
)
def test_what_scores_must_fulfil_depends_on_what_is_known(
    rewards: sl.Bernoulli | sl.Gaussian, end: str
) -> None:
    asked = sl.Problem(m=1, epsilon=0.5, delta=0.1, n=3, rewards=rewards)

    def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
        return rng.integers(0, 2, count) if asked.is_binary else rng.normal(arm, 1.0, count)

    result = sl.select(measure, asked)
    assert any(one.words.endswith(end) for one in findings_of(replace(result, n_scored=3)))


def test_what_was_suspended_counts_only_while_it_lasts() -> None:
    session = told(fresh(problem()), np.linspace(0, 1, 10), rounds=1)
    append(session, sl.store.Suspended("no power"))
    assert report_of(session).suspended == "no power"
    report = report_of(told(session, np.linspace(0, 1, 10)))
    assert (report.state, report.resume, report.suspended) == ("certified", "", "")


def test_thin_means_are_noted() -> None:
    report: Report = samples.minimising()
    n = int((report.result.arms.pulls[report.result.indices] < 5).sum())
    (finding,) = report.findings
    assert not finding.is_warning
    assert finding.words.startswith(f"The means of {n} selected arms are based on fewer than 5 pulls.")


def test_rows_that_were_known_are_neither_counted_nor_doubted() -> None:
    rates = np.array([0.9, 0.5, 0.6, 0.4, 0.5, 0.3])
    table = (np.random.default_rng(0).random((6, 200)) < rates[:, None]).astype(float)
    problem = sl.Problem(
        m=1, epsilon=0.03, delta=0.05, n=6, rewards=sl.Bernoulli(), items=200, known={0: table[0]}
    )
    assert "5 arms have not been pulled at all" in standing(report_of(fresh(problem)))
    result = sl.select(lambda arm, items: table[arm, items], problem)
    assert result.indices.tolist() == [0]
    assert f"{result.n_pulls:,} of 1,000 scores" in str(result), "the known row is not measured"
    assert _thin(result) == [], "its mean is exact"
    lines = report_lines(report_of_result(result))
    assert f"arm-0 ({table[0].mean():.4f}, known before)" in lines[1]
    errors = report_of_result(result).errors
    assert errors is not None
    assert errors[0] == 0
    pulls = result.arms.pulls[1:]
    spread = np.sqrt(problem.variances_at(result.arms.means, result.arms.pulls)[1:] / pulls)
    assert errors[1:] == pytest.approx(spread * np.sqrt(1 - pulls / 200)), "a mean over all items is exact"
