"""The sources of an answer: where its marks stand, and what they point to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.types import address_of, place_of

WEB = ("http://", "https://")


@dataclass(frozen=True)
class Source:
    """Hold one cited passage under the number that marks it in the answer, from 1.

    `url` is the document's own web address where its metadata has one, else its source.
    """

    number: int
    chunk_id: str
    title: str
    url: str
    place: str
    date: str
    quote: str
    text: str
    page: int | None
    score: float


def sources_of(result: Mapping[str, Any]) -> list[Source]:
    """Return the cited passages of a result, in the order of their numbers."""
    evidence = {item["chunk_id"]: item for item in result["evidence"]}
    found: dict[str, Source] = {}
    for claim in result["claims"]:
        for citation in claim["citations"]:
            chunk = citation["chunk_id"]
            if chunk not in found:
                found[chunk] = _source(len(found) + 1, citation, evidence.get(chunk, {}))
    return list(found.values())


def _source(number: int, citation: Mapping[str, Any], item: Mapping[str, Any]) -> Source:
    page, section, metadata = item.get("page"), item.get("section") or "", item.get("metadata")
    return Source(
        number=number,
        chunk_id=citation["chunk_id"],
        title=item.get("title") or citation["source"],
        url=address_of(_url(metadata or {}) or citation["source"], section, metadata or {}),
        place=place_of(section, page),
        date=item.get("updated_at") or "",
        quote=citation["quote"],
        text=item.get("text") or citation["quote"],
        page=page,
        score=float(item.get("score") or 0.0),
    )


def _url(metadata: Mapping[str, Any]) -> str:
    """Return a document's web address; any other scheme may be a script."""
    url = metadata.get("url")
    return url if isinstance(url, str) and url.lower().startswith(WEB) else ""


def url_citations(
    text: str, result: Mapping[str, Any], sources: Sequence[Source]
) -> list[dict[str, Any]]:
    """Return the marks in a text that holds the answer as OpenAI's annotations, in its order.

    A claim is looked for with its marks, so that "[1]" in a sentence of a document is none; `text`
    is the answer as `disarm_markdown` shows it. Indices count characters (code points).
    """
    by_chunk = {source.chunk_id: source for source in sources}
    found: list[dict[str, Any]] = []
    seen: dict[str, int] = {}  # where the next claim of the same words may begin
    for claim in result["claims"]:
        cited = [
            by_chunk[name] for name in dict.fromkeys(c["chunk_id"] for c in claim["citations"])
        ]
        sentence = disarm_markdown(claim["text"])
        marked = f"{sentence} {''.join(f'[{source.number}]' for source in cited)}"
        at = text.find(marked, seen.get(marked, 0))
        if at < 0:
            continue
        seen[marked] = at + len(marked)
        start = at + len(sentence) + 1
        for source in cited:
            end = start + len(f"[{source.number}]")
            place = {"start_index": start, "end_index": end}
            found.append({**place, "title": source.title, "url": source.url})
            start = end
    found.sort(key=lambda one: one["start_index"])
    return [{"type": "url_citation", "url_citation": one} for one in found]


def search_results(sources: Sequence[Source]) -> list[dict[str, Any]]:
    """Return the sources as Perplexity's search results."""
    return [
        {
            "title": source.title,
            "url": source.url,
            "date": source.date or None,
            "snippet": source.quote,
        }
        for source in sources
    ]


def footer(sources: Sequence[Source]) -> str:
    """Return a Markdown list of the sources, for clients that show nothing but the text."""
    lines = []
    for source in sources:
        title = escape_markdown(source.title)
        if source.url.lower().startswith(WEB):
            title = f"[{title}](<{source.url.translate(UNLINKED)}>)"
        linked = source.url == source.title or source.url.lower().startswith(WEB)
        url = "" if linked else escape_markdown(source.url)
        where = [part for part in (escape_markdown(source.place), url) if part]
        lines.append(f"- [{source.number}] {' · '.join([title, *where])}")
    return "\n\n---\n" + "\n".join(lines) if lines else ""


UNLINKED = {ord(character): None for character in "<>\r\n"}
SPECIAL = {ord(character): f"\\{character}" for character in "\\`*_[]<>"}


LOADS = re.compile(r"(?<=!)\[|(\\*)<(?=[A-Za-z!?/])")


def disarm_markdown(text: str) -> str:
    """Return text in which a client that draws Markdown finds no image and no HTML.

    Such a client would fetch an image as soon as it is shown, from wherever a document says.
    """
    # A backslash that is there already would make ours a character like any other.
    return LOADS.sub(
        lambda m: f"{m[0][:-1]}{'' if len(m[1] or '') % 2 else chr(92)}{m[0][-1]}", text
    )


def escape_markdown(text: str) -> str:
    """Return text of a document on one line, without any meaning in Markdown."""
    return " ".join(text.split()).translate(SPECIAL)
