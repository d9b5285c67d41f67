"""reStructuredText and Org to blocks."""

from __future__ import annotations

import re
from textwrap import dedent

from ingest.loaders.names import VERSIONED, version_note
from ingest.loaders.outline import Outline, table_text

_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")
_DIRECTIVE = re.compile(r"\.\.\s+([\w:-]+?)::\s*(.*)")
_EXPLICIT = re.compile(r"\.\.(?:\s|$)")
_LABEL = re.compile(r"\.\.\s+_([^:]+):")
_FOOTNOTE = re.compile(r"\.\.\s+(\[[^\]\n]+\])(?:\s+(.*))?$")
_ROLE = re.compile(r":[A-Za-z][\w:+-]*:`~?([^`<]+)`")
_TITLED_ROLE = re.compile(r":[A-Za-z][\w:+-]*:`([^`<]+?)\s*<[^`>]*>`")
_LINK = re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{1,2}")
_ICON = re.compile(r":(?:octicon|material|fa|bdg)[\w-]*:`[^`]*`\s*")
_REFERENCE = re.compile(r"`([^`]+)`_{1,2}(?!\w)|\b([A-Za-z][\w-]*?)_(?=[\s,.;:)!]|$)")
_SIMPLE = re.compile(r"=+(?: +=+)+")
_GRID = re.compile(r"\+(?:-+\+)+")
_TERM = re.compile(r"(?![-*+•|#:\d]|\.\.).{0,79}[^.:!?;,|]")
_LITERAL = re.compile(r"``([^`]+)``")
_OPTION = re.compile(r"\s*:[\w-]+:(?:\s.*)?")
_CODE = {"code", "code-block", "sourcecode", "testcode", "doctest", "parsed-literal", "math"}
_NO_PROSE = {
    "toctree", "include", "image", "contents", "highlight", "currentmodule", "module", "py:module",
    "py:currentmodule", "automodule", "raw", "meta", "index", "literalinclude", "testsetup", "only",
    "plot", "comment",
}  # fmt: skip
MODULE_DIRECTIVES = {"module", "py:module", "automodule", "currentmodule", "py:currentmodule"}
_DEFINES = re.compile(
    r"(?:py:|c:|cpp:|js:)?(?:auto)?"
    r"(function|class|method|data|attribute|exception|property|decorator|classmethod|staticmethod)"
)
# Fields of a signature, as ":param int size: how large", and what heads them.
_FIELD = re.compile(r"\s*:(\w+)(?: +([^:\n]+))?:(?: +|$)")
_IS = " – "  # between a field and its text, as HTML pages show it
_FIELDS = {
    **dict.fromkeys(("param", "parameter", "arg", "argument", "key", "keyword"), "Parameters"),
    **dict.fromkeys(("raises", "raise", "except", "exception"), "Raises"),
    **dict.fromkeys(("returns", "return"), "Returns"),
    **dict.fromkeys(("yields", "yield"), "Yields"),
    **dict.fromkeys(("var", "ivar", "cvar"), "Variables"),
    **{"rtype": "Return type", "type": ""},
}
API_LEVEL = 20  # of a heading for a name of an API: below all that are written; chosen
_MAX_DEPTH = 8  # a bound against hostile nesting; chosen, not measured
_ORG_HEADING = re.compile(r"(\*+)\s+(?:(?:TODO|DONE)\s+)?(.+?)(?:\s+:[\w:@]+:)?\s*")


def add_restructured_text(outline: Outline, text: str, *, depth: int = 0, module: str = "") -> None:
    """Add the blocks of reStructuredText to an outline; `module` is what its names are in."""
    lines = text.split("\n")
    levels: dict[str, int] = {}
    at = 0
    label = ""  # of the heading that follows
    while at < len(lines):
        line = lines[at]
        directive = _DIRECTIVE.match(line.strip())
        if title := _title_at(lines, at):
            style, name, used = title
            level = levels.setdefault(style, len(levels) + 1)
            shown = _inline(name).replace("`", "")
            outline.heading(level, shown)
            outline.names.mark(" ".join(shown.split()), anchor=label)
            at += used
            label = ""
        elif labelled := _LABEL.fullmatch(line.strip()):
            label = labelled[1].strip("`")
            at += 1
        elif _FIELD.match(line) and (fields := fields_at(lines, at)):
            outline.prose(fields[0])
            at = fields[1]
        elif footnote := _FOOTNOTE.match(line.strip()):
            body, at = _take_indented(lines, at + 1, _indent(line))
            first = f"{footnote[1]} {footnote[2] or ''}".rstrip()
            add_restructured_text(outline, "\n".join([first, *body]), depth=depth + 1)
        elif directive or _EXPLICIT.match(line.strip()):
            body, at = _take_indented(lines, at + 1, _indent(line))
            name, argument = directive.groups() if directive else ("comment", "")
            if name.lower() in MODULE_DIRECTIVES:
                module = argument.strip()
                if "current" not in name:
                    outline.names.mark(module, type="module")
            _add_directive(outline, name.lower(), argument, body, depth, module)
        elif table := _table_at(lines, at):
            outline.add(table_text(table[0]), "table")
            at = table[1]
        elif line.strip():
            at = _add_paragraph(outline, lines, at)
        else:
            at += 1


