"""What a name stands for: documents by title or file, sections by heading or number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import PurePosixPath
from typing import NamedTuple

from core.language.analysis import content_terms
from core.language.numbering import heading_number
from core.language.scan import fold
from core.metadata import version_order
from stores.sqlite.listing import DocumentName

# What a name is worth: the very title, its words in another form, nearly all of them. A title that
# has two words of the name and more may be a longer form of it.
SAME, ALIKE, SURE, LIKELY = 3.0, 2.0, 0.75, 0.5
NEAR = 0.2  # of a title that shares words: worth offering
MISSPELT = 0.85  # of the letters of a title are the name's
OFFERED = 5
MOST = 20  # documents of one title: the passages of one article
BREAKS = re.compile(r"\s*(?:[:：(（]|\s[-–—]\s).*$")
JOINS = re.compile(r"[-_]+")


class Named(NamedTuple):
    """Hold the documents that a name stands for, and titles like it where there are none."""

    documents: list[DocumentName]
    near: list[DocumentName]


def find_documents(name: str, known: Sequence[DocumentName], *, sure: bool) -> Named:
    """Return the documents of a name; one that may be no name at all must fit better.

    Of several versions the newest counts.
    """
    asked = frozenset(content_terms(name))
    folded = fold(name.strip())
    worth = [(_worth(folded, asked, one), -place, one) for place, one in enumerate(known)]
    ranked = sorted(worth, key=lambda one: one[:2], reverse=True)
    best = ranked[0][0] if ranked else 0.0
    if best < (LIKELY if sure else SURE):
        titles = {fold(one.title): one for one in known}
        close = get_close_matches(folded, titles, OFFERED, cutoff=1 - NEAR * 2) if sure else []
        first = close[0] if close else ""
        if not first or SequenceMatcher(None, folded, first).ratio() < MISSPELT:
            like = [one for score, _, one in ranked if score >= NEAR]
            found = {fold(one.title): one for one in [*(titles[key] for key in close), *like]}
            return Named([], list(found.values())[:OFFERED])
        title = first
    else:
        title = fold(ranked[0][2].title)
    same = [one for one in known if fold(one.title) == title] if title else [ranked[0][2]]
    if best >= SAME:  # a name of a file is of one document alone
        same = [one for score, _, one in ranked if score == best and one in same]
    newest = max(version_order(one.version) for one in same)
    return Named([one for one in same if version_order(one.version) == newest][:MOST], [])


def _worth(folded: str, asked: frozenset[str], document: DocumentName) -> float:
    """Return how well a name fits a document: 0 not at all, SAME for its very title or file."""
    path = PurePosixPath(document.source.partition("#")[0])
    stem = JOINS.sub(" ", path.stem) if "#" not in document.source else ""
    title, short = document.title, BREAKS.sub("", document.title)
    files = {
        fold(document.source),
        fold(path.name),
        fold(path.stem),
        fold(document.source.partition("#")[2]),
    }
    if folded in {fold(title), *files} or fold(document.source).endswith(f"/{folded}"):
        return SAME
    best = 0.0
    for form in {title, short, stem, f"{title} {document.version}"} - {""}:
        words = frozenset(content_terms(form))
        shared = len(words & asked)
        if not shared:
            continue
        share = shared / len(words | asked)
        if words == asked:
            share = ALIKE - (form == short != title) / 2
        elif shared == len(asked) > 1:
            share = max(share, SURE)
        elif shared == len(words) > 1:
            share = max(share, LIKELY)
        best = max(best, share)
    return best


SECTIONS = " › "  # between the headings of a section
NUMBERED = re.compile(r"^[\dIVXL]{1,4}(?:\.\d+)*[.):]?\s+")
SectionRow = tuple[int, str, str]  # row id of the document, chunk id, headings


def find_chapter(rows: Sequence[SectionRow], number: int) -> list[list[str]]:
    """Return the chunk ids of the chapter of a number, of each document that has one.

    Where headings have no numbers, and there is one document, it is the heading of that place.
    """
    found: list[list[str]] = []
    by_document: dict[int, list[tuple[str, list[str]]]] = {}
    for row, key, section in rows:
        by_document.setdefault(row, []).append((key, section.split(SECTIONS)))
    for chunks in by_document.values():
        depth = max(len(path) for _, path in chunks)
        for level in range(depth):
            own = {path[level] for _, path in chunks if len(path) > level}
            named = {one for one in own if heading_number(one) == number}
            if named:
                found.append([key for key, path in chunks if named & set(path[level : level + 1])])
                break
    return found or (
        _by_place(next(iter(by_document.values())), number) if len(by_document) == 1 else []
    )


def _by_place(chunks: Sequence[tuple[str, list[str]]], number: int) -> list[list[str]]:
    """Return the chunks under the heading at a place, of the first level that has several."""
    for level in range(max((len(path) for _, path in chunks), default=0)):
        own = list(dict.fromkeys(path[level] for _, path in chunks if len(path) > level))
        if any(map(heading_number, own)):
            return []
        if len(own) > 1:
            wanted = own[number - 1 : number]
            return [[key for key, path in chunks if path[level : level + 1] == wanted]]
    return []


def find_section(rows: Sequence[SectionRow], name: str) -> list[list[str]]:
    """Return the chunk ids below the headings that a name fits best, by document."""
    asked, folded = frozenset(content_terms(name)), fold(name.strip())
    worth: dict[str, float] = {}
    for heading in {one for _, _, section in rows for one in section.split(SECTIONS) if one}:
        title = NUMBERED.sub("", heading)
        worth[heading] = _worth(folded, asked, DocumentName(0, title, "", "", "", ""))
    best = max(worth.values(), default=0.0)
    named = {heading for heading, value in worth.items() if value == best >= SURE}
    found: dict[int, list[str]] = {}
    for row, key, section in rows:
        if named & set(section.split(SECTIONS)):
            found.setdefault(row, []).append(key)
    return list(found.values())
