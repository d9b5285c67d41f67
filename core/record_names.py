"""Names around records: the field that names one, a field in words, the row that counts them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

ANY_FIELD = "*"  # of a condition: the field that has its words
ROW = "records"  # the kind of evidence that says what a record query found
HELD = "held"  # what its metadata call the chunks of the records it lists
_TITLE_NAMES = (
    "title", "name", "subject", "heading", "headline", "label", "full_name", "original_title",
    "название", "заголовок", "наименование", "назва", "标题", "题名", "名称", "书名", "名前",
)  # fmt: skip


def find_title(names: Iterable[str]) -> str | None:
    """Return the field that names a record."""
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in _TITLE_NAMES if name in lower), None)


@lru_cache(4096)
def humanise(name: str) -> str:
    """Write a field name as words: "maintained_by" and "maintainedBy" are "maintained by"."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = re.sub(r"[_.\-\s]+", " ", words).strip()
    return words if words.isupper() else words.lower()


SYNONYMS = {
    "authors": ("author", "creator", "creators", "dc.creator", "автор", "автори", "авторы", "作者"),
    "keywords": ("tags", "tag", "keyword", "subjects", "topics", "categories", "ключевые слова"),
    "year": ("pubyear", "pub_year", "publication_year", "published_year", "год", "рік", "年份"),
    "language": ("lang", "locale", "язык", "мова", "语言"),
    "version": ("release",),
    "updated_at": ("updated", "modified", "last_modified", "last_updated", "lastmod", "last_push"),
    "published": (
        "date", "pubdate", "pub_date", "published_at", "published_on", "publication_date",
        "date_published", "datepublished", "published_date", "release_date",
    ),
    "url": ("link", "href", "homepage", "canonical"),
    "udc": ("udk", "удк"),
    "title": (),
}  # fmt: skip
CANONICAL = {alias: name for name, aliases in SYNONYMS.items() for alias in aliases}
