"""What the fields of a MARC 21 or UNIMARC record say, under one set of names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ingest.loaders.marc_iso2709 import MarcField
from ingest.loaders.records import Fields, Scalar

# name: (tag, codes of subfields) in order.
_Table = dict[str, tuple[tuple[str, str], ...]]
_SUBJECT_21 = "abcdtvxyz"
_MARC21: _Table = {
    "title": (("245", "anpb"),),
    "authors": (("100", "abq"), ("110", "ab"), ("111", "a"), ("700", "ab"), ("710", "ab")),
    "publisher": (("260", "b"), ("264", "b")),
    "place": (("260", "a"), ("264", "a")),
    "edition": (("250", "ab"),),
    "extent": (("300", "a"),),
    "isbn": (("020", "a"),),
    "issn": (("022", "a"),),
    "keywords": (
        ("600", _SUBJECT_21), ("610", _SUBJECT_21), ("611", _SUBJECT_21), ("630", _SUBJECT_21),
        ("648", "a"), ("650", _SUBJECT_21), ("651", _SUBJECT_21), ("653", "a"), ("655", "a"),
    ),
    "udc": (("080", "a"),),
    "ddc": (("082", "a"),),
    "lcc": (("050", "ab"),),
    "bbk": (("084", "a"),),
    "series": (("490", "av"), ("440", "av"), ("830", "av")),
    "notes": (
        ("500", "a"), ("502", "a"), ("504", "a"), ("511", "a"), ("518", "a"), ("538", "a"),
        ("546", "a"), ("586", "a"),
    ),
    "url": (("856", "u"),),
    "annotation": (("520", "ab"),),
    "contents": (("505", "agtr"),),
}  # fmt: skip
_SUBJECT_UNI = "abcfgtxyz"
_UNIMARC: _Table = {
    "title": (("200", "aehi"),),
    "authors": (("700", "abg"), ("701", "abg"), ("702", "abg"), ("710", "ab"), ("711", "ab")),
    "publisher": (("210", "c"), ("214", "c")),
    "place": (("210", "a"), ("214", "a")),
    "edition": (("205", "ab"),),
    "extent": (("215", "a"),),
    "isbn": (("010", "a"),),
    "issn": (("011", "a"),),
    "keywords": (
        ("600", _SUBJECT_UNI), ("601", _SUBJECT_UNI), ("602", "a"), ("604", "at"), ("605", "a"),
        ("606", "axyz"), ("607", "axyz"), ("608", "a"), ("610", "a"),
    ),
    "udc": (("675", "a"),),
    "ddc": (("676", "a"),),
    "lcc": (("680", "ab"),),
    "bbk": (("686", "a"),),
    "series": (("225", "aiv"), ("410", "t"), ("461", "t")),
    "notes": (("300", "a"), ("304", "a"), ("320", "a"), ("328", "a")),
    "url": (("856", "u"),),
    "annotation": (("330", "a"),),
    "contents": (("327", "a"),),
}  # fmt: skip
_PROSE = {"notes", "annotation", "contents", "url"}
_ONE = {"title", "publisher", "place", "edition", "extent", "annotation", "contents"}
_DASHED = set("vxyz")
_LATE_TITLES = ("130", "240", "222", "100", "110", "150", "151", "250", "210")
_INITIAL = re.compile(r"(?:^|[\s.\-])\w{1,2}\.$")
_ISBN = re.compile(r"[\dXxХх][\dXxХх\- ]{7,16}")
_CODE = re.compile(r"[a-z]{3}")
_YEAR = re.compile(r"\d{4}")
# Bibliographic codes of ISO 639-2, and what ISO 639-1 calls the same.
_LANGUAGES = (
    "eng en rus ru ukr uk chi zh zho zh ger de deu de fre fr fra fr spa es ita it por pt pol pl "
    "cze cs ces cs slo sk slk sk slv sl hrv hr srp sr scc sr scr hr bul bg mac mk mkd mk bel be "
    "lit lt lav lv est et fin fi swe sv nor no nob nb nno nn dan da ice is isl is dut nl nld nl "
    "hun hu rum ro ron ro gre el ell el tur tr ara ar heb he per fa fas fa urd ur hin hi ben bn "
    "tam ta tel te jpn ja kor ko vie vi tha th ind id may ms msa ms lat la geo ka kat ka arm hy "
    "hye hy aze az kaz kk uzb uz kir ky tgk tg tuk tk tat tt mon mn yid yi epo eo cat ca glg gl "
    "baq eu eus eu wel cy cym cy gle ga alb sq sqi sq bos bs afr af swa sw"
)


@dataclass(frozen=True)
class Described:
    """Hold what a record says: its control number, names and values, and its longer texts."""

    number: str
    title: str
    fields: Fields
    annotation: str
    contents: str


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
    for name, places in (_UNIMARC if unimarc else _MARC21).items():
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
    return Described(number, title, kept, texts["annotation"], texts["contents"])


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
    known = _language_codes()
    return list(dict.fromkeys(known.get(code, code) for code in codes if _CODE.fullmatch(code)))


@cache
def _language_codes() -> dict[str, str]:
    names = _LANGUAGES.split()
    return dict(zip(names[::2], names[1::2], strict=True))


def _control(fields: Sequence[MarcField], start: int, end: int) -> str:
    return next((field.value[start:end] for field in fields if field.tag == "008"), "")


def _coded(fields: Sequence[MarcField], tag: str, start: int, end: int) -> str:
    for field in _all(fields, tag):
        for code, value in field.subfields:
            if code == "a":
                return value[start:end]
    return ""
