"""Words in HTML: escaped, on one line, of bounded length, whatever they are."""

import unicodedata
from html import escape

_MOST_IN_TITLE = 20_000  # characters of a name that are kept to be looked up
_GAP = "…"


def visible(text: str) -> str:
    r"""Return text in which characters that control something, or are none, are shown as such: \n, \x00."""
    return text if text.isprintable() else "".join(map(_sign, text))


def _sign(letter: str) -> str:
    if letter < " ":
        return letter.encode("unicode_escape").decode()
    is_none = unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} or ord(letter) & 0xFFFE == 0xFFFE
    return "\N{REPLACEMENT CHARACTER}" if is_none else letter


def shortened(text: str, most: int = 40) -> str:
    """Return text of at most so many characters: what is too long loses its middle."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return text[: most - 1 - end] + _GAP + text[len(text) - end :]


def words(text: str) -> str:
    """Return words for the text, or for an attribute, of an element."""
    return escape(visible(text), quote=True)


def name(text: str, most: int = 40, *, titled: bool = False) -> str:
    """Return a name given by others: kept apart from the direction of what stands around it.

    If it was shortened, a title has all of it, where that is wanted.
    """
    seen = visible(text)
    title = ""
    if titled and len(seen) > most:
        title = f' title="{escape(shortened(seen, _MOST_IN_TITLE), quote=True)}"'
    return f"<bdi{title}>{escape(shortened(seen, most))}</bdi>"


def plain_name(text: str, most: int = 40) -> str:
    """Return a name for a terminal or a description: what controls something is shown as a sign."""
    return shortened("".join(map(_harmless, visible(text))), most)


def _harmless(letter: str) -> str:
    """Return a sign for what would change the direction of the words that follow."""
    is_turning = "\u202a" <= letter <= "\u202e" or "\u2066" <= letter <= "\u2069"
    return "\N{REPLACEMENT CHARACTER}" if is_turning or letter in "\u200e\u200f\u061c" else letter
