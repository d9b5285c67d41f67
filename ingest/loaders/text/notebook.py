"""Jupyter notebooks: Markdown cells as Markdown, code cells as code with short outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import nbformat

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.limits import because
from ingest.loaders.outline import Outline
from ingest.loaders.text.markdown import add_markdown
from ingest.types import ParsedDocument

_MAX_OUTPUT = 500


def load(relative: str, text: str) -> Iterator[ParsedDocument]:
    """Yield the one document of a notebook."""
    try:
        with warnings.catch_warnings():
            # It warns of missing cell ids, which cost us nothing.
            warnings.simplefilter("ignore")
            book = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise DocumentError(f"not a readable notebook{because(error)}") from error
    outline = Outline()
    for cell in book.cells:
        _add_cell(outline, cell)
    described = _metadata(book.metadata)
    blocks = outline.finish()
    yield ParsedDocument(
        document_id=relative,
        source=relative,
        title=described.get("title") or outline.first_heading or PurePosixPath(relative).stem,
        format="notebook",
        blocks=blocks,
        metadata=described,
    )


def _add_cell(outline: Outline, cell: Any) -> None:  # noqa: ANN401 (nbformat has no cell type)
    source = _joined(cell.get("source"))
    kind = cell.get("cell_type")
    if kind == "markdown":
        add_markdown(outline, source)
    elif kind == "code":
        outline.add(source.rstrip(), "code")
        for output in cell.get("outputs") or []:
            shown = _joined(output.get("text") or (output.get("data") or {}).get("text/plain"))
            # Long outputs are arrays and logs; tracebacks come under another name.
            if 0 < len(shown) <= _MAX_OUTPUT:
                outline.add(f"Output:\n{shown.rstrip()}", "code")
    else:
        outline.prose(source)


def _joined(value: object) -> str:
    """Return a multi-line string, which old notebooks keep as a list of lines."""
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _metadata(raw: Any) -> dict[str, Any]:  # noqa: ANN401
    found = metadata.normalise(
        {key: raw.get(key) for key in ("title", "authors", "tags", "date") if raw.get(key)}
    )
    kernel = raw.get("kernelspec") or {}
    language = (raw.get("language_info") or {}).get("name") or kernel.get("language")
    # "language" is the language of the text in every other format.
    found |= {"programming_language": language, "kernel": kernel.get("name")}
    return {key: value for key, value in found.items() if value}
