"""`summarise`: the sentences that stand for a document, a chapter, a topic or all one may see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from core.auth import AuthContext
from core.language.analysis import content_terms
from core.language.scan import fold
from core.metadata import EXTRACTS, LABELS
from core.types import Evidence, FrozenModel
from languages.language import find_language
from models.vectors import Vectors, central
from retrievers.channels import TEXT, VECTOR
from retrievers.extracts import Extract, central_sentences
from retrievers.hybrid import hybrid_search
from retrievers.tree.search import main_nodes
from retrievers.tree.view import open_view
from retrievers.types import Query
from stores.sqlite.listing import DocumentName
from tools.naming import Named, find_chapter, find_documents, find_section
from tools.record_rows import row_evidence
from tools.types import Tool, ToolResult

# Chosen, not measured:
PASSAGES = 24  # of one document; its most central sentences are looked for in these
SENTENCES = 6  # of one document: what a reader takes in at a glance
NAMED = 4  # keywords that name a theme
GROUPS, SPOKESMEN = 6, 2  # of the documents of a collection, and those that speak for each
ASKED, BEGINNING = 6, 4  # documents that may speak for a group, and passages of each that are read
MOST_OUTLINED = 1000  # documents whose headings are looked through
TOPIC, LEAST_TOPIC = 50, 3  # passages that are searched for a topic, and that must be about it
WIDESPREAD, LEAST_SPREAD = 0.5, 20  # of the documents, that make a topic one of all


class SummaryArguments(FrozenModel):
    """Name a document by its title or file, "" for the whole collection.

    `chapter` is the number of one of its chapters, 0 for none. With `topic` a section or a topic of
    that name will do; with `near` documents of a similar name are found where nothing is called so.
    """

    document: str = Field("", max_length=8000)
    chapter: int = Field(0, ge=0, le=999)
    topic: bool = False
    near: bool = False
    language: str | None = Field(None, max_length=8)


class Whole(NamedTuple):
    """Hold what is summarised: documents, and the chunks of each text of each part.

    A part of one text is summed up in several sentences, one of several texts in one of each.
    """

    documents: Sequence[DocumentName]
    parts: Sequence[Sequence[Sequence[str]]]
    subject: str | None = ""
    labels: Sequence[str] = ()


class Summarise(Tool):
    """Read the passages that represent a whole, and the sentences among them that say it."""

    name = "summarise"
    purpose = "Read what stands for a document, a chapter, or the whole collection."
    not_for: ClassVar = ["questions about anything that a document says"]
    arguments = SummaryArguments

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return what is read and its passages in their order, else documents of a similar name."""
        given = self._checked(SummaryArguments, arguments, auth, deadline)
        known = self._index.catalogue.document_names(auth, self._index.collection.id)
        found = find_documents(given.document, known, sure=given.near)
        if not given.document:
            found = Named(known, [])
        query = Query(given.document, auth, language=given.language, deadline=deadline)
        whole = self._whole(given, known, found, query)
        if whole is not None:
            quoted = self._quoted(auth, whole, strict=True)
            other = self._topic(given, known, query) if given.document and not quoted else None
            about = self._quoted(auth, other, strict=True) if other is not None else []
            if other is not None and about:  # of that name there is but a list, or code
                whole, quoted = other, about
            quoted = quoted or self._quoted(auth, whole, strict=False)
            evidence = self._summary(whole, quoted, given.language)
        else:
            evidence = self._read(auth, [one.first for one in found.near] if given.near else [])
        return ToolResult(
            evidence=self._in_place(evidence, given.document or self._index.collection.name),
            auth_filter=auth.describe(),
            notes=[] if whole is not None else [f"no document is called “{given.document}”"],
        )

    def _whole(
        self, given: SummaryArguments, known: Sequence[DocumentName], found: Named, query: Query
    ) -> Whole | None:
        """Return what is meant by the arguments, None where nothing is called so."""
        within = found.documents if given.document and found.documents else known
        rows = [one.row for one in within]
        if given.chapter:
            return self._sections(known, find_chapter(self._outline(rows), given.chapter))
        if given.document and found.documents:
            return Whole(within, [[self._index.catalogue.chunk_ids(rows)]], within[0].title)
        if not given.document:
            return self._all(known, given.language, query.auth) if known else None
        sections = find_section(self._outline(rows), given.document)
        return self._sections(known, sections) or self._topic(given, known, query)

    def _outline(self, rows: Sequence[int]) -> list[tuple[int, str, str]]:
        """Return the headings of documents by chunk, none where they are too many to look at."""
        return self._index.catalogue.sections(rows) if len(rows) <= MOST_OUTLINED else []

    def _sections(
        self, known: Sequence[DocumentName], found: Sequence[Sequence[str]]
    ) -> Whole | None:
        """Return sections as a whole, the first ones where there are many."""
        return Whole(known, [[keys] for keys in found[:GROUPS]]) if found else None

    def _topic(
        self, given: SummaryArguments, known: Sequence[DocumentName], query: Query
    ) -> Whole | None:
        """Return the passages about a topic, or the whole collection where it is that of all."""
        terms = set(content_terms(given.document, given.language))
        if not terms:
            return None
        pools = {VECTOR: TOPIC, TEXT: TOPIC}
        hits = hybrid_search(self._index, query, [VECTOR, TEXT], pools, TOPIC, choose=False)
        about = [
            one
            for one in hits.evidence
            if terms <= set(content_terms(f"{one.title}\n{one.section}\n{one.text}", one.language))
        ]
        spread = len({one.document_key for one in about})
        if spread > 1 and spread >= min(WIDESPREAD * len(known), LEAST_SPREAD):
            whole = self._all(known, given.language, query.auth)
            return whole._replace(subject=given.document)
        if not given.topic or len(about) < LEAST_TOPIC:
            return None
        keys = [one.chunk_id for one in about[: PASSAGES // 2]]
        return Whole(known, [[keys]], given.document)

    def _all(self, known: Sequence[DocumentName], language: str | None, auth: AuthContext) -> Whole:
        """Return all there is: the groups of documents, or the themes of one document or of many.

        Themes are the nodes of the tree, where there is one.
        """
        view = None
        if len(known) == 1 or len(known) > MOST_OUTLINED:
            view = open_view(self._index, auth)
        if view is not None and len(set(view.shape.documents.tolist())) == len(known):
            nodes = main_nodes(view, GROUPS)
            read = [
                list(dict.fromkeys(one.evidence.chunk_id for one in view.sentences(node)))
                for node in nodes
            ]
            if len(nodes) > 1:
                named = [", ".join(view.shape.keywords(node)[:NAMED]) for node in nodes]
                return Whole(known, [[keys] for keys in read], None, named)
        if len(known) == 1:
            return Whole(known, [[self._index.catalogue.chunk_ids([known[0].row])]], known[0].title)
        return self._groups(known, language)

    def _groups(self, known: Sequence[DocumentName], language: str | None) -> Whole:
        """Return the main groups of documents, the largest first, and what speaks for each."""
        vectors = self._documents(known)
        leaders = central(vectors, GROUPS)
        nearest = (vectors @ vectors[leaders].T).argmax(axis=1)
        nearest[leaders] = np.arange(len(leaders))
        parts, labels = [], []
        counted = find_language(language).messages["group"]
        for group in sorted(range(len(leaders)), key=lambda n: -int((nearest == n).sum())):
            members = np.flatnonzero(nearest == group)
            likeness = vectors[members] @ vectors[leaders[group]]
            near = members[np.argsort(-likeness, kind="stable")[:ASKED]].tolist()
            speak = dict.fromkeys([leaders[group], *near])
            ids = (self._index.catalogue.chunk_ids([known[one].row]) for one in speak)
            parts.append([keys[:BEGINNING] for keys in ids])
            title, more = known[leaders[group]].title or known[leaders[group]].source, len(members)
            labels.append(counted.format(title=title, count=more - 1) if more > 1 else title)
        return Whole(known, parts, labels=labels)

    def _documents(self, known: Sequence[DocumentName]) -> Vectors:
        """Return a unit vector for each document: the mean of all of it, or its beginning's."""
        if len(known) > MOST_OUTLINED:
            return self._vectors([one.first for one in known])
        ids = [self._index.catalogue.chunk_ids([one.row]) for one in known]
        rows = self._vectors([key for keys in ids for key in keys])
        starts = np.cumsum([0, *map(len, ids[:-1])])
        means = np.add.reduceat(rows, starts, axis=0)
        return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9))

    def _summary(
        self, whole: Whole, quoted: Sequence[tuple[int, Extract]], language: str | None
    ) -> list[Evidence]:
        """Return the row that says what is quoted of what, and the passages that are quoted."""
        passages = {one.item.chunk_id: one.item for _, one in quoted}
        row = self._row(whole.documents, list(passages.values()), language)
        labels = {
            one.item.chunk_id: whole.labels[part] if whole.labels else one.item.title
            for part, one in quoted
            if len(whole.parts) > 1
        }
        extracts = [(one.item.chunk_id, one.start, one.end) for _, one in quoted]
        added = {EXTRACTS: extracts, LABELS: labels}
        return [
            row.model_copy(update={"metadata": {**row.metadata, **added}}),
            *passages.values(),
        ]

    def _quoted(
        self, auth: AuthContext, whole: Whole, *, strict: bool
    ) -> list[tuple[int, Extract]]:
        """Return the sentences that stand for each part, by its place."""
        found: list[tuple[int, Extract]] = []
        known: set[str] = set()
        most = SENTENCES if len(whole.parts) == 1 else SPOKESMEN
        for place, texts in enumerate(whole.parts):
            left = most
            for keys in texts:
                items = self._read(auth, self._central(keys))
                wanted = left if len(texts) == 1 else 1
                own = central_sentences(self._index, items, wanted, whole.subject, strict=strict)
                own = [one for one in own if fold(one.text) not in known]
                known |= {fold(one.text) for one in own}
                found += [(place, one) for one in own]
                left -= len(own)
                if not left:
                    break
        return found

    def _row(
        self, meant: Sequence[DocumentName], passages: Sequence[Evidence], language: str | None
    ) -> Evidence:
        """Say how many documents of which formats there are, and which passages stand for them."""
        counted = Counter(one.format for one in meant)
        kinds = ", ".join(f"{kind}: {count}" for kind, count in counted.most_common())
        counted = find_language(language).messages["documents"]
        text = counted.format(count=len(meant), kinds=kinds)
        return row_evidence(text, self._index.collection.name, passages)

    def _central(self, keys: Sequence[str]) -> list[str]:
        """Return the most central of some chunks in their order, the first one among them."""
        if len(keys) <= PASSAGES:
            return list(keys)
        return [keys[place] for place in sorted(central(self._vectors(keys), PASSAGES, (0,)))]

    def _vectors(self, keys: Sequence[str]) -> Vectors:
        """Return the vectors of chunks, zeros where there is no embedder."""
        without = self._index.embedder is None
        return np.zeros((len(keys), 1), "float32") if without else self._index.vectors(keys)

    def _read(self, auth: AuthContext, keys: Sequence[str]) -> list[Evidence]:
        found = self._index.catalogue.evidence(auth, self._index.collection.id, keys)
        return [found[key] for key in keys if key in found]
