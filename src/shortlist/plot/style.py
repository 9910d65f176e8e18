"""The style of figures, and saving them to reproducible files.

Nothing here uses `pyplot`, and matplotlib's settings are changed only while a figure is drawn or saved, so
other uses of matplotlib are not affected.
"""

import io
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from shortlist.arrays import FloatArray
from shortlist.checks import install_command
from shortlist.errors import InvalidProblem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Drawn: TypeAlias = "Axes | Figure"

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"  # the palette of Okabe and Ito
ORANGE, SKY, BLACK, GREY, PALE = "#E69F00", "#56B4E9", "#000000", "#6B6B6B", "#BBBBBB"
WIDTH = 6.4  # inches; the text width of most journals and of this documentation

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "font.size": 9,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,  # keep text as text
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # keep text as text
    "svg.hashsalt": "shortlist",  # makes the ids of elements reproducible
    "xtick.labelsize": 8.5,
    "xtick.minor.visible": False,
    "ytick.labelsize": 8.5,
    "ytick.minor.visible": False,
}
_UNDATED: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
_LOCK = threading.RLock()  # matplotlib's settings are global to all threads


class Look(NamedTuple):
    """The colour, dashes and marker of a line, which also differ in greyscale."""

    colour: str
    line: Any
    marker: str


_LOOKS = {
    "lower bound": Look(BLACK, "-", ""),
    "race": Look(BLUE, "-", "o"),
    "wnelim": Look(VERMILION, "--", "s"),
    "vmedelim": Look(GREEN, "-.", "^"),
    "medelim-max": Look(PURPLE, ":", "D"),
    "adapted-medelim": Look(ORANGE, (0, (5, 1, 1, 1, 1, 1)), "v"),
    "single-stage": Look(SKY, (0, (6, 1)), "P"),
    "level-race": Look(BLUE, (0, (3, 1)), "X"),
    "short-race": Look(BLUE, (0, (1, 1)), "*"),
    "racing": Look(BLACK, (0, (1, 2)), "p"),
    "lucb-mixture": Look(VERMILION, (0, (1, 2)), "8"),
    "uniform": Look(GREY, (0, (4, 1, 1, 1)), "d"),
    "bechhofer": Look(GREEN, "--", "h"),
    "lucb": Look(ORANGE, "-", "<"),
    "kn": Look(SKY, "-", ">"),
}
_OTHERS = [
    Look(c, line, m) for line in (":", "--") for c, m in zip((PURPLE, GREY, BLACK), "p8H", strict=True)
]


def look_of(name: str) -> Look:
    """Return the look of a strategy's line, the same in every figure."""
    return _LOOKS.get(name) or _OTHERS[sum(name.encode()) % len(_OTHERS)]


def require_matplotlib() -> None:
    """Raise an error that says what to install, if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        raise InvalidProblem(
            f"figures need matplotlib, which is not installed. Use: {install_command('plot')}"
        ) from None


@contextmanager
def quiet_style() -> Iterator[None]:
    """Draw in the style of this package, and restore matplotlib's settings afterwards.

    Only the user's font setting is kept, so that names can be in any script that the font supports.
    """
    require_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415
    import matplotlib.style  # noqa: PLC0415

    with _LOCK:
        fonts = {key: mpl.rcParams[key] for key in ("font.family", "font.sans-serif", "font.serif")}
        with matplotlib.style.context(["default", _STYLE | fonts]):
            yield


def new_axes(ax: "Axes | None", height: float, width: float = WIDTH) -> "Axes":
    """Return the given axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    return new_figure(height, width).subplots()


def new_figure(height: float, width: float = WIDTH) -> "Figure":
    """Return an empty figure of this size in inches, not registered with pyplot."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(width, height), layout="constrained")


def whole_ticks(axis: "Axis") -> None:
    """Place ticks at integers only, in steps of 1, 2 or 5 times a power of ten."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))


def powers_of_ten(axes: "Axes", which: str) -> None:
    """Make the "x" or "y" axis logarithmic, with at least two powers of ten as plain text."""
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    axis = {"x": axes.xaxis, "y": axes.yaxis}[which]
    if not math.isfinite(axes.dataLim.minposx if which == "x" else axes.dataLim.minposy):
        return  # the axis is empty
    axes.set(**{f"{which}scale": "log"})
    axes.autoscale_view()
    low, high = (math.log10(end) for end in axis.get_view_interval())
    if math.floor(high) <= math.ceil(low):
        axes.set(**{f"{which}lim": (10.0 ** math.floor(low), 10.0 ** math.ceil(high))})
    axis.set_major_formatter(lambda value, _: _power(value))
    axis.set_minor_formatter(NullFormatter())


def _power(value: float) -> str:
    """Return a power of ten as text, in full if that is short."""
    exponent = round(math.log10(value))
    if -3 <= exponent <= 3:
        return f"{value:,.10g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def value_ticks(axes: "Axes", values: FloatArray) -> None:
    """Place ticks at the values themselves, or at every other one if they are many."""
    from matplotlib.ticker import FixedLocator, NullLocator  # noqa: PLC0415

    some = values[:: max(1, -(-len(values) // 9))]
    axes.xaxis.set_major_locator(FixedLocator(some.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if x >= 100 else f"{x:.3g}")


def figure_of(drawn: Drawn) -> "Figure":
    """Return the figure that axes belong to, or the figure itself."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    if isinstance(drawn, Figure):
        return drawn
    found = drawn.get_figure(root=True) if hasattr(drawn, "get_figure") else None
    if found is None:
        raise InvalidProblem(f"`drawn` is {drawn!r}; it must be what a function of shortlist.plot returned.")
    return found


def save(drawn: Drawn, path: str | Path) -> None:
    """Write a figure to a file: .svg, .pdf (both with text as text) or .png, by its extension.

    The same figure always gives the same bytes: no date is written.

    Parameters
    ----------
    drawn
        The return value of a function of `shortlist.plot`.
    path
        The file; an existing file is replaced.
    """
    path = Path(path)
    kind, whole = kind_of(path), io.BytesIO()
    with quiet_style():
        figure_of(drawn).savefig(whole, format=kind, metadata=_UNDATED[kind])
    path.write_bytes(whole.getvalue())


def kind_of(path: Path) -> str:
    """Return the format for the extension of a file name."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _UNDATED:
        given = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
        raise InvalidProblem(f"the figure's file {str(path)!r} {given}; use one of .svg, .pdf and .png.")
    return kind
