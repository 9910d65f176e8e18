"""Names that others chose, made fit for terminals and for spreadsheets."""

import re
import unicodedata

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_LOST = "\ufffd"  # stands for a letter that could not be read


def printable(text: str) -> str:
    r"""Return text in which signs that control a terminal, or turn its lines around, are question marks.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a?[2Jb'
    """
    return _CONTROL.sub("?", text)


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
    pattern = ".+".join(map(re.escape, re.split(f"{_LOST}+", found)))
    return _LOST in found and any(re.fullmatch(pattern, one, re.DOTALL) for one in wanted)


def _plain(text: str) -> str:
    return " ".join(printable(unicodedata.normalize("NFC", text)).split())


def _is_same_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False
