"""One data directory, ready to answer: the parts of a run put together in one place."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from core.auth import AuthContext
from core.errors import ModelError
from core.settings import Settings, load_settings
from core.streaming import StreamEvent
from core.trace import RunRecord, Step
from core.types import Answer, StopReason
from graph.build import build_graph
from graph.context import Context, PipelineName, checked_question, make_context, never
from graph.record import run_record
from models.chat.types import ChatModel, ModelCancelled
from models.embedding_cache import CachedEmbedder
from models.embeddings import Embedder
from models.loading import open_embedder, open_reranker, open_second
from models.reranker import Reranker
from reasoning.planning.files import PlanFile
from reasoning.rules.classic import ClassicReasoner
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Reasoner, Turn
from retrievers.types import Index
from stores.catalogue import Collection
from stores.database import damaged
from stores.store import Store
from tools.toolbox import Toolbox

NO_MODEL = "none"
CLASSIC_VERBS = frozenset({"answer"})


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
        self._chat: tuple[ChatModel | None, str] | None = None
        self._graph = build_graph()

    def index(self, collection: Collection) -> Index:
        """Return the collection with the models that search it."""
        profile = collection.profile.settings
        settings = self.settings  # which may be exchanged while this runs
        fixed = settings.model_fields_set
        inherited = {name: value for name, value in profile.items() if name not in fixed}
        if inherited:
            given = {name: getattr(settings, name) for name in fixed}
            settings, _ = load_settings(given, inherited, file="")
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

    @property
    def chat(self) -> ChatModel | None:
        """Return the chat model, looked for once; without one the rules decide."""
        if self._chat is None and self.settings.reasoner == "rules":
            self._chat = (None, "")
        if self._chat is None:
            from models.chat.open_chat import open_chat  # late, as the rules need none of it

            self._chat = open_chat(self.settings)
            if self._chat[1]:
                self.warnings.append(self._chat[1])
        return self._chat[0]

    def tools(self, auth: AuthContext, collection: str) -> Toolbox:
        """Return the tools of a collection, for searching it without a run."""
        return Toolbox(self.index(self.store.catalogue.collection(auth.tenant, collection)))

    def context(
        self,
        auth: AuthContext,
        collection: str,
        pipeline: PipelineName = "auto",
        cancelled: Callable[[], bool] = never,
        given: PlanFile | None = None,
    ) -> Context:
        """Build the context of one run for a verified caller."""
        index = self.index(self.store.catalogue.collection(auth.tenant, collection))
        if self.chat is not None:
            from reasoning.llm.passage import LlmPassageWriter

            window = index.settings.context_window or self.chat.capabilities.context
            settings = index.settings.model_copy(update={"context_window": window})
            writer = LlmPassageWriter(self.chat, settings)
            index = replace(index, settings=settings, writer=writer)
        tools = Toolbox(index)
        reasoner = self._reasoner(index.settings, tools, pipeline)
        return make_context(
            auth,
            tools,
            reasoner,
            index.settings,
            cancelled=cancelled,
            pipeline=pipeline,
            given=given,
        )

    def _reasoner(self, settings: Settings, tools: Toolbox, pipeline: PipelineName) -> Reasoner:
        """Let a chat model decide where there is one; the classic pipeline only writes with it."""
        classic = pipeline == "classic"
        kind = ClassicReasoner if classic else RulesReasoner
        rules = kind(settings, tools.term_weights(), self.remembering)
        if self.chat is None:
            return rules
        from reasoning.llm.reasoner import ALL_VERBS, LlmReasoner

        verbs = CLASSIC_VERBS if classic else ALL_VERBS
        return LlmReasoner(self.chat, rules, settings, self.remembering, verbs)

    def ask(
        self,
        question: str,
        auth: AuthContext,
        collection: str,
        *,
        pipeline: PipelineName = "auto",
        given: PlanFile | None = None,
        history: Sequence[Turn] = (),
        on_step: Callable[[Step], None] | None = None,
        on_stream: Callable[[StreamEvent], None] | None = None,
        cancelled: Callable[[], bool] = never,
    ) -> RunRecord:
        """Run the graph on one question, keep the run and return it.

        `given` is a checked plan to run in place of a proposed one. `on_step` sees each step as it
        happens, `on_stream` the sentences of the answer while it is written. The chat model stops
        soon after `cancelled` says so. An interrupted run is kept as cancelled.
        """
        question = checked_question(question, self.settings)
        context = self.context(auth, collection, pipeline, cancelled, given)
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
                stream_mode=["updates", "values", "custom"],
            ):
                if mode == "custom":
                    if on_stream is not None and isinstance(data, StreamEvent):
                        on_stream(data)
                    continue
                if mode == "values":
                    state = cast(dict[str, Any], data)
                    continue
                for update in cast(dict[str, Any], data).values():
                    for step in (update or {}).get("trail", []):
                        trail.append(step)
                        if on_step is not None:
                            on_step(step)
        except (KeyboardInterrupt, ModelCancelled):
            answer = Answer(text="", refused=True, stop_reason=StopReason.cancelled)
            self._keep(auth, collection, question, pipeline, {"answer": answer}, trail)
            raise
        # Steps of operations that ran side by side came as they ended; the state has them in order.
        return self._keep(auth, collection, question, pipeline, state, state["trail"])

    def _keep(
        self,
        auth: AuthContext,
        collection: str,
        question: str,
        pipeline: str,
        state: dict[str, Any],
        trail: list[Step],
    ) -> RunRecord:
        run = run_record(
            auth,
            collection,
            question,
            pipeline,
            state,
            trail,
            index_version=self.store.catalogue.index_version(),
            warnings=self.warnings,
        )
        try:
            self.store.runs.save(run)
        except sqlite3.OperationalError as error:
            # The answer is worth more than its record: a full disk must not swallow it.
            reason = damaged(self.store.folder, error)
            run.result["warnings"].append(f"the run was not kept: {reason}")
        return run

    def close(self) -> None:
        """Give the data directory back."""
        if self._chat is not None and self._chat[0] is not None:
            self._chat[0].close()
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
