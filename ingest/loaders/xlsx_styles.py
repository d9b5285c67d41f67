"""Workbooks whose looks openpyxl cannot read: only the formats of numbers matter here."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from ingest.loaders.web.xml_tree import attribute, child, children, parse_xml

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PLAIN = (
    '<fonts count="1"><font/></fonts><fills count="1"><fill><patternFill/></fill></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
)
_STYLES = re.compile(r"xl/[\w.-]*styles[\w.-]*\.xml", re.I)


def without_looks(source: Path | BytesIO) -> BytesIO:
    """Return the workbook with nothing in its styles but what makes a number a date."""
    out = BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, _bare(part) if _STYLES.fullmatch(name) else part)
    return out


def _each(root: Element, group: str, name: str) -> list[Element]:
    found = child(root, group)
    return [] if found is None else list(children(found, name))


def _bare(styles: bytes) -> bytes:
    root = parse_xml(styles)
    formats = "".join(
        f"<numFmt numFmtId={quoteattr(attribute(one, 'numFmtId'))}"
        f" formatCode={quoteattr(attribute(one, 'formatCode'))}/>"
        for one in _each(root, "numFmts", "numFmt")
        if attribute(one, "numFmtId").isdecimal()
    )
    cells = "".join(
        f'<xf numFmtId="{number if number.isdecimal() else 0}" applyNumberFormat="1"/>'
        for one in _each(root, "cellXfs", "xf")
        for number in [attribute(one, "numFmtId")]
    )
    numbers = f"<numFmts>{formats}</numFmts>" if formats else ""
    text = f'<styleSheet xmlns="{_MAIN}">{numbers}{_PLAIN}<cellXfs>{cells}</cellXfs></styleSheet>'
    return text.encode()
