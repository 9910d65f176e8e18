"""Pages of `shortlist serve`, used as people use them: in a browser, with a server that may die."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
import segno

import shortlist as sl
from shortlist.report.text_format import mean_words, shortened, visible
from shortlist.server.app import create_app
from shortlist.server.tokens import Tokens
from shortlist.store import MemoryStore
from tests.looking import LOOK, chromium
from tests.report.samples import HOSTILE
from tests.server.browser import Serving, fill, means_of
from tests.session.typed import TYPED

pytest.importorskip("playwright")
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.slow

PHONE, DESK, WALL = 390, 1280, 1920
VIEWS: list[tuple[int, Literal["light", "dark"]]] = [
    *((PHONE, "light"), (PHONE, "dark")),
    *((DESK, "light"), (WALL, "light")),
]
RUNS = {
    "certified": "certified",
    "fresh": "fresh",
    "being measured": "being%20measured",
    "suspended": "suspended~1%CE%B1",
    "large": "large",
    "hostile": "%3Ci%3Ehostile%3C~1i%3E%20%26%20%27quoted%27",
    "unknown variances": "unknown%20variances",
    "shared items": "shared%20items",
    "in blocks": "in%20blocks",
}
PAGES = {"list": "/", "plan": "/plan", "login": "/login", "damaged": "/runs/damaged"} | {
    name: f"/runs/{part}" for name, part in RUNS.items()
}
AUDIT = """() => {
  const unnamed = [...document.querySelectorAll('input, select, textarea')].filter(e => !e.labels.length);
  const uncaptioned = [...document.querySelectorAll('table')].filter(e => !e.caption);
  const unheard = [...document.querySelectorAll('img:not([alt]), [role=img]:not([aria-label])')];
  const idle = [...document.querySelectorAll('a, button')].filter(e => e.offsetParent && !e.innerText.trim());
  const levels = [...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]));
  const jumps = levels.filter((level, k) => level > (levels[k - 1] ?? 0) + 1);
  return [...unnamed, ...uncaptioned, ...unheard, ...idle].map(e => e.outerHTML.slice(0, 200)).concat(jumps);
}"""

FITS = """() => [...document.querySelectorAll('figure svg[role=img]')].every(e => {
  const box = e.getBoundingClientRect(), around = e.closest('figure').getBoundingClientRect();
  const words = getComputedStyle(e.querySelector('.label'));
  return box.width > 50 && box.left > around.left && box.right < around.right
    && words.fill === getComputedStyle(e.closest('figure').querySelector('figcaption')).color;
})"""

ABOVE_BAR = """e => {
  const box = e.getBoundingClientRect(), bar = document.getElementById('bar').getBoundingClientRect();
  return box.top >= 0 && box.bottom <= bar.top + 0.5;
}"""

ARMS, ROUNDS = (f"[data-figure='figures.{name}']" for name in ("arms", "rounds"))
NAMES = f"{ARMS} .names li:not(.cut)"

WAIT = 20_000  # milliseconds, of which hardly any are used
expect.set_options(timeout=WAIT)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Return a server that has a run of every kind, and at which tests begin others."""
    store = tmp_path_factory.mktemp("serving") / "runs.db"
    fill(store)
    server = Serving(store)
    yield server
    server.close()


OpenRun = Callable[..., Page]


@pytest.fixture(scope="module")
def shared(browser: Any) -> Iterator[Any]:
    """Return what tests share that do not need a browser of their own."""
    with contextlib.closing(browser.new_context()) as context:
        yield context


@pytest.fixture
def tab(browser: Any, shared: Any) -> Iterator[OpenRun]:
    """Return a function that opens a page; with `own`, in a browser that has seen nothing before.

    Nothing may be loaded from elsewhere, nothing may be forbidden by the page's own policy, and the console
    has nothing to say, but for requests that are `refused` on purpose.
    """
    opened: list[Any] = []
    wrong: list[str] = []

    def new(url: str, width: int = DESK, refused: str = r"\Z\A", own: bool = False, **how: Any) -> Page:
        context = browser.new_context(**how) if own or how else shared
        page: Page = context.new_page()
        opened.append(page if context is shared else context)
        page.set_viewport_size({"width": width, "height": 900})
        page.set_default_timeout(WAIT)
        _watch(page, url, refused, wrong)
        page.goto(url)
        return page

    yield new
    for one in opened:
        one.close()
    assert wrong == []


def _watch(page: Page, url: str, refused: str, wrong: list[str]) -> None:
    host = "/".join(url.split("/")[:3])

    def requested(request: Any) -> None:
        if not request.url.startswith((host, "data:", "blob:")):
            wrong.append(f"elsewhere: {request.url}")

    def said(message: Any) -> None:
        if message.type in {"error", "warning"} and not re.search(refused, message.text):
            wrong.append(message.text)

    page.on("request", requested)
    page.on("console", said)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))


def drawn(page: Page) -> None:
    """Wait until the figures of a run are there."""
    expect(page.locator(f"{ROUNDS} svg[role=img]")).to_be_visible()


def spot(page: Page, choice: str) -> Any:
    """Return the only element of that kind."""
    return page.locator(choice)


# --- how pages look ---------------------------------------------------------------------------------------


def test_pages_can_be_read_at_any_width(serving: Serving, tab: OpenRun) -> None:
    page = tab(serving.url, PHONE, refused="status of 409")
    for kind, path in PAGES.items():
        page.set_viewport_size({"width": PHONE, "height": 900})
        page.emulate_media(color_scheme="light")
        page.goto(serving.url + path)
        if kind in RUNS:
            drawn(page)
        if kind == "plan":
            expect(spot(page, "#plan-rows tr").first).to_be_visible()
        assert page.evaluate(AUDIT) == [], kind
        for width, scheme in VIEWS:
            page.set_viewport_size({"width": width, "height": 6000})
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert page.evaluate(FITS), (kind, width, scheme)
            found = page.evaluate(LOOK)
            assert found["sticking_out"] == [], (kind, width, scheme)
            assert found["faint"] == [], (kind, width, scheme)
            assert found["texts"] > (5 if kind in {"login", "damaged"} else 20)


def test_a_run_on_shared_items_shows_what_is_measured_and_what_is_saved(
    serving: Serving, tab: OpenRun
) -> None:
    page = tab(serving.url + PAGES["shared items"], PHONE)
    facts = serving.facts("/runs/shared%20items.json")
    statuses = [one["status"] for one in facts["arms"]["rows"]]
    n_arms = [str(statuses.count(status)) for status in ("in", "open", "out")]
    assert facts["n_pulls"] == 2000 * facts["share"]
    saved = sum(200 - one["pulls"] for one in facts["arms"]["rows"] if one["status"] != "open")
    expected = [f"{100 * facts['share']:.0f} %", f"{saved:,}", *n_arms]
    expected.append(f"{1.5 * facts['n_pulls']:,g}")
    expect(page.locator(".tallies b")).to_have_text(expected)
    assert spot(page, ".tallies").inner_text().split()[-3:] == ["cost", "so", "far"]
    expect(spot(tab(f"{serving.url}/runs/certified"), ".tallies")).to_be_hidden()


def test_a_run_in_blocks_shows_how_many_more_are_needed(serving: Serving, tab: OpenRun) -> None:
    page = tab(serving.url + PAGES["in blocks"], PHONE)
    facts = serving.facts("/runs/in%20blocks.json")
    statuses = [one["status"] for one in facts["arms"]["rows"]]
    n_arms = [str(statuses.count(status)) for status in ("in", "open", "out")]
    expect(page.locator(".tallies b")).to_have_text(
        [str(facts["n_blocks"]), str(facts["n_blocks_left"]), *n_arms]
    )
    words = spot(page, ".tallies").inner_text()
    assert "more needed, by forecast" in words
    assert "saved" not in words
    means = {one["name"]: one["mean"] for one in facts["arms"]["rows"]}
    assert max(means, key=lambda name: means[name]) == "prompt G"
    assert means["prompt G"] - means["prompt I"] == pytest.approx(5 * (0.8 - 0.33), abs=1)


