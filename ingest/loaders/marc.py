"""Library catalogues in MARC (ISO 2709 and XML): every bibliographic record is a document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from xml.etree.ElementTree import Element

from core.errors import DocumentError
from ingest.loaders import iso2709
from ingest.loaders.iso2709 import MarcField
from ingest.loaders.limits import LoadLimits
from ingest.loaders.records import record_fields
from ingest.loaders.records.record_fields import Fields, Scalar
from ingest.loaders.text.encoding import decode
from ingest.loaders.web.xml_tree import descendants, local_name, parse_xml
from ingest.types import Block, Loaded, LoadFailure, ParsedDocument
from languages.language import find_language

# name: (tag, codes of subfields) in order.
_Table = dict[str, tuple[tuple[str, str], ...]]
_SUBJECT_21 = "abcdtvxyz"
MARC21: _Table = {
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
UNIMARC: _Table = {
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
# Bibliographic codes of ISO 639-2, and what ISO 639-1 calls the same.
_CODES = (
    "eng en rus ru ukr uk chi zh zho zh ger de deu de fre fr fra fr spa es ita it por pt pol pl "
    "cze cs ces cs slo sk slk sk slv sl hrv hr srp sr scc sr scr hr bul bg mac mk mkd mk bel be "
    "lit lt lav lv est et fin fi swe sv nor no nob nb nno nn dan da ice is isl is dut nl nld nl "
    "hun hu rum ro ron ro gre el ell el tur tr ara ar heb he per fa fas fa urd ur hin hi ben bn "
    "tam ta tel te jpn ja kor ko vie vi tha th ind id may ms msa ms lat la geo ka kat ka arm hy "
    "hye hy aze az kaz kk uzb uz kir ky tgk tg tuk tk tat tt mon mn yid yi epo eo cat ca glg gl "
    "baq eu eus eu wel cy cym cy gle ga alb sq sqi sq bos bs afr af swa sw"
)
LANGUAGES = dict(zip(_CODES.split()[::2], _CODES.split()[1::2], strict=True))


_PROSE = {"notes", "annotation", "contents", "url"}
_ONE = {"publisher", "place", "edition", "extent"}
_APART = {"title", "authors", "annotation", "contents"}  # each with a place of its own
_DASHED = set("vxyz")
_LATE_TITLES = ("130", "240", "222", "100", "110", "150", "151", "250", "210")
_INITIAL = re.compile(r"(?:^|[\s.\-])\w{1,2}\.$")
_ISBN = re.compile(r"[\dXxХх][\dXxХх\- ]{7,16}")
_CODE = re.compile(r"[a-z]{3}")
_YEAR = re.compile(r"\d{4}")


def is_unimarc(records: Sequence[Sequence[MarcField]]) -> bool:
    """Tell the layout of a file: UNIMARC has its title in 200$a, MARC 21 in 245$a."""
    titles = {"200": 0, "245": 0}
    for record in records:
        for field in record:
            if field.tag in titles and any(code == "a" for code, _ in field.subfields):
                titles[field.tag] += 1
    return titles["200"] > titles["245"]


def _values(fields: Sequence[MarcField], *, unimarc: bool) -> dict[str, list[str]]:
    """Bring the fields of a record to common names."""
    found: dict[str, list[str]] = {}
    for name, places in (UNIMARC if unimarc else MARC21).items():
        values = [
            _value(field, codes, name) for tag, codes in places for field in _all(fields, tag)
        ]
        found[name] = list(dict.fromkeys(value for value in values if value))
    isbns = (match.group() for value in found["isbn"] if (match := _ISBN.search(value)))
    found["isbn"] = [isbn for one in isbns if (isbn := one.replace(" ", "").strip("-"))]
    return found | {"language": _languages(fields, unimarc=unimarc)}


def _order_fields(found: dict[str, list[str]], title: str, year: int | None) -> Fields:
    """Return the fields that a record has, in the order in which they are shown."""
    named: Fields = {"title": title, "authors": list[Scalar](found["authors"]), "year": year or ""}
    for name, values in found.items():
        if name not in _APART:
            joined = "; ".join(values) if name in _ONE else list[Scalar](values)
            named[name] = values[0] if len(values) == 1 else joined
    return {name: value for name, value in named.items() if value}


def _own_script(field: MarcField) -> MarcField:
    """Give a field 880 (the same in its own script) the tag of the field it stands for."""
    if field.tag != "880":
        return field
    linked = next((value[:3] for code, value in field.subfields if code == "6"), "880")
    return field._replace(tag=linked)


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
        value = _trim_punctuation(value)
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


def _trim_punctuation(value: str) -> str:
    """Drop the punctuation that ISBD puts between elements; an initial keeps its full stop."""
    value = " ".join(value.split()).strip(" /:;,=")
    if value.endswith(".") and not value.endswith("...") and not _INITIAL.search(value):
        value = value[:-1].rstrip()
    return value


def _late_title(fields: Sequence[MarcField]) -> str:
    """Return what else names a record: a damaged title, or the heading of an authority record."""
    damaged = (field for tag in ("245", "200") for field in _all(fields, tag))
    headings = (field for tag in _LATE_TITLES for field in _all(fields, tag))
    titles = chain(
        (_trim_punctuation(" ".join(value for _, value in field.subfields)) for field in damaged),
        (_value(field, "abt", "title") for field in headings),
    )
    return next(filter(None, titles), "")


def _year(fields: Sequence[MarcField], *, unimarc: bool) -> int | None:
    stated = ["210", "214"] if unimarc else ["260", "264"]
    code = "d" if unimarc else "c"
    for field in fields:
        if field.tag in stated:
            for found, value in field.subfields:
                if found == code and (match := _YEAR.search(value)):
                    return int(match.group())
    coded = _read_codes(fields, 9, 13) if unimarc else _control(fields, 7, 11)
    return int(coded) if _YEAR.fullmatch(coded) else None


def _languages(fields: Sequence[MarcField], *, unimarc: bool) -> list[str]:
    codes = [
        value.lower()[at : at + 3]
        for value in _subfields(fields, "101" if unimarc else "041", "a")
        for at in range(0, len(value), 3)
    ]
    codes += [] if unimarc or codes else [_control(fields, 35, 38)]
    return list(dict.fromkeys(LANGUAGES.get(code, code) for code in codes if _CODE.fullmatch(code)))


def _control(fields: Sequence[MarcField], start: int, end: int) -> str:
    return next((field.value[start:end] for field in fields if field.tag == "008"), "")


def _read_codes(fields: Sequence[MarcField], start: int, end: int) -> str:
    return next(_subfields(fields, "100", "a"), "")[start:end]


def _subfields(fields: Sequence[MarcField], tag: str, code: str) -> Iterator[str]:
    return (value for f in _all(fields, tag) for found, value in f.subfields if found == code)


# A record that can be read, or why it cannot.
Found = Sequence[MarcField] | DocumentError
_PARTS = ("leader", "controlfield", "datafield")
_XML_RECORD = re.compile(
    r"<(\w+:)?record\b(?![^>]*/>)(?:(?!<(?:\w+:)?record\b).)*?</(?:\w+:)?record\s*>", re.S
)
_PREFIX = re.compile(r"<(/?)\w+:")
_SAMPLED = 200  # records that tell the dialect; chosen, not measured
_NO_MARC = "no MARC records in it; such a file is read only when it holds ISO 2709 records"


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the document of each record of an ISO 2709 file, and what each damaged one lacks."""
    with path.open("rb") as handle:
        if not iso2709.looks_like_marc(handle.read(64)):
            raise DocumentError(_NO_MARC)
    yield from documents(relative, _read(path), "marc")


