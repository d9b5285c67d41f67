"""`find_candidates`: the documents that fit a need, each with its best passage and its card."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from core.auth import AuthContext
from core.metadata import MOST_FILTERS
from core.types import Evidence, FrozenModel
from retrievers.channels import TEXT, VECTOR
from retrievers.hybrid import hybrid_search
from retrievers.types import Query
from tools.types import Tool, ToolResult

NAME = "find_candidates"
MOST_CANDIDATES = 200  # documents at most; chosen, not measured


class CandidateArguments(FrozenModel):
    """Say what is needed; `where` are filters that each document meets, such as "stars>=1000"."""

    query: str = Field(min_length=1, max_length=8000)
    where: list[str] = Field(default_factory=list, max_length=MOST_FILTERS)
    language: str | None = Field(None, max_length=8)
    limit: int = Field(MOST_CANDIDATES, ge=1, le=MOST_CANDIDATES)


class FindCandidates(Tool):
    """Rank documents by their best passage; no stage cuts the ranking to an answer."""

    name = NAME
    purpose = "Find the documents that fit a need."
    not_for: ClassVar = ["questions with an answer"]
    arguments = CandidateArguments

    @property
    def is_offered(self) -> bool:
        """Tell that no planner is offered it: it makes lists, and answers nothing."""
        return False

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the best passage of each document, best first, each followed by its card."""
        given = self._checked(CandidateArguments, arguments, auth, deadline)
        auth = self._narrowed(auth, given.where)
        pools = {VECTOR: given.limit, TEXT: given.limit}
        query = Query(given.query, auth, language=given.language, deadline=deadline)
        found = hybrid_search(
            self._index, query, [VECTOR, TEXT], pools, given.limit, choose=False, links=False
        )
        best: dict[str, Evidence] = {}
        for item in found.evidence:
            known = best.setdefault(item.document_key, item)
            if known.kind == "record" and item.kind != "record":  # which says more to a reader
                best[item.document_key] = item.model_copy(update={"score": known.score})
        if not best and given.where:  # in words that no document here has
            best = self._filtered(auth, given.limit)
        cards = self._index.catalogue.cards(auth, self._index.collection.id, [*best])
        own = {card.document_key: card for card in cards}
        found.evidence = []
        for key, passage in best.items():
            card = own.get(key, passage)
            found.evidence += [passage] if card.chunk_id == passage.chunk_id else [passage, card]
        return self._result(found, auth.describe())

    def _filtered(self, auth: AuthContext, limit: int) -> dict[str, Evidence]:
        """Return the first passage of each document that meets the filters, unranked."""
        catalogue, collection = self._index.catalogue, self._index.collection.id
        first = [one.first for one in catalogue.document_names(auth, collection)[:limit]]
        found = catalogue.evidence(auth, collection, first)
        return {found[key].document_key: found[key] for key in first if key in found}
