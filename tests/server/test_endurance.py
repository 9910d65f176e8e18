"""Clients that are slow, dead or many do not keep the server from serving others."""

import asyncio
import contextlib
import json
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from shortlist.server import watching
from shortlist.server.proxies import networks_of
from shortlist.server.serving import Server, listening, server_for
from shortlist.server.settings import Limits, Settings
from shortlist.server.tokens import Tokens
from shortlist.server.watching import Seen, Watch
from shortlist.store import open_store
from tests.server.serving import MANY, QUESTION, Served, answered, client_at, served

pytestmark = pytest.mark.slow

PATIENCE = 1.0
SOON = 10.0  # seconds within which others must be answered, also on a machine that does much else


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that does not wait for long."""
    with served(tmp_path_factory.mktemp("endurance") / "runs.db", "--patience", str(PATIENCE)) as found:
        found.begin("trial", MANY)
        begin_large(found)
        yield found


LARGE = [
    "/runs/large/question.json",
    "/runs/large/export.csv",
]  # the one made at once, the other as it is read


def begin_large(server: Served) -> None:
    """Begin a run about which there is much to read: several megabytes."""
    names = [f"{k:05} " + "x" * 200 for k in range(20_000)]
    server.begin("large", MANY | {"variances": [1.0] * len(names), "names": names})
    asked = server.client.post("/runs/large/ask", json={"worker": "a"}).json()
    answers = [{"ticket": one["ticket"], "mean": 0.5} for one in asked["tickets"]]
    told = server.client.post("/runs/large/tell", json={"worker": "a", "answers": answers})
    assert told.json()["taken"] == len(names)


class Meanwhile:
    """Another client, which asks all the time, and how long its longest wait was."""

    def __init__(self, server: Served) -> None:
        self._server, self._is_over = server, threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.longest, self.n = 0.0, 0

    def _ask(self) -> None:
        with client_at(self._server.url) as client:
            while not self._is_over.is_set():
                began = time.monotonic()
                assert client.get("/runs/trial.json").status_code == 200
                self.longest, self.n = max(self.longest, time.monotonic() - began), self.n + 1
                time.sleep(0.03)

    def __enter__(self) -> "Meanwhile":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        end = time.monotonic() + 5.0
        while self.n < 4 and time.monotonic() < end:
            time.sleep(0.01)
        self._is_over.set()
        self._thread.join()
        assert self.n >= 4
        assert self.longest < SOON, f"another client waited for {self.longest:.2f} s"


def closed_after(sock: socket.socket) -> tuple[float, bytes]:
    """Return after how many seconds a connection was closed, and what came before that."""
    began = time.monotonic()
    said = answered(sock)
    return time.monotonic() - began, said


def eventually(check: Any, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end
        time.sleep(0.05)


# --- who does not send --------------------------------------------------------------------------------


def test_half_of_a_head_is_not_waited_for(server: Served) -> None:
    with Meanwhile(server), server.connect() as silent, server.connect() as half, server.connect() as second:
        half.sendall(server.request("GET", "/index.json")[:-2])
        second.sendall(server.request("GET", "/plan.json"))
        heard = b""
        while not heard.endswith(b"}"):
            heard += second.recv(65536)
        second.sendall(b"GET /pl")
        for one in (silent, half, second):
            seconds, said = closed_after(one)
            assert seconds < 3 * PATIENCE + 1
            assert said == b""


def test_a_head_that_comes_letter_by_letter_is_not_waited_for(server: Served) -> None:
    with server.connect() as slow:
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < began + 4 * PATIENCE + 1:
                slow.sendall(b"a")
                time.sleep(0.1)
    assert time.monotonic() < began + 3 * PATIENCE + 1


def test_half_of_a_body_is_answered_and_not_waited_for(server: Served) -> None:
    kind = "Content-Type: application/json"
    with Meanwhile(server):
        for lines, body in (
            ((kind, "Content-Length: 100"), b'{"name": '),
            ((kind, "Transfer-Encoding: chunked"), b"5\r\n12345\r\n"),
        ):
            with server.connect() as half:
                half.sendall(server.request("POST", "/runs", *lines) + body)
                seconds, said = closed_after(half)
            assert said.startswith(b"HTTP/1.1 408 ")
            assert b'"kind":"RequestTimeout"' in said
            assert b"content-security-policy" in said
            assert b"connection: close" in said
            assert PATIENCE <= seconds < 2 * PATIENCE + 2.5


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_hundred_megabytes_are_refused_at_once(server: Served, is_chunked: bool) -> None:
    part = b" " * 2**20

    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield part

    headers = {"content-type": "application/json"}
    if not is_chunked:
        headers["content-length"] = str(100 * 2**20)
    before = server.memory
    with Meanwhile(server):
        began = time.monotonic()
        reply = server.client.post("/runs", content=parts(), headers=headers)
        assert reply.status_code == 413, "the answer arrives, though not all was sent"
        assert time.monotonic() - began < 5.0
    assert server.memory - before < 60 * 2**20


def test_a_refusal_does_not_wait_for_the_rest(server: Served) -> None:
    with server.connect() as sock:
        kind = "Content-Type: text/plain"
        sock.sendall(server.request("POST", "/runs", kind, "Content-Length: 1000000") + b"x" * 1000)
        seconds, said = closed_after(sock)
    assert said.startswith(b"HTTP/1.1 415 ")
    assert seconds < 1.0


def test_who_sends_on_may_still_read_the_refusal(server: Served) -> None:
    with server.connect() as sock:
        kind = "Content-Type: application/json"
        sock.sendall(server.request("POST", "/runs", kind, "Content-Length: 99000000"))
        for _ in range(5):
            sock.sendall(b" " * 100_000)
            time.sleep(0.1)
        assert answered(sock).startswith(b"HTTP/1.1 413 ")


def test_what_is_no_http_is_answered_like_everything_else(server: Served) -> None:
    for sent in (
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
    ):
        with server.connect() as sock:
            sock.sendall(sent)
            said = answered(sock)
        head, _, body = said.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"content-security-policy: default-src 'none'" in head
        assert json.loads(body)["error"]["kind"] == "BadRequest"
        assert b"server:" not in head.lower()


def test_there_is_nothing_but_http(server: Served) -> None:
    upgrade = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: eA==",
    )
    with server.connect() as sock:
        sock.sendall(server.request("GET", "/runs/trial/events", *upgrade))
        assert sock.recv(100).startswith(
            b"HTTP/1.1 200 "
        )  # a stream of events, and no socket of another kind


# --- who does not read --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LARGE)
def test_who_does_not_read_is_let_go(server: Served, path: str) -> None:
    whole = server.client.get(path)  # what is kept of it is kept from now on
    assert (whole.status_code, len(whole.content) > 4 * 2**20) == (200, True)
    n_before, memory = server.n_connections, server.memory
    with Meanwhile(server):
        dead = [server.connect(receive_buffer=4096) for _ in range(20)]
        for sock in dead:
            sock.sendall(server.request("GET", path))
        eventually(lambda: server.n_connections >= n_before + 15)
        grown = server.memory - memory
        eventually(lambda: server.n_connections <= n_before + 2, 8 * PATIENCE + 5)
        for sock in dead:
            sock.close()
    assert grown < 20 * 10 * 2**20


@pytest.mark.parametrize("path", LARGE)
def test_who_reads_slowly_gets_all(server: Served, path: str) -> None:
    whole = server.client.get(path, headers={"accept-encoding": "identity"}).content
    for _ in range(5):
        with server.connect(receive_buffer=65536) as slow:
            slow.sendall(server.request("GET", path, "Connection: close"))
            began, n, longest = time.monotonic(), 0, 0.0
            last = began
            while part := slow.recv(65536):
                n += len(part)
                if time.monotonic() < began + 3.5 * PATIENCE:
                    time.sleep(0.05)
                last, before = time.monotonic(), last
                longest = max(longest, last - before)
        if longest < PATIENCE / 2:  # otherwise this client was kept from reading, by what else runs here
            break
    assert n > len(whole)


CLIENT = """
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"GET /runs/trial/events HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n")
s.recv(100000)
print("watching", flush=True)
time.sleep(1000)
"""


def test_a_client_that_was_stopped_and_killed_is_forgotten(server: Served) -> None:
    before = server.n_connections
    command = [sys.executable, "-c", CLIENT, str(server.port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as stopped:
        try:
            assert stopped.stdout is not None
            assert stopped.stdout.readline() == "watching\n"
            stopped.send_signal(signal.SIGSTOP)
            with Meanwhile(server):
                for k in range(5):
                    asked = server.client.post("/runs/trial/ask", json={"worker": f"w{k}", "limit": 1}).json()
                    assert len(asked["tickets"]) == 1
                time.sleep(1.2)
        finally:
            stopped.kill()
    eventually(lambda: server.n_connections <= before + 1)


# --- who watches --------------------------------------------------------------------------------------


class Streams:
    """Many connections that watch a run."""

    def __init__(self, server: Served, n: int, run: str = "trial") -> None:
        self.sockets = []
        for _ in range(n):
            sock = server.connect()
            sock.sendall(server.request("GET", f"/runs/{run}/events", "Connection: close"))
            self.sockets.append(sock)

    def news(self, seconds: float = 20.0) -> list[bytes]:
        """Read from each until a whole event has come, and return these."""
        heard: dict[socket.socket, bytes] = dict.fromkeys(self.sockets, b"")
        end, missing = time.monotonic() + seconds, set(self.sockets)
        poll = select.epoll()
        by_number = {sock.fileno(): sock for sock in self.sockets}
        for number in by_number:
            poll.register(number, select.EPOLLIN)
        while missing:
            assert time.monotonic() < end, f"{len(missing)} have heard nothing"
            for number, _ in poll.poll(1.0):
                sock = by_number[number]
                part = sock.recv(1 << 20)
                heard[sock] += part
                if b"\n\n" in heard[sock].partition(b"event: ")[2] or not part:
                    missing.discard(sock)
                    poll.unregister(number)
        poll.close()
        return list(heard.values())

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


def test_a_thousand_watch_at_once(tmp_path: Path) -> None:
    with served(tmp_path / "runs.db") as server:
        server.begin("trial", MANY)
        server.client.get("/runs/trial.json")
        before, memory = server.n_connections, server.memory
        streams = Streams(server, 1000)
        assert len(streams.news()) == 1000
        with Meanwhile(server):
            for k in range(3):
                server.client.post("/runs/trial/ask", json={"worker": f"w{k}", "limit": 2})
                news = streams.news()
                assert all(b"event: run" in one for one in news)
        assert server.memory - memory < 150 * 2**20
        streams.close()
        eventually(lambda: server.n_connections <= before + 2)
        again = Streams(server, 1)
        assert b"event: run" in again.news()[0]
        began = time.monotonic()
        dead = Streams(server, 50)
        _, complaints = server.stop(signal.SIGTERM)
        assert time.monotonic() - began < 6.0, "it ends though others watch"
        assert (server.process.returncode, complaints) == (0, "")
        assert all(b"event: trouble" not in answered(sock) for sock in dead.sockets)
        again.close()
        dead.close()


def test_a_run_that_is_removed_while_it_is_watched(server: Served) -> None:
    server.begin("short-lived", MANY)
    watching = Streams(server, 3, "short-lived")
    watching.news()
    with contextlib.closing(open_store(server.store)) as store:
        store.remove("short-lived")
    for said in watching.news():
        assert b"event: trouble" in said
        assert b'"NoSuchRun"' in said
        assert str(server.store).encode() not in said
    for sock in watching.sockets:
        assert answered(sock).strip() in {b"", b"0"}, "the stream ends"
    watching.close()
    assert server.client.get("/runs/short-lived.json").status_code == 404
    assert server.client.get("/runs/short-lived/events").status_code == 404
    assert server.client.post("/runs/short-lived/ask", json={"worker": "a"}).status_code == 404
    assert server.client.get("/runs/trial.json").status_code == 200


def test_a_run_that_is_removed_and_begun_again_is_the_new_one(server: Served) -> None:
    def remove() -> None:
        with contextlib.closing(open_store(server.store)) as store:
            store.remove("again")

    old = server.begin("again", MANY)
    tickets = server.client.post("/runs/again/ask", json={"worker": "a"}).json()["tickets"]
    watching = Streams(server, 1, "again")
    watching.news()
    remove()
    new = server.begin("again", QUESTION)
    assert new["code"] != old["code"]
    assert server.client.get("/runs/again.json").json()["code"] == new["code"]
    (said,) = watching.news()
    assert f'"code": "{new["code"]}"'.encode() in said
    watching.close()
    remove()
    newest = server.begin("again", MANY)
    given = server.client.post("/runs/again/ask", json={"worker": "a"})
    assert given.status_code == 200, "whoever adds does not have to try again"
    assert given.json()["tickets"][0]["ticket"].startswith(newest["code"])
    told = {"worker": "a", "answers": [{"ticket": tickets[0]["ticket"], "mean": 1.0}]}
    assert server.client.post("/runs/again/tell", json=told).status_code == 422
    with served(server.store) as other:
        remove()
        other.begin("again", MANY)
        tickets = other.client.post("/runs/again/ask", json={"worker": "a"}).json()["tickets"]
        told = {"worker": "a", "answers": [{"ticket": tickets[0]["ticket"], "mean": 1.0}]}
        assert server.client.post("/runs/again/tell", json=told).json()["taken"] == 1
    remove()
    assert server.client.post("/runs/again/tell", json=told).status_code == 404


@contextlib.contextmanager
def here(
    tmp_path: Path, limits: Limits, *proxies: str, tokens: Tokens | None = None
) -> Iterator[tuple[Server, int]]:
    """Yield a server that runs in this process, and its port."""
    sockets = listening("127.0.0.1", 0)
    port = sockets[0].getsockname()[1]
    server = server_for(
        open_store(tmp_path / "runs.db"),
        Settings(limits=limits, proxies=networks_of(proxies), tokens=tokens),
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets})
    thread.start()
    try:
        yield server, port
    finally:
        server.should_exit = True
        server.context.closing.set()
        thread.join(20)
        assert not thread.is_alive()


def test_streams_are_counted_in_and_out_and_limited(tmp_path: Path) -> None:
    with here(tmp_path, Limits(streams=3, connections=20)) as (server, port):
        url = f"http://127.0.0.1:{port}"
        httpx.post(f"{url}/runs", json={"name": "trial", "question": QUESTION}).raise_for_status()
        context = server.context
        with contextlib.ExitStack() as open_ones:
            heard = []
            for _ in range(3):
                stream = open_ones.enter_context(httpx.stream("GET", f"{url}/runs/trial/events"))
                heard.append(stream.iter_bytes())
                assert next(heard[-1]).startswith(b"id: ")
            assert context.n_streams == 3
            assert [watch.n_watchers for watch in context.watches.values()] == [3]
            refused = httpx.get(f"{url}/runs/trial/events")
            assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "ServiceUnavailable")
        eventually(lambda: context.n_streams == 0)
        assert context.watches == {}
        with httpx.Client() as client:
            assert client.head(f"{url}/runs/trial/events").status_code == 200
            assert context.n_streams == 0, "no news are sent in answer to HEAD"
        assert httpx.get(f"{url}/runs/none/events").status_code == 404
        assert (context.n_streams, context.watches) == (0, {})


def test_one_address_has_only_so_many_connections(tmp_path: Path) -> None:
    with here(tmp_path, Limits(connections=5, patience=30.0)) as (_, port):
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        time.sleep(0.3)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/index.json")
        for sock in held:
            sock.close()

        def is_served() -> bool:
            with contextlib.suppress(httpx.TransportError):
                return httpx.get(f"http://127.0.0.1:{port}/index.json").status_code == 200
            return False

        eventually(is_served)


def test_a_trusted_proxy_has_as_many_connections_as_its_clients(tmp_path: Path) -> None:
    with here(tmp_path, Limits(connections=5, patience=30.0), "127.0.0.1") as (_, port):
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        time.sleep(0.3)
        assert httpx.get(f"http://127.0.0.1:{port}/index.json").status_code == 200
        for sock in held:
            sock.close()


def test_all_that_is_sent_at_once_is_limited(tmp_path: Path) -> None:
    with here(tmp_path, Limits(bodies=3000)) as (_, port):
        url = f"http://127.0.0.1:{port}"
        lines = ("Host: localhost", "Content-Type: application/json", "Content-Length: 4000", "", "")
        head = "\r\n".join(("POST /plan HTTP/1.1", *lines)).encode()
        with socket.create_connection(("127.0.0.1", port)) as holding:
            holding.sendall(head + b" " * 2900)
            large = MANY | {"names": ["a" * 500] * 40}
            eventually(lambda: httpx.post(f"{url}/plan", json=large).status_code == 503)
            assert httpx.post(f"{url}/plan", json=QUESTION).status_code == 200
        eventually(
            lambda: httpx.post(f"{url}/plan", json=MANY | {"names": ["a" * 50] * 40}).status_code == 422
        )


def test_who_reads_slowly_is_sent_the_latest_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_BETWEEN", 0.001)
    n = 0

    async def look(seen: Seen) -> dict[str, Any]:
        nonlocal n
        n += 1
        assert seen == ("abcd", n - 1) or n == 1
        return {"code": "abcd", "n_events": n}

    async def watch() -> list[int]:
        heard, stream = [], Watch(look).stream(asyncio.Event())
        async for said in stream:
            heard.append(int(said.split(b"\n")[0][4:]))
            await asyncio.sleep(0.05)
            if len(heard) == 5:
                break
        await stream.aclose()
        return heard

    heard = asyncio.run(watch())
    assert heard == sorted(set(heard))
    assert heard[-1] > 25, "what came between was not kept for it"


def test_whatever_goes_wrong_those_who_watch_learn_of_it() -> None:
    async def look(_: Seen) -> dict[str, Any]:
        raise RuntimeError("secret")

    async def watch() -> list[bytes]:
        found = Watch(look)
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        return [said async for said in found.stream(asyncio.Event())]

    (said,) = asyncio.run(asyncio.wait_for(watch(), 10.0))
    assert b"event: trouble" in said
    assert b"secret" not in said


def test_it_ends_by_a_key(tmp_path: Path) -> None:
    with served(tmp_path / "runs.db") as server:
        server.begin("trial", MANY)
        stream = Streams(server, 2)
        stream.news()
        assert server.stop(signal.SIGINT, within=8.0) == ("", "")
        assert server.process.returncode == 0
        stream.close()


def test_a_logout_ends_the_streams_of_that_browser(tmp_path: Path) -> None:
    tokens = Tokens("write-" + "w" * 24, "read-" + "r" * 24)
    with here(tmp_path, Limits(), tokens=tokens) as (server, port), contextlib.ExitStack() as open_ones:
        url = f"http://127.0.0.1:{port}"
        leaving, staying, worker = (
            open_ones.enter_context(httpx.Client(base_url=url, headers=headers))
            for headers in ({}, {}, {"authorization": f"Bearer {tokens.write}"})
        )
        worker.post("/runs", json={"name": "trial", "question": QUESTION}).raise_for_status()
        for browser in (leaving, staying):
            browser.post("/login", json={"token": tokens.read}).raise_for_status()
        heard = []
        for client in (leaving, staying, worker):
            stream = open_ones.enter_context(client.stream("GET", "/runs/trial/events"))
            heard.append(stream.iter_bytes())
            assert next(heard[-1]).startswith(b"id: ")
        assert server.context.n_streams == 3
        leaving.post("/logout", json={}).raise_for_status()
        assert list(heard[0]) == [], "the stream ends, and nothing more is sent"
        eventually(lambda: server.context.n_streams == 2)
        worker.post("/runs/trial/ask", json={"worker": "ann"}).raise_for_status()
        assert all(next(one).startswith(b"id: ") for one in heard[1:])
