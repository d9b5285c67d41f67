"""Sentences of a passage: where they stand, and how well each reads without its neighbours."""

from __future__ import annotations

import re
from functools import lru_cache

from core.language.analysis import content_terms
from core.language.cues import Cues
from core.language.orders import gives_orders
from core.language.scan import HAN
from core.language.sentences import record_spans, sentence_spans
from languages.language import find_language

Span = tuple[int, int]
CODE_KIND, RECORD, TABLE = "code", "record", "table"  # kinds of chunks
LEAST_SENTENCE = 12  # characters; chosen, not measured
ROW = re.compile(r"\S(?:[^\n]*\S)?")
RECORD_LABEL = re.compile(r"[^\W\d_][\w ]{0,40}(?: ?\([^()\n]{1,20}\))?: (?=\S)")
ITEM = re.compile(r"\s*(?:[-*+•‣◦▪–—·]|\(?\d{1,3}[.)、](?!\d)|\(?[A-Za-zа-яіїєґ]\)|[①-⑳])\s*")
CLOSING = "\"'”’»)]）】」』*_`"
FINAL = (".", "!", "…", "。", "！")
# Chosen, not measured:
LONGEST = 400  # characters of a sentence; a longer one is a list or was never meant to be read
LEAST_TERMS = 5  # content words; fewer make a heading or a greeting
LEAST_OPENING = 3  # of the first sentence, which says what the text is about
LEAST_LETTERS = 0.7  # of the characters: with fewer it is a table, a formula or an address
MOST_CODE = 0.3  # of the characters in code marks
LINE = 25  # characters that a line has at least where a sentence is wrapped
LEANS, POINTS, ADDRESSES, SPEAKS = 0.4, 0.3, 0.7, 0.5  # worth of a sentence that does so
SHORT, IS_SHORT = 60, 0.7  # a sentence of fewer letters (a Chinese one is two) says little
LONG, IS_LONG = 240, 0.7  # one of more is hard to take in
CODE = re.compile(r"`[^`\n]+`")
FENCED = re.compile(r"^(?P<fence>`{3,}|~{3,})[^\n]*\n(?P<code>.*?)^(?P=fence)[ \t]*$", re.M | re.S)
# Addresses, three headings with their pages, and signs of code, tables and formulas.
JUNK = re.compile(
    r"https?://|\b[\w-]+\.(?:org|com|net|gov|io)\b|(?:\b\d+ [A-Z]\w+\D*){3}"
    r"|\]\(|[{}<>|\\=].*[{}<>|\\=]|_{3,}|\.{4,}|[#*]{3,}|\$\S"
)
WIDE = re.compile(rf"[{HAN}]")
SPEECH = '"“„«「『‘'


@lru_cache(maxsize=2048)
def spans_of(text: str, kind: str) -> tuple[Span, ...]:
    """Return where the sentences of a chunk stand.

    Of a table each row is one, of a record each field, without its label where its value is a
    sentence by itself.
    """
    if kind == TABLE:
        return tuple(one.span() for one in ROW.finditer(text))  # whatever ends within a cell
    if kind != RECORD:
        return tuple(sentence_spans(text))
    spans = record_spans(text)
    return tuple((start + _label_length(text[start:end]), end) for start, end in spans)


def _label_length(line: str) -> int:
    match = RECORD_LABEL.match(line)
    return match.end() if match is not None and reads_as_sentence(line[match.end() :]) else 0


def reads_as_sentence(value: str) -> bool:
    """Tell whether what stands behind a label is a sentence, and no "240 p." or "Smith, J."."""
    shown = value.rstrip()
    return len(shown) >= LEAST_SENTENCE and shown.endswith((".", "!", "?", "。", "！", "？", "…"))


@lru_cache(maxsize=8)
def _lists(language: str) -> Cues:
    known = find_language(language)
    names = ("reference", "opener", "leaning", "elsewhere", "addressed")
    lists = known.read("words")
    return Cues(known, {name: lists.get(name, ()) for name in names})


@lru_cache(maxsize=8)
def _begins(language: str, name: str) -> re.Pattern[str]:
    """Return what a sentence begins with that states a topic, or goes on with another one."""
    own = find_language(language).read("summaries")
    form = str(own.get(name, "(?!)")).replace("DOCUMENT", str(own.get("document", "")))
    return re.compile(form, re.IGNORECASE)


def states_topic(text: str, language: str) -> bool:
    """Tell whether a sentence says of its own document what this is about."""
    return _begins(language, "topic").match(text.strip()) is not None


def standalone(text: str, language: str, *, opens: bool = False) -> float:
    """Return how well a sentence reads alone, 0..1: 0 for a fragment, a question, code, a label.

    What addresses its reader, speaks, points elsewhere or leans on others is worth less, but where
    it `opens` a text there is nothing to lean on; what goes on with another sentence, or gives an
    order to a program that reads it, is worth nothing.
    """
    shown, words = text.strip(), _lists(language)
    if not _is_whole(shown, language, LEAST_OPENING if opens else LEAST_TERMS):
        return 0.0
    if states_topic(shown, language):
        return 1.0
    if points_back(shown, language) or _begins(language, "sequel").match(shown):
        return 0.0
    worth = LEANS if words.starts("leaning", shown) and not opens else 1.0
    worth *= POINTS if words.found("elsewhere", shown) else 1.0
    worth *= ADDRESSES if words.found("addressed", shown) else 1.0
    letters = len(shown) + len(WIDE.findall(shown))
    worth *= IS_SHORT if letters < SHORT else IS_LONG if letters > LONG else 1.0
    speaks = shown.startswith(tuple(SPEECH)) or shown.count('"') % 2 == 1
    return worth * (SPEAKS if speaks else 1.0)


def points_back(text: str, language: str) -> bool:
    """Tell whether a sentence begins with a word that stands for something before it."""
    return any(_lists(language).starts(name, text) for name in ("reference", "opener"))


def _is_whole(shown: str, language: str, terms: int) -> bool:
    """Tell whether a text is one whole statement, of words and not of signs, and no order."""
    letters = sum(map(str.isalpha, shown)) + shown.count(" ")
    lines = shown.splitlines()
    return (
        LEAST_SENTENCE <= len(shown) <= LONGEST
        and letters >= LEAST_LETTERS * len(shown)
        and shown.rstrip(CLOSING).endswith(FINAL)
        and not shown[0].islower()
        and (len(lines) == 1 or min(map(len, lines[:-1])) >= LINE)
        and sum(map(len, CODE.findall(shown))) <= MOST_CODE * len(shown)
        and not gives_orders(shown, 0, len(shown))
        and not (JUNK.search(shown) or RECORD_LABEL.match(shown) or ITEM.match(shown))
        and len(content_terms(shown, language)) >= terms
    )
