"""``shortlist serve``: an HTTP server with a page to watch runs, and an API for workers."""

import json
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from shortlist.cli.options import Number, json_option, store_option
from shortlist.cli.stores import NOWHERE, shown
from shortlist.errors import InvalidProblem

PORT = 8765


@click.command("serve")
@store_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; 0.0.0.0 for all interfaces.",
)
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port; 0 for any free port.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with a line `write TOKEN` and optionally a line `read TOKEN`.",
)
@click.option("--read-only", is_flag=True, help="Show runs, but accept no changes.")
@click.option("--allow-host", "hosts", multiple=True, help="Additional host name to accept.")
@click.option(
    "--trust-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Address or network of a reverse proxy whose X-Forwarded-For and X-Forwarded-Proto are trusted.",
)
@click.option(
    "--rate",
    default=2000.0,
    show_default=True,
    type=Number(min=1, max=1e6),
    help="Maximum number of requests per second from one address.",
)
@click.option(
    "--max-body",
    default=10,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Maximum size of a request, in megabytes.",
)
@click.option(
    "--patience",
    default=30.0,
    show_default=True,
    type=Number(min=0, min_open=True, max=1e6),
    help="Timeout for an idle client, in seconds.",
)
@json_option("the address and any new tokens")
def command(
    where: str,
    host: str,
    port: int,
    token_file: Path | None,
    read_only: bool,
    hosts: tuple[str, ...],
    proxies: tuple[str, ...],
    rate: float,
    max_body: int,
    patience: float,
    as_json: bool,
) -> None:
    """Show the runs of a store in a browser, and accept answers over HTTP.

    In the browser you can list all runs, watch their progress live, plan questions, create runs, and enter
    answers by hand. Programs use the same addresses: see /openapi.json, `shortlist docs server`, and
    `shortlist.client`. The server never executes anything that is sent to it. If a run was created over HTTP,
    workers elsewhere measure for it and send the answers.

    By default the server listens on localhost only, and every user of this machine has full access. Any other
    --host requires a token. Without --token-file, the server creates two tokens, prints them once, and
    forgets them when it stops. On a network that you do not control, put a proxy with TLS in front of the
    server.

    \b
      shortlist serve
      shortlist serve --store postgresql://me@server/lab --read-only
      shortlist serve --host 0.0.0.0 --token-file tokens.txt
      shortlist serve --token-file tokens.txt --allow-host lab.example.org --trust-proxy 127.0.0.1

    Ctrl-C stops the server. Runs are not affected, since they are in the store.

    Exit status: 0 on success, 2 if the command line is wrong, 4 if the store failed.
    """
    try:
        from shortlist.server.serving import listening, server_for
    except ImportError as error:
        from shortlist.checks import install_command

        raise InvalidProblem(
            f"the server needs {error.name}, which is not installed. Use: {install_command('server')}"
        ) from None
    from shortlist.server.proxies import networks_of
    from shortlist.server.settings import Limits, Settings, is_loopback
    from shortlist.server.tokens import Tokens
    from shortlist.store import open_store

    tokens = None if token_file is None else Tokens.of_file(token_file)
    is_new = tokens is None and not is_loopback(host)
    if is_new:
        tokens = Tokens.new()
    size = max_body * 2**20
    limits = Limits(
        rate=rate, burst=int(2 * rate), body=size, bodies=max(Limits.bodies, 3 * size), patience=patience
    )
    if where == NOWHERE and read_only:
        raise InvalidProblem(
            f"{NOWHERE} contains no runs; with --read-only give the store that contains them."
        )
    trusted = networks_of(proxies)
    sockets = listening(host, port)
    port = sockets[0].getsockname()[1]
    phone = "" if is_loopback(host) else f"http://{_on_network(host)}:{port}"
    settings = Settings(
        tokens=tokens,
        hosts=frozenset(name.lower() for name in hosts),
        is_read_only=read_only,
        proxies=trusted,
        port=port,
        phone=phone,
        limits=limits,
    )
    try:
        store = open_store(where, read_only=read_only)
    except BaseException:
        for one in sockets:
            one.close()
        raise
    server = server_for(store, settings, host, port)
    facts = {"url": f"http://{_called(host)}:{port}", "store": shown(where), "read_only": read_only}
    new = {"write": tokens.write, "read": tokens.read} if is_new and tokens is not None else None
    if as_json:
        click.echo(json.dumps(facts | {"tokens": new}))
    else:
        _say(facts, new)
        if phone and sys.stdout.isatty():
            _show_code(phone)
    server.run(sockets=sockets)


def _say(facts: dict[str, Any], tokens: dict[str, str] | None) -> None:
    """Print the address of the server and, once, any new tokens."""
    only = " (read-only)" if facts["read_only"] else ""
    click.echo(f"Serving {facts['store']}; open {facts['url']}{only}. Ctrl-C stops it.")
    if tokens is not None:
        if not facts["read_only"]:
            click.echo(f"Write token:     {tokens['write']}")
        click.echo(f"Read-only token: {tokens['read']}")
        click.echo("They are not shown again; use --token-file for tokens that stay the same.")


def _show_code(url: str) -> None:
    """Print the QR code of an address. It contains no token, since codes are photographed and shared."""
    import segno

    click.echo(f"On a phone in the same network, scan this code and log in with a token: {url}")
    segno.make(url, micro=False).terminal(compact=True)


def _on_network(host: str) -> str:
    """Return the address of this machine on its network, since phones may not know its name."""
    if host in {"0.0.0.0", "::"}:
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only finds the interface
            return str(probe.getsockname()[0])
    return _called(host)


def _called(host: str) -> str:
    if host in {"0.0.0.0", "::"}:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
