"""Parts that displays are made of: escaped HTML, and a view of it with its plain text."""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NewType

Markup = NewType("Markup", str)

# Told apart with every kind of colour vision (Okabe and Ito 2008), and seen on black and white.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9")

# What XML can not hold, and marks that would turn the direction of the text around them.
UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)


def clean(text: object) -> str:
    """Return a text without the characters that no document may hold."""
    return UNSAFE.sub("", str(text))


def line(text: object) -> str:
    """Return a text on one line, without the characters that no document may hold."""
    return " ".join(clean(text).split())


def escaped(text: object) -> Markup:
    """Return a text as markup that shows it, in content and in attributes."""
    return Markup(html.escape(clean(text), quote=True))


def element(tag: str, attributes: Mapping[str, object] | None = None, *children: Markup) -> Markup:
    """Return an element; attributes whose value is None or False are left out."""
    return Markup(f"{opening(tag, attributes)}{''.join(children)}</{tag}>")


def opening(tag: str, attributes: Mapping[str, object] | None = None) -> Markup:
    """Return the tag that opens an element."""
    given = (attributes or {}).items()
    written = [f' {name}="{escaped(_text(value))}"' for name, value in given if _is_set(value)]
    return Markup(f"<{tag}{''.join(written)}>")


def joined(*parts: Markup) -> Markup:
    """Return markup one after the other."""
    return Markup("".join(parts))


def _is_set(value: object) -> bool:
    return value is not None and value is not False and value != ""


def _text(value: object) -> str:
    """Write numbers short: coordinates of one decimal are exact enough for any screen."""
    if isinstance(value, float):
        return f"{round(value, 1) + 0.0:g}"  # + 0.0 makes a negative zero zero
    return str(value)


Span = tuple[int, int]


def marked(text: str, spans: Iterable[Span]) -> Markup:
    """Return a text with these spans of characters marked, those that touch as one.

    What of a span is outside the text is left out.
    """
    parts: list[Markup] = []
    place = 0
    for start, end in _joined_spans(spans, len(text)):
        parts += [escaped(text[place:start]), element("mark", {}, escaped(text[start:end]))]
        place = end
    return joined(*parts, escaped(text[place:]))


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """Return names and values on a line; empty values are left out."""
    parts: list[Markup] = []
    for name, value in pairs:
        if value not in ("", None):
            parts += [element("dt", {}, escaped(name)), element("dd", {}, escaped(value))]
    return element("dl", {"class": "facts"}, *parts) if parts else Markup("")


def bullets(lines: Sequence[str], name: str) -> Markup:
    """Return a list of texts, nothing for none."""
    items = [element("li", {}, escaped(one)) for one in lines]
    return element("ul", {"class": name}, *items) if items else Markup("")


def folded(summary: str, *body: Markup, opened: bool = True) -> Markup:
    """Return a part that its reader can fold away."""
    head = element("summary", {}, escaped(summary))
    return element("details", {"open": "open" if opened else None}, head, *body)


