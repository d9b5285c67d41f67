"""Notebooks: cells of Markdown and of code with its short outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from ingest.loaders import metadata
from ingest.loaders.limits import report_damage
from ingest.loaders.outline import Outline
from ingest.loaders.text.markdown import add_markdown
from ingest.types import ParsedDocument

_MAX_OUTPUT = 500  # characters; a longer one is data; chosen, not measured


def load(relative: str, text: str) -> Iterator[ParsedDocument]:
    """Yield the one document of a notebook."""
    import nbformat  # as slow to import as all the rest, and Markdown does without

    with report_damage("not a readable notebook"), warnings.catch_warnings():
        # It warns of missing cell ids, which cost us nothing.
        warnings.simplefilter("ignore")
        book = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    outline = Outline()
    for cell in book.cells:
        _add_cell(outline, cell)
    described = {**outline.names.metadata(), **_metadata(book.metadata)}
    titles = described.get("title"), outline.first_heading
    yield ParsedDocument.of_file(relative, "notebook", outline.finish(), described, *titles)


def _add_cell(outline: Outline, cell: Any) -> None:  # noqa: ANN401 (nbformat has no cell type)
    source = _join_value(cell.get("source"))
    kind = cell.get("cell_type")
    if kind == "markdown":
        add_markdown(outline, source)
    elif kind == "code":
        outline.add(source.rstrip(), "code")
        for output in cell.get("outputs") or []:
            shown = _join_value(output.get("text") or (output.get("data") or {}).get("text/plain"))
            # Long outputs are arrays and logs; tracebacks come under another name.
            if 0 < len(shown) <= _MAX_OUTPUT:
                outline.add(f"Output:\n{shown.rstrip()}", "code")
    else:
        outline.prose(source)


def _join_value(value: object) -> str:
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
