"""Reduce inline Markdown to the words a reader sees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ingest.clean import TAG_NAMES
from ingest.loaders.outline import join_wrapped

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_ROLE = re.compile(r"\{[A-Za-z][\w:+-]*\}`([^`]+)`")
_ROLE_TITLE = re.compile(r"(.+?)\s*<[^<>]+>")
_ATTRIBUTES = re.compile(r"(?<=[)`*])\{\s*[.:#][^{}\n]*\}")
# The constructs that need no parser: a code span, a link or image with plain text, emphasis.
_SIMPLE = re.compile(
    r"(?<!`)(`[^`\n]+`)(?!`)"
    r"|(?<![\]\\])!?\[(`[^`\[\]\n]+`|[^\[\]`*_<>\\&!~\n]+)\]\([^()\s<>]*(?:\s+\"[^\"\n]*\")?\)"
    r"|(?<![*\\])(\*{1,2})(?![\s*])([^*_`\[\]<>\\&!~\n]+)(?<!\s)\3(?!\*)"
)
# Only what the parser must see: an underscore inside a word never opens emphasis.
_MARKUP = re.compile(r"[\[\]<>*`\\&~!]|(?<!\w)_|_(?!\w)")
_LINE_EDGES = re.compile(r" *\n *")
# "<lang>" in prose is a placeholder that a person must read, not a tag.
_PLACEHOLDER = re.compile(r"<(?!(?:HTML)>)[a-z][\w-]*>".replace("HTML", TAG_NAMES), re.I)
_IDENTIFIER = re.compile(r"[a-z_\d]+")
_BREAK = re.compile(r"<br\b", re.I)
_PERMALINKS = {"¶", "#", "🔗", "[source]", "source", ""}


def plain(content: str, md: MarkdownIt, env: dict[str, Any]) -> str:
    """Drop emphasis, link targets and tags from one inline stretch; code keeps its backticks."""
    if "{" in content:
        content = _ATTRIBUTES.sub("", _ROLE.sub(_role, content))
    fast = _fast(content)
    if fast:
        return fast
    tokens: list[Token] = []
    md.inline.parse(content, md, env, tokens)
    return _rendered(tokens)


def _role(match: re.Match[str]) -> str:
    """{ref}`the guide <target>` shows "the guide"; {func}`~jax.grad` shows the name."""
    titled = _ROLE_TITLE.fullmatch(match.group(1))
    return titled.group(1) if titled else f"`{match.group(1).lstrip('~!')}`"


def _fast(content: str) -> str:
    """Handle the common case without the inline parser, which is most of the cost; "" = cannot."""
    if _MARKUP.search(content):
        if _MARKUP.search(_SIMPLE.sub("", content)):
            return ""
        content = _SIMPLE.sub(_words, content)
    return join_wrapped(_LINE_EDGES.sub("\n", content)) if "\n" in content else content


def _words(match: re.Match[str]) -> str:
    code, link, _, stressed = match.groups()
    return code or stressed or ("" if link in _PERMALINKS else link)


def _rendered(tokens: list[Token]) -> str:
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
            parts.append(_rendered(token.children or []))
        elif token.type == "softbreak":
            parts.append("\n")
        elif token.type == "hardbreak" or (
            token.type == "html_inline" and _BREAK.match(token.content)
        ):
            parts.append("\x00")  # survives the joining of wrapped lines
        elif token.type != "html_inline" or _PLACEHOLDER.fullmatch(token.content):
            parts.append(token.content)
    return join_wrapped("".join(parts)).replace("\x00", "\n")
