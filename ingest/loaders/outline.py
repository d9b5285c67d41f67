"""Collect the blocks of a document under its heading path."""

from __future__ import annotations

import re

from ingest.types import Block, BlockKind

SECTION_SEPARATOR = " › "
_MAX_SECTION = 300
_MAX_HEADING = 200


class Outline:
    """Gather prose, code and tables in reading order.

    Prose of one section is one block. A last-level heading with nothing under it becomes a block of
    its own, so that no words are lost.
    """

    def __init__(self, page: int | None = None) -> None:
        """Start with no heading."""
        self.first_heading = ""
        self._page = page
        self._path: list[tuple[int, str]] = []
        self._blocks: list[Block] = []
        self._prose: list[str] = []
        self._bare = False

    def heading(self, level: int, text: str) -> None:
        """Open a section; deeper or equal open sections end."""
        text = " ".join(text.split())
        if not text:
            return
        self._flush()
        if self._bare and self._path and level <= self._path[-1][0]:
            self._append(self._path[-1][1], "text")
        name = text if len(text) <= _MAX_HEADING else text[:_MAX_HEADING].rsplit(" ", 1)[0] + "…"
        self._path = [entry for entry in self._path if entry[0] < level] + [(level, name)]
        self._bare = True
        self.first_heading = self.first_heading or name
        if name != text:  # a paragraph that was given the style of a heading
            self.prose(text)

    def prose(self, text: str, *, tight: bool = False) -> None:
        """Add a paragraph; a tight one (list item) follows the previous line directly."""
        if text.strip():
            if self._prose:
                self._prose.append("\n" if tight else "\n\n")
            self._prose.append(text)
            self._bare = False

    def add(self, text: str, kind: BlockKind) -> None:
        """Add a block that is not prose: code, a table."""
        if text.strip():
            self._flush()
            self._append(text, kind)
            self._bare = False

    def finish(self) -> list[Block]:
        """Return the blocks in reading order."""
        self._flush()
        if self._bare and self._path:
            self._append(self._path[-1][1], "text")
            self._bare = False
        return self._blocks

    def _flush(self) -> None:
        if self._prose:
            self._append("".join(self._prose), "text")
            self._prose = []

    def _append(self, text: str, kind: BlockKind) -> None:
        names = [name for _, name in self._path]
        while len(names) > 1 and len(SECTION_SEPARATOR.join(names)) > _MAX_SECTION:
            del names[0]  # the innermost say what the text is about
        section = SECTION_SEPARATOR.join(names)
        self._blocks.append(Block(text=text, kind=kind, section=section, page=self._page))


def table_text(rows: list[list[str]]) -> str:
    """Write table rows as lines of cells, "a | b"; empty rows are left out."""
    lines = []
    for row in rows:
        cells = [" ".join(cell.split()) for cell in row]
        if any(cells):
            lines.append(" | ".join(cells))
    return "\n".join(lines)


_CJK = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"
_CJK_WRAP = re.compile(rf"(?<={_CJK})\n(?={_CJK})")


def join_wrapped(text: str) -> str:
    """Join the lines of one paragraph; Chinese and Japanese lines need no space."""
    return _CJK_WRAP.sub("", text).replace("\n", " ") if "\n" in text else text