def test_figures_have_the_colours_of_the_page_and_stand_beside_the_names(
    serving: Serving, tab: OpenRun
) -> None:
    page = tab(f"{serving.url}/runs/certified", PHONE)
    drawn(page)
    colours = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        wanted = page.evaluate(
            """() => {
              const probe = document.createElement('i');
              probe.style.color = 'var(--in)';
              document.body.append(probe);
              const wanted = getComputedStyle(probe).color;
              probe.remove();
              return wanted;
            }"""
        )
        fill = spot(page, f"{ARMS} circle.in").first.evaluate("e => getComputedStyle(e).fill")
        assert fill == wanted
        colours.add(fill)
    assert len(colours) == 2
    rows, marks = page.evaluate(
        """choices => {
          const middle = e => { const b = e.getBoundingClientRect(); return b.y + b.height / 2; };
          return choices.map(choice => [...document.querySelectorAll(choice)].map(middle));
        }""",
        [NAMES, f"{ARMS} :is(circle, rect):not(.bar)"],
    )
    assert len(rows) == len(marks) == 10
    assert rows == pytest.approx(marks, abs=2)


def test_nothing_moves_for_those_who_do_not_want_it(serving: Serving, tab: OpenRun) -> None:
    page = tab(f"{serving.url}/")
    moving = []
    for wish in ("no-preference", "reduce"):
        page.emulate_media(reduced_motion=wish)
        moving.append(
            page.evaluate("getComputedStyle(document.querySelector('.track .made')).transitionDuration")
        )
    assert moving == ["0.4s", "0s"]


def test_names_that_mean_harm_stay_text(serving: Serving, tab: OpenRun) -> None:
    page = tab(serving.url + PAGES["hostile"])
    drawn(page)
    shown = [" ".join(text.split()) for text in spot(page, f"{NAMES} bdi").all_text_contents()]
    assert sorted(shown) == sorted(" ".join(shortened(visible(name), 32).split()) for name in HOSTILE)
    titles = [one.get_attribute("title") for one in spot(page, f"{NAMES} bdi[title]").all()]
    assert sorted(titles) == sorted(
        shortened(visible(name), 120) for name in HOSTILE if len(visible(name)) > 32
    )
    assert spot(page, "main").inner_text().count("<i>hostile</i>") >= 1
    assert page.evaluate("document.querySelectorAll('main :is(img, i:not(.key), script, style)').length") == 0


def test_names_that_mean_harm_stay_text_when_they_come_in_later(serving: Serving, tab: OpenRun) -> None:
    names = ["plain", "<img src=x onerror=alert(1)>", "<script>alert(2)</script>", "<i>last</i>"]
    serving.begin("harm", 4, 1, names=names)
    page = tab(f"{serving.url}/runs/harm")
    expect(spot(page, f"{ARMS} figcaption")).to_have_text("No arm has been pulled yet.")
    expect(spot(page, f"{ARMS} tbody th")).to_have_text(names)
    serving.finish("harm", {name: place / 4 for place, name in enumerate(names)})
    expect(spot(page, NAMES)).to_have_text(names[::-1])
    expect(spot(page, f"{ARMS} tbody th")).to_have_text(names[::-1])
    expect(spot(page, ".winners li")).to_have_text([names[-1]])
    assert page.evaluate("document.querySelectorAll('main :is(img, i:not(.key), script, style)').length") == 0


def test_what_cannot_be_read_is_said(serving: Serving, tab: OpenRun) -> None:
    page = tab(f"{serving.url}/", refused="status of 40[49]")
    row = spot(page, ".run").filter(has_text="Damaged")
    expect(row.locator(".state")).to_contain_text("Record 3 of run 'damaged' was damaged or altered")
    row.get_by_role("link").click()
    expect(spot(page, ".alert")).to_contain_text("Restore the store from a backup")
    page.goto(f"{serving.url}/runs/nobody")
    expect(spot(page, ".alert")).to_contain_text("there is no run 'nobody' in the store")


def test_long_lists_come_in_pages_and_files_only_once() -> None:
    store = MemoryStore()
    for k in range(53):
        sl.Session(
            sl.Problem(m=1, epsilon=1, delta=0.1, variances=[1, 1]), "wnelim", store=store, name=f"r{k}"
        )
    app = create_app(store)

    async def look() -> None:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost"
        ) as client:
            first, second = [(await client.get(f"/index.json?page={page}")).json() for page in (1, 2)]
            names = [run["run"] for run in first["runs"] + second["runs"]]
            assert names == [f"r{k}" for k in range(52, -1, -1)]
            assert (len(second["runs"]), first["n_runs"], first["n_pages"]) == (3, 53, 2)
            assert (await client.get("/index.json")).json()["runs"] == first["runs"] + second["runs"]
            assert 'href="/?page=2"' in (await client.get("/")).text
            assert 'href="/?page=1"' in (await client.get("/?page=2")).text
            for name in ("app.css", "report.css", "bind.js", "mark.svg"):
                whole = await client.get(f"/static/{name}")
                again = await client.get(f"/static/{name}", headers={"if-none-match": whole.headers["etag"]})
                assert (whole.status_code, again.status_code, again.content) == (200, 304, b"")
            assert (await client.get("/static/pages.py")).status_code == 404

    with ThreadPoolExecutor(1) as apart:  # from the browser, which has a loop of its own here
        apart.submit(asyncio.run, look()).result()


# --- plan and begin ---------------------------------------------------------------------------------------


def test_a_run_is_planned_and_begun(serving: Serving, tab: OpenRun) -> None:
    page = tab(
        f"{serving.url}/plan?m=1&epsilon=0.3&variances=0.25,0.25,1&goal=minimise", refused="of 422|of 409"
    )
    expect(spot(page, "#m")).to_have_value("1")
    expect(spot(page, "#goal")).to_have_value("minimise")
    expect(spot(page, "#arms-read")).to_have_text("3 arms, variances from 0.25 to 1")
    asked = sl.Problem(m=1, epsilon=0.3, delta=0.05, variances=[0.25, 0.25, 1], goal="minimise")
    expect(spot(page, "#plan-why")).to_have_text(sl.plan(asked).why)
    page.fill("#delta", "2")
    with pytest.raises(sl.InvalidProblem) as refusal:
        sl.Problem(m=1, epsilon=0.3, delta=2, variances=[1])
    expect(spot(page, "#plan-error")).to_have_text(str(refusal.value))
    page.fill("#delta", "0.1")
    page.fill("#bounds", "3 1")
    expect(spot(page, "#plan-error")).to_contain_text("the smaller one first")
    page.fill("#bounds", "1 3")
    page.fill("#arms", 'name,scale\nold,0.5\n"new, improved",0.5\n<b>third</b>,1')
    expect(spot(page, "#arms-read")).to_have_text("3 arms, scales from 0.5 to 1")
    asked = asked.changed(delta=0.1, bounds=(1, 3))
    expect(spot(page, "#plan-why")).to_have_text(sl.plan(asked).why)
    expect(spot(page, "#plan-bound")).to_contain_text("no lower bound is proved")
    expect(spot(page, "#plan-error")).to_be_hidden()
    expect(spot(page, "#plan-rows tr").first).to_contain_text(sl.plan(asked).best.strategy)
    link = page.url
    page.fill("#name", "trial / one")
    page.select_option("#strategy", "wnelim")
    page.click("#begin button")
    page.wait_for_url("**/runs/trial*")
    expect(spot(page, "h1")).to_have_text("0 pulls made, and nothing is certified yet")
    begun = serving.facts("/runs/trial%20~1%20one/question.json")
    assert begun["names"] == ["old", "new, improved", "<b>third</b>"]
    assert (begun["goal"], begun["delta"], begun["variances"]) == ("minimise", 0.1, [0.25, 0.25, 1])
    assert begun["bounds"] == [1.0, 3.0]
    assert serving.facts("/runs/trial%20~1%20one.json")["strategy"] == "wnelim"
    page.goto(link)  # what was planned can be sent to others
    expect(spot(page, "#plan-why")).to_have_text(sl.plan(asked).why)
    page.fill("#m", "2")
    page.fill("#name", "trial / one")
    page.click("#begin button")
    expect(spot(page, "#begin-error")).to_contain_text("m")
    expect(spot(page, "#begin-error")).to_contain_text("trial / one")


def test_a_plan_without_variances_leads_with_one_strategy(serving: Serving, tab: OpenRun) -> None:
    page = tab(f"{serving.url}/plan?m=3&epsilon=0.25&noise=gaussian-unknown&arms=10", PHONE)
    plan = sl.plan(sl.Problem(3, 0.25, 0.05, n=10, rewards=sl.Gaussian()))
    expect(spot(page, "#plan-why")).to_have_text(plan.why)
    expect(spot(page, "#plan-unknown")).to_contain_text(
        "The maximum number of pulls is not known before the first answers"
    )
    expect(spot(page, "#plan-unknown")).to_contain_text("shortlist plan FILE --scale S")
    expect(spot(page, "#plan-table")).to_be_hidden()
    others = spot(page, "#plan-more-rows li")
    names = [row.strategy for row in plan.rows[1:] if row.is_certified]
    expect(others).to_have_text([re.compile(rf"^{name}\b") for name in names])
    expect(others.first).to_be_hidden()
    page.get_by_text("Other strategies").click()
    expect(others.first).to_be_visible()
    found = page.evaluate(LOOK)
    assert (found["sticking_out"], found["faint"], page.evaluate(AUDIT)) == ([], [], [])
    page.select_option("#noise", "gaussian")
    page.fill("#arms", "0.25 x 10")
    expect(spot(page, "#plan-rows tr").first).to_be_visible()
    for unneeded in ("#plan-unknown", "#plan-more"):
        expect(spot(page, unneeded)).to_be_hidden()


