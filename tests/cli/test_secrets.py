"""A password reaches no screen, file or log, whatever the form of the address and whatever goes wrong."""

import logging
import os
from pathlib import Path

import pytest

from shortlist.client import Client
from shortlist.errors import InvalidProblem, StoreTrouble
from shortlist.store import open_store
from shortlist.store.address import masked, shown
from tests.cli.calling import QUESTION, SIMULATED, Calls

SECRET = "hUnTer2"
FORMS = [
    f"postgresql://me:{SECRET}@127.0.0.1:1/lab",
    f"postgres://me:{SECRET}@127.0.0.1:1/lab",
    f"postgresql+psycopg://me:{SECRET}@127.0.0.1:1/lab",
    f"postgresql://me:{''.join(f'%{ord(letter):x}' for letter in SECRET)}@127.0.0.1:1/lab",
    f"postgresql://me:x@{SECRET}/y@127.0.0.1:1/lab",
    f"postgresql://me:x {SECRET}@127.0.0.1:1/lab",
    f"postgresql://:{SECRET}@127.0.0.1:1/lab",
    f"postgresql://127.0.0.1:1/lab?password={SECRET}",
    f"postgresql://127.0.0.1:1/lab?user=me&PASSWORD={SECRET}",
    f"postgresql://127.0.0.1:1/lab?p%61ssword={SECRET}",
    f"postgresql://127.0.0.1:1/lab?sslpassword={SECRET}&sslmode=require",
    f"postgresql://127.0.0.1:1/lab?passfile=/home/me/{SECRET}",
    f"postgresql://127.0.0.1:1/lab?{SECRET}=1",
    f"postgresql://me:{SECRET}@127.0.0.1:port/lab",
    f"postgresql://me:{SECRET}@127.0.0.1/lab?port=abc",
    f"postgresql://me:{SECRET}@[::1/lab",
    f"POSTGRESQL://me:{SECRET}@127.0.0.1:1/lab",
    f"postgresql:/me:{SECRET}@127.0.0.1:1/lab",
    f"postgresql:me:{SECRET}@127.0.0.1:1/lab",
    f"mysql://me:{SECRET}@127.0.0.1:1/lab",
    f"me:{SECRET}@127.0.0.1/lab",
    f"host=127.0.0.1 port=1 user=me password={SECRET} dbname=lab",
    f"password = 'a {SECRET}' host=127.0.0.1 port=1",
    f"http://me:{SECRET}@127.0.0.1:1/lab?token={SECRET}",
]


@pytest.mark.parametrize("address", FORMS)
def test_an_address_is_shown_without_its_password(address: str) -> None:
    for text in (address, f"--store={address}"):
        assert SECRET not in shown(text)
        assert SECRET not in masked(f'could not find "{text}" and "{SECRET}" anywhere', text)


@pytest.mark.parametrize("address", FORMS)
def test_no_error_of_a_store_has_the_password(address: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreTrouble) as caught:
        open_store(address)
    error = caught.value
    assert SECRET not in str(error)
    assert SECRET not in caplog.text
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


COMMANDS = [
    ["begin", "trial.toml"],
    ["run", "sim.toml"],
    ["run", "sim.toml", "--report", "sim.html"],
    ["ask", "sim"],
    ["tell", "sim", "sheet.csv"],
    ["status", "sim", "--json"],
    ["list", "--json"],
    ["report", "sim", "-o", "sim.html"],
    ["export", "sim", "--output", "sim.csv"],
    ["replay", "sim"],
    ["plot", "arms", "sim", "--json"],
    ["prune", "--finished", "--yes"],
    ["serve", "--port", "0"],
]


