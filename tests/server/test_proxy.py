"""Behind a reverse proxy: nginx, with the configuration that the documentation gives."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from shortlist.errors import InvalidProblem
from shortlist.server.app import create_app
from shortlist.server.proxies import forwarded, networks_of
from shortlist.server.settings import Settings
from shortlist.server.tokens import Tokens
from shortlist.store import MemoryStore
from tests.docs.pages import blocks
from tests.server.calling import Caller
from tests.server.process import free_port
from tests.server.serving import QUESTION, Served, served, trouble_of

pytestmark = pytest.mark.slow

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
OPENSSL = shutil.which("openssl")
WRITE, READ = "write-" + "w" * 20, "read-" + "r" * 20


# --- who is believed ----------------------------------------------------------------------------------


def client_seen(peer: str, *chain: str, proxies: tuple[str, ...] = ("127.0.0.1", "10.0.0.0/8")) -> str:
    """Return whom the server takes for the client, of a request with these headers."""
    headers = [(b"x-forwarded-for", line.encode()) for line in chain]
    scope = {"type": "http", "client": (peer, 5000), "scheme": "http", "headers": headers}
    return str(forwarded(scope, networks_of(proxies))["client"][0])


def test_the_client_is_the_last_who_is_no_trusted_proxy() -> None:
    assert client_seen("127.0.0.1", "192.0.2.7") == "192.0.2.7"
    assert client_seen("::ffff:127.0.0.1", "192.0.2.7") == "192.0.2.7"
    assert client_seen("127.0.0.1", "192.0.2.7, 10.1.2.3") == "192.0.2.7", "two proxies"
    assert client_seen("127.0.0.1", "192.0.2.7", "10.1.2.3") == "192.0.2.7", "in two lines"
    assert client_seen("127.0.0.1", "1.1.1.1, 192.0.2.7") == "192.0.2.7", "the client made up the first"
    assert client_seen("127.0.0.1", "1.1.1.1, unknown, 10.1.2.3") == "10.1.2.3", (
        "not beyond what is no address"
    )
    assert client_seen("127.0.0.1", "2001:db8::7") == "2001:db8::7"
    assert client_seen("127.0.0.1") == "127.0.0.1"
    assert client_seen("127.0.0.1", "") == "127.0.0.1"


def test_others_are_not_believed() -> None:
    assert client_seen("192.0.2.9", "192.0.2.7") == "192.0.2.9"
    assert client_seen("127.0.0.1", "192.0.2.7", proxies=()) == "127.0.0.1"
    assert client_seen("testclient", "192.0.2.7") == "testclient"


def test_a_cookie_is_for_https_alone_if_the_client_came_by_it() -> None:
    settings = Settings(tokens=Tokens(WRITE, READ), proxies=networks_of(["192.0.2.1"]))
    with Caller(create_app(MemoryStore(), settings)) as client:

        def is_secure(*lines: str) -> bool:
            headers = [("x-forwarded-proto", line) for line in lines]
            reply = client.post("/login", json={"token": READ}, headers=headers)
            return "; Secure" in reply.headers["set-cookie"]

        assert is_secure("https")
        assert is_secure("http, HTTPS")
        assert not is_secure("https", "http")
        assert not is_secure("ftp")
        assert not is_secure()
        client.calls.address = "192.0.2.2"
        assert not is_secure("https"), "who is no proxy is not believed"


@pytest.mark.parametrize("given", ["lab.example", "10.0.0.1/8", "127.0.0.1:80", ""])
def test_a_proxy_is_an_address_or_a_network(given: str) -> None:
    with pytest.raises(InvalidProblem, match=r"--trust-proxy is .* must be an IP address"):
        networks_of([given])


# --- nginx --------------------------------------------------------------------------------------------


class Proxy:
    """nginx before a server, as the documentation configures it, with ports and files of its own."""

    def __init__(self, folder: Path, port: int) -> None:
        if NGINX is None or OPENSSL is None:
            pytest.skip("nginx or openssl is not installed (Debian: apt-get install nginx-light openssl)")
        (block,) = [one.text for one in blocks("docs/server.md") if one.language == "nginx"]
        self.port = free_port()
        own = {
            "listen 443 ssl": f"listen 127.0.0.1:{self.port} ssl",
            "127.0.0.1:8765": f"127.0.0.1:{port}",
            "/etc/ssl/lab.example.org.crt": str(folder / "own.crt"),
            "/etc/ssl/lab.example.org.key": str(folder / "own.key"),
        }
        for shown, here in own.items():
            assert block.count(shown) == 1
            block = block.replace(shown, here)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in kinds)
        user = "user root;\n" if os.geteuid() == 0 else ""  # the folder is nobody else's
        (folder / "nginx.conf").write_text(
            f"{user}pid {folder / 'pid'};\nerror_log {folder / 'errors'};\ndaemon off;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{temporary}{block}}}\n",
            encoding="utf-8",
        )
        make = (
            "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=lab.example.org -keyout own.key -out own.crt"
        )
        subprocess.run([OPENSSL, *make.split()], cwd=folder, check=True, capture_output=True)
        command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors")]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE)
        self._wait()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"https://127.0.0.1:{self.port}"

    def client(self, address: str = "127.0.0.2", token: str | None = None) -> httpx.Client:
        """Return a client that comes from an address of this machine."""
        transport = httpx.HTTPTransport(local_address=address, verify=False)
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, transport=transport, timeout=30.0, headers=headers)

    def _wait(self) -> None:
        end = time.monotonic() + 30
        while True:
            try:
                with self.client() as client:
                    client.get("/login")
                return
            except httpx.TransportError:
                assert self.process.poll() is None, self.process.communicate()[1].decode()
                assert time.monotonic() < end
                time.sleep(0.02)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.communicate(timeout=30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that trusts the proxy."""
    folder = tmp_path_factory.mktemp("server")
    file = folder / "tokens.txt"
    file.write_text(f"write {WRITE}\nread {READ}\n", encoding="utf-8")
    file.chmod(0o600)
    with served(folder / "runs.db", "--token-file", str(file), "--trust-proxy", "127.0.0.1") as found:
        found.client.headers["authorization"] = f"Bearer {WRITE}"
        found.begin("trial")
        yield found