@pytest.mark.parametrize(
    ("kind", "bounds", "rewards"),
    [
        ("bernoulli", "", sl.Bernoulli()),
        ("bernoulli", "0/1", sl.Bernoulli()),
        ("bounded", "0 5", sl.Bounded(0, 5)),
    ],
)
def test_a_run_about_rewards_within_bounds_is_planned_and_begun(
    serving: Serving, tab: OpenRun, kind: str, bounds: str, rewards: sl.Bounded
) -> None:
    page = tab(f"{serving.url}/plan")
    page.select_option("#noise", kind)
    page.fill("#bounds", bounds)
    page.fill("#epsilon", "0.25")
    asked = sl.Problem(3, 0.25, 0.05, n=10, rewards=rewards)
    expect(spot(page, "#arms-read")).to_have_text("10 arms")  # of the example, whatever their variances
    expect(spot(page, "#plan-why")).to_have_text(sl.plan(asked).why)
    page.fill("#arms", "old\nnew\nlatest")
    page.fill("#m", "1")
    page.fill("#name", f"within {kind} {bounds}".replace("/", "-"))
    page.click("#begin button")
    page.wait_for_url("**/runs/within*")
    begun = serving.facts(f"/runs/{page.url.rsplit('/', 1)[1]}/question.json")
    assert (begun["noise"], begun["names"]) == (kind, ["old", "new", "latest"])
    assert begun["bounds"] == [rewards.low, rewards.high]


READ = [
    ("number", ["0.5"], 0.5),
    ("number", [" -1e3 "], -1000),
    ("number", ["0,5"], 0.5),
    ("number", ["0,125"], 0.125),
    ("number", ["1,234"], "1,234"),
    ("number", ["1,2340"], 1.234),
    ("number", ["a"], "a"),
    ("number", [" "], None),
    ("bounds", [""], {}),
    ("bounds", [" 0/1 "], {"rewards": "bernoulli"}),
    ("bounds", ["-1 2.5"], {"bounds": [-1, 2.5]}),
    ("bounds", ["0,5; 1,5"], {"bounds": [0.5, 1.5]}),
    ("bounds", ["0,1"], {"bounds": [0, 1]}),
    ("bounds", ["7"], {"bounds": [7]}),
    ("arms", ["0.25\n\n1\n", False], {"variances": [0.25, 1]}),
    ("arms", ["0.25 x 3\n2", False], {"variances": [0.25, 0.25, 0.25, 2]}),
    ("arms", ["a,0.25\nb,4", False], {"variances": [0.25, 4], "names": ["a", "b"]}),
    ("arms", ["Name;Scale\na;2", False], {"scales": [2], "names": ["a"]}),
    ("arms", ["name;scale\na;0,8\nb,c;1.5;", False], {"scales": [0.8, 1.5], "names": ["a", "b,c"]}),
    ("arms", ["a;0,8\nb\t0,5\nc;2", False], {"variances": [0.8, 0.5, 2], "names": ["a", "b", "c"]}),
    ("arms", ["variance\n1", False], {"variances": [1]}),
    ("arms", ["0,25\n0,5", False], {"variances": ["0,25", "0,5"]}),
    ("arms", ["old\nnew", True], {"names": ["old", "new"]}),
    ("arms", ["12", True], {"n": 12}),
    ("arms", ["0.25 x 10", True], {"n": 10}),
    ("arms", ["", False], {"variances": []}),
]


def test_what_people_type_is_read_as_they_mean_it(serving: Serving, tab: OpenRun) -> None:
    page = tab(f"{serving.url}/login")
    found = page.evaluate(
        """async (calls) => {
          const parse = await import('/static/parse.js');
          return calls.map(([what, given]) => parse[what](...given) ?? null);
        }""",
        [[what, given] for what, given, _ in READ],
    )
    assert found == [wanted for *_, wanted in READ]


def test_the_form_reads_rewards_as_sheets_do(serving: Serving, tab: OpenRun) -> None:
    page = tab(f"{serving.url}/login")
    found = page.evaluate(
        """async (calls) => {
          const { rewards } = await import('/static/parse.js');
          return calls.map(([text, wanted]) => rewards(text, wanted));
        }""",
        [[text, wanted] for text, wanted, _ in TYPED],
    )
    for (text, _, outcome), one in zip(TYPED, found, strict=True):
        if isinstance(outcome, list):
            assert (one["values"], one["unclear"]) == (outcome, ""), text
        else:
            assert outcome in one["unclear"] or outcome in map(repr, one["values"]), text


@pytest.mark.parametrize("head", ["", "name,scale\n"])
def test_a_decimal_comma_among_commas_is_no_other_number(serving: Serving, tab: OpenRun, head: str) -> None:
    page = tab(f"{serving.url}/plan")
    spot(page, "#arms").fill(f"{head}a,0.5\nb,1,8")
    expect(spot(page, "#plan-error")).to_contain_text("The line 'b,1,8' has 3 cells; it must have 2.")


# --- watching ---------------------------------------------------------------------------------------------


def test_two_watch_a_run_to_its_end(serving: Serving, tab: OpenRun) -> None:
    serving.begin("watched")
    pages = [tab(f"{serving.url}/runs/watched", own=is_other) for is_other in (False, True)]
    means = means_of(6)
    for page in pages:
        expect(spot(page, "h1")).to_have_text("0 pulls made, and nothing is certified yet")
        page.evaluate("window.isStillTheSame = true")
    serving.post("/runs/watched/ask", worker="Ann", limit=2)
    for page in pages:
        expect(spot(page, ".company tbody tr").first).to_contain_text("Ann")
    serving.post("/runs/watched/release", worker="Ann")
    serving.measure("watched", means)
    facts = serving.facts("/runs/watched.json")
    for page in pages:
        expect(spot(page, "h1")).to_have_text(f"{facts['n_pulls']} pulls made, and nothing is certified yet")
        expect(spot(page, ".lead")).to_contain_text("Nothing is certified yet")
        expect(spot(page, ".state")).to_contain_text("tickets available in round 1")
        drawn(page)
    serving.finish("watched", means)
    facts = serving.facts("/runs/watched.json")
    for page in pages:
        expect(spot(page, ".state")).to_have_text("Certified done: read the report")
        expect(spot(page, "h1")).to_have_text("2 of 6 arms selected")
        expect(spot(page, ".winners li")).to_have_text(["arm-0", "arm-1"])
        expect(spot(page, "#spoken")).to_contain_text("Certified. 2 of 6 arms selected")
        expect(page.get_by_text("Answer by hand")).to_be_hidden()
        expect(spot(page, ".command")).to_be_hidden()
        expect(page).to_have_title("watched: 2 of 6 arms selected")
        expect(spot(page, ".log li")).to_have_count(len(facts["log"]))
        expect(spot(page, f"{ARMS} circle.in")).to_have_count(2)
        expect(spot(page, f"{ARMS} tbody td:nth-child(3)")).to_have_text(
            [mean_words(row["mean"], 0.2) for row in facts["arms"]["rows"]]
        )
        assert page.evaluate("window.isStillTheSame")
    first, second = (spot(page, "main").inner_text() for page in pages)
    assert first.split() == second.split()


