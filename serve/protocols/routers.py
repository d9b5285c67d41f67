"""The routes of other clients' protocols over the parts of this server."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from core.auth import AuthContext
from serve.app_state import AppState
from serve.depends import caller
from serve.protocols.langserve.routes import langserve_router
from serve.protocols.openai.routes import openai_router


def protocol_routers(desk: AppState) -> tuple[APIRouter, ...]:
    """Return the routes under `/agent` (LangServe) and `/v1` (OpenAI)."""

    def collections(auth: AuthContext) -> Sequence[str]:
        """Name the collections in which the caller may see a document."""
        return [one.name for one in desk.session.catalogue.visible_collections(auth)]

    def begin(auth: AuthContext, collection: str) -> str:
        """Begin a conversation of the caller and return its id."""
        return desk.runs.create_conversation(auth.tenant, auth.user, collection).id

    return (
        langserve_router(desk.runner, caller, desk.settings),
        openai_router(desk.runner, caller, collections, desk.settings, begin),
    )
