"""A data directory in a notebook: documents go in, answers, searches and plans come out."""

from __future__ import annotations

import copy
import json
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from core.auth import AuthContext
from core.display.evidence import EvidenceList
from core.errors import CallerError, ModelError
from core.settings import load_settings
from core.trace import RunRecord
from serve.searching import SEARCHES, TOOLS, SearchName

if TYPE_CHECKING:
    from graph.context import PipelineName
    from graph.session import Session
    from ingest.summary import Summary
    from reasoning.planning.files import PlanFile

DEFAULT_TENANT = "default"
DEFAULT_USER = "local"


class Library:
    """Own a data directory, a temporary one when none is named, as one caller at a time.

    What its methods return shows itself in a notebook. Settings are named as in `carrel config`.
    The directory is locked until `close`, as by any command.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        user: str = DEFAULT_USER,
        roles: tuple[str, ...] = (),
        tenant: str = DEFAULT_TENANT,
        **settings: Any,  # noqa: ANN401 - the value of any setting
    ) -> None:
        """Open the directory, which is made when it is not there."""
        from graph.session import Session

        operator = user == DEFAULT_USER and not roles  # who opens it and names no caller
        self.auth = AuthContext(tenant=tenant, user=user, roles=frozenset(roles), operator=operator)
        self._temporary = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="carrel-")
            folder = self._temporary.name
        self.folder = Path(folder)
        self._given: dict[str, Any] = {"data": self.folder, **settings}
        self._session: Session = Session(load_settings(self._given)[0], create=True)
        self._owns = True

    def as_caller(
        self, user: str, *, roles: tuple[str, ...] = (), tenant: str | None = None
    ) -> Library:
        """Return the same directory as another caller sees it; it closes with this one."""
        other = self._copy()
        tenant = tenant or self.auth.tenant
        other.auth = AuthContext(tenant=tenant, user=user, roles=frozenset(roles))
        return other

    def with_settings(self, **settings: Any) -> Library:  # noqa: ANN401
        """Return the same directory with other settings of searches and runs, for this caller.

        The models and the data directory stay those it was opened with.
        """
        other = self._copy()
        other._given = {**self._given, **settings}
        other._session = copy.copy(self._session)
        other._session.settings = load_settings(other._given)[0]
        return other

    def ingest(
        self,
        *paths: str | Path,
        collection: str,
        profile: str | None = None,
        readers: tuple[str, ...] = (),
    ) -> Summary:
        """Read files and folders into a collection; roles in `readers` alone may read them.

        Raises a CallerError when a path does not exist or nothing could be read.
        """
        from core.auth import checked_name, checked_principal
        from core.profile import load_profile
        from ingest.pipeline import Pipeline

        files = [Path(path) for path in paths]
        for path in files:
            if not path.exists():
                raise CallerError("a path to ingest must exist", value=str(path))
        checked_name("collection", collection)
        session = self._session
        if session.embedder is None:
            raise ModelError("documents need the embedder, which cannot be loaded")
        loaded = load_profile(profile) if profile else None
        store = session.store
        target = store.writer.open_collection(self.auth.tenant, collection, loaded)
        try:
            summary = Pipeline(
                store,
                session.embedder,
                session.index(target).settings,
                target,
                acl=frozenset(checked_principal(role) for role in readers),
                second=session.second,
            ).run(files)
        finally:
            store.writer.drop_collection_if_empty(target)
        if not summary.ok:
            reason = summary.failed[0].reason if summary.failed else "there is no known file"
            raise CallerError("nothing could be ingested", value=reason)
        return summary

    def ask(
        self,
        question: str,
        collection: str,
        *,
        pipeline: PipelineName = "auto",
        plan: dict[str, Any] | PlanFile | None = None,
    ) -> RunRecord:
        """Run the graph on one question and return the run; `plan` is run in place of its own."""
        given = self.check_plan(plan, collection) if isinstance(plan, dict) else plan
        return self._session.ask(question, self.auth, collection, pipeline=pipeline, given=given)

    def check_plan(self, plan: dict[str, Any], collection: str) -> PlanFile:
        """Return a plan that may be run, or raise a CallerError with the rule it breaks."""
        from reasoning.planning.files import read_plan

        text = json.dumps(plan, ensure_ascii=False, indent=1)
        tools = self._session.tools(self.auth, collection)
        return read_plan(text, self._session.settings, lambda: tools.specs(self.auth))

    def search(
        self, query: str, collection: str, *, pipeline: SearchName = "hybrid", k: int = 10
    ) -> EvidenceList:
        """Return passages, best first; nothing is graded and nothing is answered."""
        from core.question import checked_question

        if pipeline not in SEARCHES:
            raise CallerError(f"pipeline is one of {', '.join(SEARCHES)}", value=pipeline)
        settings = self._session.settings
        arguments: dict[str, Any] = {"query": checked_question(query, settings), "limit": k}
        if TOOLS[pipeline] == "search":
            arguments["links"] = pipeline == "linked" or settings.channel_links
        deadline = time.monotonic() + settings.budget_seconds
        tools = self._session.tools(self.auth, collection)
        found = tools.run(TOOLS[pipeline], arguments, self.auth, deadline)
        notes = [*self._session.warnings, *found.notes]
        return EvidenceList(found.evidence[:k], notes=notes, stages=found.stages)

    def close(self) -> None:
        """Give the directory back; a temporary one is deleted."""
        if not self._owns:
            return
        self._session.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _copy(self) -> Library:
        other = copy.copy(self)
        other._owns = False
        return other

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
