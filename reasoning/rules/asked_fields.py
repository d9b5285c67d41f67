"""Sentences that say what a question asks for of the document it names, and those that do not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from core.language.analysis import content_terms
from core.types import Evidence
from reasoning.rules.features import RECORD_LABEL
from reasoning.rules.field_questions import FieldQuestion, Meant, field_question, said_in
from reasoning.rules.field_words import field_of, scan
from reasoning.rules.record_values import RECORD_KINDS, Field, fields
from reasoning.rules.scorer import MOST_ODDS
from reasoning.rules.sentences import Sentence
from reasoning.rules.wanted import Wanted

# A field under the label asked for answers, but a sentence that says all of it says it better.
FIELD_ODDS, FIELD_SCORE = 2.0, 0.88
_BY = re.compile(r"\bby\s+[^\W\d_a-z]")


def with_asked_fields(wanted: Wanted, item: Evidence, sentences: list[Sentence]) -> list[Sentence]:
    """Mark the fields of a named record that are asked for; lower what says nothing of them.

    A field is asked for when the question says its label, or another name of the same field. A
    value that the question itself says is no answer, and neither is any other line of the record,
    or sentence of the document, that does not speak of what is asked for.
    """
    question = field_question(wanted.text, item)
    record = item.kind in RECORD_KINDS
    asked = _asked(wanted, item, question) if record else []
    return [
        _marked(one)
        if _holds(one, asked)
        else _lowered(one)
        if _beside(one, question, record=record) or _known(wanted, one, question)
        else one
        for one in sentences
    ]


def _known(wanted: Wanted, sentence: Sentence, question: FieldQuestion) -> bool:
    """Tell whether a labelled line says only what the question says itself."""
    label = RECORD_LABEL.match(sentence.text)
    if wanted.wants == "yesno" or question.meant is not Meant.named or label is None:
        return False
    return said_in(sentence.text[label.end() :])[0] <= question.said


def _marked(sentence: Sentence) -> Sentence:
    odds = max(sentence.odds, FIELD_ODDS)
    return replace(sentence, odds=odds, score=FIELD_SCORE, lexical=1.0, is_answer=True, field=True)


def _lowered(sentence: Sentence) -> Sentence:
    return replace(sentence, odds=-MOST_ODDS, score=0.0, lexical=0.0, matched=frozenset())


def _asked(wanted: Wanted, item: Evidence, question: FieldQuestion) -> list[Field]:
    name = frozenset(content_terms(item.title, item.language))
    named = question.meant in (Meant.named, Meant.described)
    labelled = wanted.said - name if name and name <= wanted.asked else frozenset()
    if question.meant is Meant.other and question.fields:
        return []
    return [
        one
        for one in fields(item.text)
        if not _said(wanted, item, one) and _labels(one, labelled, item, question, named=named)
    ]


def _labels(
    field: Field, labelled: frozenset[str], item: Evidence, question: FieldQuestion, *, named: bool
) -> bool:
    known = field_of(field.label)
    if known and question.fields:
        return named and known in question.fields
    return bool(labelled & set(content_terms(field.label, item.language)))


def _said(wanted: Wanted, item: Evidence, field: Field) -> bool:
    value = item.text[field.start : field.end]
    return set(content_terms(value, item.language)) <= wanted.asked


def _holds(sentence: Sentence, among: Iterable[Field]) -> bool:
    return any(sentence.start <= field.start < sentence.end for field in among)


def _beside(sentence: Sentence, question: FieldQuestion, *, record: bool) -> bool:
    """Tell whether a sentence says nothing of what is asked for, well as it names the document."""
    if not question.fields:
        unsaid = question.meant is Meant.named and record and question.left
        return bool(unsaid) and not question.left & said_in(sentence.text)[0]
    if record:
        return _beside_in_record(sentence, question)
    if not question.clear:
        return False
    if question.meant is Meant.other:
        return True
    named = question.names <= said_in(sentence.text)[0]
    if named and (question.meant is not Meant.named or _signed(sentence.text, question)):
        return False
    return not _speaks_of(sentence.text, question)


def _signed(text: str, question: FieldQuestion) -> bool:
    """Tell whether a text names an author as title pages do: "Candles, by Ann Wick"."""
    return "author" in question.fields and _BY.search(text) is not None


def _beside_in_record(sentence: Sentence, question: FieldQuestion) -> bool:
    if question.meant is not Meant.named:
        return question.meant is Meant.other
    label = RECORD_LABEL.match(sentence.text)
    if label and field_of(label.group()):
        return field_of(label.group()) not in question.fields
    return not _speaks_of(sentence.text, question)


def _speaks_of(text: str, question: FieldQuestion) -> bool:
    return bool(question.fields & scan(text, "text", label=True).mentioned)
