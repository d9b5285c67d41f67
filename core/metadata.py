"""What documents say of themselves: names of fields, versions, and filters over both."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from packaging.version import InvalidVersion, Version

from core.errors import CallerError
from core.types import FrozenModel

ANY_FIELD = "*"  # of a condition: the field that has its words
TABLE_FORMAT = "table"  # of a record that is a row of a table in a document
ROW = "records"  # the kind of evidence that says what a record query found
LISTED_CHUNKS = "held"  # the key in its metadata of the chunks of the records it lists
REPLACED = "replaced"  # of a note, the id of the later one that has taken its place
CORRECTS = "corrects"  # of a note, the id of the one whose place it took, on which it rests
EXTRACTS = "extracts"  # the key of what a summary quotes: chunk ids with start and end
CHAPTERS = "chapters"  # the key of what the chapters of the one document of a summary are called
LABELS = "labels"  # the key of what groups of documents are called, by the chunk quoted of them
ALL_PARTS = "*"  # asks a summary of each of the chapters
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


ANY, LATEST = "any", "latest"  # what a version policy may say in place of one version
DIGITS = 12  # longer numbers than dates written as one are no versions
_NUMBER = re.compile(r"\d+")
_NUMBERS = re.compile(r"\d+(?:[._-]\d+)*")


@lru_cache(maxsize=4096)
def version_order(version: str) -> str:
    """Return a text that sorts as versions do: 2.9 < 2.10, 2.0rc1 < 2.0; no version sorts first.

    What is no version by PEP 440 comes before all that are, its numbers compared as numbers.
    """
    try:
        one = Version(version.strip())
    except InvalidVersion:
        text = version.strip().casefold()
        return "0" + _NUMBER.sub(lambda found: found[0].zfill(DIGITS), text) if text else ""
    numbers = list(one.release)
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    release = ".".join(f"{number:0{DIGITS}}" for number in numbers)
    early = f"{one.pre[0]}{one.pre[1]:0{DIGITS}}" if one.pre else "~"
    if one.dev is not None and not one.pre:
        early = ""  # before the first alpha
    late = f"{one.post:0{DIGITS}}" if one.post is not None else ""
    developed = "~" if one.dev is None else f"{one.dev:0{DIGITS}}"
    return f"1{one.epoch:04}!{release} {early} {late} {developed}"


def document_family(title: str, source: str) -> str:
    """Return the name that all versions of a document share: title and source without numbers."""
    return _NUMBERS.sub("#", f"{title}\n{source}".casefold())


MOST_FILTERS = 16  # of one question; each is asked of every document once
LONGEST_FIELD, LONGEST_VALUE = 100, 2000  # characters; chosen, not measured
OWN = "metadata."  # in front of a field: what documents say themselves, not what is known of them
FILTER_HINT = "write FIELD=VALUE, with != < <= > >= or ~ (contains), as in --where 'date>=2020'"
# Beside these, a document's own metadata and a record's fields go by their names.
GENERAL = ("file", "title", "type", "language", "version", "date")

_OPERATOR = re.compile(r"!=|<=|>=|[=<>~]")
_NAMES = CANONICAL | {
    **{"file": "source", "path": "source", "format": "type", "kind": "type"},
    **{"дата": "published", "日期": "published"},
}
# What of a document's row is read for a field; other fields are looked for in its metadata.
_COLUMNS = {
    "source": ("source",),
    "title": ("title",),
    "type": ("format", "source", "metadata"),
    "language": ("language",),
    "version": ("version",),
    "updated_at": ("updated_at",),
    "published": ("metadata", "updated_at"),
    "year": ("metadata", "updated_at"),
}
# A document has one date: the first of these that it says.
_DATES = {"published": ("published", "year"), "year": ("year", "published")}
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_DATE = re.compile(r"\d{4}(?:-\d\d){0,2}")
_DATED = re.compile(r"\d{4}(?:-|$)")
_WORD = re.compile(r"\w+")


OF_PASSAGES = frozenset(("type", "since", "deprecated"))  # what names on a page differ in


def entries_of(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a page says of its names; the metadata of other files may hold anything."""
    listed = metadata.get("entries")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