def add_org(outline: Outline, text: str) -> None:
    """Add the blocks of an Org file to an outline."""
    prose: list[str] = []
    code: list[str] | None = None
    for line in [*text.split("\n"), "* "]:
        upper = line.strip().upper()
        if code is not None:
            if upper.startswith("#+END_"):
                outline.add(dedent("\n".join(code)).strip("\n"), "code")
                code = None
            else:
                code.append(line)
            continue
        heading = _ORG_HEADING.fullmatch(line)
        if heading or line == "* " or upper.startswith("#+") or not line.strip():
            outline.prose("\n".join(prose))
            prose = []
        if heading:
            outline.heading(len(heading.group(1)), heading.group(2))
        elif upper.startswith(("#+BEGIN_SRC", "#+BEGIN_EXAMPLE")):
            code = []
        elif upper.startswith("#+TITLE:"):
            outline.first_heading = line.split(":", 1)[1].strip()
        elif line.strip() and not upper.startswith("#+"):
            prose.append(line)
    if code:
        outline.prose("\n".join(code))


def _title_at(lines: list[str], at: int) -> tuple[str, str, int] | None:
    """Return (style, title, lines used) when a title starts at this line."""
    here = lines[at]
    following = [line.rstrip() for line in lines[at + 1 : at + 3]] + ["", ""]
    if _UNDERLINE.fullmatch(here) and following[0] and following[1] == here.rstrip():
        return "over" + here[0], following[0].strip(), 3
    if not here.strip() or here[0].isspace() or not _UNDERLINE.fullmatch(following[0]):
        return None
    return (following[0][0], here, 2) if len(following[0]) + 2 >= len(here.rstrip()) else None


def _table_at(lines: list[str], at: int) -> tuple[list[list[str]], int] | None:
    """Return the rows of a simple or a grid table that starts at this line, and where it ends.

    A line of a simple table whose first cell is empty goes on with the row above, as does any of a
    grid until the next rule.
    """
    rule = lines[at].rstrip()
    grid = _GRID.fullmatch(rule.strip()) is not None
    if not grid and not _SIMPLE.fullmatch(rule.strip()):
        return None
    end = at + 1
    while end < len(lines) and (lines[end].strip() if grid else lines[end].rstrip() != rule):
        end += 1
    if not grid and end == len(lines):
        return None
    if not grid:  # the head has a rule of its own
        below = end + 1
        while below < len(lines) and lines[below].strip() and lines[below].rstrip() != rule:
            below += 1
        end = below if below < len(lines) and lines[below].rstrip() == rule else end
    mark = re.compile(r"[^+]+(?=\+)" if grid else r"=+")
    columns = [match.span() for match in mark.finditer(rule)]
    if not grid:  # the last cell goes on to the end of its line
        columns[-1] = columns[-1][0], max(map(len, lines[at : end + 1]))
    rows: list[list[str]] = []
    begins = True
    for line in lines[at + 1 : end]:
        if line.strip().startswith(("+-", "+=")) or line.rstrip() == rule or not line.strip():
            begins = True
            continue
        cells = [_inline(line[first:last].strip(" |")) for first, last in columns]
        if begins or (not grid and cells[0]) or not rows:
            rows.append(cells)
        else:
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
        begins = False
    return (rows, end + (not grid)) if rows else None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _take_indented(lines: list[str], at: int, outer: int) -> tuple[list[str], int]:
    """Return the lines indented deeper than `outer`, dedented, and where they end."""
    end = at
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > outer):
        end += 1
    body = lines[at:end]
    margin = min((_indent(line) for line in body if line.strip()), default=0)
    return [line[margin:] for line in body], end