def _read(path: Path) -> Iterator[Found]:
    parsed = _parse_records(path)
    first = list(islice(parsed, _SAMPLED))
    decode = iso2709.decoder([item for item in first if not isinstance(item, DocumentError)])
    for item in chain(first, parsed):
        yield (item if isinstance(item, DocumentError) else iso2709.decode_fields(item, decode))


def _parse_records(path: Path) -> Iterator[iso2709.RawRecord | DocumentError]:
    try:
        for chunk in iso2709.chunks(path):
            try:
                yield iso2709.parse(chunk)
            except DocumentError as error:
                yield error
    except DocumentError as error:  # what comes after is lost, what came before is not
        yield error


def load_xml(root: Element, relative: str) -> Iterator[Loaded]:
    """Yield the document of each record of a parsed MARCXML file."""
    yield from documents(relative, map(_from_xml, _record_elements(root)), "marcxml")


def load_damaged_xml(data: bytes, relative: str, error: DocumentError) -> Iterator[Loaded]:
    """Yield the records of a MARCXML file that is not well formed, each parsed by itself."""
    text = decode(data, ".xml")
    found = _XML_RECORD.finditer(text)
    first = next(found, None)
    if first is None or "datafield" not in text:
        raise error
    pieces = (match.group() for match in chain([first], found))
    yield from documents(relative, map(_parse_damaged, pieces), "marcxml")


