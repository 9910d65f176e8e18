"""Names as spreadsheets return them; and names that are made to keep whoever compares them busy."""

import itertools
import re
import time

import pytest

from shortlist.errors import InvalidAnswers
from shortlist.escaping import is_name
from shortlist.session.sheet_format import read_sheet

LOST = "\ufffd"
LONG = 20_000
DEADLINE = 2.0  # seconds; all of these take a few milliseconds


def words(letters: str, longest: int) -> list[str]:
    """Return all words of some letters."""
    sizes = range(longest + 1)
    return ["".join(word) for size in sizes for word in itertools.product(letters, repeat=size)]


def test_lost_letters_stand_for_one_letter_or_more() -> None:
    names = words("ab", 5)
    for cell in words(f"ab{LOST}", 5):
        pattern = re.compile(".+".join(map(re.escape, re.split(f"{LOST}+", cell))))
        for name in names:
            assert is_name(cell, name) == bool(pattern.fullmatch(name)), (cell, name)


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        (f"{LOST}a" * 12 + "b", "a" * 60),
        (f"a{LOST}" * (LONG // 2) + "b", "a" * LONG),
        (f"{'a' * 300}b{LOST}" * (LONG // 600) + "c", "a" * LONG),
        (f"{LOST}{'ab' * (LONG // 4)}c", "ab" * LONG),
        ("a" + "\u0315\u0300" * LONG, "a" + "\u0300\u0315" * LONG),
        (" " * LONG + LOST, "a" * LONG + " b" * LONG),
    ],
    ids=["few letters", "many parts", "long parts", "one long part", "combining marks", "spaces"],
)
def test_no_name_takes_long_to_compare(cell: str, name: str) -> None:
    start = time.perf_counter()
    is_name(cell, name)
    is_name(name, cell)
    assert time.perf_counter() - start < DEADLINE


@pytest.mark.parametrize("cell", ["1" * LONG + "x", "1" * LONG + ",x", f"1e{'1' * LONG}x", "." * LONG])
def test_no_number_takes_long_to_read(cell: str) -> None:
    start = time.perf_counter()
    with pytest.raises(InvalidAnswers, match="line 2: the mean is"):
        read_sheet(f'ticket;mean\nkqzf-r0-a0;"{cell}"\n'.encode())
    assert time.perf_counter() - start < DEADLINE
