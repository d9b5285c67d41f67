"""What a finished run leaves behind for the server: figures, and an answer to remember."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from typing import NamedTuple

from app.session import Session
from core.auth import AuthContext
from core.cache import Cache
from core.errors import CallerError
from core.question import names_of
from core.trace import RunRecord
from core.types import StopReason
from serve.questions import Question
from serve.telemetry.run_figures import RunFigures
from tools.results import deciding
from tools.toolbox import GENERAL

ANSWERED = frozenset({StopReason.enough_evidence, StopReason.required_fields_missing})
BASES = {name: name for name in (*(tool.base for tool in GENERAL), "read_document")} | {
    "search_classic": "search_classic"
}


class AnswerKey(NamedTuple):
    """Under which key an answer is cached, and the index version that it was computed from."""

    key: str
    version: int


class AnswerCache:
    """Watch runs end, and give a caller who asks the same again the answer they already have.

    Only the id of a run is remembered. The run itself is read from the catalogue, as the caller's
    own; one that is deleted is not given again.
    """

    def __init__(self, session: Session, figures: RunFigures | None = None) -> None:
        self._session = session
        self._figures = figures
        self._cache: Cache = session.caches.answers

    def key_of(self, question: Question, auth: AuthContext) -> AnswerKey | None:
        """Return the cache key of a question, None for one that is never remembered.

        The questions of a conversation depend on what was said in it, which grows with each.
        """
        if not self._cache.enabled or question.conversation:
            return None
        session = self._session
        try:
            named = session.catalogue.collections_named(auth, question.collection)
        except CallerError:
            return None  # the run says so itself
        chat, version = session.chat, session.catalogue.index_version()
        model = chat.capabilities.model if chat else ""
        key = self._cache.key(
            caller=auth.describe(),
            question=dataclasses.asdict(question),
            version=version,
            decides=[deciding(session.index(one), model) for one in named],
        )
        return AnswerKey(key, version)

    def find(self, asked: AnswerKey | None, auth: AuthContext) -> RunRecord | None:
        """Return the run that answered the same before, with `cached` in its result."""
        run_id = self._cache.get(asked.key) if asked is not None else None
        if run_id is None:
            return None
        try:
            run = self._session.runs.load(auth, run_id.decode("ascii"))
        except CallerError:
            return None
        if "withheld" in run.result:
            return None  # a document was closed since
        return run.model_copy(update={"result": {**run.result, "cached": True}})

    def remember(self, asked: AnswerKey | None, run: RunRecord) -> None:
        """Count a run; cache it when it answers in full and nothing changed meanwhile."""
        if asked is not None and run.index_version == asked.version and is_complete(run):
            self._cache.put(asked.key, run.run_id.encode("ascii"))
        if self._figures is not None:
            self._figures.observe(run, self._bases(run))

    def _bases(self, run: RunRecord) -> dict[str, str]:
        catalogue, bases = self._session.catalogue, dict(BASES)
        for name in names_of(run.collection):
            with suppress(CallerError):  # it was deleted meanwhile
                tools = catalogue.collection(run.tenant, name).profile.tools
                bases |= {tool.name: tool.base for tool in tools}
        return bases


def is_complete(run: RunRecord) -> bool:
    """Tell whether a run answered with all it could have had: nothing failed or ran out."""
    result = run.result
    return (
        not result["refused"]
        and result["stop_reason"] in ANSWERED
        and not result["usage"]["degraded"]
        and not result.get("clarification")
        and not any(step.degraded or step.partial for step in run.trail)
    )
