"""Feeding many rows at once: the time grows with the rows, and runs beside it go on."""

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.certificates.block_totals import BlockEvidence, BlockTotals, certificate_of_blocks
from shortlist.errors import InvalidAnswers, InvalidProblem
from shortlist.session import Session
from shortlist.session import session as live
from shortlist.session.doubtful_answers import doubt_about_rows
from shortlist.session.feeding import events_for_rows, rows_of_sheet
from shortlist.session.sheet_format import read_sheet
from shortlist.session.state import RunState
from shortlist.store import Event, Fed, MemoryStore
from shortlist.store.sqlite import SqliteStore
from shortlist.strategies.protocol import Added

FEW = sl.Problem(m=1, epsilon=0.02, delta=0.05, n=5, rewards=sl.Bernoulli())
STRATEGIES = ("race", "block-race")


def rows(n: int, seed: int = 0, n_arms: int = 5) -> tuple[list[int], list[int], list[int]]:
    """Return arms, numbers of rewards, and successes."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(50, 100, n)
    return (np.arange(n) % n_arms).tolist(), counts.tolist(), rng.binomial(counts, 0.3).tolist()


def seconds(do: Callable[[], Any]) -> float:
    """Return the time that a call takes of the processor, the least of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        do()
        found.append(time.process_time() - start)
    return min(found)


def counting(session: Session) -> list[int]:
    """Return a list that gets an entry for every decision about fed results."""
    rules, seen = session.history.rules, []
    anytime = rules.anytime
    assert anytime is not None

    def add(state: Any, parts: Sequence[Added]) -> Any:
        seen.append(len(parts))
        return anytime.add(state, parts)

    session.history.rules = replace(rules, anytime=replace(anytime, add=add))
    return seen


