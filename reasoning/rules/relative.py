"""English relative clauses: "the association which published X" asks which association did."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.analysis import content_terms
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.noun_phrase import (
    Phrase,
    asker,
    is_past,
    is_plural,
    is_verb,
    kind_of,
    phrase_before,
    singular,
)
from reasoning.rules.parts import Cut, asked, capitalised
from reasoning.rules.phrases import POSSESSIVE, Word, name_end, span

LEAST_WORDS, LEAST_CLAUSE = 2, 2


def relative_cut(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Return the description whose relative pronoun is words[at], or None."""
    word = words[at]
    if not word.plain or word.low not in lists.any_of("relative", "relative_time"):
        return None
    head = at
    if head and words[head - 1].low in lists.any_of("relative_preposition"):
        if word.low not in ("which", "whom"):
            return None
        head -= 1
    if head and words[head - 1].text == ",":
        head -= 1
    phrase = phrase_before(text, words, head, lists)
    if phrase is None or not phrase.definite or not fits(word.low, phrase.noun, lists):
        return None
    if is_share(words, phrase.start, lists) or phrase.noun in lists.any_of("abstract"):
        return None
    end = clause_end(words, at + 1, phrase.start, lists)
    clause = words[at + 1 : end] if end else []
    if len(clause) < LEAST_CLAUSE or not telling(text, clause, lists):
        return None
    pronoun = span(text, words[head:at]).strip(", ")
    question = _question(text, phrase, pronoun, word.low, clause, lists)
    return described(words, phrase, clause, question, lists)


def described(
    words: Sequence[Word], phrase: Phrase, clause: Sequence[Word], question: str, lists: Lexicon
) -> Cut:
    """Return the cut of a phrase with the clause that describes it."""
    several = is_plural(phrase.noun, lists)
    kind = "list" if several else kind_of(phrase.noun, lists)
    noun = singular(phrase.noun, lists)
    return Cut(words[phrase.start].start, clause[-1].end, question, noun, kind)


def fits(pronoun: str, noun: str, lists: Lexicon) -> bool:
    """Tell whether a pronoun after a noun begins a description: "the fact that" does not."""
    kind = kind_of(noun, lists)
    if pronoun == "when":
        return kind == "date"
    return pronoun != "that" or kind is not None or noun not in lists.any_of("reporting")


def is_share(words: Sequence[Word], start: int, lists: Lexicon) -> bool:
    """Tell whether "one of", "which of", "two of" stands before a phrase."""
    shares = lists.any_of("not_of")
    return start > 1 and words[start - 1].low == "of" and words[start - 2].low in shares


def telling(text: str, clause: Sequence[Word], lists: Lexicon) -> bool:
    """Tell whether a description can be searched for: it names something, or says enough."""
    if any(word.low in lists.any_of("these") for word in clause):
        return False  # what it says stands elsewhere
    if any(word.capital for word in clause):
        return True
    return len(set(content_terms(span(text, clause), "en"))) > LEAST_WORDS


def clause_end(
    words: Sequence[Word], start: int, before: int, lists: Lexicon, verbs: int = 0
) -> int | None:
    """Return where the clause that begins at `start` ends; None when that cannot be told.

    In "did the state whose sport is jousting make …" the main verb must follow it: `before` is
    where the description begins.
    """
    open_verb = _waits_for_verb(words, before, lists)
    place = start
    while place < len(words):
        word = words[place]
        if word.text in ",;:" and not _inside_name(words, place):
            return None if open_verb and not _verb_at(words, place + 1, lists) else place
        if word.kind == "mark" and word.text in "?!).":
            return None if open_verb else place
        if word.text == "(":
            place = _after_bracket(words, place)
            continue
        if verbs and open_verb and _main_verb(words, place, lists):
            return place
        if verbs and place > start and _second_verb(words, start, place, lists):
            return place
        if verbs and place > start and _unclear(words, place, lists):
            return None
        verbs += _is_finite(words, place, start, lists)
        named = name_end(words, place, lists.any_of("title_word"))
        place = max(place + 1, named)
    return None if open_verb else place


def _is_finite(words: Sequence[Word], place: int, start: int, lists: Lexicon) -> bool:
    """Tell whether a word is a verb; a base form may as well be a noun, except after a pronoun."""
    word = words[place]
    if not is_verb(word, lists) or word.low not in lists.any_of("base_verb"):
        return is_verb(word, lists)
    return place == start or words[place - 1].low in lists.any_of("anaphor", "relative_object")


def _waits_for_verb(words: Sequence[Word], before: int, lists: Lexicon) -> bool:
    """Tell whether an inverted auxiliary before the description still waits for its verb."""
    for place in range(before - 1, -1, -1):
        if words[place].low in lists.any_of("base_verb"):
            return False
        if words[place].low in lists.any_of("inverting"):
            return True
    return False


def _verb_at(words: Sequence[Word], place: int, lists: Lexicon) -> bool:
    return place < len(words) and words[place].low in lists.any_of("base_verb")


def _main_verb(words: Sequence[Word], place: int, lists: Lexicon) -> bool:
    word, last = words[place], words[place - 1]
    articles = lists.any_of("determiner", "indefinite", "theirs")
    led = last.low in lists.any_of("inverting", "auxiliary_verb") | articles or last.low == "to"
    return word.plain and word.low in lists.any_of("base_verb") and not led


