"""One data directory, ready to answer: the parts of a run put together in one place."""

from __future__ import annotations

import datetime
import sqlite3
import uuid
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from core.auth import AuthContext
from core.budget import Usage
from core.errors import CarrelError, ModelError
from core.settings import Settings, load_settings
from core.trace import RunRecord, Step
from core.types import Answer, Evidence, StopReason
from graph.build import build_graph
from graph.context import Context, checked_question, make_context
from models.embedding_cache import CachedEmbedder
from models.embeddings import Embedder
from models.loading import open_embedder, open_reranker, open_second
from models.reranker import Reranker
from reasoning.rules.classic import ClassicReasoner
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Turn
from retrievers.types import Index
from stores.catalogue import Collection
from stores.database import damaged
from stores.store import Store
from tools.toolbox import Toolbox

PipelineName = Literal["agentic", "classic"]
NO_MODEL = "none"


class Session:
    """Own a data directory and answer questions from it until closed."""

    def __init__(
        self, settings: Settings, *, create: bool = False, needs_embedder: bool = False
    ) -> None:
        """Open the directory; without `needs_embedder` a broken model leaves keyword search."""
        self.settings = settings
        self.warnings: list[str] = []
        self.embedder: Embedder | None = None
        try:
            self.embedder = open_embedder(settings)
        except ModelError as error:
            if needs_embedder:
                raise
            self.warnings.append(f"keyword search only: {error}")
        model_id = self.embedder.model_id if self.embedder else NO_MODEL
        self.store = Store(settings, model_id, create=create)
        # Ingest embeds each text once; questions, tool specs and sentences come again and again.
        self.remembering = (
            CachedEmbedder(self.embedder, settings.embedder_cache) if self.embedder else None
        )
        self.second: Embedder | None = None
        try:
            self.second = open_second(settings)
        except ModelError as error:
            if needs_embedder:
                raise
            self.warnings.append(f"one embedder alone: {error}")
        self._rerankers: dict[str, Reranker | None] = {}
        self._graph = build_graph()

    def index(self, collection: Collection) -> Index:
        """Return the collection with the models that search it."""
        profile = collection.profile.settings
        fixed = self.settings.model_fields_set
        inherited = {name: value for name, value in profile.items() if name not in fixed}
        settings = self.settings
        if inherited:
            given = {name: getattr(settings, name) for name in fixed}
            settings, _ = load_settings(given, inherited)
        second = CachedEmbedder(self.second, settings.embedder_cache) if self.second else None
        return Index(
            self.store,
            collection,
            self.remembering,
            settings,
            reranker=self._reranker(settings),
            second=second,
        )

    def _reranker(self, settings: Settings) -> Reranker | None:
        """Load the re-ranker once; a broken one leaves the order of the search."""
        if settings.reranker not in self._rerankers:
            found = None
            try:
                found = open_reranker(settings)
            except ModelError as error:
                self.warnings.append(f"no re-ranking: {error}")
            self._rerankers[settings.reranker] = found
        return self._rerankers[settings.reranker]

    def context(
        self, auth: AuthContext, collection: str, pipeline: PipelineName = "agentic"
    ) -> Context:
        """Build the context of one run for a verified caller."""
        index = self.index(self.store.catalogue.collection(auth.tenant, collection))
        tools = Toolbox(index)
        kind = ClassicReasoner if pipeline == "classic" else RulesReasoner
        reasoner = kind(index.settings, tools.term_weights(), self.remembering)
        return make_context(auth, tools, reasoner, index.settings)

    def ask(
        self,
        question: str,
        auth: AuthContext,
        collection: str,
        *,
        pipeline: PipelineName = "agentic",
        history: Sequence[Turn] = (),
        on_step: Callable[[Step], None] | None = None,
    ) -> RunRecord:
        """Run the graph on one question, keep the run and return it.

        `on_step` sees each step as it happens. An interrupted run is kept as cancelled.
        """
        question = checked_question(question, self.settings)
        context = self.context(auth, collection, pipeline)
        messages: list[AnyMessage] = []
        for turn in history:
            messages += [HumanMessage(turn.question), AIMessage(turn.answer)]
        messages.append(HumanMessage(question))
        trail: list[Step] = []
        state: dict[str, Any] = {}
        try:
            for mode, data in self._graph.stream(
                {"messages": messages},
                context=context,
                config={"recursion_limit": 4 * context.budget.steps + 10},
                stream_mode=["updates", "values"],
            ):
                if mode == "values":
                    state = cast(dict[str, Any], data)
                    continue
                for update in cast(dict[str, Any], data).values():
                    for step in (update or {}).get("trail", []):
                        trail.append(step)
                        if on_step is not None:
                            on_step(step)
        except KeyboardInterrupt:
            answer = Answer(text="", refused=True, stop_reason=StopReason.cancelled)
            self._keep(auth, collection, question, pipeline, {"answer": answer}, trail)
            raise
        return self._keep(auth, collection, question, pipeline, state, trail)

    def _keep(
        self,
        auth: AuthContext,
        collection: str,
        question: str,
        pipeline: str,
        state: dict[str, Any],
        trail: list[Step],
    ) -> RunRecord:
        run_id = uuid.uuid4().hex[:12]
        result = run_result(run_id, state, self.warnings)
        run = RunRecord(
            run_id=run_id,
            tenant=auth.tenant,
            user=auth.user,
            collection=collection,
            question=question,
            pipeline=pipeline,
            created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            index_version=self.store.catalogue.index_version(),
            result=result,
            trail=trail,
        )
        try:
            self.store.runs.save(run)
        except sqlite3.OperationalError as error:
            # The answer is worth more than its record: a full disk must not swallow it.
            result["warnings"].append(f"the run was not kept: {damaged(self.store.folder, error)}")
        return run

    def close(self) -> None:
        """Give the data directory back."""
        self.store.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def run_result(run_id: str, state: dict[str, Any], warnings: Sequence[str]) -> dict[str, Any]:
    """Return a run as it is printed with --json and kept."""
    answer: Answer | None = state.get("answer")
    if answer is None:
        raise CarrelError("the run ended without an answer or a refusal", value=run_id)
    usage: Usage = state.get("usage") or Usage()
    found: list[Evidence] = state.get("evidence") or []
    ranked = sorted(found, key=lambda item: (-item.best_grade, -item.score, item.chunk_id))
    return {
        "run_id": run_id,
        "answer": answer.text,
        "claims": [claim.model_dump() for claim in answer.claims],
        "refused": answer.refused,
        "stop_reason": answer.stop_reason.value,
        "evidence": [item.model_dump(exclude={"document_key"}) for item in ranked],
        "usage": {
            "steps": usage.steps,
            "tool_calls": usage.tool_calls,
            "tokens": usage.tokens,
            "ms": round(usage.ms, 1),
        },
        "missing": answer.missing,
        "warnings": [*warnings, *answer.warnings],
    }
