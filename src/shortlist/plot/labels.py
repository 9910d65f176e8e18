"""Labels of arms and numbers in a figure."""

import unicodedata
from collections import Counter
from collections.abc import Iterable

from shortlist.problem import Problem

LONGEST = 30  # maximum number of characters of a name
_MISSING = "\N{REPLACEMENT CHARACTER}"


def escaped(text: str) -> str:
    """Return text escaped for matplotlib, in which a dollar sign starts a formula."""
    return text.replace("$", r"\$")


def arm_labels(problem: Problem, arms: Iterable[int]) -> list[str]:
    """Return the names of arms, shortened if necessary, in characters that the font has.

    Long names lose their middle, since they often differ at the end. The number of the arm is appended if
    characters are missing or two names look alike.
    """
    numbers = [int(arm) for arm in arms]
    shown = [_in_letters_at_hand(_shortened(_plain(problem.name(arm)))) for arm in numbers]
    times = Counter(shown)
    return [
        escaped(name if times[name] == 1 and _MISSING not in name else f"{name} (arm {arm})")
        for arm, name in zip(numbers, shown, strict=True)
    ]


def _plain(name: str) -> str:
    """Return a name on one line, without invisible formatting characters."""
    kept = (letter for letter in " ".join(name.split()) if unicodedata.category(letter) != "Cf")
    return "".join(letter if letter.isprintable() else _MISSING for letter in kept)


def _shortened(name: str) -> str:
    if len(name) <= LONGEST:
        return name
    half = (LONGEST - 1) // 2
    return f"{name[: LONGEST - 1 - half]}…{name[-half:]}"


def _in_letters_at_hand(name: str) -> str:
    return "".join(letter if _has(letter) else _MISSING for letter in name)


def _has(letter: str) -> bool:
    """Return whether one of the fonts in use has a character."""
    if letter.isascii():
        return True
    from matplotlib import font_manager, rcParams  # noqa: PLC0415

    code = ord(letter)
    for family in rcParams["font.family"]:
        try:
            path = font_manager.findfont(
                font_manager.FontProperties(family=[family]), fallback_to_default=False
            )
        except ValueError:
            continue
        if font_manager.get_font(path).get_char_index(code):
            return True
    return False


def pulls_words(pulls: float) -> str:
    """Return a number of pulls as text, in full if that is short."""
    if pulls < 100 and pulls != int(pulls):
        return f"{pulls:.3g}"
    if pulls < 10_000_000:
        return f"{pulls:,.0f}"
    unit, name = (1e6, "million") if pulls < 1e9 else (1e9, "billion")
    return f"{pulls / unit:,.3g} {name}" if pulls < 1e12 else f"{pulls:.3g}"
