"""Which module reads which format; a module is imported with the first file of its format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePath

from ingest.loaders.limits import LoadLimits
from ingest.types import LoadFailure, ParsedDocument

_PICKLE = "a pickle runs code when it is opened, so that it never is; give the text it holds"
_ARCHIVE = "an archive of this kind is not opened; pack the files as ZIP"
_REASONS = {
    **dict.fromkeys((".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth", ".ckpt"), _PICKLE),
    **dict.fromkeys((".npy", ".npz"), "a NumPy array may hold a pickle; give a CSV"),
    **dict.fromkeys((".rar", ".7z", ".tar", ".tgz", ".tar.gz", ".tbz2", ".txz"), _ARCHIVE),
}


def refused(suffix: str) -> str:
    """Return why files with this extension are never opened, or ""."""
    return _REASONS.get(suffix, "")


_FORMATS = {
    "markdown": (".md", ".markdown", ".mdx"),
    "text": (".txt", ".text", ".rst", ".org", ".log"),
    "html": (".html", ".htm", ".xhtml"),
    "pdf": (".pdf",),
    "docx": (".docx", ".docm", ".dotx", ".dotm"),
    "pptx": (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"),
    "xlsx": (".xlsx", ".xlsm", ".xltx"),
    "xls": (".xls",),
    "odf": (".odt", ".ods", ".odp", ".ott"),
    "epub": (".epub",),
    "rtf": (".rtf",),
    "old_office": (".doc", ".dot", ".ppt", ".pps"),
    "mail": (".eml",),
    "mbox": (".mbox",),
    "msg": (".msg",),
    "marc": (".mrc", ".marc", ".dat", ".iso"),
    "xml": (".xml", ".fb2"),
    "json": (".json",),
    "csv": (".csv", ".tsv"),
    "jsonl": (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
    "notebook": (".ipynb",),
    "archive": (".zip",),
}
_BY_SUFFIX = {suffix: name for name, suffixes in _FORMATS.items() for suffix in suffixes}

_OCR = "it is an image; OCR it to a PDF or a text"
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
    ".tif": _OCR,
    ".tiff": _OCR,
}
# Images are documents only when somebody names one: every folder of HTML is full of them.
_IMAGES = {suffix: _OCR for suffix in (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".heic")}


def suffix_of(name: str) -> str:
    """Return the lower-case extension, with the one before it for a .gz."""
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    if suffixes[-1:] == [".gz"]:
        return "".join(suffixes[-2:])
    return suffixes[-1] if suffixes else ""


def format_of(name: str) -> str | None:
    """Return the loader's name for a file name, or None."""
    return _BY_SUFFIX.get(suffix_of(name))


def refusal(name: str) -> str:
    """Say why a file of this name cannot be read and what to do instead."""
    suffix = suffix_of(name)
    if reason := refused(suffix):
        return f"format {suffix} is not read: {reason}"
    if advice := {**_ADVICE, **_IMAGES}.get(suffix):
        return f"format {suffix} is not read; {advice}"
    shown = suffix or "without an extension"
    return f"format {shown} is not supported; known formats: {known_formats()}"


def known_formats() -> str:
    """Return the extensions that are read, for a message."""
    return " ".join(sorted(name for name, kind in _BY_SUFFIX.items() if kind != "old_office"))


def is_unsupported_document(name: str) -> bool:
    """Tell whether the name is that of a document no loader reads."""
    suffix = suffix_of(name)
    return suffix in _ADVICE or bool(refused(suffix))


Loaded = ParsedDocument | LoadFailure
FileLoader = Callable[[Path, str, LoadLimits], Iterator[Loaded]]
TextLoader = Callable[[str, str], Iterator[Loaded]]


@dataclass(frozen=True)
class Format:
    """Say how files of one format are read.

    `module` has `load(path, relative, limits)`; with `text_share` above 0 it has `load(relative,
    text)` instead, and a file may have that many characters for each one of `max_characters`: HTML
    and notebooks (images as base64) are mostly not text. `records` marks formats read as a stream,
    whose files may be as large as `max_records_mb`, `writes` those whose loader puts parts of a
    file into temporary ones.
    """

    module: str
    text_share: int = 0
    records: bool = False
    writes: bool = False

    def file_loader(self) -> FileLoader:
        """Import the module and return its `load(path, relative, limits)`."""
        loader: FileLoader = import_module(f"ingest.loaders.{self.module}").load
        return loader

    def text_loader(self) -> TextLoader:
        """Import the module and return its `load(relative, text)`."""
        loader: TextLoader = import_module(f"ingest.loaders.{self.module}").load
        return loader


FORMATS = {
    "markdown": Format("text.markdown", text_share=2),
    "text": Format("text.plain_text", text_share=2),
    "html": Format("web.html", text_share=20),
    "notebook": Format("text.notebook", text_share=20),
    "pdf": Format("pdf"),
    "docx": Format("office.docx"),
    "pptx": Format("office.pptx"),
    "xlsx": Format("xlsx"),
    "xls": Format("xls"),
    "odf": Format("office.odf"),
    "epub": Format("web.epub"),
    "rtf": Format("office.rtf"),
    "old_office": Format("office.old_office"),
    "mail": Format("mail.eml", writes=True),
    "mbox": Format("mail.mbox", writes=True),
    "msg": Format("mail.msg", writes=True),
    "marc": Format("marc.marc", records=True),
    "xml": Format("web.xml_file"),
    "json": Format("records.json_file"),
    "csv": Format("records.csv_file", records=True),
    "jsonl": Format("records.jsonl_file", records=True),
    "archive": Format("archive", records=True, writes=True),
}
