"""Reports as a browser shows them: nothing sticks out, and all text can be read, in light and in dark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shortlist.report.page import page
from tests.looking import LOOK, chromium
from tests.report import samples

pytestmark = pytest.mark.slow

WIDTHS = (390, 1280, 1920)
KINDS = ("small", "large", "interrupted", "failed", "hostile")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a Chromium that is installed on this machine."""
    with chromium() as started:
        yield started


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
