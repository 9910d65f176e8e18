"""Input files: what is no file is refused at once, a pipe is read to its end, and there are limits."""

import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shortlist.errors import StoreTrouble
from shortlist.input_files import read_bytes
from shortlist.store import open_store
from tests.cli.calling import QUESTION


def refusal(path: Path, most: int = 100) -> str:
    """Return why a file is not read, which must be said at once."""
    start = time.monotonic()
    with pytest.raises(OSError) as caught:
        read_bytes(path, most)
    assert time.monotonic() - start < 5
    return str(caught.value.strerror)


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    assert read_bytes(tmp_path / "a", 100) == b"x" * 100
    (tmp_path / "b").write_bytes(b"x" * (1 << 20) + b"x")
    assert refusal(tmp_path / "b", 1 << 20) == "it is larger than 1 MiB, which is the maximum"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        assert refusal(tmp_path / "socket") == "it is a socket, not a file"
    assert refusal(tmp_path) == "it is a folder, not a file"
    assert refusal(Path("/dev/zero")) == "it is a device, not a file"
    assert refusal(tmp_path / "a\0b") == "its name has a NUL character in it"
    assert refusal(tmp_path / "missing") == "No such file or directory"


def test_a_pipe_that_nobody_writes_to_is_given_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "it is a pipe without a writer"


def test_a_pipe_is_read_to_its_end_however_slowly_it_is_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    slowly = "printf one; sleep 0.2; printf ' two'"
    with subprocess.Popen(["sh", "-c", f"sleep 0.1; ({slowly}) > pipe"], cwd=tmp_path):
        assert read_bytes(tmp_path / "pipe") == b"one two"
    with subprocess.Popen(["sh", "-c", "yes > pipe"], cwd=tmp_path, stderr=subprocess.DEVNULL):
        assert refusal(tmp_path / "pipe", 1 << 20).startswith("it is larger than 1 MiB")


@pytest.mark.slow
def test_process_substitution_works(tmp_path: Path) -> None:
    (tmp_path / "trial.toml").write_text(QUESTION)
    command = f"{sys.executable} -m shortlist plan <(cat trial.toml) --json"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_store_is_a_file_or_nothing_yet(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.db"))
        for name, kind in [("pipe.db", "a pipe"), ("socket.db", "a socket"), ("/dev/null", "a device")]:
            for options in ({}, {"read_only": True}):
                with pytest.raises(StoreTrouble, match=f"is {kind}; it must be a file"):
                    open_store(tmp_path / name, **options)  # type: ignore[arg-type]
    assert stat.S_ISFIFO((tmp_path / "pipe.db").stat().st_mode)
    with pytest.raises(StoreTrouble, match="NUL character"):
        open_store(tmp_path / "a\0b")
