"""Options that several commands share, and whether an option was given."""

import math
import re
from collections.abc import Callable
from typing import Any

import click

STORE, VARIABLE = "shortlist.db", "SHORTLIST_STORE"
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


def json_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the --json option: the command prints `what` as JSON, and nothing else."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what} as JSON.")


def result_file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about files of results that other tools write."""
    worth = "With --scores: the score to use for a sample that the tool could not evaluate."
    command = click.option("--on-failure", type=float, metavar="SCORE", help=worth)(command)
    which = "With --scores: which score to use, if files have several."
    return click.option("--metric", metavar="NAME", help=which)(command)


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --store."""
    return click.option(
        "--store",
        "where",
        metavar="WHERE",
        default=STORE,
        show_default=True,
        envvar=VARIABLE,
        show_envvar=True,
        help="Where runs are stored: a file, or postgresql://user@server/database.",
    )(command)


def worker_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --worker."""
    return click.option("--worker", metavar="NAME", help="Name of the worker; by default user@machine.")(
        command
    )


class Number(click.FloatRange):
    """A number within limits; "nan" is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


def reissue_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --no-reissue, which takes effect when a run is created."""
    return click.option(
        "--no-reissue",
        is_flag=True,
        help="Do not give a ticket to another worker when its lease expires.",
    )(command)


class Share(Number):
    """A number within limits, or a percentage such as 2%."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share."""
        text = str(value).strip()
        if not text.endswith("%"):
            return super().convert(value, param, ctx)
        return super().convert(super().convert(text[:-1].strip(), param, ctx) / 100, param, ctx)


class Span(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A duration such as 90s, 15min, 24h or 30d, in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds."""
        if isinstance(value, float):
            return value
        parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(s|min|h|d)", str(value).strip())
        if parts is None or not 0 < (seconds := float(parts[1]) * _UNITS[parts[2]]) < 1e10:
            self.fail(f"{value!r} is not a duration; use the form 90s, 15min, 24h or 30d.", param, ctx)
        return seconds


def is_given(name: str) -> bool:
    """Return whether an option was given on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE
