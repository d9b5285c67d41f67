"""Collect the blocks of a document under its heading path."""

from __future__ import annotations

import re

from ingest.loaders.names import PAGE, PageNames
from ingest.types import Block, BlockKind

# Of a picture's text in UTF-8: some words, or eight Chinese signs. So short it is a sign or a
# formula, which belongs to its sentence; chosen, not measured.
SIGN_BYTES = 24
_RUSSIAN = "абвгдежзиклмнопрстуфхцчшщэюя"
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_HAN_DIGITS = "零一二三四五六七八九"
_HAN_UNITS = ("", "十", "百", "千")
_MOST = 4000  # Roman numbers end at 3,999
_MOST_CIRCLED = 20  # Unicode has so many in a row
_MOST_HAN = 10_000  # four digits: the units end with the thousands


def ordinal(number: int, kind: str) -> str:
    """Return a number from 1 on in a way of counting as Word or OpenDocument names it.

    A way that is not known gives digits.
    """
    if number < 1 or number >= _MOST:
        return str(number)
    if kind in ("i", "lowerRoman", "I", "upperRoman"):
        text = _roman(number)
    elif kind in ("a", "lowerLetter", "A", "upperLetter"):
        text = _letters(number, _LATIN)
    elif kind in ("russianLower", "russianUpper"):
        text = _letters(number, _RUSSIAN)
    elif kind in _HAN:
        return _han(number)
    elif kind.startswith("decimalEnclosedCircle") and number <= _MOST_CIRCLED:
        return chr(0x245F + number)
    else:
        return f"{number:02}" if kind == "decimalZero" else str(number)
    return text.upper() if kind[0] in "AI" or kind.startswith(("upper", "russianUpper")) else text


_HAN = frozenset(
    "chineseCounting chineseCountingThousand ideographTraditional taiwaneseCounting "
    "taiwaneseCountingThousand japaneseCounting 一 一,二,三,...".split()
)


def _roman(number: int) -> str:
    text = ""
    for value, sign in _ROMAN:
        text += sign * (number // value)
        number %= value
    return text


def _letters(number: int, alphabet: str) -> str:
    """After z come aa, bb, cc."""
    times, at = divmod(number - 1, len(alphabet))
    return alphabet[at] * (times + 1)


def _han(number: int) -> str:
    digits = [int(digit) for digit in str(number % _MOST_HAN)]
    text = ""
    for place, digit in zip(range(len(digits) - 1, -1, -1), digits, strict=True):
        if digit:
            text += _HAN_DIGITS[digit] + _HAN_UNITS[place]
        elif text and not text.endswith("零"):
            text += "零"
    text = text.rstrip("零")
    return text[1:] if text.startswith("一十") else text


_PLAIN = "0123456789+-\u2212=()n"
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ"
_TABLE = str.maketrans(_PLAIN, _RAISED)
_LONGEST = 8  # characters of a raised number; chosen, not measured


def write_superscript(text: str) -> str:
    """Return a short number as raised digits, any other text ("st", "[1]") as it is."""
    bare = text.strip()
    if len(bare) > _LONGEST or not any(c.isdecimal() for c in bare):
        return text
    return bare.translate(_TABLE) if all(c in _PLAIN for c in bare) else text


def add_brackets(text: str) -> str:
    """Return a part of a formula, in brackets when it is more than a name or a number."""
    text = text.strip()
    return text if text.isalnum() else f"({text})"


def write_below(text: str) -> str:
    """Return a subscript of a formula as "_x", or "" for none."""
    return f"_{add_brackets(text)}" if text.strip() else ""


def write_above(text: str) -> str:
    """Return a superscript of a formula as "^x" or in raised digits, or "" for none."""
    short = write_superscript(text.strip())
    return short if short != text.strip() or not short else f"^{add_brackets(text)}"


# The program that put the picture in left its name or its path.
_PATH = re.compile(r"://|^\S*[\\/]|^[A-Za-z]:\\|\.\w{2,5}$")
_WORD = re.compile(r"[^\W\d_]+")
_MIN_WORDS = 2  # fewer are a name; chosen, not measured


def picture_text(description: str) -> str:
    """Return a description as " [words]", or "" when it is a name, a path or nothing."""
    text = " ".join(description.split())
    if _PATH.search(text) or (text.isascii() and len(_WORD.findall(text)) < _MIN_WORDS):
        return ""
    return f" [{text}]" if text else ""


SECTION_SEPARATOR = " › "
CELL = " | "  # between the cells of a row
_MAX_SECTION = 300  # characters; chosen, not measured
_MAX_HEADING = 200  # characters; a longer one is a paragraph; chosen, not measured


class Outline:
    """Gather prose, code and tables in reading order.

    Prose of one section is one block. A last-level heading with nothing under it becomes a block of
    its own, so that no words are lost.
    """

    def __init__(self, page: int | None = None) -> None:
        self.first_heading = ""
        self.names = PageNames()
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

    def close(self, level: int) -> None:
        """End the open sections of this level and deeper ones."""
        self._flush()
        self._path = [entry for entry in self._path if entry[0] < level]

    def note(self, directive: str, text: str) -> None:
        """Take what a notice of versions says for the name, or else the section, it stands in."""
        open_names = [name for _, name in self._path]
        below = open_names[-1] if len(open_names) > 1 else PAGE
        name = next((name for name in reversed(open_names) if name in self.names), below)
        self.names.note(name, directive, text)

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
            lines.append(CELL.join(cells))
    return "\n".join(lines)


_CJK = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"
_CJK_WRAP = re.compile(rf"(?<={_CJK})\n(?={_CJK})")


def join_lines(text: str) -> str:
    """Join the lines of one paragraph; Chinese and Japanese lines need no space."""
    return _CJK_WRAP.sub("", text).replace("\n", " ") if "\n" in text else text
