"""Messages on standard error."""

import os

import pytest

from shortlist.cli.output import say


def test_messages_are_wrapped_at_words_and_commands_are_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "  shortlist run trial.toml --retries 0 --turns 1 --store somewhere/else/runs.db"
    message = f"Error: the run had made 8 pulls of at most 120, and stopped. To resume:\n{command}"
    say(message)
    assert capsys.readouterr().err == f"{message}\n", "files get lines as they are"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((30, 24)))
    say(message)
    *lines, last = capsys.readouterr().err.splitlines()
    assert last == command
    assert max(map(len, lines)) <= 30
    assert " ".join(lines) == message.split("\n", maxsplit=1)[0]
