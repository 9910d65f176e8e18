"""Every command has a JSON form, tried here or in other tests of this folder."""

import pytest

from tests.cli import test_cli
from tests.cli.calling import SIMULATED, Calls

STORED = {
    "begin": ["begin", "trial.toml"],
    "ask": ["ask", "trial"],
    "tell": ["tell", "trial", "answers.json"],
    "release": ["release", "trial"],
    "stop": ["stop", "trial"],
    "list": ["list"],
    "status": ["status", "trial"],
    "export": ["export", "trial"],
    "replay": ["replay", "trial"],
    "report": ["report", "trial"],
    "prune": ["prune", "trial", "--dry-run"],
    "plot": ["plot", "illustrative"],
    "copy": ["copy", "shortlist.db", "other.db"],
}

ELSEWHERE = {"serve", "feed", "certify", "withdraw", "time", "docs", "examples"}
"""`serve` goes on until it is ended (tests/server/test_serving.py), `time` is tried in test_time.py,
`docs` and `examples` in test_shipped.py, and the others in test_feed.py."""


def test_every_command_is_tried() -> None:
    assert STORED.keys() | test_cli.JSON_CALLS.keys() | ELSEWHERE == set(test_cli.COMMANDS)


@pytest.mark.parametrize("command", STORED)
def test_commands_about_kept_runs_print_json(call: Calls, command: str) -> None:
    call.write("trial.toml", SIMULATED)
    call.write("answers.json", "[]")
    call("begin", "trial.toml")
    done = call(*STORED[command], "--json")
    assert (done.status, done.err) == (0, "")
    assert done.data
