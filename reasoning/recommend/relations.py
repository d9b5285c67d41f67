"""What documents say of each other: what one depends on, works with, or stands instead of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from core.language.orders import gives_orders
from core.language.sentences import sentence_spans
from core.metadata import humanise
from core.types import Citation, Evidence, FrozenModel
from reasoning.recommend.factors import Suggestion
from reasoning.recommend.reasons import ROW
from reasoning.recommend.roles import cue, is_denied, tables, value_of

RelationKind = Literal["depends_on", "works_with", "instead_of", "replaced_by"]
KINDS: tuple[RelationKind, ...] = get_args(RelationKind)
MOST_NAMES = 6  # of one kind and document; chosen, not measured
# A name, or two, after the words of a relation: "Google Photos", "PostgreSQL", "scikit-learn".
_NAME = re.compile(
    r"\s*(?:(?:the|an?)\s+)?[`“\"«]?(?P<name>[A-ZА-ЯЁІЇЄҐ][\w+#-]*(?:\.\w+)*"
    r"(?: (?:[A-ZА-ЯЁІЇЄҐ][\w+#-]*(?:\.\w+)*|\d[\w.]*))*|[a-z][\w.+#-]*\w)[`”\"»]?"
)


class Relation(FrozenModel):
    """Say how a document relates to what it names; `target_id` where that was found as well."""

    document_id: str
    title: str
    kind: RelationKind
    target: str
    target_id: str | None = None
    citations: list[Citation]


def find_relations(chosen: Sequence[Suggestion], found: Sequence[Suggestion]) -> list[Relation]:
    """Return what the chosen documents say of others; `found` are those that may be named.

    What a field says comes first, then what sentences do. A name in small letters counts only
    where a document that was found has it as its title.
    """
    known = {one.passage.title.casefold(): one.passage.document_id for one in found}
    relations: dict[tuple[str, str, str], Relation] = {}
    for one in chosen:
        counts: dict[str, int] = {}
        for kind, target, citations in [*_of_fields(one), *_of_sentences(one, known)]:
            own = one.passage.title.casefold()
            key = (one.key, kind, target.casefold())
            if target.casefold() == own or key in relations or counts.get(kind, 0) == MOST_NAMES:
                continue
            counts[kind] = counts.get(kind, 0) + 1
            relations[key] = Relation(
                document_id=one.passage.document_id,
                title=one.passage.title or one.passage.source,
                kind=kind,
                target=target,
                target_id=known.get(target.casefold()),
                citations=citations,
            )
    return list(relations.values())


def leave_out_replaced(need: str, ranked: Sequence[Suggestion]) -> list[Suggestion]:
    """Return what is suggested but that instead of which something is wanted: "instead of X"."""
    known = {one.passage.title.casefold(): one for one in ranked}
    ends = [match.end() for match in cue("instead_of").finditer(need)]
    named = {name.casefold() for end in ends for name in _names(need[end:], known)}
    return [one for one in ranked if one.passage.title.casefold() not in named]


Named = tuple[RelationKind, str, list[Citation]]


def _of_fields(one: Suggestion) -> list[Named]:
    """Return what fields name, cited to their row; to nothing where the text has no such row."""
    card = one.card or one.passage
    found: list[Named] = []
    for kind in KINDS:
        role = "dependencies" if kind == "depends_on" else kind
        given = value_of(role, one.passage.metadata)
        labels = {name.casefold() for name in tables()["roles"][role]}
        rows = (row for row in ROW.finditer(card.text)
                if humanise(row["label"]).casefold() in labels)  # fmt: skip
        cited = [card.cited(*row.span()) for row in rows][:1]
        names = given if isinstance(given, list) else re.split(r"[,;]\s*", str(given or ""))
        found += [(kind, str(name).strip(), cited) for name in names if str(name).strip()]
    return found


def _of_sentences(one: Suggestion, known: Mapping[str, Any]) -> list[Named]:
    found: list[Named] = []
    items = {item.chunk_id: item for item in (one.passage, one.card) if item is not None}
    for item in items.values():
        for start, end in sentence_spans(item.text):
            if not gives_orders(item.text, start, end):
                found += _of_sentence(item, start, end, known)
    return found


def _of_sentence(item: Evidence, start: int, end: int, known: Mapping[str, Any]) -> list[Named]:
    text = item.text[start:end]
    found: list[Named] = []
    for kind in KINDS:
        for match in cue(kind).finditer(text):
            if is_denied(text, match.start()):
                continue
            cited = [item.cited(start, end)]
            found += [(kind, name, cited) for name in _names(text[match.end() :], known)]
    return found


def _names(text: str, known: Mapping[str, Any]) -> list[str]:
    """Return the names that a text begins with, joined as lists are."""
    found: list[str] = []
    place = 0
    while len(found) < MOST_NAMES and (match := _NAME.match(text, place)) is not None:
        name = match["name"].rstrip(".")
        if name[0].islower() and name.casefold() not in known:
            break
        found.append(name)
        joint = cue("joins").match(text, match.end())
        if joint is None or not joint[0]:
            break
        place = joint.end()
    return found