def _add_directive(
    outline: Outline, name: str, argument: str, body: list[str], depth: int, module: str
) -> None:
    while body and _OPTION.fullmatch(body[0]):
        body = body[1:]
    text = "\n".join(body).strip("\n")
    if name in _CODE:
        outline.add(text or argument, "code")
    elif name in _NO_PROSE:
        return
    elif name == "autosummary":
        listed = (line.strip().lstrip("~") for line in body if line.strip())
        outline.prose("\n".join(_full_name(line, module) for line in listed))
    elif name in VERSIONED:
        version, _, words = argument.partition(" ")
        first, _, text = text.partition("\n\n")
        note = version_note(name, version, _inline(" ".join(f"{words} {first}".split())))
        outline.prose(note)
        outline.note(name, note)
        add_restructured_text(outline, text, depth=depth + 1, module=module)
    elif argument and (whole := open_definition(outline, name, argument, depth, module)):
        if depth < _MAX_DEPTH:
            add_restructured_text(outline, text, depth=depth + 1, module=whole)
        outline.close(API_LEVEL + depth)
    else:
        if any(c.isalpha() for c in argument):
            outline.prose(_inline(argument))
        if depth < _MAX_DEPTH:
            add_restructured_text(outline, text, depth=depth + 1, module=module)
        else:
            outline.prose(text)


def open_definition(outline: Outline, name: str, argument: str, depth: int, module: str) -> str:
    """Open the section of what a directive defines; return its full name, "" for no definition."""
    match = _DEFINES.fullmatch(name)
    if match is None:
        return ""
    named, bracket, rest = argument.partition("(")
    whole = _full_name(named.strip(), module)
    outline.heading(API_LEVEL + depth, whole)
    outline.names.mark(whole, type=match[1], anchor=whole)
    outline.prose(f"{whole}{bracket}{rest}")
    return whole


def fields_at(lines: list[str], at: int) -> tuple[str, int] | None:
    """Return a list of fields of a signature as lists under labels, and where it ends."""
    groups: dict[str, list[str]] = {}
    types: dict[str, str] = {}
    end = at
    while end < len(lines) and (match := _FIELD.match(lines[end])) and match[1] in _FIELDS:
        body, after = _take_indented(lines, end + 1, _indent(lines[end]))
        text = _inline(" ".join(" ".join([lines[end][match.end() :], *body]).split()))
        label, (kind, _, named) = _FIELDS[match[1]], (match[2] or "").strip().rpartition(" ")
        if match[1] == "type":
            types[named] = text
        elif named:
            types.update({named: kind} if kind else {})
            groups.setdefault(label, []).append(f"{named}{_IS}{text}")
        else:
            groups.setdefault(label, []).append(text)
        end = after
    if not groups:
        return None
    shown = []
    for label, items in groups.items():
        typed = (_with_type(item, types) for item in items)
        listed = label in ("Parameters", "Variables") or len(items) > 1
        shown.append(f"{label}:\n" + "\n".join(f"- {one}" for one in typed) if listed
                     else f"{label}: {' '.join(items)}")  # fmt: skip
    return "\n\n".join(shown), end


def _with_type(item: str, types: dict[str, str]) -> str:
    named, sign, text = item.partition(_IS)
    return f"{named} ({types[named]}){sign}{text}" if named in types else item


def _full_name(name: str, module: str) -> str:
    """Return a name with its module: readers ask for "jax.tree.map", a page lists "map"."""
    root = module.split(".")[0]
    return name if not module or f"{name}.".startswith(f"{root}.") else f"{module}.{name}"


def _add_paragraph(outline: Outline, lines: list[str], at: int) -> int:
    """Add one paragraph, and the code below it when it ends in a double colon."""
    end = at + 1
    while end < len(lines) and lines[end].strip() and not _title_at(lines, end):
        end += 1
    within = [_indent(line) > _indent(lines[at]) for line in lines[at + 1 : end]]
    stripped = [line.strip() for line in lines[at:end]]
    if stripped[0].startswith(">>> "):
        outline.add(dedent("\n".join(lines[at:end])), "code")
        return end
    if within and all(within) and _TERM.fullmatch(stripped[0]):  # "term", what it is below
        stripped = [f"{stripped[0].split(' : ')[0]}: {stripped[1]}", *stripped[2:]]
    text = "\n".join(stripped)
    literal = text.endswith("::")
    outline.prose(_inline(text[:-1] if literal else text).removesuffix("\n:"))
    if literal:
        body, end = _take_indented(lines, end, _indent(lines[end - 1]))
        outline.add("\n".join(body).strip("\n"), "code")
    return end


def _inline(text: str) -> str:
    text = _LINK.sub(r"\1", _ICON.sub("", text))
    text = _REFERENCE.sub(lambda match: match.group(1) or match.group(2), text)
    text = _TITLED_ROLE.sub(r"\1", _ROLE.sub(r"`\1`", text))
    return re.sub(r"\*\*([^*\n]+)\*\*", r"\1", _LITERAL.sub(r"`\1`", text))
