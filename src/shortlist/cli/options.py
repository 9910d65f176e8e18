"""Options that commands share, and how to tell whether one was given."""

import math
import re
from collections.abc import Callable
from typing import Any

import click

STORE, VARIABLE = "shortlist.db", "SHORTLIST_STORE"
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


def json_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option with which a command prints `what`, and nothing else, as JSON."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what} as JSON.")


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that says where runs are kept."""
    return click.option(
        "--store",
        "where",
        metavar="WHERE",
        default=STORE,
        show_default=True,
        envvar=VARIABLE,
        show_envvar=True,
        help="Where runs are kept: a file, or postgresql://user@server/database.",
    )(command)


def worker_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that says who measures."""
    return click.option("--worker", metavar="NAME", help="Who measures; by default user@machine.")(command)


class Number(click.FloatRange):
    """A number within limits; "nan", which no limit catches, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is no number.", param, ctx)
        return number


def reissue_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that keeps tickets with their workers; it is settled when a run begins."""
    return click.option(
        "--no-reissue",
        is_flag=True,
        help="Never give a ticket to a second worker because its lease ran out.",
    )(command)


class Span(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A length of time, such as 90s, 15min, 24h or 30d; in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the time in seconds."""
        if isinstance(value, float):
            return value
        parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(s|min|h|d)", str(value).strip())
        if parts is None or not 0 < (seconds := float(parts[1]) * _UNITS[parts[2]]) < 1e10:
            self.fail(f"{value!r} is no length of time; write one as 90s, 15min, 24h or 30d.", param, ctx)
        return seconds


def is_given(name: str) -> bool:
    """Return whether an option stands on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE
