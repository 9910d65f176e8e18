"""Where a run is found: names of runs as parts of addresses.

Any name will do for a run, but a slash would divide an address, and `.json` at its end is what the plain data
of a page are found by. So `~` is written `~0`, a slash `~1`, and a point at the start, or before letters
at the end, is written `~2`. Other letters are left to the usual escapes.
"""

import re
from urllib.parse import quote

_ESCAPES = {"~": "~0", "/": "~1", ".": "~2"}
_LETTERS = {written: letter for letter, written in _ESCAPES.items()}


def part_of(run: str) -> str:
    """Return the URL segment for a run."""
    escaped = re.sub(r"[~/]|^\.|\.(?=[a-z]+$)", lambda found: _ESCAPES[found[0]], run)
    return quote(escaped, safe="~")


def run_of(part: str) -> str:
    """Return the run for a URL segment, after percent-decoding."""
    return re.sub("~[012]", lambda found: _LETTERS[found[0]], part)


def path_of(run: str, *rest: str) -> str:
    """Return the address of a run's page, or of something that belongs to it."""
    return "/".join(["/runs", part_of(run), *rest])
