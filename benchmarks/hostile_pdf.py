"""Hostile PDF files: loops, bombs, lies about counts, things that would call others."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

MB = 2**20
_CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
_PAGES = b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>"
_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
_PAGE = (
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
    b" /Resources << /Font << /F1 5 0 R >> /XObject << /X 6 0 R >> >> %s >>"
)
_FORM = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>"
_IMAGE = b"/Type /XObject /Subtype /Image /BitsPerComponent 8 /ColorSpace /DeviceRGB"
_TEXT = b"BT /F1 12 Tf 50 750 Td (text) Tj ET"


def pdf(objects: list[bytes], trailer: bytes = b"", start: int | None = None) -> bytes:
    """Return a PDF file of the objects, numbered from 1."""
    out = b"%PDF-1.5\n"
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R %s >>\n" % (len(objects) + 1, trailer)
    return out + b"startxref\n%d\n%%%%EOF" % (table if start is None else start)


def stream(content: bytes, extra: bytes = b"") -> bytes:
    """Return a stream object, packed."""
    packed = zlib.compress(content)
    return b"<< /Length %d /Filter /FlateDecode %s >> stream\n%s\nendstream" % (
        len(packed), extra, packed
    )  # fmt: skip


def simple(
    *, page: bytes = b"", contents: bytes = b"", form: bytes = b"<<>>", catalog: bytes = b"",
    pages: bytes = _PAGES, trailer: bytes = b"",
) -> bytes:  # fmt: skip
    """Return a PDF of one page with something changed."""
    objects = [
        catalog or _CATALOG, pages, _PAGE % page, contents or stream(_TEXT), _FONT, form,
    ]  # fmt: skip
    return pdf(objects, trailer)


def hostile(address: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files, each named for what it does."""
    for name, content in (loops(address) | bombs()).items():
        yield f"pdf-{name}.pdf", content


def bombs() -> dict[str, bytes]:
    """Return files that are far larger than they look."""
    bomb = zlib.compress(zlib.compress(bytes(75 * MB)))
    return {
        "million-pages": simple(
            pages=b"<< /Type /Pages /Count 1000000 /Kids [%s] >>" % (b"3 0 R " * 1_000_000)
        ),
        "form-loops": simple(contents=stream(b"/X Do " * 999), form=stream(b"/X Do " * 999, _FORM)),
        "stream-75mb": simple(contents=stream(bytes(75 * MB))),
        "stream-500mb": simple(contents=stream(b"(a) Tj " * (75 * MB // 7))),
        "stream-twice": simple(
            contents=b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >> stream\n%s\nendstream"
            % (len(bomb), bomb)
        ),
        "filters": simple(
            contents=b"<< /Length 9 /Filter [%s] >> stream\nxxxxxxxxx\nendstream"
            % (b"/ASCIIHexDecode " * 50_000)
        ),
        "image-huge": simple(
            contents=stream(b"/X Do " + _TEXT),
            form=stream(bytes(MB), _IMAGE + b" /Width 100000 /Height 100000"),
        ),
        "only-header": b"%PDF-1.7\n" + b"%\n" * 500_000,
        "objects": pdf([_CATALOG, _PAGES, *([b"<< >>"] * 200_000)]),
        "ends": b"%PDF-1.4\n" + b"endobj endstream %%EOF startxref 0 " * 50_000,
    }


def loops(address: str) -> dict[str, bytes]:
    """Return small files that go round in circles, lie, or would call `address`."""
    return {
        "kids-loop": simple(pages=b"<< /Type /Pages /Count 1 /Kids [2 0 R] >>"),
        "kids-mutual": simple(page=b"/Type /Pages /Kids [2 0 R]"),
        "count-lies": simple(pages=b"<< /Type /Pages /Count 2147483647 /Kids [3 0 R] >>"),
        "count-negative": simple(pages=b"<< /Type /Pages /Count -5 /Kids [3 0 R] >>"),
        "parent-loop": simple(page=b"/Parent 3 0 R"),
        "form-loop": simple(contents=stream(b"/X Do " + _TEXT), form=stream(b"/X Do", _FORM)),
        "deep-arrays": simple(page=b"/A " + b"[" * 100_000 + b"]" * 100_000),
        "deep-dictionaries": simple(page=b"/A " + b"<</A " * 50_000 + b">>" * 50_000),
        "deep-brackets": simple(contents=stream(b"(" * 500_000)),
        "length-loop": simple(contents=b"<< /Length 4 0 R >> stream\nx\nendstream"),
        "length-lies": simple(contents=b"<< /Length 99999999999 >> stream\nx\nendstream"),
        "previous-loop": simple(trailer=b"/Prev 9"),
        "box-huge": simple(page=b"/MediaBox [0 0 1e38 1e38]"),
        "box-odd": simple(page=b"/MediaBox [nan (x) /y -1]"),
        "rotate": simple(page=b"/Rotate 99999999999999999999"),
        "launch": simple(catalog=_CATALOG[:-2] + b"/OpenAction << /S /Launch /F (/bin/sh) >> >>"),
        "script": simple(
            catalog=_CATALOG[:-2]
            + b"/OpenAction << /S /JavaScript /JS (app.launchURL('%s/js')) >> >>" % address.encode()
        ),
        "call": simple(
            catalog=_CATALOG[:-2] + b"/OpenAction << /S /URI /URI (%s/uri) >> >>" % address.encode()
        ),
        "form-submit": simple(
            page=b"/AA << /O << /S /SubmitForm /F (%s/submit) >> >>" % address.encode()
        ),
        "external-stream": simple(
            contents=b"<< /Length 0 /F << /FS /URL /F (%s/f) >> >> stream\n\nendstream"
            % address.encode()
        ),
        "font-loop": simple(
            page=b"/Resources << /Font << /F1 << /DescendantFonts [3 0 R] >> >> >>"
        ),
        "outlines-loop": simple(
            catalog=_CATALOG[:-2] + b"/Outlines 1 0 R /First 1 0 R /Next 1 0 R >>"
        ),
        "names-loop": simple(catalog=_CATALOG[:-2] + b"/Names << /Dests 1 0 R /Kids [1 0 R] >> >>"),
        "no-objects": pdf([]),
        "start-loop": pdf([_CATALOG, _PAGES], start=9),
        "start-far": pdf([_CATALOG, _PAGES], start=2**62),
        "object-stream-loop": pdf(
            [_CATALOG, stream(b"1 0 2 0 <<>> <<>>", b"/Type /ObjStm /N 2 /First 8 /Extends 2 0 R")]
        ),
    }
