"""ZIP archives of documents: each member is read by the loader of its own format."""

from __future__ import annotations

import posixpath
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.formats import (
    FORMATS,
    docset_of,
    format_of,
    is_docset_part,
    is_sought,
    is_unsupported_document,
    refusal,
    suffix_of,
)
from ingest.loaders.limits import LoadLimits
from ingest.loaders.parse import parse
from ingest.loaders.zip_safe import SafeZip, ZipBudget, ZipBudgetError
from ingest.types import Loaded, LoadFailure

# Controls would move a terminal's cursor; marks of direction make "gnp.md" look like "dm.png".
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_CODE_PAGES = ("cp866", "gb18030", "cp932", "big5", "cp949", "cp850", "cp437")


def storable(name: str) -> str:
    """Replace what cannot be stored (bytes that are not UTF-8) or seen (controls) by U+FFFD."""
    return _UNSEEN.sub("\ufffd", name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def decode_names(names: Sequence[str]) -> list[str]:
    """Return the names of an archive in the code page they were written in.

    The format knows two: UTF-8, and that of the first PC, which stands for any other.
    """
    raw = [_raw(name) for name in names]
    foreign = b"\n".join(name for name in raw if name is not None)
    page = _page(foreign) if foreign else ""
    return [
        name if written is None else written.decode(page, "replace")
        for name, written in zip(names, raw, strict=True)
    ]


def _raw(name: str) -> bytes | None:
    """Return the bytes of a name that may be in another code page than it says."""
    if name.isascii():
        return None
    try:
        return name.encode("cp437")
    except UnicodeEncodeError:
        return None


def _page(names: bytes) -> str:
    try:
        names.decode("utf-8")
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes

        best = from_bytes(names, cp_isolation=list(_CODE_PAGES)).best()
        return "cp437" if best is None else best.encoding
    return "utf-8"


_enter: Callable[[str], bool] = bool


def watch(enter: Callable[[str], bool]) -> None:
    """Have `enter` asked with the name of each member whether it is to be read."""
    global _enter
    _enter = enter


def is_entered(relative: str) -> bool:
    """Tell whether a member of this name is to be read, once before it is."""
    return _enter(relative)


def is_document(name: str) -> bool:
    """Tell whether a member of this name is to be read or reported: a logo in a mail is neither."""
    return is_sought(name) or is_unsupported_document(name)


def parse_member(relative: str, pieces: Iterable[bytes], limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the documents of a member, whose `relative` ends in its own name.

    `limits` are those of the file around it: each level of nesting takes one from `zip_depth`. A
    fault of the member is a LoadFailure of it. Only formats that the table marks with `writes` may
    have members: each is put into a temporary file while it is read.
    """
    if not _enter(relative):
        return
    if limits.zip_depth < 1:
        yield LoadFailure(
            path=relative, reason="a document within too many others (ingest.zip_depth)"
        )
        return
    if format_of(relative) is None:
        yield LoadFailure(path=relative, reason=refusal(relative))
        return
    inner = limits.model_copy(update={"zip_depth": limits.zip_depth - 1})
    with _as_file(relative, pieces) as path:
        yield from parse(path, relative, inner)


@contextmanager
def _as_file(name: str, pieces: Iterable[bytes]) -> Iterator[Path]:
    """Write a member to a file, of whose name only the ending is its own: that tells the loader."""
    with tempfile.NamedTemporaryFile(prefix="", suffix=suffix_of(name)) as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        yield Path(file.name)


_FORMAT = "archive"


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the documents of the members, named "archive.zip/folder/member.md".

    A member that cannot be read is one failure. As in a folder, hidden files and files that are no
    documents are passed over.
    """
    if limits.zip_depth < 1:
        raise DocumentError("an archive within too many other files (ingest.zip_depth)")
    found = False
    for item in _documents(path, relative, limits, ZipBudget(limits)):
        found = True
        yield item
    if not found:
        raise DocumentError("no document in the archive")


def _documents(
    path: Path, relative: str, limits: LoadLimits, budget: ZipBudget
) -> Iterator[Loaded]:
    with SafeZip(path, limits, budget) as container:
        for name in container.find_repeated():
            reason = "several members have this name; the last one is read"
            yield LoadFailure(path=f"{relative}/{storable(name)}", reason=reason)
        names = container.names()
        docsets: defaultdict[str, list[str]] = defaultdict(list)
        for name, shown in zip(names, decode_names(names), strict=True):
            if docset := docset_of(name):
                docsets[docset].append(name)
                continue
            if _is_skipped(shown):
                continue
            member = f"{relative}/{storable(shown)}"
            try:
                yield from _member(container, name, member, limits, budget)
            except ZipBudgetError:
                raise
            except DocumentError as error:
                yield LoadFailure(path=member, reason=error.rule)
        for docset, members in docsets.items():
            with tempfile.TemporaryDirectory() as scratch:
                yield from _unpack(container, docset, members, Path(scratch), relative)
                shown = f"{relative}/{storable(docset)}"
                try:
                    yield from FORMATS["docset"].loader()(Path(scratch, docset), shown, limits)
                except ZipBudgetError:
                    raise
                except DocumentError as error:
                    yield LoadFailure(path=shown, reason=error.rule)


def _unpack(
    container: SafeZip, docset: str, names: Sequence[str], folder: Path, relative: str
) -> Iterator[LoadFailure]:
    (folder / docset).mkdir(parents=True)
    for name in names:
        if not is_docset_part(name[len(docset) + 1 :]) or posixpath.normpath(name) != name:
            continue
        try:
            write_pieces(folder / name, container.chunks(name))
        except ZipBudgetError:
            raise
        except DocumentError as error:
            yield LoadFailure(path=f"{relative}/{storable(name)}", reason=error.rule)


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file and the folders around it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(pieces)


def _is_skipped(name: str) -> bool:
    parts = name.split("/")
    hidden = any(part.startswith(".") and part not in (".", "..") for part in parts)
    return hidden or parts[0] == "__MACOSX" or not is_document(name)


def _member(
    container: SafeZip, name: str, shown: str, limits: LoadLimits, budget: ZipBudget
) -> Iterator[Loaded]:
    if format_of(shown) != _FORMAT:
        yield from parse_member(shown, container.chunks(name), limits)
        return
    if limits.zip_depth < 2:
        raise DocumentError("archives inside one another more than ingest.zip_depth deep")
    inner = limits.model_copy(update={"zip_depth": limits.zip_depth - 1})
    with _as_file(shown, container.chunks(name)) as path:
        yield from _documents(path, shown, inner, budget)
