"""A data directory as an object: documents go in, answers, searches and plans come out."""

from __future__ import annotations

import copy
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import StructuredTool
from pydantic import Field

from app.session import Session
from core.auth import AuthContext, checked_name, checked_principal, checked_sources
from core.errors import CallerError
from core.profile import load_profile
from core.settings import known_values, load_settings
from core.trace import RunRecord
from core.types import Evidence, ToolSpec
from display.evidence import EvidenceList
from display.html import View
from display.runs import show_in_notebooks
from display.tree import tree_view
from reasoning.planning.files import read_plan
from serve.recommending import recommended
from serve.searching import RESULT_KEYS, SEARCHES, SearchName, find_passages
from stores.index.place import wanted_place
from tools.toolbox import Toolbox

if TYPE_CHECKING:
    from graph.context import PipelineName
    from ingest.summary import Summary
    from reasoning.planning.files import PlanFile


def structured_tools(
    toolbox: Toolbox, auth: AuthContext, *, seconds: float
) -> list[StructuredTool]:
    """Return all tools for agents and notebooks; each call has `seconds` from when it starts.

    The caller's rights are fixed here: no argument of a call can change them.
    """

    def view(spec: ToolSpec) -> StructuredTool:
        def run(**arguments: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - checked by the tool
            result = toolbox.run(spec.name, arguments, auth, time.monotonic() + seconds)
            return [item.model_dump(exclude={"document_key"}) for item in result.evidence]

        return StructuredTool.from_function(
            func=run, name=spec.name, description=description(spec), args_schema=spec.arguments
        )

    return [view(spec) for spec in toolbox.specs(auth)]


def description(spec: ToolSpec) -> str:
    """Return what a model reads: the purpose and the counter-examples."""
    if not spec.not_for:
        return spec.purpose
    return f"{spec.purpose} Not for: {'; '.join(spec.not_for)}."


COLLECTION, TENANT, USER = "default", "default", "local"  # as of the command line

show_in_notebooks()


class LibraryRetriever(BaseRetriever):
    """Return passages as documents, best first; `search` is bound to a caller and a collection."""

    search: Callable[[str], list[Evidence]] = Field(exclude=True, repr=False)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = self.search(query)
        named = set(RESULT_KEYS) - {"text"}
        held = [one.model_dump(mode="json", include=named) for one in found]
        return [
            Document(page_content=one.text, metadata=metadata, id=one.chunk_id)
            for one, metadata in zip(found, held, strict=True)
        ]


class Library:
    """Own a data directory, a temporary one when none is named, as one caller at a time.

    What its methods return shows itself in a notebook. Settings are named as in `carrel config`.
    The directory is locked until `close`, as by any command.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        user: str = USER,
        roles: Sequence[str] = (),
        tenant: str = TENANT,
        sources: Sequence[str] | None = None,
        **settings: Any,  # noqa: ANN401 - the value of any setting
    ) -> None:
        """Open the directory, which is made when it is not there.

        The caller sees the documents of `tenant` that `user` and `roles` may read and whose source
        matches a pattern of `sources`, None for any.
        """
        self.auth = _caller(user, roles, tenant, sources)
        if user == USER and not roles:  # who opens it and names no caller
            self.auth = self.auth.model_copy(update={"operator": True})
        self._temporary = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="carrel-")
            folder = self._temporary.name
        self.folder = Path(folder)
        given = known_values(settings, "Library")
        self._given: dict[str, Any] = {"data": self.folder, **given}
        self._open: Session | None = Session(load_settings(self._given)[0], create=True)
        self._root = self

    def as_caller(
        self,
        user: str,
        *,
        roles: Sequence[str] = (),
        tenant: str | None = None,
        sources: Sequence[str] | None = None,
    ) -> Library:
        """Return the same directory as another caller sees it; it closes with this one."""
        other = copy.copy(self)
        other.auth = _caller(user, roles, tenant or self.auth.tenant, sources)
        return other

    def with_settings(self, **settings: Any) -> Library:  # noqa: ANN401
        """Return the same directory with other settings of searches and runs, for this caller.

        The models and the data directory stay those it was opened with.
        """
        other = copy.copy(self)
        other._given = {**self._given, **known_values(settings, "with_settings")}
        changed = copy.copy(self._session)
        changed.settings = load_settings(other._given)[0]
        wanted_place(changed.settings)  # which the directory alone would have checked
        other._open = changed
        return other

    def ingest(
        self,
        *paths: str | Path,
        collection: str = COLLECTION,
        profile: str | None = None,
        readers: Sequence[str] = (),
    ) -> Summary:
        """Read files and folders into a collection; roles in `readers` alone may read them.

        Raises a CallerError when a path does not exist or nothing could be read.
        """
        files = [Path(path) for path in paths]
        for path in files:
            if not path.exists():
                raise CallerError("a path to ingest must exist", value=str(path))
        checked_name("collection", collection)
        session = self._session
        loaded = load_profile(profile) if profile else None
        target = session.intake.open_collection(self.auth.tenant, collection, loaded)
        acl = frozenset(map(checked_principal, several("readers", readers)))
        summary = session.ingest(target, files, acl=acl)
        if not summary.ok:
            reason = summary.failed[0].reason if summary.failed else "there is no known file"
            raise CallerError("nothing could be ingested", value=reason)
        return summary

    def ask(
        self,
        question: str,
        collection: str = COLLECTION,
        *,
        pipeline: PipelineName = "auto",
        plan: dict[str, Any] | PlanFile | None = None,
    ) -> RunRecord:
        """Run the graph on one question and return the run; `plan` is run in place of its own."""
        given = self.check_plan(plan, collection) if isinstance(plan, dict) else plan
        return self._session.ask(question, self.auth, collection, pipeline=pipeline, given=given)

    def build_tree(self, collection: str = COLLECTION) -> dict[str, Any]:
        """Build what the tree of a collection lacks; return its size as this caller sees it."""
        target = self._session.catalogue.visible_collection(self.auth, collection)
        return self._session.build_tree(self.auth, target)

    def tree(self, collection: str = COLLECTION, *, depth: int = 2) -> View:
        """Show the tree of what this caller may read, `depth` levels below its root."""
        target = self._session.catalogue.visible_collection(self.auth, collection)
        return tree_view(self._session.describe_tree(self.auth, target, depth))

    def check_plan(self, plan: dict[str, Any], collection: str = COLLECTION) -> PlanFile:
        """Return a plan that may be run, or raise a CallerError with the rule it breaks."""
        text = json.dumps(plan, ensure_ascii=False, indent=1)
        tools = self._session.tools(self.auth, collection)
        return read_plan(text, self._session.settings, lambda: tools.specs(self.auth))

    def search(
        self,
        query: str,
        collection: str = COLLECTION,
        *,
        pipeline: SearchName = "hybrid",
        k: int = 10,
        where: Sequence[str] = (),
    ) -> EvidenceList:
        """Return passages, best first; nothing is graded and nothing is answered.

        `where` are filters that documents must meet, such as "date>=2020".
        """
        if pipeline not in SEARCHES:
            raise CallerError(f"pipeline is one of {', '.join(SEARCHES)}", value=pipeline)
        filters = several("where", where)
        found = find_passages(self._session, self.auth, query, collection, pipeline, k, filters)
        notes = [*self._session.warnings, *found.notes]
        return EvidenceList(found.evidence, notes=notes, stages=found.stages)

    def recommend(
        self,
        need: str,
        collection: str = COLLECTION,
        *,
        k: int = 10,
        where: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Return documents that meet a need, as `carrel recommend --json` does."""
        filters = several("where", where)
        return recommended(self._session, self.auth, need, collection, k, filters)

    def retriever(
        self,
        collection: str = COLLECTION,
        *,
        pipeline: SearchName = "hybrid",
        k: int = 10,
        where: Sequence[str] = (),
    ) -> BaseRetriever:
        """Return what `search` finds as a LangChain retriever, bound to this caller."""
        bound = partial(
            copy.copy(self).search,
            collection=collection,
            pipeline=pipeline,
            k=k,
            where=several("where", where),
        )
        return LibraryRetriever(search=bound)

    def tools(
        self, collection: str = COLLECTION, *, where: Sequence[str] = ()
    ) -> list[StructuredTool]:
        """Return the collection's tools for LangChain agents, bound to this caller.

        No argument of a call can widen what the caller may see.
        """
        toolbox = self._session.tools(self.auth, collection, several("where", where))
        return structured_tools(toolbox, self.auth, seconds=self._session.settings.budget.seconds)

    def close(self) -> None:
        """Give the directory back; a temporary one is deleted."""
        if self._root is not self or self._open is None:
            return
        self._open.close()
        self._open = None
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def _session(self) -> Session:
        if self._open is None or self._root._open is None:
            raise CallerError("the library is closed", value=str(self.folder), hint="open it again")
        return self._open

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _caller(
    user: str, roles: Sequence[str], tenant: str, sources: Sequence[str] | None
) -> AuthContext:
    allowed = None if sources is None else checked_sources(several("sources", sources))
    named = frozenset(several("roles", roles))
    return AuthContext(tenant=tenant, user=user, roles=named, allowed_sources=allowed)


def several(name: str, values: Sequence[str]) -> Sequence[str]:
    """Return a list of texts; a single text would be read as its letters, each one a role."""
    if isinstance(values, str):
        raise CallerError(f"{name} is a list of texts", value=values, hint=f"give [{values!r}]")
    return values
