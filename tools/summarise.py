"""`summarise`: the sentences that stand for a document, a chapter, a topic or all one may see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log1p
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from core.auth import AuthContext
from core.language.analysis import content_terms
from core.language.numbering import plural_form
from core.language.scan import fold
from core.metadata import EXTRACTS, LABELS
from core.types import Evidence, FrozenModel
from languages.language import find_language
from models.vectors import Vectors, central
from retrievers.channels import TEXT, VECTOR
from retrievers.extracts import Extract, central_sentences
from retrievers.hybrid import hybrid_search
from retrievers.tree.leaves import find_keywords
from retrievers.tree.search import main_nodes
from retrievers.tree.view import open_view
from retrievers.types import Query
from stores.sqlite.listing import DocumentName
from tools.naming import AskedName, Named, find_chapter, find_documents, find_section, parts_of
from tools.record_rows import row_evidence
from tools.types import Tool, ToolResult

# Chosen, not measured:
PASSAGES = 24  # of one document; its most central sentences are looked for in these
SENTENCES = 6  # of one document: what a reader takes in at a glance
NAMED = 4  # keywords that name a theme
CHAPTERS = 20  # that are named where there is none of the number asked for
GROUPS, SPOKESMEN = 6, 2  # of the documents of a collection, and those that speak for each
ASKED, BEGINNING = 6, 4  # documents that may speak for a group, and passages of each that are read
MOST_OUTLINED = 1000  # documents whose headings are looked through
TOPIC, LEAST_TOPIC = 50, 3  # passages that are searched for a topic, and that must be about it
WIDESPREAD, LEAST_SPREAD = 0.5, 20  # of the documents, that make a topic one of all


class SummaryArguments(FrozenModel):
    """Name a document by its title or file, "" for the whole collection.

    `chapter` is the number of one of its chapters, 0 for none. Where nothing is called so, with
    `topic` a section or a topic will do, with `here` all there is, and with `near` documents of a
    similar name are found. `themes` lists the main ones, `sentences` says how many there should be,
    0 for what is fit.
    """

    document: str = Field("", max_length=8000)
    chapter: int = Field(0, ge=0, le=999)
    topic: bool = False
    near: bool = False
    here: bool = False
    themes: bool = False
    sentences: int = Field(0, ge=0, le=999)
    language: str | None = Field(None, max_length=8)


class SummaryPart(NamedTuple):
    """Hold what is called so: the chunks of a document or section, and the row of a document."""

    title: str
    keys: Sequence[str]
    row: int = 0


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
            quoted = self._quoted(auth, whole, given, strict=True)
            other = self._topic(given, known, query) if given.document and not quoted else None
            about = self._quoted(auth, other, given, strict=True) if other is not None else []
            if other is not None and about:  # of that name there is but a list, or code
                whole, quoted = other, about
            quoted = quoted or self._quoted(auth, whole, given, strict=False)
            evidence = self._summary(whole, quoted, given.language)
        elif given.chapter:
            evidence = self._chapters(auth, found.documents or known)
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
            return self._named(within, given, query.auth)
        if not given.document:
            return self._all(known, given, query.auth) if known else None
        titles = {one.row: f"{one.title} {one.source}" for one in known}
        sections = find_section(self._outline(rows), given.document, titles)
        whole = self._sections(known, sections) or self._topic(given, known, query)
        if whole is None and known:  # "the report" is what there is, or what was spoken of
            general = len(known) == 1 and AskedName(given.document).is_general
            whole = self._all(known, given, query.auth) if general or given.here else None
        return whole

    def _named(
        self, meant: Sequence[DocumentName], given: SummaryArguments, auth: AuthContext
    ) -> Whole:
        """Return the documents of one title as one text, those of several as one part each."""
        if given.themes and len(meant) == 1:
            return self._parts(meant, given, auth)
        titles = dict.fromkeys(one.title for one in meant)
        rows = [[one.row for one in meant if one.title == title] for title in titles]
        keys = [[self._index.catalogue.chunk_ids(own)] for own in rows]
        return Whole(meant, keys, meant[0].title if len(rows) == 1 else "", list(titles))

    def _parts(
        self, meant: Sequence[DocumentName], given: SummaryArguments, auth: AuthContext
    ) -> Whole:
        """Return the themes of one document: its sections, else its passages that are alike."""
        found = [SummaryPart(*one) for one in parts_of(self._outline([meant[0].row]))]
        keys = self._index.catalogue.chunk_ids([meant[0].row])
        return self._groups(meant, found or [SummaryPart("", [key]) for key in keys], given, auth)

    def _chapters(self, auth: AuthContext, known: Sequence[DocumentName]) -> list[Evidence]:
        """Return the beginnings of the chapters that there are."""
        found = [one for one in parts_of(self._outline([one.row for one in known])) if one[0]]
        titles = {keys[0]: title for title, keys in found[:CHAPTERS]}
        items = self._read(auth, list(titles))
        return [one.model_copy(update={"section": titles[one.chunk_id]}) for one in items]

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
            whole = self._all(known, given, query.auth)
            return whole._replace(subject=given.document)
        if not given.topic or len(about) < LEAST_TOPIC:
            return None
        keys = [one.chunk_id for one in about[: PASSAGES // 2]]
        return Whole(known, [[keys]], given.document)

    def _all(
        self, known: Sequence[DocumentName], given: SummaryArguments, auth: AuthContext
    ) -> Whole:
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
            return self._named(known, given, auth)
        if len(known) > MOST_OUTLINED:
            parts = [SummaryPart(one.title or one.source, [one.first], one.row) for one in known]
        else:
            ids = (self._index.catalogue.chunk_ids([one.row]) for one in known)
            parts = [SummaryPart(d.title or d.source, k) for d, k in zip(known, ids, strict=True)]
        return self._groups(known, parts, given, auth)

    def _groups(
        self,
        known: Sequence[DocumentName],
        every: Sequence[SummaryPart],
        given: SummaryArguments,
        auth: AuthContext,
    ) -> Whole:
        """Return the main groups of parts, the largest first, and what speaks for each."""
        messages = find_language(given.language).messages
        copies = self._copies(auth, every)
        own = [every[one] for one in copies]
        vectors = self._middles(own)
        leaders = central(vectors, GROUPS)
        nearest = (vectors @ vectors[leaders].T).argmax(axis=1)
        nearest[leaders] = np.arange(len(leaders))
        counts = list(copies.values())
        parts, labels = [], []
        sizes = [sum(counts[n] for n in np.flatnonzero(nearest == g)) for g in range(len(leaders))]
        for group in sorted(range(len(leaders)), key=lambda n: -sizes[n]):
            members = np.flatnonzero(nearest == group)
            likeness = vectors[members] @ vectors[leaders[group]]
            near = members[np.argsort(-likeness, kind="stable")[:ASKED]].tolist()
            speak = [own[one] for one in dict.fromkeys([leaders[group], *near])]
            ids = [self._index.catalogue.chunk_ids([p.row]) if p.row else p.keys for p in speak]
            parts.append([keys[:BEGINNING] for keys in ids])
            title, same = speak[0].title, counts[leaders[group]]
            named = messages["copies"].format(title=title, count=same) if same > 1 else title
            more = sizes[group] - same
            grouped = messages["group"].format(title=title, count=more) if more else named
            labels.append(f"{grouped}, {named}" if more and same > 1 else grouped)
        if given.themes:
            words = self._keywords(auth, parts)
            labels = [
                f"{title} ({', '.join(own)})" if title and own else title or ", ".join(own)
                for title, own in zip(labels, words, strict=True)
            ]
        return Whole(known, parts, labels=labels)

    def _keywords(
        self, auth: AuthContext, parts: Sequence[Sequence[Sequence[str]]]
    ) -> list[list[str]]:
        """Return the words that tell each part from the others, by tf-idf over the parts."""
        counts: list[Counter[str]] = []
        shown: dict[str, str] = {}
        for texts in parts:
            items = self._read(auth, [key for keys in texts for key in keys])
            found = [pair for one in items for pair in find_keywords(one.text, one.language)]
            titled = {term for one in items for term in content_terms(f"{one.title} {one.section}")}
            shown |= dict(found)
            counts.append(Counter(term for term, _ in found if term not in titled))
        often = Counter(term for own in counts for term in own)
        rarity = {term: log1p(len(parts) / count) for term, count in often.items()}
        ranked = [sorted(own, key=lambda term: -own[term] * rarity[term]) for own in counts]
        return [[shown[term] for term in own[:NAMED]] for own in ranked]

    def _copies(self, auth: AuthContext, parts: Sequence[SummaryPart]) -> dict[int, int]:
        """Return the places of parts of different text, with how many have each."""
        alike: dict[bytes, list[int]] = {}
        for place, row in enumerate(self._middles(parts)):
            alike.setdefault(row.round(3).tobytes(), []).append(place)
        found: dict[int, int] = {}
        for places in alike.values():
            texts: dict[str, int] = {}
            for place in places:
                read = self._read(auth, parts[place].keys) if len(places) > 1 else []
                first = texts.setdefault("\n".join(one.text for one in read), place)
                found[first] = found.get(first, 0) + 1
        return dict(sorted(found.items()))

    def _middles(self, parts: Sequence[SummaryPart]) -> Vectors:
        """Return a unit vector for each part, the mean of its chunks."""
        rows = self._vectors([key for one in parts for key in one.keys])
        starts = np.cumsum([0, *(len(one.keys) for one in parts[:-1])])
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
        self, auth: AuthContext, whole: Whole, given: SummaryArguments, *, strict: bool
    ) -> list[tuple[int, Extract]]:
        """Return the sentences that stand for each part, by its place."""
        found: list[tuple[int, Extract]] = []
        known: set[str] = set()
        count = len(whole.parts)
        most = SENTENCES if count == 1 else 1 if given.themes else SPOKESMEN
        if given.sentences:
            most = -(-given.sentences // count) if count > 1 else given.sentences
        for place, texts in enumerate(whole.parts):
            left = min(most, given.sentences - len(found)) if given.sentences else most
            for keys in texts:
                if not left:
                    break
                items = self._read(auth, self._central(keys))
                wanted = left if len(texts) == 1 else 1
                own = central_sentences(self._index, items, wanted, whole.subject, strict=strict)
                own = [one for one in own if fold(one.text) not in known]
                known |= {fold(one.text) for one in own}
                found += [(place, one) for one in own]
                left -= len(own)
        return found

    def _row(
        self, meant: Sequence[DocumentName], passages: Sequence[Evidence], language: str | None
    ) -> Evidence:
        """Say how many documents there are, and which passages stand for them."""
        forms = find_language(language).messages["documents"]
        text = plural_form(len(meant), forms).format(count=len(meant))
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