class Filter(FrozenModel):
    """Compare one field of a document with a value.

    `=` ignores case and takes * and ?, and several values with | between; a name of an author need
    not be whole ("Smith"), nor a date ("2020") or a version ("1.4"). `~` means contains.
    < <= > >= compare numbers, dates and versions. `version=latest` keeps the newest version of each
    document, and documents that declare none. `metadata.language` is what a document says of itself
    under that name.
    """

    field: str
    op: str
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.op}{self.value}"

    @property
    def name(self) -> str:
        """Return the field under the one name that all its synonyms have."""
        low = self.field.casefold().removeprefix(OWN)
        return (CANONICAL if self._own else _NAMES).get(low, low)

    @property
    def _own(self) -> bool:
        return self.field.casefold().startswith(OWN)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of `documents` that `meets` must be given."""
        return ("metadata",) if self._own else _COLUMNS.get(self.name, ("metadata",))

    @property
    def of_metadata(self) -> bool:
        """Tell whether the field is one that documents need not have."""
        return self.columns == ("metadata",)

    @property
    def latest(self) -> bool:
        """Tell whether the newest versions are asked for, which no document says of itself."""
        return self.columns == ("version",) and self.value.casefold() == LATEST

    def meets(self, *columns: str) -> bool:
        """Tell whether a document with these `columns` passes."""
        values = self._values(*columns)
        if self.op == "~":
            return any(_fold_case(self.value) in _fold_case(value) for value in values)
        if self.op in _ORDERS:
            return any(self._compare(value) for value in values)
        return any(self._equal(value) for value in values) == (self.op == "=")

    def _values(self, first: str, second: str = "", third: str = "") -> list[str]:
        """Return the values that a document has in the field."""
        if self.columns == ("source",):
            path = first.split("#")[0]
            return [first, path, PurePosixPath(path).name]
        if self.columns[0] == "format":
            suffix = PurePosixPath(second.split("#")[0]).suffix.lstrip(".")
            return [first, suffix, *_values_of(_loaded(third), "type")]
        if "metadata" not in self.columns:
            return [first] if first else []
        metadata = _loaded(first)
        if self.op != "!=" and self.name == "deprecated" and isinstance(metadata, dict):
            partly = ["true"] * any(one.get("deprecated") for one in entries_of(metadata))
            return partly or _values_of(metadata, self.name)
        for name in _DATES.get(self.name, (self.name,)):
            if values := _values_of(metadata, name):
                return values
        return [second] if second else []

    def _equal(self, value: str) -> bool:
        found, asked = _fold_case(value), _fold_case(self.value)
        return found == asked or any(self._is(found, one.strip()) for one in asked.split("|"))

    def _is(self, found: str, asked: str) -> bool:
        if found == asked:
            return True
        if ("*" in asked or "?" in asked) and fnmatchcase(found, asked):
            return True
        if self.name == "authors":
            words = set(_WORD.findall(asked))
            return bool(words) and words <= set(_WORD.findall(found))
        if self.name == "version":  # "1.4" is 1.4.2 as well, and not 1.40
            whole = found.removeprefix("v").startswith(f"{asked.removeprefix('v')}.")
            return whole or version_order(found) == version_order(asked)
        one, other = _number(found), _number(asked)
        if one is not None and one == other:
            return True
        return _DATE.fullmatch(asked) is not None and found.startswith(f"{asked}-")

    def _compare(self, value: str) -> bool:
        compare = _ORDERS[self.op]
        if self.name == "version":
            return bool(compare(version_order(value), version_order(self.value)))
        one, other = _number(value), _number(self.value)
        if one is not None and other is not None:
            return bool(compare(one, other))
        if _DATE.fullmatch(self.value) and _DATED.match(value):
            return bool(compare(value[: len(self.value)], self.value))
        return False


@lru_cache(maxsize=1024)
def parse_filter(text: str) -> Filter:
    """Read one filter; raises CallerError that says what is wrong with it."""
    match = _OPERATOR.search(text)
    if match is None or "\x00" in text:
        raise CallerError("a filter names a field and a value", value=text, hint=FILTER_HINT)
    field, value = text[: match.start()].strip(), text[match.end() :].strip()
    if not field or not value or "!" in field:
        raise CallerError("a filter names a field and a value", value=text, hint=FILTER_HINT)
    found = Filter(field=field, op=match[0], value=value)
    if len(found.field) > LONGEST_FIELD or len(found.value) > LONGEST_VALUE:
        rule = f"a filter's field has at most {LONGEST_FIELD} characters, its value {LONGEST_VALUE}"
        raise CallerError(rule, value=text, hint=FILTER_HINT)
    if found.latest and found.op != "=":
        raise CallerError("the latest version is asked for by =", value=text, hint="version=latest")
    comparable = found.name == "version" or _number(found.value) is not None
    if found.op in _ORDERS and not comparable and not _DATE.fullmatch(found.value):
        rule = f"'{found.op}' compares numbers, versions and dates (2020, 2020-05 or 2020-05-31)"
        raise CallerError(rule, value=text, hint=FILTER_HINT)
    return found


def as_texts(fields: Mapping[str, Any]) -> list[str]:
    """Return fields with the values they must have, one or a list of them, as filters."""
    return [
        f"{name}={_text(value)}"
        for name, given in fields.items()
        for value in (given if isinstance(given, list) else [given])
    ]


def parse_filters(given: Sequence[str]) -> tuple[Filter, ...]:
    """Read filters, all of which must hold."""
    if len(given) > MOST_FILTERS:
        raise CallerError(f"a question has at most {MOST_FILTERS} filters", value=len(given))
    return tuple(parse_filter(text) for text in given)


def meets_filter(text: str, *columns: str) -> bool:
    """Tell whether a document with these columns passes the filter of this text, for SQL."""
    return parse_filter(text).meets(*columns)


def _loaded(metadata: str) -> object:
    try:
        return json.loads(metadata)
    except ValueError:  # damaged, as its sum will tell whoever reads it
        return None


def _values_of(metadata: object, name: str) -> list[str]:
    if not isinstance(metadata, dict):
        return []
    found = [value for key, value in metadata.items() if str(key).casefold() == name]
    items: Iterable[object] = (
        item for value in found for item in (value if isinstance(value, list) else [value])
    )
    return [_text(item) for item in items if item not in (None, "")]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _fold_case(text: str) -> str:
    return " ".join(text.casefold().split())


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if abs(found) != float("inf") and found == found else None
