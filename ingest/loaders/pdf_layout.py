"""From the lines of PDF pages to paragraphs, without running heads and page numbers."""

from __future__ import annotations

import re
from collections import Counter
from statistics import median
from typing import Any

_EDGE_LINES = 2
_MIN_PAGES = 4
_DIGITS = re.compile(r"\d+")
_BULLET = re.compile(r"(?:[•‣▪●○◦–*-]|\d{1,3}[.)]|[a-zа-я]\))\s", re.I)
_MARK = re.compile(r"\W{1,2}|\W?(?:\d{1,3}(?:\.\d{1,3})*|[a-zа-я]|[ivx]+)\W?", re.I)
CELL = " | "
_SENTENCE_END = re.compile(r"[.!?…。！？:;]['\"”»)\]]*$")
_GOES_ON = frozenset(",.;:)]}»”、，。；：）")
_CJK = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")
# PDFium marks a hyphen at a line end with U+FFFE or U+0002.
_HYPHEN_MARKS = re.compile("[\ufffe\x02]\\s*")


def page_texts(pages: list[str]) -> list[str]:
    """Return the text of each page as paragraphs parted by blank lines."""
    lines = [_with_rows(_lines(page)) for page in pages]
    running = _running_lines(lines)
    return [_paragraphs(_without_running(page, running)) for page in lines]


def _lines(page: str) -> list[str]:
    text = _HYPHEN_MARKS.sub("-\n", page.replace("\r\n", "\n").replace("\r", "\n"))
    return [line.strip() for line in text.split("\n")]


def _with_rows(lines: list[str]) -> list[str]:
    """Write the rows of tables as "a | b"; a line with a gap that stands alone is none."""
    cells = [_cells(line) for line in lines]
    counts = [0, *(len(found) for found in cells), 0]
    return [
        CELL.join(found) if len(found) > 1 and max(before, after) > 1 else " ".join(found)
        for found, before, after in zip(cells, counts, counts[2:], strict=False)
    ]


def _cells(line: str) -> list[str]:
    """Part a line at its gaps, but for the one behind the sign or number of an item."""
    first, *rest = line.split("\t")
    return [f"{first} {rest[0]}", *rest[1:]] if rest and _MARK.fullmatch(first) else [first, *rest]


def _shape(line: str) -> str:
    """Page numbers differ from page to page, so that all digits count as the same."""
    return _DIGITS.sub("#", line).casefold()


def _edges(lines: list[str]) -> list[str]:
    filled = [line for line in lines if line]
    return filled[:_EDGE_LINES] + filled[_EDGE_LINES:][-_EDGE_LINES:]


def _running_lines(pages: list[list[str]]) -> set[str]:
    """Name the lines at the top or bottom of most pages."""
    filled = [page for page in pages if any(page)]
    if len(filled) < _MIN_PAGES:
        return set()
    seen = Counter(shape for page in filled for shape in {_shape(line) for line in _edges(page)})
    return {shape for shape, count in seen.items() if count > len(filled) / 2}


def _without_running(lines: list[str], running: set[str]) -> list[str]:
    if not running:
        return lines
    edges = {line for line in _edges(lines) if _shape(line) in running}
    return [line for line in lines if line not in edges]


def _paragraphs(lines: list[str]) -> str:
    widths = [len(line) for line in lines if len(line) > 3]
    full = 0.75 * median(widths) if widths else 0
    paragraphs: list[str] = []
    previous = ""
    for line in lines:
        if CELL in line and CELL in previous:
            paragraphs[-1] += f"\n{line}"
        elif (
            line
            and previous
            and CELL not in line + previous
            and not _starts_paragraph(previous, line, full)
        ):
            paragraphs[-1] = _joined(paragraphs[-1], line)
        elif line:
            paragraphs.append(line)
        previous = line
    return "\n\n".join(paragraphs)


def _starts_paragraph(previous: str, line: str, full: float) -> bool:
    """A short line that ends a sentence, or a heading before a capital, ends its paragraph."""
    if _BULLET.match(line):
        return True
    if len(previous) >= full or line[0] in _GOES_ON:
        return False
    return bool(_SENTENCE_END.search(previous)) or not line[0].islower()


def _joined(text: str, line: str) -> str:
    if text.endswith("-") and len(text) > 1 and text[-2].isalpha():
        last_word = text.rsplit(None, 1)[-1]
        if line[0].islower():
            # "state-of-the-" keeps its hyphen: the word already has one.
            return text + line if "-" in last_word[:-1] else text[:-1] + line
        return text + line
    both_cjk = _CJK.match(text[-1]) and _CJK.match(line[0])
    return text + line if both_cjk else f"{text} {line}"


# A space of justified text is far narrower than a line is high.
_MIN_GAP = 1.3
_SPACE = re.compile(r"(?<=\S) (?=\S)")


def with_tabs(text_page: Any, text: str) -> str:  # noqa: ANN401 (a text page of pypdfium2)
    """Return the text of a page with a tab instead of a space in each such gap."""
    if text_page.count_chars() != len(text):
        return text  # its characters cannot be told apart by their place
    parts: list[str] = []
    done = 0
    for match in _SPACE.finditer(text):
        at = match.start()
        left = text_page.get_charbox(at - 1, loose=True)
        right = text_page.get_charbox(at + 1, loose=True)
        height = min(left[3] - left[1], right[3] - right[1])
        if height > 0 and right[0] - left[2] > _MIN_GAP * height:
            parts += [text[done:at], "\t"]
            done = at + 1
    return "".join([*parts, text[done:]])
