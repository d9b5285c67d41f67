"""One data directory, ready to answer: the parts of a run put together in one place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.auth import AuthContext
from core.cache import open_caches
from core.errors import CallerError, ModelError
from core.fields.chat import AUTO, NULL
from core.language.detect import detect_language
from core.metadata import parse_filters
from core.question import checked_question, joined_names
from core.settings import Settings, by_name, load_settings
from core.trace import RunRecord, Step, StreamEvent
from graph.context import ONE_SEARCH, Context, PipelineName, never
from models.chat.types import ChatModel
from models.embeddings import CachedEmbedder, Embedder
from models.folder import OTHER_MODEL, of_another_model
from models.loading import open_embedded, open_embedder, open_reranker, open_second
from models.reranker import Reranker
from reasoning.planning.files import PlanFile
from reasoning.rules.reasoner import ClassicReasoner, RulesReasoner
from reasoning.rules.recall import asks_memory
from reasoning.types import Reasoner, Turn
from reasoning.worth import MODEL, worth_by
from retrievers.tree.building import Progress, build_tree, silent
from retrievers.tree.view import open_view
from retrievers.types import Index
from stores.lock import OwnerLock, locked
from stores.runlog.conversations import Conversation
from stores.sqlite.catalogue import Collection
from stores.sqlite.permissions import OPERATOR, WriteAccess
from stores.store import Store
from tools.note_tools import Memory
from tools.results import Results
from tools.toolbox import Toolbox

if TYPE_CHECKING:
    from graph.asking import Asking
    from ingest.discover import SourceFile
    from ingest.summary import Summary, Tally

NO_MODEL = "none"
START = "start one with `carrel llm serve`, or set CARREL_LLM_URL"
ANSWER_ALONE = frozenset({"answer"})


def preload_graph() -> None:
    """Begin to import LangGraph beside the opening of a directory, half a second of a question.

    Whatever fails here fails again, and is explained, where the graph is used.
    """

    def load() -> None:
        with suppress(Exception):
            for name in ("graph.asking", "graph.build"):
                import_module(name)

    threading.Thread(target=load, daemon=True).start()


class Session:
    """Own a data directory and answer questions from it until closed."""

    def __init__(
        self,
        settings: Settings,
        *,
        create: bool = False,
        needs_embedder: bool = False,
        lock: OwnerLock | None = None,
        check_later: bool = False,
    ) -> None:
        """Open the directory; without `needs_embedder` a broken model leaves keyword search.

        `lock` is the directory's, when it is held already; the session gives it back. With
        `check_later` the caller sees to `maintenance.finish_check`.
        """
        self.settings = settings
        self._warnings: list[str] = []
        lock = lock or locked(settings, create=create)  # who is refused loads no model
        with ExitStack() as undone:
            undone.callback(lock.release)
            self.embedder = self._model(open_embedder, needs_embedder, "keyword search only")
            self.model_id = self.embedder.model_id if self.embedder else NO_MODEL
            self.store = Store(
                settings, self.model_id, create=create, lock=lock, check_later=check_later
            )
            undone.pop_all()
            undone.callback(self.store.close)
            self.caches = open_caches(settings, self.store.folder)
            undone.callback(self.caches.close)
            self.second = self._model(open_second, needs_embedder, "one embedder alone")
            undone.pop_all()
        self.catalogue, self.intake = self.store.catalogue, self.store.intake
        self.runs, self.accounts = self.store.runs, self.store.accounts
        self.trees, self.notes = self.store.trees, self.store.notes
        self.maintenance = self.store.maintenance
        self.maintenance.on_change.append(self.caches.clear)
        self._rerankers: dict[str, Reranker | None] = {}
        self._chat: tuple[ChatModel | None, str] | None = None
        self._asking: Asking | None = None
        self._building = threading.Lock()

    @property
    def asking(self) -> Asking:
        """Return what runs the graph, built for the first question: searches need no LangGraph."""
        from graph.asking import Asking
        from graph.build import build_graph

        with self._building:
            if self._asking is None:
                self._asking = Asking(
                    build_graph(), self.store, lambda: self.warnings, self.memory, self.worth
                )
            return self._asking

    def worth(self, sentences: Sequence[str]) -> Sequence[float]:
        """Return the log odds that sentences are worth a note, NEVER where no model tells."""
        own = self.embedder
        if own is None or not own.model_id.startswith(MODEL):
            try:
                own = open_embedded(self.settings)
            except ModelError:
                own = None
        return worth_by(own)(sentences)

    @property
    def warnings(self) -> list[str]:
        """Return what callers should know: models that are missing, and damage found."""
        return [*self._warnings, *self.store.warnings()]

    def _model(
        self, opened: Callable[[Settings], Embedder | None], needed: bool, without: str
    ) -> Embedder | None:
        try:
            return opened(self.settings)
        except ModelError as error:
            if needed:
                raise
            self._warnings.append(f"{without}: {error}")
        return None

    def index(self, collection: Collection) -> Index:
        """Return the collection with the models that search it."""
        profile = by_name(collection.profile.settings)
        settings = self.settings  # which may be exchanged while this runs
        fixed = settings.given()
        inherited = {name: value for name, value in profile.items() if name not in fixed}
        if inherited:
            given = {name: settings.value(name) for name in fixed}
            settings, _ = load_settings(given, inherited, file="")
        embedder, why = self.remembering(collection.tenant), ""
        if embedder is not None and (why := self._of_another_model(collection)):
            embedder = None
        index = Index(
            self.store,
            collection,
            embedder,
            settings,
            reranker=self._reranker(settings),
            second=self._remembering(self.second, collection.tenant),
        )
        return replace(index, keywords_only=why) if why else index

    def _of_another_model(self, collection: Collection) -> str:
        """Say why the embedder cannot search a collection whose vectors another one made."""
        assert self.embedder is not None  # asked for with an embedder alone
        search = self.store.search
        why = of_another_model(search.models(collection.id), self.embedder.model_id)
        return f"{why}; {OTHER_MODEL}" if why else ""

    def remembering(self, tenant: str) -> Embedder | None:
        """Return the embedder with what it has embedded for a tenant, None without one.

        Ingest embeds each text once; questions, tool specs and sentences come again and again.
        """
        return self._remembering(self.embedder, tenant)

    def memory(self, auth: AuthContext) -> Memory:
        """Return the notes of memory, with the embedder for a caller's tenant."""
        return Memory(self.notes, self.remembering(auth.tenant))

    def _remembering(self, embedder: Embedder | None, tenant: str) -> Embedder | None:
        if embedder is None or self.maintenance.condition.distrusted:
            return None
        return CachedEmbedder(embedder, self.caches.embeddings, tenant)

    def _reranker(self, settings: Settings) -> Reranker | None:
        """Load the re-ranker once; a broken one leaves the order of the search."""
        if settings.reranker not in self._rerankers:
            found = None
            try:
                found = open_reranker(settings)
            except ModelError as error:
                self._warnings.append(f"no re-ranking: {error}")
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
                self._warnings.append(self._chat[1])
        return self._chat[0]

    def indexes(self, auth: AuthContext, names: str) -> list[Index]:
        """Return the collections of a question; several must have vectors of the same embedder."""
        named = self.catalogue.collections_named(auth, names)
        if len(named) > 1 and self.embedder is not None:
            for one in named:
                if why := self._of_another_model(one):
                    raise CallerError(
                        "collections are asked together when one embedder made their vectors",
                        value=one.name,
                        hint=f"{why}; or ask it alone",
                    )
        return [self.index(one) for one in named]

    def tools(self, auth: AuthContext, collection: str, where: Sequence[str] = ()) -> Toolbox:
        """Return the tools of collections, for searching them without a run."""
        return self._toolbox(auth, self.indexes(auth, collection), where)

    def _toolbox(
        self, auth: AuthContext, indexes: Sequence[Index], where: Sequence[str], model: str = ""
    ) -> Toolbox:
        filters = parse_filters(where)
        named = [one.collection for one in indexes]
        self.catalogue.check_fields(auth, named, filters)

        def box(index: Index, beside: Sequence[Toolbox] = ()) -> Toolbox:
            results = Results(index, self.caches.results, model)
            return Toolbox(index, results, where=filters, beside=beside)

        return box(indexes[0], [box(one) for one in indexes[1:]])

    def context(
        self,
        auth: AuthContext,
        collection: str,
        pipeline: PipelineName = "auto",
        cancelled: Callable[[], bool] = never,
        given: PlanFile | None = None,
        *,
        clarify: bool = False,
        remembers: bool = False,
        recalls: bool = False,
        where: Sequence[str] = (),
    ) -> Context:
        """Build the context of one run for a verified caller.

        Of several collections the first one's profile sets what is no matter of searching. A run
        that `remembers` keeps notes, and reads the caller's where there are any; one that `recalls`
        reads them alone.
        """
        indexes = self.indexes(auth, collection)
        index = indexes[0]
        if "rewrite" in self._decisions(index.settings, pipeline):
            assert self.chat is not None  # without one nothing is decided by it
            from reasoning.llm.searching import LlmPassageWriter

            writer = LlmPassageWriter(self.chat, index.settings)
            index = replace(index, writer=writer)
            indexes = [index, *(replace(one, writer=writer) for one in indexes[1:])]
        model = self.chat.capabilities.model if self.chat else ""
        tools = self._toolbox(auth, indexes, where, model)
        reasoner = self._reasoner(index, tools, pipeline)
        return Context(
            auth,
            tools,
            reasoner,
            index.settings,
            cancelled=cancelled,
            pipeline=pipeline,
            given=given,
            may_clarify=clarify,
            recalls=self.settings.memory and (recalls or (remembers and self._has_notes(auth))),
        )

    def _has_notes(self, auth: AuthContext) -> bool:
        """Tell whether the caller has notes that are in use."""
        return bool(self.notes.list_notes(auth.rights, current=True, limit=1))

    def _reasoner(self, index: Index, tools: Toolbox, pipeline: PipelineName) -> Reasoner:
        """Let a chat model decide where there is one; the classic pipeline only writes with it."""
        settings, embedder = index.settings, index.embedder
        kind = ClassicReasoner if pipeline in ONE_SEARCH else RulesReasoner
        decisions = self._decisions(settings, pipeline)
        rules = kind(
            settings.for_model() if "answer" in decisions else settings,
            tools.term_weights(),
            embedder,
            tools.sentence_vectors,
        )
        if self.chat is None:
            if pipeline == "single":
                raise CallerError("the single pipeline asks a model", hint=START)
            return rules
        from reasoning.llm.reasoner import LlmReasoner, SingleReasoner

        thinking = SingleReasoner if pipeline == "single" else LlmReasoner
        return thinking(self.chat, rules, settings, embedder, decisions, self.caches.rewrites)

    def _decisions(self, settings: Settings, pipeline: PipelineName) -> frozenset[str]:
        """Return what the chat model decides, nothing without one."""
        if self.chat is None:
            return frozenset()
        if pipeline in ONE_SEARCH:
            return ANSWER_ALONE
        chosen = frozenset(settings.llm.decisions)
        return self._examined if AUTO in chosen else chosen | {NULL}

    @cached_property
    def _examined(self) -> frozenset[str]:
        """Return the decisions that the exam of the chat model leaves to it."""
        from reasoning.llm.exam_result import decided_by_model

        assert self.chat is not None  # without one nobody asks
        decisions, warning = decided_by_model(self.settings, self.chat.capabilities)
        if warning:
            self._warnings.append(warning)
        return decisions

    def ask(
        self,
        question: str,
        auth: AuthContext,
        collection: str,
        *,
        pipeline: PipelineName = "auto",
        given: PlanFile | None = None,
        history: Sequence[Turn] = (),
        conversation: str = "",
        clarify: bool = False,
        where: Sequence[str] = (),
        on_step: Callable[[Step], None] | None = None,
        on_stream: Callable[[StreamEvent], None] | None = None,
        cancelled: Callable[[], bool] = never,
    ) -> RunRecord:
        """Run the graph on one question, keep the run and return it.

        `collection` may be several names joined by commas; `where` are filters that documents must
        meet, such as "date>=2020".

        `given` is a checked plan to run in place of a proposed one. `on_step` sees each step as it
        happens, `on_stream` the sentences of the answer while it is written. The chat model stops
        soon after `cancelled` says so. A run that is broken off is kept as cancelled.

        `conversation` is the id of one of the caller's, whose history and collection stand for
        `history` and `collection` (which may be ""); raises AbsentError. With `clarify` the run may
        end by asking back; the next question of the conversation is the reply.
        """
        from graph.asking import ActiveRun
        from reasoning.rules.reasoner import load_words

        text = checked_question(question, self.settings)
        kept = None
        if conversation:
            kept = self.runs.load_conversation(auth, conversation)
            collection = collection_of(kept, collection)
        collection = joined_names([collection])
        may = clarify and kept is not None
        context = self.context(
            auth,
            collection,
            pipeline,
            cancelled,
            given,
            clarify=may,
            remembers=kept is not None,
            recalls=kept is not None and asks_memory(text, detect_language(text)),
            where=where,
        )
        load_words(text, context.settings, self.embedder)
        asked = ActiveRun(text, collection, context, on_step, on_stream, where=where)
        if kept is not None:
            return self.asking.within(kept, asked)
        return self.asking.alone(asked, history)

    def ingest(
        self,
        target: Collection,
        paths: Sequence[Path | SourceFile],
        *,
        acl: frozenset[str] = frozenset(),
        progress: Progress = silent,
        prune: bool = False,
        renames: bool = True,
        access: WriteAccess = OPERATOR,
        tally: Tally | None = None,
    ) -> Summary:
        """Ingest paths into a collection, keep up its tree, and drop it where it stays empty.

        The arguments are those of `Pipeline`.
        """
        from ingest.pipeline import Pipeline

        with self.intake.ingesting():
            try:
                if self.embedder is None:
                    raise ModelError("documents need the embedder, which cannot be loaded")
                if self.maintenance.coordination.is_shared:  # it may have been dropped meanwhile
                    target = self.intake.open_collection(target.tenant, target.name, target.profile)
                index = self.index(target)
                index.search.check_server(target)  # before anything is half done
                summary = Pipeline(
                    self.store,
                    self.embedder,
                    index.settings,
                    target,
                    acl=acl,
                    progress=progress,
                    second=self.second,
                    renames=renames,
                    access=access,
                    tally=tally,
                ).run(paths, prune=prune)
                wanted, built = index.settings.ingest.tree, self.trees.recipes(target.id)
                if wanted == "build" or (wanted == "keep" and built):
                    with self._building_tree(target):
                        build_tree(self.index(target), progress)
            finally:
                self.intake.drop_collection_if_empty(target)
        return summary

    def build_tree(
        self,
        auth: AuthContext,
        collection: Collection,
        progress: Progress = silent,
        *,
        fresh: bool = False,
    ) -> dict[str, Any]:
        """Build what the tree of a collection lacks, with `fresh` all, for all of its readers.

        Return its size as the caller sees it.
        """
        with self._building_tree(collection):
            changes = build_tree(index := self.index(collection), progress, fresh=fresh)
        view = open_view(index, auth)
        size = view.size if view is not None else dict.fromkeys(("levels", "nodes", "leaves"), 0)
        return {**size, "seconds": changes.seconds}

    @contextmanager
    def _building_tree(self, collection: Collection) -> Iterator[None]:
        lock = self.maintenance.coordination.lock
        with self.maintenance.changing(), lock(f"tree.{collection.id}"):
            yield

    def describe_tree(
        self, auth: AuthContext, collection: Collection, depth: int
    ) -> dict[str, Any] | None:
        """Return the tree that a caller sees down to a depth, None where they see none."""
        view = open_view(self.index(collection), auth)
        return None if view is None else view.describe(depth)

    def forget(self, auth: AuthContext, conversation: str) -> None:
        """Delete a conversation of the caller with its turns and runs; raises AbsentError."""
        kept = self.runs.load_conversation(auth, conversation)
        self.asking.threads.delete(kept.id)
        self.runs.delete_conversation(kept)

    def close(self) -> None:
        """Give the data directory back."""
        if self._chat is not None and self._chat[0] is not None:
            self._chat[0].close()
        if self._asking is not None:
            self._asking.close()
        self.caches.close()
        self.store.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def collection_of(conversation: Conversation, asked: str) -> str:
    """Return a conversation's collection; raises CallerError when another is asked for."""
    if asked not in ("", conversation.collection):
        raise CallerError(
            "a conversation keeps to its collection",
            value=asked,
            hint=f"leave it out, or begin another; this one is about '{conversation.collection}'",
        )
    return conversation.collection
