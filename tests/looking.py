"""Pages as a browser shows them: what sticks out, and what is too faint to be read."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

LOOK = r"""
() => {
  const found = {sticking_out: [], faint: [], texts: 0, boxes: 0};
  const unseen = e => e.closest('title, desc, style, .unseen, .skip');
  const say = e => `${e.tagName}.${e.getAttribute('class') || ''} ${(e.textContent || '').slice(0, 40)}`;
  document.querySelectorAll('details').forEach(e => { e.open = true; });
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.sticking_out.push('the page itself');

  const all = [...document.body.querySelectorAll('*')].filter(e => !unseen(e));
  for (const e of all) {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    if (!box.width || style.display === 'none') continue;
    found.boxes += 1;
    const around = e.parentElement;
    const parent = around.getBoundingClientRect();
    if (getComputedStyle(around).textOverflow === 'ellipsis') continue;
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
    return under.reduce((below, shape) => {
      const style = getComputedStyle(shape), [r, g, b, a] = colour(style.fill);
      return over([r, g, b, a * Number(style.fillOpacity) * Number(style.opacity)], below);
    }, base);
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


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a Chromium that is installed on this machine."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
