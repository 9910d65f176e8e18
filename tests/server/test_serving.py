"""How a server says where it is, and why it cannot start."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.process import environment, free_port
from tests.server.serving import served

pytestmark = pytest.mark.slow

WITHOUT_FASTAPI = "import sys; sys.modules['fastapi'] = None; from shortlist.cli import main; main()"


def test_programs_are_told_where_it_is_and_its_tokens(tmp_path: Path) -> None:
    with served(tmp_path / "runs.db", "--json", "--host", "0.0.0.0") as server:
        told = json.loads(server.said)
        assert told["url"].endswith(f":{server.port}")
        assert (told["store"], told["read_only"]) == (str(tmp_path / "runs.db"), False)
        for kind in ("read", "write"):
            shown = {"authorization": f"Bearer {told['tokens'][kind]}"}
            assert server.client.get("/index.json", headers=shown).status_code == 200


def test_what_is_not_installed_is_named(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WITHOUT_FASTAPI, "serve", "--store", str(tmp_path / "runs.db")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the server needs fastapi" in done.stderr
    assert "Use: pip install 'fastapi>=" in done.stderr
    assert "'uvicorn>=" in done.stderr
    assert not (tmp_path / "runs.db").exists()


def test_a_terminal_shows_a_code_of_the_address(tmp_path: Path) -> None:
    port = free_port()
    words = [sys.executable, "-m", "shortlist", "serve", "--host", "0.0.0.0", "--port", str(port)]
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        [*words, "--store", str(tmp_path / "runs.db")], stdout=other_end, stderr=other_end, env=environment()
    )
    os.close(other_end)
    try:
        said = b""
        while said.count("▀".encode()) < 50:
            said += os.read(terminal, 4096)
    finally:
        process.terminate()
        process.wait(timeout=30)
        os.close(terminal)
    (line,) = (one for one in said.decode(errors="ignore").splitlines() if "scan this code" in one)
    assert line.endswith(f":{port}"), "the address alone, without a token"
