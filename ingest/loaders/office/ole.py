"""What is inside an OLE container; old Word and PowerPoint files, which are not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.formats import OLE_MAGIC, suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.types import ParsedDocument

_STREAMS = {
    "encryptedpackage": "encrypted",
    "worddocument": "doc",
    "workbook": "xls",
    "book": "xls",
    "powerpoint document": "ppt",
    "__properties_version1.0": "msg",
}


def is_ole(path: Path) -> bool:
    """Tell whether a file is an OLE container."""
    with path.open("rb") as handle:
        return handle.read(len(OLE_MAGIC)) == OLE_MAGIC


def kind_of(path: Path) -> str:
    """Return encrypted, doc, xls, ppt, msg, or "" for a container of something else.

    A damaged container is "" too.
    """
    import olefile  # type: ignore[import-untyped]

    try:
        with olefile.OleFileIO(str(path)) as container:
            streams = ["/".join(parts).lower() for parts in container.listdir()]
    except Exception:  # damaged files raise anything
        return ""
    return next((kind for name, kind in _STREAMS.items() if name in streams), "")


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument]:
    """Raise DocumentError: what could be read came to the loader of what the file holds."""
    del path, limits
    suffix = suffix_of(relative)
    target = "PPTX" if suffix in (".ppt", ".pps") else "DOCX"
    raise DocumentError(f"format {suffix} is not read; save it as {target}")
    yield  # a generator, as every loader is
