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
from statistics import median
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
from ingest.loaders.names import bounded, module_of
from ingest.loaders.outline import SECTION_SEPARATOR
from ingest.loaders.parse import parse
from ingest.loaders.site import split_release
from ingest.loaders.zip_safe import ZipBudget
from ingest.types import Loaded, LoadFailure, ParsedDocument
from stores.sqlite.connections import list_foreign_tables, read_foreign_rows

_ENTRY_TAG = re.compile(r"<dash_entry_[^>]*>")
_MOST_MISSING = 20  # missing pages that are named one by one; chosen, not measured
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

    @property
    def facts(self) -> dict[str, str]:
        """Return it as the metadata of its page list it."""
        return {"name": self.name, "type": self.type, "anchor": self.anchor}


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
        usual = median([count for module, count in explained.items() if module] or [0])
        common["usual_names"] = round(usual, 1)
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
        named = _first(properties, "CFBundleName", "name", "DocSetPlatformFamily")
        folder = split_release(Path(self._relative).name.removesuffix(DOCSET))
        framework, release = split_release(named) if named else folder
        common = {"framework": framework}
        stated = _first(properties, "version", "CFBundleShortVersionString", "CFBundleVersion")
        if version := stated or release or folder[1]:
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
    described = {**page.metadata, **common, "type": [kind for kind, _ in kinds.most_common()]}
    if not f"{common.get('version')}.".startswith(f"{page.metadata.get('version')}."):
        described |= {"version": page.metadata["version"]} if "version" in page.metadata else {}
    described["type"] = described["type"] or page.metadata.get("type") or ["guide"]
    if module := module_of(page.title, [one.facts for one in entries]):
        described["module"] = module
        described["module_names"] = explained[module]
    else:
        del described["usual_names"]
    own = {one["name"]: one for one in page.metadata.get("entries") or []}
    types = {one.anchor: {"type": one.type} for one in entries if one.anchor and one.type}
    listed = [own.get(one.name, {}) | {k: v for k, v in one.facts.items() if v} for one in entries]
    known = {one.name for one in entries}  # which may lack what the page has
    listed += [types.get(one.get("anchor", ""), {}) | one for one in own.values()
               if one["name"] not in known]  # fmt: skip
    described |= {"entries": bounded(listed)} if listed else {}
    return page.model_copy(update={"metadata": described})
