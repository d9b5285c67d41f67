"""Embedders through langchain-huggingface: a model folder in torch, or an embedding endpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from core.distribution import require_extra
from core.errors import ModelError
from core.question import whole_text
from models.folder import EmbedderSpec, ModelFolder
from models.onnx_runtime import RunOptions
from models.torch_loading import POOLER, check_device, torch_loading
from models.vectors import Vectors, unit_rows

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

NEEDS = "an embedder that is not embedded"
URLS = ("http://", "https://")
OF_THE_HUB = (".huggingface.cloud", ".huggingface.co")  # where its token is sent, and nowhere else
INFO_SECONDS, ANSWER_SECONDS = 5.0, 60.0  # that a server may take; chosen, not measured


class HuggingFaceEmbedder:
    """Give the vectors of a LangChain `Embeddings`, scaled to length 1 and checked."""

    backend = "torch"

    def __init__(
        self, embeddings: Embeddings, spec: EmbedderSpec, failing: str, batch_size: int | None
    ) -> None:
        """Take what embeds; `failing` says what to do when it fails, `batch_size` cuts calls."""
        self._embeddings = embeddings
        self._failing = failing
        self._batch_size = batch_size
        self.model_id = spec.model_id
        self.languages = spec.languages
        self.similarity = spec.similarity
        self.dimension = len(self._run(embeddings.embed_query, "probe"))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages; each is cut at the length the model was made for."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        readable = [whole_text(text) for text in texts]
        size = self._batch_size or len(texts)
        rows = [
            row
            for start in range(0, len(texts), size)
            for row in self._run(self._embeddings.embed_documents, readable[start : start + size])
        ]
        if len(rows) != len(texts):
            rule = "an embedder must give one row per text"
            raise ModelError(rule, value=f"{len(rows)} for {len(texts)}", hint=self._failing)
        return unit_rows(np.array(rows, dtype=np.float32), self.model_id)

    def embed_query(self, text: str) -> Vectors:
        """Embed one question."""
        row = np.array(
            [self._run(self._embeddings.embed_query, whole_text(text))], dtype=np.float32
        )
        vector: Vectors = unit_rows(row, self.model_id)[0]
        return vector

    def _run(self, embed: Callable[[Any], list[Any]], given: str | list[str]) -> list[Any]:
        try:
            return embed(given)
        except Exception as error:  # torch and HTTP clients raise errors of many families
            raise ModelError(
                "the model failed while it ran",
                value=f"{self.model_id}: {str(error).partition(chr(10))[0]}",
                hint=self._failing,
            ) from error


def open_folder(
    folder: ModelFolder, spec: EmbedderSpec, options: RunOptions
) -> HuggingFaceEmbedder:
    """Load a sentence-transformers folder in torch; code from a repository is never run."""
    require_extra("huggingface", NEEDS, value=folder.name, error=ModelError)
    import torch
    from langchain_huggingface import HuggingFaceEmbeddings

    check_device(options.device)
    torch.set_num_threads(options.threads)
    usual = {"batch_size": options.batch_size, "normalize_embeddings": True}
    with torch_loading(folder, POOLER):
        embeddings = HuggingFaceEmbeddings(
            model_name=str(folder.path),
            model_kwargs={
                "device": options.device,
                "local_files_only": True,
                "trust_remote_code": False,
            },
            encode_kwargs={**usual, "prompt": spec.passage_prompt},
            query_encode_kwargs={**usual, "prompt": spec.query_prompt},
        )
        embeddings._client.max_seq_length = options.max_tokens
    failing = "check the model's files, or embed fewer texts per batch"
    return HuggingFaceEmbedder(embeddings, spec, failing, None)


def endpoint_model(url: str) -> tuple[str, str]:
    """Return the name and the revision of the model that an endpoint runs, as far as it says so.

    text-embeddings-inference answers at /info; of another server the address stands for both.
    """
    import httpx

    place = urlsplit(url)
    try:
        found = httpx.get(f"{place.scheme}://{place.netloc}/info", timeout=INFO_SECONDS).json()
        return str(found["model_id"]), str(found.get("model_sha") or "")
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        return place.netloc, url


def open_endpoint(url: str, spec: EmbedderSpec, options: RunOptions) -> HuggingFaceEmbedder:
    """Return what asks an endpoint of text-embeddings-inference; texts are sent to that server."""
    require_extra("huggingface", NEEDS, value=url, error=ModelError)
    from huggingface_hub import InferenceClient
    from langchain_huggingface import HuggingFaceEndpointEmbeddings

    class Endpoint(HuggingFaceEndpointEmbeddings):
        """Put the model's prompts before texts, which the server does not."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return super().embed_documents([spec.passage_prompt + text for text in texts])

        def embed_query(self, text: str) -> list[float]:
            return super().embed_documents([spec.query_prompt + text])[0]

    of_hub = (urlsplit(url).hostname or "").endswith(OF_THE_HUB)
    endpoint = Endpoint()
    # The class takes names of the hub alone; its client takes the address of any server.
    own = {} if of_hub else {"authorization": ""}  # else the hub's token goes to any server
    endpoint.client = InferenceClient(model=url, headers=own, timeout=ANSWER_SECONDS)
    failing = "see whether the endpoint runs and gives one vector per text"
    return HuggingFaceEmbedder(endpoint, spec, failing, options.batch_size)
