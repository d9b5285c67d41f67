"""Fields of records: those a question names, and the values behind their labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from core.language.analysis import content_terms, has_words, terms
from core.language.cues import stopwords
from core.language.passages import RECORD_LABEL, reads_as_sentence
from core.types import Evidence
from languages.language import FALLBACK, known_languages
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.records.phrases import (
    HAN,
    Meaning,
    PhraseMatch,
    Phrases,
    general_phrases,
    is_common,
    tables,
)
from reasoning.rules.records.schema import GENERAL_KINDS, canonical, stem_of

# A work is named by all its title, or by words that make up this share of it.
NAMED_SHARE = 0.5  # chosen, not measured
PART = "part"  # what is asked of the preface or the film is no field of the work
_ARTICLE = re.compile(r"^(?:the|an?) (?=\S)", re.IGNORECASE)
_SUBTITLES = (": ", " (", " — ", " – ", " / ", " = ")
_IDLE = (
    "noun field", "by field", "when field", "where field", "who", "when", "where", "list", "filler",
    "work", "part",
)  # fmt: skip
_ASKING = ("list", "who", "how", "count", "when", "where")
_WISHES = ("who", "list", "filler", "how", "about", "count", "not")


class AskedFields(NamedTuple):
    """Hold the fields that a question asks for, by their names in every collection, and of what.

    It is `clear` what they are asked of where that is quoted, or is names alone.
    """

    fields: tuple[str, ...]
    name: str
    clear: bool


@lru_cache(maxsize=64)
def _phrases(labels: tuple[str, ...] = ()) -> Phrases:
    """Return the phrases of every collection, and those of fields of these names."""
    if labels:
        spelled = {text: one for one in labels for text in (one, f"{one}s", one.replace(" ", "-"))}
        listed = [(text, Meaning("noun field", one)) for text, one in spelled.items()]
        for one in labels:
            if one.endswith("ed by"):  # "maintained by" is asked for by "who maintains"
                ends = (one[:-3], one[:-4], one[:-5], f"{one[:-4]}s", f"{one[:-5]}s")
                listed += [(text, Meaning("by field", one)) for text in ends]
        return Phrases(listed, _phrases())
    general = tables()["general"]
    listed = [(str(text), Meaning("work")) for text in general["works"]]
    listed += [(str(text), Meaning("part")) for text in general["parts"]]
    for name, texts in tables()["fields"].items():
        own = general["fields"].get(name, {})
        only = {*own.get("labels", ())} - {*own.get("nouns", ())}
        listed += [(str(t), Meaning("noun field", name)) for t in texts if t not in only]
        for way in ("by", "when", "where"):
            listed += [(str(t), Meaning(f"{way} field", name)) for t in own.get(way, ())]
    return Phrases(listed, general_phrases())


@lru_cache(maxsize=256)
def asked_fields(question: str, labels: tuple[str, ...] = ()) -> AskedFields | None:
    """Return which fields a question asks for, and of what; None where it asks for none.

    What it is about is quoted, or is what stands between the words that no list explains. `labels`
    are fields that the records have beside those of every collection.
    """
    phrases = _phrases(labels).scan(question)
    names = [place for place, one in enumerate(phrases) if one.is_a("quoted")][:1]
    if not names:
        names = [place for place in range(len(phrases)) if not _is_idle(phrases, place)]
    if not names:
        return None
    named = [one for one in phrases[names[0] : names[-1] + 1] if not is_common(one.text)]
    clear = all(one.text[0].isupper() or one.is_a("quoted", "number") for one in named)
    if labels:  # a label that is left out of a name makes it no clearer
        clear = (plain := asked_fields(question)) is not None and plain.clear
    # "Which vet saw Biscuit": what is written small before a name is none of it.
    capital = (n for n, p in enumerate(names) if p and phrases[p].text[:1].isupper())
    names = names[next(capital, 0) :]
    around = [*phrases[: names[0]], *phrases[names[-1] + 1 :]]
    nouns = [m.name for one in around for m in one.of("noun field") if not one.is_a("by field")]
    asking = [one for one in phrases if one.is_a(*_ASKING)]
    if asking and asking[0].is_a("list", "who", "how", "count"):
        joint = next((one.start for one in asking if one.is_a("when", "where")), len(question))
        # "Which village did he see when he wrote it": that clause asks nothing.
        around = [one for one in around if one.start < joint]
    kinds = {meaning.kind for one in around for meaning in one.meanings}
    known = (one for one in known_languages().values() if one.spaced or HAN.search(question))
    yes_or_no = "yesno" in {lexicon(one.code).answer_kind(question) for one in known}
    if not nouns and not kinds & {"when", "where", "who", "list"} and yes_or_no:
        return None
    verb = next((f"{kind} field" for kind in ("when", "where") if kind in kinds), "by field")
    verbs = [m.name for one in around for m in one.of(verb) if "how" not in kinds]
    owned = {*labels, *map(canonical, labels)}
    here = [[name for name in names if name in owned] for names in (nouns, verbs)]
    fields = here[0] or here[1] or nouns or verbs
    # Where works are films, a film is no part of one.
    made = "director" in owned
    if fields and any(one.is_a("part") and not (made and one.is_a("noun")) for one in around):
        fields = [PART]
    name = question[phrases[names[0]].start : phrases[names[-1]].end].strip("\"“”«»„《》「」 '’")
    name = _ARTICLE.sub("", name)
    return AskedFields(tuple(dict.fromkeys(fields)), name, clear) if fields else None


def asks_for_field(question: str, label: str) -> bool:
    """Tell whether a question asks for what a field of this name holds: of a cost, the price."""
    asked, name = asked_fields(question), canonical(label)
    return bool(name) and asked is not None and name in asked.fields


@lru_cache(maxsize=256)
def theme_of(question: str) -> str:
    """Return what a wish for works is about, without the words that only wish: maybe all of it."""
    phrases = _phrases().scan(question)
    own = [place for place, one in enumerate(phrases)
           if not (one.is_a(*_WISHES) or _is_work(one) or is_common(one.text))]  # fmt: skip
    if not own:
        return question
    first = own[0]
    for place, one in enumerate(phrases[: own[-1]]):
        # A theme follows "about", or "on" behind "a popular book".
        if one.is_a("about") or (one.is_a("filler") and place and _is_work(phrases[place - 1])):
            first = first if _is_work(phrases[place + 1]) else place + 1
            break
    return question[phrases[first].start : phrases[own[-1]].end].strip("\"“”«»„《》「」 '’")


@lru_cache(maxsize=256)
def counts_records(question: str) -> bool:
    """Tell whether a question asks how many things of a kind that records are of there are."""
    phrases = [
        one for one in _phrases().scan(question) if not one.is_a("filler") or one.is_a("count")
    ]
    things = [one.is_a("noun") and not one.is_a("noun field") for one in phrases[1:]]
    return any(one.is_a("count") and thing for one, thing in zip(phrases, things, strict=False))


def is_name(theme: str) -> bool:
    """Tell whether a theme is names or numbers, which are looked for as they are."""
    words = [word for word in theme.split() if not is_common(word)]
    return any(map(str.isdigit, theme)) or all(word[:1].isupper() for word in words)


def _is_work(one: PhraseMatch) -> bool:
    return any(meaning.name in GENERAL_KINDS for meaning in one.of("noun"))


def _is_idle(phrases: Sequence[PhraseMatch], place: int) -> bool:
    """Tell whether a phrase is no part of a name: it asks, or is a small word written small."""
    one = phrases[place]
    if one.is_a("count"):  # of pages; how much it costs
        sides = phrases[place + 1 :], phrases[:place][::-1], phrases[-1:]
        near = [next((o for o in side if o.is_a("noun field") or not o.is_a("filler")), one)
                for side in sides]  # fmt: skip
        return any(other.is_a("noun field") for other in near)
    if one.start and one.text[:1].isupper() and not (one.text.isupper() and one.is_a(*_IDLE)):
        return False
    return one.is_a(*_IDLE) or is_common(one.text)


def records_of(name: str, question: str, evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the records and cards that a name means: of the title that the question says in full.

    Where it says none, those of whose titles the name is a good share; or that have it for a value.
    """
    records = [one for one in evidence if one.kind == "record"]
    cards = [one for one in records if has_words(one.title, name)]
    full = [one for one in cards if has_words(question, _short(one.title))]
    longest = max((len(_short(one.title)) for one in full), default=0)
    value = f": {name}\n".casefold()
    valued = [one for one in records if value in f"{one.text}\n".casefold()]
    return (
        [one for one in full if len(_short(one.title)) == longest]
        or [one for one in cards if _size(name) >= NAMED_SHARE * _size(_short(one.title))]
        or valued * (len(valued) == 1)
    )


