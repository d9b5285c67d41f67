"""Which file names are read, which are refused with advice, and which are none of our business."""

from __future__ import annotations

from pathlib import PurePath

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
