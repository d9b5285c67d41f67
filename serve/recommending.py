"""Recommend documents for a need: found under the caller's rights, filtered, scored, reasoned."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from core.auth import AuthContext
from core.budget import TimeLimit, limited_time
from core.errors import CarrelError
from core.language.detect import detect_language
from core.question import checked_question
from reasoning.recommend.factors import (
    DIVERSITY,
    VARIED,
    Opinion,
    Suggestion,
    add_taste,
    choose_different,
    is_fitting,
    score_candidates,
    share_fit,
)
from reasoning.recommend.need import Need
from reasoning.recommend.reading import read_need
from reasoning.recommend.reasons import write_reasons
from reasoning.recommend.relations import find_relations, leave_out_replaced
from tools.search import FIND_CANDIDATES
from tools.toolbox import Toolbox, joined_specs
from tools.types import ToolError

if TYPE_CHECKING:
    from app.session import Session

MOST_ITEMS = 100
MOST_RATINGS = 200  # newest of a user that count; chosen, not measured
COMPARED = 4  # documents that are compared for each that is listed; chosen, not measured
RECORDS = "query_records"  # the tool that knows the fields


def recommended(
    session: Session,
    auth: AuthContext,
    need: str,
    collection: str,
    k: int = 10,
    where: Sequence[str] = (),
) -> dict[str, Any]:
    """Return up to `k` documents, best first, as {"items": […], "constraints": {…}, …}.

    Raises CallerError for a need that contradicts itself.
    """
    text = checked_question(need, session.settings)
    deadline = time.monotonic() + session.settings.budget.seconds
    with limited_time(TimeLimit(deadline)):
        boxes = {
            one.collection.name: session.tools(auth, one.collection.name, where)
            for one in session.indexes(auth, collection)
        }
        specs = joined_specs([box.specs(auth) for box in boxes.values()])
        read = read_need(text, next(one for one in specs if one.base == RECORDS))
        unmet = {name: one for name, one in read.constraints.items() if one.field is None}
        notes = [f"no document here says that its {name} is {one.wanted}"
                 for name, one in sorted(unmet.items())] + read.notes  # fmt: skip
        found: list[Suggestion] = []
        for name, box in () if unmet else boxes.items():
            own, more = _candidates(box, auth, read, deadline)
            notes += more
            for one in own if len(boxes) > 1 else ():
                one.collection = name
            found += own
        _add_taste(session, auth, found, boxes)
        ranked = score_candidates(found, read, datetime.now(UTC).date())
        ranked = leave_out_replaced(need, ranked)
        if read.constraints and not (unmet or ranked or notes):
            notes = ["no document here meets all that must be so"]
        chosen = _different(ranked, boxes, k, VARIED if read.has("varied") else DIVERSITY)
    _note_listed(session, auth, chosen)
    return {
        "items": [_describe(one, read) for one in chosen],
        "constraints": {name: one.model_dump() for name, one in read.constraints.items()},
        "theme": read.theme,
        "relations": [one.model_dump() for one in find_relations(chosen, found)],
        "warnings": [*session.warnings, *dict.fromkeys(notes)],
    }


def _candidates(
    box: Toolbox, auth: AuthContext, need: Need, deadline: float
) -> tuple[list[Suggestion], list[str]]:
    """Return the documents of one collection that meet the filters of a need, and notes."""
    where = [text for one in need.constraints.values() for text in one.filters]
    try:
        found, notes = _found(box, auth, need, where, deadline)
        everywhere = _found(box, auth, need, [], deadline)[0] if where else found
    except ToolError as error:  # a collection without a field meets no constraint on it
        return [], [str(error)]
    standing = {one.key: one.passage.score for one in everywhere}
    share_fit(found, box.vectors([one.passage.chunk_id for one in found]))
    alike = box.scale(np.array([one.passage.scores.get("vector", 0.0) for one in found]))
    candidates = [
        one
        for one, likeness in zip(found, alike.tolist(), strict=True)
        if need.is_bare or is_fitting(one, likeness, standing.get(one.key))
    ]
    if found and not candidates:
        notes = [f"nothing here fits “{need.theme}”; {len(found)} documents that meet the rest "
                 "were left out"]  # fmt: skip
    return candidates, notes


def _found(
    box: Toolbox, auth: AuthContext, need: Need, where: Sequence[str], deadline: float
) -> tuple[list[Suggestion], list[str]]:
    """Return the documents nearest to a need that meet filters, with their cards, and notes."""
    language = detect_language(need.text)
    arguments = {"query": need.theme, "where": where, "language": language}
    result = box.run(FIND_CANDIDATES, arguments, auth, deadline)
    found: dict[str, Suggestion] = {}
    for item in result.evidence:
        if item.metadata.get("note") == "user":
            continue  # owners of projects are no projects
        known = found.setdefault(item.document_key, Suggestion(item))
        known.card = item if item is not known.passage else None
    return list(found.values()), result.notes if found or not where else []


def _add_taste(
    session: Session, auth: AuthContext, found: Sequence[Suggestion], boxes: dict[str, Toolbox]
) -> None:
    """Compare suggestions with what the caller likes and dislikes, their newest opinions."""
    for name, box in boxes.items():
        collection = session.catalogue.visible_collection(auth, name)
        rated = session.runs.list_ratings(auth, collection.id, MOST_RATINGS)
        own = [one for one in found if one.collection in ("", name)]
        if rated and own:
            opinions = [Opinion(one.key, one.title, one.rating) for one in rated]
            rows = box.vectors([one.passage.chunk_id for one in own])
            add_taste(
                own, box.scale(rows @ box.vectors([one.passage for one in rated]).T), opinions
            )


def _note_listed(session: Session, auth: AuthContext, chosen: Sequence[Suggestion]) -> None:
    """Keep what was recommended, of which the share that is looked at and used is shown.

    Where nothing can be written, the list is worth more than the figure.
    """
    with suppress(CarrelError):
        session.runs.note_listed(auth, [one.key for one in chosen])


def _different(
    ranked: Sequence[Suggestion], boxes: dict[str, Toolbox], k: int, weight: float
) -> list[Suggestion]:
    """Choose `k` of the best that are unlike each other; by their order without vectors."""
    best = ranked[: k * COMPARED]
    if not best:
        return []
    first = next(iter(boxes.values()))
    rows = np.concatenate(
        [boxes.get(one.collection, first).vectors([one.passage.chunk_id]) for one in best]
    )
    return choose_different(best, first.scale(rows @ rows.T), k, weight)


def _describe(one: Suggestion, need: Need) -> dict[str, Any]:
    item = one.passage
    return {
        "document_id": item.document_id,
        "title": item.title or item.source,
        "score": round(one.score, 4),
        "factors": one.factors,
        "reasons": write_reasons(one, need, need.theme),
        "source": item.source,
        "metadata": item.metadata,
        **({"collection": one.collection} if one.collection else {}),
    }
