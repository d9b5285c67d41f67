"""ZIP and XML that lie, read files, call out or grow without end are refused by their rule."""

from __future__ import annotations

import io
import stat
import struct
import warnings
import zipfile
from pathlib import Path

import loading
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DocumentError
from ingest.loaders.web.xml_tree import check_xml, parse_xml
from ingest.loaders.zip_safe import SafeZip, ZipBudget

LIMITS = loading.LIMITS.model_copy(update={"zip_entries": 20, "zip_total_mb": 4, "zip_ratio": 100})


def packed(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of equal names
        for name, content in members:
            made.writestr(name, content)
    return out.getvalue()


def of_kind(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def encrypted(content: bytes) -> bytes:
    """Set the flag of encryption in the local and the central header."""
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = content.index(magic) + at
        (flags,) = struct.unpack("<H", content[start : start + 2])
        content = content[:start] + struct.pack("<H", flags | 1) + content[start + 2 :]
    return content


def overlapping() -> bytes:
    """Two entries of the directory that point at one member."""
    content = packed(("a.txt", b"x" * 100), ("b.txt", b"x" * 100))
    second = content.rindex(b"PK\x01\x02") + 42
    return content[:second] + struct.pack("<I", 0) + content[second + 4 :]


def test_members_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(packed(("a/", b""), ("a/b.txt", b"one"), ("книга.txt", b"two" * 99_999)))
    with SafeZip(path, LIMITS) as container:
        assert container.names() == ["a/b.txt", "книга.txt"]
        assert container.read("a/b.txt") == b"one"
        assert container.read("книга.txt") == b"two" * 99_999
        container.check()
        with pytest.raises(DocumentError, match="no member 'x'"):
            container.read("x")


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "damaged or no ZIP"),
        (b"PK\x03\x04" + bytes(99), "damaged or no ZIP"),
        (
            packed(*((f"{n}", b"") for n in range(21))),
            r"more than 20 entries \(ingest.zip_entries\)",
        ),
        (packed(*((f"{n}", bytes(2**20)) for n in range(5))), r"4 MB \(ingest.zip_total_mb\)"),
        (overlapping(), "overlap"),
    ],
)
def test_containers_refused_as_a_whole(content: bytes, rule: str) -> None:
    with pytest.raises(DocumentError, match=rule):
        SafeZip(content, LIMITS)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (packed(("../x", b"x")), "leaves its folder"),
        (packed(("a/../../x", b"x")), "leaves its folder"),
        (packed(("a\\..\\x", b"x")), "leaves its folder"),
        (packed(("/etc/x", b"x")), "absolute path"),
        (packed(("C:\\x", b"x")), "absolute path"),
        (packed(("a_b.txt", b"x")).replace(b"a_b", b"a\0b"), "NUL in its name"),
        (packed((of_kind("link", stat.S_IFLNK | 0o777), b"/etc/passwd")), "symbolic link"),
        (packed((of_kind("pipe", stat.S_IFIFO | 0o777), b"")), "a device or a pipe"),
        (encrypted(packed(("x", b"x"))), "encrypted"),
        (packed(("x", bytes(2**21))), r"times its size; the limit is 100 \(ingest.zip_ratio\)"),
        (packed((of_kind("x", 0o644), b"some text")).replace(b"some", b"none"), "damaged"),
    ],
)
def test_members_refused_alone(content: bytes, rule: str, tmp_path: Path) -> None:
    with SafeZip(content, LIMITS) as container:
        (name,) = container.names()
        with pytest.raises(DocumentError, match=rule):
            container.read(name)
    if rule == "damaged":
        return  # the library that reads the member finds out
    path = tmp_path / "a.docx"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=rule):
        SafeZip(path, LIMITS).check()


def test_entities_in_a_part_refuse_the_container(tmp_path: Path) -> None:
    hostile = b"<!-- %b --><!DOCTYPE r [<!ENTITY x 'y'>]><r/>" % (b"x" * 99_999)
    path = tmp_path / "a.docx"
    path.write_bytes(packed(("a.xml", b"<r/>"), ("word/document.xml", hostile)))
    with pytest.raises(DocumentError, match="declares entities"):
        SafeZip(path, LIMITS).check()


def test_a_member_gives_no_more_than_it_claims() -> None:
    content = packed(("x", bytes(3 * 2**20 // 2)))
    at = content.rindex(b"PK\x01\x02") + 24
    with SafeZip(content[:at] + struct.pack("<I", 1000) + content[at + 4 :], LIMITS) as container:
        with pytest.raises(DocumentError, match="damaged"):
            container.read("x")


def test_nested_containers_share_a_budget() -> None:
    budget = ZipBudget(LIMITS)
    noise = bytes(range(256)) * 4096
    content = packed(("a", noise), ("b", noise), ("c", noise))
    with SafeZip(content, LIMITS, budget) as first:
        for name in first.names() * 2:
            first.read(name)
    with pytest.raises(DocumentError, match="zip_total_mb"):
        SafeZip(content, LIMITS, budget)


def test_of_equal_names_the_last_is_read() -> None:
    with SafeZip(packed(("a", b"1"), ("a", b"2")), LIMITS) as container:
        assert (container.names(), container.find_repeated()) == (["a"], ["a"])
        assert container.read("a") == b"2"


@given(at=st.integers(0, 400), value=st.integers(0, 255))
def test_damage_is_always_a_document_error(at: int, value: int) -> None:
    content = bytearray(packed(("a.txt", b"abc" * 50), ("b/c.txt", bytes(range(200)))))
    content[at % len(content)] = value
    try:
        with SafeZip(bytes(content), LIMITS) as container:
            for name in container.names():
                container.read(name)
    except DocumentError as error:
        assert "\n" not in error.rule


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
    for read, hostile in ((parse_xml, data), (check_xml, [data])):
        with pytest.raises(DocumentError, match="declares entities"):
            read(hostile)


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
