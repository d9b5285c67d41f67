"""Small OpenDocument files, written by hand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{kind}:1.0"'
    for name, kind in (
        ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"),
        ("presentation", "presentation"), ("meta", "meta"), ("manifest", "manifest"),
    )
) + ' xmlns:dc="http://purl.org/dc/elements/1.1/"'  # fmt: skip


def odf(kind: str, body: str, meta: str = "", manifest: str = "") -> bytes:
    """Return an OpenDocument file with this XML in its body ("text", "presentation", …)."""
    out = io.BytesIO()
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    with zipfile.ZipFile(out, "w") as container:
        container.writestr("mimetype", mimetype)
        container.writestr(
            "content.xml",
            f"<office:document-content {_NAMES}><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
        )
        container.writestr(
            "meta.xml",
            f"<office:document-meta {_NAMES}><office:meta>{meta}</office:meta>"
            "</office:document-meta>",
        )
        container.writestr(
            "META-INF/manifest.xml",
            f"<manifest:manifest {_NAMES}>{manifest}</manifest:manifest>",
        )
    return out.getvalue()


def ods(sheets: Mapping[str, Sequence[Sequence[str | float]]], repeated: int = 1) -> bytes:
    """Return a spreadsheet; each row stands there as repeated so often."""
    tables = []
    for name, rows in sheets.items():
        lines = []
        for row in rows:
            cells = "".join(_cell(value) for value in row)
            lines.append(
                f'<table:table-row table:number-rows-repeated="{repeated}">{cells}'
                '<table:table-cell table:number-columns-repeated="16000"/></table:table-row>'
            )
        tables.append(f'<table:table table:name="{name}">{"".join(lines)}</table:table>')
    return odf("spreadsheet", "".join(tables))


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return (
            '<table:table-cell office:value-type="string">'
            f"<text:p>{escape(value)}</text:p></table:table-cell>"
        )
    return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