def test_figures_change_where_they_are_and_stay_open(serving: Serving, tab: OpenRun) -> None:
    serving.begin("looked into", 3, 1, "level-race")
    page = tab(f"{serving.url}/runs/looked into")
    numbers = spot(page, f"{ARMS} summary")
    numbers.focus()
    page.keyboard.press("Enter")
    expect(spot(page, f"{ARMS} table")).to_be_visible()
    page.evaluate("choice => { window.shown = document.querySelector(choice); }", f"{ARMS} table")
    for n_tickets in (1, 2, None):
        serving.measure("looked into", means_of(3), n_tickets)
        pulls = [f"{row['pulls']}" for row in serving.facts("/runs/looked into.json")["arms"]["rows"]]
        expect(spot(page, f"{ARMS} tbody td:nth-child(5)")).to_have_text(pulls)
        expect(spot(page, NAMES)).to_have_count(3)
        expect(spot(page, f"{ARMS} table")).to_be_visible()
        expect(numbers).to_be_focused()
        assert page.evaluate("choice => document.querySelector(choice) === window.shown", f"{ARMS} table")
    drawing = serving.facts("/runs/looked into.json")["figures"]["arms"]
    page.wait_for_function(
        """([choice, drawing]) => {
          const wanted = document.createElement('div'), here = document.querySelector(choice).cloneNode(true);
          wanted.innerHTML = drawing;
          here.querySelector('details').open = false;
          return here.innerHTML === wanted.innerHTML;
        }""",
        arg=[ARMS, drawing],
    )
    for way in ("report.html", ""):  # the page draws what the report does
        assert drawing in httpx.get(f"{serving.url}/runs/looked into/{way}".rstrip("/")).text


def test_figures_are_there_without_scripts(serving: Serving, tab: OpenRun) -> None:
    page = tab(f"{serving.url}/runs/certified", java_script_enabled=False)
    drawn(page)
    expect(spot(page, NAMES)).to_have_count(10)
    expect(page.get_by_role("img", name="Observed means. 10 arms of 10, shown individually.")).to_be_visible()
    expect(page.get_by_role("figure", name="Arms pulled in each round")).to_be_visible()


def test_the_report_and_all_answers_are_a_step_away(serving: Serving, tab: OpenRun) -> None:
    page = tab(serving.url + PAGES["suspended"])
    for label in ("report", "answers (CSV)", "all data (JSON)"):
        with page.expect_download() as kept:
            page.get_by_role("link", name=label, exact=True).click()
        assert Path(kept.value.path()).stat().st_size > 500
    expect(spot(page, "pre").first).to_contain_text("prompt C failed four times")
    expect(spot(page, ".command")).to_have_text("shortlist ask 'suspended/α' -o tickets.csv")
    page.get_by_role("link", name="Read the report").click()
    expect(spot(page, "h1")).to_have_text("280 pulls made, and nothing is certified yet")


def test_the_list_keeps_itself_up_to_date(serving: Serving, tab: OpenRun) -> None:
    serving.begin("listed one")
    page = tab(f"{serving.url}/")
    row = spot(page, ".run").filter(has_text="listed one")
    expect(row.locator(".state")).to_have_text("Not finished measure: 6 tickets available in round 0")
    row.get_by_role("link").focus()
    serving.begin("listed two")
    serving.post("/runs/listed one/ask", worker="Ann")
    expect(row.locator(".state")).to_have_text("Not finished wait: 6 tickets with 1 worker")
    expect(spot(page, ".run").filter(has_text="listed two")).to_be_visible()
    expect(row.get_by_role("link")).to_be_focused()
    serving.post("/runs/listed one/release", worker="Ann")
    expect(row.locator(".state")).to_have_text("Not finished measure: 6 tickets available in round 0")


# --- answers by hand --------------------------------------------------------------------------------------


def test_a_batch_is_answered_by_hand_on_a_phone(serving: Serving, tab: OpenRun) -> None:
    serving.begin("lab", 4, 1, names=["north", "south", "x" * 10_000, "<b>west</b>"])
    page = tab(f"{serving.url}/runs/lab/answer", PHONE, refused="of 422", has_touch=True)
    page.fill("#worker", "Ann")
    page.fill("#limit", "3")
    page.click("#take [type=submit]")
    cards = spot(page, ".ticket")
    expect(cards).to_have_count(3)
    expect(cards.nth(0)).to_contain_text("north")
    assert spot(page, ".mean").first.get_attribute("inputmode") == "decimal"
    found = page.evaluate(LOOK)
    assert (found["sticking_out"], found["faint"], page.evaluate(AUDIT)) == ([], [], [])
    cards.nth(0).locator(".mean").fill("0,5")
    expect(cards.nth(0)).to_contain_text("The mean is read as 0.5.")
    cards.nth(1).locator(".mean").fill("nothing")
    page.reload()
    expect(spot(page, "#worker")).to_have_value("Ann")
    expect(cards.nth(0).locator(".mean")).to_have_value("0,5")
    page.click("#send")
    expect(cards.nth(0)).to_contain_text("✓ Recorded.")
    expect(cards.nth(1).locator(".result")).to_have_text("The mean is 'nothing'; it must be a number.")
    expect(spot(page, "#sent-said")).to_have_text(
        "1 added, 1 still open. south refused: the mean is 'nothing'; it must be a number."
    )
    expect(cards.nth(1).locator(".mean")).to_be_focused()
    page.check("input[value=rewards]")
    pulls = serving.facts("/runs/lab/round.json")["pulls"][0]
    cards.nth(1).locator(".rewards").fill("0.25 " * pulls)
    expect(cards.nth(1)).to_contain_text(f"{pulls} of {pulls} rewards; their mean is 0.25")
    cards.nth(2).locator(".rewards").fill("1 2 3")
    page.click("#send")
    expect(cards.nth(1)).to_contain_text("✓ Recorded.")
    expect(cards.nth(2).locator(".result")).to_contain_text(f"asks for {pulls} pulls of")
    facts = serving.facts("/runs/lab.json")
    assert (facts["n_open"], facts["n_pulls"]) == (2, 2 * pulls)
    means = {row["name"]: row["mean"] for row in facts["arms"]["rows"]}
    assert (means["north"], means["south"]) == (0.5, 0.25)
    page.click("#release")
    expect(cards).to_have_count(0)
    assert serving.facts("/runs/lab.json")["holders"] == []


def test_all_answers_are_sent_at_once_without_those_that_are_doubted(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 1.0, "delta": 0.1, "noise": "gaussian-unknown", "n": 5}
    serving.post("/runs", name="at once", question=question)
    page = tab(f"{serving.url}/runs/at%20once/answer", PHONE, refused="of 422", own=True)
    sent: list[Any] = []
    page.on("request", lambda one: sent.append(one.post_data_json) if one.url.endswith("/tell") else None)
    page.fill("#worker", "Ann")
    page.click("#take [type=submit]")
    cards = spot(page, ".ticket")
    expect(cards).to_have_count(5)
    page.check("input[value=mean]")
    for place, mean in enumerate(("57", "58", "5800", "59", "56")):
        cards.nth(place).locator(".mean").fill(mean)
        cards.nth(place).locator(".variance").fill("4")
    page.click("#send")
    expect(cards.nth(2)).to_contain_text("is far from those of other arms")
    expect(cards.nth(2).locator(".mean")).to_be_focused()
    expect(spot(page, "#sent-said")).to_have_text(
        re.compile(r"^4 added\. arm-2 refused: the mean 5800 is far from those of other arms")
    )
    assert [(len(one["answers"]), one["careful"]) for one in sent] == [(5, True), (4, True)]
    cards.nth(2).locator(".mean").fill("58.5")
    page.click("#send")
    expect(spot(page, "#sent-said")).to_have_text(
        re.compile(r"^1 added\. You have \d tickets? of round 1\.$")
    )
    expect(spot(page, ".mean").first).to_be_focused()
    assert page.evaluate("document.activeElement.getBoundingClientRect().bottom < innerHeight")
    assert len(sent) == 3


def test_a_phone_finds_the_form_by_a_code_of_its_address(serving: Serving) -> None:
    def page(run: str, host: str) -> str:
        return httpx.get(f"{serving.url}/runs/{run}", headers={"host": f"{host}:{serving.port}"}).text

    link = f"http://192.0.2.7:{serving.port}/r/{RUNS['suspended']}"
    found = page(RUNS["suspended"], "192.0.2.7")
    assert f'href="{link}"' in found
    assert segno.make(link, micro=False).svg_inline(border=3, omitsize=True) in found
    assert "on a phone" not in page("fresh", "127.0.0.1"), "no phone can reach it there"
    assert "on a phone" not in page("certified", "192.0.2.7"), "there is nothing to answer"
    sent = httpx.get(f"{serving.url}/r/{RUNS['suspended']}", follow_redirects=True)
    assert (sent.status_code, sent.url.raw_path.decode()) == (200, f"/runs/{RUNS['suspended']}/answer")


