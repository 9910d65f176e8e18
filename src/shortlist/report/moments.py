"""Times as people read them, in the time zone of whoever looks, and as programs do."""

import time
from datetime import UTC, datetime


def day(at: float) -> str:
    """Return the date of a moment: 15 November 2026."""
    local = datetime.fromtimestamp(at)
    return f"{local.day} {local:%B %Y}"


def moment(at: float, now: float | None = None) -> str:
    """Return the time of a moment, with its date unless that is today: 14:05, or 16 November, 14:05."""
    local, today = datetime.fromtimestamp(at), datetime.fromtimestamp(time.time() if now is None else now)
    if local.date() == today.date():
        return f"{local:%H:%M}"
    year = "" if local.year == today.year else f" {local.year}"
    return f"{local.day} {local:%B}{year}, {local:%H:%M}"


def in_table(at: float) -> str:
    """Return a moment for a column of a table: 2026-11-15 14:05."""
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"


def iso(at: float) -> str:
    """Return a moment for programs, in universal time: 2026-11-15T13:05:09.250000+00:00."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def universal(at: float) -> str:
    """Return a moment for readers anywhere: 15 November 2026, 13:05 UTC."""
    utc = datetime.fromtimestamp(at, UTC)
    return f"{utc.day} {utc:%B %Y}, {utc:%H:%M} UTC"
