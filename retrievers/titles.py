"""Find the document that a question calls by its title or by the name of its file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import PurePosixPath
from typing import NamedTuple

from core.language.analysis import content_terms
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


def named(name: str, known: Sequence[DocumentName], *, sure: bool) -> Named:
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
        said = frozenset(content_terms(form))
        shared = len(said & asked)
        if not shared:
            continue
        share = shared / len(said | asked)
        if said == asked:
            share = ALIKE - (form == short != title) / 2
        elif shared == len(asked) > 1:
            share = max(share, SURE)
        elif shared == len(said) > 1:
            share = max(share, LIKELY)
        best = max(best, share)
    return best
