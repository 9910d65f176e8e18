"""Names that others chose, made fit for terminals and for spreadsheets."""

import re
import unicodedata

_TURNING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_TURNING}]")
_TURNS = re.compile(f"[{_TURNING}]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_LOST = "\ufffd"  # replaces a character that could not be decoded
_LONGEST = 500  # letters of a text that is normalised: Python takes quadratic time for many combining marks


def printable(text: str) -> str:
    r"""Return text in which signs that control a terminal, or turn its lines around, are question marks.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a?[2Jb'
    """
    return _CONTROL.sub("?", text)


def on_one_line(text: str) -> str:
    r"""Return a name or an id as `printable` does, with its line feeds and tabs as question marks, too.

    Examples
    --------
    >>> on_one_line("a\nError: b")
    'a?Error: b'
    """
    return printable(text).replace("\n", "?").replace("\t", "?")


def is_turning(letter: str) -> bool:
    """Return whether a character changes the direction of the text around it."""
    return _TURNS.fullmatch(letter) is not None


def cell_of(text: str) -> str:
    """Return text for a cell of a CSV file: with an apostrophe before what spreadsheets would calculate.

    Examples
    --------
    >>> cell_of("=1+1"), cell_of("north")
    ("'=1+1", 'north')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def is_name(cell: str, name: str) -> bool:
    r"""Return whether a cell has a name, allowing for what programs do to cells.

    They protect them by an apostrophe, cut off spaces, rewrite numbers, and lose letters of other scripts.

    Examples
    --------
    >>> is_name("'=x", "=x"), is_name("1.5", "1.50"), is_name("M\ufffdller", "Müller"), is_name("b", "a")
    (True, True, True, False)
    """
    found, wanted = _plain(cell), {_plain(name), _plain(cell_of(name))}
    if found in wanted or _is_same_number(found, _plain(name)):
        return True
    return _LOST in found and any(_is_same_but_lost(found, one) for one in wanted)


def _is_same_but_lost(found: str, wanted: str) -> bool:
    """Return whether a text is another one of which letters were lost, one or more at each place.

    Taking the first place where each part fits is enough, so no part is ever looked for twice.
    """
    first, *middle, last = re.split(f"{_LOST}+", found)
    if not (wanted.startswith(first) and wanted.endswith(last)):
        return False
    end = len(first)  # the end of the last match in `wanted`
    for part in middle:
        place = wanted.find(part, end + 1)
        if place < 0:
            return False
        end = place + len(part)
    return end < len(wanted) - len(last)


def _plain(text: str) -> str:
    composed = unicodedata.normalize("NFC", text) if len(text) <= _LONGEST else text
    return " ".join(printable(composed).split())


def _is_same_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False
