"""What a name stands for: documents by title or file, sections by heading or number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from os.path import commonprefix
from pathlib import PurePosixPath
from typing import NamedTuple

from core.language.analysis import analyze, content_terms, query_terms
from core.language.detect import detect_language
from core.language.numbering import heading_number, heading_title
from core.language.scan import fold
from core.metadata import version_order
from languages.language import find_language
from stores.sqlite.listing import DocumentName

# What a name is worth: the very title, its words in another form, nearly all of them. A title that
# has two words of the name and more may be a longer form of it.
SAME, ALIKE, SURE, LIKELY = 3.0, 2.0, 0.75, 0.5
PREFIX = 4  # letters of a word that is the beginning of a longer one, tram of tramway
SHARED = 5  # documents whose titles have the words of a name; in more they are a topic
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


class AskedName:
    """Compare the words of a name, less those such as "report", with titles and headings."""

    def __init__(self, name: str) -> None:
        self.folded = fold(name.strip())
        found = find_language(detect_language(name))
        own = found.read("summaries")
        kinds = "|".join(f"(?:{own[name]})" for name in ("document", "project", "section"))
        general = re.compile(kinds, re.IGNORECASE)
        tokens = [one for one in analyze(name, found.code) if not one.is_function]
        telling = [name[one.start : one.end] for one in tokens]
        telling = [one for one in telling if not general.fullmatch(one)]
        self.is_general = not telling
        self._languages = {found.code, *found.near}
        self.words = query_terms(" ".join(telling) or name, self._languages)

    def terms(self, title: str) -> list[frozenset[str]]:
        """Return the words of a title in the languages of the name."""
        return query_terms(title, {*self._languages, detect_language(title)})

    def matched(self, terms: frozenset[str], *, prefix: bool = False) -> list[frozenset[str]]:
        """Return the words that are among terms, or begin one."""
        return [
            word
            for word in self.words
            if word & terms
            or (prefix and any(o.startswith(w) for w in word if len(w) >= PREFIX for o in terms))
        ]


def find_documents(name: str, known: Sequence[DocumentName], *, sure: bool) -> Named:
    """Return the documents of a name; one that may be no name at all must fit better.

    Of several versions the newest counts; titles that fit alike are all meant.
    """
    asked = AskedName(name)
    worth = [(_worth(asked, one), -place, one) for place, one in enumerate(known)]
    ranked = sorted(worth, key=lambda one: one[:2], reverse=True)
    best = ranked[0][0] if ranked else 0.0
    titles = {fold(one.title): one for one in known}
    if best < (LIKELY if sure else SURE):
        close = get_close_matches(asked.folded, titles, OFFERED, cutoff=1 - NEAR * 2)
        first = close[0] if close and sure else ""
        if not first or SequenceMatcher(None, asked.folded, first).ratio() < MISSPELT:
            like = [one for score, _, one in ranked if score >= NEAR]
            found = {fold(one.title): one for one in [*(titles[key] for key in close), *like]}
            return Named([], list(found.values())[:OFFERED])
        meant = {first}
    else:
        meant = {fold(one.title) or one.source for score, _, one in ranked if score == best}
        if best < 1 and len(meant) > SHARED:
            return Named([], [one for _, _, one in ranked[:OFFERED]])
    same = [one for one in known if (fold(one.title) or one.source) in meant]
    if best >= SAME:  # a name of a file is of one document alone
        same = [one for score, _, one in ranked if score == best and one in same]
    newest: dict[str, str] = {}
    for one in same:
        newest[fold(one.title)] = max(newest.get(fold(one.title), ""), version_order(one.version))
    kept = [one for one in same if version_order(one.version) == newest[fold(one.title)]]
    return Named(kept[:MOST], [])


def _worth(asked: AskedName, document: DocumentName) -> float:
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
    folded = asked.folded
    if folded in {fold(title), *files} or fold(document.source).endswith(f"/{folded}"):
        return SAME
    best = 0.0
    for form in {title, short, stem, f"{title} {document.version}"} - {""}:
        terms = asked.terms(form)
        words = frozenset[str]().union(*terms)
        shared = len(asked.matched(words))
        if not shared:
            if len(asked.matched(words, prefix=True)) == len(asked.words):
                best = max(best, LIKELY)
            continue
        share = shared / (len(terms) + len(asked.words) - shared)
        if share == 1:
            share = ALIKE - (form == short != title) / 2
        elif shared == len(asked.words):  # the fewer words a title has besides, the better
            share = SURE + (1 - SURE) * share
        elif shared == len(terms) > 1:
            share = max(share, LIKELY)
        best = max(best, share)
    return best


LEAST = 0.1  # of a heading
SECTIONS = " › "  # between the headings of a section
SectionRow = tuple[int, str, str]  # row id of the document, chunk id, headings


def find_chapter(rows: Sequence[SectionRow], number: int) -> list[list[str]]:
    """Return the chunk ids of the chapter of a number, of each document that has one.

    Where headings have no numbers, and there is one document, it is the heading of that place. The
    last one is -1.
    """
    found: list[list[str]] = []
    by_document: dict[int, list[tuple[str, list[str]]]] = {}
    for row, key, section in rows:
        by_document.setdefault(row, []).append((key, section.split(SECTIONS)))
    for chunks in by_document.values():
        depth = max(len(path) for _, path in chunks)
        for level in range(depth):
            own = {path[level] for _, path in chunks if len(path) > level}
            numbers = {one: heading_number(one) for one in own}
            wanted = number if number > 0 else max(numbers.values(), default=0)
            named = {one for one in own if numbers[one] == wanted > 0}
            if named:
                found.append([key for key, path in chunks if named & set(path[level : level + 1])])
                break
    return found or (
        _by_place(next(iter(by_document.values())), number) if len(by_document) == 1 else []
    )


def find_numbered(rows: Sequence[SectionRow], number: str) -> list[list[str]]:
    """Return the chunk ids below the headings that begin with a number such as 4.1, by document."""
    begins = re.compile(rf"\W*(?:\w+\s+)?{re.escape(number)}(?![.\d]*\d)")
    found: dict[int, list[str]] = {}
    for row, key, section in rows:
        if any(begins.match(one) for one in section.split(SECTIONS)):
            found.setdefault(row, []).append(key)
    return list(found.values())


def common_heading(rows: Sequence[SectionRow], keys: Sequence[str]) -> str:
    """Return the innermost heading above all of some chunks, "" for none."""
    wanted = set(keys)
    paths = [section.split(SECTIONS) for _, key, section in rows if key in wanted]
    return next(reversed(commonprefix(paths)), "") if paths else ""


def _by_place(chunks: Sequence[tuple[str, list[str]]], number: int) -> list[list[str]]:
    """Return the chunks under the heading at a place, of the first level that has several."""
    for level in range(max((len(path) for _, path in chunks), default=0)):
        own = list(dict.fromkeys(path[level] for _, path in chunks if len(path) > level))
        if any(map(heading_number, own)):
            return []
        if len(own) > 1:
            wanted = own[number - 1 : number] if number > 0 else own[-1:]
            below = [key for key, path in chunks if path[level : level + 1] == wanted]
            return [below] if wanted else []
    return []


def parts_of(rows: Sequence[SectionRow]) -> list[tuple[str, list[str]]]:
    """Return the chunk ids below each heading of the first level that has several, by document."""
    by_document: dict[int, list[tuple[str, list[str]]]] = {}
    for row, key, section in rows:
        by_document.setdefault(row, []).append((key, section.split(SECTIONS)))
    found: list[tuple[str, list[str]]] = []
    for chunks in by_document.values():
        for level in range(max(len(path) for _, path in chunks)):
            own: dict[str, list[str]] = {}
            for key, path in chunks:
                own.setdefault(path[level] if len(path) > level else "", []).append(key)
            if len(own.keys() - {""}) > 1:
                found += own.items()
                break
    return found


def find_section(
    rows: Sequence[SectionRow], name: str, titles: Mapping[int, str], *, sure: bool = False
) -> list[list[str]]:
    """Return the chunk ids below the headings that a name fits best, by document.

    A name may say a part and its whole, whose title is by the document's row id: "the risks of the
    tramway". One that is `sure` to be of a section may have but one word of its heading.
    """
    asked = AskedName(name)
    worth: dict[tuple[int, str], float] = {}
    for row, section in {(row, section) for row, _, section in rows}:
        path = section.split(SECTIONS)
        for level, heading in enumerate(path):
            above = frozenset(content_terms(" ".join([titles.get(row, ""), *path[:level]])))
            worth[row, heading] = max(
                worth.get((row, heading), 0.0), _of_part(asked, heading, above)
            )
    best = max(worth.values(), default=0.0)
    named = {key for key, value in worth.items() if value == best >= (LEAST if sure else LIKELY)}
    found: dict[int, list[str]] = {}
    for row, key, section in rows:
        if any((row, heading) in named for heading in section.split(SECTIONS)):
            found.setdefault(row, []).append(key)
    return list(found.values())


def _of_part(asked: AskedName, heading: str, above: frozenset[str]) -> float:
    """Return how well a name fits a heading: 0 where neither it nor what is above has a word."""
    title = heading_title(heading)
    terms = asked.terms(title) if title else []
    words = frozenset[str]().union(*terms)
    if title and asked.folded == fold(title):
        return SAME
    own = asked.matched(words)
    rest = [one for one in asked.words if one not in own]
    known = asked.matched(above, prefix=True)
    return len(own) / len(terms) if own and all(one in known for one in rest) else 0.0
