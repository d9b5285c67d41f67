"""Find the files to ingest below the paths a person named."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import CallerError, OperatorError
from ingest.loaders.archive import storable
from ingest.loaders.formats import (
    DOCSET,
    format_of,
    is_sought,
    is_unsupported_document,
    refusal,
    source_files,
)
from ingest.loaders.limits import MB, unreadable
from ingest.types import LoadFailure
from stores.folder import CATALOGUE
from stores.sqlite.rows import digest

# What Sphinx and MkDocs add to the pages of a site, by a file that tells that they made it: an
# index, a search and copies of the sources, which would answer instead of the pages.
GENERATED = {
    "searchindex.js": {"_sources", "_static", "genindex.html", "py-modindex.html", "search.html"},
    "search/search_index.json": {"404.html"},
    "search_index.json": {"search_index.json"},  # not its folder, which may be a page's
}


@dataclass(frozen=True)
class SourceFile:
    """Name one file: where it is, and its stable name below what was given."""

    path: Path
    relative: str


@dataclass(frozen=True)
class _Found:
    root: Path
    path: Path
    relative: str


def discover(
    paths: Sequence[Path | SourceFile], others: list[str] | None = None
) -> tuple[list[SourceFile], list[LoadFailure]]:
    """List the readable files in sorted order, and the named or document-like ones that are not.

    The names of all other files below the folders are added to `others`.
    A file that has its name already keeps it. A file reached twice is listed once. Where two given
    paths hold the same relative name, the names below both get the folder's name in front.
    """
    found: list[_Found] = []
    failures: list[LoadFailure] = []
    others = [] if others is None else others
    named = [given for given in paths if isinstance(given, SourceFile)]
    for given in paths:
        if isinstance(given, SourceFile):
            continue
        root = Path(os.path.abspath(given))
        if _is_docset(root):
            found.append(_Found(root, root, storable(root.name)))
        elif root.is_dir():
            _walk(root, found, failures, others)
        elif not root.exists():
            raise CallerError(
                "no such file or folder", value=str(given), hint="check the path and name it again"
            )
        elif not root.is_file():
            failures.append(LoadFailure(path=root.name, reason="not a regular file"))
        elif format_of(root.name) is None:
            failures.append(LoadFailure(path=root.name, reason=refusal(root.name)))
        else:
            found.append(_Found(root, root, root.name))
    return [*named, *_named(_once(found))], failures


def _walk(root: Path, found: list[_Found], failures: list[LoadFailure], others: list[str]) -> None:
    links: list[_Found] = []
    for folder, names in _folders(root, failures):
        for entry in names:
            path = Path(folder, entry.name)
            item = _Found(root, path, storable(path.relative_to(root).as_posix()))
            if entry.is_symlink():
                links.append(item)
            elif is_unsupported_document(entry.name):
                failures.append(LoadFailure(path=item.relative, reason=refusal(entry.name)))
            elif is_sought(entry.name):
                if entry.is_file() or _is_docset(path):
                    found.append(item)
                else:
                    failures.append(LoadFailure(path=item.relative, reason="not a regular file"))
            else:
                others.append(item.relative)
    # After the files: a link to a file of this folder is that file once more.
    real_root = root.resolve()
    for link in links:
        _add_link(link, real_root, found, failures)


def _folders(
    root: Path, failures: list[LoadFailure]
) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Yield each folder, in order, with what is in it but folders, hidden and generated names.

    Not os.walk: it recurses, and folders may be nested more deeply than Python's stack goes.
    """
    waiting = [str(root)]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            path = storable(os.path.relpath(folder, root))
            failures.append(LoadFailure(path=path, reason=unreadable(error)))
            continue
        if any(entry.name == CATALOGUE for entry in entries):
            continue  # a data directory: its files, uploads of others among them, are no documents
        made = [names for sign, names in GENERATED.items() if Path(folder, sign).is_file()]
        left = frozenset[str]().union(*made)
        seen = [one for one in entries if not one.name.startswith(".") and one.name not in left]
        # A docset is one source, not a folder of pages.
        below = [entry for entry in seen if _is_folder(entry)]
        yield folder, [entry for entry in seen if not _is_folder(entry)]
        waiting += [entry.path for entry in reversed(below)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and not _is_docset(Path(entry.path))


def _is_docset(path: Path) -> bool:
    return path.name.lower().endswith(DOCSET) and path.is_dir()


def _add_link(
    link: _Found, real_root: Path, found: list[_Found], failures: list[LoadFailure]
) -> None:
    try:
        target = link.path.resolve(strict=True)
    except (OSError, RuntimeError):  # whatever its name: what it was to be, nobody can say
        failures.append(LoadFailure(path=link.relative, reason="a link to nothing"))
        return
    if not target.is_relative_to(real_root):
        if target.is_dir() or is_sought(link.path.name):
            reason = "a link that leaves the folder is not followed; name its target"
            failures.append(LoadFailure(path=link.relative, reason=reason))
    elif target.is_file() and is_sought(link.path.name):
        found.append(link)


def _once(found: list[_Found]) -> Iterator[_Found]:
    seen: set[Path] = set()
    for item in found:
        real = item.path.resolve()
        if real not in seen:
            seen.add(real)
            yield item


def _named(found: Iterator[_Found]) -> list[SourceFile]:
    """Prefix the names below roots that share one, with as many folders as tell them apart."""
    items = list(found)
    names = {item.path: item.relative for item in items}
    for depth in range(1, max((len(item.root.parts) for item in items), default=0) + 1):
        counts = Counter(names.values())
        clashing = {item.root for item in items if counts[names[item.path]] > 1}
        if not clashing:
            break
        for item in items:
            if item.root in clashing:
                folders = item.root.parent.parts if item.root == item.path else item.root.parts
                prefix = "/".join(part.strip("/") for part in folders[-depth:])
                names[item.path] = f"{storable(prefix)}/{item.relative}".lstrip("/")
    by_name: defaultdict[str, int] = defaultdict(int)
    listed = []
    for item in items:
        by_name[names[item.path]] += 1
        copy = by_name[names[item.path]]
        # Only names with the same unreadable bytes are still equal here.
        relative = names[item.path] if copy == 1 else f"{names[item.path]}~{copy}"
        listed.append(SourceFile(item.path, relative))
    return listed


def fingerprint(path: Path, max_mb: float, *decisive: object) -> str:
    """Hash a file's bytes, or those of a docset, with all else that decides what is stored of it.

    A file over the limit is not read, since it will be refused.
    """
    content = hashlib.sha256()
    try:
        for file in source_files(path):
            if file != path:
                content.update(f"\0{file.relative_to(path).as_posix()}\0".encode(errors="replace"))
            if file.stat().st_size <= max_mb * MB:
                with file.open("rb") as handle:
                    while block := handle.read(MB):
                        content.update(block)
    except OSError as error:
        content.update(str(error).encode())
    return digest(content.hexdigest(), *decisive)


def size_of(path: Path) -> int:
    """Return the bytes of a file or docset; of one that cannot be looked at the loader says so."""
    try:
        return sum(file.stat().st_size for file in source_files(path))
    except OSError:
        return 0


def check_disk(sources: Sequence[SourceFile], folder: Path, min_free_mb: int) -> None:
    """Refuse to start without `storage.min_free_mb` and three times the input of free disk."""
    size = sum(size_of(source.path) for source in sources)
    needed = min_free_mb + 3 * size // MB
    free = shutil.disk_usage(folder).free // MB
    if free < needed:
        raise OperatorError(
            f"ingest needs {needed} MB of free disk (storage.min_free_mb and three times"
            " the input)",
            value=f"{free} MB free at {folder}",
            hint="free some space, or give another directory with --data",
        )
