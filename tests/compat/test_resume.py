"""Runs begun with an earlier version go on, to the answer that it would have given, bit for bit."""

import json
import re
import shutil
from pathlib import Path

import psycopg
import pytest

import shortlist as sl
from tests.cli.calling import Calls
from tests.compat.cases import (
    BY_HAND,
    CASES,
    DUMP,
    FILES,
    LIMITS,
    OUTCOMES_0_2,
    PROBLEM_FILES,
    SQLITE,
    SQLITE_0_2,
    answer,
    by_hand,
    outcome,
    recorded,
)

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgres"])
def old_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store as 0.1.0 left it."""
    if request.param == "sqlite":
        return str(shutil.copy(SQLITE, tmp_path / "runs.db"))
    address: str = request.getfixturevalue("postgres")
    found = re.search(r"search_path%3D(\w+)", address)
    assert found is not None
    dump = DUMP.read_text(encoding="utf-8").replace("public.", f"{found[1]}.")
    with psycopg.connect(address) as connection:
        connection.execute(dump.encode())
    return address


@pytest.mark.slow
def test_every_run_resumes_to_its_answer(old_store: str) -> None:
    for name, case in CASES.items():
        begun = sl.Session.resume(old_store, name)
        assert 0 < begun.n_pulls < recorded()[name]["n_pulls"]
        begun.close()
        result = sl.select(
            case.measure, case.problem, case.strategy, seed=3, store=old_store, name=name, **case.options
        )
        assert (name, outcome(result)) == (name, recorded()[name])


def test_a_run_of_version_0_2_0_keeps_its_rule(tmp_path: Path) -> None:
    store = str(shutil.copy(SQLITE_0_2, tmp_path / "runs.db"))
    expected = json.loads(OUTCOMES_0_2.read_text(encoding="utf-8"))["limits"]
    question = (LIMITS.measure, LIMITS.problem, LIMITS.strategy)
    assert outcome(sl.select(*question, seed=3, store=store, name="limits")) == expected
    anew = sl.select(*question, seed=3)
    assert anew.n_rounds < expected["n_rounds"]


def test_a_run_measured_by_hand_goes_on(old_store: str) -> None:
    problem, strategy = by_hand()
    with sl.Session(problem, strategy, seed=3, store=old_store, name=BY_HAND) as session:
        assert len(session.conflicts) == 1
        while tickets := session.ask():
            session.tell(tickets, [answer(ticket) for ticket in tickets])
        assert outcome(session.result) == recorded()[BY_HAND]


@pytest.mark.parametrize("name", PROBLEM_FILES)
def test_the_same_command_resumes(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(shutil.copy(SQLITE, tmp_path / "runs.db"))
    call = Calls(FILES, capsys, monkeypatch)
    options = ("--seed", "3", "--name", name, "--strategy", "race", "--store", store)
    done = call("run", f"{name}.toml", *options)
    assert done.status == 0, done.err
    with sl.Session.resume(store, name) as session:
        assert outcome(session.result) == recorded()[name]