def written(folder: Path) -> str:
    """Return the names and the bytes of all files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(f"{path} {path.read_bytes()!r}" for path in files)


@pytest.mark.parametrize("place", ["option", "joined", "environment"])
def test_no_command_prints_or_writes_the_password(
    call: Calls, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    call.write("trial.toml", QUESTION)
    call.write("sim.toml", SIMULATED)
    call.write("sheet.csv", "ticket,mean\nabcd-r0-a0,1\n")
    for number, address in enumerate(FORMS):
        monkeypatch.setenv("SHORTLIST_STORE", address if place == "environment" else "")
        option = {"option": ["--store", address], "joined": [f"--store={address}"], "environment": []}[place]
        for command in (COMMANDS[number % len(COMMANDS)], COMMANDS[(number + 7) % len(COMMANDS)]):
            done = call(*command, *option)
            assert done.status in {2, 4}, (command, address, done)
            assert SECRET not in done.out + done.err, (command, address)
        for done in (call("copy", address, "copy.db"), call("copy", "trial.toml", address)):
            assert done.status in {2, 4}
            assert SECRET not in done.out + done.err, address
    assert SECRET not in written(call.folder)


def test_what_resumes_a_run_and_its_report_have_no_password(
    call: Calls, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call.write("sim.toml", SIMULATED)
    address = postgres.replace("shortlist@", f"shortlist:{SECRET}@")
    assert address != postgres
    for option in (["--store", address], [f"--store={address}"]):
        done = call("run", "sim.toml", *option, "--budget", "1", "--report", "report.html")
        assert done.status == 3
        assert '"$SHORTLIST_STORE"' in done.err
        assert SECRET not in done.out + done.err + written(call.folder)
    monkeypatch.setenv("SHORTLIST_STORE", address)
    for command in (
        ["run", "sim.toml", "--report", "report.json"],
        ["begin", "sim.toml", "--json"],
        ["list", "--json"],
        ["report", "sim", "--json"],
        ["report", "sim", "-o", "again.html"],
        ["export", "sim", "--json"],
        ["copy", address, "copy.db"],
    ):
        done = call(*command)
        assert done.status == 0, done
        assert SECRET not in done.out + done.err
    assert SECRET not in written(call.folder)


def test_a_bug_is_reported_without_the_password(call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"no idea what {SECRET} means")

    monkeypatch.setattr("shortlist.store.open_store", broken)
    monkeypatch.setattr("tempfile.tempdir", str(call.folder))
    done = call("list", "--store", f"postgresql://me:{SECRET}@server/lab")
    assert done.status == 4
    assert "this is a bug in Shortlist" in done.err
    assert "RuntimeError: no idea what *** means" in done.err
    assert "Traceback" not in done.err
    (report,) = call.folder.glob("shortlist-bug-*.txt")
    assert str(report) in done.err
    assert "in broken" in report.read_text()
    assert SECRET not in report.read_text()


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{SECRET}@127.0.0.1:1",
        f"http://127.0.0.1:1/?token={SECRET}",
        f"http://127.0.0.1:1/#{SECRET}",
        f"ftp://me:{SECRET}@127.0.0.1:1",
        f"http://me:{SECRET}@[::1",
    ],
)
def test_the_address_of_a_server_is_shown_without_its_password(call: Calls, url: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        Client(url)
    assert SECRET not in str(caught.value)
    call.write("sim.toml", SIMULATED)
    done = call("run", "sim.toml", "--server", url)
    assert done.status == 2
    assert SECRET not in done.out + done.err


@pytest.mark.slow
def test_a_token_is_never_shown(call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    call.write("sim.toml", SIMULATED)
    for token in (SECRET, f"{SECRET} and more", f"{SECRET}\n", f"ü{SECRET}"):
        monkeypatch.setenv("SHORTLIST_TOKEN", token)
        done = call("run", "sim.toml", "--server", "http://127.0.0.1:1")
        assert done.status in {2, 4}
        assert SECRET not in done.out + done.err
    call.write("token", f"{SECRET} {SECRET} {SECRET}\n")
    os.chmod(call.folder / "token", 0o600)
    for option in (["run", "sim.toml", "--server", "http://127.0.0.1:1"], ["serve", "--port", "0"]):
        done = call(*option, "--token-file", "token")
        assert done.status == 2
        assert SECRET not in done.out + done.err


def test_a_file_may_have_a_name_that_looks_like_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("host=1.db", "me:you@home.db", "postgresql:runs.db"):
        with pytest.raises(StoreTrouble, match="looks like the address of a database"):
            open_store(name)
        Path(name).touch()
        assert open_store(name).runs() == []
