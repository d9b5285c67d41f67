"""Which module reads which format, by the name of a file and by its first bytes."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePath

from core.errors import CallerError, DocumentError
from ingest.types import Loaded

_PICKLE = "a pickle runs code when it is opened, so that it never is; give the text it holds"
ARCHIVE = "an archive of this kind is not opened; pack the files as ZIP"
_REFUSED = {
    **dict.fromkeys((".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth", ".ckpt"), _PICKLE),
    **dict.fromkeys((".npy", ".npz"), "a NumPy array may hold a pickle; give a CSV"),
    **dict.fromkeys((".rar", ".7z", ".tar", ".tbz2", ".txz"), ARCHIVE),
}


_ADVICE = {
    ".wpd": "save it as DOCX",
    ".wps": "save it as DOCX",
    ".pages": "export it as DOCX or PDF",
    ".key": "export it as PPTX or PDF",
    ".numbers": "export it as XLSX or CSV",
    ".xlsb": "save it as XLSX",
    ".djvu": "convert it to PDF with a text layer",
    ".djv": "convert it to PDF with a text layer",
    ".ps": "convert it to PDF",
    ".xps": "convert it to PDF",
    ".mobi": "convert it to EPUB",
    ".azw": "convert it to EPUB",
    ".azw3": "convert it to EPUB",
    ".chm": "convert it to HTML",
    ".pst": "export its messages as EML",
    ".mdb": "export its tables as CSV",
    ".accdb": "export its tables as CSV",
    ".sav": "export it as CSV",
    ".heic": "save it as JPEG or PNG",
}


def suffix_of(name: str) -> str:
    """Return the lower-case extension, with the one before it for a .gz."""
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    if suffixes[-1:] == [".gz"]:
        return "".join(suffixes[-2:])
    return suffixes[-1] if suffixes else ""


def format_of(name: str) -> str | None:
    """Return the loader's name for a file name, or None."""
    return _BY_SUFFIX.get(suffix_of(name))


def is_sought(name: str) -> bool:
    """Tell whether a file of this name is read where it is found, in a folder or an archive."""
    found = format_of(name)
    return found is not None and not FORMATS[found].named


def refusal(name: str) -> str:
    """Say why a file of this name cannot be read and what to do instead."""
    suffix = suffix_of(name)
    if reason := _REFUSED.get(suffix):
        return f"format {suffix} is not read: {reason}"
    if advice := _ADVICE.get(suffix):
        return f"format {suffix} is not read; {advice}"
    shown = suffix or "without an extension"
    return f"format {shown} is not supported; known formats: {known_formats()}"


NAME_BYTES = 200  # of a file's name: file systems take 255, the rest is room for suffixes
PATH_BYTES = 800  # of a name with its folders; chosen


def checked_file_name(name: str) -> str:
    """Return the name of what is sent when it is a plain one of a known format, or say why not."""
    with suppress(UnicodeEncodeError):
        if len(name.encode()) <= PATH_BYTES and all(map(_is_plain, name.split("/"))):
            if format_of(name) is None:
                raise DocumentError(refusal(name), value=name)
            return name
    rule = f"a file and its folders, with / between, have names of 1 to {NAME_BYTES} bytes"
    raise CallerError(
        f"{rule} ({PATH_BYTES} in all), without \\ and :, and do not begin with a dot",
        value=name,
        hint="rename the file",
    )


def _is_plain(part: str) -> bool:
    plain = part.isprintable() and not set(part) & set("\\:") and not part.startswith(".")
    return plain and 0 < len(part.encode()) <= NAME_BYTES and part == part.strip()


def known_formats() -> str:
    """Return the extensions that are read, for a message."""
    return " ".join(sorted(name for name, kind in _BY_SUFFIX.items() if kind != "old_office"))


def is_unsupported_document(name: str) -> bool:
    """Tell whether the name is that of a document no loader reads."""
    suffix = suffix_of(name)
    return suffix in _ADVICE or suffix in _REFUSED


@dataclass(frozen=True)
class Format:
    """Say how files of one format are read.

    `module` has the `function` (path, relative, limits); with `text_share` above 0 it takes
    (relative, text) instead, and a file may have that many characters for each one of
    `max_characters`: HTML and notebooks (images as base64) are mostly not text. `records` marks
    formats read as a stream, whose files may be as large as `max_records_mb`, `writes` those whose
    loader puts parts of a file into temporary ones, `named` those whose files are documents only
    when somebody names one: every folder of HTML is full of pictures.
    """

    module: str
    suffixes: tuple[str, ...]
    function: str = "load"
    text_share: int = 0
    records: bool = False
    writes: bool = False
    named: bool = False

    def loader(self) -> Callable[..., Iterator[Loaded]]:
        """Import the module and return its function."""
        module = import_module(f"ingest.loaders.{self.module}")
        found: Callable[..., Iterator[Loaded]] = getattr(module, self.function)
        return found


