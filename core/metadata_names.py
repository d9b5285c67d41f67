"""The names that documents give their metadata, brought to one set."""

from __future__ import annotations

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
