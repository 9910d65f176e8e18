"""Text and tables for a terminal, with the control characters in them escaped."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from shortlist.escaping import printable


@dataclass(frozen=True, eq=False)
class Escaped:
    """Text or a table whose control characters are escaped with `printable`; its colours are kept."""

    shown: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the escaped segments."""
        for text, style, control in console.render(self.shown, options):
            yield Segment(text if control else printable(text), style, control)
