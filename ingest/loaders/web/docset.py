"""Dash docsets: pages of HTML beside an SQLite index of the names that they explain."""

from __future__ import annotations

import json
import plistlib
import posixpath
import re
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from packaging.version import InvalidVersion, Version

from core.errors import DocumentError, StorageError
from ingest.loaders.archive import is_entered, storable, write_pieces
from ingest.loaders.formats import (
    ARCHIVE,
    DOCSET,
    DOCSET_INDEX,
    DOCSET_PAGES,
    DOCSET_PROPERTIES,
    docset_of,
    is_docset_part,
    source_files,
)
from ingest.loaders.limits import LoadLimits, because, report_damage
from ingest.loaders.outline import MOST_ENTRIES, SECTION_SEPARATOR
from ingest.loaders.parse import parse
from ingest.loaders.zip_safe import ZipBudget
from ingest.types import Loaded, LoadFailure, ParsedDocument
from stores.sqlite.connections import list_foreign_tables, read_foreign_rows

_ENTRY_TAG = re.compile(r"<dash_entry_[^>]*>")
_MOST_MISSING = 20  # missing pages that are named one by one; chosen, not measured
# Types in the index whose pages are about a whole module.
_MODULES = frozenset(("module", "package", "namespace", "library", "framework"))
# What Core Data calls the columns of the same three facts.
_TOKENS = ("ZTOKEN", ("ZTOKENNAME", "ZTOKENTYPE", "ZMETAINFORMATION"))
_TYPES = ("ZTOKENTYPE", ("Z_PK", "ZTYPENAME"))
_PLACES = ("ZTOKENMETAINFORMATION", ("Z_PK", "ZFILE", "ZANCHOR"))
_FILES = ("ZFILEPATH", ("Z_PK", "ZPATH"))


