"""Complete a question that only names another thing: "And for children?", "周六呢?"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from core.language.analysis import content_terms
from core.language.chinese import CODE, part_of_speech, segment
from core.language.cues import stopwords
from core.language.detect import detect_language
from core.language.words import readings
from reasoning.rules.answering.summaries import asked_summary, chapter_beside, continued_summary
from reasoning.rules.decomposition.phrases import is_past
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.topic import WORD, content_runs
from reasoning.types import Turn

MOST_TERMS = 5  # of a fragment; a longer one says all it asks. Chosen, not measured
NAME = re.compile(r"[\"“«„][^\"”»“]+[\"”»“]|\b[A-ZА-ЯІЇЄҐ][\w'’-]*(?: [A-ZА-ЯІЇЄҐ0-9][\w'’-]*)*")
TITLE = re.compile(r"《[^》]*》")
ARTICLE = re.compile(r"\b(?:the|an?|my|our|your) ", re.IGNORECASE)
NOUN, VERB = "n", "v"  # with which the tags of Chinese words begin
Place = tuple[int, int]
MARKS = "?？.。!！,，;； "


def stand_alone(question: str, history: Sequence[Turn]) -> str:
    """Return a question with what it takes over from the one before it, else as it is."""
    return stand_alone_turns(question, history)[-1]


def stand_alone_turns(question: str, history: Sequence[Turn]) -> list[str]:
    """Return all questions, the last one at the end, each with what it takes over."""
    whole: list[str] = []
    for asked in [*(turn.question for turn in history), question]:
        whole.append(_continued(asked, whole) or asked)
    return whole


def _continued(question: str, before: Sequence[str]) -> str:
    """Return the earlier question about what a fragment names, "" where it is no fragment."""
    earlier = before[-1] if before else ""
    words = lexicon(detect_language(question if question.strip(MARKS) else earlier))
    bare = " ".join(question.split()).strip(MARKS)
    if not earlier.strip(MARKS):
        return ""
    if beside := chapter_beside(bare, earlier, words.language):
        return beside
    whole = asked_summary(question, words.language)
    if whole is not None and (whole.sure or not whole.part):
        return ""
    fragment = _fragment(question, words)
    named = not fragment and question.strip() == bare and not words.found("addressed", bare)
    alone = _short(bare, words) if named else ""
    if part := continued_summary(fragment or alone, before, words.language, alone=bool(alone)):
        return part
    if not fragment or whole is not None:
        return ""
    mark = words.known.question_mark
    last = " ".join(earlier.split()).rstrip(MARKS)
    place = _same_preposition(fragment, last, words) or _same_kind(fragment, last, words)
    if place is not None:
        return f"{last[: place[0]]}{fragment}{last[place[1] :]}{mark}"
    return f"{last} {fragment}{mark}" if words.known.spaced else f"{fragment}{last}{mark}"


def continues(question: str, words: Lexicon | None = None) -> bool:
    """Tell whether a question begins, or in Chinese ends, as one that goes on: "And …?"."""
    words = words or lexicon(detect_language(question))
    bare = question.strip(MARKS)
    lead = words.search("continuing", bare)
    opened = words.starts("opener", bare) or (lead is not None and lead.start() == 0)
    return opened or (not words.known.spaced and lead is not None and lead.end() == len(bare))


def _fragment(question: str, words: Lexicon) -> str:
    """Return what a question that continues another one names, "" where it asks by itself."""
    if not continues(question, words):
        return ""
    bare = question.strip(MARKS)
    while match := words.search("continuing", bare) or words.search("opener", bare):
        if match.start() and match.end() < len(bare):
            break
        bare = f"{bare[: match.start()]}{bare[match.end() :]}".strip(MARKS)
    return _short(bare, words)


def _short(bare: str, words: Lexicon) -> str:
    """Return a text that names something and asks nothing, "" for another."""
    asks = words.is_question(bare) or words.found("pronoun", bare) or words.found("base_verb", bare)
    return "" if asks or not 0 < len(content_terms(bare, words.language)) <= MOST_TERMS else bare


def _same_preposition(fragment: str, whole: str, words: Lexicon) -> Place | None:
    """Return the last phrase behind the preposition with which a fragment begins."""
    forms = words.table("preposition_form")

    def plain(preposition: str) -> str:
        return forms.get(preposition.casefold(), preposition.casefold())

    own = plain(fragment.split()[0])
    found = words.all_of("preposition", whole)
    starts = [one for one in found if plain(one.group()) == own]
    if not starts or not words.starts("preposition", fragment):
        return None
    return starts[-1].start(), _phrase_end(whole, starts[-1].end(), words)


def _phrase_end(text: str, start: int, words: Lexicon) -> int:
    """Return where a phrase ends: before a preposition, a mark or a verb."""
    place = start
    for word in WORD.finditer(text, start):
        ends = words.starts("preposition", word.group()) or any(
            m in text[place : word.start()] for m in MARKS[:-1]
        )
        verb = words.starts("base_verb", word.group()) and words.found("inverting", text[:start])
        verb = verb or words.starts("auxiliary", word.group())
        if place > start and (ends or verb or is_past(word.group().casefold(), words)):
            break
        place = word.end()
    return place + (text[place : place + 1] in tuple("»”\"'"))


def _same_kind(fragment: str, whole: str, words: Lexicon) -> Place | None:
    """Return the phrase that is likest a fragment: it shares a word, or both are names."""
    if words.starts("preposition", fragment):
        return None
    if not words.known.spaced:
        return _same_signs(fragment, whole)
    own = set(content_terms(fragment, words.language))
    for run in content_runs(whole, words)[::-1]:
        if own & set(content_terms(run, words.language)):
            start = whole.rfind(run)
            return _with_article(whole, start, start + len(run), fragment) if start >= 0 else None
    if not fragment[0].islower() or fragment.split()[-1][:1].isupper():
        common = stopwords(words.language)  # "I" is no name
        found = [one for one in NAME.finditer(whole, 1) if one[0].casefold() not in common]
        if found:
            return _with_article(whole, *found[-1].span(), fragment)
    if words.known.dictionary:
        return _same_case(fragment, whole, words)
    article = ARTICLE.search(whole)
    if article is None or not ARTICLE.match(fragment):
        return None
    return article.start(), _phrase_end(whole, article.end(), words)


def _same_signs(fragment: str, whole: str) -> Place | None:
    """Return the last text as long that begins or ends as a fragment without spaces does.

    Else the first noun: in Chinese what is asked about comes first.
    """
    if TITLE.fullmatch(fragment) and (titles := [*TITLE.finditer(whole)]):
        return titles[-1].span()
    size = len(fragment)
    places = range(len(whole) - size, -1, -1)
    for side in (-1, 0):
        for at in places:
            text = whole[at : at + size]
            if size > 1 and text[side] == fragment[side]:
                return at, at + size
    kind = part_of_speech(fragment) or NOUN  # what no dictionary has is a name
    return _first_noun(whole) if kind.startswith(NOUN) else None


def _same_case(fragment: str, whole: str, words: Lexicon) -> Place | None:
    """Return the last noun in a case that the last word of a fragment may have, as described."""
    dictionary, common = words.known.dictionary, stopwords(words.language)
    own = _cases(fragment.split()[-1], "NOUN", dictionary)
    found = [*WORD.finditer(whole)]
    fits = [at for at, one in enumerate(found) if own & _cases(one[0], "NOUN", dictionary)]
    if not fits:
        return None
    first = fits[-1]
    while first and _cases(found[first - 1][0], "ADJF", dictionary) & own:
        if found[first - 1][0].casefold() in common:
            break  # "my"
        first -= 1
    return found[first].start(), found[fits[-1]].end()


def _cases(word: str, pos: str, dictionary: str) -> set[str]:
    return {one.case for one in readings(word.casefold(), dictionary) if one.pos == pos}


def _first_noun(whole: str) -> Place | None:
    """Return the first noun of a text without spaces; of a name that is no word all its signs."""
    words = [*segment(whole, "default")]
    for place, (word, start, end) in enumerate(words):
        signs = [*takewhile(lambda one: _is_of_name(one[0]), words[place:])]
        if len(signs) > 1:
            return start, signs[-1][2]
        if part_of_speech(word).startswith(NOUN):
            return start, end
    return None


def _is_of_name(sign: str) -> bool:
    verb = part_of_speech(sign).startswith(VERB)
    return len(sign) == 1 and not verb and sign not in stopwords(CODE)


def _with_article(whole: str, start: int, end: int, fragment: str) -> Place:
    """Return the place of a phrase, with its article where the fragment has one."""
    led = [one.start() for one in ARTICLE.finditer(whole) if one.end() == start]
    return (led[-1] if led and ARTICLE.match(fragment) else start), end
