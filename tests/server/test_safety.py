"""The server can be left on: nobody gets in, or gets out of it, what they should not."""

import ast
import asyncio
import hmac
import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import shortlist as sl
from shortlist import cli
from shortlist.errors import InvalidProblem, StoreTrouble
from shortlist.files.problem_file import question_of
from shortlist.server import pages, strict_json, tokens
from shortlist.server import routes_read as reading
from shortlist.server.app import create_app
from shortlist.server.errors import trouble
from shortlist.server.middleware import host_of
from shortlist.server.rate_limit import RateLimits, network_of
from shortlist.server.settings import Limits, Settings, is_loopback
from shortlist.server.strict_json import Unclear, parsed
from shortlist.server.tokens import SESSION, Right, Sessions, Tokens
from shortlist.store import MemoryStore, Store, open_store
from tests.server.calling import BASE, Caller
from tests.server.serving import MANY, QUESTION, trouble_of

WRITE, READ, WRONG = "write-" + "w" * 20, "read-" + "r" * 20, "wrong-" + "x" * 20
TOKENS = Tokens(WRITE, READ)
SITE = "http://evil.example"
COOKIE = Settings().cookie


def client_of(settings: Settings | None = None, store: Store | None = None) -> Caller:
    """Return a client of an application with these settings."""
    return Caller(create_app(MemoryStore() if store is None else store, settings or Settings()))


@pytest.fixture(scope="module")
def client() -> Iterator[Caller]:
    """A client of a server without tokens, with a run to which nothing is added."""
    with client_of() as found:
        assert begin(found).status_code == 201
        yield found


@pytest.fixture
def own() -> Iterator[Caller]:
    """The same, for one test alone."""
    with client_of() as found:
        assert begin(found).status_code == 201
        yield found


def begin(client: httpx.Client, name: str = "trial", **headers: str) -> httpx.Response:
    return client.post("/runs", json={"name": name, "question": QUESTION}, headers=headers)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


# --- who is let in ------------------------------------------------------------------------------------