class IndexEntry(NamedTuple):
    """Name what a page explains, as the index has it."""

    name: str
    type: str
    page: str
    anchor: str


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the pages of a docset, each one document, from its folder or a packed one (.tgz).

    What is wrong with the index or a page is a failure of that; the rest is read.
    """
    if path.is_dir():
        yield from _Docset(path, relative).load(limits)
        return
    with tempfile.TemporaryDirectory() as scratch:
        for name in _unpack(path, Path(scratch), limits):
            yield from _Docset(Path(scratch, name), f"{relative}/{storable(name)}").load(limits)


def _unpack(path: Path, scratch: Path, limits: LoadLimits) -> list[str]:
    """Write the files that are read into `scratch`; return the names of the docsets in it."""
    budget = ZipBudget(limits)
    found: dict[str, None] = {}
    with report_damage("the archive is damaged"), tarfile.open(path, "r|gz") as archive:
        for member in archive:
            budget.spend(size=member.size)
            name = posixpath.normpath(member.name)
            docset = docset_of(name)
            if not docset or name.startswith(("/", "..")) or not member.isreg():
                continue
            if is_docset_part(name[len(docset) + 1 :]) and (content := archive.extractfile(member)):
                budget.spend(entries=1)
                found[docset] = None
                write_pieces(scratch / name, iter(lambda: content.read(1 << 16), b""))
    if not found:
        raise DocumentError(f"no docset is in it, and {ARCHIVE}")
    return list(found)


class _Docset:
    """Read one docset from its folder."""

    def __init__(self, folder: Path, relative: str) -> None:
        self._folder, self._relative = folder, relative
        self._names = [path.relative_to(folder).as_posix() for path in source_files(folder)]
        self._pages = [name for name in self._names if name.startswith(DOCSET_PAGES)]

    def load(self, limits: LoadLimits) -> Iterator[Loaded]:
        if not self._pages:
            raise DocumentError(f"no HTML page below {DOCSET_PAGES}: this is no docset")
        common, problems = self._described()
        yield from problems
        entries: dict[str, list[IndexEntry]] = defaultdict(list)
        yield from self._index(entries)
        explained = Counter(
            entry.name.rpartition(".")[0] for entry in set(chain.from_iterable(entries.values()))
        )
        for name in self._pages:
            shown = self._shown(name)
            if not is_entered(shown):
                continue
            listed = list(dict.fromkeys(entries.get(name, [])))
            for item in parse(self._folder / name, shown, limits):
                if isinstance(item, LoadFailure):
                    yield item
                elif _is_navigation(item):
                    reason = "left out: the page has nothing but links to others"
                    yield LoadFailure(path=shown, reason=reason)
                else:
                    yield _with_entries(item, common, listed, explained)

    def _shown(self, name: str) -> str:
        return f"{self._relative}/{storable(name)}"

    def _described(self) -> tuple[dict[str, Any], list[LoadFailure]]:
        """Return framework and version, and what is wrong with the files that say them."""
        problems = []
        properties: dict[str, Any] = {}
        for name, read in zip(DOCSET_PROPERTIES, (plistlib.loads, json.loads), strict=True):
            if name not in self._names:
                continue
            try:
                found = read((self._folder / name).read_bytes())  # type: ignore[operator]
                properties.update(found if isinstance(found, dict) else {})
            except Exception as error:  # both libraries raise many kinds
                reason = f"these properties cannot be read{because(error)}"
                problems.append(LoadFailure(path=self._shown(name), reason=reason))
        framework = _first(properties, "CFBundleName", "name", "DocSetPlatformFamily")
        common = {"framework": framework or Path(self._relative).name.removesuffix(DOCSET)}
        if version := _first(
            properties, "version", "CFBundleShortVersionString", "CFBundleVersion"
        ):
            try:
                Version(version)
                common["version"] = version
            except InvalidVersion:
                reason = (
                    f"its version {version[:60]!r} is none that can be compared; it is not kept"
                )
                problems.append(LoadFailure(path=self._shown(DOCSET_PROPERTIES[0]), reason=reason))
        return common, problems

    def _index(self, entries: dict[str, list[IndexEntry]]) -> Iterator[LoadFailure]:
        if DOCSET_INDEX not in self._names:
            reason = "the docset has no index; its pages are read without names and types"
            yield LoadFailure(path=self._shown(DOCSET_INDEX), reason=reason)
            return
        there, missing = set(self._pages), Counter[str]()
        try:
            for entry in _entries(self._folder / DOCSET_INDEX):
                page = posixpath.normpath(f"{DOCSET_PAGES}{entry.page}")
                if page in there:
                    entries[page].append(entry)
                else:
                    missing[page] += 1
        except StorageError as error:
            count = sum(map(len, entries.values()))
            reason = f"the index is damaged; {count} names of it could be read{because(error)}"
            yield LoadFailure(path=self._shown(DOCSET_INDEX), reason=reason)
        for page, count in missing.most_common(_MOST_MISSING):
            reason = f"the page is not there, and the index has {count} names in it"
            yield LoadFailure(path=self._shown(page), reason=reason)
        if (more := len(missing) - _MOST_MISSING) > 0:
            reason = f"the index names {more} more pages that are not there"
            yield LoadFailure(path=self._shown(DOCSET_INDEX), reason=reason)


def _first(properties: dict[str, Any], *names: str) -> str:
    values = (str(properties.get(name) or "").strip() for name in names)
    return storable(next(filter(None, values), ""))[:100]


def _entries(path: Path) -> Iterator[IndexEntry]:
    tables = list_foreign_tables(path)
    if "searchIndex" in tables:
        rows = read_foreign_rows(path, "searchIndex", ("name", "type", "path"))
    elif "ZTOKEN" in tables:
        rows = _core_data(path)
    else:
        raise StorageError("it has neither the table searchIndex nor ZTOKEN")
    for name, kind, place in rows:
        if isinstance(name, str) and isinstance(place, str) and name.strip():
            page, _, anchor = _ENTRY_TAG.sub("", place).partition("#")
            shown = storable(" ".join(name.split()))[:200]
            yield IndexEntry(shown, str(kind or "").lower()[:40], unquote(page), unquote(anchor))


def _core_data(path: Path) -> Iterator[tuple[Any, ...]]:
    types = dict(read_foreign_rows(path, *_TYPES))
    files = dict(read_foreign_rows(path, *_FILES))
    places = {key: (file, anchor) for key, file, anchor in read_foreign_rows(path, *_PLACES)}
    for name, kind, place in read_foreign_rows(path, *_TOKENS):
        file, anchor = places.get(place, (None, None))
        yield name, types.get(kind), f"{files.get(file, '')}#{anchor or ''}"


def _is_navigation(page: ParsedDocument) -> bool:
    """Tell whether a page says nothing itself: links, or a heading over them."""
    ends = (block.section.rsplit(SECTION_SEPARATOR, 1)[-1] for block in page.blocks)
    bare = all(block.text == end for block, end in zip(page.blocks, ends, strict=True))
    return bare or bool(page.metadata.get("navigation"))


def _with_entries(
    page: ParsedDocument,
    common: dict[str, Any],
    entries: list[IndexEntry],
    explained: Mapping[str, int],
) -> ParsedDocument:
    """Return a page with what the index says of it; its own version goes before the docset's."""
    kinds = Counter(entry.type for entry in entries if entry.type)
    described = {**common, **page.metadata, "type": [kind for kind, _ in kinds.most_common()]}
    described["type"] = described["type"] or ["guide"]
    if module := _module(page.title, entries):
        described["module"] = module
        described["module_names"] = explained[module]
    listed = [{"name": one.name, "type": one.type, "anchor": one.anchor} for one in entries]
    headings = page.metadata.get("entries") or []  # of the page itself, which the index may lack
    if listed or headings:
        known = {one.name for one in entries}
        listed += [one for one in headings if one["name"] not in known]
        described["entries"] = listed[:MOST_ENTRIES]
    whole = sum(len(block.text) for block in page.blocks)
    code = sum(len(block.text) for block in page.blocks if block.kind == "code")
    described["code_density"] = round(code / whole, 2) if whole else 0.0
    return page.model_copy(update={"metadata": described})


def _module(title: str, entries: list[IndexEntry]) -> str:
    """Return the module of a page: one that it explains, or the one around its first name."""
    for entry in entries:
        if entry.type in _MODULES:
            return entry.name
    names = [entry.name for entry in entries] or [title]
    dotted = next((name for name in names if re.fullmatch(r"[\w.]+\.\w+(?:\(\))?", name)), "")
    return dotted.rpartition(".")[0]
