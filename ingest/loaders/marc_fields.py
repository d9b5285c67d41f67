"""What the fields of a MARC 21 or UNIMARC record say, under one set of names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingest.loaders.marc_iso2709 import MarcField
from ingest.loaders.marc_tables import LABELS, LANGUAGES, MARC21, UNIMARC
from ingest.loaders.records import Fields, Scalar

_PROSE = {"notes", "annotation", "contents", "url"}
_ONE = {"title", "publisher", "place", "edition", "extent", "annotation", "contents"}
_DASHED = set("vxyz")
_LATE_TITLES = ("130", "240", "222", "100", "110", "150", "151", "250", "210")
_INITIAL = re.compile(r"(?:^|[\s.\-])\w{1,2}\.$")
_ISBN = re.compile(r"[\dXxХх][\dXxХх\- ]{7,16}")
_CODE = re.compile(r"[a-z]{3}")
_YEAR = re.compile(r"\d{4}")


@dataclass(frozen=True)
class Described:
    """Hold what a record says: its control number, names and values, and its longer texts.

    `labels` are the names in the language of the catalogue, where it is known.
    """

    number: str
    title: str
    fields: Fields
    annotation: str
    contents: str
    labels: Mapping[str, str]


def is_unimarc(records: Sequence[Sequence[MarcField]]) -> bool:
    """Tell the layout of a file: UNIMARC has its title in 200$a, MARC 21 in 245$a."""
    titles = {"200": 0, "245": 0}
    for record in records:
        for field in record:
            if field.tag in titles and any(code == "a" for code, _ in field.subfields):
                titles[field.tag] += 1
    return titles["200"] > titles["245"]


def describe(record: Sequence[MarcField], *, unimarc: bool) -> Described:
    """Bring the fields of a record to common names; what is not there is left out."""
    fields = [_own_script(field) for field in record]
    found: dict[str, list[str]] = {}
    for name, places in (UNIMARC if unimarc else MARC21).items():
        values = [
            _value(field, codes, name) for tag, codes in places for field in _all(fields, tag)
        ]
        found[name] = list(dict.fromkeys(value for value in values if value))
    found["isbn"] = [isbn for value in found["isbn"] if (isbn := _isbn(value))]
    number = next((field.value for field in _all(fields, "001") if field.value), "")
    texts = {name: "\n".join(found.pop(name)) for name in ("annotation", "contents")}
    title = " = ".join(found.pop("title")) or _late_title(fields)
    named: Fields = {"title": title} if title else {}
    named |= {"authors": list[Scalar](found.pop("authors"))}
    if year := _year(fields, unimarc=unimarc):
        named["year"] = year
    languages = _languages(fields, unimarc=unimarc)
    for name, values in {**found, "language": languages}.items():
        named[name] = "; ".join(values) if name in _ONE else list[Scalar](values)
        if len(values) == 1:
            named[name] = values[0]
    kept = {name: value for name, value in named.items() if value}
    labels = LABELS.get(_catalogued_in(fields, unimarc=unimarc) or "".join(languages[:1]), {})
    return Described(number, title, kept, texts["annotation"], texts["contents"], labels)


def _own_script(field: MarcField) -> MarcField:
    """Give a field 880 (the same in its own script) the tag of the field it stands for."""
    if field.tag != "880":
        return field
    linked = next((value[:3] for code, value in field.subfields if code == "6"), "880")
    return MarcField(linked, field.value, field.indicators, field.subfields)


def _all(fields: Sequence[MarcField], tag: str) -> list[MarcField]:
    return [field for field in fields if field.tag == tag]


def _value(field: MarcField, codes: str, name: str) -> str:
    parts: list[str] = []
    for code, value in field.subfields:
        if code not in codes or not value:
            continue
        if name in _PROSE:
            parts.append(value)
            continue
        value = _trimmed(value)
        if parts:
            parts.append(_separator(name, code, field.tag))
        # UNIMARC gives the full forename apart: "Толстой, Л. Н. (Лев Николаевич)".
        parts.append(f"({value})" if name == "authors" and code == "g" else value)
    return " ".join(parts) if name in _PROSE else "".join(parts).strip()


def _separator(name: str, code: str, tag: str) -> str:
    if name == "title":
        return ". " if code in "nphi" and not (tag == "200" and code == "e") else ": "
    if name == "keywords" and code in _DASHED:
        return " – "
    if name == "authors":
        return " " if code in "gq" else ", "
    return {"keywords": ", ", "place": "; ", "publisher": "; "}.get(name, " ")


def _trimmed(value: str) -> str:
    """Drop the punctuation that ISBD puts between elements; an initial keeps its full stop."""
    value = " ".join(value.split()).strip(" /:;,=")
    if value.endswith(".") and not value.endswith("...") and not _INITIAL.search(value):
        value = value[:-1].rstrip()
    return value


def _late_title(fields: Sequence[MarcField]) -> str:
    """Return what else names a record: a damaged title, or the heading of an authority record."""
    for tag in ("245", "200"):
        for field in _all(fields, tag):
            if title := _trimmed(" ".join(value for _, value in field.subfields)):
                return title
    for tag in _LATE_TITLES:
        for field in _all(fields, tag):
            if title := _value(field, "abt", "title"):
                return title
    return ""


def _isbn(value: str) -> str:
    match = _ISBN.search(value)
    return match.group().replace(" ", "").strip("-") if match else ""


def _year(fields: Sequence[MarcField], *, unimarc: bool) -> int | None:
    stated = ["210", "214"] if unimarc else ["260", "264"]
    code = "d" if unimarc else "c"
    for field in fields:
        if field.tag in stated:
            for found, value in field.subfields:
                if found == code and (match := _YEAR.search(value)):
                    return int(match.group())
    coded = _coded(fields, "100", 9, 13) if unimarc else _control(fields, 7, 11)
    return int(coded) if _YEAR.fullmatch(coded) else None


def _languages(fields: Sequence[MarcField], *, unimarc: bool) -> list[str]:
    codes = [
        value.lower()[at : at + 3]
        for field in _all(fields, "101" if unimarc else "041")
        for code, value in field.subfields
        if code == "a"
        for at in range(0, len(value), 3)
    ]
    codes += [] if unimarc or codes else [_control(fields, 35, 38)]
    return list(dict.fromkeys(LANGUAGES.get(code, code) for code in codes if _CODE.fullmatch(code)))


def _catalogued_in(fields: Sequence[MarcField], *, unimarc: bool) -> str:
    """Return the language that the catalogue itself is written in, or ""."""
    if unimarc:
        code = _coded(fields, "100", 22, 25)
    else:
        pairs = (pair for field in _all(fields, "040") for pair in field.subfields)
        code = next((value for name, value in pairs if name == "b"), "")
    return LANGUAGES.get(code.lower(), "")


def _control(fields: Sequence[MarcField], start: int, end: int) -> str:
    return next((field.value[start:end] for field in fields if field.tag == "008"), "")


def _coded(fields: Sequence[MarcField], tag: str, start: int, end: int) -> str:
    for field in _all(fields, tag):
        for code, value in field.subfields:
            if code == "a":
                return value[start:end]
    return ""