def _second_verb(words: Sequence[Word], start: int, place: int, lists: Lexicon) -> bool:
    """Tell whether a second "is", or a "did", begins the main clause."""
    word, last = words[place], words[place - 1]
    if word.low not in lists.any_of("be", "inverting"):
        return False
    joins = lists.any_of("relative", "conjoined", "either", "auxiliary_verb", "joint")
    if any(one.low in lists.any_of("embedding") for one in words[start:place]):
        return False
    return last.kind != "mark" and last.low not in joins


def _unclear(words: Sequence[Word], place: int, lists: Lexicon) -> bool:
    """Tell whether a past tense right after a name may be the main verb or not."""
    word, last = words[place], words[place - 1]
    if not (word.plain and last.named and is_past(word.low, lists)):
        return False
    following = words[place + 1].low if place + 1 < len(words) else ""
    return following not in lists.any_of("relative_preposition")


def _after_bracket(words: Sequence[Word], place: int) -> int:
    """Return the place behind a bracket that opens at `place`."""
    closing = (n for n in range(place, len(words)) if words[n].text == ")")
    return next(closing, place) + 1


def _inside_name(words: Sequence[Word], place: int) -> bool:
    """Tell whether a comma stands within a name: "Johnnycake, West Virginia"."""
    return 0 < place < len(words) - 1 and words[place - 1].named and words[place + 1].named


def _question(
    text: str,
    phrase: Phrase,
    preposition: str,
    pronoun: str,
    clause: Sequence[Word],
    lists: Lexicon,
) -> str:
    """Ask for the described thing."""
    said = span(text, clause)
    person = phrase.body.casefold() in lists.any_of("someone")
    if pronoun == "whose":
        return asked(f"Whose {said}" if person else f"Which {phrase.body}'s {said}")
    if pronoun in ("where", "when") or preposition:
        led = preposition or "in"
        inverted = _inverted(text, clause, lists)
        if inverted and pronoun != "whom":
            return asked(f"{capitalised(led)} which {phrase.body} {inverted}")
        link = f"{preposition} {pronoun}".strip()
    elif has_subject(clause, lists):
        link = pronoun
    else:
        return asked(f"Who {said}" if person else f"Which {phrase.body} {said}")
    return asked(f"{asker(phrase.noun, lists)} the {phrase.body} {link} {said}")


def has_subject(clause: Sequence[Word], lists: Lexicon) -> bool:
    """Tell whether a clause brings its own subject: "that Mark Twain wrote"."""
    first = next((word for word in clause if word.kind not in ("mark", "brace")), clause[0])
    if first.low in lists.any_of("relative_object"):
        return True
    return first.capital and not is_verb(first, lists)


def _inverted(text: str, clause: Sequence[Word], lists: Lexicon) -> str:
    """Turn "X was born" into "was X born"; "" when there is no single such verb."""
    places = [n for n, word in enumerate(clause) if word.low in lists.any_of("be")]
    verbs = [n for n, word in enumerate(clause) if is_verb(word, lists)]
    if len(places) != 1 or not places[0] or verbs[0] != places[0]:
        return ""
    place = places[0]
    subject = span(text, clause[:place])
    return f"{clause[place].text} {subject} {span(text, clause[place + 1 :])}".strip()


def participle_cut(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Return the description whose participle is words[at] ("the team founded by X"), or None."""
    if not _describes(words, at, lists):
        return None
    phrase = phrase_before(text, words, at, lists)
    if phrase is None or not phrase.definite or is_share(words, phrase.start, lists):
        return None
    before = words[phrase.start - 1].low if phrase.start else ""
    if before in lists.any_of("be", "have"):  # "was the company founded by X"
        return None
    end = clause_end(words, at + 1, phrase.start, lists, verbs=1)
    clause = words[at:end] if end else []
    if not any(word.capital for word in clause):
        return None
    question = asked(f"{asker(phrase.noun, lists)} the {phrase.body} {span(text, clause)}")
    return described(words, phrase, clause, question, lists)


def _describes(words: Sequence[Word], at: int, lists: Lexicon) -> bool:
    word = words[at]
    if not word.plain or at + 1 >= len(words) or POSSESSIVE.search(word.text):
        return False
    if word.low in lists.any_of("participle_ing"):
        return words[at + 1].kind != "mark"
    if not is_past(word.low, lists):
        return False
    following = words[at + 1].low
    if word.low in lists.any_of("participle_naming"):
        named = words[at + 1 : at + 3]
        return not any(one.capital for one in named) and named[0].low in lists.any_of("joint")
    if word.low in lists.any_of("participle_alone"):
        links = lists.any_of("relative_preposition", "joint", "determiner", "indefinite", "not_of")
        return following in links or words[at + 1].capital
    return following == "by"


def bare_cut(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Return the description of "the city Kevin Durant played for …", at its name, or None."""
    if at < 2 or not words[at].capital or words[at].kind == "quoted":
        return None
    phrase = phrase_before(text, words, at, lists)
    if phrase is None or not phrase.definite or phrase.noun not in lists.any_of("place_or_group"):
        return None
    stop = name_end(words, at, lists.any_of("title_word"))
    after = words[stop] if stop < len(words) else None
    if after is None or not is_past(after.low, lists):
        return None
    if after.low in lists.any_of("auxiliary_verb"):
        return None
    end = clause_end(words, stop, phrase.start, lists)
    if not end:
        return None
    clause = words[at:end]
    question = asked(f"{asker(phrase.noun, lists)} the {phrase.body} that {span(text, clause)}")
    return described(words, phrase, clause, question, lists)
