"""What a notebook shows of a value: HTML that needs nothing else, and plain text."""

from __future__ import annotations

from collections.abc import Container

from display.html import Markup, element, joined

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
.carrel-view .number { text-align: right; font-variant-numeric: tabular-nums; }
.carrel-view .grade, .carrel-view .short { white-space: nowrap; }
"""


class View:
    """Hold something to look at, for notebooks and terminals."""

    def __init__(self, body: Markup, text: str) -> None:
        """Keep the HTML of its body and the same as plain text."""
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
