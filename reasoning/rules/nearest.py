"""What comes nearest to a question that nothing answers, and what it lacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from core.language.analysis import analyze, query_terms, terms
from core.language.orders import gives_orders
from core.types import Evidence, SubQuestion
from reasoning.rules.answering.headings import headings_of
from reasoning.rules.answering.relevance import Relevance, Sentence
from reasoning.rules.lexicon import STEERING, Lexicon, lexicon
from reasoning.rules.topic import content_runs, entities
from reasoning.rules.values.versions import without_versions
from reasoning.types import Nearest

LEAST = 0.25  # share of the question's words that a sentence or its heading must say; by hand
UPPER = "[A-ZА-ЯҐЄІЇЁ]"
CAPITALS = re.compile(
    rf"(?<!\w){UPPER}[^\W一-鿿]*(?:['’][a-z]+)?(?:\s{UPPER}[^\W一-鿿]*(?:['’][a-z]+)?)+"
)
NUMBERED = re.compile(r"^\W*\d+(?:\.\d+)*[.)、]?\s+")  # before a heading
TRIES = 3  # topics that are tried as a better question; each is graded; chosen, not measured


def nearest(
    relevance: Relevance,
    question: SubQuestion,
    evidence: Sequence[Evidence],
    answers: Callable[[SubQuestion], bool],
) -> Nearest:
    """Return the sentence that comes nearest to an answer, if any has to do with the question.

    `answers` tells whether the evidence answers a question: only such a one is proposed.
    """
    wanted = relevance.wanted(question, evidence)
    ranked = relevance.sentences(wanted, evidence)
    near = next((one for one in ranked if _is_shown(one)), None)
    everywhere = _lacking(question, evidence)
    found = Nearest(
        lacking=everywhere,
        better=_better(question, everywhere, near, answers),
        answers=answers(question),
    )
    if near is None:
        return found
    item = near.evidence
    place = {"evidence_id": item.evidence_id, "start": near.start, "end": near.end}
    here = [] if everywhere else _lacking(question, [item])
    kind = "text" if near.has_kind or everywhere or here else wanted.wants
    return found.model_copy(update={**place, "lacking_here": here, "kind": kind})


def _is_shown(sentence: Sentence) -> bool:
    """Tell whether a sentence has to do with a question; of a passage with orders none is shown.

    Not all that a passage tells a program is known as an order.
    """
    text = sentence.evidence.text
    near = sentence.is_answer and sentence.coverage >= LEAST
    return near and not gives_orders(text, 0, len(text))


def _lacking(question: SubQuestion, evidence: Sequence[Evidence]) -> list[str]:
    """Return the words and names of a question that no passage, nor what is above it, says."""
    languages = frozenset(item.language for item in evidence) | {question.language}
    present: set[str] = set()
    for item in evidence:
        own = f"{item.metadata.get('framework') or ''} {item.version}"
        text = f"{own} {item.title} {item.section} {item.text}"
        present.update(*(terms(text, one) for one in {item.language, question.language}))
    words = lexicon(question.language)
    asked = words.remove(question.text, *STEERING, "number", "date", "person", "place")
    text = " ".join(content_runs(asked, words))
    absent = [group for group in query_terms(text, languages) if not group & present]
    missing = frozenset(term for group in absent for term in group)
    return _written(question.text, question.language, missing, words)


def _written(text: str, language: str, missing: Collection[str], words: Lexicon) -> list[str]:
    """Return these terms as a question writes them: names whole, Chinese neighbours together."""
    names = [(text.find(name), name) for name in (*entities(text, words), *CAPITALS.findall(text))]
    spans: list[tuple[int, int]] = []
    for token in analyze(text, language):
        if token.term not in missing or token.is_function:
            continue
        start, end = token.start, token.end
        for at, name in names:
            if at <= start and end <= at + len(name):
                start, end = at, at + len(name)
        if spans and start <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    return list(dict.fromkeys(text[start:end] for start, end in spans))


def _better(
    question: SubQuestion,
    lacking: Sequence[str],
    near: Sentence | None,
    answers: Callable[[SubQuestion], bool],
) -> str:
    """Return a question that the evidence answers: of any version, of a name, or of a section."""
    plain = without_versions(question.text, question.language)
    if plain != question.text and answers(
        question.model_copy(update={"text": plain, "query": plain})
    ):
        return plain
    words = lexicon(question.language)
    topics = [one for one in entities(question.text, words) if one not in lacking]
    if near is not None:
        topics += [NUMBERED.sub("", one) for one in headings_of(near.evidence) if one][:1]
    for topic in list(dict.fromkeys(filter(None, topics)))[:TRIES]:
        if topic.endswith(("?", "？")):  # a heading that asks is a question itself
            return topic
        update = {"text": topic, "query": topic, "wants": "topic"}
        if answers(question.model_copy(update=update)):
            return words.message("about_topic").format(topic=topic)
    return ""
