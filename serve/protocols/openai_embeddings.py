"""OpenAI's embeddings, made by the embedder that searches the collections."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from core.auth import AuthContext
from core.budget import current_limit
from models.embeddings import Embedder
from models.vectors import Vectors
from serve.errors import route_with
from serve.protocols.openai_schemas import FAILURES, OpenAIError, collection_of, openai_failure
from serve.questions import Storable
from serve.runs.following import json_text

MOST_TEXTS = 128  # of one request; chosen, not measured
MOST_CHARS = 20_000  # of one text; models read less, some 512 tokens
AT_ONCE = 16  # between two looks at the time

Embed = Callable[[AuthContext, str, Callable[[Embedder], list[Vectors]]], Awaitable[list[Vectors]]]


class EmbeddingsRequest(Storable):
    """Ask for the vectors of texts; a query and a document have vectors of their own."""

    model: str
    input: str | list[str | int | list[int]]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1, description="Only the embedder's own length.")
    input_type: Literal["document", "query"] = "document"
    user: str | None = Field(None, description="Ignored: the key says who asks.")

    def texts(self) -> list[str]:
        """Return the texts; raises OpenAIError where there are none, too many, or too long ones."""
        given = [self.input] if isinstance(self.input, str) else self.input
        texts = [one for one in given if isinstance(one, str)]
        if len(texts) < len(given):
            raise OpenAIError(
                400, "input must be texts, not tokens (check_embedding_ctx_length=False)", "input"
            )
        if not 0 < len(texts) <= MOST_TEXTS:
            raise OpenAIError(
                400, f"input must be 1 to {MOST_TEXTS} texts, not {len(texts)}", "input"
            )
        for place, text in enumerate(texts):
            if not 0 < len(text.strip()) <= len(text) <= MOST_CHARS:
                rule = f"a text has 1 to {MOST_CHARS} characters, not only spaces"
                raise OpenAIError(400, f"{rule}; this one has {len(text)}", f"input.{place}")
        return texts

    def vectors(self, embedder: Embedder) -> list[Vectors]:
        """Return a row for each text; raises TimeUpError when the caller's time is used up."""
        if self.dimensions not in (None, embedder.dimension):
            raise OpenAIError(
                400,
                f"the vectors have {embedder.dimension} numbers, not {self.dimensions}",
                "dimensions",
            )
        rows: list[Vectors] = []
        texts = self.texts()
        for start in range(0, len(texts), AT_ONCE):
            if current_limit().is_up():
                raise current_limit().error()
            some = texts[start : start + AT_ONCE]
            query = self.input_type == "query"
            rows.extend(
                map(embedder.embed_query, some) if query else embedder.embed_documents(some)
            )
        return rows


class EmbeddingReply(BaseModel):
    """Hold one vector: numbers, or their little-endian float32 in base64."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsUsage(BaseModel):
    """Count the tokens of chat models, which are none."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsReply(BaseModel):
    """Hold the vectors in the order of the texts."""

    object: Literal["list"]
    data: list[EmbeddingReply]
    model: str
    usage: EmbeddingsUsage


def embeddings_router(
    caller: Callable[[Request], Any],
    collections: Callable[[AuthContext], Sequence[str]],
    embed: Embed,
) -> APIRouter:
    """Return the route; `embed` does work with the embedder of a collection of the caller."""
    who = Depends(caller)
    router = APIRouter(
        prefix="/v1", tags=["openai"], route_class=route_with(openai_failure), responses=FAILURES
    )

    @router.post("/embeddings", response_model=EmbeddingsReply)
    async def embeddings(body: EmbeddingsRequest, auth: AuthContext = who) -> Response:
        """Return the vectors of texts, of length 1, by the embedder of the model's collection."""
        name = collection_of(body.model, await run_in_threadpool(collections, auth))
        body.texts()
        rows = await embed(auth, name, body.vectors)
        data = [
            {"object": "embedding", "index": index, "embedding": _shown(row, body.encoding_format)}
            for index, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        content = {"object": "list", "data": data, "model": body.model, "usage": usage}
        return Response(json_text(content), media_type="application/json")

    return router


def _shown(row: Vectors, form: str) -> list[float] | str:
    if form == "float":
        return [float(one) for one in row]
    return base64.b64encode(row.astype("<f4").tobytes()).decode("ascii")
