"""Formatting of numbers, times and names, in text and in HTML."""

import math
import time
import unicodedata
from datetime import UTC, datetime
from html import escape

from shortlist.escaping import is_turning

# --- numbers -------------------------------------------------------------------------------------------


_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_MOST_DECIMALS = 6


def decimals_for(epsilon: float) -> int:
    """Return the number of decimals to show of a mean: two more than epsilon has, or 4 if it is 0."""
    return max(0, 2 - math.floor(math.log10(epsilon or 0.01)))


def mean_words(value: float, epsilon: float) -> str:
    """Return a mean with the relevant decimals; a dash for nan."""
    if math.isnan(value):
        return "–"
    decimals = decimals_for(epsilon)
    if decimals > _MOST_DECIMALS or abs(value) >= 1e9:
        return f"{value:.6g}"
    return f"{value:,.{decimals}f}"


def large(count: float) -> str:
    """Return a number of pulls; above 10^11 rounded."""
    return f"{count:,.0f}" if count < 1e11 else f"{count:.4g}"


def counted(n: int, thing: str) -> str:
    """Return a number with its noun: 1 ticket, 2 tickets."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def n_shown(n: int, most: int) -> int:
    """Return how many of n things to name, if about `most` are: never all but one."""
    return n if n <= most + 1 else most


def percent(share: float) -> str:
    """Return a share in percent: 12 %, 0.3 %, below 0.1 %."""
    if 0 < share < 0.001:
        return "below 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{100 * share:.1f} %"


def compact(count: float) -> str:
    """Return a number in short form: 1,500, 20k or 3M."""
    if abs(count) < 10_000:
        return f"{count:,.0f}"
    return f"{count / 1e3:g}k" if abs(count) < 1e6 else f"{count / 1e6:g}M"


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most `most` evenly spaced round numbers between two numbers."""
    if not (high > low and math.isfinite(high - low)):
        return [low]
    unit = 10.0 ** math.floor(math.log10((high - low) / most))
    for step in (unit * k for k in (1, 2, 5, 10, 20, 50)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [k * step for k in range(first, last + 1)]


def tick_words(values: list[float]) -> list[str]:
    """Return labels of round numbers, all with the same number of decimals."""
    if len(values) < 2:
        return [f"{value:g}" for value in values]
    step = values[1] - values[0]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if decimals > _MOST_DECIMALS or max(map(abs, values)) >= 1e6:
        return [f"{value:.4g}" for value in values]
    return [f"{value:,.{decimals}f}" for value in values]


def powers(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most `most` powers of ten between two numbers, with their multiples by 2 and 5 if few."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        finer = [k * 10.0**exponent for exponent in (first - 1, last, last + 1) for k in (1, 2, 5)]
        return sorted({value for value in finer if low <= value <= high})[:most]
    step = max(1, -(-(last - first + 1) // most))
    return [10.0**k for k in range(first, last + 1, step)]


def power_words(value: float) -> str:
    """Return the label of a number on a logarithmic scale: 1,000, or 10⁴ from ten thousand on."""
    exponent = math.log10(value)
    if abs(exponent - round(exponent)) > 1e-9 or 0 <= round(exponent) < 4:
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"
    return "10" + str(round(exponent)).translate(_RAISED)


# --- times ---------------------------------------------------------------------------------------------


def day(at: float) -> str:
    """Return the date of a time: 15 November 2026."""
    local = datetime.fromtimestamp(at)
    return f"{local.day} {local:%B %Y}"


def moment(at: float, now: float | None = None) -> str:
    """Return a local time, with its date unless that is today: 14:05, or 16 November, 14:05."""
    local, today = datetime.fromtimestamp(at), datetime.fromtimestamp(time.time() if now is None else now)
    if local.date() == today.date():
        return f"{local:%H:%M}"
    year = "" if local.year == today.year else f" {local.year}"
    return f"{local.day} {local:%B}{year}, {local:%H:%M}"


def in_table(at: float) -> str:
    """Return a local time for a table: 2026-11-15 14:05."""
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"


def iso(at: float) -> str:
    """Return a time in ISO format, in UTC: 2026-11-15T13:05:09.250000+00:00."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def universal(at: float) -> str:
    """Return a time in UTC: 15 November 2026, 13:05 UTC."""
    utc = datetime.fromtimestamp(at, UTC)
    return f"{utc.day} {utc:%B %Y}, {utc:%H:%M} UTC"


# --- text in HTML --------------------------------------------------------------------------------------


_GAP = "…"


def visible(text: str) -> str:
    r"""Return text with control characters, and those that are invalid or turn lines around, escaped."""
    return text if text.isprintable() else "".join(map(_sign, text))


def _sign(letter: str) -> str:
    if letter < " ":
        return letter.encode("unicode_escape").decode()
    is_none = unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} or ord(letter) & 0xFFFE == 0xFFFE
    return "\N{REPLACEMENT CHARACTER}" if is_none or is_turning(letter) else letter


def shortened(text: str, most: int = 40) -> str:
    """Return text of at most `most` characters; a longer text loses its middle."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return text[: most - 1 - end] + _GAP + text[len(text) - end :]


def words(text: str) -> str:
    """Return text escaped for an HTML element or attribute."""
    return escape(visible(text), quote=True)


def name(text: str, most: int = 40, *, titled: bool = False) -> str:
    """Return a user-supplied name as HTML, isolated from the text direction around it.

    If `titled` and the name is shortened, the title attribute contains the full name.
    """
    seen = visible(text)
    title = ""
    if titled and len(seen) > most:
        title = f' title="{escape(seen, quote=True)}"'
    return f"<bdi{title}>{escape(shortened(seen, most))}</bdi>"


def plain_name(text: str, most: int = 40) -> str:
    """Return a name for a terminal or a description, with control characters escaped."""
    return shortened(visible(text), most)
