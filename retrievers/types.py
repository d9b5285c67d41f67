"""Ranked chunks, and what every retriever needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.auth import AuthContext
from core.settings import Settings
from models.embeddings import Embedder
from stores.catalogue import Collection
from stores.store import Store

Ranking = list[tuple[str, float]]


@dataclass(frozen=True)
class Index:
    """Name the collection that is searched and the models that search it.

    Without an embedder (its files are missing or broken) only keywords are searched.
    """

    store: Store
    collection: Collection
    embedder: Embedder | None
    settings: Settings


@dataclass(frozen=True)
class Query:
    """Hold one search under one caller's rights; `sources` are patterns of the tool's scope.

    `language` is the question's, None when nobody has looked yet.
    """

    text: str
    auth: AuthContext
    sources: Sequence[str] = ()
    language: str | None = None