DOCSET = ".docset"
FORMATS = {
    "markdown": Format("text.markdown", (".md", ".markdown", ".mdx"), text_share=2),
    "text": Format("text.plain_text", (".txt", ".text", ".rst", ".org", ".log"), text_share=2),
    "python": Format("text.docstrings", (".py", ".pyi"), text_share=20),
    "html": Format("web.html", (".html", ".htm", ".xhtml"), text_share=20),
    "notebook": Format("text.notebook", (".ipynb",), text_share=20),
    "pdf": Format("pdf", (".pdf",)),
    "scan": Format("image", (".tif", ".tiff")),
    "image": Format("image", (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp"), named=True),
    "docx": Format("office.docx", (".docx", ".docm", ".dotx", ".dotm")),
    "pptx": Format("office.pptx", (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm")),
    "xlsx": Format("xlsx", (".xlsx", ".xlsm", ".xltx")),
    "xls": Format("xlsx", (".xls",), "load_xls"),
    "odf": Format("office.odf", (".odt", ".ods", ".odp", ".ott")),
    "epub": Format("web.epub", (".epub",)),
    "rtf": Format("office.rtf", (".rtf",)),
    "old_office": Format("office.ooxml", (".doc", ".dot", ".ppt", ".pps"), "load_old"),
    "mail": Format("mail", (".eml",), writes=True),
    "mbox": Format("mail", (".mbox",), "load_mbox", writes=True),
    "msg": Format("mail", (".msg",), "load_msg", writes=True),
    "marc": Format("marc", (".mrc", ".marc", ".dat", ".iso"), records=True),
    "xml": Format("web.xml_file", (".xml", ".fb2")),
    "json": Format("records.json_file", (".json",)),
    "csv": Format("records.csv_file", (".csv", ".tsv"), records=True),
    "jsonl": Format(
        "records.json_file",
        (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
        "load_lines",
        records=True,
    ),
    "archive": Format("archive", (".zip",), records=True, writes=True),
    "docset": Format("web.docset", (DOCSET, ".tgz", ".tar.gz"), records=True, writes=True),
}
_BY_SUFFIX = {suffix: name for name, one in FORMATS.items() for suffix in one.suffixes}


DOCSET_INDEX = "Contents/Resources/docSet.dsidx"
DOCSET_PROPERTIES = ("Contents/Info.plist", "meta.json")
DOCSET_PAGES = "Contents/Resources/Documents/"
_DOCSET = re.compile(rf"(?:[^/]+/)*?[^/]+{re.escape(DOCSET)}(?=/)", re.IGNORECASE)
_PAGE = re.compile(rf"{DOCSET_PAGES}.*\.x?html?", re.IGNORECASE | re.DOTALL)


def docset_of(name: str) -> str:
    """Return the docset, a folder, that a member of an archive is in, "" for none."""
    match = _DOCSET.match(name)
    return match[0] if match else ""


def is_docset_part(name: str) -> bool:
    """Tell whether a file of a docset, named from there on, is read: a page, index, properties."""
    return name in (DOCSET_INDEX, *DOCSET_PROPERTIES) or _PAGE.fullmatch(name) is not None


def source_files(path: Path) -> list[Path]:
    """Return what is read of a source: the file itself, or the files of a docset, links excepted.

    Raises OSError where a folder cannot be listed.
    """
    if not path.is_dir():
        return [path]
    found: list[str] = []
    waiting = [path]
    while waiting:
        for entry in waiting.pop().iterdir():
            name = entry.relative_to(path).as_posix()
            if entry.is_symlink():
                continue
            if entry.is_dir():
                waiting.append(entry)
            elif is_docset_part(name) and entry.is_file():
                found.append(name)
    return [path / name for name in sorted(found)]


_PDF = b"%PDF-"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_RTF = b"{\\rtf"
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_KINDS = (
    (_PDF, "a PDF"),
    (_ZIP[0], "a ZIP container"),
    (_ZIP[1], "an empty ZIP container"),
    (OLE_MAGIC, "an old Microsoft Office file"),
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
_HEAD = 4096  # bytes; chosen, not measured
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
