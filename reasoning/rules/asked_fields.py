"""Fields of a record that a question asks for: it says the record's name and the field's label."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from core.language.analysis import content_terms
from core.types import Evidence
from reasoning.rules.record_values import RECORD_KINDS, Field, fields
from reasoning.rules.sentences import Sentence
from reasoning.rules.wanted import Wanted


def with_asked_fields(wanted: Wanted, item: Evidence, sentences: list[Sentence]) -> list[Sentence]:
    """Mark the fields of a named record that are asked for; their words are all there.

    A field is asked for when the question says a word of its label ("in what year"). A value that
    the question itself says is no answer.
    """
    name = set(content_terms(item.title, item.language))
    if item.kind not in RECORD_KINDS or not name or not name <= wanted.asked:
        return sentences
    asked = _asked(wanted, item, wanted.said - name)
    return [
        replace(one, score=1.0, lexical=1.0, field=True) if _holds(one, asked) else one
        for one in sentences
    ]


def _said(wanted: Wanted, item: Evidence, field: Field) -> bool:
    value = item.text[field.start : field.end]
    return set(content_terms(value, item.language)) <= wanted.asked


def _holds(sentence: Sentence, among: Iterable[Field]) -> bool:
    return any(sentence.start <= field.start < sentence.end for field in among)


def _asked(wanted: Wanted, item: Evidence, left: frozenset[str]) -> list[Field]:
    others = [field for field in fields(item.text) if not _said(wanted, item, field)]
    return [one for one in others if left & set(content_terms(one.label, item.language))]
