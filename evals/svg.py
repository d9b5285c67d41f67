"""Draw a figure as SVG: the same bytes every time, no fonts or files needed to show it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1b1f24"  # lines and letters; inside a page they take the colour of its text
PAPER = "#ffffff"
FONT = "DejaVu Sans"  # comes with matplotlib
SALT = "carrel"
LABEL = 32
# Told apart with every kind of colour vision (Okabe and Ito 2008), and seen on black and white.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9")

_STYLE = {
    "font.family": [FONT],
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "text.parse_math": False,  # a "$" in a name is a dollar
    "svg.fonttype": "path",
    "svg.hashsalt": SALT,
}
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def draw(paint: Callable[[list[Axes]], None], size: tuple[float, float], columns: int = 1) -> str:
    """Return the SVG of axes side by side, painted by `paint`; `size` is in inches."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", _STYLE]):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, columns, squeeze=False, sharex=True, sharey=True)[0]
        paint(list(axes))
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata=_NO_METADATA)
    return written.getvalue()


def standalone(svg: str, title: str) -> str:
    """Return an SVG file on white paper."""
    paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{_opened(svg, title, paper)}'


def inline(svg: str, title: str, name: str) -> str:
    """Return an element for an HTML page, in the colour of its text; `name` keeps ids apart."""
    element = _opened(svg, title, "")
    element = element.replace(INK, "currentColor").replace("xlink:href", "href")
    element = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", element)
    element = re.sub(r'\bid="', f'id="{name}-', element)
    return re.sub(r'(href="#|url\(#)', rf"\1{name}-", element)


def _opened(svg: str, title: str, paper: str) -> str:
    """Put the title, which is read aloud, and the paper behind the opening tag; name no DTD."""
    svg = svg[svg.index("<svg") :].strip() + "\n"
    start = svg.index(">")
    return f'{svg[:start]} role="img"><title>{escape(title)}</title>{paper}{svg[start + 1 :]}'


def drawable(text: str) -> bool:
    """Tell whether the font has all letters of a text."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont(FONT))
    return all(font.get_char_index(ord(character)) for character in text)


def label(text: str, place: int) -> str:
    """Return a name as a chart shows it: short, or its number when the font lacks its letters."""
    if not drawable(text):
        return f"no. {place}"
    return text if len(text) <= LABEL else text[: LABEL - 1] + "…"
