"""Lines that site generators add to Markdown: fences of notes, includes, labels, attributes."""

from __future__ import annotations

import re

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
_ADMONITION = re.compile(r"""(\s*)(?:!!!|\?\?\?\+?|===)\s*[\w -]*(?:["'](?P<title>.*)["'])?\s*""")
_HAS_ADMONITION = re.compile(r"^[ \t]*(?:!!!|\?\?\?\+?|===)[ \t]*[\w\"']", re.M)
_HEADING_ATTRIBUTES = re.compile(r"\s*\{:?\s*[#.][^{}]*\}\s*$")
_STARTS = frozenset("/:{(+ie \t!?=")
_MAX_DEPTH = 4

# MyST fences, ```{name} argument.
DIRECTIVE = re.compile(r"\{([\w:-]+)\}\s*(.*)")
CODE_DIRECTIVES = {"code", "code-cell", "code-block", "testcode", "doctest", "sourcecode"}
PROSE_DIRECTIVES = {
    "note", "tip", "hint", "warning", "caution", "danger", "error", "important", "attention",
    "admonition", "seealso", "dropdown", "figure", "versionadded", "versionchanged", "deprecated",
    "tab-item", "card", "epigraph", "margin", "sidebar", "details", "topic", "div", "container",
    "grid", "grid-item", "grid-item-card", "tab-set",
}  # fmt: skip
OPTION_LINES = re.compile(r"\A(?:\s*:[\w-]+:.*\n?)+|\A---\n.*?\n---\n", re.S)


def strip_lines(content: str) -> str:
    """Remove generator lines from a paragraph; the title of a note stays."""
    lines = content.split("\n")
    if not any(line[:1] in _STARTS for line in lines):
        return content
    kept = []
    for line in lines:
        note = _NOTE.fullmatch(line) or _MYST.fullmatch(line) or _titled_admonition(line)
        if note:
            line = note.group("title") or ""
        elif _NOISE.fullmatch(line):
            continue
        if line:
            kept.append(line)
    return "\n".join(kept)


def strip_heading(content: str) -> str:
    """Remove a heading's attribute list, `{ #id }`."""
    return _HEADING_ATTRIBUTES.sub("", content) if content.endswith("}") else content


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


def _titled_admonition(line: str) -> re.Match[str] | None:
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
        if not in_fence and _titled_admonition(line):
            body_indent = indent + 4
            # The marker ends the paragraph, or it and the body would run together.
            out.extend([line, ""])
            continue
        out.append(line)
    return out, changed
