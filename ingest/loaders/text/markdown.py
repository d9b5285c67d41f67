"""Markdown in its dialects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ingest.clean import TAG_NAMES
from ingest.loaders import metadata
from ingest.loaders.names import VERSIONED, version_note
from ingest.loaders.outline import SIGN_BYTES, Outline, join_lines, table_text
from ingest.loaders.text.structured_text import (
    API_LEVEL,
    MODULE_DIRECTIVES,
    add_restructured_text,
    fields_at,
    open_definition,
)
from ingest.types import ParsedDocument

# `{: .class}` and `{% raw %}` lines, `{* include *}`, `(label)=`, `+++`, `:option: value`.
_NOISE = re.compile(
    r"""\s*(?:
      \{[*!%:].*\} | \{\{[<%].*[%>]\}\} | \([\w./:-]+\)=\s* | \+\+\+.* | :[\w-]+:(?:\s.*)? |
      :{3,}\s*(?:\S+)?\s* | /{3,}\s*(?:end\s*)? |
      (?:import|export)\s.+\sfrom\s+['"].+['"];?\s*
    )""",
    re.X,
)
_NOTE = re.compile(r"\s*/{3,}\s*[\w-]+\s*(?:\|\s*(?P<title>.*))?")
_MYST = re.compile(r"\s*:{3,}\s*\{[\w:-]+\}\s*(?P<title>.*)")
_COLONS = re.compile(
    r"^( *)(```+|~~~+).*?^\1\2[`~]*[ ]*$"
    r"|^(?P<margin>[ ]*)(?P<colons>:{3,})(?P<info>\{[\w:-]+\}[^\n]*)\n"
    r"(?P<body>.*?)^(?P=margin)(?P=colons)[ ]*$",
    re.M | re.S,
)
_ADMONITION = re.compile(r"""(\s*)(?:!!!|\?\?\?\+?|===)\s*[\w -]*(?:["'](?P<title>.*)["'])?\s*""")
_HAS_ADMONITION = re.compile(r"^[ \t]*(?:!!!|\?\?\?\+?|===)[ \t]*[\w\"']", re.M)
_HEADING_ATTRIBUTES = re.compile(r"\s*\{:?\s*[#.][^{}]*\}\s*$")
_LABEL = re.compile(r"\(([\w./:-]+)\)=\s*")
_NAMED = re.compile(r"\{:?[^{}]*#([\w:.-]+)[^{}]*\}\s*$")
_STARTS = frozenset("/:{(+ie \t!?=")
_MAX_DEPTH = 4  # rounds of unpacking; chosen, not measured

# MyST fences, ```{name} argument.
DIRECTIVE = re.compile(r"\{([\w:-]+)\}\s*(.*)")
CODE_DIRECTIVES = {"code", "code-cell", "code-block", "testcode", "doctest", "sourcecode"}
PROSE_DIRECTIVES = {
    "note", "tip", "hint", "warning", "caution", "danger", "error", "important", "attention",
    "admonition", "seealso", "dropdown", "figure",
    "tab-item", "card", "epigraph", "margin", "sidebar", "details", "topic", "div", "container",
    "grid", "grid-item", "grid-item-card", "tab-set",
}  # fmt: skip
OPTION_LINES = re.compile(r"\A(?:\s*:[\w-]+:[^\n]*\n?)+|\A---\n.*?\n---\n", re.S)


def strip_lines(content: str) -> str:
    """Remove generator lines from a paragraph; the title of a note stays."""
    lines = content.split("\n")
    if not any(line[:1] in _STARTS for line in lines):
        return content
    kept = []
    for line in lines:
        note = _NOTE.fullmatch(line) or _MYST.fullmatch(line) or _match_admonition(line)
        if note:
            line = note.group("title") or ""
        elif _NOISE.fullmatch(line):
            continue
        if line:
            kept.append(line)
    return "\n".join(kept)


def fence_directives(text: str) -> str:
    """Write MyST's `:::{name}` as fences, as which the parser knows them; samples stay."""
    return _COLONS.sub(_fence, text) if ":::{" in text else text


def _fence(match: re.Match[str]) -> str:
    if match["colons"] is None:
        return match[0]
    fence = match["margin"] + "~" * len(match["colons"])
    return f"{fence}{match['info']}\n{match['body']}{fence}"


def dedent_admonitions(text: str) -> str:
    """Move the indented body of `!!! note` out, lest Markdown take it for code."""
    if not _HAS_ADMONITION.search(text):
        return text
    lines = text.split("\n")
    for _ in range(_MAX_DEPTH):
        lines, changed = _dedent_once(lines)
        if not changed:
            break
    return "\n".join(lines)


def _match_admonition(line: str) -> re.Match[str] | None:
    return _ADMONITION.fullmatch(line) if _HAS_ADMONITION.match(line) else None


def _dedent_once(lines: list[str]) -> tuple[list[str], bool]:
    out: list[str] = []
    body_indent: int | None = None
    in_fence = changed = False
    for line in lines:
        stripped = line.lstrip()
        indent = len(line) - len(stripped)
        if body_indent is not None and stripped and indent < body_indent:
            body_indent = None
        if body_indent is not None:
            if stripped:
                line, changed = line[4:], True
            out.append(line)
            continue
        if stripped.startswith(("```", "~~~")):
            in_fence = not in_fence
        if not in_fence and _match_admonition(line):
            body_indent = indent + 4
            # The marker ends the paragraph, or it and the body would run together.
            out.extend([line, ""])
            continue
        out.append(line)
    return out, changed


_ROLE = re.compile(r"\{[A-Za-z][\w:+-]*\}`([^`]+)`")
_ROLE_TITLE = re.compile(r"(.+?)\s*<[^<>]+>")
_ATTRIBUTES = re.compile(r"(?<=[)`*])\{\s*[.:#][^{}\n]*\}")
# "<lang>" in prose is a placeholder that a person must read, not a tag.
_PLACEHOLDER = re.compile(r"<(?!(?:HTML)>)[a-z][\w-]*>".replace("HTML", TAG_NAMES), re.I)
_IDENTIFIER = re.compile(r"[a-z_\d]+")
_BREAK = re.compile(r"<br\b", re.I)
_PERMALINKS = {"¶", "#", "🔗", "[source]", "source", ""}


def _role(match: re.Match[str]) -> str:
    """{ref}`the guide <target>` shows "the guide"; {func}`~jax.grad` shows the name."""
    titled = _ROLE_TITLE.fullmatch(match.group(1))
    return titled.group(1) if titled else f"`{match.group(1).lstrip('~!')}`"


def _render_inline(tokens: list[Token]) -> str:
    parts: list[str] = []
    link_starts: list[int] = []
    strong_starts: list[int] = []
    for token in tokens:
        if token.type == "link_open":
            link_starts.append(len(parts))
        elif token.type == "link_close" and link_starts:
            start = link_starts.pop()
            if "".join(parts[start:]).strip() in _PERMALINKS:
                del parts[start:]
        elif token.type == "strong_open":
            strong_starts.append(len(parts))
        elif token.type == "strong_close" and strong_starts:
            start = strong_starts.pop()
            if token.markup == "__" and _IDENTIFIER.fullmatch("".join(parts[start:])):
                parts[start:] = [f"__{''.join(parts[start:])}__"]  # __init__, not a bold "init"
        elif token.type == "code_inline":
            parts.append(f"`{token.content}`")
        elif token.type == "image":
            shown = _render_inline(token.children or [])
            parts.append(shown if len(shown.encode()) <= SIGN_BYTES else f"\x00\x00{shown}\x00\x00")
        elif token.type == "softbreak":
            parts.append("\n")
        elif token.type == "hardbreak" or (
            token.type == "html_inline" and _BREAK.match(token.content)
        ):
            parts.append("\x00")  # survives the joining of wrapped lines
        elif token.type != "html_inline" or _PLACEHOLDER.fullmatch(token.content):
            parts.append(token.content)
    return join_lines("".join(parts)).replace("\x00", "\n")


_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
# Coloured terminal output in the FastAPI and Typer docs is written with tags inside the fence.
_CONSOLE_TAGS = re.compile(r"</?(?:font|span|u|b|i)\b[^<>]*>")
_MAX_NESTING = 3  # of Markdown within Markdown; chosen, not measured


def parse(relative: str, text: str) -> ParsedDocument:
    """Parse a Markdown file; the title is the front matter's, the first heading or the stem."""
    front, body = _split_front_matter(text)
    outline = Outline()
    add_markdown(outline, body)
    titles = front.get("title"), outline.first_heading
    described = {**outline.names.metadata(), **front}
    return ParsedDocument.of_file(relative, "markdown", outline.finish(), described, *titles)


def load(relative: str, text: str) -> Iterator[ParsedDocument]:
    """Yield the one document of a Markdown file."""
    yield parse(relative, text)


def add_markdown(outline: Outline, text: str, *, nesting: int = 0, module: str = "") -> None:
    """Add the blocks of a piece of Markdown to an outline; `module` is what its names are in."""
    env: dict[str, Any] = {}
    md = _parser()
    _Walk(outline, md, env, nesting, module).run(
        md.parse(dedent_admonitions(fence_directives(text)), env)
    )


@cache
def _parser() -> MarkdownIt:
    # Inline content is parsed only where `plain` needs it: that is two thirds of the cost.
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return parser.disable(["inline", "text_join"])


def _split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    match = _FRONT_MATTER.match(text[:20_000])
    if not match:
        return {}, text

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

    def __init__(
        self, outline: Outline, md: MarkdownIt, env: dict[str, Any], nesting: int, module: str
    ) -> None:
        self._outline = outline
        self._md = md
        self._env = env
        self._nesting = nesting
        self._module = module
        self._label = ""  # of the heading that follows
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
        elif labelled := _LABEL.fullmatch(token.content):
            self._label = labelled[1]
        elif token.content.startswith(":") and (fields := fields_at(token.content.split("\n"), 0)):
            self._outline.prose(fields[0])
        elif content := strip_lines(token.content):
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
        directive = DIRECTIVE.match(info)
        if directive:
            self._directive(directive.group(1), directive.group(2), token.content)
            return
        text = token.content.rstrip()
        if info.startswith(("console", "bash", "shell")):
            text = _CONSOLE_TAGS.sub("", text)
        self._outline.add(text, "code")

    def html(self, token: Token) -> None:
        from ingest.loaders.web.html import add_html

        add_html(self._outline, token.content)

    def _add_heading(self, token: Token) -> None:
        text = self._plain(_HEADING_ATTRIBUTES.sub("", token.content)).replace("`", "")
        if self._ordered or token.level > 1:
            self._outline.prose(self._marker + text)
            self._marker = ""
        else:
            self._outline.heading(self._heading or 1, text)
            named = _NAMED.search(token.content)
            anchor = named[1] if named else self._label
            self._outline.names.mark(" ".join(text.split()), anchor=anchor)
            self._label = ""

    def _directive(self, name: str, argument: str, content: str) -> None:
        """Read a MyST directive; one that is neither prose nor code (toctree) holds no words."""
        content = OPTION_LINES.sub("", content)
        argument = argument.strip()
        if name in VERSIONED:
            version, _, words = argument.partition(" ")
            first, _, content = content.strip().partition("\n\n")
            note = version_note(name, version, self._plain(" ".join(f"{words} {first}".split())))
            self._outline.prose(note)
            self._outline.note(name, note)
            self._add(content)
        elif name in MODULE_DIRECTIVES:
            self._module = argument
            if "current" not in name:
                self._outline.names.mark(argument, type="module")
        elif argument and (
            whole := open_definition(self._outline, name, argument, self._nesting, self._module)
        ):
            self._add(content, module=whole)
            self._outline.close(API_LEVEL + self._nesting)
        elif name in PROSE_DIRECTIVES:
            if argument and name not in {"figure", "margin", "sidebar"}:
                self._outline.prose(self._plain(argument))
            self._add(content)
        elif name == "eval-rst":
            add_restructured_text(self._outline, content, module=self._module)
        elif name in CODE_DIRECTIVES or name == "math":
            self._outline.add(content.strip("\n").rstrip(), "code")
        elif name == "list-table":
            self._outline.add(content.rstrip(), "table")

    def _add(self, content: str, *, module: str = "") -> None:
        """Add what stands in a directive."""
        if self._nesting < _MAX_NESTING:
            inner = module or self._module
            add_markdown(self._outline, content, nesting=self._nesting + 1, module=inner)
        else:
            self._outline.prose(content)

    def _plain(self, content: str) -> str:
        """Drop emphasis, link targets and tags from a stretch; code keeps its backticks."""
        if "{" in content:
            content = _ATTRIBUTES.sub("", _ROLE.sub(_role, content))
        tokens: list[Token] = []
        self._md.inline.parse(content, self._md, self._env, tokens)
        return _render_inline(tokens)


_HANDLERS = {
    "inline": _Walk.inline,
    **dict.fromkeys(("heading_open", "heading_close"), _Walk.heading),
    **dict.fromkeys(("table_open", "tr_open", "table_close"), _Walk.table),
    **dict.fromkeys(("bullet_list_open", "ordered_list_open"), _Walk.list_item),
    **dict.fromkeys(("list_item_open", "bullet_list_close", "ordered_list_close"), _Walk.list_item),
    **dict.fromkeys(("fence", "code_block"), _Walk.code),
    "html_block": _Walk.html,
}
