"""English relative clauses: "the association which published X" asks which association did."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.analysis import content_terms
from reasoning.rules.clause_end import clause_end
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.noun_phrase import (
    Phrase,
    asker,
    is_plural,
    is_verb,
    kind_of,
    phrase_before,
    singular,
)
from reasoning.rules.parts import Cut, asked, capitalised
from reasoning.rules.phrases import Word, span

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
    if (
        len(clause) < LEAST_CLAUSE
        or _asks_on(words, at, lists)
        or not telling(text, phrase, clause, lists)
    ):
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
    if pronoun in ("who", "whom") and noun in lists.any_of("abbreviation_noun"):
        return False
    return pronoun != "that" or kind is not None or noun not in lists.any_of("reporting")


def _asks_on(words: Sequence[Word], at: int, lists: Lexicon) -> bool:
    """Tell whether a comma parts another question: "the dose, who decides it"."""
    if words[at - 1].text != "," or at + 2 >= len(words):
        return False
    return words[at + 2].low in lists.any_of("object_pronoun")


def is_share(words: Sequence[Word], start: int, lists: Lexicon) -> bool:
    """Tell whether "one of", "which of", "two of" stands before a phrase."""
    shares = lists.any_of("not_of")
    return start > 1 and words[start - 1].low == "of" and words[start - 2].low in shares


def telling(text: str, phrase: Phrase, clause: Sequence[Word], lists: Lexicon) -> bool:
    """Tell whether a description can be searched for: it names something, or says enough."""
    if any(word.low in lists.any_of("these") for word in clause):
        return False  # what it says stands elsewhere
    if any(word.capital for word in clause):
        return True
    said = f"{phrase.body} {span(text, clause)}"
    return len(set(content_terms(said, "en"))) > LEAST_WORDS


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
