"""A run as a page of its own: one file that can be kept or sent."""

from __future__ import annotations

from core.display.html import folded
from core.display.markup import Markup, element, escaped, joined, line, opening
from core.display.runs import run_view, steps_view
from core.display.style import STYLE
from core.trace import RunRecord

# Nothing is loaded and nothing runs, whatever a document managed to say.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
PAGE = """:root { color-scheme: light dark; }
body { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  margin: 2rem auto; padding: 0 1rem; max-width: 62rem; }
"""


def run_page(run: RunRecord) -> str:
    """Return an HTML page that shows a run and every step of it; it needs no other file."""
    head = element(
        "head",
        {},
        opening("meta", {"charset": "utf-8"}),
        opening("meta", {"http-equiv": "Content-Security-Policy", "content": POLICY}),
        opening("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("title", {}, escaped(line(run.question))),
        element("style", {}, Markup(PAGE + STYLE)),
    )
    steps = folded(f"Steps: {len(run.trail)}", steps_view(run).body, opened=False)
    shown = element("main", {"class": "carrel-view"}, run_view(run).body, steps)
    page = joined(head, element("body", {}, shown))
    return f"<!doctype html>\n{element('html', {'lang': 'en'}, page)}\n"
