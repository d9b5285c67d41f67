"""XML that would read files, call out or grow without end is refused."""

from __future__ import annotations

import pytest

from core.errors import DocumentError
from ingest.loaders.web.xml_tree import check_xml, parse_xml

LAUGHS = "<!DOCTYPE l [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "laughs": LAUGHS + "]><l>&i;</l>",
    "file": '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>',
    "net": '<!DOCTYPE r [<!ENTITY x PUBLIC "p" "http://127.0.0.1:9/x">]><r>&x;</r>',
    "parameter": '<!DOCTYPE r [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x"> %x;]><r/>',
    "quadratic": f"<!DOCTYPE r [<!ENTITY x '{'x' * 999}'>]><r>{'&x;' * 999}</r>",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(name: str, encoding: str) -> None:
    data = HOSTILE[name].encode(encoding)
    for read, given in ((parse_xml, data), (check_xml, [data])):
        with pytest.raises(DocumentError, match="declares entities"):
            read(given)


def test_a_plain_doctype_is_read_over() -> None:
    data = b'<!DOCTYPE html PUBLIC "x" "http://127.0.0.1:9/x.dtd"><html>text</html>'
    assert parse_xml(data).text == "text"
    check_xml([data])


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1251", "koi8-r", "utf-16"])
def test_encodings(encoding: str) -> None:
    text = f"<?xml version='1.0' encoding='{encoding}'?><a>книга</a>"
    assert parse_xml(text.encode(encoding)).text == "книга"


def test_encodings_of_several_bytes_and_wrong_ones() -> None:
    assert (
        parse_xml("<?xml version='1.0' encoding='gb18030'?><a>书</a>".encode("gb18030")).text
        == "书"
    )
    assert parse_xml(b"<?xml version='1.0' encoding='utf-16'?><a>x</a>").text == "x"
    with pytest.raises(DocumentError, match="not well formed"):
        parse_xml(b"<?xml version='1.0' encoding='nonsense'?><a>x</a>")


@pytest.mark.parametrize("data", [b"", b"<a>", b"text", b"<a>&b;</a>", b"\xff\xfe\x00"])
def test_what_is_no_xml(data: bytes) -> None:
    with pytest.raises(DocumentError, match="not well formed"):
        parse_xml(data)
    check_xml([data])
