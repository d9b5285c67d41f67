"""What a sub-question looks for: groups of equivalent words, weighed by how rare they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from core.language.analysis import content_terms, query_terms, terms
from core.language.cues import cues
from core.language.words import readings
from core.types import AnswerKind, Evidence, SubQuestion, TermWeights
from models.embeddings import Embedder, Vectors, serves
from reasoning.rules.answering.headings import SECTIONS
from reasoning.rules.answering.things import things_asked
from reasoning.rules.decomposition.phrases import is_plural
from reasoning.rules.level import Level, level_asked, without_level
from reasoning.rules.lexicon import STEERING, Lexicon, lexicon
from reasoning.rules.topic import entities, focus, topic
from reasoning.rules.values.forms import counted_noun, form_asked, forms
from reasoning.rules.values.nameless import NO_ACT, AskedAct, asked_act
from reasoning.rules.values.value_spans import wanted_noun

TOPIC_WEIGHT = 0.4  # words carried over from an earlier clause; chosen, not measured
LEAST_NAME = 4  # letters of what may be a part of a name; chosen, not measured
ENTITY_WEIGHT = 1.5  # chosen, not measured
LEAST_IN_HEADING = 0.5  # the share of a question that a heading must say; chosen, not measured
FORMED: tuple[AnswerKind, ...] = ("text", "number", "date")
LETTERS = "A-Za-zА-Яа-яЁёІіЇїЄєҐґ"
CODE = re.compile(
    rf"(?<![{LETTERS}\d.,_-])(?:[{LETTERS}]+-?\d[{LETTERS}\d-]*|(?:19|20)\d\d(?![\d.,]\d|\d))"
)
UNUSED_TERM = "\x00"  # no document has it, so its weight is that of any word never used
# Terms that are equivalent, terms that are nearly so, and what finding one of them is worth.
Group = tuple[frozenset[str], frozenset[str], float]


class NamedThing(NamedTuple):
    """Hold a noun of a question with its terms, and the words before it with theirs."""

    noun: str
    terms: frozenset[str]
    beside: tuple[tuple[str, frozenset[str]], ...] = ()
    is_wanted: bool = False

    @property
    def parts(self) -> list[tuple[str, frozenset[str]]]:
        """Return all but a noun that is asked for, which a value need not say."""
        return [*([] if self.is_wanted else [(self.noun, self.terms)]), *self.beside]


@dataclass(frozen=True)
class QueryTerms:
    """Hold what a sub-question looks for: groups of equivalent terms with their weights.

    The first `own` groups are the sub-question's own words, the others its carried topic's;
    `absent` is the share of the own words' weight that the whole collection never uses, and
    `focus_absent` tells that the first thing the question names is among them. `subject` holds the
    terms of the phrase the question is about ("the Acme payments API"), `terms` all of its words,
    and `text` is the question with the topic it leaves out, `written` with the framework and the
    version that evidence is of as well, and `frameworks` are those it names. `defines`,
    `enumerates` and `howto` tell that it asks what something is, for several things, for a way;
    `form` is the form of number or date asked for ("version"), `counted` the terms of the noun
    whose number is asked for, `act` what the one asked for does ("who repaired …"), `things`
    are what the question names, `is_short` tells that it says little else, `unknown` are terms of
    things that no document has, `unknown_names` parts of names that none has, `codes` its years and
    words with digits ("Q5").
    """

    groups: tuple[Group, ...]
    own: int
    absent: float
    focus_absent: bool
    entity_terms: tuple[frozenset[str], ...]
    subject: frozenset[str]
    terms: frozenset[str]
    vector: Vectors | None
    language: str
    wants: AnswerKind
    text: str
    written: str = ""
    frameworks: frozenset[str] = frozenset()
    defines: bool = False
    enumerates: bool = False
    howto: bool = False
    level: Level = "any"
    form: str = ""
    counted: frozenset[str] = frozenset()
    act: AskedAct = NO_ACT
    things: tuple[NamedThing, ...] = ()
    is_short: bool = False
    unknown: frozenset[str] = frozenset()
    unknown_names: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    def matched(self, found: frozenset[str]) -> set[int]:
        """Return which words of the question itself are among these terms."""
        own = enumerate(self.groups[: self.own])
        return {number for number, (group, near, _) in own if (group | near) & found}

    def is_explained_by(self, item: Evidence) -> bool:
        """Tell whether the section of evidence says how to do what is asked for, by its heading."""
        if not (self.howto and item.section):
            return False
        above, _, last = item.section.rpartition(SECTIONS)
        title = frozenset(terms(f"{item.title} {above}", item.language))
        heading = frozenset(terms(last, item.language))
        own = [
            (bool((group | near) & heading), weight)
            for group, near, weight in self.groups[: self.own]
            if (group | near) & heading or not (group | near) & title
        ]
        matched = sum(weight for in_heading, weight in own if in_heading)
        return matched > 0 and matched >= LEAST_IN_HEADING * sum(weight for _, weight in own)

    @property
    def is_readable(self) -> bool:
        """Tell whether the reader has learnt from such questions, if not in this language."""
        return not (self.howto or self.defines or self.enumerates)

    def share_of(self, matched: frozenset[int]) -> float:
        """Return the share of the question's words, but for names beside others, that matched."""
        names = frozenset().union(*self.entity_terms)
        own = {n for n, (group, _, _) in enumerate(self.groups[: self.own]) if not group & names}
        return len(own & matched) / len(own) if own else len(matched) / max(1, self.own)

    @property
    def asked(self) -> frozenset[str]:
        """Return every term that is looked for, synonyms left out."""
        return frozenset(term for group, _, _ in self.groups for term in group)


