"""Markdown to blocks: headings are sections, fences code, tables tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ingest.loaders import markdown_dialects as dialects
from ingest.loaders import metadata
from ingest.loaders.markdown_inline import plain
from ingest.loaders.outline import Outline, table_text
from ingest.types import ParsedDocument

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
# Coloured terminal output in the FastAPI and Typer docs is written with tags inside the fence.
_CONSOLE_TAGS = re.compile(r"</?(?:font|span|u|b|i)\b[^<>]*>")
_MAX_NESTING = 3


def parse(relative: str, text: str, *, format_name: str = "markdown") -> ParsedDocument:
    """Parse a Markdown file; the title is the front matter's, the first heading or the stem."""
    front, body = _split_front_matter(text)
    outline = Outline()
    add_markdown(outline, body)
    blocks = outline.finish()
    title = front.get("title") or outline.first_heading or PurePosixPath(relative).stem
    return ParsedDocument(
        document_id=relative,
        source=relative,
        title=str(title),
        format=format_name,
        blocks=blocks,
        metadata=front,
    )


def load(relative: str, text: str) -> Iterator[ParsedDocument]:
    """Yield the one document of a Markdown file."""
    yield parse(relative, text)


def add_markdown(outline: Outline, text: str, *, nesting: int = 0) -> None:
    """Add the blocks of a piece of Markdown to an outline."""
    env: dict[str, Any] = {}
    md = _parser()
    _Walk(outline, md, env, nesting).run(md.parse(dialects.dedent_admonitions(text), env))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Inline content is parsed only where `plain` needs it: that is two thirds of the cost.
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return parser.disable(["inline", "text_join"])


def _split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    match = _FRONT_MATTER.match(text[:20_000])
    if not match:
        return {}, text
    import yaml

    try:
        found = yaml.safe_load(match.group(1))
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, text
    if not isinstance(found, dict):
        return {}, text
    # Nested values are a tool's settings (jupytext, theme), not a description of the document.
    return metadata.normalise(found), text[match.end() :]


class _Walk:
    """Turn the parser's flat token list into blocks."""

    def __init__(self, outline: Outline, md: MarkdownIt, env: dict[str, Any], nesting: int) -> None:
        self._outline = outline
        self._md = md
        self._env = env
        self._nesting = nesting
        self._ordered: list[bool] = []
        self._marker = ""
        self._heading: int | None = None
        self._rows: list[list[str]] | None = None

    def run(self, tokens: list[Token]) -> None:
        for token in tokens:
            handler = _HANDLERS.get(token.type)
            if handler:
                handler(self, token)

    def inline(self, token: Token) -> None:
        if self._heading is not None:
            self._add_heading(token)
        elif self._rows is not None:
            self._rows[-1].append(self._plain(token.content))
        elif content := dialects.strip_lines(token.content):
            self._outline.prose(self._marker + self._plain(content), tight=bool(self._ordered))
            self._marker = ""

    def heading(self, token: Token) -> None:
        self._heading = int(token.tag[1]) if token.type == "heading_open" else None

    def table(self, token: Token) -> None:
        if token.type == "table_open":
            self._rows = []
        elif token.type == "tr_open" and self._rows is not None:
            self._rows.append([])
        elif token.type == "table_close" and self._rows is not None:
            rows, self._rows = self._rows, None
            self._outline.add(table_text(rows), "table")

    def list_item(self, token: Token) -> None:
        if token.type in ("bullet_list_open", "ordered_list_open"):
            self._ordered.append(token.type == "ordered_list_open")
        elif token.type == "list_item_open":
            self._marker = f"{token.info}. " if self._ordered[-1] else "- "
        else:
            self._ordered.pop()

    def code(self, token: Token) -> None:
        info = token.info.strip()
        directive = dialects.DIRECTIVE.match(info)
        if directive:
            self._directive(directive.group(1), directive.group(2), token.content)
            return
        text = token.content.rstrip()
        if info.startswith(("console", "bash", "shell")):
            text = _CONSOLE_TAGS.sub("", text)
        self._outline.add(text, "code")

    def html(self, token: Token) -> None:
        from ingest.loaders.html import add_html

        add_html(self._outline, token.content)

    def _add_heading(self, token: Token) -> None:
        text = self._plain(dialects.strip_heading(token.content)).replace("`", "")
        if self._ordered or token.level > 1:
            self._outline.prose(self._marker + text)
            self._marker = ""
        else:
            self._outline.heading(self._heading or 1, text)

    def _directive(self, name: str, argument: str, content: str) -> None:
        """Read a MyST directive; one that is neither prose nor code (toctree) holds no words."""
        content = dialects.OPTION_LINES.sub("", content)
        if name in dialects.PROSE_DIRECTIVES:
            if argument and name not in {"figure", "margin", "sidebar"}:
                self._outline.prose(self._plain(argument))
            if self._nesting < _MAX_NESTING:
                add_markdown(self._outline, content, nesting=self._nesting + 1)
            else:
                self._outline.prose(content)
        elif name == "eval-rst":
            from ingest.loaders.restructured import add_restructured

            add_restructured(self._outline, content)
        elif name in dialects.CODE_DIRECTIVES or name == "math":
            self._outline.add(content.rstrip(), "code")
        elif name == "list-table":
            self._outline.add(content.rstrip(), "table")

    def _plain(self, content: str) -> str:
        return plain(content, self._md, self._env)


_HANDLERS = {
    "inline": _Walk.inline,
    "heading_open": _Walk.heading,
    "heading_close": _Walk.heading,
    "table_open": _Walk.table,
    "tr_open": _Walk.table,
    "table_close": _Walk.table,
    "bullet_list_open": _Walk.list_item,
    "ordered_list_open": _Walk.list_item,
    "list_item_open": _Walk.list_item,
    "bullet_list_close": _Walk.list_item,
    "ordered_list_close": _Walk.list_item,
    "fence": _Walk.code,
    "code_block": _Walk.code,
    "html_block": _Walk.html,
}
