"""MARC records of both layouts, in ISO 2709 and XML, of old encodings, and damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loading import LIMITS, loaded, only, reason, sections, texts
from pymarc import Field, Indicators, Record, Subfield

from ingest.loaders import iso2709
from ingest.types import ParsedDocument

LEADER = "     nam  22     {} 4500"
XML = '<collection xmlns="http://www.loc.gov/MARC21/slim">{}</collection>'


def field(tag: str, *pairs: str) -> Field:
    """Make a field of "a=text" pairs."""
    parts = [Subfield(code=pair[0], value=pair[2:]) for pair in pairs]
    return Field(tag=tag, indicators=Indicators(" ", " "), subfields=parts)


def marc21(number: str = "1", *more: Field) -> Record:
    record = Record(force_utf8=True)
    record.add_field(
        Field(tag="001", data=number),
        Field(tag="008", data="991230s1869    ru            000 0 rus  "),
        field("020", "a=978-5-17-118366-5 (в пер.)"),
        field("080", "a=821.161.1"),
        field("100", "a=Толстой, Лев Николаевич,", "d=1828-1910."),
        field("245", "a=Война и мир :", "b=роман /", "c=Л. Н. Толстой."),
        field("260", "a=Москва :", "b=Наука,", "c=1978."),
        field("520", "a=Роман-эпопея о войне 1812 года."),
        field("650", "a=Война", "x=История."),
        field("650", "a=Дворянство"),
        *more,
    )
    return record


def unimarc() -> Record:
    record = Record(force_utf8=True)
    record.add_field(
        Field(tag="001", data="RU\\NLR\\1"),
        field("010", "a=966-03-0000-1"),
        field("100", "a=20240115d2001    u  y0ukry50      ca"),
        field("101", "a=ukr"),
        field("200", "a=Кобзар", "e=поезії", "f=Тарас Шевченко"),
        field("210", "a=Київ", "c=Дніпро", "d=2001"),
        field("330", "a=Збірка віршів поета."),
        field("606", "a=Поезія", "x=Україна"),
        field("675", "a=821.161.2"),
        field("700", "a=Шевченко", "b=Т. Г.", "g=Тарас Григорович"),
    )
    return record


def test_a_record_of_marc_21(tmp_path: Path) -> None:
    document = only(tmp_path / "b.mrc", marc21("77").as_marc())
    assert document.is_record and document.document_id == "77" and document.source == "b.mrc#77"
    assert document.title == "Война и мир: роман"
    assert document.fields == {
        "title": "Война и мир: роман",
        "authors": ["Толстой, Лев Николаевич"],
        "year": 1978,
        "publisher": "Наука",
        "place": "Москва",
        "isbn": "978-5-17-118366-5",
        "udc": "821.161.1",
        "keywords": ["Война – История", "Дворянство"],
        "language": "ru",
    }
    assert [block.kind for block in document.blocks] == ["record", "annotation"]
    said, annotation = texts(document)
    assert annotation == "Роман-эпопея о войне 1812 года."
    # Readers ask in the language of their library.
    assert said.startswith("название: Война и мир: роман\nавторы: Толстой, Лев Николаевич\n")
    assert "год издания: 1978" in said and "УДК: 821.161.1" in said
    assert document.metadata["authors"] == ["Толстой, Лев Николаевич"]


def test_a_record_of_unimarc(tmp_path: Path) -> None:
    document = only(tmp_path / "u.iso", unimarc().as_marc())
    fields = document.fields
    assert fields["title"] == "Кобзар: поезії" and fields["year"] == 2001
    assert fields["authors"] == ["Шевченко, Т. Г. (Тарас Григорович)"]
    assert fields["keywords"] == "Поезія – Україна" and fields["udc"] == "821.161.2"
    assert fields["place"] == "Київ" and fields["language"] == "uk"
    assert texts(document)[-1] == "Збірка віршів поета."
    assert document.metadata["keywords"] == ["Поезія – Україна"]


def test_a_title_in_its_own_script_and_the_contents(tmp_path: Path) -> None:
    more = (field("880", "6=245-01", "a=紅樓夢 /"), field("505", "a=第一回 -- 第二回"))
    document = only(tmp_path / "c.mrc", marc21("1", *more).as_marc())
    assert document.title == "Война и мир: роман = 紅樓夢"
    assert texts(document)[-1] == "第一回 -- 第二回" and sections(document)[-1] == "Contents"


def raw_record(encoding: str, *fields: tuple[str, str]) -> bytes:
    """Write a record in any encoding, as old library systems did."""
    bodies = [(tag, f"  \x1fa{text}".encode(encoding) + b"\x1e") for tag, text in fields]
    directory, at = b"", 0
    for tag, body in bodies:
        directory += f"{tag}{len(body):04}{at:05}".encode()
        at += len(body)
    base = 24 + len(directory) + 1
    leader = f"{base + at + 1:05}nam  22{base:05}   4500".encode()
    return leader + directory + b"\x1e" + b"".join(body for _, body in bodies) + b"\x1d"


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "cp866", "utf-8"])
def test_records_of_old_encodings(tmp_path: Path, encoding: str) -> None:
    said = ("Преступление и наказание", "Роман о студенте и старухе процентщице")
    content = raw_record(encoding, ("245", said[0]), ("520", said[1])) * 2
    documents, failures = loaded(tmp_path / "old.mrc", content)
    assert documents[0].title == said[0]
    assert list(failures.values()) == []
    assert [document.document_id for document in documents] == ["old.mrc#1", "old.mrc#2"]


def test_marc_8_keeps_its_accents_and_scripts(tmp_path: Path) -> None:
    record = Record()
    record.add_field(Field(tag="001", data="5"))
    raw = raw_record("latin-1", ("245", "Caf\xe2e \x1b(N\x4d\x49\x52\x1b(B"))
    assert only(tmp_path / "m.mrc", raw).title.startswith("Café ")
    assert any("\u0400" < c < "\u0500" for c in only(tmp_path / "m.mrc", raw).title)


def test_lengths_of_another_encoding_are_survived(tmp_path: Path) -> None:
    raw = raw_record("cp1251", ("245", "Отцы и дети"), ("520", "Роман Тургенева о поколениях"))
    converted = raw.decode("cp1251").encode()  # what a careless conversion leaves behind
    document = only(tmp_path / "converted.mrc", converted)
    assert document.title == "Отцы и дети"
    assert texts(document)[-1] == "Роман Тургенева о поколениях"


def test_damaged_records_are_named_and_the_others_go_on(tmp_path: Path) -> None:
    good = [marc21(str(number), field("500", f"a=note {number}")).as_marc() for number in range(5)]
    good[1] = good[1][:60] + b"\x1d"
    good[3] = b"xxxxx" + good[3][5:]
    documents, failures = loaded(tmp_path / "d.mrc", b"\r\n".join(good) + b"00714cam a22")
    assert [document.document_id for document in documents] == ["0", "2", "4"]
    assert set(failures) == {f"d.mrc: record {number}" for number in (2, 4, 6)}
    assert "leader" in failures["d.mrc: record 4"]


def test_equal_numbers(tmp_path: Path) -> None:
    first, other = marc21("1"), marc21("1", field("250", "a=2-е изд."))
    content = first.as_marc() + first.as_marc() + other.as_marc()
    documents, failures = loaded(tmp_path / "e.mrc", content)
    assert [document.document_id for document in documents] == ["1", "e.mrc#3"]
    assert failures == {"e.mrc: record 2": "the same as record 1 (1)"}


def test_a_record_without_a_title(tmp_path: Path) -> None:
    _, failures = loaded(tmp_path / "n.mrc", raw_record("utf-8", ("999", "x")))
    assert failures == {"n.mrc: record 1": "no title and no heading in this record"}


@pytest.mark.parametrize("name", ["x.dat", "x.iso", "x.mrc"])
def test_files_that_are_no_marc(tmp_path: Path, name: str) -> None:
    assert "no MARC records" in reason(tmp_path / name, b"\x00\x01binary data of a game" * 9)


def as_xml(record: Record) -> str:
    rows = []
    for one in record.fields:
        if one.is_control_field():
            rows.append(f'<controlfield tag="{one.tag}">{one.data}</controlfield>')
        else:
            parts = "".join(
                f'<subfield code="{part.code}">{part.value}</subfield>' for part in one.subfields
            )
            rows.append(f'<datafield tag="{one.tag}" ind1=" " ind2=" ">{parts}</datafield>')
    return f"<record><leader>{LEADER.format('a')}</leader>{''.join(rows)}</record>"


def test_marcxml(tmp_path: Path) -> None:
    content = XML.format(as_xml(marc21("1")) + as_xml(marc21("2")))
    documents, failures = loaded(tmp_path / "c.xml", content.encode())
    assert not failures and [document.document_id for document in documents] == ["1", "2"]
    assert documents[0].title == "Война и мир: роман" and documents[0].format == "marcxml"


def test_marcxml_within_oai(tmp_path: Path) -> None:
    marc = as_xml(unimarc()).replace("<record>", '<record xmlns="info:lc/xmlns/marcxchange-v1">')
    content = (
        "<OAI-PMH><ListRecords><record><header/><metadata>"
        f"{marc}</metadata></record></ListRecords></OAI-PMH>"
    )
    assert only(tmp_path / "oai.xml", content.encode()).title == "Кобзар: поезії"


def test_marcxml_that_is_not_well_formed(tmp_path: Path) -> None:
    rows = [as_xml(marc21(str(number), field("500", f"a={number}"))) for number in range(3)]
    rows[1] = rows[1].replace("Москва", "Моск\x01ва & <")
    documents, failures = loaded(tmp_path / "b.xml", XML.format("".join(rows)).encode())
    assert [document.document_id for document in documents] == ["0", "2"]
    assert list(failures) == ["b.xml: record 2"] and "not well formed" in str(failures)


@given(cut=st.integers(0, 600), flips=st.lists(st.integers(0, 600), max_size=5))
def test_any_damage_ends_in_documents_or_reasons(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flips: list[int]
) -> None:
    content = bytearray(marc21("1").as_marc() + unimarc().as_marc())
    for place in flips:
        content[place % len(content)] ^= 0x55
    path = tmp_path_factory.mktemp("damaged") / "x.mrc"
    documents, failures = loaded(path, bytes(content[: len(content) - cut]))
    assert documents or failures
    assert not any("gave up" in reason for reason in failures.values()), failures


def test_a_long_file_is_read_a_part_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "long.mrc"
    path.write_bytes(marc21("1").as_marc() * 4000)
    chunks = iso2709.chunks(path)
    assert next(chunks) and sum(1 for _ in chunks) == 3999
    junk = tmp_path / "junk.mrc"
    junk.write_bytes(marc21("1").as_marc() + b"0" * (5 << 20))
    documents, failures = loaded(junk, limits=LIMITS)
    assert isinstance(documents[0], ParsedDocument) and failures


def test_a_leader_with_control_characters_where_nothing_is_said(tmp_path: Path) -> None:
    raw = bytearray(marc21().as_marc())
    raw[9:10], raw[19:20] = b"\x14", b"\x02"
    assert only(tmp_path / "l.mrc", bytes(raw)).is_record
    assert not iso2709.looks_like_marc(b"12345\nabcdef12345abcdefg")
