"""What the first bytes of a file say it is, whatever its name says."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

_PDF = b"%PDF-"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_RTF = b"{\\rtf"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_KINDS = (
    (_PDF, "a PDF"),
    (_ZIP[0], "a ZIP container"),
    (_ZIP[1], "an empty ZIP container"),
    (_OLE, "an old Microsoft Office file"),
    (b"\x89PNG", "a PNG image"),
    (b"GIF8", "a GIF image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"BM", "a BMP image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"\x1f\x8b", "a gzip file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file"),
    (b"\xfd7zXZ\x00", "an XZ file"),
    (b"BZh", "a bzip2 file"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x80\x02", "a pickle"),
    (b"\x80\x03", "a pickle"),
    (b"\x80\x04", "a pickle"),
    (b"\x80\x05", "a pickle"),
)
# Two letters of text may begin a text file too.
_TEXTLIKE = (b"BM", b"MZ", b"BZh", _RTF)
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html[\s>])", re.I | re.S
)
_HEAD = 4096
_OFFICE = {"word/": ".docx", "ppt/": ".pptx", "xl/": ".xlsx"}
_MIMETYPES = {
    b"application/epub+zip": ".epub",
    b"application/vnd.oasis.opendocument.text": ".odt",
    b"application/vnd.oasis.opendocument.spreadsheet": ".ods",
    b"application/vnd.oasis.opendocument.presentation": ".odp",
}


def head_of(path: Path) -> bytes:
    """Return the first 4 KB of a file."""
    with path.open("rb") as handle:
        return handle.read(_HEAD)


def is_binary(head: bytes) -> bool:
    """Tell whether content begins as that of a format that is no text does."""
    return any(head.startswith(magic) for magic, _ in _KINDS if magic not in _TEXTLIKE)


def kind_of(head: bytes) -> str:
    """Say in words what content begins like ("a PNG image"), or ""."""
    for magic, name in _KINDS:
        if head.startswith(magic) and (magic not in _TEXTLIKE or b"\x00" in head[:64]):
            return name
    return ""


def suffix_of_content(head: bytes, path: Path) -> str | None:
    """Return the usual extension of content that cannot be mistaken, or None."""
    if head.startswith(_PDF):
        return ".pdf"
    if head.startswith(_RTF):
        return ".rtf"
    if head.startswith(_ZIP[0]):
        return _container_suffix(path)
    return ".html" if _HTML.match(head) else None


def _container_suffix(path: Path) -> str | None:
    """Tell the containers apart by what their standards put into them."""
    try:
        with zipfile.ZipFile(path) as container:
            names = container.namelist()
            if "mimetype" in names and container.getinfo("mimetype").file_size < 200:
                return _MIMETYPES.get(container.read("mimetype").strip())
    except Exception:  # damaged: the loader that the name asks for says how
        return None
    if "[Content_Types].xml" not in names:
        return None  # an archive, or a damaged document: the name must tell
    for folder, suffix in _OFFICE.items():
        if any(name.startswith(folder) for name in names):
            return suffix
    return None