def test_it_listens_at_this_machine_alone_unless_told_otherwise() -> None:
    from shortlist.cli.serve import command

    (host,) = [option for option in command.params if option.name == "host"]
    assert host.default == "127.0.0.1"
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    for other in ("0.0.0.0", "::", "", "192.168.1.5", "lab.example", "localhost.evil.example", "127.1"):
        assert not is_loopback(other), other


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_at_any_other_address_tokens_are_needed_and_shown_once(
    host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[Settings] = []

    class NoServer:
        def run(self, sockets: Any) -> None:
            for one in sockets:
                one.close()

    def server_for(store: Store, settings: Settings, host: str, port: int) -> NoServer:
        served.append(settings)
        return NoServer()

    monkeypatch.setattr("shortlist.server.serving.server_for", server_for)
    monkeypatch.setattr(sys, "argv", ["shortlist", "serve", "--host", host, "--port", "0"])
    cli.main()
    found = served[0].tokens
    assert found is not None
    assert min(len(found.write), len(found.read)) >= 32
    said = capsys.readouterr().out
    assert said.count(found.write) == said.count(found.read) == 1


def test_whoever_shows_no_token_gets_nothing() -> None:
    with client_of(Settings(tokens=TOKENS)) as client:
        begin(client, **bearer(WRITE))
        for path in PATHS:
            trouble_of(client.get(path), 401)
            assert "www-authenticate" in client.get(path).headers
        trouble_of(begin(client, "other"), 401)
        for path in POSTS:
            trouble_of(client.post(path, json={}), 401)
        assert client.get("/login").status_code == 200
        led = client.get("/runs/trial", headers={"accept": "text/html"})
        assert (led.status_code, led.headers["location"]) == (303, "/login?next=/runs/trial")


def test_nobody_is_led_to_another_server_by_way_of_the_login() -> None:
    with client_of(Settings(tokens=TOKENS)) as client:
        for path in ("//evil.example/x", "/\\evil.example"):
            reply = client.exactly(path, accept="text/html")
            assert reply.headers["location"] == "/login?next=/"


def test_one_token_looks_and_the_other_adds() -> None:
    with client_of(Settings(tokens=TOKENS)) as client:
        assert begin(client, **bearer(WRITE)).status_code == 201
        assert client.get("/index.json", headers=bearer(WRITE)).status_code == 200
        assert client.get("/index.json", headers=bearer(READ)).status_code == 200
        assert client.post("/plan", json=QUESTION, headers=bearer(READ)).status_code == 200
        assert "read-only" in trouble_of(begin(client, "other", **bearer(READ)), 403)["message"]
        for path in POSTS:
            trouble_of(client.post(path, json={}, headers=bearer(READ)), 403)
        trouble_of(begin(client, "other", **bearer(WRONG)), 401)
        assert [run["run"] for run in client.get("/index.json", headers=bearer(READ)).json()["runs"]] == [
            "trial"
        ]


def test_how_long_a_comparison_takes_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def noted(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return compare(one, other)

    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", noted)
    assert TOKENS.right_of(WRITE) is Right.WRITE
    assert TOKENS.right_of(READ) is Right.READ
    assert TOKENS.right_of(WRONG) is Right.NOTHING
    assert len(compared) == 6, "both tokens are compared, whichever is right"
    monkeypatch.setattr(hmac, "compare_digest", lambda *_: True)
    assert TOKENS.right_of(WRONG) is Right.WRITE, "nothing else decides"
    source = ast.parse(Path(tokens.__file__).read_text(encoding="utf-8"))
    (cls,) = [node for node in ast.walk(source) if isinstance(node, ast.ClassDef) and node.name == "Tokens"]
    (deciding,) = [node for node in cls.body if getattr(node, "name", "") == "right_of"]
    assert not [node for node in ast.walk(deciding) if isinstance(node, ast.Compare)]


def test_a_cookie_lets_in_and_does_not_tell_the_token() -> None:
    with client_of(Settings(tokens=TOKENS)) as client:
        reply = client.post("/login", json={"token": READ})
        assert reply.status_code == 200
        cookie = reply.headers["set-cookie"]
        assert READ not in cookie
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert client.get("/index.json").status_code == 200
        trouble_of(begin(client), 403)
        other = {"cookie": f'odd={{"a"}}; {COOKIE}={client.cookies[COOKIE]}; =x'}
        client.cookies.clear()
        assert client.get("/index.json", headers=other).status_code == 200
        for token in (WRITE, READ):
            assert client.get("/index.json", headers={"cookie": f"{COOKIE}={token}"}).status_code == 401


def test_a_cookie_is_worth_nothing_after_the_logout() -> None:
    with client_of(Settings(tokens=TOKENS)) as client:
        client.post("/login", json={"token": WRITE})
        stolen = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        client.cookies.clear()
        client.post("/login", json={"token": WRITE})
        kept = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        client.cookies.clear()
        assert begin(client, **stolen).status_code == 201
        gone = client.post("/logout", json={}, headers=stolen)
        assert (gone.status_code, f'{COOKIE}=""; ' in gone.headers["set-cookie"]) == (200, True)
        assert client.get("/index.json", headers=stolen).status_code == 401
        assert client.get("/index.json", headers=kept).status_code == 200, "another browser stays logged in"


def test_sessions_of_browsers_end() -> None:
    now = 5.0
    sessions = Sessions(lambda: now)
    cookies = {right: sessions.begin(right) for right in (Right.READ, Right.WRITE)}
    assert {right: sessions.right_of(cookie) for right, cookie in cookies.items()} == {
        right: right for right in cookies
    }
    assert sessions.right_of("") is sessions.right_of("\ud800") is Right.NOTHING
    for _ in range(10_000):
        sessions.begin(Right.READ)
    assert sessions.right_of(cookies[Right.READ]) is Right.NOTHING, "there is an end to how many there are"
    assert sessions.right_of(cookies[Right.WRITE]) is Right.WRITE, "and those who look end no other sessions"
    now += SESSION
    assert sessions.right_of(cookies[Right.WRITE]) is Right.NOTHING


def test_servers_of_one_host_have_cookies_of_their_own() -> None:
    apps = {port: create_app(MemoryStore(), Settings(tokens=TOKENS, port=port)) for port in (8765, 8766)}
    cookies: dict[str, str] = {}
    for app in apps.values():
        with Caller(app) as client:
            client.post("/login", json={"token": READ})
            cookies |= dict(client.cookies)
    assert len(cookies) == 2
    assert Settings(port=8765).cookie == Settings(port=8765).cookie


def test_a_cookie_that_is_of_no_use_is_taken_back() -> None:
    with client_of(Settings(tokens=TOKENS)) as client:
        reply = client.get("/index.json", headers={"cookie": f"{COOKIE}={'0' * 64}"})
        assert reply.status_code == 401
        assert f"{COOKIE}=; Max-Age=0" in reply.headers["set-cookie"]
        renewed = client.post("/login", json={"token": READ}, headers={"cookie": f"{COOKIE}=old"})
        assert ["Max-Age=2592000" in one for one in renewed.headers.get_list("set-cookie")] == [True]


@pytest.mark.parametrize("way", ["header", "form"])
def test_wrong_tokens_are_limited_for_each_address(way: str) -> None:
    def miss(client: Caller, number: int) -> httpx.Response:
        token = f"{WRONG}{number}"
        if way == "form":
            return client.post("/login", json={"token": token})
        return client.get("/index.json", headers=bearer(token))

    settings = Settings(tokens=TOKENS, limits=Limits(wrong_tokens=5))
    app = create_app(MemoryStore(), settings)
    with Caller(app) as client:
        for number in range(5):
            trouble_of(miss(client, number), 401)
        assert "wrong tokens" in trouble_of(miss(client, 6), 429)["message"]
        client.calls.address = "192.0.2.2"
        trouble_of(miss(client, 7), 401)


def test_the_right_token_is_let_in_however_many_wrong_ones_others_show() -> None:
    settings = Settings(tokens=TOKENS, limits=Limits(wrong_tokens=5, rate=1, burst=40))
    with client_of(settings) as client:
        client.post("/login", json={"token": READ})
        cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        client.cookies.clear()
        statuses = set()
        for number in range(50):
            statuses.add(client.get("/index.json", headers=bearer(f"{WRONG}{number}")).status_code)
            statuses.add(client.post("/login", json={"token": f"{WRONG}{number}"}).status_code)
        assert statuses == {401, 429}
        assert client.get("/index.json", headers=bearer(WRITE)).status_code == 200
        assert client.get("/index.json", headers=bearer(READ)).status_code == 200
        assert client.get("/index.json", headers=cookie).status_code == 200
    with client_of(Settings(tokens=TOKENS, limits=Limits(wrong_tokens=5))) as client:
        for number in range(20):
            client.post("/login", json={"token": f"{WRONG}{number}"})
        assert client.post("/login", json={"token": WRITE}).status_code == 200


def test_a_cookie_that_has_ended_is_no_guess() -> None:
    with client_of(Settings(tokens=TOKENS, limits=Limits(wrong_tokens=2))) as client:
        for _ in range(10):
            trouble_of(client.get("/index.json", headers={"cookie": f"{COOKIE}=old"}), 401)


def test_right_tokens_are_not_limited() -> None:
    with client_of(Settings(tokens=TOKENS, limits=Limits(wrong_tokens=3))) as client:
        for _ in range(10):
            assert client.post("/login", json={"token": READ}).status_code == 200
            assert client.get("/index.json").status_code == 200
            assert client.get("/index.json", headers=bearer(WRITE)).status_code == 200
            assert client.get("/index.json", headers={"authorization": "Basic eDp5"}).status_code == 200


def test_an_allowance_comes_back_with_time() -> None:
    now = 0.0
    some = RateLimits(0.1, 2, lambda: now)
    assert [some.take("a"), some.take("a"), some.take("a")] == [True, True, False]
    assert some.take("b")
    now = 9.0
    assert not some.take("a")
    now = 10.0
    assert [some.take("a"), some.take("a")] == [True, False]
    now = 1000.0
    assert [some.take("a"), some.take("a"), some.take("a")] == [True, True, False]


def test_addresses_are_counted_as_their_owners_have_them() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:2")
    assert network_of("2001:db8:0:1::1") != network_of("2001:db8:0:2::1")
    assert network_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert network_of("192.0.2.1") != network_of("192.0.2.2")
    assert network_of("testclient") == "testclient"


def test_a_file_of_tokens_must_be_secret_and_clear(tmp_path: Path) -> None:
    path = tmp_path / "tokens.txt"
    path.write_text(f"write {WRITE}\nread {READ}\n", encoding="utf-8")
    path.chmod(0o644)
    with pytest.raises(InvalidProblem, match="chmod 600"):
        Tokens.of_file(path)
    path.chmod(0o600)
    assert Tokens.of_file(path) == TOKENS
    for text, said in {
        f"read {READ}\n": "has no write token",
        f"write {WRITE}\nread {WRITE}\n": "are the same",
        "write short\n": "fewer than 16",
        f"write {WRITE}\nwrite {READ}\n": "is invalid. Write",
        f"{WRITE}\n": "is invalid. Write",
    }.items():
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidProblem, match=said) as raised:
            Tokens.of_file(path)
        assert WRITE not in str(raised.value)
    assert WRITE not in repr(TOKENS)


# --- pages of others ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": SITE},
        {"origin": "null"},
        {"origin": "file://"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://127.0.0.1"},
        {"origin": "chrome-extension://127.0.0.1:8765"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
    ids=str,
)
def test_pages_of_other_sites_can_send_nothing(client: Caller, headers: dict[str, str]) -> None:
    assert trouble_of(begin(client, "other", **headers), 403)["kind"] == "ForeignOrigin"
    assert len(client.get("/index.json").json()["runs"]) == 1


def test_pages_of_other_sites_can_lead_here_and_load_nothing(client: Caller) -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/runs/trial", headers=followed).status_code == 200
    for mode in ("cors", "no-cors", "same-origin", "websocket"):
        loaded = {"sec-fetch-site": "cross-site", "sec-fetch-mode": mode}
        trouble_of(client.get("/runs/trial.json", headers=loaded), 403)
    trouble_of(client.get("/runs/trial.json", headers={"origin": SITE}), 403)
    reply = client.options("/runs", headers={"origin": SITE, "access-control-request-method": "POST"})
    assert not [name for name in reply.headers if name.startswith("access-control-allow")]


def test_pages_of_our_own_can_send(own: Caller) -> None:
    headers = {"origin": BASE, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
    assert begin(own, "other", **headers).status_code == 201


@pytest.mark.parametrize("form", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_forms_of_other_sites_can_send_nothing(client: Caller, form: str) -> None:
    body = json.dumps({"name": "other", "question": QUESTION})
    for headers in ({"content-type": form}, {"content-type": f"{form}; charset=utf-8"}):
        trouble_of(client.post("/runs", content=body, headers=headers), 415)
    trouble_of(client.post("/runs", content=body), 415)
    assert len(client.get("/index.json").json()["runs"]) == 1


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "x@127.0.0.1", "", "[", "127.0.0.1:x"],
)
def test_a_foreign_name_that_leads_here_gets_nothing(client: Caller, host: str) -> None:
    for path in ("/", "/index.json", "/login", "/static/app.css"):
        assert trouble_of(client.get(path, headers={"host": host}), 421)["kind"] == "ForeignHost"


def test_our_own_names_lead_here() -> None:
    with client_of(Settings(hosts=frozenset({"lab.example"}))) as client:
        for host in (
            *("localhost:8765", "LOCALHOST", "localhost.", "[::1]:8765", "192.168.1.5"),
            *("lab.example", "Lab.Example.:80"),
        ):
            assert client.get("/index.json", headers={"host": host}).status_code == 200, host
        twice = [("host", "127.0.0.1:8765"), ("host", "evil.example")]
        trouble_of(client.get("/index.json", headers=twice), 421)
    assert host_of("[::1]:80") == "::1"


# --- what answers say ---------------------------------------------------------------------------------

PATHS = [
    *("/", "/index.json", "/runs/trial", "/runs/trial.json", "/runs/trial/answer", "/runs/trial/answer.json"),
    *("/plan", "/plan.json", "/openapi.json"),
    *(f"/runs/trial/{part}.json" for part in ("round", "question", "result", "export")),
    *("/runs/trial/export.csv", "/runs/trial/report.html"),
]
POSTS = [f"/runs/trial/{what}" for what in ("ask", "tell", "sheet", "renew", "release", "arrange", "suspend")]


def assert_safe(reply: httpx.Response) -> None:
    policy = dict(part.strip().split(" ", 1) for part in reply.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["form-action"] == policy["connect-src"] == "'self'"
    assert not [word for words in policy.values() for word in words.split() if "." in word or "*" in word]
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["x-frame-options"] == "DENY"
    assert reply.headers["referrer-policy"] == "same-origin"
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"
    assert reply.headers["cross-origin-opener-policy"] == "same-origin"
    assert "server" not in reply.headers
    assert "x-powered-by" not in reply.headers


def test_every_answer_tells_browsers_what_pages_may_do(client: Caller) -> None:
    for path in PATHS:
        reply = client.get(path)
        assert reply.status_code == 200, path
        assert_safe(reply)
        assert reply.headers["cache-control"] == "no-store"
    for reply in (
        client.get("/static/app.css"),
        client.get("/nothing"),
        client.get("/runs/none"),
        client.put("/runs"),
        client.head("/"),
        client.post("/runs", json={}),
        client.post("/runs", content=b"x", headers={"content-type": "text/plain"}),
        client.get("/", headers={"host": "evil.example"}),
        client.get("/", headers={"origin": SITE}),
        client.request("GET", "/", content=b"x"),
    ):
        assert_safe(reply)


def test_pages_have_no_scripts_within_and_load_nothing_of_others(client: Caller) -> None:
    for path in ("/", "/runs/trial", "/runs/trial/answer", "/plan", "/login"):
        page = client.get(path).text
        for part in page.split("<script")[1:]:
            tag, _, rest = part.partition(">")
            assert 'src="/static/' in tag or 'type="application/json"' in tag, tag
            assert rest.startswith("</script>") or "application/json" in tag
        assert " onclick=" not in page
        assert "http://" not in page.replace("http://www.w3.org/", "")
        assert "https://" not in page


def test_there_is_no_way_out_of_the_folder_of_files(client: Caller) -> None:
    assert client.get("/static/app.css").status_code == 200
    for path in (
        *("/static", "/static/", "/static/.", "/static/..", "/static/../app.py", "/static/%2e%2e/app.py"),
        *("/static/..%2fapp.py", "/static/..%5capp.py", "/static/%2fetc%2fpasswd", "/static//etc/passwd"),
        *("/static/app.css%00.js", "/static/app.css/", "/static/__init__.py", "/static/base.html"),
        *("/static/....//app.py", "/static/..%252fapp.py", "/templates/base.html", "/.git/config"),
    ):
        said = trouble_of(client.exactly(path), 404)
        assert "Traceback" not in said["message"]


def test_files_that_are_not_there_are_not_remembered(client: Caller) -> None:
    assert client.get("/static/app.css").status_code == 200
    before = set(pages.static_files())
    for k in range(20):
        trouble_of(client.get(f"/static/{k}.js"), 404)
    assert set(pages.static_files()) == before


def test_files_are_compressed_and_nothing_else(client: Caller) -> None:
    """What an answer is compressed to could tell what a secret in it has in common with what others wrote."""
    for path in (*PATHS, "/nothing"):
        reply = client.get(path, headers={"accept-encoding": "gzip"})
        assert "content-encoding" not in reply.headers, path
    for name in pages.static_files():
        packed = client.get(f"/static/{name}", headers={"accept-encoding": "gzip"})
        plain = client.get(f"/static/{name}", headers={"accept-encoding": "identity"})
        assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "accept-encoding")
        assert ("content-encoding" in plain.headers, plain.headers["vary"]) == (False, "accept-encoding")
        assert packed.content == plain.content
        assert packed.headers["etag"] == plain.headers["etag"]
        assert packed.headers["content-type"].startswith(("text/javascript", "text/css", "image/svg+xml"))
        whole = client.get(f"/static/{name}", headers={"range": "bytes=nonsense"})
        assert (whole.status_code, whole.content) == (200, plain.content)


def test_a_fault_of_the_server_is_told_without_details(
    client: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr(reading, "_question", fails)
    reply = client.get("/runs/trial/question.json")
    assert trouble_of(reply, 500)["kind"] == "InternalError"
    assert_safe(reply)
    assert "secret" not in reply.text
    monkeypatch.setattr("shortlist.server.middleware.is_foreign", fails)
    reply = client.get("/index.json")
    assert trouble_of(reply, 500)["kind"] == "InternalError"
    assert_safe(reply)
    assert "secret" not in reply.text


def test_nobody_learns_where_the_store_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "secret-place.db"
    store = open_store(path)
    with client_of(store=store) as client:
        begin(client)
        spoiled = bytearray(path.read_bytes())
        assert client.get("/runs/trial.json").status_code == 200
        store.close()
        spoiled[:100] = b"x" * 100
        path.write_bytes(bytes(spoiled))
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        with caplog.at_level(logging.WARNING):
            for reply in (
                *(client.get(f"/runs/trial{part}") for part in (".json", "/round.json", "/export.csv")),
                *(client.get("/index.json"), client.get("/runs/other/events"), begin(client, "new")),
                client.post("/runs/trial/ask", json={"worker": "a"}),
            ):
                said = trouble_of(reply, 409, 503)
                assert said["message"].startswith("The store is "), said
                assert str(tmp_path) not in reply.text
        assert "secret-place" in caplog.text, "who runs the server can find out"


def test_answers_are_refused_when_the_file_of_the_store_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "secret-place.db"
    with closing(open_store(path)) as store, client_of(store=store) as client:
        begin(client)
        ask = client.post("/runs/trial/ask", json={"worker": "a"})
        path.unlink()
        answer = {"ticket": ask.json()["tickets"][0]["ticket"], "mean": 0.5}
        reply = client.post("/runs/trial/tell", json={"worker": "a", "answers": [answer]})
        said = trouble_of(reply, 503)["message"]
        assert "was removed" in said
        assert "not saved" in said
        assert "secret-place" not in said
        assert str(tmp_path) not in said


def test_nobody_learns_who_uses_which_database() -> None:
    from shortlist.server.errors import discreet

    class Elsewhere(MemoryStore):
        def __repr__(self) -> str:
            return "<PostgresStore: The store postgresql://me:***@db.internal/lab>"

    error = StoreTrouble(
        "The store postgresql://me:***@db.internal/lab: the server refused the connection (connection to "
        'server at "db.internal" (10.0.0.5), port 5432 failed: FATAL: password authentication failed for '
        'user "me"). Earlier results are safe. Correct the user.'
    )
    assert str(discreet(error, Elsewhere())) == (
        "The store: the server refused the connection. Earlier results are safe. Correct the user."
    )
    plain = StoreTrouble("Run 'a (b)' has 3 records, but 5 were read before.")
    assert discreet(plain, Elsewhere()) is plain


# --- how much is taken --------------------------------------------------------------------------------


def test_one_address_can_send_only_so_much_per_second() -> None:
    app = create_app(MemoryStore(), Settings(limits=Limits(rate=0.001, burst=5)))
    with Caller(app) as client:
        for _ in range(5):
            assert client.get("/index.json").status_code == 200
        reply = client.get("/index.json")
        assert trouble_of(reply, 429)["kind"] == "TooManyRequests"
        assert reply.headers["retry-after"] == "1"
        client.calls.address = "192.0.2.2"
        assert client.get("/index.json").status_code == 200


def test_what_is_too_large_is_refused_before_it_is_read(client: Caller) -> None:
    sent = 0

    def parts() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 2**20
            yield b" " * 2**20

    kind = {"content-type": "application/json"}
    for reply in (
        client.post("/runs", content=parts(), headers=kind),
        client.post("/runs", content=b"x", headers=kind | {"content-length": str(11 * 2**20)}),
        client.post("/runs", content=b"x", headers=kind | {"content-length": "9" * 30}),
    ):
        assert "10,485,760 bytes" in trouble_of(reply, 413)["message"]
        assert reply.headers["connection"] == "close"
    assert sent <= 11 * 2**20, "no more is taken than it needs to know"
    assert client.post("/plan", json=QUESTION | {"names": ["a" * 10**6, "b", "c"]}).status_code == 200


def test_who_has_shown_no_token_can_send_little() -> None:
    with client_of(Settings(tokens=TOKENS)) as client:
        trouble_of(client.post("/login", json={"token": "x" * 20_000}), 413)
        trouble_of(client.post("/runs", json={"name": "x" * 20_000}), 401)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_what_only_looks_sends_nothing_along(client: Caller, method: str) -> None:
    reply = client.request(method, "/index.json", content=b"{}")
    assert reply.status_code == 400
    assert reply.headers["connection"] == "close"


# --- strict types -------------------------------------------------------------------------------------

NO_NUMBERS = [
    *("true", "false", '"1"', '"0.5"', "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "-1", "0"),
    *("1" + "0" * 400, "1" + "0" * 5000, "[]", "{}", "[[1]]", "[" * 500 + "]" * 500, "[" * 10**5),
    *('{"a": 1, "a": 2}', r'"\ud800"', r'"a\u0000b"'),
]


def begun_with(client: Caller, field: str, value: str) -> httpx.Response:
    """Try to begin a run with one entry of its question replaced, letter by letter."""
    others = {key: entry for key, entry in QUESTION.items() if key != field}
    body = f'{{"name": "new", "question": {json.dumps(others)[:-1]}, "{field}": {value}}}}}'
    return client.post("/runs", content=body, headers={"content-type": "application/json"})


@pytest.mark.parametrize("field", ["m", "epsilon", "delta", "variances", "pilot", "bounds"])
@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: value[:12])
def test_only_numbers_are_numbers(client: Caller, field: str, value: str) -> None:
    said = trouble_of(begun_with(client, field, value), 400, 422)
    if said["status"] == 422:
        assert f"`{field}" in said["message"] or field in said["message"]
    assert len(client.get("/index.json").json()["runs"]) == 1


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("epsilon", "1e999", "`epsilon` is inf; it must be positive and finite."),
        ("m", "true", "`m` is True; it must be a whole number of arms to select, such as 3."),
        ("delta", '"0.1"', "`delta` is '0.1'; it must be a real number. For 95 % confidence use 0.05."),
        ("variances", "[1, true, 1]", "`variances[1]` is True; it must be a real number."),
        ("names", '["a", "a", "b"]', "`names[1]` and `names[0]` are both 'a'; names must differ"),
        ("names", '["a", "b"]', "there are 2 `names`"),
        ("n", "1000000000", "over HTTP it must be at most 1,000,000"),
        ("goal", '"win"', "`goal` is 'win'; it must be one of"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_library(
    client: Caller, field: str, value: str, words: str
) -> None:
    said = trouble_of(begun_with(client, field, value), 422)
    assert said["kind"] == "InvalidProblem"
    assert words in said["message"]


def test_what_was_given_is_not_repeated_at_length(client: Caller) -> None:
    long = "a" * 100_000
    twice = client.post("/runs", json={"name": "new", "question": QUESTION | {"names": [long, long, "b"]}})
    message = trouble_of(twice, 422)["message"]
    assert message.endswith("...; names must differ, because results are reported by name.")
    assert len(message) < 400


@pytest.mark.parametrize(
    "name",
    ["", " ", "a\nb", "a\x00b", "\x1b[2J", "\u202eabc", "a" * 201, "a" * 10_000, 3, True, None, ["a"]],
    ids=lambda name: repr(name)[:12],
)
def test_a_name_must_be_one(client: Caller, name: object) -> None:
    trouble_of(client.post("/runs", json={"name": name, "question": QUESTION}), 400, 422)
    for what, more in {"ask": {}, "renew": {}, "release": {}, "suspend": {"reason": "x"}}.items():
        trouble_of(client.post(f"/runs/trial/{what}", json={"worker": name} | more), 400, 422)
    told = {"answers": [], "worker": name}
    trouble_of(client.post("/runs/trial/tell", json=told), 400, 422)
    if isinstance(name, str) and name:
        code = client.get("/runs/trial.json").json()["code"]
        about: dict[str, Any] = {"params": {"worker": name}, "headers": {"content-type": "text/csv"}}
        trouble_of(client.post("/runs/trial/sheet", content=f"ticket,mean\n{code}-r0-a0,1\n", **about), 422)
    assert [run["run"] for run in client.get("/index.json").json()["runs"]] == ["trial"]
    assert client.get("/runs/trial.json").json()["n_events"] == 1


@pytest.mark.parametrize("way", ["sheet", "tell"])
def test_a_hostile_name_does_not_keep_the_server_busy(way: str) -> None:
    names = ["a" * 60, "b", "c"]
    with client_of() as client:
        begun = client.post("/runs", json={"name": "trial", "question": QUESTION | {"names": names}})
        ticket, name = f"{begun.json()['code']}-r0-a0", "\ufffda" * 12 + "b"
        start = time.perf_counter()
        if way == "tell":
            told = {"worker": "a", "answers": [{"ticket": ticket, "mean": 1.0, "name": name}]}
            reply = client.post("/runs/trial/tell", json=told)
        else:
            sheet = f"ticket,mean,name\n{ticket},1,{name}\n".encode()
            reply = client.post("/runs/trial/sheet", content=sheet, headers={"content-type": "text/csv"})
        assert time.perf_counter() - start < 2.0
        assert "the name is" in trouble_of(reply, 422)["message"]


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("ask", {"worker": "a", "limit": 1.0}),
        ("ask", {"worker": "a", "limit": True}),
        ("ask", {"worker": "a", "limit": -1}),
        ("ask", {"worker": "a", "limit": 10**400}),
        ("ask", {"worker": "a", "lease": 0}),
        ("ask", {"worker": "a", "lease": "9"}),
        ("ask", {"worker": "a", "lease": 1e11}),
        ("ask", {"worker": "a", "round": 10**30, "arms": [0]}),
        ("ask", {"worker": "a", "round": 0, "arms": [10**30]}),
        ("ask", {"worker": "a", "round": 0, "arms": [True]}),
        ("ask", {"worker": "a", "round": 0, "arms": [-1]}),
        ("ask", {"worker": "a", "round": 0, "arms": [99]}),
        ("ask", {"worker": "a", "arms": [0]}),
        ("ask", {"worker": "a", "also": 1}),
        ("ask", [1]),
        ("tell", {"worker": "a", "answers": {}}),
        ("tell", {"worker": "a", "answers": [1]}),
        ("tell", {"worker": "a", "answers": [{"ticket": 3, "mean": 1.0}]}),
        ("tell", {"worker": "a", "answers": [{"ticket": "TICKET", "mean": True}]}),
        ("tell", {"worker": "a", "answers": [{"ticket": "TICKET", "mean": "1"}]}),
        ("tell", {"worker": "a", "answers": [{"ticket": "TICKET", "mean": 10**400}]}),
        ("tell", {"worker": "a", "answers": [{"ticket": "TICKET", "rewards": [1, 2, None, 4, 5]}]}),
        ("tell", {"worker": "a", "answers": [{"ticket": "TICKET", "rewards": [1]}]}),
        ("tell", {"worker": "a", "answers": [{"ticket": "TICKET", "mean": 1.0, "count": 3}]}),
        ("tell", {"worker": "a", "answers": [{"ticket": "TICKET" + "9" * 30, "mean": 1.0}]}),
        ("arrange", {"settings": []}),
        ("arrange", {"settings": {"follows": 3}}),
        ("arrange", {"settings": {"follows": {"other": 3}}}),
        ("arrange", {"settings": {"a": "x" * 200_000}}),
        ("arrange", {"settings": {"a": json.loads("[" * 40 + "]" * 40)}}),
        ("suspend", {"worker": "a", "reason": ""}),
        ("suspend", {"worker": "a", "reason": "x" * 20_000}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_makes_no_sense_changes_nothing(client: Caller, what: str, body: Any) -> None:
    code = client.get("/runs/trial.json").json()["code"]
    text = json.dumps(body).replace("TICKET", f"{code}-r0-a0")
    reply = client.post(f"/runs/trial/{what}", content=text, headers={"content-type": "application/json"})
    trouble_of(reply, 400, 409, 422)
    assert client.get("/runs/trial.json").json()["n_events"] == 1


def test_json_is_read_as_it_is_meant() -> None:
    assert parsed(b'{"a": [1, 2.5, "\\\\ud800", "\\ud83d\\ude00"]}') == {"a": [1, 2.5, "\\ud800", "😀"]}
    for text, said in {
        b'{"a": 1, "b": {"c": 1, "c": 1}}': "twice",
        b"[NaN]": "NaN",
        b'["\\udC00"]': "lone surrogates",
        b'{"\\ud800": 1}': "lone surrogates",
        b'"\\u0000"': "NUL",
        b"\xff": "UTF-8",
        '"x"'.encode("utf-16"): "UTF-8",
        b"[1,]": "not valid JSON",
        b"": "not valid JSON",
        b"[" * 33 + b"]" * 33: "too deep",
        b"9" * 5000: "digits",
    }.items():
        with pytest.raises(Unclear, match=said):
            parsed(text)
    assert parsed(b"[" * 30 + b"]" * 30)


def test_a_large_request_is_parsed_beside_the_event_loop(
    own: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = []

    def noted(data: bytes) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            beside.append(len(data))
        return parsed(data)

    monkeypatch.setattr(strict_json, "parsed", noted)
    for n in (1, 10_000):
        answers = [{"ticket": "abcdef-r0-a0"}] * n
        assert own.post("/runs/trial/tell", json={"worker": "w", "answers": answers}).status_code == 422
    assert len(beside) == 1
    assert beside[0] > 100_000


# --- nothing is executed, and no file is read ---------------------------------------------------------

_WATCHED: list[tuple[str, str]] = []
_HOOKED: list[bool] = []
_is_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _is_watching and event.partition(".")[0] in {"open", "subprocess", "os", "exec", "compile", "pty"}:
        _WATCHED.append((event, repr(arguments)[:300]))


@pytest.fixture
def watched() -> Iterator[list[tuple[str, str]]]:
    """Note what Python opens and executes."""
    global _is_watching  # noqa: PLW0603
    if not _HOOKED:
        sys.addaudithook(_watch)
        _HOOKED.append(True)
    _is_watching = True
    yield _WATCHED
    _is_watching = False


def test_nothing_that_is_sent_is_executed_or_read_as_a_file(
    own: Caller, tmp_path: Path, watched: list[tuple[str, str]]
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("name,variance\nsecret-word,1.0\n", encoding="utf-8")
    path, ran = str(secret), tmp_path / "ran"
    command = {"kind": "command", "command": ["touch", str(ran)]}
    code = own.get("/runs/trial.json").json()["code"]
    questions: list[dict[str, Any]] = [
        QUESTION | {key: path}
        for key in ("arms", "names", "variances", "scales", "bounds", "rewards", "noise", "goal", "guarantee")
    ]
    sent: list[tuple[str, Any]] = [("/plan", question) for question in questions]
    sent += [("/runs", {"name": "new", "question": question}) for question in questions]
    sent += [
        ("/runs", {"name": path, "question": QUESTION}),
        ("/runs", {"name": "new", "question": QUESTION, "strategy": path}),
        ("/runs", {"name": "new", "question": QUESTION, "strategy": "os:system"}),
        ("/runs", {"name": "new", "question": QUESTION, "measure": command}),
        ("/runs", {"name": "new", "question": QUESTION | {"measure": command}}),
        ("/runs", {"name": "new", "question": {"problem": QUESTION, "measure": command}}),
        ("/runs/trial/arrange", {"settings": {"measure": command | {"path": path}}}),
        ("/runs/trial/ask", {"worker": path}),
        ("/runs/trial/tell", {"worker": f"$(touch {ran})", "answers": [{"ticket": path, "mean": 1.0}]}),
        (
            "/runs/trial/tell",
            {"worker": "a", "answers": [{"ticket": f"{code}-r0-a0", "name": path, "mean": 1}]},
        ),
        ("/runs/trial/suspend", {"worker": "a", "reason": f"`touch {ran}`"}),
    ]
    watched.clear()
    for where, body in sent:
        reply = own.post(where, json=body)
        assert reply.status_code < 500
        assert "secret-word" not in reply.text
    own.post("/runs/trial/sheet", content=path.encode(), headers={"content-type": "text/csv"})
    for part in ("", ".json", "/report.html", "/export.json", "/export.csv", "/round.json"):
        assert "secret-word" not in own.get(f"/runs/trial{part}").text
    happened = list(watched)
    assert happened, "something is noted at all"
    assert not [one for one in happened if one[0] == "open" and "secret.csv" in one[1]]
    started = (
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
        "os.spawn",
        "pty.spawn",
    )
    assert not [one for one in happened if one[0] in started]
    assert not ran.exists()


def test_sections_that_name_files_or_programs_are_refused(client: Caller) -> None:
    named = client.post("/runs", json={"name": "new", "question": QUESTION | {"arms": "arms.csv"}})
    assert "`question.arms` is not a known field" in trouble_of(named, 422)["message"]
    measured = client.post(
        "/runs", json={"name": "new", "question": QUESTION, "measure": {"kind": "command"}}
    )
    assert "`measure` is not a known field" in trouble_of(measured, 422)["message"]
    with pytest.raises(InvalidProblem, match="names a file, but no files are read here"):
        question_of(QUESTION | {"arms": "arms.csv"})


# --- where runs are only to be looked at --------------------------------------------------------------


@pytest.mark.parametrize("is_ended", [False, True])
def test_where_runs_are_only_looked_at_nothing_is_written(tmp_path: Path, is_ended: bool) -> None:
    path = tmp_path / "runs.db"
    session = sl.Session(sl.Problem(**QUESTION), seed=1, store=path, name="trial")
    while is_ended and (tickets := session.ask()):
        session.tell(tickets, means=[float(ticket.arm) for ticket in tickets])
    if not is_ended:
        session.ask(1, worker="a")
    session.close()
    before = path.read_bytes()
    store = open_store(path, read_only=True)
    with client_of(Settings(is_read_only=True), store) as client:
        for part in PATHS:
            assert client.get(part).status_code == 200, part
        assert client.get("/runs/trial/round.json", params={"worker": "a"}).status_code == 200
        assert client.post("/plan", json=QUESTION).status_code == 200
        for refused in (begin(client, "other"), *(client.post(part, json={}) for part in POSTS)):
            assert trouble_of(refused, 403)["kind"] == "ReadOnly"
            assert refused.headers["connection"] == "close"
        for method in ("PUT", "PATCH", "DELETE"):
            trouble_of(client.request(method, "/runs/trial"), 403)
    assert path.read_bytes() == before


def test_a_server_that_may_not_write_could_not(tmp_path: Path) -> None:
    """Were the guard to fail, what opens runs would still refuse."""
    from shortlist.server.app import create_api

    path = tmp_path / "runs.db"
    sl.Session(sl.Problem(**MANY), store=path, name="trial").close()
    before = path.read_bytes()
    store = open_store(path, read_only=True)
    api = create_api(store, Settings(is_read_only=True))
    with Caller(api) as client:
        for what in ("ask", "renew", "release"):
            assert (
                "read-only"
                in trouble_of(client.post(f"/runs/trial/{what}", json={"worker": "a"}), 503)["message"]
            )
        trouble_of(begin(client, "other"), 503)
    assert path.read_bytes() == before


def test_messages_have_an_end() -> None:
    """Whatever somebody sent, and an error repeats."""
    said = trouble(400, "invalid_problem", "x" * 100_000)["error"]["message"]
    assert said == "x" * 2000 + "..."
    assert trouble(400, "invalid_problem", "x" * 2000)["error"]["message"] == "x" * 2000
