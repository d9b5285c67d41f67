"""`summarise`: the passages that stand for a document, or for all the caller may see."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import PurePosixPath
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from core.auth import AuthContext
from core.language.analysis import content_terms
from core.language.scan import fold
from core.metadata import version_order
from core.types import Evidence, FrozenModel
from languages.language import find_language
from models.vectors import central
from stores.sqlite.listing import DocumentName
from tools.record_rows import row_evidence
from tools.types import Tool, ToolResult

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


PASSAGES = 12  # of one document; its most central sentences are looked for in these
DOCUMENTS, BEGINNING = 5, 4  # of a collection, and the first passages of each of these


class SummaryArguments(FrozenModel):
    """Name a document by its title or file, "" for the whole collection.

    With `near` documents of a similar name are found where none is called so.
    """

    document: str = Field("", max_length=8000)
    near: bool = False
    language: str | None = Field(None, max_length=8)


class Summarise(Tool):
    """Read the passages that represent the document."""

    name = "summarise"
    purpose = "Read the most central passages of a document, or of the whole collection."
    not_for: ClassVar = ["questions about anything that a document says"]
    arguments = SummaryArguments

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return what is read and its passages in their order, else documents of a similar name."""
        given = self._checked(SummaryArguments, arguments, auth, deadline)
        known = self._index.catalogue.document_names(auth, self._index.collection.id)
        found = find_documents(given.document, known, sure=given.near)
        meant = found.documents if given.document else known
        if meant:
            keys = self._document(meant) if given.document else self._collection(meant)
            passages = self._read(auth, keys)
            evidence = [self._row(meant, passages, given.language), *passages]
        else:
            evidence = self._read(auth, [one.first for one in found.near] if given.near else [])
        return ToolResult(
            evidence=self._in_place(evidence, given.document or self._index.collection.name),
            auth_filter=auth.describe(),
            notes=[] if meant else [f"no document is called “{given.document}”"],
        )

    def _document(self, meant: Sequence[DocumentName]) -> list[str]:
        keys = self._index.catalogue.chunk_ids([one.row for one in meant])
        return (
            keys if len(keys) <= PASSAGES else sorted(self._central(keys, PASSAGES), key=keys.index)
        )

    def _collection(self, meant: Sequence[DocumentName]) -> list[str]:
        """Return the beginnings of the most central documents, as their first passages tell."""
        rows = {one.first: one.row for one in meant}
        return [
            key
            for first in self._central(list(rows), DOCUMENTS)
            for key in self._index.catalogue.chunk_ids([rows[first]])[:BEGINNING]
        ]

    def _row(
        self, meant: Sequence[DocumentName], passages: Sequence[Evidence], language: str | None
    ) -> Evidence:
        """Say how many documents of which formats there are, and which passages stand for them."""
        counted = Counter(one.format for one in meant)
        kinds = ", ".join(f"{kind}: {count}" for kind, count in counted.most_common())
        counted = find_language(language).messages["documents"]
        text = counted.format(count=len(meant), kinds=kinds)
        return row_evidence(text, self._index.collection.name, passages)

    def _central(self, keys: Sequence[str], most: int) -> list[str]:
        """Return the most central of some chunks, of a document the first one among them."""
        begin = (0,) if most == PASSAGES else ()
        without = self._index.embedder is None
        vectors = np.zeros((len(keys), 1), "float32") if without else self._index.vectors(keys)
        return [keys[place] for place in central(vectors, most, begin)]

    def _read(self, auth: AuthContext, keys: Sequence[str]) -> list[Evidence]:
        found = self._index.catalogue.evidence(auth, self._index.collection.id, keys)
        return [found[key] for key in keys if key in found]
