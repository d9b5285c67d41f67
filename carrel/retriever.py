"""A library as a LangChain retriever, bound to one caller."""

from __future__ import annotations

from collections.abc import Callable

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from core.types import Evidence
from serve.searching import RESULT_KEYS


class LibraryRetriever(BaseRetriever):
    """Return passages as documents, best first; `search` is bound to a caller and a collection."""

    search: Callable[[str], list[Evidence]] = Field(exclude=True, repr=False)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_document(one) for one in self.search(query)]


def _document(found: Evidence) -> Document:
    held = found.model_dump(mode="json", include=set(RESULT_KEYS) - {"text"})
    return Document(page_content=found.text, metadata=held, id=found.chunk_id)
