"""Which module reads which format; a module is imported with the first file of its format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from ingest.loaders.limits import LoadLimits
from ingest.types import LoadFailure, ParsedDocument

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