def analyse(
    question: SubQuestion,
    languages: frozenset[str],
    weights: TermWeights,
    embedder: Embedder | None,
) -> QueryTerms:
    """Analyse a sub-question under the languages of the evidence.

    Its vector is left out where the embedder does not serve its language.
    """
    words, spoken = lexicon(question.language), languages | {question.language}
    level = level_asked(question.text, words)
    question = question.model_copy(update={"text": without_level(question.text, words)})
    own, carried = _own_and_carried(question, words, spoken)
    rarity = weights(sorted({term for group in (*own, *carried) for term in group}))
    names = tuple(
        frozenset(terms(name, question.language)).union(*query_terms(name, spoken))
        for name in entities(question.text, words)
    )
    # The words around a name belong to it: "payments" in "the Acme payments API".
    asked = cues(question.language)
    howto = asked.found("code", question.text) or _asks_way(question, words)
    defines = asked.found("definition", question.text) or (level != "any" and not howto)
    bare = _version_removed(question.text, question.language)
    about = focus(bare, words) if defines else topic(bare, words)
    subject = frozenset(content_terms(about, question.language))
    named = {term for name in names for term in name} | (subject if names else frozenset())
    groups: list[Group] = []
    for group, share in [(g, 1.0) for g in own] + [(g, TOPIC_WEIGHT) for g in carried]:
        weight = min(rarity[term] for term in group) * share
        weight *= ENTITY_WEIGHT if group & named else 1.0
        groups.append((group, _synonyms(group, words), weight))
    noun, kind, form = asked_kind(question, words)
    unused = weights([UNUSED_TERM])[UNUSED_TERM]
    things = _things(question, words, form)
    rarities = weights(sorted({term for one in things for _, group in one.parts for term in group}))
    mine = groups[: len(own)]
    absent = sum(w for group, _, w in mine if min(rarity[t] for t in group) >= unused)
    counted = frozenset[str]() if form else counted_noun(question.text, words)
    in_focus = content_terms(focus(question.text, words), question.language)
    focus_weights = weights(in_focus).values()
    text = f"{question.text} {question.about}".strip()
    return QueryTerms(
        groups=tuple(groups),
        own=len(own),
        absent=absent / (sum(w for _, _, w in mine) or 1.0),
        focus_absent=bool(focus_weights) and min(focus_weights) >= unused,
        entity_terms=names,
        subject=subject,
        terms=frozenset().union(*query_terms(question.text, spoken)),
        vector=embedder.embed_query(text) if serves(embedder, question.language) else None,
        language=question.language,
        wants=kind,
        text=text,
        defines=defines,
        enumerates=asked.found("enumeration", question.text) or is_plural(noun, words),
        howto=howto,
        level=level,
        form=form,
        counted=counted | _synonyms(counted, words),
        act=asked_act(question.text, words) if kind == "person" else NO_ACT,
        codes=tuple(CODE.findall(question.text)),
        things=things,
        is_short=len(own) <= words.known.read("claims").get("few_words", 0),
        unknown=frozenset(one for one, weight in rarities.items() if weight >= unused),
        unknown_names=_unknown_names(question.text, words, spoken, weights, unused),
    )


