"""``shortlist serve``: runs to watch in a browser, and to feed over HTTP."""

import socket
from pathlib import Path

import click

from shortlist.cli.options import store_option
from shortlist.cli.stores import NOWHERE, shown
from shortlist.errors import InvalidProblem

PORT = 8765


@click.command("serve")
@store_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen at; 0.0.0.0 for all of this machine.",
)
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0 for any.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="A file with a line `write TOKEN` and perhaps another `read TOKEN`.",
)
@click.option("--read-only", is_flag=True, help="Let runs be looked at, and nothing be added.")
@click.option("--allow-host", "hosts", multiple=True, help="Another name by which browsers find it.")
@click.option(
    "--rate",
    default=2000.0,
    show_default=True,
    type=click.FloatRange(min=1),
    help="The most requests per second from one address.",
)
@click.option(
    "--max-body",
    default=10,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The most megabytes of one request.",
)
def command(
    where: str,
    host: str,
    port: int,
    token_file: Path | None,
    read_only: bool,
    hosts: tuple[str, ...],
    rate: float,
    max_body: int,
) -> None:
    """Show the runs of a store in a browser, and take answers over HTTP.

    The page lists all runs and follows each while it lasts; it plans questions, begins runs, and has a form
    for answers by hand. Programs use the same addresses: see /openapi.json, docs/server.md, and
    `shortlist.client`. Nothing that is sent is ever executed: a run that is begun over HTTP can only be
    answered by those who measure and tell.

    By default only this machine reaches it, and whoever uses this machine may do everything. At any other
    --host a token is needed. Without --token-file two are made up, printed once, and forgotten when the
    server ends. Put a proxy with TLS before it if the network is not yours.

    \b
      shortlist serve
      shortlist serve --store postgresql://me@server/lab --read-only
      shortlist serve --host 0.0.0.0 --token-file tokens.txt

    Ctrl-C ends it. Runs are not affected: they are in the store. Exit status: 0, or 2 the command is wrong, 4
    the store failed.
    """
    from shortlist.server.serving import server_for
    from shortlist.server.settings import Limits, Settings, is_loopback
    from shortlist.server.tokens import Tokens
    from shortlist.store import open_store

    tokens = None if token_file is None else Tokens.of_file(token_file)
    is_new = tokens is None and not is_loopback(host)
    if is_new:
        tokens = Tokens.new()
    limits = Limits(rate=rate, burst=int(2 * rate), body=max_body * 2**20)
    names = frozenset(name.lower() for name in hosts)
    settings = Settings(tokens=tokens, hosts=names, is_read_only=read_only, limits=limits)
    if where == NOWHERE and read_only:
        raise InvalidProblem(f"nothing is in {NOWHERE}; with --read-only give the store that has the runs.")
    _refuse_taken(host, port)
    store = open_store(where, read_only=read_only)
    server = server_for(store, settings, host, port)
    said = f"Serving {shown(where)}; open http://{_called(host)}:{port}"
    click.echo(f"{said}{' (read only)' if read_only else ''}. Ctrl-C ends it.")
    if is_new and tokens is not None:
        click.echo(f"Token to add and look: {tokens.write}\nToken to look only:    {tokens.read}")
        click.echo("They are not shown again; --token-file keeps tokens of your own.")
    server.run()
    if not server.started:
        raise InvalidProblem(f"the server could not listen at {host}, port {port}.")


def _called(host: str) -> str:
    if host in {"0.0.0.0", "::"}:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _refuse_taken(host: str, port: int) -> None:
    """Raise InvalidProblem if nobody can listen there: better now than in the words of a library."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except OSError as error:
        raise InvalidProblem(
            f"the server cannot listen at {host}, port {port}: {error.strerror or error}. Give another with "
            f"--port or --host."
        ) from None
