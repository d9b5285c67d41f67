"""Hostile containers: bombs, traversal, links and entities in ZIP, OOXML, EPUB and ODF."""

from __future__ import annotations

import io
import stat
import struct
import warnings
import zipfile
from collections.abc import Iterator

MB = 2**20
Member = tuple[str | zipfile.ZipInfo, bytes]
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PARTS = {
    "docx": ("word/document.xml", "wordprocessingml.document"),
    "pptx": ("ppt/presentation.xml", "presentationml.presentation"),
    "xlsx": ("xl/workbook.xml", "spreadsheetml.sheet"),
}
_CONTAINER_XML = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
    '<rootfile full-path="c.opf" media-type="application/oebps-package+xml"/></rootfiles>'
    "</container>"
)
_OPF = (
    '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/><manifest><item id="a"'
    ' href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/>'
    "</spine></package>"
)
_XHTML = '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>text</p></body></html>'
_ODF = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text>'
    "<text:p>text</text:p></office:text></office:body></office:document-content>"
)
KINDS = ("zip", "docx", "pptx", "xlsx", "epub", "odt")


def packed(members: list[Member]) -> bytes:
    """Return a ZIP file of the members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of equal names
        for name, content in members:
            made.writestr(name, content)
    return out.getvalue()


def members_of(kind: str, prologue: str = "", inner: str = "") -> list[Member]:
    """Return the least parts of a container; `prologue` stands before its main XML."""
    if kind == "zip":
        return [("a.md", b"# text"), ("b.xml", f"{prologue}<r>{inner}</r>".encode())]
    if kind == "epub":
        return [
            ("mimetype", b"application/epub+zip"),
            ("META-INF/container.xml", _CONTAINER_XML.encode()),
            ("c.opf", (prologue + _OPF).encode()),
            ("a.xhtml", (prologue + _XHTML.replace("text", f"text{inner}")).encode()),
        ]
    if kind == "odt":
        content = prologue + _ODF.replace("text</text:p>", f"text{inner}</text:p>")
        return [
            ("mimetype", b"application/vnd.oasis.opendocument.text"),
            ("content.xml", content.encode()),
        ]
    part, subtype = _PARTS[kind]
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
        f'relationships+xml"/><Override PartName="/{part}" ContentType="application/vnd.'
        f'openxmlformats-officedocument.{subtype}.main+xml"/></Types>'
    )
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{_RELATIONS}/officeDocument" Target="{part}"/>'
        "</Relationships>"
    )
    return [
        ("[Content_Types].xml", types.encode()),
        ("_rels/.rels", relations.encode()),
        (part, (prologue + _main_part(kind, inner)).encode()),
    ]


def _main_part(kind: str, inner: str) -> str:
    if kind == "docx":
        space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        return (
            f'<w:document xmlns:w="{space}"><w:body><w:p><w:r><w:t>text{inner}</w:t></w:r></w:p>'
            "</w:body></w:document>"
        )
    if kind == "pptx":
        space = "http://schemas.openxmlformats.org/presentationml/2006/main"
        return f'<p:presentation xmlns:p="{space}">{inner}</p:presentation>'
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<workbook xmlns="{space}"><sheets>{inner}</sheets></workbook>'


def bombs() -> Iterator[tuple[str, bytes]]:
    """Yield bombs of every kind in every container."""
    zeros = bytes(50 * MB)
    for kind in KINDS:
        parts = members_of(kind)
        yield f"bomb-ratio.{kind}", packed([*parts, ("z.xml", zeros)])
        yield f"bomb-total.{kind}", packed([*parts, *((f"{n}.xml", zeros) for n in range(7))])
        yield f"bomb-entries.{kind}", packed([*parts, *((f"{n}.md", b"") for n in range(10_001))])
        yield (
            f"bomb-overlap.{kind}",
            overlapping(packed([*parts, ("y.xml", b"y"), ("z.xml", b"z")])),
        )
        yield f"bomb-liar.{kind}", understated(packed([*parts, ("z.xml", bytes(5 * MB))]))
        nested = packed([*parts, ("z.xml", zeros)])
        for _ in range(12):
            nested = packed([*parts, (f"in.{kind}", nested), ("in.zip", nested)])
        yield f"bomb-nested.{kind}", nested


def overlapping(content: bytes) -> bytes:
    """Let the last entry of the directory point at the first member."""
    at = content.rindex(b"PK\x01\x02") + 42
    return content[:at] + struct.pack("<I", 0) + content[at + 4 :]


def understated(content: bytes) -> bytes:
    """Let the last entry claim a size of 10 bytes."""
    at = content.rindex(b"PK\x01\x02") + 24
    return content[:at] + struct.pack("<I", 10) + content[at + 4 :]


def bad_names() -> Iterator[tuple[str, bytes]]:
    """Yield containers with names that lead out of them, links, devices and encrypted members."""
    link, pipe = zipfile.ZipInfo("link.md"), zipfile.ZipInfo("pipe.md")
    link.external_attr, pipe.external_attr = (stat.S_IFLNK | 0o777) << 16, stat.S_IFIFO << 16
    members: dict[str, Member] = {
        "parent": ("../../../../tmp/escaped.md", b"escaped"),
        "absolute": ("/tmp/escaped.md", b"escaped"),
        "windows": ("C:\\escaped.md", b"escaped"),
        "backslash": ("..\\..\\escaped.md", b"escaped"),
        "nul": ("esc_ped.md", b"escaped"),
        "long": ("x" * 60_000 + ".md", b"escaped"),
        "controls": ("\x1b[2J\u202eescaped.md", b"escaped"),
        "link": (link, b"/etc/passwd"),
        "pipe": (pipe, b""),
        "twice": ("a.md", b"twice"),
    }
    for kind in KINDS:
        for name, member in members.items():
            content = packed([*members_of(kind), member])
            yield f"name-{name}.{kind}", content.replace(b"esc_ped", b"esc\0ped")


def entities(address: str, secret: str) -> Iterator[tuple[str, bytes]]:
    """Yield XML that reads files, calls `address` or grows, in every container and alone."""
    laughs = "<!DOCTYPE r [<!ENTITY a 'haha'>" + "".join(
        f"<!ENTITY {name} '{f'&{before};' * 10}'>"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    prologues = {
        "laughs": (laughs + "]>", "&i;"),
        "quadratic": (f"<!DOCTYPE r [<!ENTITY x '{'x' * 50_000}'>]>", "&x;" * 20_000),
        "file": (f'<!DOCTYPE r [<!ENTITY x SYSTEM "file://{secret}">]>', "&x;"),
        "call": (f'<!DOCTYPE r [<!ENTITY x SYSTEM "{address}/x">]>', "&x;"),
        "parameter": (f'<!DOCTYPE r [<!ENTITY % x SYSTEM "{address}/p"> %x;]>', ""),
        "dtd": (f'<!DOCTYPE r SYSTEM "{address}/d.dtd">', ""),
    }
    for name, (prologue, inner) in prologues.items():
        for kind in KINDS:
            yield f"entity-{name}.{kind}", packed(members_of(kind, prologue, inner))
        for suffix in ("xml", "fb2", "svg", "xhtml"):
            content = f"{prologue}<r xmlns='http://www.marc21.gov'><p>text {inner}</p></r>"
            yield f"entity-{name}.{suffix}", content.encode()
            declared = "<?xml version='1.0' encoding='utf-16'?>" + content
            yield f"entity-{name}-16.{suffix}", declared.encode("utf-16")
