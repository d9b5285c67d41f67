"""Which file names are read, which are refused with advice, and which are none of our business."""

from __future__ import annotations

from pathlib import PurePath

from ingest.loaders.refused import refused

_FORMATS = {
    "markdown": (".md", ".markdown", ".mdx"),
    "text": (".txt", ".text", ".rst", ".org"),
    "html": (".html", ".htm", ".xhtml"),
    "pdf": (".pdf",),
    "docx": (".docx",),
    "csv": (".csv", ".tsv"),
    "jsonl": (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
    "notebook": (".ipynb",),
    "archive": (".zip",),
}
_BY_SUFFIX = {suffix: name for name, suffixes in _FORMATS.items() for suffix in suffixes}

_CONVERT_TO = {
    ".doc": "DOCX",
    ".rtf": "DOCX",
    ".odt": "DOCX",
    ".pptx": "PDF",
    ".ppt": "PDF",
    ".odp": "PDF",
    ".xlsx": "CSV",
    ".xls": "CSV",
    ".ods": "CSV",
    ".epub": "HTML",
    ".mobi": "HTML",
    ".fb2": "HTML",
    ".djvu": "PDF",
    ".eml": "text",
    ".msg": "text",
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


def refusal(name: str) -> str:
    """Say why a file of this name cannot be read and what to do instead."""
    suffix = suffix_of(name)
    if reason := refused(suffix):
        return f"format {suffix} is not read: {reason}"
    target = _CONVERT_TO.get(suffix)
    if target:
        return f"format {suffix} is not supported yet; convert it to {target}"
    shown = suffix or "without an extension"
    return f"format {shown} is not supported; known formats: {known_formats()}"


def known_formats() -> str:
    """Return the extensions that are read, for a message."""
    return " ".join(sorted(_BY_SUFFIX))


def is_unsupported_document(name: str) -> bool:
    """Tell whether the name is that of a document no loader reads."""
    suffix = suffix_of(name)
    return suffix in _CONVERT_TO or bool(refused(suffix))
