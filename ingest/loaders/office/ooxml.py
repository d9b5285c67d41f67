"""What DOCX, PPTX and XLSX have in common, and the old formats: containers that are checked."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.formats import OLE_MAGIC, head_of, suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.loaders.web.xml_tree import attribute, child, children, descendants, words
from ingest.loaders.zip_safe import SafeZip
from ingest.types import ParsedDocument

_RELATIONS = "_rels/.rels"
_TYPES = "[Content_Types].xml"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_OPEN = rb"application/vnd.openxmlformats-officedocument."
_KINDS = (
    (
        re.compile(
            rb"application/vnd\.(?:openxmlformats-officedocument\.wordprocessingml\.template"
            rb"|ms-word\.[\w.]+)\.main\+xml"
        ),
        _OPEN + rb"wordprocessingml.document.main+xml",
    ),
    (
        re.compile(
            rb"application/vnd\.(?:openxmlformats-officedocument\.presentationml\.(?:slideshow"
            rb"|template)|ms-powerpoint\.[\w.]+)\.main\+xml"
        ),
        _OPEN + rb"presentationml.presentation.main+xml",
    ),
)
_STREAMS = {
    "encryptedpackage": "encrypted",
    "worddocument": "doc",
    "workbook": "xls",
    "book": "xls",
    "powerpoint document": "ppt",
}
_LIBRARY_NAMES = {"python-docx", "openpyxl", "python-pptx"}


def is_ole(path: Path) -> bool:
    """Tell whether a file is an OLE container."""
    return head_of(path).startswith(OLE_MAGIC)


def kind_of(path: Path) -> str:
    """Return encrypted, doc, xls, ppt, or "" for a container of something else."""
    import olefile  # type: ignore[import-untyped]

    try:
        with olefile.OleFileIO(str(path)) as container:
            streams = ["/".join(parts).lower() for parts in container.listdir()]
    except Exception:  # damaged files raise anything
        return ""
    return next((kind for name, kind in _STREAMS.items() if name in streams), "")


def check(path: Path, name: str, limits: LoadLimits, main_part: str) -> None:
    """Raise DocumentError unless the file is a harmless container of this format.

    `main_part` is a folder that such a container has: "word", "ppt", "xl".
    """
    if is_ole(path):
        kind = kind_of(path)
        if kind in ("doc", "ppt", "xls"):
            raise DocumentError(
                f"an old .{kind} file under the name of a {name}; save it again as {name}"
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


def load_old(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument]:
    """Raise DocumentError: what could be read came to the loader of what the file holds."""
    del path, limits
    suffix = suffix_of(relative)
    target = "PPTX" if suffix in (".ppt", ".pps") else "DOCX"
    raise DocumentError(f"format {suffix} is not read; save it as {target}")
    yield  # a generator, as every loader is


def make_readable(path: Path) -> str | BytesIO:
    """Return the file in a form that the libraries can open.

    They know neither the names of "Strict Open XML" nor the types of templates, slide shows and
    files with macros, which are otherwise the same.
    """
    with zipfile.ZipFile(path) as source:
        names = source.namelist()
        heads = [source.read(name) for name in (_RELATIONS, _TYPES) if name in names]
        if all(_rename_types(head) == head for head in heads):
            return str(path)
        out = BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
            for name in names:
                part = source.read(name)
                is_xml = name.lower().endswith((".xml", ".rels"))
                target.writestr(name, _rename_types(part) if is_xml else part)
    return out


def _rename_types(part: bytes) -> bytes:
    part = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", part)
    for kind, main in _KINDS:
        part = kind.sub(main, part)
    return part


def read_properties(properties: Any) -> dict[str, Any]:  # noqa: ANN401 (of three libraries)
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
    if found["authors"] in _LIBRARY_NAMES:
        found["authors"] = ""
    return metadata.normalise(found)


# Elements of lxml and of the standard library.
Element = Any


def chart_rows(root: Element) -> list[list[str]]:
    """Return a row per category or point of a chart of any kind, its title first."""
    title = "".join(e.text or "" for e in _all(child(root, "chart", "title"), "t"))
    rows = [[title]] if title.strip() else []
    for plot in root.iter():
        if series := list(children(plot, "ser")):
            rows += _plot_rows(series)
    return rows


def _plot_rows(series: list[Element]) -> list[list[str]]:
    names = [" ".join(_points(child(one, "tx")).values()) for one in series]
    values = [_points(_first(one, "val", "yVal")) for one in series]
    labels = _points(_first(series[0], "cat", "xVal"))
    places = sorted({at for found in [labels, *values] for at in found})
    cells = ([labels.get(at, str(at + 1)), *(v.get(at, "") for v in values)] for at in places)
    return [["", *names], *cells]


def _first(series: Element, *names: str) -> Element | None:
    return next((found for name in names if (found := child(series, name)) is not None), None)


def _all(holder: Element | None, name: str) -> list[Element]:
    return [] if holder is None else list(descendants(holder, name))


def _points(holder: Element | None) -> dict[int, str]:
    """Return the saved values of a reference by their place; a literal one has place 0."""
    literal = child(holder, "v")
    found = {} if literal is None else {0: literal.text or ""}
    from openpyxl.styles.numbers import is_date_format  # type: ignore[import-untyped]

    is_date = any(is_date_format(words(e)) for e in _all(holder, "formatCode"))
    for point in _all(holder, "pt"):
        at, value = attribute(point, "idx"), child(point, "v")
        if value is not None and at.isdecimal():
            text = _write_value(value.text or "", is_date=is_date)
            # Of several levels of categories the innermost comes first.
            found[int(at)] = f"{text} {found[int(at)]}" if int(at) in found else text
    return found


def _write_value(text: str, *, is_date: bool) -> str:
    from openpyxl.utils.datetime import from_excel  # type: ignore[import-untyped]

    try:
        number = float(text)
        if is_date:
            return str(from_excel(number)).removesuffix(" 00:00:00")
        return f"{number:g}" if "." in text or "E" in text else text
    except (ValueError, OverflowError, TypeError):
        return text