@pytest.fixture(scope="module")
def proxy(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The proxy before it."""
    found = Proxy(tmp_path_factory.mktemp("nginx"), server.port)
    yield found
    found.stop()


def test_guesses_are_counted_by_client_and_not_by_what_it_says(proxy: Proxy) -> None:
    def guess(client: httpx.Client, number: int) -> int:
        made_up = {"x-forwarded-for": f"192.0.2.{number}", "forwarded": f"for=192.0.2.{number}"}
        wrong = {"authorization": f"Bearer wrong-{number}"}
        return client.get("/index.json", headers=wrong | made_up).status_code

    with proxy.client("127.0.0.2") as guesser, proxy.client("127.0.0.3") as other:
        assert [guess(guesser, number) for number in range(12)] == [401] * 10 + [429] * 2
        assert guess(other, 0) == 401
        right = {"authorization": f"Bearer {READ}"}
        assert guesser.get("/index.json", headers=right).status_code == 200


def test_browsers_log_in_and_out(proxy: Proxy) -> None:
    with proxy.client() as browser:
        page = {"origin": proxy.url, "sec-fetch-site": "same-origin"}
        reply = browser.post("/login", json={"token": WRITE}, headers=page)
        assert reply.status_code == 200
        cookie = reply.headers["set-cookie"]
        assert {"Secure", "HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
        begun = {"name": "by-browser", "question": QUESTION}
        assert browser.post("/runs", json=begun, headers=page).status_code == 201
        stolen = {"cookie": cookie.partition(";")[0]}
        assert browser.post("/logout", json={}, headers=page).status_code == 200
        assert httpx.get(f"{proxy.url}/index.json", headers=stolen, verify=False).status_code == 401


def test_news_come_at_once(proxy: Proxy) -> None:
    with proxy.client(token=WRITE) as client:
        client.post("/runs", json={"name": "watched", "question": QUESTION})
        with client.stream("GET", "/runs/watched/events") as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data: "))
            assert json.loads(next(lines)[6:])["n_events"] == 1
            with proxy.client(token=WRITE) as worker:
                worker.post("/runs/watched/ask", json={"worker": "a"})
            start = time.monotonic()
            assert json.loads(next(lines)[6:])["n_events"] > 1
            assert time.monotonic() - start < 10, "one second, and the machine may be busy"


def test_large_requests_pass_and_those_too_large_are_refused_by_the_server(proxy: Proxy) -> None:
    with proxy.client(token=WRITE) as client:
        blank = {"name": "large", "question": QUESTION | {"names": ["a" * 3_000_000, "b", "c"]}}
        assert client.post("/runs", json=blank).status_code == 201
        said = trouble_of(client.post("/runs", json=blank | {"strategy": "a" * 8_000_000}), 413)
        assert "larger than 10,485,760 bytes" in said["message"]


# --- HEAD ---------------------------------------------------------------------------------------------


def addresses(client: httpx.Client) -> list[str]:
    """Return all addresses that can be looked at, of a run that is there."""
    paths = client.get("/openapi.json").json()["paths"]
    found = [path.replace("{run}", "trial") for path, ways in paths.items() if "get" in ways]
    pages = ["/", "/login", "/plan", "/runs/trial", "/runs/trial/answer", "/openapi.json", "/static/app.css"]
    return [*found, *pages]


def test_head_is_get_without_a_body(server: Served, proxy: Proxy) -> None:
    with proxy.client(token=READ) as through:
        for client in (server.client, through):
            for path in [*addresses(client), "/nothing", "/runs/nothing/events"]:
                with client.stream("GET", path) as got:
                    head = client.head(path)
                assert (head.status_code, head.content) == (got.status_code, b""), path
                assert head.headers.keys() ^ got.headers.keys() <= {"transfer-encoding"}, path
                assert head.headers["content-type"] == got.headers["content-type"]
            assert client.head("/runs/trial/tell").status_code == 405
        assert httpx.head(f"{server.url}/runs/trial").status_code == 401
