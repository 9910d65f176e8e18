"""Numbers as people type them, with decimal points or decimal commas.

What a comma means never depends on how many rewards a ticket asks for. The form for answers has the same
rule, in `server/static/parse.js`; one table of examples tests both.
"""

import math
import re
from collections.abc import Iterable
from enum import Enum

from shortlist.errors import InvalidAnswers

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")  # matches in linear time
_WITH_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_TWO_WAYS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")  # 1,234 may mean 1.234 or 1234
_WHOLE_NUMBERS = re.compile(r"[+-]?[0-9]+(,[0-9]+)+")
_LARGE = re.compile(r"[+-]?[0-9]{1,3}((,[0-9]{3})+\.[0-9]*|(\.[0-9]{3})+,[0-9]+)")  # 1,234.5 or 1.234,5
_GROUPED = re.compile(
    r"[1-9][0-9]{0,2}([.,'’ \u00a0\u2009\u202f])[0-9]{3}(\1[0-9]{3})*"
)  # 1,234,567 or 1 234 567
_THREE_DECIMALS = re.compile(r"\.[0-9]{3}$")
_SHOWN = 6  # rewards of each reading, in a message


class Comma(Enum):
    """What a comma in a number means."""

    REFUSED = "refused"
    UNCLEAR = "a decimal comma, unless it could also separate thousands"
    DECIMAL = "a decimal comma"

    @classmethod
    def among(cls, numbers: Iterable[str]) -> "Comma":
        """Return what it means in numbers of one origin, where it does not separate cells."""
        with_comma = filter(_WITH_COMMA.fullmatch, numbers)
        return cls.UNCLEAR if all(map(_TWO_WAYS.fullmatch, with_comma)) else cls.DECIMAL


def sheet_number(where: str, name: str, text: str, comma: Comma = Comma.REFUSED) -> float:
    """Return the number in a cell; raise InvalidAnswers, naming the place, if it is none."""
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    if _WITH_COMMA.fullmatch(text) and comma is not Comma.REFUSED:
        if comma is Comma.UNCLEAR and _TWO_WAYS.fullmatch(text):
            raise InvalidAnswers(f"{where}: the {name} is {text!r}; {_thousands(text)}")
        if math.isfinite(value := float(text.replace(",", "."))):
            return value
    if "," in text and _NUMBER.fullmatch(text.replace(",", ".", 1)):
        raise InvalidAnswers(f"{where}: the {name} is {text!r}; write it with a decimal point, not a comma.")
    raise InvalidAnswers(f"{where}: the {name} is {text!r}; it must be a finite number, such as 3.25.")


def sheet_count(where: str, name: str, text: str) -> float:
    """Return the whole number in a cell; raise InvalidAnswers, naming the place, if it is none.

    Groups of three digits may be separated by commas, points, apostrophes or spaces: 13,934 or 13.934.
    """
    text = without_groups(text)
    if _NUMBER.fullmatch(text) and not _THREE_DECIMALS.search(text):
        value = float(text)
        if value.is_integer() and value >= 0:
            return value
    raise InvalidAnswers(
        f"{where}: the entry for {name} is {text!r:.60}; it must be a whole number, such as 13934 or 13,934."
    )


def without_groups(text: str) -> str:
    """Return a whole number without the separators of its groups of three digits; other texts as they are."""
    found = _GROUPED.fullmatch(text)
    return text.replace(found[1], "") if found else text


def typed_rewards(where: str, text: str, wanted: int | None = None) -> list[float]:
    """Return rewards that are separated by white space, semicolons, or commas followed by white space.

    A comma between digits is a decimal comma. Without any white space, commas separate numbers that have
    decimal points.

    Parameters
    ----------
    where
        The place in the sheet, for messages.
    text
        All rewards of a ticket.
    wanted
        How many the ticket asks for, if known. A single 26,8 is refused where it could be two rewards.

    Raises
    ------
    InvalidAnswers
        If there is something else, or if it can be read in two ways. The message names the place.
    """
    tokens = [token.rstrip(",") for token in re.split(r"[\s;]+", text.replace("−", "-"))]
    tokens = [token for token in tokens if token]
    has_lists = any("," in token and _is_list(token) for token in tokens)
    comma = Comma.among(tokens)
    found: list[float] = []
    for token in tokens:
        is_alone = len(tokens) == 1 and wanted in (None, 2)
        is_pair = bool(_WITH_COMMA.fullmatch(token)) and (has_lists or is_alone)
        if is_pair or _LARGE.fullmatch(token):
            raise InvalidAnswers(f"{where}: {_unclear(token)}")
        if "," in token and not _WITH_COMMA.fullmatch(token):
            if _WHOLE_NUMBERS.fullmatch(token):
                raise InvalidAnswers(f"{where}: {_unclear(token)}")
            if _is_list(token):
                found += [sheet_number(where, "reward", one) for one in token.split(",")]
                continue
        found.append(sheet_number(where, "reward", token, comma))
    return found


def _is_list(token: str) -> bool:
    """Whether commas separate numbers in a token without white space, as decimal points or signs show."""
    return not _WHOLE_NUMBERS.fullmatch(token) and all(map(_NUMBER.fullmatch, token.split(",")))


def _thousands(text: str) -> str:
    return f"write {text.replace(',', '.')} or {text.replace(',', '')}."


def _unclear(token: str) -> str:
    """Return a sentence with both readings of a token."""
    parts = token.split(",")
    if _WHOLE_NUMBERS.fullmatch(token):
        pairs = [".".join(parts[place : place + 2]) for place in range(0, len(parts), 2)]
    else:
        is_point = token.rfind(".") > token.rfind(",")
        pairs = [token.replace(",", "") if is_point else token.replace(".", "").replace(",", ".")]
    readings = " or ".join(_reading(numbers) for numbers in (parts, pairs))
    return (
        f"{token[:60]!r} can be read as {readings}. Write decimals with a point, and separate rewards by "
        f"spaces or line breaks."
    )


def _reading(numbers: list[str]) -> str:
    rest = ", ..." if len(numbers) > _SHOWN else ""
    count = "one reward" if len(numbers) == 1 else f"{len(numbers):,} rewards"
    return f"{count} ({', '.join(numbers[:_SHOWN])}{rest})"
