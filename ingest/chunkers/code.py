"""The seams of code: paragraphs, definitions, and what belongs to them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ingest.chunkers.packing import fitting, line_spans
from ingest.chunkers.types import Span

_DEFINITION = re.compile(
    r"(?:@|def |class |async |function |func |fn |pub |public |export |impl |struct |interface )"
)
# Lines that go on with the statement before them: closing brackets and further branches.
_GOES_ON = re.compile(r"[)\]}]|(?:else|elif|except|finally|catch|case|end)\b")
# Lines that belong to what follows them directly: decorators and comments.
_ANNOUNCES = re.compile(r"@|#|//|/\*|\*|--")
# Real code is nested less deeply; what is deeper is cut between lines.
_LEVELS = 8


def paragraph_units(text: str, limit: int) -> list[Span]:
    """Locate the paragraphs and top-level definitions of code; lines where one is too long."""
    groups: list[list[Span]] = []
    for line in line_spans(text):
        after_blank = bool(groups) and text.count("\n", groups[-1][-1][1], line[0]) > 1
        definition = _DEFINITION.match(text, line[0]) is not None
        decorated = bool(groups) and text.startswith("@", groups[-1][-1][0])
        if not groups or after_blank or (definition and not decorated):
            groups.append([])
        groups[-1].append(line)
    spans: list[Span] = []
    for group in groups:
        start, end = group[0][0], group[-1][1]
        spans.extend([(start, end)] if end - start <= limit else fitting(text, group, limit))
    return spans


def statement_units(text: str, start: int, end: int, limit: int) -> list[Span]:
    """Locate the outermost statements of text[start:end] that fit the limit, by indentation.

    A function or class that fits is one unit. One that is too long gives its head and the units of
    its body, and so on inwards; a statement that still does not fit is cut between lines.
    """
    return list(_units(text, line_spans(text, start, end), limit, _LEVELS))


def _units(text: str, lines: list[Span], limit: int, levels: int) -> Iterator[Span]:
    for group in _statements(text, lines):
        start, end = group[0][0], group[-1][1]
        if end - start <= limit:
            yield start, end
        elif levels == 0:
            yield from fitting(text, group, limit)
        else:
            yield from _opened(text, group, limit, levels)


def _opened(text: str, group: list[Span], limit: int, levels: int) -> Iterator[Span]:
    """Yield the outermost lines of a statement, and the units of what stands between them."""
    outermost = min(_depth(text, line) for line in group)
    inner: list[Span] = []
    for line in group:
        if _depth(text, line) > outermost:
            inner.append(line)
            continue
        yield from _units(text, inner, limit, levels - 1)
        yield from fitting(text, [line], limit)
        inner = []
    yield from _units(text, inner, limit, levels - 1)


def _statements(text: str, lines: list[Span]) -> Iterator[list[Span]]:
    """Group the lines into the statements of the outermost level."""
    if not lines:
        return
    outermost = min(_depth(text, line) for line in lines)
    group: list[Span] = []
    for line in lines:
        depth = _depth(text, line)
        if group and depth == outermost and _begins(text, group, line):
            yield group
            group = []
        group.append(line)
    yield group


def _begins(text: str, group: list[Span], line: Span) -> bool:
    """Tell whether an outermost line begins a statement of its own."""
    first = line[0] + _depth(text, line)
    if _GOES_ON.match(text, first):
        return False
    last = group[-1]
    announced = _ANNOUNCES.match(text, last[0] + _depth(text, last)) is not None
    return not announced or text.count("\n", last[1], line[0]) > 1


def _depth(text: str, line: Span) -> int:
    """Count the characters a line is indented by."""
    shown = text[line[0] : line[1]]
    return len(shown) - len(shown.lstrip())
