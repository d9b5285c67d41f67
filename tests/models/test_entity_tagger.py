"""Names from spaCy: when there is a pipeline, and what is taken of its analysis."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from core.errors import ModelError
from models.entity_tagger import entity_tagger, extract_entities


@dataclass
class Token:
    text: str
    pos_: str
    idx: int


@dataclass
class Span:
    text: str
    label_: str
    start_char: int
    end_char: int


class Document(list):
    """Act as spaCy's Doc: a sequence of tokens whose slices are spans, with `ents`."""

    ents: list[Span] = []

    def __getitem__(self, key):
        if not isinstance(key, slice):
            return super().__getitem__(key)
        tokens = list(self)[key]
        end = tokens[-1].idx + len(tokens[-1].text)
        return Span(" ".join(t.text for t in tokens), "", tokens[0].idx, end)


def analysed(text: str, *ents: Span) -> Document:
    """Read "word/TAG word/TAG"."""
    tokens, place = Document(), 0
    for piece in text.split():
        word, _, tag = piece.partition("/")
        tokens.append(Token(word, tag, place))
        place += len(word) + 1
    tokens.ents = list(ents)
    return tokens


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("the/DET old/ADJ harbour/NOUN sleeps/VERB", ["old harbour"]),
        ("old/ADJ stone/NOUN bridge/NOUN", ["old stone bridge"]),
        ("big/ADJ old/ADJ", []),
        ("harbour/NOUN is/AUX old/ADJ", []),
        ("harbour/NOUN old/ADJ town/NOUN", ["old town"]),
        ("", []),
    ],
)
def test_adjectives_before_nouns_are_phrases(text, phrases) -> None:
    found = list(extract_entities(analysed(text)))
    assert [entity.text for entity in found] == phrases
    assert {entity.kind for entity in found} <= {"PHRASE"}


def test_labels_of_any_corpus_get_one_name_and_dates_are_left_out() -> None:
    labels = ["PER", "PERSON", "FAC", "GPE", "DATE", "CARDINAL"]
    found = extract_entities(analysed("", *(Span(label, label, 0, 1) for label in labels)))
    assert [entity.kind for entity in found] == ["PERSON", "PERSON", "LOC", "GPE"]


def test_rules_and_a_language_without_a_pipeline_need_no_model() -> None:
    assert entity_tagger("rules", "en") is None
    assert entity_tagger("auto", "xx") is None


def test_a_named_pipeline_that_is_missing_is_an_error_that_helps() -> None:
    with pytest.raises(ModelError, match="entity_model"):
        entity_tagger("no_such_pipeline", "en")
