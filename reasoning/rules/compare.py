"""Comparisons: "Who is older, A or B?" asks about A and about B, apart from each other.

Nothing asks for the comparison itself: no document says it, and the answer rests on what was
found about each thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reasoning.rules.lexicon import UNSPACED, Lexicon
from reasoning.rules.noun_phrase import is_past, is_plural, singular
from reasoning.rules.pairs import Pair, find_pair
from reasoning.rules.parts import Step, asked, capitalised
from reasoning.rules.phrases import Word, span, words_of


def compare_steps(text: str, lists: Lexicon) -> list[Step]:
    """Return one step for each compared thing, none when the question compares nothing."""
    if lists.language == UNSPACED:
        return []
    words = words_of(text)
    reports = _reports(text, words, lists)
    if reports:
        return reports
    pair = find_pair(text, words, lists)
    if pair is None or len({thing.casefold() for thing in pair.things}) < len(pair.things):
        return []
    before, after = words[: pair.start], words[pair.end :]
    while after and after[-1].kind == "mark" and after[-1].text in ".?!":
        after = after[:-1]
    texts = _texts(text, words, pair, before, after, lists)
    return [Step(asked(capitalised(one))) for one in texts]


def _texts(
    text: str,
    words: Sequence[Word],
    pair: Pair,
    before: Sequence[Word],
    after: Sequence[Word],
    lists: Lexicon,
) -> list[str]:
    led, rest = span(text, before).rstrip(" ,:;-–—"), span(text, after)
    comparing = [word for word in before if word.low in lists.any_of("compare")]
    if pair.joiner == "or" and not after and before:
        listed = before[-1].kind == "mark" or bool(comparing)
        if listed and _asks(before, lists):
            return [_about(led, before, thing, lists) for thing in pair.things]
        return []
    if lists.language != "en" or (not after and not pair.both):
        return []
    if before and before[0].low in lists.any_of("between") and len(before) == 1:
        return []
    if pair.start <= 1 and not before and words[0].low in lists.any_of("between"):
        asked_for = rest.lstrip(" ,")
        return [f"{thing}: {asked_for}" for thing in pair.things] if asked_for else []
    inverted = bool(before) and before[-1].low in lists.any_of("be", "inverting", "have")
    if pair.joiner == "or" and len(before) == 1 and inverted:
        return [f"{led} {thing} {rest}" for thing in pair.things]
    if pair.joiner == "and" and inverted:
        return _alike(text, before, after, pair, lists)
    if pair.joiner == "and" and pair.both and not before:
        return [f"{thing} {rest}" for thing in pair.things]
    return []


def _asks(before: Sequence[Word], lists: Lexicon) -> bool:
    return before[0].low in lists.any_of("question", "be", "inverting", "have")


def _alike(
    text: str, before: Sequence[Word], after: Sequence[Word], pair: Pair, lists: Lexicon
) -> list[str]:
    """Say "Are A and B from the same country" of each thing: "Which country is A from"."""
    verb = before[-1].low
    one = lists.table("singular").get(verb, verb)
    led = span(text, before[:-1])
    rest = span(text, after)
    common = lists.search("common", rest)
    if common is not None and not led.strip():
        return []
    if common is not None:
        if lists.remove("common", rest).strip(" ?"):
            return [f"{led} {one} {thing} {rest}" for thing in pair.things]
        return [_alone(led, one, thing, lists) for thing in pair.things]
    rest = _single(rest, verb, lists)
    same = re.search(rf"(?:\bthe )?{lists.alternatives('same')}\s+(\w+)", rest, re.IGNORECASE)
    plural = verb in lists.any_of("plural_verb")
    if same and not led:
        head, tail = rest[: same.start()], rest[same.end() :]
        tail = f"{head.rstrip()} {tail.lstrip()}".strip(" ?")
        return [f"Which {same[1]} {one} {thing} {tail}".strip() for thing in pair.things]
    if pair.both or (plural and not led):
        return [f"{led} {one} {thing} {rest}".strip() for thing in pair.things]
    return []


def _single(rest: str, verb: str, lists: Lexicon) -> str:
    """Say "airports in X" of one thing: "an airport in X"; what is no such phrase stays."""
    words = words_of(rest)
    if verb not in lists.any_of("be"):
        return rest
    for place, word in enumerate(words):
        if not word.kind == "word" or word.low in lists.any_of("relative_preposition", "joint"):
            break
        if word.plain and is_plural(word.low, lists):
            one = rest[: word.start] + singular(word.low, lists) + rest[word.end :]
            article = "an" if one[:1].casefold() in "aeiou" else "a"
            return f"{article} {one}"
        if place and is_past(word.low, lists):
            break
    return rest


def _alone(led: str, verb: str, thing: str, lists: Lexicon) -> str:
    """Ask what a thing is, or what it has of that which two things have in common."""
    kind = lists.remove("question", led).strip()
    if kind:
        return f"{led} {verb} {thing} have"
    return f"What is {thing}"


def _about(led: str, before: Sequence[Word], thing: str, lists: Lexicon) -> str:
    """Ask of one thing what "Which N is older" asks of all."""
    verb = next((n for n, word in enumerate(before) if _verb(word, lists)), None)
    if before[0].low in lists.any_of("question"):
        led = led[:1].lower() + led[1:]
    if verb is None or not 0 < verb < len(before) or before[0].low not in lists.any_of("question"):
        return f"{led}: {thing}" if verb == 0 else f"{thing}: {led}"
    noun = " ".join(word.text for word in before[1:verb] if word.kind != "mark")
    rest = [word for word in before[verb + 1 :] if word.kind != "mark"]
    named = f"the {noun} {thing.removeprefix('the ')}" if noun else thing
    form = before[verb].low
    said = " ".join(word.text for word in rest)
    degree = next((word for word in rest if word.low in lists.table("degree")), None)
    if form in lists.any_of("be") and degree is not None:
        tail = " ".join(word.text for word in rest if word is not degree and word.low != "the")
        return f"{lists.table('degree')[degree.low]} {named} {tail}".strip()
    first = lists.search("first_last", said)
    if form in lists.any_of("be") and first:
        return f"When {form} {named} {' '.join(lists.remove('first_last', said).split())}"
    has = re.fullmatch(r"(?:more|fewer|less|the most|most|the fewest) (.+)", said)
    if form in lists.any_of("have") and has:
        return f"How many {has[1]} has {named}"
    has = re.fullmatch(r"(?:an? |the )\w+(?:er|est) (.+)", said)
    if form in lists.any_of("have") and has:
        return f"What is the {has[1]} of {named}"
    if form in lists.any_of("be"):
        return f"{form} {named} {said}".strip()
    return f"{thing}: {led}"


def _verb(word: Word, lists: Lexicon) -> bool:
    return word.low in lists.any_of("be", "have", "inverting")


def _reports(text: str, words: Sequence[Word], lists: Lexicon) -> list[Step]:
    """Return a step for each of two reports that a question sets against each other."""
    joints = [n for n, word in enumerate(words) if word.low in lists.any_of("contrast")]
    for joint in joints:
        halves = [words[:joint], words[joint + 1 :]]
        if all(_reported(half, lists) for half in halves):
            texts = [span(text, half).rstrip(" ,;") for half in halves]
            return [Step(asked(capitalised(one))) for one in texts]
    return []


def _reported(half: Sequence[Word], lists: Lexicon) -> bool:
    """Tell whether a half names a report and says something of it."""
    told = any(word.low in lists.any_of("report") for word in half[:12])
    return told and any(word.capital for word in half[1:]) and len(half) > 5