def totals_of(history: RunState) -> list[Any]:
    """Return all numbers that decisions depend on, to the last bit."""
    state = getattr(history.state, "last", history.state)
    if history.is_by_block:
        return [state.blocks.names, state.blocks.counts.tobytes(), state.blocks.sums.tobytes()]
    return [array.tobytes() for array in (state.pulls, state.means, state.squares)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_run_decides_once_about_all_blocks_of_a_request(strategy: str) -> None:
    session = Session(FEW, strategy)
    seen = counting(session)
    arms, counts, hits = rows(60)
    names = [f"day {row // 5}" for row in range(60)]
    session.feed(arms, counts, successes=hits, label=names, block=names)
    assert seen == [12, 12]  # for a trial, and for the run
    assert len([one for one in session.records if isinstance(one.event, Fed)]) == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_blocks_of_one_request_count_like_blocks_of_several(strategy: str) -> None:
    rng = np.random.default_rng(1)
    together, apart = Session(FEW, strategy, store=MemoryStore()), Session(FEW, strategy)
    for _ in range(6):
        arms, _, hits = rows(20, seed=int(rng.integers(1000)))
        counts = (rng.integers(100, 150, 20) * (rng.random(20) < 0.8)).tolist()
        hits = np.minimum(hits, counts).tolist()
        labels = [f"label {number}" for number in rng.permutation(30)[:20]]
        blocks = [f"block {number}" for number in rng.integers(0, 4, 20)] if strategy == "race" else labels
        together.feed(arms, counts, successes=hits, label=labels, block=blocks)
        for block in dict.fromkeys(blocks):
            own = np.flatnonzero(np.array(blocks) == block)
            some: dict[str, Any] = {
                "successes": np.array(hits)[own],
                "label": [labels[place] for place in own],
            }
            apart.feed(np.array(arms)[own], np.array(counts)[own], **some, block=block)
        assert totals_of(together.history) == totals_of(apart.history)
        assert together.history.corrections == apart.history.corrections
        assert together.certified.to_dict() == apart.certified.to_dict()
        again = Session.resume(together.log.store)
        assert totals_of(again.history) == totals_of(together.history)
        assert np.array_equal(again.asked.counts, together.asked.counts)


def test_a_block_that_was_emptied_in_between_is_the_last_one_again() -> None:
    late, clean = Session(FEW, "block-race"), Session(FEW, "block-race")
    tickets = late.ask()
    for session in (late, clean):
        for block, count in (("x", 60), ("y", 60), ("x", 0), ("z", 60), ("x", 70)):
            session.feed([0, 1], [count] * 2, successes=[count // 3] * 2, label=block)
    assert late.history.is_late
    late.tell(tickets, means=[0.5] * len(tickets))
    assert [name for name in totals_of(late.history)[0] if name[:1] in "xyz"] == [*"yzx"]
    assert totals_of(clean.history)[0] == ("y", "z", "x")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_store_is_not_locked_while_a_request_is_decided(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "runs.db"
    session = Session(FEW, strategy, store=store)
    n_calls = 0

    def decided(history: RunState, given: Any) -> list[Event]:
        nonlocal n_calls
        n_calls += 1
        Session(FEW, store=SqliteStore(store, patience=0.5), name=f"other-{n_calls}").close()
        return events_for_rows(history, given)

    monkeypatch.setattr(live, "events_for_rows", decided)
    session.feed([0, 1], [50, 60], successes=[20, 20], label="mon")
    assert n_calls == 1
    assert session.history.n_fed == 110


def test_rows_are_decided_again_if_the_log_has_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "runs.db"
    session, other = Session(FEW, "race", store=store), Session(FEW, "race", store=store)
    n_calls = 0

    def decided(history: RunState, given: Any) -> list[Event]:
        nonlocal n_calls
        n_calls += 1
        events = events_for_rows(history, given)
        if n_calls == 1:
            monkeypatch.undo()
            other.feed([0, 1], [50, 60], successes=[20, 20], label="mon")
            monkeypatch.setattr(live, "events_for_rows", decided)
        return events

    monkeypatch.setattr(live, "events_for_rows", decided)
    session.feed([0, 1], [50, 60], successes=[20, 20], label="mon")
    assert n_calls == 2
    assert len([one for one in session.records if isinstance(one.event, Fed)]) == 1


# --- time in proportion to the rows ------------------------------------------------------------------


def sheet(n: int, *, every: int = 1) -> bytes:
    """Return a sheet in which every so many rows are of no arm."""
    lines = [
        f"{f'x{row}' if row % every == 0 else f'arm-{row % 5}'},{50 + row % 37},{10 + row % 7},d{row // 5}"
        for row in range(n)
    ]
    return "\n".join(["arm,pulls,successes,label", *lines]).encode()


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 2])
def test_a_sheet_with_names_of_no_arms_is_refused_in_proportion_to_its_size(every: int) -> None:
    session = Session(FEW, "race")

    def refused(n: int) -> Callable[[], None]:
        data = sheet(n, every=every)

        def read() -> None:
            with pytest.raises(InvalidAnswers, match="line 2: there is no arm 'x0'"):
                rows_of_sheet(session, data, "", "")

        return read

    assert seconds(refused(16_000)) < 20 * seconds(refused(2_000))


@pytest.mark.slow
def test_many_labels_are_looked_at_in_proportion_to_their_number() -> None:
    session = Session(FEW, "race")

    def looked(n: int) -> Callable[[], str]:
        arms, counts, hits = rows(n)
        labels = [f"day {row}" for row in range(n)]
        return lambda: doubt_about_rows(
            session.history, session.fed_rows(arms, counts, None, None, hits, labels)
        )

    assert seconds(looked(16_000)) < 20 * seconds(looked(2_000))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_blocks_are_fed_in_proportion_to_their_number(strategy: str) -> None:
    def fed(n: int) -> Callable[[], object]:
        arms, counts, hits = rows(n)
        names = [f"day {row // 5}" for row in range(n)]
        return lambda: Session(FEW, strategy).feed(arms, counts, successes=hits, label=names, block=names)

    assert seconds(fed(4_000)) < 8 * seconds(fed(1_000))


@pytest.mark.slow
def test_a_ticket_with_very_many_lines_is_read_in_proportion_to_them() -> None:
    def read(n: int) -> Callable[[], object]:
        lines = [f"abcdef-r0-a0,{item},1" for item in range(n)]
        data = "\n".join(["ticket,item,reward", *lines]).encode()
        return lambda: read_sheet(data)

    assert seconds(read(40_000)) < 20 * seconds(read(5_000))


def test_the_steps_of_evidence_are_computed_once_for_all_epsilons(monkeypatch: pytest.MonkeyPatch) -> None:
    n_calls, steps = 0, BlockEvidence._steps

    def counted(self: BlockEvidence, *sizes: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        return steps(self, *sizes)

    monkeypatch.setattr(BlockEvidence, "_steps", counted)
    arms, counts, hits = rows(50)
    names = tuple(f"day {row // 5}" for row in range(50))
    columns = (np.array(column) for column in (arms, counts, [float(hit) for hit in hits]))
    certificate_of_blocks(FEW, BlockTotals.none(5).added(names, *columns), selected=np.array([0]))
    assert n_calls == 2  # for the smallest epsilon, and for that of the question


def test_blocks_without_both_arms_of_a_pair_take_no_time() -> None:
    names = tuple(f"day {row}" for row in range(50))
    found = BlockTotals.none(5).added(names, np.arange(50) % 5, np.full(50, 60), np.full(50, 20.0))
    evidence = BlockEvidence.of(5, 1, 0.05, 0.02)
    ((_, terms),) = evidence._terms(found, np.array([1, 2, 3, 4]), np.zeros(4, dtype=np.int64))
    assert terms.up.size == 0
    assert (terms.logs(np.full(4, 0.5)) == 0).all()


# --- memory ----------------------------------------------------------------------------------------------


def test_the_note_on_changing_means_takes_memory_for_rows_only() -> None:
    many = sl.Problem(m=1, epsilon=0.02, delta=0.05, n=3000, rewards=sl.Bernoulli())
    session = Session(many, "race")
    arms, counts, hits = rows(3000, n_arms=3000)
    session.feed(arms, counts, successes=hits, label=[f"day {row}" for row in range(3000)])
    tracemalloc.start()
    try:
        assert not session.history.drift
        assert tracemalloc.get_traced_memory()[1] < 10_000_000  # a table would take 144 MB
    finally:
        tracemalloc.stop()


def test_more_blocks_than_can_be_held_are_refused() -> None:
    many = sl.Problem(m=1, epsilon=0.02, delta=0.05, n=1_000_000, rewards=sl.Bernoulli())
    session = Session(many, "block-race")
    with pytest.raises(
        InvalidProblem, match=r"1,000,000 arms on 101 blocks would need about 1.6 GB .* at most 100 "
    ):
        session.feed([0] * 101, [50] * 101, successes=[20] * 101, label=[f"day {row}" for row in range(101)])
    assert session.history.n_fed == 0