def _short(title: str) -> str:
    """Return a title without its subtitle or series."""
    places = [place for mark in _SUBTITLES if (place := title.find(mark)) > 0]
    return title[: min(places, default=len(title))]


def _size(text: str) -> int:
    """Return the letters of a text's words, small words left out; all where it has no other."""
    words = content_terms(text, FALLBACK)
    return sum(map(len, words)) or len(text)


def field_lines(text: str, names: Sequence[str], language: str = "") -> list[tuple[int, int]]:
    """Return the spans of a record's lines that are labelled with one of these fields.

    Of a field in several languages ("title_en", "title_zh") the one of `language` is meant.
    """
    labels = {stem_of(name)[0] for name in names}
    found: list[tuple[tuple[str, str], int, int]] = []
    for line in re.finditer(r"[^\n]*[^\s]", text):
        match = RECORD_LABEL.match(line.group())
        label = match.group().rstrip(": ") if match else ""
        if label and (
            stem_of(label)[0] in labels or (canonical(label) in names and label[-3:] != " id")
        ):
            found.append((stem_of(label), *line.span()))
    stems = {named for named, _, _ in found}
    return [
        (start, end) for (stem, spoken), start, end in found
        if spoken == language or (not spoken and (stem, language) not in stems)
    ]  # fmt: skip


