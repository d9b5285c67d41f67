"""Turn a cleaned document into the rows of the catalogue: ids, hashes, language, fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.language.detect import detect_language
from core.language.scan import estimate_tokens
from ingest.chunkers.chunkers import Chunkers
from ingest.chunkers.packing import Chunker, ChunkSpan
from ingest.loaders.outline import SECTION_SEPARATOR
from ingest.types import ParsedDocument
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import ChunkRow, DocumentRow, digest, document_key, id_parts


def split_document(document: ParsedDocument, chunker: Chunker) -> list[ChunkSpan]:
    """Cut a document, in order; a chunk whose text came before is dropped."""
    first: dict[str, ChunkSpan] = {}
    for cut in chunker.cut(document.blocks):
        first.setdefault(cut.text, cut)
    return list(first.values())


_FOREIGN = re.compile(r"[^\W\d_a-zA-Z]")  # a letter of a script that addresses are not written in
_SLUG_WORD = re.compile(r"[A-Za-z]{3,}")
LANGUAGE_SAMPLE = 1500  # characters that the language is told from; chosen, not measured
# Of keywords before the first chunk, which must have room itself; chosen, not measured.
KEYWORD_CHARACTERS = 300
# ISO 639-1 codes a document may declare; "language" can also mean a programming language.
ISO_CODES = frozenset(
    "af am an ar as az be bg bn br bs ca cs cy da de dz el en eo es et eu fa fi fo fr ga gl gu he"
    " hi hr ht hu hy id is it ja jv ka kk km kn ko ku ky la lb lo lt lv mg mk ml mn mr ms mt nb ne"
    " nl nn no oc or pa pl ps pt qu ro ru rw se si sk sl sq sr sv sw ta te th tl tr ug uk ur vi vo"
    " wa xh zh zu".split()
)


def embedded_title(title: str, document_id: str) -> str:
    """Return the title if it says something: an id in its place is noise to a model."""
    return "" if title == document_id else title


def embedded_keywords(metadata: dict[str, Any], ordinal: int) -> str:
    """Return the keywords of a document for its first chunk: they say what all of it is about."""
    keywords = metadata.get("keywords") if ordinal == 0 else None
    listed = keywords if isinstance(keywords, list) else [keywords] if keywords else []
    return ", ".join(str(word) for word in listed)[:KEYWORD_CHARACTERS]


def foreign_names(section: str, anchors: Mapping[str, str]) -> str:
    """Return what addresses call the headings of a chunk, where these are in another script.

    Translated documentation keeps the English names in its addresses ("#static-files"), by which
    who asks in English finds it.
    """
    names = section.split(SECTION_SEPARATOR)
    slugs = [anchors.get(name, "") for name in names if _FOREIGN.search(name)]
    words = (word for slug in slugs for word in _SLUG_WORD.findall(slug))
    known = section.casefold()
    return " ".join(dict.fromkeys(word for word in words if word.casefold() not in known))


def embedded_text(
    title: str, section: str, text: str, context: str = "", keywords: str = ""
) -> str:
    """Return what is embedded: title, heading path, keywords, the chunk, its context."""
    return embedded_parts(title, section, text, context, keywords)[0]


def embedded_parts(
    title: str, section: str, text: str, context: str = "", keywords: str = ""
) -> tuple[str, int]:
    """Return what is embedded, and where in it the chunk's own text begins."""
    heading = section if not title or section.startswith(title) else f"{title} › {section}"
    heading = heading.strip(" ›")
    above = "" if not heading or text.startswith(heading) else f"{heading}\n"
    above += f"{keywords}\n" if keywords else ""
    headed = f"{above}{text}"
    return (f"{headed}\n{context}" if context else headed), len(above)


def body_hash(document: ParsedDocument, chunker: object, context: str) -> str:
    """Hash all that decides the stored rows but what the name of the file decides, and readers."""
    body = document.model_dump(exclude={"document_id", "source", "title"})
    return digest(body, chunker, context)


