"""The command that resumes a run, printed whenever a run stops early."""

import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.options import VARIABLE, is_given
from shortlist.cli.output import say
from shortlist.cli.stores import shown
from shortlist.errors import ChangedRun, MeasurementFailed, ShortlistError, StoreTrouble
from shortlist.escaping import on_one_line, printable

if TYPE_CHECKING:
    from shortlist.certificates import Certificate
    from shortlist.execution.session_protocol import DrivenSession

_MOST_NAMED = 12  # arms

LIMITS = {
    "BUDGET": ("--budget", ", without a budget or with a larger one"),
    "DEADLINE": ("--deadline", ", without a deadline or with another one"),
    "PERSON": ("", ""),
}
"""By reason why a run ended early: the option to leave out in order to resume, and what to say."""


def this_command(without: str = "") -> str:
    """Return the current command line, quoted for the shell; without the option named, if any."""
    words, is_value = [*_program()], False
    for word in sys.argv[1:]:
        if is_value or (without and word.split("=")[0] == without):
            is_value = not is_value and word == without
            continue
        words.append(word)
    return _joined(words)


def next_command(*words: str) -> str:
    """Return another `shortlist` command for the same store, quoted for the shell."""
    where = click.get_current_context().params.get("where")
    store = ["--store", where] if is_given("where") and where else []
    return _joined(["shortlist", *words, *store])


def _joined(words: list[str]) -> str:
    """Return words quoted for the shell; an address with a password becomes an environment variable."""
    hidden = {word for word in words if shown(word) != word}
    given = {word: "--store=" if word.startswith("--store=") else "" for word in hidden}
    return " ".join(f'{given[word]}"${VARIABLE}"' if word in hidden else shlex.quote(word) for word in words)


def _program() -> list[str]:
    program = sys.argv[0]
    if Path(program).name == "__main__.py":  # python -m shortlist
        return sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    found = shutil.which(Path(program).name)
    return [Path(program).name if found == program else program]


@contextmanager
def saying_how_to_go_on(session: "DrivenSession") -> Iterator[None]:
    """Print the progress and the command that resumes, when a run stops early.

    A failed measurement is recorded in the log.
    """
    try:
        with _stopping_at_signals():
            yield
    except KeyboardInterrupt:
        made = f"The run had made {_pulls(session)}{_most(session)}."
        say(printable(f"{made}{_so_far(session)}{_advice(session)}"))
        raise
    except MeasurementFailed as error:
        with suppress(ShortlistError):
            session.suspend(str(error))
        done = f"The run had made {_pulls(session)}."
        raise type(error)(f"{error} {done}{_advice(session)}") from error
    except ChangedRun:
        raise
    except StoreTrouble as error:
        raise type(error)(f"{error}{_advice(session)}") from error


@contextmanager
def _stopping_at_signals() -> Iterator[None]:
    """Treat SIGTERM, which job queues send, like Ctrl-C; and SIGHUP of a terminal that is closed.

    SIGHUP stays ignored if it is, as with `nohup`.
    """
    from shortlist.execution.interrupts import ask_to_stop, hang_up

    handlers: dict[int, Any] = {signal.SIGTERM: ask_to_stop}
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = hang_up
    if threading.current_thread() is not threading.main_thread():
        handlers = {}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def naming_another_run(name: str) -> Iterator[None]:
    """Add to an error how to run a different question: under another name, unless no new run is needed."""
    from shortlist.session.run_changes import NO_NEW_RUN

    try:
        yield
    except ChangedRun as error:
        if NO_NEW_RUN in str(error):
            raise
        beside = shlex.join(["--name", f"{name}-2"])
        raise ChangedRun(f"{error} To start another run:\n  {this_command('--name')} {beside}") from None


def _advice(session: "DrivenSession") -> str:
    return "" if session.is_private else f" To resume:\n  {this_command()}"


def _so_far(session: "DrivenSession") -> str:
    """Return what is certified, unless that cannot be found out."""
    with suppress(ShortlistError):
        certified = session.result.certificate
        if certified is not None:
            return f"{best_so_far(certified)} {certified.sentence}"
    return ""


def best_so_far(certified: "Certificate") -> str:
    """Return the selected arms in words, if something is certified and they are few."""
    if not certified.selected or len(certified.selected) > _MOST_NAMED:
        return ""
    return f" Best certified so far: {', '.join(map(on_one_line, certified.selected))}."


def _pulls(session: "DrivenSession") -> str:
    from shortlist.report.text_format import counted

    return counted(session.n_made, "pull")


def _most(session: "DrivenSession") -> str:
    worst = session.worst_case_pulls
    return "" if worst is None else f" of at most {worst:,}"