def _parse_damaged(piece: str) -> Found:
    # Prefixes are declared at the root, which is not at hand.
    unprefixed = _PREFIX.sub(r"<\1", piece)
    try:
        return next(map(_from_xml, _record_elements(parse_xml(unprefixed.encode()))), [])
    except DocumentError as error:
        return error


def _record_elements(root: Element) -> Iterator[Element]:
    """OAI-PMH puts one record into another; that of MARC has fields."""
    for element in descendants(root, "record"):
        if any(local_name(part) in _PARTS for part in element):
            yield element


def _from_xml(record: Element) -> list[MarcField]:
    fields = []
    for element in record:
        tag = (element.get("tag") or "").strip()
        if local_name(element) == "controlfield":
            fields.append(MarcField(tag, (element.text or "").strip()))
        elif local_name(element) == "datafield":
            pairs = tuple(
                ((part.get("code") or "").strip(), "".join(part.itertext()).strip())
                for part in element
                if local_name(part) == "subfield"
            )
            fields.append(MarcField(tag, subfields=pairs))
    return fields


def documents(relative: str, found: Iterator[Found], format_name: str) -> Iterator[Loaded]:
    """Yield a document or a failure per record; records count from 1.

    A control number that a different record has already used is replaced by the record's place in
    the file; the same record once more is a failure.
    """
    first = list(islice(found, _SAMPLED))
    unimarc = is_unimarc([item for item in first if not isinstance(item, DocumentError)])
    seen: dict[str, tuple[int, int]] = {}
    for number, item in enumerate(chain(first, found), start=1):
        try:
            yield _document(relative, number, item, seen, format_name, unimarc=unimarc)
        except DocumentError as error:
            yield LoadFailure(path=f"{relative}: record {number}", reason=error.rule)


def _document(
    relative: str,
    number: int,
    found: Found,
    seen: dict[str, tuple[int, int]],
    format_name: str,
    *,
    unimarc: bool,
) -> ParsedDocument:
    if isinstance(found, DocumentError):
        raise found
    fields = [_own_script(field) for field in found]
    values = _values(fields, unimarc=unimarc)
    title = " = ".join(values["title"]) or _late_title(fields)
    if not title:
        raise DocumentError("no title and no heading in this record")
    own = next((field.value for field in _all(fields, "001") if field.value), "")
    document_id = own or f"{relative}#{number}"
    content = hash(json.dumps([(f.tag, f.value, f.subfields) for f in found]))
    earlier, same = seen.setdefault(document_id, (number, content))
    if earlier != number:
        if same == content:
            raise DocumentError(f"the same as record {earlier} ({document_id})")
        document_id = f"{relative}#{number}"
    # Readers ask in the language of their library: "год", not "year".
    code = _read_codes(fields, 22, 25) if unimarc else next(_subfields(fields, "040", "b"), "")
    spoken = LANGUAGES.get(code.lower(), "") or "".join(values["language"][:1])
    document = record_fields.record(
        relative,
        document_id,
        _order_fields(values, title, _year(fields, unimarc=unimarc)),
        title=title[:300],
        format_name=format_name,
        labels=find_language(spoken).messages.get("fields", {}),
    )
    texts = []
    if values["annotation"]:
        texts.append(Block(text="\n".join(values["annotation"]), kind="annotation"))
    if values["contents"]:
        texts.append(Block(text="\n".join(values["contents"]), section="Contents"))
    return document.model_copy(update={"blocks": [*document.blocks, *texts]})
