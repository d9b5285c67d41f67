"""Questions to begin with, made without a model from what a collection's documents are called."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from core.auth import AuthContext
from languages.language import find_language

if TYPE_CHECKING:
    from stores.ports import Catalogue

MOST = 4  # questions; chosen, as all below
LOOKED_AT = 200  # documents among which they are chosen
FIRST_PASSAGES = 30  # of a document, whose headings are looked at
TABLE = "table"  # of records that are rows of a document
ENDS = " .?!。？！"
LONGEST = 60  # characters of a name in a question


def example_questions(catalogue: Catalogue, auth: AuthContext, collection: str) -> list[str]:
    """Return questions about documents that the caller may see, in the documents' languages."""
    found = catalogue.visible_collection(auth, collection)
    documents = catalogue.list_documents(auth, found, limit=LOOKED_AT)
    texts = [one for one in documents if not one["is_record"]]
    records = [one for one in documents if one["is_record"] and one["format"] != TABLE]

    def names() -> Iterator[tuple[str, str]]:
        chosen = [*_spread(texts, MOST - 1 if records else MOST), *_spread(records, MOST)]
        for one in chosen:
            if one["title"] not in (one["source"], one["document_id"]):
                yield one["language"], one["title"]
        for one in _spread(texts, MOST):  # a document alone has its headings
            passages = catalogue.list_passages(auth, found, one["document_id"], 0, FIRST_PASSAGES)
            for passage in passages:
                yield one["language"], passage["section"].rpartition(" › ")[2]

    asked = (
        find_language(language).messages["about_topic"].format(topic=name.rstrip(ENDS))
        for language, name in names()
        if name and len(name) <= LONGEST
    )
    return list(islice(dict.fromkeys(islice(asked, LOOKED_AT)), MOST))


def _spread(documents: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Return documents from the whole list, at even distances."""
    step = max(1, len(documents) // most)
    return documents[::step][:most]
