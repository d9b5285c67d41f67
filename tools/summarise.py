"""`summarise`: the sentences that stand for a document, a chapter, a topic or all one may see."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from core.auth import AuthContext
from core.language.analysis import content_terms
from core.language.numbering import plural_form
from core.language.orders import gives_orders
from core.language.scan import fold
from core.metadata import ALL_PARTS, CHAPTERS, EXTRACTS, LABELS
from core.types import Evidence, FrozenModel
from languages.language import find_language
from models.vectors import central
from retrievers.extracts import Extract, central_sentences
from retrievers.fusion import TEXT, VECTOR
from retrievers.hybrid import hybrid_search
from retrievers.types import Query
from stores.sqlite.listing import DocumentName
from tools.grouping import GROUPS, PartReader, SummaryPart
from tools.naming import (
    AskedName,
    Named,
    SectionRow,
    common_heading,
    find_chapter,
    find_documents,
    find_numbered,
    find_section,
    parts_of,
)
from tools.query_records import row_evidence
from tools.types import Tool, ToolResult

# Chosen, not measured:
PASSAGES = 24  # of one document; its most central sentences are looked for in these
SENTENCES = 6  # of one document: what a reader takes in at a glance
MOST_CHAPTERS = 20  # that are named where there is none of the number asked for
LONGEST_NAME = 80  # characters of a heading that is named
NAMED = 6  # chapters beside the title of a document of several
SPOKESMEN = 2  # of a group of documents: those that speak for it
MOST_OUTLINED = 1000  # documents whose headings are looked through
TOPIC, LEAST_TOPIC = 50, 3  # passages that are searched for a topic, and that must be about it
WIDESPREAD, LEAST_SPREAD = 0.5, 20  # of the documents, that make a topic one of all
NUMBERED = re.compile(r"^(?:\w+ )?\d+\s*[.:—–-]\s*")  # "Chapter 2: ", "2. "
NUMBERS = re.compile(r"-?\d+(?:\.\d+)*(?:,-?\d+(?:\.\d+)*)*")


class SummaryArguments(FrozenModel):
    """Name a document by its title or file, "" for the whole collection.

    `part` is the number, -1 for the last, or the heading of one of its chapters, several numbers
    with commas between them, "*" for each of them, "" for none. Where nothing is called so, with
    `topic` a section or a topic will do, with `here` all there is, and with `near` documents of a
    similar name are found. `themes` lists the main ones, `sentences` says how many there should be,
    0 for what is fit.
    """

    document: str = Field("", max_length=8000)
    part: str = Field("", max_length=8000)
    topic: bool = False
    near: bool = False
    here: bool = False
    themes: bool = False
    sentences: int = Field(0, ge=0, le=999)
    language: str | None = Field(None, max_length=8)


class Whole(NamedTuple):
    """Hold what is summarised: documents, and the chunks of each text of each part.

    A part of one text is summed up in several sentences, one of several texts in one of each.
    `telling` says how much the words of each part tell it from the others.
    """

    documents: Sequence[DocumentName]
    parts: Sequence[Sequence[Sequence[str]]]
    subject: str = ""
    labels: Sequence[str] = ()
    telling: Sequence[Mapping[str, float]] = ()


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
        lenient = not given.near or AskedName(given.document).is_general
        if not given.document or (given.part and lenient and not found.documents):
            found = Named(known, [])
        query = Query(
            given.part or given.document, auth, language=given.language, deadline=deadline
        )
        reader = PartReader(self._index, query)
        whole = self._whole(given, known, found, reader)
        if whole is not None:
            quoted = self._quoted(reader, whole, given, strict=True)
            other = self._topic(given, known, reader) if given.document and not quoted else None
            about = self._quoted(reader, other, given, strict=True) if other is not None else []
            if other is not None and about:  # of that name there is but a list, or code
                whole, quoted = other, about
            quoted = quoted or self._quoted(reader, whole, given, strict=False)
            chapters = self._chapter_names(whole.documents[0]) if _is_one(whole, given) else []
            evidence = self._summary(whole, quoted, given.language, chapters)
        elif given.part:
            evidence = self._chapters(reader, found.documents)
        else:
            evidence = reader.read([one.first for one in found.near] if given.near else [])
        return ToolResult(
            evidence=self._in_place(evidence, given.document or self._index.collection.name),
            auth_filter=auth.describe(),
            notes=[] if whole is not None else [f"no document is called “{given.document}”"],
        )

    def _whole(
        self,
        given: SummaryArguments,
        known: Sequence[DocumentName],
        found: Named,
        reader: PartReader,
    ) -> Whole | None:
        """Return what is meant by the arguments, None where nothing is called so."""
        within = found.documents if given.document and found.documents else known
        if given.part:
            return self._part(given, found.documents, reader)
        if given.document and found.documents:
            return self._named(within, given, reader)
        if not given.document:
            return self._all(known, given, reader) if known else None
        whole = self._titled(known, given.document) or self._topic(given, known, reader)
        if whole is None and known:  # "the report" is what there is, or what was spoken of
            general = len(known) == 1 and AskedName(given.document).is_general
            whole = self._all(known, given, reader) if general or given.here else None
        return whole

    def _part(
        self, given: SummaryArguments, known: Sequence[DocumentName], reader: PartReader
    ) -> Whole | None:
        """Return the chapters of a number, or of a heading; for want of these a topic."""
        outline = self._outline([one.row for one in known])
        if given.part == ALL_PARTS:
            parts = [(title, keys) for title, keys in parts_of(outline) if title][:MOST_CHAPTERS]
            titles = [title for title, _ in parts]
            return Whole(known, [[keys] for _, keys in parts], labels=titles) if parts else None
        if NUMBERS.fullmatch(given.part):
            found = [_chapters_of(outline, one) for one in given.part.split(",")]
            if len(found) == 1 or not all(found):  # of several none may be lacking
                return self._sections(known, found[0] if len(found) == 1 else [])
            several = [keys for one in found for keys in one]
            labels = [common_heading(outline, keys) for keys in several]
            return Whole(known, [[keys] for keys in several], labels=labels)
        own = given.model_copy(update={"document": given.part})
        return self._titled(known, given.part, sure=True) or self._topic(own, known, reader)

    def _titled(
        self, known: Sequence[DocumentName], name: str, *, sure: bool = False
    ) -> Whole | None:
        """Return the sections whose headings fit a name, None for none."""
        titles = {one.row: f"{one.title} {one.source}" for one in known}
        outline = self._outline([one.row for one in known])
        return self._sections(known, find_section(outline, name, titles, sure=sure))

    def _named(
        self, meant: Sequence[DocumentName], given: SummaryArguments, reader: PartReader
    ) -> Whole:
        """Return the documents of one title as one text, those of several as one part each."""
        if given.themes:
            return self._parts(meant, given, reader)
        titles = dict.fromkeys(one.title for one in meant)
        rows = [[one.row for one in meant if one.title == title] for title in titles]
        keys = [[self._index.catalogue.chunk_ids(own)] for own in rows]
        return Whole(meant, keys, meant[0].title if len(rows) == 1 else "", list(titles))

    def _parts(
        self, meant: Sequence[DocumentName], given: SummaryArguments, reader: PartReader
    ) -> Whole:
        """Return the themes of documents: their sections that are alike.

        What stands before the first heading of a document is no section. One that has no headings
        is one by itself, and where there is no other each of its passages is.
        """
        parts: list[SummaryPart] = []
        for one in meant:
            outlined = parts_of(self._outline([one.row])) if len(meant) <= MOST_OUTLINED else []
            own = [SummaryPart(heading, keys, one.row) for heading, keys in outlined if heading]
            parts += own or [SummaryPart(one.title or one.source, self._keys(one, meant), one.row)]
        if len(parts) == 1:
            parts = [SummaryPart("", [key], meant[0].row) for key in parts[0].keys]
        groups = reader.groups(parts)
        texts = [reader.nearest(one) for one in groups]
        found = list(reader.themes(groups, texts))
        messages = find_language(given.language).messages
        labels = [
            label
            if group.copies == 1
            else messages["copies"].format(title=group.parts[0].title, count=group.copies)
            for group, (label, _) in zip(groups, found, strict=True)
        ]
        titles = {one.row: one.title or one.source for one in meant}
        for place, group in enumerate(groups):  # a sentence may be of any of its documents
            several = dict.fromkeys(titles[one.row] for one in group.parts)
            others = [one for one in several if one not in labels[place]][:NAMED]
            labels[place] += f" ({'; '.join(others)})" if len(several) > 1 and others else ""
        telling = [worth for _, worth in found]
        return Whole(meant, [[keys] for keys in texts], labels=labels, telling=telling)

    def _keys(self, one: DocumentName, meant: Sequence[DocumentName]) -> Sequence[str]:
        """Return the chunks of a document, of very many the first one."""
        few = len(meant) <= MOST_OUTLINED
        return self._index.catalogue.chunk_ids([one.row]) if few else [one.first]

    def _chapters(self, reader: PartReader, known: Sequence[DocumentName]) -> list[Evidence]:
        """Return the beginnings of the chapters that there are."""
        found = [one for one in parts_of(self._outline([one.row for one in known])) if one[0]]
        titles = {keys[0]: title for title, keys in found[:MOST_CHAPTERS]}
        items = reader.read(list(titles))
        return [one.model_copy(update={"section": titles[one.chunk_id]}) for one in items]

    def _chapter_names(self, document: DocumentName) -> list[str]:
        """Return what the chapters of a document are called, in their order."""
        outline = self._outline([document.row])
        headings = dict.fromkeys(title for title, _ in parts_of(outline) if title)
        names = [one for one in headings if len(one) <= LONGEST_NAME][:MOST_CHAPTERS]
        names = [one for one in names if not gives_orders(one, 0, len(one))]
        bare = [NUMBERED.sub("", one) for one in names]
        return bare if all(bare) else names

    def _outline(self, rows: Sequence[int]) -> list[tuple[int, str, str]]:
        """Return the headings of documents by chunk, none where they are too many to look at."""
        return self._index.catalogue.sections(rows) if len(rows) <= MOST_OUTLINED else []

    def _sections(
        self, known: Sequence[DocumentName], found: Sequence[Sequence[str]]
    ) -> Whole | None:
        return Whole(known, [[keys] for keys in found[:GROUPS]]) if found else None

    def _topic(
        self, given: SummaryArguments, known: Sequence[DocumentName], reader: PartReader
    ) -> Whole | None:
        """Return the passages about a topic, or the whole collection where it is that of all."""
        terms = set(content_terms(given.document, given.language))
        if not terms:
            return None
        pools = {VECTOR: TOPIC, TEXT: TOPIC}
        hits = hybrid_search(self._index, reader.query, [VECTOR, TEXT], pools, TOPIC, choose=False)
        about = [
            one
            for one in hits.evidence
            if terms <= set(content_terms(f"{one.title}\n{one.section}\n{one.text}", one.language))
        ]
        spread = len({one.document_key for one in about})
        if spread > 1 and spread >= min(WIDESPREAD * len(known), LEAST_SPREAD):
            whole = self._all(known, given, reader)
            return whole._replace(subject=given.document)
        if not given.topic or len(about) < LEAST_TOPIC:
            return None
        keys = [one.chunk_id for one in about[: PASSAGES // 2]]
        return Whole(known, [[keys]], given.document)

    def _all(
        self, known: Sequence[DocumentName], given: SummaryArguments, reader: PartReader
    ) -> Whole:
        """Return the main groups of documents, named after the one that speaks for each."""
        if given.themes:
            return self._parts(known, given, reader)
        if len(known) == 1:
            return self._named(known, given, reader)
        messages = find_language(given.language).messages
        parts = [SummaryPart(d.title or d.source, self._keys(d, known), d.row) for d in known]
        by_row = {one.row: one for one in known}
        groups = reader.groups(parts)
        labels = []
        for one in groups:
            title = one.parts[0].title
            copies = messages["copies"].format(title=title, count=one.copies)
            group = messages["group"].format(title=title, count=one.more)
            several = [*([group] if one.more else []), *([copies] if one.copies > 1 else [])]
            names = self._chapter_names(by_row[one.parts[0].row]) if len(groups) <= GROUPS else []
            named = f" ({'; '.join(names[:NAMED])})" if names and not several else ""
            labels.append(", ".join(several) or f"{title}{named}")
        return Whole(known, [reader.beginnings(one) for one in groups], labels=labels)

    def _summary(
        self,
        whole: Whole,
        quoted: Sequence[tuple[int, Extract]],
        language: str | None,
        chapters: Sequence[str],
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
        added = {EXTRACTS: extracts, LABELS: labels, CHAPTERS: [*chapters]}
        return [
            row.model_copy(update={"metadata": {**row.metadata, **added}}),
            *passages.values(),
        ]

    def _quoted(
        self, reader: PartReader, whole: Whole, given: SummaryArguments, *, strict: bool
    ) -> list[tuple[int, Extract]]:
        """Return the sentences that stand for each part, by its place."""
        found: list[tuple[int, Extract]] = []
        known: set[str] = set()
        count = len(whole.parts)
        most = SENTENCES if count == 1 else max(SPOKESMEN, SENTENCES // count)
        most = 1 if given.part == ALL_PARTS else most
        if given.sentences:
            most = -(-given.sentences // count) if count > 1 else given.sentences
        for place, texts in enumerate(whole.parts):
            left = min(most, given.sentences - len(found)) if given.sentences else most
            for keys in texts:
                if not left:
                    break
                items = reader.read(_central(reader, keys))
                wanted = left if len(texts) == 1 else 1
                own = central_sentences(
                    self._index,
                    items,
                    wanted,
                    whole.subject,
                    strict=strict,
                    opens=count == 1,
                    telling=whole.telling[place] if whole.telling else None,
                )
                own = [one for one in own if fold(one.text) not in known]
                known |= {fold(one.text) for one in own}
                found += [(place, one) for one in own]
                left -= len(own)
        return found

    def _row(
        self, meant: Sequence[DocumentName], passages: Sequence[Evidence], language: str | None
    ) -> Evidence:
        forms = find_language(language).messages["documents"]
        text = plural_form(len(meant), forms).format(count=len(meant))
        return row_evidence(text, self._index.collection.name, passages)


def _is_one(whole: Whole, given: SummaryArguments) -> bool:
    """Tell whether one whole document is summed up."""
    return len(whole.documents) == len(whole.parts) == 1 and not (given.part or given.themes)


def _chapters_of(outline: Sequence[SectionRow], number: str) -> list[list[str]]:
    """Return the chunk ids of the chapters of a number, of each document that has one."""
    whole = number.lstrip("-").isdecimal()
    return find_chapter(outline, int(number)) if whole else find_numbered(outline, number)


def _central(reader: PartReader, keys: Sequence[str]) -> list[str]:
    """Return the most central of some chunks in their order, the first one among them."""
    if len(keys) <= PASSAGES:
        return list(keys)
    return [keys[place] for place in sorted(central(reader.vectors(keys), PASSAGES, (0,)))]
