"""Runs that compare arms within blocks: fed day by day, or measured batch by batch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

import shortlist as sl
from shortlist.certificates.assumptions import FED_IN_BLOCKS
from shortlist.drift import drift_note
from shortlist.errors import InvalidAnswers, InvalidProblem
from shortlist.report.model import report_of_run
from shortlist.report.report_text import report_lines
from shortlist.report.run_text import fed_lines
from shortlist.report.verdict import closer
from shortlist.session import Session
from shortlist.session.doubtful_answers import doubt_about_rows
from shortlist.session.feeding import rows_of_sheet
from shortlist.store import MemoryStore
from shortlist.strategies import names, strategy_for, strategy_named
from shortlist.totals import Totals, certify

NAMES = ["A", "B", "C"]
VARIANTS = sl.Problem(m=1, epsilon=0.01, delta=0.05, names=NAMES, rewards=sl.Bernoulli())
MONDAY = ([1200, 1100, 1300], [49, 55, 80])
SUNDAY = ([900, 1000, 1100], [140, 170, 190])


def fed(session: Session, day: tuple[list[int], list[int]], **how: Any) -> Any:
    return session.feed(NAMES, day[0], successes=day[1], **how)


def both(problem: sl.Problem = VARIANTS, **how: Any) -> Any:
    return certify(problem, [MONDAY[0], SUNDAY[0]], successes=[MONDAY[1], SUNDAY[1]], **how)


def same(found: Any, other: Any) -> bool:
    return bool(
        (found.epsilon, found.selected, found.statuses) == (other.epsilon, other.selected, other.statuses)
    )


def test_fed_blocks_certify_what_certify_does() -> None:
    session = Session(VARIANTS, "block-race")
    fed(session, MONDAY, label="mon")
    found = fed(session, SUNDAY, block="sun")
    assert same(found, both())
    assert found.guarantee is not None
    assert found.guarantee.assumptions == ("independent", "within-bounds", *FED_IN_BLOCKS)
    assert "mean of each arm is constant" not in found.guarantee.assumption
    assert [row.block for row in session.history.fed.values()] == ["mon"] * 3 + ["sun"] * 3
    assert session.result.n_fed == 6600


def test_a_run_says_at_its_beginning_which_certificate_it_has() -> None:
    """Blocks of a race are recorded only, and a race by blocks has no other certificate."""
    race = Session(VARIANTS, "race")
    fed(race, MONDAY, label="mon", block="mon")
    found = fed(race, SUNDAY, label="sun", block="sun")
    total = np.add(MONDAY, SUNDAY)
    assert same(found, certify(VARIANTS, total[0], successes=total[1]))
    assert not same(found, both())
    with pytest.raises(InvalidProblem, match="give the `block` of every row"):
        fed(Session(VARIANTS, "block-race"), MONDAY)


def test_rows_sent_again_corrected_and_taken_back(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    session = Session(VARIANTS, "block-race", store=store, name="page")
    fed(session, MONDAY, label="mon")
    fed(session, (SUNDAY[0], [1, 2, 3]), label="sun")
    fed(session, SUNDAY, label="sun")
    assert same(fed(session, SUNDAY, label="sun"), both())
    session.feed(["A"], [400], successes=[30], label="wrong")
    moved = fed(session, ([400, 500, 600], [30, 40, 50]), label="moved", block="x")
    assert not same(moved, both())
    fed(session, ([400, 500, 600], [30, 40, 50]), label="moved", block="y")  # the block was wrong
    assert session.withdraw_rows("moved", "sent by mistake") == 3
    session.withdraw_rows("wrong", "sent by mistake")
    assert same(session.certified, both())
    again = Session.resume(store, "page")
    assert same(again.certified, both())
    assert again.history.state.blocks.names == ("mon", "sun")
    copied = Session.resume(store, "page").history.copy()
    assert same(copied.certified, both())


def test_a_block_has_one_row_of_each_arm() -> None:
    session = Session(VARIANTS, "block-race")
    fed(session, MONDAY, label="mon")
    with pytest.raises(InvalidProblem, match="block 'mon' has a row of B already, under the label 'mon'"):
        session.feed(["B"], [10], successes=[1], label="rest", block="mon")
    with pytest.raises(InvalidProblem, match="block 'tue' has a row of A already"):
        session.feed(["A", "A"], [10, 10], successes=[1, 1], label=["x", "y"], block="tue")
    session.feed(["A"], [500], successes=[20], label="A.csv", block="tue")  # arms of a block may come apart
    found = session.feed(["B", "C"], [500, 500], successes=[21, 60], label="BC.csv", block="tue")
    counts, hits = [MONDAY[0], [500] * 3], [MONDAY[1], [20, 21, 60]]
    assert same(found, certify(VARIANTS, counts, successes=hits))


def test_sheets_have_a_column_of_blocks() -> None:
    rows = [f"{day},{name},{visitors},{hits}" for day, (sizes, some) in (("mon", MONDAY), ("sun", SUNDAY))
            for name, visitors, hits in zip(NAMES, sizes, some, strict=True)]  # fmt: skip
    for header, label in (("block", "week.csv"), ("day", "")):
        session = Session(VARIANTS, "block-race")
        data = "\n".join([f"{header},variant,visitors,conversions", *rows]).encode()
        count = session.feed_rows(rows_of_sheet(session, data, "", "", default_label=label))
        assert count.new == 6
        assert same(session.certified, both())
        assert session.feed_rows(rows_of_sheet(session, data, "", "", default_label=label)).known == 6
    with pytest.raises(InvalidAnswers, match="it has a column of blocks, and the block 'x'"):
        rows_of_sheet(session, b"block,arm,pulls,successes\nmon,A,3,1\n", "a", "", "x")
    with pytest.raises(
        InvalidAnswers, match=r"labels of its own .column `block`., so the label has no effect"
    ):
        rows_of_sheet(session, b"block,arm,pulls,successes\nmon,A,3,1\n", "a", "")
    with pytest.raises(InvalidAnswers, match="line 3 has no block"):
        rows_of_sheet(session, b"block,arm,pulls,successes\nmon,A,3,1\n,B,3,1\n", "a", "")


def test_a_run_goes_on_with_a_smaller_epsilon_and_the_same_tilts() -> None:
    coarse = VARIANTS.changed(epsilon=0.05)
    session = Session(coarse, "block-race", store=(store := MemoryStore()), name="x")
    fed(session, MONDAY, label="mon")
    fed(session, SUNDAY, label="sun")
    assert session.is_done
    before = session.certified
    finer = Session(VARIANTS, "block-race", store=store, name="x")
    assert finer.certified.epsilon == before.epsilon == both(coarse).epsilon != both().epsilon
    assert not finer.is_done
    assert set(finer.asked.counts.tolist()) == {1000}


def test_tilts_do_not_follow_a_smaller_epsilon() -> None:
    """With tilts for 0.019 these results would certify 0.018; with those for 0.2 it is more than 0.019."""
    session = Session(VARIANTS.changed(epsilon=0.2), "block-race", store=(store := MemoryStore()), name="x")
    for number in range(2):
        fed(session, MONDAY, label=f"mon {number}")
        fed(session, SUNDAY, label=f"sun {number}")
    finer = Session(VARIANTS.changed(epsilon=0.019), "block-race", store=store, name="x")
    assert finer.certified.epsilon == session.certified.epsilon > 0.019
    assert not finer.is_done


def measure(arm: int, count: int, rng: np.random.Generator) -> Any:
    return rng.binomial(1, [0.3, 0.36, 0.7][arm], count)


def test_every_batch_is_a_block_and_arms_that_are_out_are_left_out() -> None:
    problem = sl.Problem(m=1, epsilon=0.05, delta=0.05, n=3, rewards=sl.Bernoulli())
    result = sl.select(measure, problem, "block-race", seed=1)
    assert result.selected == ("arm-2",)
    assert result.stop is sl.Stop.CERTIFIED
    assert "at least one block" in str(result)
    two = sl.Problem(m=2, epsilon=0.1, delta=0.05, n=3, rewards=sl.Bernoulli())
    session = Session(two, "block-race", seed=3)
    rounds = []
    sizes = set()
    while not session.is_done:
        tickets = session.ask()
        rounds.append(set(tickets.arms.tolist()))
        sizes.add(len(set(tickets.counts.tolist())))
        rng = np.random.default_rng(len(rounds))
        session.tell(tickets, means=[float(measure(t.arm, t.count, rng).mean()) for t in tickets])
    assert rounds[0] == {0, 1, 2}
    assert rounds[-1] == {0, 1}
    assert sizes == {1}
    assert len(session.history.state.last.blocks.names) == len(rounds)
    assert session.result.certified_epsilon <= 0.1


def test_the_strategy_is_for_rewards_within_bounds() -> None:
    assert names("changing") == ("block-race",)
    assert strategy_for("block-race", VARIANTS).worst_case_pulls(VARIANTS) is None
    with pytest.raises(InvalidProblem, match="rewards of 0 or 1, or within bounds"):
        strategy_named("block-race")
    with pytest.raises(InvalidProblem, match="rewards of 0 or 1, or within bounds"):
        Session(sl.Problem(m=1, epsilon=0.1, delta=0.1, variances=[1.0, 1.0]), "block-race")


# --- drift ------------------------------------------------------------------------------------------


def totals(counts: Any, hits: Any) -> tuple[Totals, list[str]]:
    sizes, some = np.array(counts), np.array(hits)
    arms = np.tile(np.arange(sizes.shape[1]), len(sizes))
    means = some.ravel() / np.maximum(sizes.ravel(), 1)
    days = np.repeat([f"day {day}" for day in range(len(sizes))], sizes.shape[1]).tolist()
    return Totals(arms, sizes.ravel(), means, np.full(len(arms), np.nan)), days


def test_drift_is_noted_as_the_test_of_a_table_says() -> None:
    counts = [[1000, 1000, 900]] * 4
    hits = [[40, 41, 30], [45, 60, 31], [43, 85, 33], [41, 110, 32]]
    note = drift_note(VARIANTS, *totals(counts, hits), is_by_block=False)
    p = p_of([41, 60, 85, 110])
    assert note.words.startswith(
        f"The mean of B changes between blocks by more than chance explains (chi-square test, p = {p:.1g}). "
        f"If a mean changes, what is certified may be wrong."
    )
    assert note.words.endswith(
        "begin another run with the strategy block-race, before you look at the data of that run: "
        "see docs/ab-test.md."
    )
    assert note.may_harm
    within = drift_note(VARIANTS, *totals(counts, hits), is_by_block=True)
    assert within.words.endswith("This does no harm, because arms are compared within blocks.")
    assert not within.may_harm
    hits[2][1], hits[3][1] = 75, 60
    p = p_of([41, 60, 75, 60])
    assert 0.005 / 3 < p < 0.025  # half of a hundredth, for three arms
    assert not drift_note(VARIANTS, *totals(counts, hits), is_by_block=False)
    hits[2][1] = 80
    p = p_of([41, 60, 80, 60])
    assert p < 0.005 < 3 * p
    assert not drift_note(VARIANTS, *totals(counts, hits), is_by_block=False)


def p_of(hits: list[int], size: int = 1000) -> float:
    return float(chi2_contingency(np.array([[one, size - one] for one in hits])).pvalue)


def p_of_all(hits: list[list[int]], size: int = 1000) -> float:
    tests = [
        chi2_contingency(np.array([[one, size - one] for one in arm])) for arm in zip(*hits, strict=True)
    ]
    return float(chi2.sf(sum(one.statistic for one in tests), sum(one.dof for one in tests)))


def test_a_typing_error_is_named_with_its_arm_and_block() -> None:
    counts = [[900, 900, 900]] * 6
    hits = [[31, 29, 30], [28, 33, 27], [30, 27, 33], [26, 72, 29], [33, 30, 31], [29, 28, 26]]
    slip = (
        "Only B changes like this, in day 3: 0.08 there, 0.0327 otherwise. This may be a data-entry "
        "error: check that row."
    )
    within = drift_note(VARIANTS, *totals(counts, hits), is_by_block=True)
    assert within.words.endswith(
        f"{slip} If the numbers are right, this does no harm, because arms are compared within blocks."
    )
    assert within.may_harm
    without = drift_note(VARIANTS, *totals(counts, hits), is_by_block=False)
    assert f"{slip} If a mean changes, what is certified may be wrong." in without.words
    two = drift_note(VARIANTS, *totals(counts[2:4], hits[2:4]), is_by_block=True)
    assert (
        "Only B changes like this: 0.03 in day 0, 0.08 in day 1. This may be a data-entry error" in two.words
    )
    costs = sl.Problem(m=1, epsilon=0.1, delta=0.05, n=3, rewards=sl.Bounded(0, 10), goal="minimise")
    rows, days = totals(counts, hits)
    rows = Totals(rows.arms, rows.counts, 10 * rows.means, rows.variances)
    assert (
        "Only arm-1 changes like this, in day 3: 0.8 there, 0.327 otherwise."
        in drift_note(costs, rows, days, is_by_block=True).words
    )
    hits[3] = [60, 72, 58]
    for is_by_block in (True, False):
        shared = drift_note(VARIANTS, *totals(counts, hits), is_by_block=is_by_block)
        assert shared
        assert "Only" not in shared.words


def test_what_all_arms_have_in_common_is_seen_by_all_together() -> None:
    """Each arm alone passes its test; another arm with more of the same does not make a typing error."""
    counts = [[1000, 1000, 1000]] * 4
    hits = [[40, 42, 41], [44, 41, 40], [42, 40, 43], [67, 68, 68]]
    assert min(p_of([row[arm] for row in hits]) for arm in range(3)) > 0.005 / 3
    note = drift_note(VARIANTS, *totals(counts, hits), is_by_block=False)
    p = p_of_all(hits)
    assert p < 0.005
    assert note.words.startswith(
        f"The means of all arms, tested together, change between blocks by more than chance explains "
        f"(chi-square test, p = {p:.1g})."
    )
    assert "Only" not in note.words
    hits[3] = [62, 63, 63]
    assert 0.005 < p_of_all(hits) < 0.01  # half of a hundredth is for the tests of single arms
    assert not drift_note(VARIANTS, *totals(counts, hits), is_by_block=False)
    hits[3] = [67, 100, 68]
    note = drift_note(VARIANTS, *totals(counts, hits), is_by_block=False)
    assert note.words.startswith("The mean of B changes")
    assert "Only" not in note.words


@pytest.mark.parametrize(("size", "rate", "days"), [(200, 0.04, 20), (1000, 0.3, 4)])
def test_rates_that_do_not_change_are_rarely_noted(size: int, rate: float, days: int) -> None:
    """At 1 %, more than 42 of 3,000 would have a chance of .014; at 2 %, which two whole tests have, .99."""
    rng = np.random.default_rng([size, days])
    counts = np.full((days, 3), size)
    samples = (totals(counts, rng.binomial(counts, rate)) for _ in range(3000))
    n_noted = sum(bool(drift_note(VARIANTS, *sample, is_by_block=False)) for sample in samples)
    assert 10 <= n_noted <= 42


def test_days_with_hardly_any_success_say_nothing_about_drift() -> None:
    counts, hits = (
        [[1000, 1000, 1000], [10, 10, 10], [1000, 1000, 1000]],
        [[40, 41, 30], [4, 0, 0], [45, 39, 31]],
    )
    assert chi2_contingency(np.array([[40, 960], [4, 6], [45, 955]])).pvalue < 1e-4
    assert not drift_note(VARIANTS, *totals(counts, hits), is_by_block=False)
    assert not drift_note(VARIANTS, *totals([[5, 5, 5]], [[1, 1, 1]]), is_by_block=False)
    assert not drift_note(VARIANTS, *totals(np.zeros((0, 3)), np.zeros((0, 3))), is_by_block=False)


@pytest.mark.parametrize("strategy", ["race", "block-race"])
def test_feed_and_reports_say_that_rates_change(strategy: str) -> None:
    session = Session(VARIANTS, strategy)
    fed(session, MONDAY, label="mon")
    assert not session.history.drift
    fed(session, SUNDAY, label="sun")
    note = session.history.drift.words
    assert note.startswith("The mean of ")
    lines = fed_lines(session.history)
    assert lines.index(note) == (0 if strategy == "race" else len(lines) - 2), "a warning comes first"
    assert any("seen over 2 blocks; later blocks may differ." in line for line in lines) == (
        strategy != "race"
    )
    report = report_of_run("page", session.history, session.records)
    assert note in " ".join(" ".join(report_lines(report)).split())
    warned = [finding for finding in report.findings if "chi-square" in finding.words]
    assert [finding.is_warning for finding in warned] == [strategy == "race"]
    assert not any("shortlist doctor" in finding.words for finding in report.findings)


def test_days_of_other_levels_are_not_doubted_if_arms_are_compared_within_days() -> None:
    for strategy, is_doubted in (("race", True), ("block-race", False)):
        session = Session(VARIANTS, strategy)
        fed(session, MONDAY, label="mon")
        rows = session.fed_rows(NAMES, SUNDAY[0], None, None, SUNDAY[1], "sun")
        assert bool(doubt_about_rows(session.history, rows)) == is_doubted


def test_blocks_never_speak_of_the_true_best() -> None:
    """In the mean over days another arm may be better, even if none leads by anything in every block."""
    session = Session(VARIANTS, "block-race")
    for day in range(7):
        session.feed(
            [0, 1, 2], [9000, 9000, 9000], successes=[300, 900, 300], label=f"day {day}", block=f"day {day}"
        )
    assert session.result.is_answer
    assert session.result.certified_epsilon == 0
    assert closer(session.result) == "The result is better than asked: it holds with epsilon 0 (asked: 0.01)."
