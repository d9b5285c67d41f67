"""Find names with spaCy, where a pipeline for the language is installed; nothing is downloaded."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from core.distribution import has_extra, require_extra
from core.errors import ModelError
from core.language.entities import Entity, Tagger

AUTO = "auto"
RULES = "rules"
# spaCy's labels by corpus; those left out (dates, quantities, languages …) are no names here.
KINDS = {
    "PERSON": "PERSON", "PER": "PERSON", "ORG": "ORG", "GPE": "GPE", "LOC": "LOC", "FAC": "LOC",
    "EVENT": "EVENT", "WORK_OF_ART": "WORK_OF_ART",
}  # fmt: skip
_TAGS = {"ADJ": "A", "NOUN": "N", "PROPN": "N"}
_PHRASE = re.compile("A*N+")
_SIZES = ("sm", "md", "lg", "trf")  # the fastest pipeline first


def entity_tagger(model: str, language: str) -> Tagger | None:
    """Return what finds names in texts of `language`, None where rules must do.

    `model` is "rules", "auto" (the smallest installed pipeline of the language) or the name or
    folder of a pipeline. A named pipeline that is not there raises ModelError.
    """
    if model == RULES:
        return None
    if model == AUTO and not has_extra("entities"):
        return None
    instead = "set retrieval.entity_model to 'rules'"
    require_extra("entities", "the entity model", value=model, otherwise=instead, error=ModelError)
    name = _find_installed(language) if model == AUTO else model
    return _load(name) if name else None


def _find_installed(language: str) -> str | None:
    """Name the smallest installed pipeline of a language; they are named LANGUAGE_KIND_SIZE."""
    installed = importlib.import_module("spacy.util").get_installed_models()
    names = [name for name in installed if name.startswith(f"{language}_")]
    sizes = {size: place for place, size in enumerate(_SIZES)}
    names.sort(key=lambda name: (sizes.get(name.rsplit("_", 1)[-1], len(sizes)), name))
    return names[0] if names else None


@lru_cache(maxsize=4)
def _load(name: str) -> Tagger:
    try:
        pipeline = importlib.import_module("spacy").load(name)
    except (OSError, ValueError) as error:
        raise ModelError(
            "the entity model cannot be loaded",
            value=name,
            hint="install that spaCy pipeline, or set retrieval.entity_model to 'auto' or 'rules'",
        ) from error
    return lambda text: extract_entities(pipeline(text))


def extract_entities(document: Any) -> Iterator[Entity]:  # noqa: ANN401 - spaCy's Doc, an optional library
    """Yield the names and the adjective-noun phrases of an analysed text (SPEC M3)."""
    for span in document.ents:
        if span.label_ in KINDS:
            yield _entity(span, KINDS[span.label_])
    tags = "".join(_TAGS.get(token.pos_, " ") for token in document)
    for match in _PHRASE.finditer(tags):
        if len(match.group()) > 1:
            yield _entity(document[match.start() : match.end()], "PHRASE")


def _entity(span: Any, kind: str) -> Entity:  # noqa: ANN401 - spaCy's Span
    return Entity(span.text, kind, span.start_char, span.end_char)
