"""XML files: the root element says how one is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from loading import loaded, only, reason, sections, texts

DOCBOOK = """<article xmlns="http://docbook.org/ns/docbook" xml:lang="ru">
<info><title>Руководство</title><author>Иван Петров</author><pubdate>2021</pubdate></info>
<section><title>Установка</title><para>Скачайте <emphasis>файл</emphasis> и запустите его.</para>
<programlisting>pip install x
run</programlisting>
<section><title>Настройка</title><para>Измените параметры.</para><table><tr><td>a</td><td>b</td>
</tr></table></section></section></article>"""
RSS = """<rss version="2.0"><channel><title>Новости</title>
<item><title>Первая</title><link>http://x/1</link><guid>1</guid>
<pubDate>Fri, 16 Dec 2022 17:04:16 GMT</pubDate>
<description>&lt;p&gt;Текст &lt;b&gt;новости&lt;/b&gt;&lt;/p&gt;
&lt;script&gt;x()&lt;/script&gt;</description></item>
<item><title>Вторая</title><guid>2</guid></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id><title>One</title>
<author><name>Ann</name></author><updated>2024-01-02T03:04:05Z</updated>
<link href="http://x/1"/><content type="xhtml"><div>Body of one</div></content></entry></feed>"""


def test_a_text_with_sections(tmp_path: Path) -> None:
    document = only(tmp_path / "g.xml", DOCBOOK.encode())
    assert document.title == "Руководство"
    assert document.metadata == {
        "title": "Руководство", "authors": ["Иван Петров"], "language": "ru", "year": 2021,
    }  # fmt: skip
    assert sections(document) == ["Установка", "Установка"] + ["Установка › Настройка"] * 2
    assert [block.kind for block in document.blocks] == ["text", "code", "text", "table"]
    assert texts(document)[0] == "Скачайте файл и запустите его."
    assert texts(document)[1] == "pip install x\nrun"


def test_flat_children_are_records(tmp_path: Path) -> None:
    rows = "".join(
        f'<book id="{n}"><title>Книга {n}</title><author>A</author><author>B</author></book>'
        for n in (1, 2)
    )
    documents, failures = loaded(tmp_path / "r.xml", f"<books>{rows}</books>".encode())
    assert not failures and [document.document_id for document in documents] == ["1", "2"]
    assert documents[0].is_record and documents[0].fields["author"] == ["A", "B"]


def test_data_keeps_the_names_of_its_elements(tmp_path: Path) -> None:
    content = b"<invoice><number>17</number><to><name>Ann</name><city>Kyiv</city></to></invoice>"
    assert texts(only(tmp_path / "i.xml", content)) == ["number: 17\nname: Ann\ncity: Kyiv"]


def test_feeds(tmp_path: Path) -> None:
    first, second = loaded(tmp_path / "n.xml", RSS.encode())[0]
    assert first.document_id == "n.xml#1" and first.title == "Первая"
    assert texts(first) == ["Текст новости"] and texts(second) == ["Вторая"]
    assert first.metadata["url"] == "http://x/1"
    assert first.metadata["updated_at"] == "2022-12-16T17:04:16+00:00"
    entry = only(tmp_path / "a.xml", ATOM.encode())
    assert entry.metadata["authors"] == ["Ann"] and texts(entry) == ["Body of one"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "windows-1251", "koi8-r"])
def test_declared_encodings(tmp_path: Path, encoding: str) -> None:
    content = f'<?xml version="1.0" encoding="{encoding}"?><doc><p>Текст</p></doc>'
    assert texts(only(tmp_path / "e.xml", content.encode(encoding))) == ["Текст"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<svg xmlns='http://www.w3.org/2000/svg'><text>x</text></svg>", "SVG"),
        ("<a><b></a>", "not well formed"),
        ("<a/>", "no text"),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "entities"),
        ("plain text", "not well formed"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: str, expected: str) -> None:
    assert expected in reason(tmp_path / "x.xml", content.encode())


def test_nesting_without_end(tmp_path: Path) -> None:
    content = b"<a>" * 5000 + b"bottom" + b"</a>" * 5000
    assert texts(only(tmp_path / "n.xml", content)) == ["bottom"]
