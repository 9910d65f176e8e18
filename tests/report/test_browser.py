"""Reports as a browser shows them: nothing sticks out, and all text can be read, in light and in dark."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shortlist.report.page import page
from tests.report import samples

WIDTHS = (390, 1280, 1920)
KINDS = ("small", "large", "interrupted", "failed", "hostile")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

LOOK = r"""
() => {
  const found = {sticking_out: [], faint: [], texts: 0, boxes: 0};
  const say = e => `${e.tagName}.${e.getAttribute('class') || ''} ${(e.textContent || '').slice(0, 40)}`;
  document.querySelectorAll('details').forEach(e => { e.open = true; });
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.sticking_out.push('the page itself');

  const all = [...document.body.querySelectorAll('*')].filter(e => !e.closest('title,desc,style'));
  for (const e of all) {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    if (!box.width || style.display === 'none') continue;
    found.boxes += 1;
    const parent = e.parentElement.getBoundingClientRect();
    if (box.left < -0.5 || box.right > width + 0.5) found.sticking_out.push('of the window: ' + say(e));
    if (box.left < parent.left - 1 || box.right > parent.right + 1)
      found.sticking_out.push('of its parent: ' + say(e));
    if (!e.closest('svg') && style.display !== 'inline' && style.textOverflow !== 'ellipsis'
        && e.scrollWidth > e.clientWidth + 1) found.sticking_out.push('inside: ' + say(e));
  }

  for (const picture of document.querySelectorAll('svg')) {
    const boxes = [...picture.querySelectorAll('text')].map(e => [e, e.getBoundingClientRect()]);
    const meet = (a, b) => a.left < b.right && b.left < a.right
      && a.top + 2 < b.bottom - 2 && b.top + 2 < a.bottom - 2;
    for (const [e, a] of boxes) for (const [f, b] of boxes)
      if (e !== f && meet(a, b)) found.sticking_out.push(`over another: ${say(e)}, ${say(f)}`);
  }

  const colour = text => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const light = rgb => {
    const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e, under) => {
    const layers = [];
    for (let up = e; up; up = up.parentElement) layers.unshift(colour(getComputedStyle(up).backgroundColor));
    const base = layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
    return under.reduce((below, shape) => over(colour(getComputedStyle(shape).fill), below), base);
  };
  for (const e of all) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    if (!own || !box.width) continue;
    found.texts += 1;
    const drawn = e instanceof SVGElement;
    const stack = drawn ? document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2) : [];
    const under = stack.filter(o => o !== e && /^(rect|circle|path)$/.test(o.tagName)).reverse();
    const below = ground(e, under);
    const ink = over(colour(drawn ? style.fill : style.color), below);
    const [dark, bright] = [light(ink), light(below)].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    const least = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
    if (ratio < least) found.faint.push(`${ratio.toFixed(2)} ${say(e)}`);
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a Chromium that is installed on this machine."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_can_be_read_at_any_width(browser: Any, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(samples.ALL[kind]()), encoding="utf-8")
    tab, requests, errors = browser.new_page(), [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text))
    tab.goto(file.as_uri())
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 8000})
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            found = tab.evaluate(LOOK)
            assert found["sticking_out"] == [], width
            assert found["faint"] == [], (width, scheme)
            assert found["texts"] > 50
            assert found["boxes"] > 100
    assert requests == [file.as_uri()]
    assert errors == []
    tab.close()


def test_dark_and_light_differ_and_paper_is_white(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(samples.small()), encoding="utf-8")
    grounds = {}
    for scheme, medium in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        tab = browser.new_page(color_scheme=scheme)
        tab.emulate_media(media=medium)
        tab.goto(file.as_uri())
        grounds[scheme, medium] = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        tab.close()
    assert grounds["light", "screen"] == grounds["dark", "print"] == "rgb(255, 255, 255)"
    assert grounds["dark", "screen"] == "rgb(20, 23, 27)"


def test_names_of_all_lengths_keep_rows_and_marks_together(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(samples.hostile()), encoding="utf-8")
    tab = browser.new_page(viewport={"width": 390, "height": 3000})
    tab.goto(file.as_uri())
    rows, marks = tab.evaluate(
        """() => {
          const arms = document.querySelector('.arms');
          const middle = e => { const b = e.getBoundingClientRect(); return b.y + b.height / 2; };
          return [[...arms.querySelectorAll('ol.names li:not(.cut)')].map(middle),
                  [...arms.querySelectorAll('svg:nth-of-type(1) :is(circle, rect)')].map(middle)];
        }"""
    )
    tab.close()
    assert len(rows) == len(marks) == 24
    assert rows == pytest.approx(marks, abs=1.5)


def test_numbers_stand_on_one_line_on_a_telephone(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(samples.large()), encoding="utf-8")
    tab = browser.new_page(viewport={"width": 390, "height": 3000})
    tab.goto(file.as_uri())
    lines = tab.evaluate(
        """() => {
          document.querySelectorAll('details').forEach(e => { e.open = true; });
          const number = /^[0-9][0-9,.]*( %)?$/;
          return [...document.querySelectorAll('td')].filter(e => number.test(e.innerText.trim())).map(e => {
            const range = document.createRange();
            range.selectNodeContents(e);
            return new Set([...range.getClientRects()].filter(b => b.width > 1).map(b => b.y)).size;
          });
        }"""
    )
    tab.close()
    assert len(lines) > 200
    assert set(lines) == {1}


@pytest.mark.parametrize("kind", KINDS)
def test_paper_has_what_a_screen_unfolds(browser: Any, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(samples.ALL[kind]()), encoding="utf-8")
    tab = browser.new_page(viewport={"width": 700, "height": 3000})
    tab.emulate_media(media="print")
    tab.goto(file.as_uri())
    folded = tab.evaluate(
        """() => [...document.querySelectorAll('details > :not(summary)')].map(
          e => e.getBoundingClientRect().height > 0 && e.checkVisibility({contentVisibilityAuto: true}))"""
    )
    brief = tab.evaluate("[...document.querySelectorAll('.brief')].map(e => e.checkVisibility())")
    tab.close()
    assert len(folded) >= 3
    assert all(folded)
    assert not any(brief), "what is there at length is not there in short as well"
