"""What a plain text says of itself in lines such as "Author: …" at its beginning."""

from __future__ import annotations

import re
from typing import Any

from ingest.loaders import metadata

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