def test_second_answers_are_known_or_in_conflict(serving: Serving, tab: OpenRun) -> None:
    serving.begin("twice", 2, 1)
    page = tab(f"{serving.url}/runs/twice/answer", PHONE, own=True)
    page.fill("#worker", "Ann")
    page.click("#take [type=submit]")
    cards = spot(page, ".ticket")
    expect(cards).to_have_count(2)
    serving.measure("twice", {"arm-0": 0.5, "arm-1": 0.25}, worker="Ann")
    cards.nth(0).locator(".mean").fill("0.5")
    cards.nth(1).locator(".mean").fill("0.75")
    page.click("#send")
    expect(cards.nth(0)).to_contain_text("Already recorded with the same value.")
    expect(cards.nth(1)).to_contain_text(
        "Conflict: 0.25 was recorded first and is kept; your 0.75 is recorded as a conflict."
    )
    expect(spot(page, "#sent-said")).to_have_text(
        "0 added, 1 already recorded, 1 in conflict. Take more tickets below."
    )
    page.goto(f"{serving.url}/runs/twice")
    expect(spot(page, ".urgent")).to_contain_text("1 answer contradicts an earlier one")


def test_a_pilot_takes_variances_or_all_rewards(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 1.0, "delta": 0.1, "noise": "gaussian-unknown", "names": ["old", "new"]}
    serving.post("/runs", name="pilot", question=question)
    page = tab(f"{serving.url}/runs/pilot/answer", PHONE, refused="of 422", own=True)
    page.fill("#worker", "Ann")
    page.click("#take [type=submit]")
    cards = spot(page, ".ticket")
    expect(cards).to_have_count(2)
    expect(page.get_by_label("All 8 rewards, one per line or separated by spaces").first).to_be_focused()
    page.check("input[value=mean]")
    cards.nth(0).locator(".mean").fill("2")
    page.click("#send")
    expect(cards.nth(0).locator(".result")).to_contain_text("variance")
    cards.nth(0).locator(".variance").fill("1.5")
    page.click("#send")
    expect(cards.nth(0)).to_contain_text("✓ Recorded.")
    assert serving.facts("/runs/pilot.json")["n_open"] == 1
    page.check("input[value=rewards]")
    field = cards.nth(1).locator(".rewards")
    low = field.evaluate("e => e.offsetHeight")
    field.fill("\n".join(f"{k},5" for k in range(7)))
    assert field.evaluate("e => e.scrollHeight <= e.clientHeight")
    assert field.evaluate("e => e.offsetHeight") > low
    page.click("#send")
    said = cards.nth(1).locator(".result")
    expect(said).to_contain_text("Give one per pull, or their mean and sample variance.")
    assert said.evaluate(ABOVE_BAR)


def test_the_page_of_a_run_does_not_tell_the_holder_of_its_tickets_to_wait(
    serving: Serving, tab: OpenRun
) -> None:
    serving.post(
        "/runs",
        name="held",
        question={"m": 1, "epsilon": 1.0, "delta": 0.1, "noise": "gaussian-unknown", "n": 8},
    )
    page = tab(f"{serving.url}/runs/held/answer", own=True)
    page.fill("#worker", "Ann")
    page.click("#take [type=submit]")
    expect(spot(page, ".state")).to_contain_text("measure: you hold 8 tickets")
    page.goto(f"{serving.url}/runs/held")
    expect(spot(page, ".state")).to_contain_text("measure: you hold 8 tickets")


def test_a_refusal_is_not_behind_the_bar(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 1.0, "delta": 0.1, "noise": "gaussian-unknown", "n": 8}
    serving.post("/runs", name="behind", question=question)
    page = tab(f"{serving.url}/runs/behind/answer", PHONE, refused="of 422", own=True)
    expect(spot(page, "#limit")).to_have_value("8")
    page.set_viewport_size({"width": PHONE, "height": 664})
    page.fill("#worker", "Ann")
    page.click("#take [type=submit]")
    expect(spot(page, ".ticket")).to_have_count(8)
    expect(spot(page, ".state")).to_contain_text("measure: you hold 8 tickets")
    for place in (3, 7):
        card = spot(page, ".ticket").nth(place)
        card.locator(".rewards").fill("x")
        page.click("#send")
        expect(card.locator(".result")).to_contain_text("it must be a number")
        expect(card.locator(".rewards")).to_be_focused()
        assert card.locator(".result").evaluate(ABOVE_BAR)
        assert card.locator(".rewards").evaluate(ABOVE_BAR)
        expect(spot(page, "#sent-said")).to_contain_text(f"arm-{place} refused: ")
        card.locator(".rewards").fill("")


def test_the_form_shows_the_result_when_the_run_has_ended(serving: Serving, tab: OpenRun) -> None:
    serving.begin("ended", 2, 1, "single-stage", names=["old", "new"])
    page = tab(f"{serving.url}/runs/ended/answer", PHONE, own=True)
    page.fill("#worker", "Ann")
    page.click("#take [type=submit]")
    for place, mean in enumerate(("0.25", "0.75")):
        spot(page, ".mean").nth(place).fill(mean)
    expect(spot(page, "#reserved")).to_contain_text("Leased to you until")
    page.click("#send")
    expect(spot(page, ".winners li")).to_have_text(["new"])
    expect(spot(page, ".lead")).to_contain_text("With probability at least 90 %")
    expect(spot(page, "#sent-said")).to_contain_text("The run has ended.")
    for unneeded in ("#send", "#reserved", "#choice", "#take"):
        expect(spot(page, unneeded)).to_be_hidden()
    found = page.evaluate(LOOK)
    assert (found["sticking_out"], found["faint"], page.evaluate(AUDIT)) == ([], [], [])


def test_decimal_commas_are_never_taken_for_more_rewards(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 0.9, "delta": 0.1, "variances": [1.0, 1.0], "names": ["NP", "PK"]}
    serving.post("/runs", name="commas", question=question, strategy="single-stage")
    page = tab(f"{serving.url}/runs/commas/answer", PHONE, refused="of 422", own=True)
    page.fill("#worker", "Ann")
    page.click("#take [type=submit]")
    pulls = serving.facts("/runs/commas/round.json")["pulls"][0]
    half = pulls // 2
    assert pulls == 2 * half, "twice as many numbers as decimal commas"
    page.check("input[value=rewards]")
    card = spot(page, ".ticket").nth(0)
    card.locator(".rewards").fill(" ".join(["26,8", "25,0"] * pulls)[: 5 * half - 1])
    expect(card.locator(".read")).to_contain_text(f"{half} of {pulls} rewards; their mean is 2")
    page.click("#send")
    expect(card.locator(".result")).to_contain_text(f"there are {half} rewards")
    card.locator(".rewards").fill(",".join(["26", "8"] * half))
    expect(card.locator(".read")).to_contain_text(f"can be read as {2 * half} rewards (26, 8, ")
    page.click("#send")
    expect(card.locator(".result")).to_contain_text("Write decimals with a point")
    assert serving.facts("/runs/commas.json")["n_pulls"] == 0
    card.locator(".rewards").fill("\n".join(["26,8"] * pulls))
    expect(card.locator(".read")).to_contain_text(f"{pulls} of {pulls} rewards; their mean is 26.8")
    page.click("#send")
    expect(card).to_contain_text("✓ Recorded.")
    rows = serving.facts("/runs/commas.json")["arms"]["rows"]
    assert {row["name"]: row["mean"] for row in rows}["NP"] == pytest.approx(26.8)


# --- when the server is gone ------------------------------------------------------------------------------


def test_pages_outlive_a_server_that_is_killed(browser: Any, tab: OpenRun, tmp_path: Path) -> None:
    server = Serving(tmp_path / "runs.db")
    try:
        server.begin("outage", 3, 1, "level-race")
        pages = [
            tab(f"{server.url}{path}", refused="net::")
            for path in ("/", "/runs/outage", "/runs/outage/answer")
        ]
        runs, run, answer = pages
        answer.fill("#worker", "Ann")
        answer.click("#take [type=submit]")
        expect(spot(answer, ".ticket")).to_have_count(3)
        expect(spot(run, ".company tbody")).to_contain_text("Ann")
        server.kill()
        for page in pages:
            expect(spot(page, "#notice")).to_have_text("Connection lost, trying again …")
            expect(spot(page, "#notice")).to_be_visible()
        for place, mean in enumerate(("0.9", "0.5", "0.1")):
            spot(answer, ".mean").nth(place).fill(mean)
        answer.click("#send")
        expect(spot(answer, "#sent-said")).to_have_text("Sending …")
        server.start()
        for page in pages:
            expect(spot(page, "#notice")).to_be_hidden()
        expect(spot(answer, "#sent-said")).to_have_text("3 added. You have 2 tickets of round 1.")
        expect(spot(answer, ".mean").first).to_be_focused()
        expect(spot(answer, ".mean").first).to_be_in_viewport()
        facts = server.facts("/runs/outage.json")
        assert [row["mean"] for row in facts["arms"]["rows"]] == pytest.approx([0.9, 0.5, 0.1])
        expect(spot(run, "h1")).to_have_text(f"{facts['n_pulls']} pulls made, and nothing is certified yet")
        expect(spot(runs, ".state")).to_contain_text("2 tickets with 1 worker")
        server.finish("outage", {"arm-0": 0.9, "arm-1": 0.5, "arm-2": 0.1}, "Ann")
        expect(spot(run, "h1")).to_have_text("1 of 3 arms selected")
        expect(spot(answer, "#take")).to_be_hidden()
    finally:
        server.kill()