def _unknown_names(
    text: str, words: Lexicon, spoken: frozenset[str], weights: TermWeights, unused: float
) -> tuple[str, ...]:
    """Return the parts of names in a question that no document has; "Ms" and "Dr" are no names."""
    parts = [part for name in entities(text, words) for part in name.split()]
    groups = {part: frozenset().union(*query_terms(part, spoken)) for part in parts}
    rarity = weights(sorted(frozenset().union(*groups.values())))
    return tuple(
        part
        for part, group in groups.items()
        if len(part) >= LEAST_NAME and group and min(rarity[one] for one in group) >= unused
    )


def _things(question: SubQuestion, words: Lexicon, form: str) -> tuple[NamedThing, ...]:
    """Return the things that a question names, unless it leaves out what it is about."""
    found = [] if question.about else things_asked(question.text, words, wanted=True)
    others = {one.noun for one in things_asked(question.text, words)}
    # "Сколько времени …": the value says it by its form.
    measured = counted_noun(question.text, words) if form else frozenset[str]()

    def group(word: str) -> frozenset[str]:
        own = frozenset().union(*query_terms(word, {words.language}))
        if not words.known.spaced:  # of 副馆长 the part 馆长 is somebody else
            own &= {word}
        return own | _synonyms(own, words)

    return tuple(
        NamedThing(
            one.noun,
            group(one.noun),
            tuple((beside, group(beside)) for beside in one.beside),
            is_wanted=one.noun not in others or bool(group(one.noun) & measured),
        )
        for one in found
    )


def _asks_way(question: SubQuestion, lists: Lexicon) -> bool:
    """Tell whether a question asks how to do something by an infinitive: "как вступить …"."""
    how, dictionary = lists.any_of("asks_way"), lists.known.dictionary
    words = [word.strip(',.?!«»"').casefold() for word in question.text.split()] if how else []
    return any(
        first in how
        and any(
            one.pos in ("INFN", "VERB") and one.form == then
            for one in readings(then, dictionary)[:1]
        )
        for first, then in pairwise(words)
    )


def asked_kind(question: SubQuestion, words: Lexicon) -> tuple[str, AnswerKind, str]:
    """Return the noun that a sub-question asks for, the kind of answer and the form of value."""
    noun, kind = wanted_noun(question, words)
    form = form_asked(question.text, question.language) if kind in FORMED else ""
    return noun, (forms()[form].kind or kind) if form else kind, form


def _own_and_carried(
    question: SubQuestion, words: Lexicon, languages: frozenset[str]
) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
    """Return the word groups of the clause itself, and those of the topic it leaves out."""
    own: list[frozenset[str]] = []
    text = _version_removed(words.remove(question.text, *STEERING), question.language)
    if words.names_something(text):
        own = query_terms(text, languages)
    carried = [group for group in query_terms(question.about, languages) if group not in own]
    if not own:
        own, carried = carried, []
    return own or query_terms(question.query, languages), carried


def _version_removed(text: str, language: str) -> str:
    """Take out "version" beside a number: the search finds it by what documents declare."""
    named = cues(language).alternatives("version")
    return re.sub(rf"{named}(?=\W{{0,2}}\d)|(?<=\d)\s*{named}", " ", text, flags=re.IGNORECASE)


@lru_cache(maxsize=1024)
def _synonyms(group: frozenset[str], words: Lexicon) -> frozenset[str]:
    related = set().union(*map(words.forms_of, group))
    for synonyms in words.synonyms:
        analysed = {term for word in synonyms for term in terms(word, words.language)}
        if analysed & group:
            related |= analysed
    return frozenset(related - group)
