"""SVG pictures that fit any width: horizontal positions are percentages, vertical ones pixels.

So text keeps its size on every screen. Colours come from the style sheet, by class. Every picture has a title
and a description for screen readers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from shortlist.report.text_format import power_words, powers, tick_words, ticks

_MARGIN = 0.04  # share of the width, on both sides, so that marks at the edge are not cut off
_EDGE = 0.12  # share of the width: a label closer to the side than this ends or begins at its tick


@dataclass(frozen=True)
class Scale:
    """Maps values to horizontal positions, from `left` on; 0 is the left side of the picture, 1 the right."""

    low: float
    high: float
    is_log: bool = False
    left: float = _MARGIN

    def __call__(self, value: float) -> float:
        """Return the position of a value; values beyond the ends are moved to the edge."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.is_log:
            low, high, value = (float(np.log(one)) for one in (low, high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.left + (1 - _MARGIN - self.left) * share

    def ticks(self, room: int = 30) -> list[tuple[float, str]]:
        """Return round values and their labels, which have at most `room` characters in total."""
        for most in (5, 4, 3, 2, 1):
            values = powers(self.low, self.high, most) if self.is_log else ticks(self.low, self.high, most)
            labels = [power_words(value) for value in values] if self.is_log else tick_words(values)
            if sum(map(len, labels)) + 2 * len(labels) <= room:
                break
        return list(zip(values, labels, strict=True))


class Picture:
    """A picture to draw on; horizontal positions are shares of its width, vertical ones pixels."""

    def __init__(self, height: float, title: str, description: str) -> None:
        self.height = height
        self._title, self._description = title, description
        self._parts: list[str] = []

    def line(self, start: tuple[float, float], end: tuple[float, float], kind: str) -> None:
        """Draw a straight line."""
        (x1, y1), (x2, y2) = start, end
        self._add(f'<line class="{kind}" x1="{_at(x1)}" y1="{y1:g}" x2="{_at(x2)}" y2="{y2:g}"/>')

    def bar(self, start: float, end: float, top: float, height: float, kind: str) -> None:
        """Draw a rectangle between two horizontal positions."""
        left, width = min(start, end), abs(end - start)
        size = f'width="{_at(width)}" height="{height:g}"'
        self._add(f'<rect class="{kind}" x="{_at(left)}" y="{top:g}" {size}/>')

    def circle(self, x: float, y: float, kind: str, radius: float = 4.5) -> None:
        """Draw a round mark."""
        self._add(f'<circle class="{kind}" cx="{_at(x)}" cy="{y:g}" r="{radius:g}"/>')

    def square(self, x: float, y: float, kind: str, side: float = 8) -> None:
        """Draw a square mark."""
        place = f'x="{_at(x)}" y="{y:g}" width="{side:g}" height="{side:g}"'
        self._add(f'<rect class="{kind}" {place} transform="translate({-side / 2:g} {-side / 2:g})"/>')

    def text(self, x: float, y: float, said: str, kind: str = "label", anchor: str = "start") -> None:
        """Draw text."""
        place = f'x="{_at(x)}" y="{y:g}" text-anchor="{anchor}"'
        self._add(f'<text class="{kind}" {place}>{escape(said)}</text>')

    def steps(self, heights: Sequence[float], left: float, edges: tuple[float, float], kind: str) -> None:
        """Draw columns of equal width without gaps, with heights from 0 to 1, between `top` and `bottom`."""
        top, bottom = edges
        n, path = len(heights), ["M0 100"]
        for place, height in enumerate(heights):
            y = 100 * (1 - height)
            path.append(f"L{1000 * place / n:.2f} {y:.2f} {1000 * (place + 1) / n:.2f} {y:.2f}")
        size = f'width="{_at(1 - _MARGIN - left)}" height="{bottom - top:g}"'
        self._add(
            f'<svg aria-hidden="true" x="{_at(left)}" y="{top:g}" {size} viewBox="0 0 1000 100" '
            f'preserveAspectRatio="none">'
            f'<path class="{kind}" d="{" ".join(path)} L1000 100Z"/></svg>'
        )

    def axis(self, scale: Scale, top: float, bottom: float, room: int = 30) -> None:
        """Draw vertical lines at round values, with labels of at most `room` characters below."""
        for value, label in scale.ticks(room):
            x = scale(value)
            self.line((x, top), (x, bottom), "grid")
            anchor = "start" if x < _EDGE else "end" if x > 1 - _EDGE else "middle"
            shift = {"start": -_MARGIN, "end": _MARGIN, "middle": 0.0}[anchor]
            self.text(x + shift, bottom + 16, label, anchor=anchor)

    def render(self) -> str:
        """Return the picture as an HTML element."""
        said = escape(f"{self._title}. {self._description}", quote=True)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{self.height:g}" role="img" '
            f'aria-label="{said}"><title>{escape(self._title)}</title>'
            f"<desc>{escape(self._description)}</desc>{''.join(self._parts)}</svg>"
        )

    def _add(self, part: str) -> None:
        self._parts.append(part)


def _at(share: float) -> str:
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"
