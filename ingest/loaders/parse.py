"""What the parser process does with one file: pick the loader, bound the text, name the fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.engines import HINT
from ingest.loaders.formats import (
    FORMATS,
    format_of,
    head_of,
    kind_of,
    refusal,
    suffix_of,
    suffix_of_content,
)
from ingest.loaders.limits import MB, LoadLimits, because, unreadable
from ingest.loaders.records.record_fields import limit_fields
from ingest.loaders.tables import table_records
from ingest.loaders.text.encoding import decode
from ingest.types import Loaded, LoadFailure, ParsedDocument

_WITH_PICTURES = {"docx", "pptx", "xlsx", "odf"}
# What their loaders know better: XHTML is XML, and a record or a letter may begin with a tag.
_BEGIN_AS_HTML = {"xml", "mail", "mbox", "csv", "jsonl", "json", "notebook"}


def parse(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the documents of a file and the failures of it or its records.

    Raises MemoryError only: after that the process is not to be used again.
    """
    try:
        for item in _parse(path, relative, limits):
            yield _within(item, limits)
    except MemoryError:
        raise
    except DocumentError as error:
        yield LoadFailure(path=relative, reason=error.rule)
    except OSError as error:
        yield LoadFailure(path=relative, reason=unreadable(error))
    except RecursionError:
        yield LoadFailure(path=relative, reason="nested too deeply to be read")
    except Exception as error:  # a parser's own fault with this content
        reason = f"damaged, or no real {suffix_of(path.name) or 'text'} file{because(error)}"
        yield LoadFailure(path=relative, reason=reason)


def _parse(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    name = _format_name(path)
    _check_size(path.stat().st_size, name, limits)
    chosen = FORMATS[name]
    if chosen.module == "image" and not limits.ocr:
        raise DocumentError(f"it is an image; {HINT}")
    if not chosen.text_share:
        found = chosen.loader()(path, relative, limits)
        if name in _WITH_PICTURES and limits.ocr:
            pictures = import_module("ingest.loaders.image")
            found = pictures.with_pictures(found, path, relative, limits)
        # Of files in a file each one counts for itself.
        yield from found if chosen.writes else limit_fields(_with_tables(found, limits), limits)
        return
    content = decode(path.read_bytes(), suffix_of(path.name))
    if not content.strip():
        raise DocumentError("the file holds only white space")
    _check_characters(len(content), limits, share=chosen.text_share)
    yield from _with_tables(chosen.loader()(relative, content), limits)


def _with_tables(items: Iterable[Loaded], limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the items, each document before the records of its tables."""
    for item in items:
        yield item
        if isinstance(item, ParsedDocument) and not item.is_record:
            yield from table_records(item, limits)


def _format_name(path: Path) -> str:
    """Choose the format by the content where that is certain, else by the name."""
    named = format_of(path.name)
    if named is None:
        raise DocumentError(refusal(path.name))
    if path.is_dir():  # a docset: discovery gives no other folder
        return named
    head = head_of(path)
    suffix = suffix_of_content(head, path)
    found = format_of(f"x{suffix}") if suffix else None
    if found in FORMATS and not (found == "html" and named in _BEGIN_AS_HTML):
        return found
    kind = kind_of(head)
    if kind and "image" in kind:
        return "image"
    return named


def _check_size(size: int, name: str, limits: LoadLimits) -> None:
    if size == 0:
        raise DocumentError("the file is empty")
    records = name in FORMATS and FORMATS[name].records
    most = max(limits.max_records_mb, limits.max_file_mb) if records else limits.max_file_mb
    if size > most * MB:
        setting = "ingest.max_records_mb" if records else "ingest.max_file_mb"
        raise DocumentError(
            f"the file is {size / MB:.0f} MB; the limit is {most:g} MB ({setting}); split the"
            " file or raise it"
        )


def _check_characters(count: int, limits: LoadLimits, *, share: int = 1) -> None:
    if count > limits.max_characters * share:
        raise DocumentError(
            f"{count} characters; the limit is {limits.max_characters} (ingest.max_characters);"
            " split the file or raise it"
        )


def _within(item: Loaded, limits: LoadLimits) -> Loaded:
    if isinstance(item, LoadFailure):
        return item
    try:
        _check_characters(sum(len(block.text) for block in item.blocks), limits)
        if not any(block.text.strip() for block in item.blocks):
            raise DocumentError("no text found in it")
    except DocumentError as error:
        return LoadFailure(path=item.source, reason=error.rule)
    return item
