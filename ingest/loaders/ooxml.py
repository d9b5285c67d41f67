"""What DOCX, PPTX and XLSX have in common: a container that is checked before it is opened."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.limits import LoadLimits
from ingest.loaders.ole import is_ole, kind_of
from ingest.loaders.zip_safe import SafeZip

_OLD = {"doc": ".doc", "ppt": ".ppt", "xls": ".xls"}
_RELATIONS = "_rels/.rels"
_STRICT_SIGN = b"http://purl.oclc.org/ooxml/"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_NOBODY = {"python-docx", "openpyxl", "python-pptx"}


def check(path: Path, name: str, limits: LoadLimits, main_part: str) -> None:
    """Raise DocumentError unless the file is a harmless container of this format.

    `main_part` is a folder that such a container has: "word", "ppt", "xl".
    """
    if is_ole(path):
        kind = kind_of(path)
        if kind in _OLD:
            raise DocumentError(
                f"an old {_OLD[kind]} file under the name of a {name}; save it again as {name}"
            )
        raise DocumentError(
            f"the {name} is password-protected; save it again without a password"
            if kind == "encrypted"
            else f"the {name} is no Office file but another OLE container"
        )
    with SafeZip(path, limits) as container:
        container.check()
        names = container.names()
        if not any(part.lower().startswith(f"{main_part}/") for part in names):
            raise DocumentError(f"a ZIP container that is no {name}: it has no folder {main_part}/")


def opened(path: Path) -> Path | BytesIO:
    """Return what the libraries can open: they know none of the names of "Strict Open XML"."""
    with zipfile.ZipFile(path) as source:
        if _RELATIONS not in source.namelist() or _STRICT_SIGN not in source.read(_RELATIONS):
            return path
        out = BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
            for name in source.namelist():
                part = source.read(name)
                if name.lower().endswith((".xml", ".rels")):
                    part = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", part)
                target.writestr(name, part)
    return out


def described(properties: Any) -> dict[str, Any]:  # noqa: ANN401 (of three libraries)
    """Return the metadata in the property sheet of a document; a damaged sheet gives none."""
    try:
        found = {
            "title": getattr(properties, "title", ""),
            "authors": getattr(properties, "author", "") or getattr(properties, "creator", ""),
            "keywords": properties.keywords,
            "language": properties.language,
            "version": properties.version,
            "subject": properties.subject,
            "created": properties.created,
            "updated_at": properties.modified,
        }
    except Exception:  # any part of a damaged property sheet; the text is what matters
        return {}
    if found["authors"] in _NOBODY:
        found["authors"] = ""
    return metadata.normalise(found)
