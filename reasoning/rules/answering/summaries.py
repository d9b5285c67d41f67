"""Questions about a document or a collection as a whole, or for all that is said of a topic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from core.language.detect import detect_language
from core.language.numbering import number_of, renumbered
from core.language.passages import LONGEST
from core.language.scan import SCRIPTS
from core.metadata import ALL_PARTS, EXTRACTS, LISTED_CHUNKS, ROW
from core.types import AnswerKind, Call, Claim, Evidence, Plan, SubQuestion, ToolSpec, Understanding
from languages.language import find_language, known_languages
from reasoning.rules.lexicon import lexicon
from reasoning.rules.records.answers import claim_of

QUOTES = "\"'“”‘’«»„《》「」『』`"
END_MARKS = " \t\n?？.。!！…"


@lru_cache(maxsize=8)
def _topic_forms(language: str) -> list[re.Pattern[str]]:
    patterns = find_language(language).read("mentions")
    if not patterns:
        return []
    parts = {**patterns["parts"], "NAME": r"(?P<name>.+?)"}
    named = re.compile("|".join(sorted(parts, key=len, reverse=True)))

    def filled(text: str) -> str:
        return named.sub(lambda match: parts[match[0]], text)

    # A part may name another one.
    texts = (filled(filled(f"PLEASE{one}LAST")) for one in patterns["forms"])
    return [re.compile(one, re.IGNORECASE) for one in texts]


def topic_asked(question: str, language: str) -> str:
    """Return what a question wants all that is written about, "" where it asks something else.

    It may be a question itself: "Tell me about how to start the compressor".
    """
    whole = " ".join(question.split()).strip(END_MARKS)
    if len(whole) > LONGEST:
        return ""
    found = (form.fullmatch(whole) for form in _topic_forms(language))
    name = next((one["name"].strip(f"{END_MARKS}{QUOTES}") for one in found if one), "")
    words = lexicon(language)
    points = name.casefold() in words.any_of("pronoun", "reference", "addressed")
    return "" if points or not words.names_something(name) else name


SUMMARISE = "summarise"
# For other questions the tree is not worth its search: the evidence found in ten passages changes
# by +.030 (dragonball, n = 176), -.001 (graphrag_bench_medical, 1,033) and -.009 (leval, 746).
SEARCH, TREE_SEARCH = "search", "search_tree"
MARKS = f"{END_MARKS},，:："
QUOTED = re.compile(rf"^[{QUOTES}](.+)[{QUOTES}]$")
FILE_NAME = re.compile(r"\S\.[A-Za-z]\w{0,4}$|\w/\w")
NUMBERS, CHINESE = re.compile(r"\d+(?:\.\d+)*"), re.compile(r"[一二三四五六七八九十]{1,3}")


class AskedSummary(NamedTuple):
    """Hold the name of the document asked about, "" for the collection.

    `sure` tells that nothing else can be meant, so that an absent document is refused, and `near`
    that a document is meant by a name like that; `part` is the number or the heading of one of its
    chapters, "" for none. A `topic` of that name will do where a summary of it is wanted. `here` is
    what was spoken of before, or else all there is. `themes` are to be listed, in so many
    `sentences`, 0 for any.
    """

    name: str
    sure: bool
    part: str = ""
    topic: bool = False
    here: bool = False
    near: bool = False
    themes: bool = False
    sentences: int = 0
    language: str = ""


class _Forms(NamedTuple):
    language: str
    here: list[re.Pattern[str]]
    collection: list[re.Pattern[str]]
    asked: list[re.Pattern[str]]
    about: list[re.Pattern[str]]
    chapter: list[re.Pattern[str]]
    listed: list[re.Pattern[str]]
    bare: re.Pattern[str]
    noun: re.Pattern[str]
    section: re.Pattern[str]
    again: str
    length: re.Pattern[str]
    themes: re.Pattern[str]
    last: re.Pattern[str]
    steps: dict[int, re.Pattern[str]]


@lru_cache(maxsize=8)
def _forms(language: str) -> _Forms | None:
    known = find_language(language)
    patterns = known.read("summaries")
    if not patterns:
        return None
    numbered = f"(?:{patterns['chapters']})"
    parts = {**patterns["parts"], "NAME": r"(?P<name>.+?)", "CHAPTERS": numbered}
    named = re.compile("|".join(sorted(parts, key=len, reverse=True)))

    def compiled(source: str) -> re.Pattern[str]:
        filled = named.sub(lambda match: parts[match[0]], source)
        return re.compile(f"{parts['PLEASE']}{filled}{parts['BRIEF']}", re.IGNORECASE)

    gap = r"\s+" if known.spaced else ""
    kind = patterns["document"]
    article = f"(?:{patterns['articles']})?"
    noun = (
        f"(?!{article}{kind}$){article}(?:{kind}(?:{gap}|(?=[{QUOTES}])){patterns['called']}(?P<after>.+)"
        f"|(?P<before>.+?){gap}{kind})"
    )
    names = ("here", "collection", "asked", "about", "chapter", "listed")
    here, whole, asked, about, chapter, listed = (
        [compiled(one) for one in patterns[name]] for name in names
    )
    sources = (noun, *(patterns[name] for name in ("section", "length", "themes", "last")))
    named_so, section, length, themes, last = (re.compile(one, re.IGNORECASE) for one in sources)
    again = patterns["again"]
    kinds = (known.code, here, whole, asked, about, chapter, listed)
    steps = {
        by: re.compile(patterns[name].replace("CHAPTERS", numbered), re.IGNORECASE)
        for by, name in ((1, "next"), (-1, "previous"))
    }
    bare = compiled("NAME")
    return _Forms(*kinds, bare, named_so, section, again, length, themes, last, steps)


def asked_summary(question: str, language: str) -> AskedSummary | None:
    """Return what a question asks a summary of, None where it asks for something else.

    Names make the language of a short question hard to tell, so a close one is tried as well, and
    those of other scripts that it has.
    """
    whole = " ".join(question.split()).strip(END_MARKS)
    if len(whole) > LONGEST:
        return None
    words = lexicon(language)
    for forms in _near_forms(language, whole):
        length = forms.length.search(whole)
        text = forms.length.sub("", whole, count=1).strip(MARKS)
        asked = _asked(text, forms)
        bare = forms.bare.fullmatch(text) if asked is None else None
        if bare and length and whole[: length.start()].rstrip(MARKS).endswith(bare["name"]):
            asked = _named(bare["name"], forms, wanted=False)  # "X in two sentences, please"
        if asked is not None and (asked.sure or asked.topic or not words.is_question(asked.name)):
            if asked.name.casefold() in words.any_of("pronoun"):
                asked = asked._replace(name="", sure=True, here=True)
            most = 0 if length is None else 1 if length["one"] else number_of(length["count"])
            themes = forms.themes.search(text.replace(asked.name, "")) is not None
            return asked._replace(sentences=most, themes=themes, language=forms.language)
    return None


def continued_summary(
    fragment: str, earlier: Sequence[str], language: str, *, alone: bool = False
) -> str:
    """Return the question for the chapter that a fragment names, "" where no summary was asked.

    "And the next chapter?" goes on with a summary, unless the last question asks of a chapter, too.
    Right behind a question for a summary a name does so that stands `alone`.
    """
    asked = [asked_summary(one, detect_language(one)) for one in earlier]
    for forms in _near_forms(language, fragment) if any(asked) else ():
        fits = asked[-1] or not forms.section.search(earlier[-1])
        if fits and _named(fragment, forms, wanted=True).part:
            return forms.again.format(part=fragment)
        if alone and asked[-1]:  # in small letters it may be a topic as well
            return forms.again.format(part=fragment.lower())
    return ""


def chapter_beside(text: str, earlier: str, language: str) -> str:
    """Return the question before for the next chapter or the previous one, "" for other texts."""
    asked = asked_summary(earlier, detect_language(earlier)) if earlier else None
    steps = [step for forms in _near_forms(language, text) for step in forms.steps.items()]
    by = next((by for by, step in steps if step.search(text)), 0)
    if asked is None or not by or not asked.part.isdecimal():
        return ""
    return renumbered(earlier, int(asked.part), int(asked.part) + by)


def _near_forms(language: str, text: str) -> list[_Forms]:
    """Return the forms of a language, of those near it, and of those of other scripts of a text."""
    known = find_language(language)
    scripts = {script for script, letters in SCRIPTS.items() if letters.search(text)}
    mixed = [one.code for one in known_languages().values() if one.script in scripts]
    codes = dict.fromkeys([known.code, *known.near, *(mixed if len(scripts) > 1 else ())])
    return [forms for one in codes if (forms := _forms(one)) is not None]


def _asked(text: str, forms: _Forms) -> AskedSummary | None:
    for here, found in ((True, forms.here), (False, forms.collection)):
        if any(form.fullmatch(text) for form in found):
            return AskedSummary("", sure=True, here=here)
    for match in filter(None, (form.fullmatch(text) for form in forms.listed)):
        name = _named(match["whole"], forms, wanted=True).name if match["whole"] else ""
        return AskedSummary(name, sure=True, part=ALL_PARTS, here=not name, near=bool(name))
    for wanted, found in ((True, forms.asked), (False, forms.about)):
        for match in filter(None, (form.fullmatch(text) for form in found)):
            return _named(match["name"].strip(), forms, wanted=wanted)
    chapter = _numbered(text, forms, wanted=False)  # "And chapter 3?"
    if chapter is None or "," in chapter.part:
        return chapter
    return chapter._replace(sure=False, topic=True)


def _named(name: str, forms: _Forms, *, wanted: bool) -> AskedSummary:
    """Return the name alone; it is surely one in quotes or of a file.

    Else two of three must hold: a summary is wanted, "document" is said, it is written as a title.
    """
    numbered = _numbered(name, forms, wanted=wanted)
    if numbered is not None:
        return numbered
    match = forms.noun.fullmatch(name)
    bare = (match["after"] or match["before"]).strip() if match is not None else name
    quoted = QUOTED.match(bare)
    plain = any(len(word) > 3 and not word[0].isupper() for word in bare.split())
    titled = not plain and bare != bare.lower()
    is_part = forms.section.search(name) is not None
    has_noun = match is not None or is_part
    sure = (has_noun and wanted) or (titled and (has_noun or wanted))
    exact = quoted is not None or FILE_NAME.search(bare) is not None
    shown = quoted[1].strip() if quoted else bare
    if is_part:
        return AskedSummary("", sure=sure or exact, part=shown, topic=wanted, here=True)
    topic = wanted and not has_noun and not exact
    return AskedSummary(shown, sure=sure or exact, topic=topic, near=sure or exact or has_noun)


def _numbered(name: str, forms: _Forms, *, wanted: bool) -> AskedSummary | None:
    """Return the chapter of a number, None for another name."""
    for chapter in filter(None, (form.fullmatch(name) for form in forms.chapter)):
        last = forms.last.fullmatch(chapter["number"]) is not None
        number = "-1" if last else _numbers(chapter["number"])
        if number:
            whole = _named(chapter["whole"], forms, wanted=wanted).name if chapter["whole"] else ""
            found = AskedSummary(whole, sure=True, part=number, near=True)
            return found if whole else found._replace(here=True)
    return None


def _numbers(text: str) -> str:
    """Return the numbers of chapters with commas between them, "" where a word is no number."""
    if not any(one.isdigit() for one in text) and number_of(text):
        return str(number_of(text))
    found = NUMBERS.findall(text)
    if not found and (several := CHINESE.findall(text)):
        found = [str(number_of(one)) for one in several]
    return ",".join(found)


def with_summary(plan: Plan, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
    """Return the plan of a question about a whole, any other as it is.

    Where something else may be meant that is searched for, too, through the tree if there is one.
    """
    spec = next((one for one in tools if one.base == SUMMARISE), None)
    part = understanding.parts[0] if len(understanding.parts) == 1 else None
    text = part.text if part else understanding.question
    asked = asked_summary(text, understanding.language) if spec else None
    if spec is None or asked is None:
        return plan
    if part and part.about and asked.here:  # what was spoken of before, or else all there is
        asked = asked._replace(name=part.about)
    arguments = {
        "document": asked.name,
        "part": asked.part,
        "topic": asked.topic,
        "near": asked.near,
        "here": asked.here,
        "themes": asked.themes,
        "sentences": asked.sentences,
        "language": asked.language,
    }
    through = TREE_SEARCH if any(one.name == TREE_SEARCH for one in tools) else SEARCH
    beside = [
        one.model_copy(update={"tool": through}) if one.tool == SEARCH else one
        for one in plan.questions[0].calls
    ]
    wants: AnswerKind = "text" if (asked.name and not asked.here) or asked.part else "list"
    if asked.topic and not asked.sure:  # or else all that is written about it
        text, wants = topic_asked(asked.name, understanding.language) or asked.name, "topic"
    question = SubQuestion(
        id="q1",
        text=text,
        query=text if wants == "topic" else understanding.question,
        language=asked.language,
        wants=wants,
        calls=[Call(tool=spec.name, arguments=arguments), *([] if asked.sure else beside)],
    )
    return Plan(questions=[question])


def is_settled(plan: Plan) -> bool:
    """Tell whether the rules alone can carry out a plan: it counts records, or reads a whole."""
    calls = [call for question in plan.questions for call in question.calls]
    return any(call.tool == SUMMARISE or "aggregate" in call.arguments for call in calls)


def only_summarises(question: SubQuestion) -> bool:
    """Tell whether nothing but a whole document or collection can answer."""
    return bool(question.calls) and all(call.tool == SUMMARISE for call in question.calls)


def part_asked(plan: Plan | None) -> str:
    """Return the number or heading of the chapter that a summary is asked of, "" for none."""
    calls = [call for question in plan.questions for call in question.calls] if plan else []
    return next((one.arguments.get("part", "") for one in calls if one.tool == SUMMARISE), "")


def map_summary_rows(evidence: Sequence[Evidence]) -> dict[str, Evidence]:
    """Return the rows that say what a summary is made of, by the passages they hold."""
    rows = [one for one in evidence if one.kind == ROW and one.tool == SUMMARISE]
    return {
        key: row for row in rows for key in (row.chunk_id, *row.metadata.get(LISTED_CHUNKS, ()))
    }


def summary_claims(plan: Plan, evidence: Sequence[Evidence]) -> tuple[list[Claim], Plan]:
    """Return the extracts that summaries are made of, and the plan of the questions left."""
    claims: list[Claim] = []
    left = []
    listed = map_summary_rows(evidence)
    for question in plan.questions:
        own = [one for one in evidence if one.chunk_id in listed and one.grades.get(question.id)]
        if not own:
            left.append(question)
            continue
        rows = [one for one in own if one.kind == ROW]
        if not any(row.metadata[EXTRACTS] for row in rows):  # there is but their number to tell
            claims += [claim_of(row.text, row, [(0, len(row.text))], question) for row in rows]
        known = {one.chunk_id: one for one in own}
        for key, start, end in (place for row in rows for place in row.metadata[EXTRACTS]):
            if key in known:  # not cut off by the budget
                text = " ".join(known[key].text[start:end].split())
                claims.append(claim_of(text, known[key], [(start, end)], question))
    return claims, plan.model_copy(update={"questions": left})
