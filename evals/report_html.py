"""A report as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from evals.charts import inline
from evals.report import Block, Drawing, Heading, Text
from evals.tables import ReportTable

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --line: #c9ced6; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --paper: #15181c; --ink: #e4e7eb; --line: #454c56; }}
}}
body {{
  margin: 2rem auto; max-width: 64rem; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif;
}}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }}
th, td {{ border-bottom: 1px solid var(--line); padding: 0.25rem 0.75rem 0.25rem 0; }}
td, th.figure {{ text-align: right; white-space: nowrap; }}
th {{ text-align: left; vertical-align: bottom; }}
tbody th {{ font-weight: normal; }}
tbody th, tbody td {{ vertical-align: top; }}
figure {{ margin: 1rem 0; }}
figcaption {{ font-size: 0.9rem; }}
svg {{ max-width: 100%; height: auto; }}
</style>
</head>
<body>
"""


def html_report(blocks: Sequence[Block]) -> str:
    """Return the page."""
    title = next(block.text for block in blocks if isinstance(block, Heading))
    parts = []
    for block in blocks:
        if isinstance(block, Drawing):
            # A letter in front, since a style sheet's name cannot start with a digit.
            drawn = inline(block.chart.svg, block.chart.title, f"c{block.name}")
            caption = f"<figcaption>{escape(block.chart.title)}</figcaption>"
            parts.append(f"<figure>\n{drawn.strip()}\n{caption}\n</figure>")
        elif isinstance(block, Heading):
            parts.append(f"<h{block.level}>{escape(block.text)}</h{block.level}>")
        elif isinstance(block, Text):
            parts.append(f"<p>{escape(block.text)}</p>")
        else:
            parts.append(_table(block))
    return _HEAD.format(title=escape(title)) + "\n".join(parts) + "\n</body>\n</html>\n"


def _table(table: ReportTable) -> str:
    head = "".join(
        f'<th scope="col"{"" if place < table.labels else " class=figure"}>{escape(cell)}</th>'
        for place, cell in enumerate(table.headers)
    )
    rows = []
    for row in table.rows:
        cells = [
            f'<th scope="row">{escape(cell)}</th>'
            if place < table.labels
            else f"<td>{escape(cell)}</td>"
            for place, cell in enumerate(row)
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )
