"""Questions about a document or a collection as a whole: their most central sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from core.language.orders import gives_orders
from core.metadata import LISTED_CHUNKS, ROW
from core.types import Call, Claim, Evidence, Plan, SubQuestion, ToolSpec, Understanding
from languages.language import find_language
from models.vectors import central
from reasoning.rules.answering.blocks import ITEM, RECORD_LABEL, spans_of
from reasoning.rules.answering.features import CLOSING, ENDS, SHORT, terms_of
from reasoning.rules.answering.relevance import Relevance
from reasoning.rules.lexicon import lexicon
from reasoning.rules.records.answers import claim_of

SUMMARISE = "summarise"
SENTENCES = 5  # of one document: what a reader takes in at a glance; chosen, not measured
LEADING = 3  # sentences of a document that say what it is about, if any does; chosen, not measured
# Chosen, not measured:
LONGEST = 400  # characters of a sentence; a longer one is a list or was never meant to be read
# Chosen, not measured:
LEAST_LETTERS = 0.7  # of the characters: with fewer it is a table, a formula or an address
QUOTES = "\"'“”‘’«»„《》「」『』`"
END_MARKS = " \t\n?？.。!！…"
QUOTED = re.compile(rf"^[{QUOTES}](.+)[{QUOTES}]$")
FILE_NAME = re.compile(r"\S\.[A-Za-z]\w{0,4}$|\w/\w")


class AskedSummary(NamedTuple):
    """Hold the name of the document asked about, "" for the collection.

    `sure` tells that nothing else can be meant, so that an absent document is refused.
    """

    name: str
    sure: bool


class _Forms(NamedTuple):
    collection: list[re.Pattern[str]]
    asked: list[re.Pattern[str]]
    about: list[re.Pattern[str]]
    noun: re.Pattern[str]


@lru_cache(maxsize=8)
def _forms(language: str) -> _Forms | None:
    known = find_language(language)
    patterns = known.read("summaries")
    if not patterns:
        return None
    parts: dict[str, str] = {**patterns["parts"], "NAME": r"(?P<name>.+?)"}

    def compiled(source: str) -> re.Pattern[str]:
        filled = re.sub(
            "|".join(sorted(parts, key=len, reverse=True)), lambda m: parts[m[0]], source
        )
        return re.compile(f"{parts['PLEASE']}{filled}{parts['BRIEF']}", re.IGNORECASE)

    gap = r"\s+" if known.spaced else ""
    noun = (
        f"(?:{patterns['articles']})?(?:{patterns['document']}(?:{gap}|(?=[{QUOTES}])){patterns['called']}(?P<after>.+)"
        f"|(?P<before>.+?){gap}{patterns['document']})"
    )
    collection, asked, about = (
        [compiled(one) for one in patterns[name]] for name in ("collection", "asked", "about")
    )
    return _Forms(collection, asked, about, re.compile(noun, re.IGNORECASE))


def asked_summary(question: str, language: str) -> AskedSummary | None:
    """Return what a question asks a summary of, None where it asks for something else.

    Names make the language of a short question hard to tell, so a close one is tried as well.
    """
    text = " ".join(question.split()).strip(END_MARKS)
    if len(text) > LONGEST:
        return None
    known = find_language(language)
    for forms in filter(None, map(_forms, (known.code, *known.near))):
        if any(form.fullmatch(text) for form in forms.collection):
            return AskedSummary("", sure=True)
        for wanted, found in ((True, forms.asked), (False, forms.about)):
            for match in filter(None, (form.fullmatch(text) for form in found)):
                return _named(match["name"].strip(), forms.noun, wanted=wanted)
    return None


def _named(name: str, noun: re.Pattern[str], *, wanted: bool) -> AskedSummary:
    """Return the name alone; it is surely one in quotes or of a file.

    Else two of three must hold: a summary is wanted, "document" is said, it is written as a title.
    """
    match = noun.fullmatch(name)
    bare = (match["after"] or match["before"]).strip() if match is not None else name
    quoted = QUOTED.match(bare)
    plain = any(len(word) > 3 and not word[0].isupper() for word in bare.split())
    titled = not plain and bare != bare.lower()
    has_noun = match is not None
    sure = (has_noun and wanted) or (titled and (has_noun or wanted))
    exact = quoted is not None or FILE_NAME.search(bare) is not None
    return AskedSummary(quoted[1].strip() if quoted else bare, sure=sure or exact)


def with_summary(plan: Plan, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
    """Return the plan of a question about a whole, any other as it is.

    Where something else may be meant that is searched for, too.
    """
    spec = next((one for one in tools if one.base == SUMMARISE), None)
    part = understanding.parts[0] if len(understanding.parts) == 1 else None
    text = part.text if part else understanding.question
    asked = asked_summary(text, understanding.language) if spec else None
    if spec is None or asked is None:
        return plan
    words = lexicon(understanding.language)
    if part and part.about and asked.name.casefold() in words.any_of("pronoun"):
        asked = AskedSummary(part.about, sure=False)
    arguments = {"document": asked.name, "near": asked.sure, "language": understanding.language}
    first = plan.questions[0]
    question = SubQuestion(
        id="q1",
        text=text,
        query=understanding.question,
        language=understanding.language,
        wants="list" if not asked.name else "text",
        calls=[Call(tool=spec.name, arguments=arguments), *([] if asked.sure else first.calls)],
    )
    return Plan(questions=[question])


def is_settled(plan: Plan) -> bool:
    """Tell whether the rules alone can carry out a plan: it counts records, or reads a whole."""
    calls = [call for question in plan.questions for call in question.calls]
    return any(call.tool == SUMMARISE or "aggregate" in call.arguments for call in calls)


def only_summarises(question: SubQuestion) -> bool:
    """Tell whether nothing but a whole document or collection can answer."""
    return bool(question.calls) and all(call.tool == SUMMARISE for call in question.calls)


def map_summary_rows(evidence: Sequence[Evidence]) -> dict[str, Evidence]:
    """Return the rows that say what a summary is made of, by the passages they hold."""
    rows = [one for one in evidence if one.kind == ROW and one.tool == SUMMARISE]
    return {
        key: row for row in rows for key in (row.chunk_id, *row.metadata.get(LISTED_CHUNKS, ()))
    }


def summary_claims(
    plan: Plan, evidence: Sequence[Evidence], relevance: Relevance
) -> tuple[list[Claim], Plan]:
    """Return the extracts that summaries are made of, and the plan of the questions left."""
    claims: list[Claim] = []
    left = []
    listed = map_summary_rows(evidence)
    for question in plan.questions:
        own = [one for one in evidence if one.chunk_id in listed and one.grades.get(question.id)]
        if not own:
            left.append(question)
            continue
        groups = {"": [one for one in own if one.kind != ROW]}
        if question.wants == "list":  # of each document of a collection
            rows = [one for one in own if one.kind == ROW]
            claims += [claim_of(row.text, row, [(0, len(row.text))], question) for row in rows]
            keys = dict.fromkeys(one.document_key for one in groups[""])
            groups = {key: [one for one in groups[""] if one.document_key == key] for key in keys}
        for key, group in groups.items():
            for item, span in _extracts(group, relevance, 1 if key else SENTENCES):
                text = " ".join(item.text[slice(*span)].split())
                claims.append(claim_of(text, item, [span], question))
    return claims, plan.model_copy(update={"questions": left})


def _extracts(
    items: Sequence[Evidence], relevance: Relevance, most: int
) -> list[tuple[Evidence, tuple[int, int]]]:
    """Return the most central sentences in the order of the text, the leading one among them."""
    places = [(item, span) for item in items for span in spans_of(item.text, item.kind)]
    rows = relevance.rows(items)
    usable = [(n, *one) for n, one in enumerate(places) if not gives_orders(one[0].text, *one[1])]
    good = [n for n, item, span in usable if _reads_alone(item, span)]
    good = good or [n for n, _, span in usable if span[1] - span[0] <= LONGEST]
    if not good:
        return [(item, span) for _, item, span in usable[:most]]
    vectors = np.concatenate(rows)[good]
    if most > 1:
        return [places[good[n]] for n in sorted(central(vectors, most, (0,)))]
    likeness = vectors[:LEADING] @ vectors.mean(axis=0)
    return [places[good[int(likeness.argmax())]]]


def _reads_alone(item: Evidence, span: tuple[int, int]) -> bool:
    """Return whether a sentence is complete and understandable alone."""
    text = item.text[slice(*span)].strip()
    words = lexicon(item.language)
    bare = text.rstrip(CLOSING)
    letters = sum(map(str.isalpha, text)) + text.count(" ")
    return (
        len(terms_of(text, item.language)) > SHORT
        and len(text) <= LONGEST
        and letters >= LEAST_LETTERS * len(text)
        and bare.endswith(ENDS)
        and not bare.endswith(("?", "？"))
        and not text[0].islower()
        and not RECORD_LABEL.match(text)
        and not ITEM.match(text)
        and not (words.starts("reference", text) or words.starts("opener", text))
    )