# --- who may do what, and without a mouse -----------------------------------------------------------------


def test_where_runs_are_only_looked_at_no_token_brings_forms(tmp_path: Path) -> None:
    tokens, file = Tokens.new(), tmp_path / "tokens"
    file.write_text(f"write {tokens.write}\n")
    file.chmod(0o600)
    asked = sl.Problem(m=1, epsilon=0.2, delta=0.1, variances=[1, 1])
    sl.Session(asked, store=str(tmp_path / "runs.db"), name="fresh").close()
    server = Serving(tmp_path / "runs.db", "--token-file", str(file), "--read-only")
    try:
        with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {tokens.write}"}) as client:
            assert 'id="begin"' not in client.get("/plan").text
            assert "Answer by hand" not in client.get("/runs/fresh").text
            assert "This server is read-only and takes no answers." in client.get("/runs/fresh/answer").text
    finally:
        server.close()


def test_tokens_let_in_and_readers_have_no_forms(browser: Any, tab: OpenRun, tmp_path: Path) -> None:
    tokens, file = Tokens.new(), tmp_path / "tokens"
    file.write_text(f"write {tokens.write}\nread {tokens.read}\n")
    file.chmod(0o600)
    asked = sl.Problem(m=1, epsilon=0.2, delta=0.1, variances=[1, 1])
    sl.Session(asked, store=str(tmp_path / "runs.db"), name="fresh").close()
    server = Serving(tmp_path / "runs.db", "--token-file", str(file))
    try:
        page = tab(f"{server.url}/runs/fresh", refused="of 401")
        page.wait_for_url(re.compile(r"/login\?next="))
        page.fill("#token", "a wrong one")
        page.keyboard.press("Enter")
        expect(spot(page, "#login-error")).to_have_text("This token is not valid.")
        page.fill("#token", tokens.read)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{server.url}/runs/fresh")
        expect(page.get_by_text("Answer by hand")).to_have_count(0)
        page.goto(f"{server.url}/runs/fresh/answer")
        expect(spot(page, ".alert")).to_have_text(
            "Your token is read-only. To answer, log in with a write token."
        )
        expect(spot(page, "form")).to_have_count(0)
        page.goto(f"{server.url}/plan")
        expect(spot(page, "#plan-rows tr").first).to_be_visible()
        expect(spot(page, "#begin")).to_have_count(0)
        page.click("#logout")
        page.wait_for_url("**/login")
        for place in ("//example.org/", "/\\example.org", "https://example.org/", "/\t/example.org"):
            page.goto(f"{server.url}/login")
            page.evaluate(
                "place => history.replaceState(0, '', '/login?next=' + encodeURIComponent(place))", place
            )
            page.fill("#token", tokens.write)
            page.keyboard.press("Enter")
            page.wait_for_url(f"{server.url}/")
        page.goto(f"{server.url}/runs/fresh")
        expect(page.get_by_text("Answer by hand")).to_be_visible()
        page.close()
    finally:
        server.close()


def test_a_run_is_begun_and_answered_from_the_keyboard(serving: Serving, tab: OpenRun) -> None:
    page = tab(f"{serving.url}/", own=True)

    def to(words: str) -> None:
        """Go on with the tab key until something is reached that is called so; all on the way can be seen."""
        for _ in range(60):
            page.keyboard.press("Tab")
            name, outline = page.evaluate(
                """() => {
                  const e = document.activeElement, style = getComputedStyle(e);
                  const name = e.labels?.[0]?.innerText ?? e.innerText;
                  return [name.trim(), `${style.outlineStyle} ${parseFloat(style.outlineWidth)}`];
                }"""
            )
            assert outline == "solid 3", name
            if name == words:
                return
        raise AssertionError(f"{words} is never reached")

    to("Skip to the content")
    page.keyboard.press("Enter")
    to("Plan a new run")
    page.keyboard.press("Enter")
    page.wait_for_url("**/plan*")
    to("Select, m")
    page.keyboard.type("1")
    to("Arms")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("0.25 x 2")
    to("Name of the run")
    page.keyboard.type("by keys")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/by%20keys")
    to("Answer by hand")
    page.keyboard.press("Enter")
    page.wait_for_url("**/answer")
    to("Your name")
    page.keyboard.type("Ann")
    page.keyboard.press("Enter")
    expect(spot(page, ".mean").first).to_be_focused()
    page.keyboard.type("0.75")
    page.keyboard.press("Enter")
    expect(spot(page, ".ticket").first).to_contain_text("✓ Recorded.")
    assert serving.facts("/runs/by%20keys.json")["n_open"] == 1


def test_a_table_with_dates_needs_no_label(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 0.01, "delta": 0.05, "names": ["A", "B"], "noise": "bernoulli"}
    serving.post("/runs", name="dated", question=question, strategy="race")
    page = tab(f"{serving.url}/runs/dated/answer", PHONE, own=True)
    page.fill("#sheet", "date,variant,visitors,conversions\nmon,A,2000,60\nmon,B,2000,90")
    page.click("#feed [type=submit]")
    expect(spot(page, "#fed-said")).to_contain_text("2 rows added")


def test_the_table_of_the_next_day_does_not_replace_the_one_before(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 0.01, "delta": 0.05, "names": ["A", "B"], "noise": "bernoulli"}
    serving.post("/runs", name="days", question=question, strategy="race")
    page = tab(f"{serving.url}/runs/days/answer", PHONE, refused="of 422", own=True)
    said, box = spot(page, "#fed-said"), page.get_by_label("the whole table is right")
    page.fill("#sheet", "variant,visitors,conversions\nA,2000,60\nB,2000,90")
    page.fill("#label", "monday")
    page.click("#feed [type=submit]")
    expect(said).to_contain_text("2 rows added")
    expect(spot(page, "#label")).to_have_value("")
    page.fill("#sheet", "variant,visitors,conversions\nA,2100,61\nB,2100,92")
    page.click("#feed [type=submit]")
    expect(said).to_contain_text("give a label, so that nothing counts twice")
    page.fill("#label", "monday")
    page.click("#feed [type=submit]")
    expect(said).to_contain_text("2 of 2 rows would replace earlier ones")
    expect(said).to_contain_text("A, 60 of 2,000 before, 61 of 2,100 now; B, 90 of 2,000 before")
    expect(box).to_be_visible()
    assert serving.facts("/runs/days.json")["n_pulls"] == 4000, "Monday is still there"
    page.fill("#sheet", "date,variant,visitors,conversions\nwed,A,100,3\nwed,B,100,4")
    page.click("#feed [type=submit]")
    expect(said).to_contain_text("labels of its own (column date), so the label has no effect")


def test_the_page_of_a_fed_run_offers_feeding_first_and_no_empty_file(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 0.001, "delta": 0.05, "names": ["A", "B"], "noise": "bernoulli"}
    serving.post("/runs", name="fed-only", question=question, strategy="race")
    page = tab(f"{serving.url}/runs/fed-only", own=True)
    expect(spot(page, ".actions .button")).to_have_text(["Answer by hand", "Add results", "Read the report"])
    expect(page.get_by_role("link", name="answers (CSV)")).to_be_hidden()
    rows = [{"arm": arm, "pulls": 200, "successes": hits} for arm, hits in (("A", 60), ("B", 66))]
    serving.post("/runs/fed-only/feed", rows=rows, label="monday")
    page.reload()
    expect(spot(page, ".actions .button")).to_have_text(["Add results", "Answer by hand", "Read the report"])
    expect(spot(page, ".actions .button.second")).to_have_text(["Answer by hand", "Read the report"])
    expect(page.get_by_role("link", name="answers (CSV)")).to_be_hidden()
    asked = serving.post("/runs/fed-only/ask", worker="Bob", limit=1)["tickets"]
    answers = [{"ticket": asked[0]["ticket"], "mean": 0.5}]
    serving.post("/runs/fed-only/sheet", tickets=answers, worker="Bob")
    expect(page.get_by_role("link", name="answers (CSV)")).to_be_visible()