def table(
    titles: Sequence[str], rows: Iterable[Sequence[Markup]], numbers: set[str], labels: int = 0
) -> Markup:
    """Return a table; `numbers` name the columns aligned right, `labels` counts heads of rows."""
    kinds = ["number" if title in numbers else None for title in titles]
    head = [
        element("th", {"scope": "col", "class": kind}, escaped(title))
        for title, kind in zip(titles, kinds, strict=True)
    ]
    body = [
        element(
            "tr",
            {},
            *(
                element("th", {"scope": "row"}, cell)
                if place < labels
                else element("td", {"class": kinds[place]}, cell)
                for place, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    made = element(
        "table",
        {},
        element("thead", {}, element("tr", {}, *head)),
        element("tbody", {}, *body),
    )
    # What scrolls must be reached by keyboard.
    frame = {"class": "wide", "tabindex": 0, "role": "group", "aria-label": ", ".join(titles)}
    return element("div", frame, made)


def bar(share: float, label: str, width: int = 70) -> Markup:
    """Return a bar that is filled to a share, 0..1, with its value beside it."""
    filled = max(0.0, min(1.0, share)) * width
    frame = {"width": width, "height": 8, "rx": 2, "fill": "currentColor"}
    inner = element("rect", {**frame, "fill-opacity": "0.15"})
    full = element("rect", {**frame, "width": filled, "fill-opacity": "0.6"})
    picture = element(
        "svg",
        {"class": "bar", "width": width, "height": 8, "aria-hidden": "true"},
        inner,
        full,
    )
    return element("span", {"class": "short"}, picture, escaped(f" {label}"))


def _joined_spans(spans: Iterable[Span], length: int) -> list[Span]:
    found: list[Span] = []
    for start, end in sorted((max(0, start), min(length, end)) for start, end in spans):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


STYLE = """
.carrel-view { line-height: 1.5; max-width: 62rem; color: inherit; }
.carrel-view .question { font-weight: 600; margin: 0 0 .4em; }
.carrel-view .answer { white-space: pre-wrap; margin: 0 0 .6em; }
.carrel-view .refused { border-left: 3px solid currentColor; padding-left: .7em; }
.carrel-view .cite { font-weight: 600; font-size: .85em; vertical-align: baseline; }
.carrel-view .facts { margin: .4em 0; padding: 0; font-size: .9em; }
.carrel-view .facts dt, .carrel-view .facts dd { display: inline; margin: 0; }
.carrel-view .facts dt { opacity: .7; }
.carrel-view .facts dt::after { content: " "; }
.carrel-view .facts dd::after { content: " · "; opacity: .5; }
.carrel-view .facts dd:last-child::after { content: ""; }
.carrel-view .warnings { margin: .4em 0; padding-left: 1.2em; font-size: .9em; }
.carrel-view .passage { margin: .5em 0; padding: .4em .8em; border: 1px solid;
  border-color: rgba(128, 128, 128, .4); border-radius: 6px; }
.carrel-view .passage > header { font-size: .9em; }
.carrel-view .passage > p { white-space: pre-wrap; margin: .3em 0 0; overflow-wrap: anywhere; }
.carrel-view .where { opacity: .7; }
.carrel-view mark { background: rgba(255, 200, 0, .35); color: inherit;
  text-decoration: underline; text-underline-offset: 3px; }
.carrel-view details { margin: .5em 0; }
.carrel-view summary { cursor: pointer; font-size: .9em; opacity: .8; }
.carrel-view svg.drawing { max-width: 100%; height: auto; }
.carrel-view .wide { overflow-x: auto; }
.carrel-view table { border-collapse: collapse; font-size: .9em; background: transparent; }
.carrel-view th, .carrel-view td { text-align: left; vertical-align: top;
  padding: .25em .7em .25em 0; background: transparent; color: inherit;
  border-bottom: 1px solid rgba(128, 128, 128, .3); overflow-wrap: break-word; }
.carrel-view tbody th { font-weight: normal; }
.carrel-view .number { text-align: right; font-variant-numeric: tabular-nums; }
.carrel-view .grade, .carrel-view .short { white-space: nowrap; }
"""


class View:
    """Hold something to look at, for notebooks and terminals."""

    def __init__(self, body: Markup, text: str) -> None:
        self.body = body
        self.text = text

    @property
    def html(self) -> str:
        """Return the body with the styles it needs, which reach nothing else on a page."""
        style = Markup(f"<style>{STYLE}</style>")
        return element("div", {"class": "carrel-view"}, joined(style, self.body))

    def bundle(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """Return both by their media types, as IPython asks for them."""
        return {
            kind: data
            for kind, data in (("text/plain", self.text), ("text/html", self.html))
            if (not include or kind in include) and not (exclude and kind in exclude)
        }

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text