def document_hash(document_id: str, source: str, title: str, body: str, acl: frozenset[str]) -> str:
    """Hash all that decides the stored rows, so an equal hash means unchanged."""
    return digest(document_id, source, title, body, sorted(acl))


def chunk_id(
    collection: Collection, document_id: str, version: str, content_hash: str, ordinal: int
) -> str:
    """Return the id of a chunk, the same whenever it is made in this data directory."""
    return digest(
        *id_parts(collection),
        document_id,
        version or content_hash,
        ordinal,
        content_hash,
        length=24,
    )


def enrich(
    document: ParsedDocument,
    collection: Collection,
    file: str,
    *,
    chunkers: Chunkers,
    acl: frozenset[str],
    context: str = "",
    document_id: str = "",
) -> DocumentRow:
    """Split a document and give everything its id; `context` is text of its neighbours.

    `document_id` is the id that it gets in place of the one that its file calls it.
    """
    own = document_id or document.document_id
    body = body_hash(document, chunkers.key, context)
    content_hash = document_hash(own, document.source, document.title, body, acl)
    version = str(document.metadata.get("version") or "")
    language = language_of(document)
    title = embedded_title(document.title, document.document_id)
    anchors = _anchors(document.metadata)
    chunks = []
    for ordinal, chunk in enumerate(split_document(document, chunkers.choose(language))):
        text, section = chunk.text, chunk.run.section
        keywords = embedded_keywords(document.metadata, ordinal)
        foreign = foreign_names(section, anchors)
        around = "\n".join(filter(None, (context, foreign)))
        embedded = digest(embedded_text(title, section, text, around, keywords))
        chunks.append(
            ChunkRow(
                text=text,
                kind=chunk.kind,
                section=section,
                page=chunk.page,
                ordinal=ordinal,
                chunk_id=chunk_id(collection, own, version, content_hash, ordinal),
                tokens=estimate_tokens(text),
                content_hash=embedded,
                context=around,
            )
        )
    metadata = document.metadata
    if "framework" in metadata:  # of documentation: what its pages are filtered and studied by
        tokens, density = sum(chunk.tokens for chunk in chunks), _code_density(document)
        counted = {"total_chunks": len(chunks), "tokens": tokens, "code_density": density}
        metadata = {**metadata, **counted}
    return DocumentRow(
        key=document_key(collection, own),
        document_id=own,
        file=file,
        source=document.source,
        title=document.title,
        format=document.format,
        language=language,
        is_record=document.is_record,
        version=version,
        updated_at=str(document.metadata.get("updated_at") or ""),
        content_hash=content_hash,
        metadata=metadata,
        fields=_field_rows(document.fields),
        chunks=chunks,
        acl=acl,
        body_hash=body,
        alias="" if own == document.document_id else document.document_id,
    )


def _code_density(document: ParsedDocument) -> float:
    whole = sum(len(block.text) for block in document.blocks)
    code = sum(len(block.text) for block in document.blocks if block.kind == "code")
    return round(code / whole, 2) if whole else 0.0


def _anchors(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the anchors of the headings and names of a page."""
    entries = metadata.get("entries")
    rows = entries if isinstance(entries, list) else []
    return {
        str(one["name"]): str(one["anchor"])
        for one in rows
        if isinstance(one, dict) and one.get("name") and one.get("anchor")
    }


def language_of(document: ParsedDocument) -> str:
    """Return the language that a document declares, or else the one its text is in."""
    declared = str(document.metadata.get("language") or "").lower().replace("_", "-")
    if (code := declared.split("-")[0]) in ISO_CODES:
        return code
    sample = " ".join(block.text for block in document.blocks if block.kind != "code")
    return detect_language((sample or document.title)[:LANGUAGE_SAMPLE])


def _field_rows(fields: dict[str, Any]) -> list[tuple[str, str, float | None]]:
    rows: list[tuple[str, str, float | None]] = []
    for name, value in fields.items():
        for item in value if isinstance(value, list) else [value]:
            if item is None or item == "":
                continue
            rows.append((name, str(item), _number(item)))
    return rows


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(str(value))
    except ValueError:
        return None
