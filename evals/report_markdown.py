"""A report as Markdown, with its charts as files beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from evals.charts import standalone
from evals.report import Block, Drawing, Heading, Text
from evals.tables import ReportTable

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_LIST = re.compile(r"^([-+=]|\d{1,9}(?=[.)]))")  # what would begin a list or an underline


def markdown_report(blocks: Sequence[Block], stem: str) -> tuple[str, dict[str, str]]:
    """Return the text and its SVG files by name; `stem` is the report's name without suffix."""
    parts: list[str] = []
    files: dict[str, str] = {}
    for block in blocks:
        if isinstance(block, Drawing):
            name = f"{stem}-{block.name}.svg"
            files[name] = standalone(block.chart.svg, block.chart.title)
            title = escaped(block.chart.title)
            parts += [f"![{title}]({quote(name)})", f"*{title}*"]
        elif isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {escaped(block.text)}")
        elif isinstance(block, Text):
            parts.append(_paragraph(block.text))
        else:
            parts.append(_table(block))
    return "\n\n".join(parts) + "\n", files


def _paragraph(text: str) -> str:
    # An entity in front is nothing to a reader, and text that begins no list to a parser.
    return _LIST.sub(r"&#8203;\1", escaped(text))


def _table(table: ReportTable) -> str:
    rule = ["---" if place < table.labels else "---:" for place in range(len(table.headers))]
    lines = [[escaped(cell) for cell in table.headers], rule]
    lines += [[escaped(cell) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    flat = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", flat)
