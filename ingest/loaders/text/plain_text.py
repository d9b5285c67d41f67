"""Plain text to paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from ingest.loaders import metadata
from ingest.loaders.outline import Outline
from ingest.types import Block, ParsedDocument

_LINE = re.compile(r"^[ \t]*([^\W\d_][\w ]{1,30}?)[ \t]*[:：][ \t]*(\S.{0,199})$", re.MULTILINE)
_BEGINNING = 4_000
_TITLES = ("title", "название", "заглавие", "назва", "标题", "题名", "书名")
_NAMES = {
    "title": _TITLES,
    "authors": ("author", "authors", "автор", "авторы", "автори", "作者"),
    "editors": ("editor", "editors", "редактор", "编辑"),
    "translators": ("translator", "translators", "переводчик", "перекладач", "译者"),
    "illustrators": ("illustrator", "illustrators"),
    "publisher": ("publisher", "издательство", "видавництво", "出版社"),
    "published": ("date", "release date", "publication date", "published", "дата", "日期"),
    "updated_at": ("last updated", "updated", "modified"),
    "year": ("year", "год", "рік", "год издания", "рік видання", "年份"),
    "language": ("language", "язык", "мова", "语言"),
    "edition": ("edition", "издание", "видання"),
    "series": ("series", "серия", "серія", "丛书"),
    "version": ("version", "версия", "версія"),
    "isbn": ("isbn",),
}
_CALLED = {called: name for name, listed in _NAMES.items() for called in listed}


def text_header(text: str) -> dict[str, Any]:
    """Return the metadata of a plain text whose beginning names its title and something else."""
    found: dict[str, Any] = {}
    for match in _LINE.finditer(text[:_BEGINNING]):
        name = _CALLED.get(" ".join(match.group(1).casefold().split()))
        if name is not None:
            found.setdefault(name, match.group(2).strip())
    return metadata.normalise(found) if "title" in found and len(found) > 1 else {}


_MAX_TITLE = 80
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")


def load(relative: str, text: str) -> Iterator[ParsedDocument]:
    """Yield the one document of a text file; .rst and .org files get their sections."""
    from ingest.loaders.text.restructured import add_org, add_restructured

    suffix = PurePosixPath(relative).suffix.lower()
    outline = Outline()
    if suffix == ".rst":
        add_restructured(outline, text)
    elif suffix == ".org":
        add_org(outline, text)
    else:
        outline.prose(text)
    described = {} if suffix in (".rst", ".org") else text_header(text)
    title = described.get("title") or outline.first_heading or first_short_line(text)
    yield ParsedDocument(
        document_id=relative,
        source=relative,
        title=str(title or PurePosixPath(relative).stem),
        format="text",
        blocks=outline.finish(),
        metadata=described,
    )


def text_blocks(text: str) -> list[Block]:
    """Return the paragraphs of a plain text as one block."""
    return [Block(text=_BLANK_LINES.sub("\n\n", text).strip())] if text.strip() else []


def first_short_line(text: str) -> str:
    """Return the first line when it looks like a title, else ""."""
    line = text.lstrip().split("\n", 1)[0].strip()
    reads_as_title = any(c.isalpha() for c in line) and line[-1] not in ".,;:。，；、"
    return line if len(line) <= _MAX_TITLE and reads_as_title else ""