RECORD_KINDS = ("record", "annotation")
LABELS = FALLBACK  # labels are names of fields, whatever the language of a record
# How well a label answers to a noun: it says it, it is said by the question, neither.
SAYS, MENTIONED, OTHER = 1.0, 0.8, 0.0  # chosen, not measured
MOST_VALUE = 80  # chosen, not measured
MOST_ITEMS = 12  # chosen, not measured
_ITEM = re.compile(r"[^,，;；\s][^,，;；]*")


class Field(NamedTuple):
    """Hold a value by its span in a record's text, and the label before it."""

    label: str
    start: int
    end: int


@lru_cache(maxsize=512)
def fields(text: str) -> tuple[Field, ...]:
    """Return the short values of a record's text, those of a list one by one."""
    found: list[Field] = []
    for line in re.finditer(r"[^\n]+", text):
        match = RECORD_LABEL.match(line.group())
        if match is None:
            continue
        start, value = line.start() + match.end(), line.group()[match.end() :].rstrip()
        if len(value) <= MOST_VALUE and not reads_as_sentence(value):
            label = match.group().rstrip(": ")
            items = [
                Field(label, start + m.start(), start + m.end()) for m in _ITEM.finditer(value)
            ]
            found += items if len(items) <= MOST_ITEMS else []
    return tuple(found)


def label_fit(label: str, nouns: frozenset[str], mentioned: frozenset[str]) -> float:
    """Return 0..1: whether a label says a noun asked for (`nouns`), or the question says it."""
    words = frozenset(terms(label, LABELS)) - stopwords(LABELS)
    if words & nouns:
        return SAYS
    return MENTIONED if words and words <= mentioned else OTHER


def labels_of(item: Evidence) -> Iterator[tuple[str, bool]]:
    """Yield the labels of a record's fields, each with whether its value is the record's name."""
    if item.kind in RECORD_KINDS:
        for label, value in item.metadata.items():
            yield label.replace("_", " "), value == item.title


def noun_terms(noun: str, language: str, lists: Lexicon) -> frozenset[str]:
    """Return the terms of a noun in small letters and of the words that mean the same."""
    wanted = set(terms(noun, language)) if noun else set()
    for synonyms in lists.synonyms:
        analysed = {term for word in synonyms for term in terms(word, lists.language)}
        if wanted & analysed:
            wanted = wanted | analysed
    return frozenset(wanted)