def test_a_name_that_a_phone_has_capitalised_is_pointed_out(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 0.5, "delta": 0.1, "variances": [1, 1]}
    serving.post("/runs", name="names", question=question)
    serving.post("/runs/names/ask", worker="ben")
    page = tab(f"{serving.url}/runs/names/answer", PHONE, own=True)
    expect(spot(page, "#worker")).to_have_attribute("autocapitalize", "none")
    expect(spot(page, "#worker")).to_have_attribute("autocorrect", "off")
    for name, words in (("Ben", "If you are ben, enter the name as it is written here."), ("Ann", "later.")):
        page.fill("#worker", name)
        page.click("#take [type=submit]")
        expect(spot(page, "#take-said")).to_contain_text(
            "All open tickets are leased to other workers: ben (2"
        )
        expect(spot(page, "#take-said")).to_have_text(re.compile(rf"{words}$"))


def test_results_are_pasted_doubted_and_added(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 0.01, "delta": 0.05, "names": ["A", "B"], "noise": "bernoulli"}
    serving.post("/runs", name="page", question=question, strategy="race")
    page = tab(f"{serving.url}/runs/page", PHONE, refused="of 422", own=True)
    link = page.get_by_role("link", name="Add results")
    expect(link).to_be_visible()
    serving.post("/runs/page/ask", worker="Bob", limit=1)
    expect(link).to_be_hidden()
    serving.post("/runs/page/release", worker="Bob")
    link.click()
    expect(spot(page, "#sheet")).to_be_in_viewport()
    page.fill("#sheet", "variant\tvisitors\tconversions\nA\t2000\t60\nB\t2000\t90")
    page.fill("#label", "monday")
    page.click("#feed [type=submit]")
    said = spot(page, "#fed-said")
    expect(said).to_contain_text("2 rows added, 0 already known, 0 corrected. Best certified so far: B.")
    box = page.get_by_label("the whole table is right")
    expect(box).to_be_hidden()
    page.fill("#sheet", "variant,visitors,conversions\nA,2000,600\nB,2000,90")
    page.fill("#label", "tuesday")
    page.click("#feed [type=submit]")
    expect(said).to_contain_text("Is this a data-entry error?")
    box.check()
    page.fill("#sheet", "variant,visitors,conversions\nA,2000,600\nB,2000,91")
    expect(box).to_be_hidden()
    page.click("#feed [type=submit]")
    expect(said).to_contain_text("Is this a data-entry error?")
    expect(box).not_to_be_checked()
    assert serving.facts("/runs/page.json")["n_pulls"] == 4000, "what was said of another table is not enough"
    box.check()
    found = page.evaluate(LOOK)
    assert (found["sticking_out"], found["faint"], page.evaluate(AUDIT)) == ([], [], [])
    page.click("#feed [type=submit]")
    expect(said).to_contain_text("2 rows added")
    expect(box).to_be_hidden()
    serving.post("/runs", name="old", question=question, strategy="wnelim")
    page.goto(f"{serving.url}/runs/old")
    expect(link).to_be_hidden()
    page.goto(f"{serving.url}/runs/old/answer")
    expect(spot(page, "#take")).to_be_visible()
    expect(spot(page, "#feed")).to_have_count(0)


def test_forms_wait_for_their_scripts(serving: Serving, tab: OpenRun) -> None:
    page = tab(f"{serving.url}/plan", java_script_enabled=False)
    expect(spot(page, "#begin [type=submit]")).to_be_disabled()
    page.goto(f"{serving.url}/runs/fresh/answer")
    buttons = page.locator("form button").all()
    assert len(buttons) >= 3
    for button in buttons:
        expect(button).to_be_disabled()
    page.fill("#worker", "Ann")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{serving.url}/runs/fresh/answer")
    assert page.input_value("#worker") == "Ann", "nothing that was entered is lost"


def test_a_token_never_gets_into_an_address(browser: Any, tab: OpenRun, tmp_path: Path) -> None:
    tokens, file = Tokens.new(), tmp_path / "tokens"
    file.write_text(f"write {tokens.write}\nread {tokens.read}\n")
    file.chmod(0o600)
    server = Serving(tmp_path / "runs.db", "--token-file", str(file))
    try:
        page = tab(f"{server.url}/login", java_script_enabled=False)
        page.fill("#token", tokens.read)
        page.keyboard.press("Enter")
        expect(spot(page, "#login [type=submit]")).to_be_disabled()
        expect(page).to_have_url(f"{server.url}/login")
        page.close()
    finally:
        server.close()


DOUBT = "Is this a data-entry error? If it is right, tick the box and send it again."


def doubted(serving: Serving, tab: OpenRun, run: str) -> Page:
    """Return the form of a run of three arms after 71 was entered for the first, whose mean is 1."""
    names = ["M01", "M02", "M03"]
    question = {"m": 1, "epsilon": 0.5, "delta": 0.1, "variances": [1.0] * 3, "names": names}
    serving.post("/runs", name=run, question=question, strategy="race")
    serving.measure(run, dict.fromkeys(names, 1.0))
    page = tab(f"{serving.url}/runs/{run}/answer", PHONE, refused="of 422", own=True)
    page.fill("#worker", "Ann")
    page.click("#take [type=submit]")
    spot(page, ".mean").first.fill("71")
    page.click("#send")
    expect(spot(page, ".result").first).to_contain_text(DOUBT)
    return page


def test_a_doubted_answer_is_recorded_only_if_its_box_is_ticked(serving: Serving, tab: OpenRun) -> None:
    page = doubted(serving, tab, "far")
    far, other = (spot(page, ".ticket").nth(place) for place in range(2))
    said, box = spot(page, "#sent-said"), far.get_by_label("The mean 71 is right")
    expect(far.locator(".mean")).to_be_focused()
    for part in (far.locator(".result"), far.locator(".insist")):
        assert part.evaluate(ABOVE_BAR)
    assert DOUBT in box.evaluate("e => document.getElementById(e.getAttribute('aria-describedby')).innerText")
    found = page.evaluate(LOOK)
    assert (found["sticking_out"], found["faint"], page.evaluate(AUDIT)) == ([], [], [])
    other.locator(".mean").fill("1.1")
    expect(spot(page, "#send")).to_have_text("Send 1 answer")
    page.click("#send")
    expect(other).to_contain_text("✓ Recorded.")
    expect(far.locator(".result")).to_contain_text(DOUBT)
    expect(said).to_have_text(
        "1 added, 1 still open. M01 was not sent: tick its box if it is right, or correct it."
    )
    page.click("#send")
    expect(said).to_have_text("M01 was not sent: tick its box if it is right, or correct it.")
    facts = serving.facts("/runs/far.json")
    means = {row["name"]: row["mean"] for row in facts["arms"]["rows"]}
    assert (facts["n_open"], means["M01"]) == (2, 1)
    far.locator(".mean").focus()
    page.keyboard.press("Tab")
    expect(box).to_be_focused()
    page.keyboard.press("Space")
    expect(spot(page, "#send")).to_have_text("Send 1 answer")
    page.keyboard.press("Enter")
    expect(far).to_contain_text("✓ Recorded.")
    expect(far.locator(".insist")).to_be_hidden()
    assert serving.facts("/runs/far.json")["n_open"] == 1


def test_an_answer_that_is_edited_is_doubted_anew(serving: Serving, tab: OpenRun) -> None:
    page = doubted(serving, tab, "edited")
    far = spot(page, ".ticket").first
    far.get_by_label("The mean 71 is right").check()
    far.locator(".mean").fill("72")
    expect(far.locator(".insist")).to_be_hidden()
    expect(far.locator(".result")).to_have_text("")
    page.click("#send")
    expect(far.locator(".result")).to_contain_text(DOUBT)
    box = far.get_by_label("The mean 72 is right")
    expect(box).not_to_be_checked()
    page.check("input[value=rewards]")
    expect(far.locator(".insist")).to_be_hidden()
    page.check("input[value=mean]")
    page.click("#send")
    expect(box).to_be_visible()
    page.click("#take [type=submit]")
    expect(spot(page, "#sent-said")).to_have_text(re.compile("^You have 3 tickets"))
    expect(box).to_be_visible()
    expect(box).not_to_be_checked()
    expect(spot(page, "#send")).to_have_text("Send")


def test_what_is_typed_while_answers_are_sent_is_not_what_was_doubted(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 1.0, "delta": 0.1, "noise": "gaussian-unknown", "n": 2}
    serving.post("/runs", name="typed on", question=question)
    page = tab(f"{serving.url}/runs/typed on/answer", PHONE, refused="of 422", own=True)
    page.fill("#worker", "Ann")
    page.click("#take [type=submit]")
    cards = spot(page, ".ticket")
    pulls = serving.facts("/runs/typed on/round.json")["pulls"][0]
    near = " ".join(f"{2 + k % 3}" for k in range(pulls - 1))

    def correct(route: Any) -> None:
        cards.nth(0).locator(".rewards").fill(f"{near} 8")
        route.continue_()

    cards.nth(0).locator(".rewards").fill(f"{near} 71")
    page.route("**/tell", correct, times=1)
    page.click("#send")
    expect(cards.nth(0).locator(".result")).to_have_text(
        re.compile(r"the reward 71 is far from .* Is this a data-entry error\?$")
    )
    expect(cards.nth(0).locator(".insist")).to_be_hidden()
    cards.nth(0).locator(".rewards").fill(f"{near} 71")
    page.click("#send")
    expect(cards.nth(0).get_by_label("The reward 71 is right")).to_be_visible()


def lab(serving: Serving, tab: OpenRun, run: str) -> Page:
    """Return the form of a run of six arms with unknown variances, with tickets taken."""
    question = {"m": 1, "epsilon": 1.0, "delta": 0.1, "noise": "gaussian-unknown", "n": 6}
    serving.post("/runs", name=run, question=question)
    page = tab(f"{serving.url}/runs/{run}/answer", PHONE, refused="of 422", own=True)
    page.fill("#worker", "Ann")
    page.click("#take [type=submit]")
    expect(spot(page, ".ticket")).to_have_count(6)
    page.check("input[value=mean]")
    return page


def enter(page: Page, place: int, mean: str) -> None:
    card = spot(page, ".ticket").nth(place)
    card.locator(".mean").fill(mean)
    card.locator(".variance").fill("4")


def far_first(serving: Serving, tab: OpenRun, run: str) -> Page:
    """Return the form of a run whose recorded first answer is far from the others that were just sent."""
    page = lab(serving, tab, run)
    enter(page, 0, "483.1")
    page.click("#send")
    expect(spot(page, ".ticket").first).to_contain_text("✓ Recorded.")
    for place, mean in enumerate(("40", "48", "44", "43", "45"), 1):
        enter(page, place, mean)
    page.click("#send")
    return page


def test_a_recorded_answer_is_doubted_when_others_arrive(serving: Serving, tab: OpenRun) -> None:
    page = far_first(serving, tab, "late doubt")
    asked = spot(page, "#earlier-said")
    expect(asked).to_have_text(
        "arm-0 has the mean 483.1, far from those of 5 other arms (median 44.5). Is this a data-entry error? "
        "This is the recorded answer: withdraw it, or tick the box."
    )
    expect(spot(page, "#sent-said")).to_have_text("5 answers not sent: see above.")
    found = page.evaluate(LOOK)
    assert (found["sticking_out"], found["faint"], page.evaluate(AUDIT)) == ([], [], [])
    assert serving.facts("/runs/late doubt.json")["n_open"] == 5
    page.click("#send")
    expect(asked).to_contain_text("Is this a data-entry error?")
    part = spot(page, "#earlier")
    part.locator(".correction button").click()
    expect(asked).to_have_text("Say why the recorded answer is wrong, for the log.")
    part.get_by_label("Why is the recorded answer wrong?").fill("lost the point")
    part.locator(".correction button").click()
    expect(part).to_be_hidden()
    expect(spot(page, ".ticket")).to_have_count(6)
    place = spot(page, ".ticket .arm").all_inner_texts().index("arm-0")
    enter(page, place, "48.31")
    page.click("#send")
    expect(spot(page, "#sent-said")).to_contain_text("6 added.")


def test_a_recorded_answer_that_is_right_although_far_is_confirmed(serving: Serving, tab: OpenRun) -> None:
    page = far_first(serving, tab, "far right")
    page.get_by_label("arm-0 has the mean 483.1: that is right").check()
    page.click("#send")
    expect(spot(page, "#sent-said")).to_contain_text("5 added.")


def test_late_news_of_a_withdrawal_does_not_open_a_card_again(serving: Serving, tab: OpenRun) -> None:
    """The next answer may be sent before the page hears of the withdrawal that it asked for itself."""
    page = lab(serving, tab, "late")
    ticket = spot(page, ".ticket").first
    other = {"ticket": ticket.locator(".code").inner_text(), "mean": 43.0, "variance": 4.0}
    serving.post("/runs/late/tell", worker="Bob", answers=[other])
    enter(page, 0, "34")
    page.click("#send")
    expect(ticket.locator(".result")).to_have_text("The recorded answer is 43, and this answer is 34.")
    held: list[Any] = []
    page.route("**/runs/late.json", lambda route: held.append(route))  # noqa: PLW0108
    ticket.get_by_label("Why is the recorded answer wrong?").fill("digits swapped")
    ticket.get_by_role("button", name="Withdraw it").click()
    expect(ticket.locator(".result")).to_contain_text("was withdrawn. Enter the right one")
    page.click("#send")
    expect(ticket).to_contain_text("✓ Recorded.")
    with page.expect_response("**/runs/late.json"):
        for request in held:
            request.continue_()
    page.wait_for_timeout(100)
    expect(ticket).to_contain_text("✓ Recorded.")


def test_an_earlier_withdrawal_does_not_open_a_new_card(serving: Serving, tab: OpenRun) -> None:
    question = {"m": 1, "epsilon": 1.0, "delta": 0.1, "noise": "gaussian-unknown", "n": 6}
    serving.post("/runs", name="earlier", question=question)
    code = serving.post("/runs/earlier/ask", worker="Bob")["tickets"][0]["ticket"]
    serving.post(
        "/runs/earlier/tell", worker="Bob", answers=[{"ticket": code, "mean": 43.0, "variance": 4.0}]
    )
    serving.post("/runs/earlier/withdraw", ticket=code, why="digits swapped", by="Bob")
    page = tab(f"{serving.url}/runs/earlier/answer", PHONE, own=True)
    page.fill("#worker", "Bob")
    page.click("#take [type=submit]")
    ticket = spot(page, ".ticket").first
    expect(ticket.locator(".code")).to_have_text(code)
    page.check("input[value=mean]")
    enter(page, 0, "34")
    page.click("#send")
    expect(ticket).to_contain_text("✓ Recorded.")
    page.wait_for_timeout(800)  # the news of this answer names the earlier withdrawal, too
    expect(ticket).to_contain_text("✓ Recorded.")


def test_a_recorded_card_is_corrected_while_its_round_is_open(serving: Serving, tab: OpenRun) -> None:
    page = lab(serving, tab, "correct")
    for place, mean in enumerate(("40", "48")):
        enter(page, place, mean)
    page.click("#send")
    first, second = (spot(page, ".ticket").nth(place) for place in range(2))
    expect(first).to_contain_text("✓ Recorded.")
    first.get_by_role("button", name="Correct").click()
    expect(first.get_by_label("Why is the recorded answer wrong?")).to_be_focused()
    found = page.evaluate(LOOK)
    assert (found["sticking_out"], found["faint"], page.evaluate(AUDIT)) == ([], [], [])
    page.keyboard.type("wrong bag")
    page.keyboard.press("Enter")
    expect(first.locator(".result")).to_have_text(
        "The recorded answer was withdrawn. Enter the right one, and send it."
    )
    enter(page, 0, "41")
    page.click("#send")
    expect(first).to_contain_text("✓ Recorded.")
    (taken,) = serving.facts("/runs/correct.json")["withdrawn"]
    assert (taken["mean"], taken["why"], taken["by"]) == (40, "wrong bag", "Ann")
    ticket = second.locator(".code").inner_text()
    serving.post("/runs/correct/withdraw", ticket=ticket, why="the wrong scale.", by="Bob")
    expect(second.locator(".result")).to_have_text(
        "The recorded answer was withdrawn: the wrong scale. Enter it again."
    )
    expect(second.locator(".mean")).to_be_editable()
    ticket = spot(page, ".ticket").nth(2).locator(".code").inner_text()
    other = {"ticket": ticket, "mean": 43.0, "variance": 4.0}
    serving.post("/runs/correct/tell", worker="Bob", answers=[other])
    enter(page, 2, "34")
    page.click("#send")
    third = spot(page, ".ticket").nth(2)
    expect(third.locator(".result")).to_have_text("The recorded answer is 43, and this answer is 34.")
    third.get_by_label("Why is the recorded answer wrong?").fill("digits swapped")
    third.get_by_role("button", name="Withdraw it").click()
    expect(third.locator(".result")).to_contain_text("was withdrawn. Enter the right one")
    page.click("#send")
    expect(third).to_contain_text("✓ Recorded.")
